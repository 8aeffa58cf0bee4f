CREATE FUNCTION {{schema}}.streams_function() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS {{body}}
BEGIN
    PERFORM pg_catalog.pg_notify('dbos_streams_channel', NEW.workflow_uuid || '::' || NEW.key);
    RETURN NEW;
END
{{body}};
CREATE TRIGGER dbos_streams_trigger AFTER INSERT ON {{schema}}.streams
    FOR EACH ROW EXECUTE FUNCTION {{schema}}.streams_function();
