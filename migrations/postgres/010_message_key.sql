-- Only databases whose first tables are older than the key that the first step has made for years.
DO {{body}}
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_catalog.pg_constraint k
        JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = {{schema_text}} AND c.relname = 'notifications' AND k.contype = 'p'
    ) THEN
        ALTER TABLE {{schema}}.notifications ADD PRIMARY KEY (message_uuid);
    END IF;
END
{{body}};
