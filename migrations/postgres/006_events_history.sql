CREATE TABLE {{schema}}.workflow_events_history (
    workflow_uuid text NOT NULL REFERENCES {{schema}}.workflow_status (workflow_uuid)
        ON UPDATE CASCADE ON DELETE CASCADE,
    function_id int4 NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (workflow_uuid, function_id, key)
);
ALTER TABLE {{schema}}.streams ADD COLUMN IF NOT EXISTS function_id int4 NOT NULL DEFAULT 0;
