-- Three roles for one schema of mainstay: who brings it up, who works in it, who looks on.
--
-- Run by a superuser or the owner of the database, with psql, once before the first start and again after an upgrade:
--
--   psql -v schema=dbos -v migrator=mainstay_migrator -v app=mainstay_app -v viewer=mainstay_viewer -f roles.sql
--
-- The roles must exist. Grants are for tables that are there: run this file, let the migrator open the schema once, and run
-- it again. The application then runs with migrations off, or on: what is done already is not attempted. A program that
-- only calls the two functions needs the rights on their tables as well, since they run with the rights of the caller.

-- The migrator owns the schemas, and so what it makes in them. CREATE on the database is needed only for schemas that are not there.
CREATE SCHEMA IF NOT EXISTS :"schema" AUTHORIZATION :"migrator";
CREATE SCHEMA IF NOT EXISTS mainstay AUTHORIZATION :"migrator";
REVOKE ALL ON SCHEMA :"schema", mainstay FROM PUBLIC;

-- The application reads and writes rows of named tables. It makes and drops nothing, and cannot empty a table at once.
GRANT USAGE ON SCHEMA :"schema", mainstay TO :"app";

SELECT format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I.%I TO %I', n.nspname, c.relname, :'app')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND (
    n.nspname = :'schema' AND c.relname IN (
        'workflow_status', 'workflow_input', 'workflow_output', 'operation_outputs', 'notifications', 'workflow_events',
        'workflow_events_history', 'streams', 'workflow_schedules', 'application_versions', 'queues'
    )
    OR n.nspname = 'mainstay' AND c.relname IN ('leases', 'starts', 'claims')
)
ORDER BY 1 \gexec

SELECT format('GRANT SELECT ON %I.%I TO %I', n.nspname, c.relname, :'app')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE (n.nspname = :'schema' AND c.relname = 'dbos_migrations') OR (n.nspname = 'mainstay' AND c.relname = 'migrations')
ORDER BY 1 \gexec

-- Every role may execute a new function unless that is taken away.
SELECT format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', p.oid::pg_catalog.regprocedure)
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = :'schema'
ORDER BY 1 \gexec

SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', p.oid::pg_catalog.regprocedure, :'app')
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = :'schema' AND p.proname IN ('enqueue_workflow', 'send_message')
ORDER BY 1 \gexec

-- The viewer sees two views, without inputs, outputs, errors, attributes and the names of users. A view reads with its owner's
-- rights, so that the viewer needs none on the tables. They stand in our own schema, by the name of the shared one; by its
-- md5 where that has more than 53 bytes, since the server cuts a name of more than 63 off.
SELECT format(
    'CREATE OR REPLACE VIEW mainstay.%I AS SELECT workflow_uuid, status, name, class_name, config_name, application_name,
        application_version, executor_id, queue_name, queue_partition_key, priority, recovery_attempts, rate_limited,
        parent_workflow_id, forked_from, was_forked_from, schedule_name, serialization, created_at, updated_at,
        started_at_epoch_ms, completed_at, delay_until_epoch_ms, workflow_timeout_ms, workflow_deadline_epoch_ms
    FROM %I.workflow_status', 'workflows_' || CASE WHEN octet_length(:'schema') > 53 THEN md5(:'schema') ELSE :'schema' END, :'schema')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :'schema' AND c.relname = 'workflow_status' \gexec

SELECT format(
    'CREATE OR REPLACE VIEW mainstay.%I AS SELECT workflow_uuid, function_id, function_name, child_workflow_id,
        serialization, started_at_epoch_ms, completed_at_epoch_ms FROM %I.operation_outputs',
    'steps_' || CASE WHEN octet_length(:'schema') > 53 THEN md5(:'schema') ELSE :'schema' END, :'schema')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :'schema' AND c.relname = 'operation_outputs' \gexec

GRANT USAGE ON SCHEMA mainstay TO :"viewer";

SELECT format('ALTER VIEW mainstay.%I OWNER TO %I', c.relname, :'migrator')
FROM pg_catalog.pg_class c
WHERE c.relnamespace = 'mainstay'::pg_catalog.regnamespace
    AND c.relname IN ('workflows_' || CASE WHEN octet_length(:'schema') > 53 THEN md5(:'schema') ELSE :'schema' END,
        'steps_' || CASE WHEN octet_length(:'schema') > 53 THEN md5(:'schema') ELSE :'schema' END)
ORDER BY 1 \gexec

SELECT format('GRANT SELECT ON mainstay.%I TO %I', c.relname, :'viewer')
FROM pg_catalog.pg_class c
WHERE c.relnamespace = 'mainstay'::pg_catalog.regnamespace
    AND c.relname IN ('workflows_' || CASE WHEN octet_length(:'schema') > 53 THEN md5(:'schema') ELSE :'schema' END,
        'steps_' || CASE WHEN octet_length(:'schema') > 53 THEN md5(:'schema') ELSE :'schema' END)
ORDER BY 1 \gexec
