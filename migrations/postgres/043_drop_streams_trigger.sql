-- Its wakeups are sent by the writers.
DROP TRIGGER IF EXISTS dbos_streams_trigger ON {{schema}}.streams;
DROP FUNCTION IF EXISTS {{schema}}.streams_function();
