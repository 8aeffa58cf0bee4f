"""What must hold when several connections work at once: real threads on real connections, no mocked order."""

import random
import threading
import time

from fixtures import (
    EXECUTOR, NO_HOLE, SYSTEM, add, basics, claim, fleet, fleet_one, lease, partitioned, plain, queue, split, status,
    submits,
)  # fmt: skip
from checks_claim import equal, ids
from checks_write import FALLBACK, commit, running, take_over
from wire import PgError

DB = "proof_checks"


class Threads:
    """Runs functions of one connection side by side; the first error of any is raised at the end."""

    def __init__(self, server):
        self.server, self.threads, self.errors, self.results = server, [], [], []

    def start(self, function, *args):
        def body():
            conn = self.server.open(DB)
            try:
                self.results.append(function(conn, *args))
            except Exception as error:  # noqa: BLE001
                self.errors.append(error)
            finally:
                conn.close()

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        self.threads.append(thread)
        return self

    def join(self):
        for thread in self.threads:
            thread.join(20)
            assert not thread.is_alive(), "a session never came back"
        if self.errors:
            raise self.errors[0]
        return self.results


def wait_for_lock(conn, count=1):
    """Until `count` other sessions of the database wait for a lock; False after a second."""
    for _ in range(200):
        waiting = conn.one(f"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '{DB}'")
        if int(waiting) >= count:
            return True
        time.sleep(0.005)
    return False


def finish(conn, rows):
    """Ends claimed rows under their tokens."""
    units = [(n, r["id"], r["owner_xid"]) for n, r in enumerate(rows)]
    commit(conn, units, now=None, outcomes=[(n, r["id"], "SUCCESS", "1", None) for n, r in enumerate(rows)])


def drain(conn, call, seconds, claimer, seed):
    """Claims and finishes until the time is over; answers the rows taken and the claims that were contended."""
    rng, taken, missed, until, n = random.Random(seed), [], 0, time.monotonic() + seconds, 0
    while time.monotonic() < until:
        rows, _, meta = call(conn, executor=claimer, token=f"{claimer}-{n}", now=None)[:3]
        n += 1
        missed += meta["state"] == "contended"
        taken += rows
        time.sleep(rng.random() * 0.003)
        if rows:
            finish(conn, rows)
    return taken, missed


def sample(conn, sql, seconds):
    """The greatest value seen, and how many looks were taken."""
    most, looks, until = 0, 0, time.monotonic() + seconds
    while time.monotonic() < until:
        most, looks = max(most, int(conn.one(sql) or 0)), looks + 1
    return most, looks


def crowd(server, a, call, sql, columns, rows=4000, seconds=1.5, keys=None):
    basics(a), queue(a, "q", **columns)
    a.query(
        "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, queue_name, created_at, updated_at, priority, "
        "application_name, application_version, queue_partition_key) SELECT 'w' || i, 'ENQUEUED', 'f', 'q', i, i, "
        f"(random() * 3)::int, 'shop', 'v2', {f'(i % {keys})::text' if keys else 'NULL'} FROM generate_series(1, {rows}) i"
    )
    work = Threads(server)
    for n in range(5):
        lease(a, f"c~{n}")
        work.start(drain, call, seconds, f"c~{n}", n)
    most, looks = sample(a, sql, seconds)
    taken = work.join()
    started = [r["id"] for rows, _ in taken for r in rows]
    equal(len(started), len(set(started)), "a row was started twice")
    assert len(started) > 50 and looks > 50, f"too little happened: {len(started)} starts, {looks} looks"
    print(f"       {len(started)} starts, {sum(m for _, m in taken)} contended claims, {looks} looks, most {most}")
    return most


RUNNING = "SELECT count(*) FROM dbos.workflow_status WHERE status = 'PENDING'"


def a_fleet_limit_is_never_exceeded_by_two_trip_claims(server, a):
    call = lambda conn, **over: fleet(conn, running=5, room=3, **over)  # noqa: E731
    most = crowd(server, a, call, RUNNING, {"concurrency": 5})
    assert 3 <= most <= 5, most


def a_fleet_limit_is_never_exceeded_by_one_trip_claims(server, a):
    call = lambda conn, **over: fleet_one(conn, running=5, room=3, **over)  # noqa: E731
    most = crowd(server, a, call, RUNNING, {"concurrency": 5})
    assert 3 <= most <= 5, most


def a_key_that_runs_one_at_a_time_never_runs_two(server, a):
    call = lambda conn, **over: partitioned(conn, key_running=1, room=4, keys_limit=5, cursor=str(random.randrange(8)), **over)  # noqa: E731
    sql = "SELECT max(n) FROM (SELECT count(*) n FROM dbos.workflow_status WHERE status = 'PENDING' GROUP BY queue_partition_key) x"
    equal(crowd(server, a, call, sql, {"partition_concurrency": 1}, keys=8), 1)


def no_window_holds_more_starts_than_its_limit(server, a):
    basics(a), queue(a, "q", rate_limit_max=10, rate_limit_period_sec=0.15)
    for n in range(600):
        add(a, f"w{n}", created_at=n, input=None)
    work = Threads(server)
    for n in range(4):
        lease(a, f"c~{n}")
        call = (lambda conn, **over: fleet(conn, starts=10, period=150, room=4, **over)) if n % 2 else (  # noqa: E731
            lambda conn, **over: fleet_one(conn, starts=10, period=150, room=4, **over))  # noqa: E731, E501 # fmt: skip
        work.start(drain, call, 1.5, f"c~{n}", n)
    starts = sorted(int(r["started_at_epoch_ms"]) for rows, _ in work.join() for r in rows)
    for n in range(len(starts) - 10):
        assert starts[n + 10] - starts[n] >= 150, f"eleven starts within {starts[n + 10] - starts[n]} ms"
    assert len(starts) >= 60, f"only {len(starts)} starts in ten windows"
    print(f"       {len(starts)} starts in 1.5 s at 10 in 150 ms")


def claims_side_by_side_take_every_row_once(server, a):
    basics(a), queue(a, "q")
    for n in range(1500):
        add(a, f"w{n:04}", created_at=n // 7, input=None)

    def take(conn, executor):
        taken, n = [], 0
        while True:
            rows, _, _ = plain(conn, executor=executor, token=f"{executor}-{n}", room=16)
            ranks = [(int(r["priority"]), int(r["created_at"]), r["id"]) for r in rows]
            equal(ranks, sorted(ranks))
            if not rows:
                return taken
            taken, n = taken + ids(rows), n + 1

    work = Threads(server)
    for n in range(4):
        lease(a, f"c~{n}")
        work.start(take, f"c~{n}")
    taken = work.join()
    equal(sorted(i for t in taken for i in t), [f"w{n:04}" for n in range(1500)])


def a_take_over_waits_for_a_claim_under_way_and_takes_its_rows(server, a):
    basics(a), queue(a, "q"), add(a, "w"), lease(a, "dead~1")
    a.flight("BEGIN", ("claim_plain", {**claim(), **NO_HOLE, "executor": "dead~1"}))
    work = Threads(server).start(take_over, "dead~1")
    watch = server.open(DB, prepared=False)
    wait_for_lock(watch)
    a.flight("COMMIT")
    equal(work.join(), [("ended", ["w"], False)])
    equal(watch.one("SELECT count(*) FROM dbos.workflow_status WHERE executor_id = 'dead~1' AND status = 'PENDING'"), "0")
    watch.close()


def a_take_over_waits_for_a_direct_start_under_way_and_takes_its_row(server, a):
    basics(a), lease(a, "dead~1")
    start = {"ord": 1, "id": "w", "token": "A", "executor": "dead~1", "queue": None}
    commit(a, [(1, None, None)], submits_of=[start], end=None)
    work = Threads(server).start(take_over, "dead~1")
    watch = server.open(DB, prepared=False)
    wait_for_lock(watch)
    a.flight("COMMIT")
    equal(work.join(), [("ended", ["w"], False)])
    watch.close()


def a_take_over_that_waited_for_another_finds_no_lease(server, a):
    basics(a), lease(a, "dead~1"), add(a, "w", status="PENDING", owner_xid="T", executor_id="dead~1")
    a.flight("BEGIN", ("take_over_lease", {"system": SYSTEM, "executor": "dead~1", "beat": 1}),
             ("take_over_rows", {"now": 6000, "system": SYSTEM, "executor": "dead~1", "fallback": FALLBACK, "limit": 9}))  # fmt: skip
    work = Threads(server).start(take_over, "dead~1")
    watch = server.open(DB, prepared=False)
    assert wait_for_lock(watch), "the second did not wait"
    a.flight("COMMIT")
    equal(work.join(), [("none", [], False)])
    watch.close()


def a_direct_start_that_met_a_take_over_waits_and_is_unleased(server, a):
    basics(a), lease(a, "dead~1")
    a.flight("BEGIN", ("take_over_lease", {"system": SYSTEM, "executor": "dead~1", "beat": 1}))
    start = {"ord": 1, "id": "w", "token": "A", "executor": "dead~1", "queue": None}
    work = Threads(server).start(lambda conn: commit(conn, [(1, None, None)], submits_of=[start]))
    watch = server.open(DB, prepared=False)
    assert wait_for_lock(watch), "the start did not wait"
    a.flight("COMMIT")
    equal([r["verdict"] for r in work.join()[0]["commit_judge"]], ["unleased"])
    equal(watch.one("SELECT count(*) FROM dbos.workflow_status"), "0")


def take_overs_against_claims_strand_nothing(server, a):
    basics(a), queue(a, "q")
    for n in range(300):
        add(a, f"w{n}", created_at=n, input=None)

    gate = threading.Barrier(3)

    def claims(conn):
        for n in range(150):
            gate.wait()
            plain(conn, executor=f"x~{n}", token=f"x~{n}", room=3)
            plain(conn, executor=f"x~{n}", token=f"x~{n}-b", room=3)

    def deaths(conn, seed):
        rng = random.Random(seed)
        for n in range(150):
            gate.wait()
            time.sleep(rng.random() * 0.004)
            while take_over(conn, f"x~{n}", limit=40)[2]:
                pass

    for n in range(150):
        lease(a, f"x~{n}")
    Threads(server).start(claims).start(deaths, 1).start(deaths, 2).join()
    equal(a.one("SELECT count(*) FROM mainstay.leases WHERE executor LIKE 'x~%'"), "0")
    equal(a.one("SELECT count(*) FROM dbos.workflow_status WHERE status = 'PENDING'"), "0", "stranded rows")
    flips = int(a.one("SELECT sum(recovery_attempts) FROM dbos.workflow_status"))
    assert flips >= 30, f"only {flips} rows were ever claimed"
    print(f"       {flips} rows claimed and taken over again")


def a_batch_that_met_a_cancel_waits_and_writes_nothing(server, a):
    basics(a), running(a, "w")
    commit(a, [(9, None, None)], cancels=[(9, "w")], end=None)
    work = Threads(server).start(
        lambda conn: commit(conn, [(1, "w", "T1")], steps=[(1, "w", 0, "s", "1")], outcomes=[(1, "w", "SUCCESS", "1", None)])
    )
    watch = server.open(DB, prepared=False)
    wait_for_lock(watch)
    a.flight("COMMIT")
    equal([r["status"] for r in work.join()[0]["commit_lock"]], ["CANCELLED"])
    equal((watch.one("SELECT count(*) FROM dbos.operation_outputs"), status(a, "w")), ("0", "CANCELLED"))
    watch.close()


def a_submit_that_loses_a_race_names_the_holder(server, a):
    basics(a)
    commit(a, [(1, None, None)], submits_of=[{"ord": 1, "id": "a", "token": "A", "dedup": "k"}], end=None)
    work = Threads(server).start(
        lambda conn: commit(conn, [(1, None, None), (2, None, None)], submits_of=[
            {"ord": 1, "id": "b", "token": "B", "dedup": "k"}, {"ord": 2, "id": "c", "token": "C"}])
    )  # fmt: skip
    watch = server.open(DB, prepared=False)
    wait_for_lock(watch)
    a.flight("COMMIT")
    got = work.join()[0]["commit_judge"]
    equal([(r["id"], r["verdict"], r["holder"]) for r in got], [("b", "held", "a"), ("c", "created", None)])
    watch.close()


def batches_over_the_same_rows_do_not_deadlock(server, a):
    basics(a)
    names = [f"w{n:02}" for n in range(40)]
    running(a, *names)

    def batches(conn, seed):
        rng, deadlocks = random.Random(seed), 0
        for n in range(120):
            some = rng.sample(names, 16)
            units = [(i, id, "T1") for i, id in enumerate(some[:8])] + [(99, None, None)]
            try:
                commit(conn, units, steps=[(i, id, seed * 1000 + n, "s", "1") for i, id in enumerate(some[:8])],
                       cancels=[(99, id) for id in some[8:]] if n % 40 == 39 else [(99, id) for id in some[8:] if id == ""])  # fmt: skip
            except PgError as error:
                if error.code != "40P01":
                    raise
                deadlocks += 1
                conn.flight("ROLLBACK")
        return deadlocks

    work = Threads(server)
    for n in range(4):
        work.start(batches, n)
    equal(work.join(), [0, 0, 0, 0])
    written = int(a.one("SELECT count(*) FROM dbos.operation_outputs"))
    assert written > 500, written


HELPERS = ("Threads", "wait_for_lock", "finish", "drain", "sample", "crowd")
CHECKS = [v for v in list(globals().values()) if callable(v) and getattr(v, "__module__", "") == __name__
          and v.__name__ not in HELPERS]  # fmt: skip
