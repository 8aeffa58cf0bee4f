ALTER TABLE {{schema}}.workflow_status
    ADD COLUMN IF NOT EXISTS was_forked_from boolean NOT NULL DEFAULT false;
