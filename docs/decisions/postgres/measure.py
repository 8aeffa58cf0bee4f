"""What each operation costs on an empty, never analysed database and on a large one with stale statistics.

Transactions and buffers are the server's own counts (pg_stat_database, flushed by force), round trips and statements the
client's (wire.py). Plans come from EXPLAIN (ANALYZE, BUFFERS) of the prepared statements inside a transaction that is
rolled back. On the empty database every plan is made before the first row is there, as on a fresh installation.
"""

import itertools
import re
import time

from fixtures import APP, EXECUTOR, NO_HOLE, SYSTEM, VERSION, basics, claim, lease, queue, submits

TABLES = r"workflow_status|workflow_input|workflow_output|operation_outputs|notifications|starts"
FALLBACK = "_dbos_internal_queue"
SERIAL = itertools.count()
NOW = "floor(extract(epoch FROM now()) * 1000)::bigint"


def rows(conn, prefix, count, status="ENQUEUED", queue="orders", version=VERSION, executor=None, token=None, keys=None,
         created=NOW, extra="", values="", input=True):  # fmt: skip
    """Inserts `count` workflows and their inputs in bulk."""
    quote = lambda v: "NULL" if v is None else f"'{v}'"  # noqa: E731
    conn.query(
        "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, queue_name, created_at, updated_at, "
        "application_name, application_version, executor_id, owner_xid, recovery_attempts, queue_partition_key, "
        f"serialization{extra}) SELECT '{prefix}' || lpad(i::text, 7, '0'), '{status}', 'f', {quote(queue)}, {created}, {created}, "
        f"'{APP}', {quote(version)}, {quote(executor)}, {quote(token)}, {int(status == 'PENDING')}, "
        f"{f'lpad((i % {keys})::text, 4, chr(48))' if keys else 'NULL'}, 'portable_json'{values} "
        f"FROM generate_series(1, {count}) i"
    )
    if input:
        conn.query(
            "INSERT INTO dbos.workflow_input (workflow_uuid, inputs) SELECT workflow_uuid, repeat('x', 100) "
            f"FROM dbos.workflow_status WHERE workflow_uuid LIKE '{prefix}%' ON CONFLICT DO NOTHING"
        )


def base(conn):
    """Queues, versions and leases; no workflow."""
    basics(conn)
    queue(conn, "orders"), queue(conn, "capped", concurrency=200), queue(conn, "parts", partition_concurrency=2)
    queue(conn, "tied")
    queue(conn, "rated", rate_limit_max=100000, rate_limit_period_sec=60)
    lease(conn, "dead~1")
    for n in range(20):
        queue(conn, f"idle{n}"), lease(conn, f"live~{n}")


def large(conn, seed="ENQUEUED"):
    """100 k finished, 10 k pending, 100 k of a retired version in front; statistics from when 1,000 rows were there.

    With `seed` PENDING those were all running on one key of one queue, which makes every other index look as good.
    """
    base(conn)
    old = "1000 + i"
    rows(conn, "seed", 1000, status=seed, created="900000000000 + i", queue="elsewhere", keys=1 if seed == "PENDING" else None)
    conn.query("ANALYZE")
    conn.query("UPDATE dbos.workflow_status SET status = 'SUCCESS'")
    rows(conn, "done", 100_000, status="SUCCESS", executor="live~1", created=old, extra=", completed_at", values=", 5000 + i")
    conn.query(
        "INSERT INTO dbos.workflow_output (workflow_uuid, output) SELECT 'done' || lpad(i::text, 7, '0'), '1' "
        "FROM generate_series(1, 100000) i"
    )
    conn.query(
        "INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name, output, completed_at_epoch_ms) "
        "SELECT 'done' || lpad(i::text, 7, '0'), s, 's', repeat('y', 40), 5000 + i "
        "FROM generate_series(1, 100000) i, generate_series(0, 1) s"
    )
    rows(conn, "sleep", 8_500, status="PENDING", executor="live~2", token="S", created="1000 + i * 7")
    rows(conn, "dead", 500, status="PENDING", executor="dead~1", token="D", created="1000 + i * 119")
    rows(conn, "cap", 60, status="PENDING", executor="live~3", token="S", queue="capped")
    rows(conn, "part", 900, status="PENDING", executor="live~3", token="S", queue="parts", keys=900)
    rows(conn, "retired", 100_000, version="v1", created="2000 + i")
    rows(conn, "gone", 10_000, version="v1", created="2000 + i", queue="capped")
    rows(conn, "past", 2_500, version="v1", created="2000 + i", queue="parts", keys=500)
    for name in ("orders", "capped", "rated"):
        rows(conn, f"backlog-{name}-", 5_000, queue=name, created="500000 + i / 3")
    rows(conn, "backlog-parts-", 5_000, queue="parts", created="500000 + i", keys=500)
    rows(conn, "backlog-tied-", 10_000, queue="tied", created="500000")
    rows(conn, "slow", 2_000, status="DELAYED", queue="orders", extra=", delay_until_epoch_ms", values=f", {NOW} + 3600000 + i")


class Op:
    """An operation: `setup` makes its rows, `flights` are its trips as lists of calls."""

    def __init__(self, name, setup, flights, bound, expect=None):
        self.name, self.setup, self.flights, self.bound, self.expect = name, setup, flights, bound, expect


def fresh(n, queue="orders", **more):
    """A setup that leaves `n` eligible rows, one in eight with two recorded steps."""
    def setup(conn):
        prefix = f"e{next(SERIAL):04}-"
        conn.query(f"UPDATE dbos.workflow_status SET status = 'SUCCESS' WHERE status = 'PENDING' AND executor_id = '{EXECUTOR}'")
        rows(conn, prefix, n, queue=queue, **more)
        conn.query(
            "INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name, output) SELECT "
            f"'{prefix}' || lpad(i::text, 7, '0'), s, 's', '1' FROM generate_series(8, {n}, 8) i, generate_series(0, 1) s"
        )

    return setup


def owned(n):
    """A setup that leaves `n` rows running under token T, named afresh at each call; answers (setup, ids())."""
    prefix = ["none"]

    def setup(conn):
        prefix[0] = f"o{next(SERIAL):04}-"
        rows(conn, prefix[0], n, status="PENDING", executor=EXECUTOR, token="T")

    return setup, lambda: [f"{prefix[0]}{i:07}" for i in range(1, n + 1)]


def server_claim(token, **over):
    return claim(now=None, token=token, room=64, **over)


def lock(ids, ords=None, clients=(), tokens=None):
    return ("commit_lock", {"now": None, "ids": sorted(ids), "ords": ords if ords is not None else list(range(len(ids))),
                            "fence_ids": ids, "fence_tokens": tokens or ["T"] * len(ids), "clients": list(clients)})  # fmt: skip


NOTHING = {k: [] for k in "step_ords step_ids positions take_ords take_ids messages mail_ords mail_ids".split()}


def steps_of(ids, ords=None, position=0):
    n = len(ids)
    ords = ords if ords is not None else list(range(n))
    probe = {**NOTHING, "step_ords": ords, "step_ids": ids, "positions": [position] * n}
    write = {"now": None, "step_ords": ords, "step_ids": ids, "positions": [position] * n, "step_names": ["s"] * n,
             "outputs": ["1"] * n, "errors": [None] * n, "wakes": [None] * n, "children": [None] * n,
             "step_codecs": ["portable_json"] * n, "step_apps": [APP] * n, "tooks": [1] * n,
             "answers": [None] * n}  # fmt: skip
    return ("commit_probe", probe), ("commit_steps", write)


def outcomes_of(ids, ords=None):
    n = len(ids)
    return ("commit_outcomes", {"now": None, "outcome_ords": ords if ords is not None else list(range(n)),
                                "outcome_ids": ids, "statuses": ["SUCCESS"] * n, "outputs": ["1"] * n, "errors": [None] * n})  # fmt: skip


def operations(hole):
    """All operations in order; `hole` is what claim_hole found in front of `orders`."""
    def token():
        return f"M{next(SERIAL)}"

    lock_of = lambda q: ("fleet_lock", {"system": SYSTEM, "queue": q, "executor": EXECUTOR})  # noqa: E731
    count_of = lambda q, **c: ("fleet_counts", {"now": None, "system": SYSTEM, "queue": q, "app": APP, "revision": 7,  # noqa: E731
                               "running_limit": None, "starts_limit": None, "period_ms": 60000, **c})  # fmt: skip
    keys = [f"{n:04}" for n in range(100, 164)]
    ops = [
        Op("claim of 64, no fleet limit", fresh(64),
           lambda: [[("claim_plain", {**server_claim(token(), queue="orders"), **hole})]], 3000, ("claim_plain", 64)),
        Op("claim that finds nothing", lambda conn: None,
           lambda: [[("claim_plain", {**server_claim(token(), queue="orders"), **hole, "hole_to": 9 * 10**15})]], 30),
        Op("claim of 64, fleet limit, two trips", fresh(64, "capped"),
           lambda: [["BEGIN", lock_of("capped"), count_of("capped", running_limit=200)],
                    [("fleet_take", {**server_claim(token(), queue="capped"), **hole_of("capped", hole)}), "COMMIT"]], 3000, ("fleet_take", 64)),
        Op("claim of 64, fleet limit, one trip", fresh(64, "capped"),
           lambda: [["BEGIN", lock_of("capped"), ("fleet_one", {**server_claim(token(), queue="capped"),
                     **hole_of("capped", hole), "running_limit": 200, "starts_limit": None, "period_ms": 0}), "COMMIT"]], 3000, ("fleet_one", 64)),
        Op("claim of 64, rate window, two trips", fresh(64, "rated"),
           lambda: [["BEGIN", lock_of("rated"), count_of("rated", starts_limit=100000)],
                    [("fleet_take", {**server_claim(token(), queue="rated"), **NO_HOLE}), "COMMIT"]], 3000, ("fleet_take", 64)),
        Op("claim of 64 of 500 keys, two trips", fresh(500, "parts", keys=500),
           lambda: [["BEGIN", lock_of("parts"), count_of("parts"), ("partition_keys", {"now": None, "system": SYSTEM,
                     "queue": "parts", "app": APP, "cursor": "0099", "keys_limit": 64, "skip": [], "running_limit": 2,
                     "starts_limit": None, "period_ms": 0, "foreign_limit": 0})],
                    [("partition_take", {**server_claim(token(), queue="parts"), "keys": keys, "key_caps": [2] * 64}), "COMMIT"]], 5500, ("partition_take", 64)),
        Op("claim of 64 of 500 keys, process limits", fresh(500, "parts", keys=500),
           lambda: [[("partition_local", {**server_claim(token(), queue="parts"), "cursor": "0199", "keys_limit": 64,
                     "skip": [], "busy": ["0200"], "busy_running": [1], "key_limit": 2})]], 5000, ("partition_local", 64)),
    ]  # fmt: skip
    setup1, one = owned(1)
    ops.append(Op("commit of one step", setup1, lambda: [["BEGIN", lock(one()), *steps_of(one()), "COMMIT"]], 30, ("commit_steps", 1)))
    setup2, last = owned(1)
    ops.append(Op("commit of last step and outcome", setup2,
                  lambda: [["BEGIN", lock(last()), steps_of(last())[0], outcomes_of(last()), steps_of(last())[1], "COMMIT"]], 60, ("commit_outcomes", 1)))  # fmt: skip
    setup3, many = owned(256)
    ops.append(Op("commit of 256 steps", setup3, lambda: [["BEGIN", lock(many()), *steps_of(many()), "COMMIT"]], 5500, ("commit_steps", 256)))
    setup4, ends = owned(256)
    ops.append(Op("commit of 256 outcomes", setup4,
                  lambda: [["BEGIN", lock(ends()), ("commit_probe", NOTHING), outcomes_of(ends()), "COMMIT"]], 9500, ("commit_outcomes", 256)))  # fmt: skip
    ops.append(Op("enqueue of 100", lambda conn: None, lambda: [submit_flight(token(), 100)], 3800))
    setup5, mix = owned(60)
    ops.append(Op("commit of 64 mixed units, 4 refused", lambda conn: (setup5(conn), dedup_holder(conn)),
                  lambda: [mixed_flight(mix(), token())], 1800, ("commit_steps", 30)))  # fmt: skip
    ops += [
        Op("take-over, one page of 1000", lambda conn: revive(conn),
           lambda: [["BEGIN", ("take_over_lease", {"system": SYSTEM, "executor": "dead~1", "beat": 1}),
                     ("take_over_rows", {"now": None, "system": SYSTEM, "executor": "dead~1", "fallback": FALLBACK, "limit": 1000}),
                     "COMMIT"]], 2500),
        Op("tick with a beat, nothing due", lambda conn: None, lambda: [tick_flight(token())], 30),
        Op("tick, 64 released and 64 cancelled", due, lambda: [tick_flight(token())], 3000, ("tick_sweep", 128)),
        Op("probe of 20 queues", lambda conn: None, lambda: [[("queue_probe", {
            "now": None, "app": APP, "version": VERSION, "queues": ["orders"] + [f"idle{n}" for n in range(19)],
            "names": ["f"], "classes": [""], "configs": [""], "hole_priorities": [hole["hole_priority"]] + [None] * 19,
            "hole_tos": [hole["hole_to"]] + [None] * 19,
            "hole_latests": [hole["hole_latest"]] + [None] * 19})]], 200),
        Op("audit, one page of 1000", lambda conn: None, lambda: [[("queue_audit", {
            "now": None, "executor": "live~2", "after_created": 3000, "after_id": "", "limit": 1000})]], 400),
        Op("not hot: claim without a known hole", fresh(64),
           lambda: [[("claim_plain", {**server_claim(token(), queue="orders"), **NO_HOLE})]], None, ("claim_plain", 64)),
        Op("not hot: claim of 64 out of 10,000 of one millisecond", fresh(64, "tied", created="500000"),
           lambda: [[("claim_plain", {**server_claim(token(), queue="tied"), **NO_HOLE})]], None, ("claim_plain", 64)),
        Op("not hot: claim_hole", lambda conn: None,
           lambda: [[("claim_hole", {k: claim(queue="orders")[k] for k in "queue app version names classes configs".split()})]], None),
        Op("not hot: claim_repeat", lambda conn: None, lambda: [[("claim_repeat", {k: server_claim("M1", queue="orders")[k]
           for k in "now system claim_bytes row_bytes queue token executor".split()})]], None),
    ]  # fmt: skip
    return ops


def hole_of(_queue, hole):
    """The hole in front of `capped`, whose retired rows are as old as those of `orders`."""
    return hole if hole["hole_latest"] is None else {**hole, "hole_to": 12001}


def submit_flight(token, n, extra=()):
    insert, judge = submits(*[{"ord": i, "id": f"{token}-{i:04}", "token": f"{token}-{i}", "queue": "submitted",
                               "reusable": False} for i in range(n)], *extra, now=None)  # fmt: skip
    ords = sorted(set(insert["ords"]))
    return ["BEGIN", lock([], ords=[], clients=ords), ("commit_probe", NOTHING), ("commit_submit", insert),
            ("commit_judge", judge), "COMMIT"]  # fmt: skip


def dedup_holder(conn):
    conn.query("INSERT INTO dbos.workflow_status (workflow_uuid, status, name, queue_name, deduplication_id) "
               "VALUES ('holder', 'ENQUEUED', 'f', 'submitted', 'once') ON CONFLICT DO NOTHING")  # fmt: skip


def mixed_flight(ids, token):
    """64 units: 32 steps (2 stale), 16 outcomes (1 stale), 8 submits (1 held), 4 cancels, 4 give-backs."""
    stepping, ending, giving, victims = ids[:32], ids[32:48], ids[48:52], ids[52:56]
    fenced = stepping + ending + giving
    tokens = ["stale" if n in (3, 7, 40) else "T" for n in range(len(fenced))]
    clients = list(range(100, 108)) + list(range(200, 204))
    insert, judge = submits(*[{"ord": 100 + i, "id": f"{token}-{i}", "token": f"{token}-{i}", "queue": "submitted",
                               "dedup": "once" if i == 5 else None} for i in range(8)], now=None)  # fmt: skip
    probe, write = steps_of(stepping)
    return [
        "BEGIN",
        ("commit_lock", {"now": None, "ids": sorted(fenced + victims), "ords": list(range(52)), "fence_ids": fenced,
                         "fence_tokens": tokens, "clients": clients}),
        probe, ("commit_submit", insert), ("commit_judge", judge),
        outcomes_of(ending, ords=list(range(32, 48))),
        ("commit_cancels", {"now": None, "cancel_ords": list(range(200, 204)), "cancel_effects": [0] * 4,
                            "cancel_ids": victims}),
        ("commit_give_back", {"now": None, "give_ords": list(range(48, 52)), "give_ids": giving, "give_delays": [None] * 4,
                              "fallback": FALLBACK}),
        write,
        "COMMIT",
    ]  # fmt: skip


def revive(conn):
    """The dead executor as it was: its lease at beat 1, 70 of each thousand pending rows its own."""
    conn.query("DELETE FROM mainstay.leases WHERE executor = 'dead~1'")
    lease(conn, "dead~1")
    if conn.one("SELECT count(*) FROM dbos.workflow_status WHERE workflow_uuid LIKE 'dead%'") == "0":
        rows(conn, "dead", 70, status="PENDING", executor="dead~1", token="D", created="1000 + i")
    conn.query("UPDATE dbos.workflow_status SET status = 'PENDING', executor_id = 'dead~1', owner_xid = 'D' WHERE workflow_uuid LIKE 'dead%'")


def due(conn):
    number = int(conn.one("SELECT count(*) FROM dbos.workflow_status WHERE workflow_uuid LIKE 'due%'"))
    rows(conn, f"due{number:05}", 64, status="DELAYED", queue="submitted", extra=", delay_until_epoch_ms", values=", 5")
    rows(conn, f"late{number:05}", 64, queue="submitted", extra=", workflow_deadline_epoch_ms", values=", 5")


def tick_flight(beat):
    return [("lease_beat", {"system": SYSTEM, "executor": EXECUTOR, "beat": int(beat[1:])}),
            ("tick_sweep", {"now": None, "app": APP, "limit": 1000}),
            ("tick_read", {"now": None, "system": SYSTEM, "app": APP, "seen": 1})]  # fmt: skip


def counters(conn, monitor, database):
    """Transactions and buffers of the database so far; a flush happens only where a table has been read."""
    conn.query("SELECT pg_stat_force_next_flush(), count(*) FROM dbos.dbos_migrations")
    got = monitor.query(f"SELECT xact_commit + xact_rollback, blks_hit + blks_read FROM pg_stat_database WHERE datname = '{database}'")
    return [int(v) for v in got[0]]


def run(conn, monitor, database, op):
    """One real run after a first one that warms caches and plans: a dict of counts."""
    op.setup(conn)
    for flight in op.flights():
        conn.flight(*flight)
    op.setup(conn)
    flights = op.flights()
    zero = counters(conn, monitor, database)
    idle = counters(conn, monitor, database)  # what the counting itself costs
    trips, executes, began = conn.trips, conn.executes, time.monotonic()
    replies = {}
    for flight in flights:
        for call, reply in zip(flight, conn.flight(*flight)):
            replies[call if isinstance(call, str) else call[0]] = reply
    took = time.monotonic() - began
    trips, executes = conn.trips - trips, conn.executes - executes
    after = counters(conn, monitor, database)
    own = [i - z for i, z in zip(idle, zero)]
    if op.expect:
        name, wanted = op.expect
        got = sum(r.get("id") is not None for r in replies[name])
        assert got == wanted, f"{database}: {op.name}: {name} answered {got} rows, wanted {wanted}"
    return {"transactions": after[0] - idle[0] - own[0], "trips": trips, "statements": executes,
            "buffers": after[1] - idle[1] - own[1], "ms": took * 1000}  # fmt: skip


def explain(conn, op):
    """The plans of an operation, executed in order in a transaction that is rolled back: [(statement, text)]."""
    op.setup(conn)
    plans = []
    conn.query("BEGIN")
    for flight in op.flights():
        for call in flight:
            if isinstance(call, tuple):
                plans.append((call[0], conn.explain(call[0], call[1])))
    conn.query("ROLLBACK")
    return plans


MOST_ROWS = 1100  # a page of 1,000, or a claim of 64 and the ties behind it


def faults(name, plan, hot=True):
    """What no plan may contain: a table scan, an index scan that nothing bounds, workers; when hot, many rows read."""
    lines = plan.splitlines()
    found = [f"{name}: {line.strip()}" for line in lines if "Gather" in line]
    for at, line in enumerate(lines):
        scan = re.search(rf"(Seq Scan|Bitmap Heap Scan|Index Scan|Index Only Scan)( Backward)?( using \S+)? on ({TABLES})\b", line)
        if not scan:
            continue
        detail, indent = [], len(line) - len(line.lstrip())
        for below in lines[at + 1 :]:
            if "->" in below or len(below) - len(below.lstrip()) <= indent:
                break
            detail.append(below)
        counts = re.search(r"actual rows=(\d+) loops=(\d+)", line)
        removed = sum(int(n) for n in re.findall(r"Rows Removed by (?:Filter|Index Recheck): (\d+)", "\n".join(detail)))
        looked = (int(counts.group(1)) + removed) * int(counts.group(2)) if counts else 0
        if hot and looked > MOST_ROWS:
            found.append(f"{name}: {looked} rows read, at most {MOST_ROWS} are allowed: {line.strip()}")
        if scan.group(1) in ("Seq Scan", "Bitmap Heap Scan"):
            found.append(f"{name}: {line.strip()}")
        elif not any("Index Cond" in d for d in detail) and not bounded(lines, at, line):
            found.append(f"{name}: no Index Cond: {line.strip()}")
    return found


def bounded(lines, at, line):
    """An ordered walk of a small partial index under a Limit of one row: the next due row."""
    return "idx_workflow_status_delayed" in line or "idx_workflow_status_deadline" in line


def measure(server, database, build, brief, only=None):
    """Runs and explains every operation; answers ({operation: counts}, faults). Without `build` the database is there."""
    if build:
        server.create(database)
    conn, monitor = server.open(database), server.open("postgres", prepared=False)
    if build:
        build(conn)
    found = conn.flight(("claim_hole", {k: claim(queue="orders")[k] for k in "queue app version names classes configs".split()}))[0]
    ops, results, bad = operations(found[0] if found else NO_HOLE), {}, []
    if build and not found:  # the empty database: every plan is made now, and stays
        for op in ops:
            for flight in op.flights():
                conn.flight(*flight)
        build(conn)
    ops = [op for op in ops if only is None or op.name in only]
    for op in ops:
        results[op.name] = run(conn, monitor, database, op)
        buffers = results[op.name]["buffers"]
        if op.bound and buffers > op.bound:
            bad.append(f"{database}: {op.name}: {buffers} buffers, at most {op.bound} are allowed")
    for op in ops:
        for name, plan in explain(conn, op):
            if not brief:
                print(f"\n-- {database}: {op.name}: {name}\n{plan}")
            bad += [f"{database}: {op.name}: {fault}" for fault in faults(name, plan, op.bound is not None)]
    conn.close(), monitor.close()
    return results, bad


def table(empty, large, skewed):
    """The figures as a Markdown table; counts of messages must not depend on the database."""
    lines = ["| operation | transactions | round trips | statements | buffers empty | large, stale | large, skewed | ms, large |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for name, e in empty.items():
        same = [[d[name][key] for key in ("transactions", "trips", "statements")] for d in (empty, large, skewed)]
        assert same[0] == same[1] == same[2], (name, same)
        counts = [*same[0], e["buffers"], large[name]["buffers"], skewed[name]["buffers"], f"{large[name]['ms']:.1f}"]
        lines.append(f"| {name} | " + " | ".join(str(c) for c in counts) + " |")
    return "\n".join(lines)
