ALTER TABLE {{schema}}.workflow_schedules
    ADD COLUMN IF NOT EXISTS last_fired_at text DEFAULT NULL,
    ADD COLUMN IF NOT EXISTS automatic_backfill boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS cron_timezone text DEFAULT NULL;
