-- What no other SDK knows of. The first key column is the name of the system schema, so that installations share a database.

-- A beat counter for each living executor. `walked_*` is how far a take-over has walked the pending index.
CREATE TABLE mainstay.leases (
    system text NOT NULL,
    executor text NOT NULL,
    app text NOT NULL,
    beat bigint NOT NULL,
    ended boolean NOT NULL DEFAULT false,
    walked_created bigint NOT NULL DEFAULT '-9223372036854775808',
    walked_id text NOT NULL DEFAULT '',
    PRIMARY KEY (system, executor)
) WITH (fillfactor = 50);

-- Starts inside the rate windows of limited queues: one row for each claim and key; '' is a row without a key.
CREATE TABLE mainstay.starts (
    system text NOT NULL,
    queue text NOT NULL,
    key text NOT NULL,
    at bigint NOT NULL,
    token text NOT NULL,
    n int4 NOT NULL,
    PRIMARY KEY (system, queue, key, at, token)
);
CREATE INDEX starts_by_queue ON mainstay.starts (system, queue, at);

-- Only for a database held at 108, where no column holds a claim's token: what the claim answered, for its repeat.
CREATE TABLE mainstay.claims (
    system text NOT NULL,
    token text NOT NULL,
    at bigint NOT NULL,
    fences jsonb NOT NULL,
    PRIMARY KEY (system, token)
);
