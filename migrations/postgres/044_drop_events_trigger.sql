-- Its wakeups are sent by the writers.
DROP TRIGGER IF EXISTS dbos_workflow_events_trigger ON {{schema}}.workflow_events;
DROP FUNCTION IF EXISTS {{schema}}.workflow_events_function();
