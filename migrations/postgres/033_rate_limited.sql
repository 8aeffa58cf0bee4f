ALTER TABLE {{schema}}.workflow_status
    ADD COLUMN IF NOT EXISTS rate_limited boolean NOT NULL DEFAULT false;
