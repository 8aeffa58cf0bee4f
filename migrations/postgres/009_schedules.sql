CREATE TABLE {{schema}}.workflow_schedules (
    schedule_id text NOT NULL PRIMARY KEY,
    schedule_name text NOT NULL UNIQUE,
    workflow_name text NOT NULL,
    workflow_class_name text,
    schedule text NOT NULL,
    status text NOT NULL DEFAULT 'ACTIVE',
    context text NOT NULL
);
