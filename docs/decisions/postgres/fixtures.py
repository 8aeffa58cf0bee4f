"""Databases, rows and calls that the checks and the measurements share."""

import pathlib

from statements import prepare_all
from wire import SETTINGS, Conn, literal

SYSTEM, APP, VERSION, EXECUTOR = "dbos", "shop", "v2", "shop~1"
TABLES = (
    "dbos.workflow_status, dbos.workflow_input, dbos.workflow_output, dbos.operation_outputs, dbos.notifications, "
    "dbos.queues, dbos.application_versions, mainstay.leases, mainstay.starts, mainstay.claims"
)


class Server:
    """The private server: opens connections, makes databases."""

    def __init__(self, directory, port, patches=(), settings=None):
        self.directory, self.port, self.patches = directory, port, patches
        self.settings = {**SETTINGS, **(settings or {})}
        self.opened = []

    def open(self, database, prepared=True):
        conn = Conn(self.directory, self.port, database, "proof", self.settings)
        self.opened.append(conn)
        if prepared:
            prepare_all(conn, self.patches)
        return conn

    def close_all(self):
        """Closes what is open, so that a failed check leaves no lock to the next one."""
        for conn in self.opened:
            conn.close()
        self.opened.clear()

    def create(self, database):
        admin = self.open("postgres", prepared=False)
        admin.query(f"DROP DATABASE IF EXISTS {database}")
        admin.query(f"CREATE DATABASE {database}")
        admin.close()
        conn = self.open(database, prepared=False)
        conn.query((pathlib.Path(__file__).parent / "schema.sql").read_text())
        conn.close()


def basics(conn):
    """Empties the tables; one living executor, the versions v1 and v2 (latest) of the application."""
    conn.query(f"TRUNCATE {TABLES}")
    lease(conn, EXECUTOR)
    version(conn, "v1", 1)
    version(conn, "v2", 2)


def lease(conn, executor, beat=1):
    conn.query(
        "INSERT INTO mainstay.leases (system, executor, app, beat) "
        f"VALUES ('{SYSTEM}', {literal(executor)}, '{APP}', {beat})"
    )


def version(conn, name, stamp, app=APP):
    conn.query(f"INSERT INTO dbos.application_versions VALUES ('id-{name}', '{name}', {stamp}, {stamp}, {literal(app)})")


def queue(conn, name, **columns):
    """Registers a queue with revision 7."""
    columns = {"name": name, "updated_at": 7, "application_name": APP, **columns}
    values = ", ".join(literal(v) for v in columns.values())
    conn.query(f"INSERT INTO dbos.queues ({', '.join(columns)}) VALUES ({values})")


def add(conn, id, input='{"positionalArgs":[1]}', **columns):
    """One workflow, ENQUEUED on queue q in the split shape unless columns say otherwise."""
    columns = {
        "workflow_uuid": id, "status": "ENQUEUED", "name": "f", "queue_name": "q", "created_at": 1000,
        "updated_at": 1000, "application_name": APP, "application_version": VERSION, **columns,
    }  # fmt: skip
    values = ", ".join(literal(v) for v in columns.values())
    conn.query(f"INSERT INTO dbos.workflow_status ({', '.join(columns)}) VALUES ({values})")
    if input is not None and columns.get("inputs") is None:
        conn.query(f"INSERT INTO dbos.workflow_input VALUES ({literal(id)}, {literal(input)}, {columns['created_at']})")


def step(conn, id, position, output="1"):
    conn.query(
        "INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name, output) "
        f"VALUES ({literal(id)}, {position}, 's', {literal(output)})"
    )


def row(conn, id):
    """The row as a dict, or None."""
    found = conn.one(f"SELECT to_jsonb(w) FROM dbos.workflow_status w WHERE workflow_uuid = {literal(id)}")
    import json

    return json.loads(found) if found else None


def status(conn, id):
    return conn.one(f"SELECT status FROM dbos.workflow_status WHERE workflow_uuid = {literal(id)}")


NO_HOLE = {"hole_priority": None, "hole_to": None, "hole_latest": None}
LIMITS = {"running_limit": None, "starts_limit": None, "period_ms": 0}


def claim(**over):
    """Parameters that every claim has."""
    return {
        "now": 5000, "system": SYSTEM, "claim_bytes": 4 << 20, "row_bytes": 256 << 10, "queue": "q",
        "executor": EXECUTOR, "app": APP, "version": VERSION, "token": "T1", "revision": 7, "room": 10,
        "names": ["f"], "classes": [""], "configs": [""], "caps": [100], "park_error": '{"name":"Parked"}', **over,
    }  # fmt: skip


def plain(conn, **over):
    """One claim_plain; answers (rows, parked ids, meta)."""
    return split(conn.flight(("claim_plain", {**claim(), **NO_HOLE, **over}))[0])


def split(reply):
    rows = [r for r in reply if r["kind"] == "row"]
    return rows, [r["id"] for r in reply if r["kind"] == "parked"], reply[0]


def fleet(conn, running=None, starts=None, period=0, decide=None, **over):
    """The two-trip claim: `decide` maps the counts to a total; by default each limit's plain difference."""
    args = {**claim(), **over}
    head = {k: args[k] for k in ("system", "queue", "executor")}
    counts = conn.flight(
        "BEGIN",
        ("fleet_lock", head),
        ("fleet_counts", {
            **{k: args[k] for k in ("now", "system", "queue", "app", "revision")},
            "running_limit": running, "starts_limit": starts, "period_ms": period,
        }),
    )[2][0]  # fmt: skip
    if counts["state"] != "open":
        conn.flight("COMMIT")
        return [], [], counts
    total = args["room"]
    if running is not None:
        total = min(total, running - int(counts["running"]))
    if starts is not None:
        total = min(total, starts - int(counts["starts"]))
    if decide:
        total = decide(counts, total)
    rows, parked, meta = split(conn.flight(("fleet_take", {**args, **NO_HOLE, "room": max(0, total)}), "COMMIT")[0])
    return rows, parked, {**meta, **{k: counts[k] for k in ("running", "starts", "oldest")}}


def fleet_one(conn, running=None, starts=None, period=0, **over):
    """The one-trip claim of a queue with a single queue-wide limit."""
    args = {**claim(), **NO_HOLE, **over}
    head = {k: args[k] for k in ("system", "queue", "executor")}
    limits = {"running_limit": running, "starts_limit": starts, "period_ms": period}
    return split(conn.flight("BEGIN", ("fleet_lock", head), ("fleet_one", {**args, **limits}), "COMMIT")[2])


def partitioned(conn, cursor="", keys_limit=64, key_running=None, key_starts=None, key_period=0, running=None, **over):
    """The two-trip claim of a partitioned queue; answers (rows, parked, meta, key counts)."""
    args = {**claim(), **over}
    base = {k: args[k] for k in ("now", "system", "queue", "app")}
    head = {k: args[k] for k in ("system", "queue", "executor")}
    reply = conn.flight(
        "BEGIN",
        ("fleet_lock", head),
        ("fleet_counts", {**base, "revision": args["revision"], "running_limit": running, "starts_limit": None,
                          "period_ms": 0}),
        ("partition_keys", {**base, "cursor": cursor, "keys_limit": keys_limit, "skip": [], "running_limit": key_running,
                            "starts_limit": key_starts, "period_ms": key_period, "foreign_limit": 1000}),
    )  # fmt: skip
    counts, keys = reply[2][0], reply[3]
    if counts["state"] != "open":
        conn.flight("COMMIT")
        return [], [], counts, []
    caps = []
    for k in keys:
        cap = args["room"]
        if key_running is not None:
            cap = min(cap, key_running - int(k["running"]))
        if key_starts is not None:
            cap = min(cap, key_starts - int(k["starts"]))
        caps.append(max(0, cap))
    room = args["room"] if running is None else max(0, min(args["room"], running - int(counts["running"])))
    take = {**args, "room": room, "keys": [k["key"] for k in keys], "key_caps": caps}
    return (*split(conn.flight(("partition_take", take), "COMMIT")[0]), keys)


SUBMIT = (
    "ords ids tokens names classes configs codecs executors queues keys delays dues priorities dedups parents apps versions "
    "timeouts lives deadlines attributes schedules users roles all_roles inputs reusable"
).split()


def submits(*items, now=5000):
    """Parameters of commit_submit and commit_judge for submits given as dicts with ord, id, token and more."""
    base = {"name": "f", "queue": "q", "priority": 0, "app": APP, "version": VERSION, "input": "[]", "reusable": True}
    one = {p: p if p in ("all_roles", "reusable") else p.rstrip("s") for p in SUBMIT}
    one |= {"lives": "life", "classes": "class", "priorities": "priority", "codecs": "codec", "attributes": "attributes",
            "all_roles": "all_roles"}  # fmt: skip
    rows = [{**base, **item} for item in items]
    insert = {"now": now, **{p: [r.get(one[p]) for r in rows] for p in SUBMIT}}
    judge = {f"submit_{p}": insert[p] for p in "ords ids tokens names classes configs executors queues dedups".split()}
    return insert, {**judge, "submit_keep": [r.get("keep", True) for r in rows]}
