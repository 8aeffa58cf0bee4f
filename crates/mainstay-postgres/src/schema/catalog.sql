-- What a schema holds, one fact a line, in an order and a spelling of its own: text and varchar are one family, defaults
-- are told by their meaning, keys by their columns, predicates as the server prints them.
WITH space AS (
    SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = @schema@
), relations AS (
    SELECT c.oid, c.relname::text AS name FROM pg_catalog.pg_class c, space
    WHERE c.relnamespace = space.oid AND c.relkind IN ('r', 'p')
), columns AS (
    SELECT r.name AS owner, a.attname::text AS name, a.attnotnull,
        CASE WHEN a.atttypid IN ('text'::regtype, 'varchar'::regtype) THEN 'text'
            ELSE pg_catalog.format_type(a.atttypid, a.atttypmod) END AS family,
        pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS value
    FROM relations r
    JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
), constraints AS (
    SELECT r.name AS owner, k.contype, k.confupdtype, k.confdeltype, k.conname::text AS name,
        (SELECT string_agg(pg_catalog.quote_ident(a.attname), ', ' ORDER BY p.n)
         FROM unnest(k.conkey) WITH ORDINALITY p (attnum, n)
         JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = p.attnum) AS keys,
        (SELECT c.relname::text FROM pg_catalog.pg_class c WHERE c.oid = k.confrelid) AS target,
        (SELECT string_agg(pg_catalog.quote_ident(a.attname), ', ' ORDER BY p.n)
         FROM unnest(k.confkey) WITH ORDINALITY p (attnum, n)
         JOIN pg_catalog.pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = p.attnum) AS target_keys
    FROM relations r JOIN pg_catalog.pg_constraint k ON k.conrelid = r.oid AND k.contype IN ('p', 'u', 'f')
), indexes AS (
    SELECT r.name AS owner, i.relname::text AS name, x.indisunique, x.indisvalid, m.amname::text AS method,
        (SELECT string_agg(pg_catalog.pg_get_indexdef(x.indexrelid, n, true)
                || CASE WHEN (x.indoption[n - 1] & 1) = 1 THEN ' desc' ELSE '' END, ', ' ORDER BY n)
         FROM generate_series(1, x.indnkeyatts) n) AS keys,
        (SELECT string_agg(pg_catalog.pg_get_indexdef(x.indexrelid, n, true), ', ' ORDER BY n)
         FROM generate_series(x.indnkeyatts + 1, x.indnatts) n) AS included,
        pg_catalog.pg_get_expr(x.indpred, x.indrelid, true) AS predicate
    FROM relations r
    JOIN pg_catalog.pg_index x ON x.indrelid = r.oid
    JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
    JOIN pg_catalog.pg_am m ON m.oid = i.relam
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conindid = x.indexrelid AND k.contype IN ('p', 'u'))
), functions AS (
    SELECT p.proname::text AS name, pg_catalog.pg_get_function_arguments(p.oid) AS arguments,
        pg_catalog.pg_get_function_result(p.oid) AS result, l.lanname::text AS language, p.provolatile, p.prosecdef,
        p.proisstrict, array_to_string(p.proconfig, '; ') AS settings
    FROM space JOIN pg_catalog.pg_proc p ON p.pronamespace = space.oid
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang
), triggers AS (
    SELECT r.name AS owner, t.tgname::text AS name, t.tgtype, p.proname::text AS function
    FROM relations r JOIN pg_catalog.pg_trigger t ON t.tgrelid = r.oid AND NOT t.tgisinternal
    JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
)
SELECT line FROM (
    SELECT 'table ' || name AS line FROM relations
    UNION ALL
    SELECT 'column ' || owner || '.' || name || ' ' || family || CASE WHEN attnotnull THEN ' not null' ELSE '' END
        || CASE
            WHEN value IS NULL OR value LIKE 'NULL%' THEN ''
            WHEN value LIKE '%now()%' AND value LIKE '%1000%' THEN ' default now_ms'
            WHEN value LIKE '%uuid%' THEN ' default random id'
            ELSE ' default ' || regexp_replace(value, '::[a-z ]+$', '')
        END FROM columns
    UNION ALL
    SELECT CASE contype WHEN 'p' THEN 'primary key ' WHEN 'u' THEN 'unique ' ELSE 'foreign key ' END || owner
        || ' (' || keys || ')'
        || CASE WHEN contype = 'f' THEN ' to ' || target || ' (' || target_keys || ') update ' || confupdtype::text
            || ' delete ' || confdeltype::text ELSE '' END FROM constraints
    UNION ALL
    SELECT 'index ' || name || ' on ' || owner || ' ' || method || CASE WHEN indisunique THEN ' unique' ELSE '' END
        || ' (' || keys || ')' || coalesce(' include (' || included || ')', '') || coalesce(' where ' || predicate, '')
        || CASE WHEN indisvalid THEN '' ELSE ' invalid' END FROM indexes
    UNION ALL
    SELECT 'function ' || name || '(' || arguments || ') returns ' || result || ' ' || language || ' volatility '
        || provolatile::text::text || CASE WHEN prosecdef THEN ' definer' ELSE ' invoker' END
        || CASE WHEN proisstrict THEN ' strict' ELSE '' END || coalesce(' set ' || settings, '') FROM functions
    UNION ALL
    SELECT 'trigger ' || name || ' on ' || owner || ' type ' || tgtype || ' calls ' || function FROM triggers
) facts
ORDER BY line COLLATE "C"
