-- Names inside are qualified; the pin keeps a caller's schemas from shadowing functions and operators of the server.
ALTER FUNCTION {{schema}}.enqueue_workflow(text, text, json[], json, text, text, text, text, bigint, bigint, text, int4, text)
    SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {{schema}}.send_message(text, json, text, text)
    SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {{schema}}.notifications_function()
    SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {{schema}}.workflow_events_function()
    SET search_path = pg_catalog, pg_temp;
