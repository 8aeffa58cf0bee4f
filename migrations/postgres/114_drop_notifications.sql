DROP INDEX {{concurrently}} IF EXISTS {{schema}}.idx_notifications;
