"""What a claim must do, on small databases: one function a rule, its name the rule."""

import json

from fixtures import (
    APP, EXECUTOR, NO_HOLE, SYSTEM, add, basics, claim, fleet, fleet_one, lease, partitioned, plain, queue, row, split,
    status, step, version,
)  # fmt: skip


def ids(rows):
    return [r["id"] for r in rows]


def equal(got, wanted, what=""):
    assert got == wanted, f"{what}: got {got!r}, wanted {wanted!r}"


def a_claim_returns_whole_rows_in_order_of_priority_age_and_id(server, a):
    basics(a), queue(a, "q")
    for id, priority, created in [("c", 0, 9), ("B", 0, 7), ("a", 0, 7), ("z", 2, 1), ("y", 1, 1)]:
        add(a, id, input=f'"{id}"', priority=priority, created_at=created)
    step(a, "c", 0, "10"), step(a, "c", 1, "11")
    rows, parked, meta = plain(a)
    # bytes order ids: B before a, which the database's own collation would turn round
    equal(ids(rows), ["B", "a", "c", "y", "z"])
    equal([r["input"] for r in rows], ['"B"', '"a"', '"c"', '"y"', '"z"'])
    equal([[s[2] for s in json.loads(r["steps"])] if r["steps"] else [] for r in rows], [[], [], ["10", "11"], [], []])
    equal((meta["state"], meta["now"], parked, meta["picked"]), ("open", "5000", [], "5"))


def a_claim_writes_the_claim_columns_and_no_other(server, a):
    basics(a), queue(a, "q")
    add(a, "w", updated_at=9000, workflow_timeout_ms=50, application_name=None, application_version=None, priority=3,
        queue_partition_key="k", deduplication_id=None, serialization="portable_json")  # fmt: skip
    add(a, "x", workflow_timeout_ms=50, workflow_deadline_epoch_ms=7777, deduplication_id="d")
    before = {i: row(a, i) for i in "wx"}
    rows, _, _ = plain(a)
    equal(sorted(ids(rows)), ["w", "x"])
    # a claim never starts at or before the last change, so that no two runs share a start stamp
    for id, stamp, deadline in [("w", 9001, 9051), ("x", 5000, 7777)]:
        wanted = {"status": "PENDING", "executor_id": EXECUTOR, "owner_xid": "T1", "application_version": "v2",
                  "application_name": APP, "recovery_attempts": 1, "started_at_epoch_ms": stamp, "updated_at": stamp,
                  "rate_limited": False, "workflow_deadline_epoch_ms": deadline}  # fmt: skip
        equal(row(a, id), {**before[id], **wanted})


def only_eligible_rows_are_claimed(server, a):
    basics(a), queue(a, "q")
    add(a, "ok"), add(a, "unowned", application_name=None), add(a, "unversioned", application_version=None)
    add(a, "class", class_name="C", config_name="i")
    add(a, "old", application_version="v1"), add(a, "foreign", application_name="other")
    add(a, "unknown", name="g"), add(a, "other-class", class_name="D", config_name="i")
    add(a, "elsewhere", queue_name="p"), add(a, "done", status="SUCCESS"), add(a, "late", status="DELAYED")
    rows, _, _ = plain(a, names=["f", "f"], classes=["", "C"], configs=["", "i"], caps=[9, 9])
    equal(sorted(ids(rows)), ["class", "ok", "unowned", "unversioned"])


def unversioned_rows_run_on_the_latest_version_only(server, a):
    basics(a), queue(a, "q"), add(a, "w", application_version=None)
    equal(ids(plain(a, version="v1")[0]), [])
    version(a, "v3", 3, app=None)
    equal(ids(plain(a)[0]), [], "an unowned version that is newer")
    version(a, "v9", 9, app="other")
    equal(ids(plain(a, version="v3")[0]), ["w"], "another application's version does not count")
    a.query("TRUNCATE dbos.application_versions")
    add(a, "x", application_version=None)
    equal(ids(plain(a, version="any", token="T2")[0]), ["x"], "none registered")


def rows_over_their_attempts_are_parked_inside_the_flip(server, a):
    basics(a), queue(a, "q")
    add(a, "last", recovery_attempts=2), add(a, "over", recovery_attempts=3, deduplication_id="d")
    add(a, "inline", recovery_attempts=3, inputs="[]"), add(a, "roomy", name="g", recovery_attempts=3)
    rows, parked, meta = plain(a, names=["f", "g"], classes=["", ""], configs=["", ""], caps=[3, 4])
    equal((sorted(ids(rows)), sorted(parked), meta["picked"]), (["last", "roomy"], ["inline", "over"], "4"))
    got = row(a, "over")
    equal((got["status"], got["queue_name"], got["deduplication_id"], got["started_at_epoch_ms"], got["completed_at"],
           got["recovery_attempts"], got["error"]),
          ("MAX_RECOVERY_ATTEMPTS_EXCEEDED", None, None, None, 5000, 3, None))  # fmt: skip
    equal(a.one("SELECT error FROM dbos.workflow_output WHERE workflow_uuid = 'over'"), '{"name":"Parked"}')
    equal((row(a, "inline")["error"], a.one("SELECT count(*) FROM dbos.workflow_output")), ('{"name":"Parked"}', "1"))


def a_claim_needs_a_living_lease(server, a):
    basics(a), queue(a, "q"), add(a, "w")
    equal(plain(a, executor="none~1")[2]["state"], "unleased")
    a.query("UPDATE mainstay.leases SET ended = true")
    for call in (plain, fleet, fleet_one):
        equal(call(a)[2]["state"], "unleased")
    equal(status(a, "w"), "ENQUEUED")


def a_claim_does_not_wait_for_a_take_over(server, a):
    basics(a), queue(a, "q"), add(a, "w")
    b = server.open("proof_checks")
    b.flight("BEGIN", ("take_over_lease", {"system": SYSTEM, "executor": EXECUTOR, "beat": 1}))
    a.query("SET lock_timeout = 500")
    for call in (plain, fleet, fleet_one):
        equal(call(a)[2]["state"], "contended")
    a.query("RESET lock_timeout")
    b.flight("ROLLBACK")
    b.close()
    equal(ids(plain(a)[0]), ["w"])


def a_beat_does_not_wait_for_a_claim(server, a):
    basics(a), queue(a, "q"), add(a, "w")
    b = server.open("proof_checks")
    b.flight("BEGIN", ("claim_plain", {**claim(), **NO_HOLE}))
    a.query("SET lock_timeout = 500")
    equal(a.flight(("lease_beat", {"system": SYSTEM, "executor": EXECUTOR, "beat": 2}))[0], [{"beat": "2"}])
    a.query("RESET lock_timeout")
    b.flight("ROLLBACK")
    b.close()


def a_claim_planned_with_another_revision_takes_nothing_and_shows_the_queue(server, a):
    basics(a), queue(a, "q", concurrency=3), add(a, "w")
    for call in (plain, fleet, fleet_one):
        _, _, meta = call(a, revision=6)
        equal((meta["state"], json.loads(meta["queue_row"])["concurrency"]), ("stale", 3))
        equal(call(a, queue="gone")[2]["state"], "no_queue")
    equal(status(a, "w"), "ENQUEUED")
    add(a, "internal", queue_name="_dbos_internal_queue")
    equal(ids(plain(a, queue="_dbos_internal_queue", revision=None)[0]), ["internal"])


def a_claim_sent_again_returns_the_rows_of_its_token(server, a):
    basics(a), queue(a, "q")
    for id in ("a", "b", "c"):
        add(a, id)
    step(a, "b", 0)
    first = plain(a, room=2)[0]
    add(a, "other", status="PENDING", owner_xid="T9", executor_id=EXECUTOR)
    again = split(a.flight(("claim_repeat", {k: claim()[k] for k in
                  "now system claim_bytes row_bytes queue token executor".split()}))[0])[0]  # fmt: skip
    equal(again, [{**r, "latest": None} for r in first])
    none = split(a.flight(("claim_repeat", {**{k: claim()[k] for k in
                 "now system claim_bytes row_bytes queue executor".split()}, "token": "T8"}))[0])  # fmt: skip
    equal((none[0], none[2]["state"]), ([], "open"))
    dead = split(a.flight(("claim_repeat", {**{k: claim()[k] for k in
                 "now system claim_bytes row_bytes queue token".split()}, "executor": "gone~1"}))[0])  # fmt: skip
    equal((dead[0], dead[2]["state"]), ([], "unleased"))


def recorded_steps_come_with_every_row_whatever_its_attempts(server, a):
    basics(a), queue(a, "q"), add(a, "fork", forked_from="w", recovery_attempts=0), step(a, "fork", 0, "7")
    rows, _, _ = plain(a)
    equal(json.loads(rows[0]["steps"])[0][:3], [0, "s", "7"])


def a_row_over_its_byte_budget_is_deferred_and_partial(server, a):
    basics(a), queue(a, "q")
    add(a, "big", input="x" * 300, created_at=1), add(a, "long", input="i" * 10, created_at=2), add(a, "none", input=None, created_at=3)
    for position in range(4):
        step(a, "long", position, "y" * 40)
    rows, _, _ = plain(a, row_bytes=100)
    got = {r["id"]: (r["input"], r["input_bytes"], len(json.loads(r["steps"] or "[]")), r["step_count"]) for r in rows}
    equal(got, {"big": (None, "300", 0, "0"), "long": ("i" * 10, "10", 2, "4"), "none": (None, None, 0, "0")})


def behind_a_full_claim_budget_rows_come_with_sizes_alone(server, a):
    basics(a), queue(a, "q")
    for n in range(4):
        add(a, f"w{n}", input="x" * 50, created_at=n + 1), step(a, f"w{n}", 0, "z" * 10)
    rows, _, _ = plain(a, claim_bytes=130)
    equal([(r["input"] is not None, r["steps"] is not None) for r in rows], [(True, True)] * 2 + [(False, False)] * 2)
    equal([(r["input_bytes"], r["step_count"]) for r in rows], [("50", "1")] * 4)


def a_claim_passes_over_rows_that_a_peer_holds(server, a):
    basics(a), queue(a, "q"), add(a, "a"), add(a, "b"), lease(a, "shop~2")
    b = server.open("proof_checks")
    equal(ids(split(b.flight("BEGIN", ("claim_plain", {**claim(), **NO_HOLE, "room": 1, "executor": "shop~2"}))[1])[0]), ["a"])
    equal(ids(plain(a, token="T2")[0]), ["b"])
    b.flight("COMMIT")
    b.close()
    equal(ids(plain(a, token="T3")[0]), [])


def a_hole_is_skipped_and_hides_nothing_outside_it(server, a):
    basics(a), queue(a, "q")
    for n in range(50):
        add(a, f"dead{n:02}", application_version="v1", created_at=100 + n)
    add(a, "live", created_at=200)
    args = {k: claim()[k] for k in "queue app version names classes configs".split()}
    hole = a.flight(("claim_hole", args))[0][0]
    equal(hole, {"hole_latest": "t", "hole_priority": "0", "hole_to": "200"})
    add(a, "tie", created_at=200), add(a, "low", priority=1, created_at=10)
    add(a, "high", priority=-1, created_at=900)
    equal(ids(plain(a, **hole)[0]), ["high", "live", "tie", "low"])
    add(a, "inside", created_at=120)
    equal(ids(plain(a, token="T2", **hole)[0]), [])
    equal(ids(plain(a, token="T3", **{**hole, "hole_latest": "f"})[0]), ["inside"], "a hole of another standing")
    hole = a.flight(("claim_hole", args))[0][0]
    equal((hole["hole_priority"], hole["hole_to"]), ("0", "150"), "behind the last row, none being live")


def a_claim_with_a_fleet_limit_takes_what_is_free_and_counts_every_running_row(server, a):
    basics(a), queue(a, "q", concurrency=4)
    for n in range(9):
        add(a, f"w{n}", created_at=n + 1)
    add(a, "dead", status="PENDING", executor_id="gone~1", application_version="v1")
    add(a, "unowned", status="PENDING", application_name=None)
    for call, wanted in ((fleet, ["w0", "w1"]), (fleet_one, [])):
        equal(ids(call(a, running=4)[0]), wanted)
    a.query("UPDATE dbos.workflow_status SET status = 'SUCCESS' WHERE workflow_uuid IN ('w0', 'dead')")
    equal(ids(fleet_one(a, running=4, token="T2")[0]), ["w2", "w3"])


def a_rate_window_counts_starts_and_not_rows(server, a):
    for call in (fleet, fleet_one):
        basics(a), queue(a, "q", rate_limit_max=5, rate_limit_period_sec=1.0)
        for n in range(20):
            add(a, f"w{n:02}", created_at=n + 1)
        limit = {"starts": 5, "period": 1000}
        equal(ids(call(a, now=5000, room=2, token="A", **limit)[0]), ["w00", "w01"])
        equal(row(a, "w00")["rate_limited"], True)
        # neither a cancelled nor a finished start gives its place back
        a.query("UPDATE dbos.workflow_status SET status = 'CANCELLED', queue_name = NULL WHERE workflow_uuid = 'w00'")
        a.query("DELETE FROM dbos.workflow_status WHERE workflow_uuid = 'w01'")
        equal(len(call(a, now=5400, token="B", **limit)[0]), 3)
        rows, _, meta = call(a, now=5999, token="C", **limit)
        equal(len(rows), 0)
        if call is fleet:
            equal((meta["starts"], meta["oldest"]), ("5", "5000"))
        equal(len(call(a, now=6000, token="D", **limit)[0]), 2, "the first two have left")
        equal(a.one("SELECT string_agg(n::text, ',' ORDER BY at) FROM mainstay.starts"), "3,2", "pruned")


def starts_of_foreign_claimers_count_in_a_window(server, a):
    basics(a), queue(a, "q", rate_limit_max=3, rate_limit_period_sec=1.0)
    for n in range(5):
        add(a, f"w{n}", created_at=n + 1)
    for n, at in enumerate((4100, 3900)):
        add(a, f"x{n}", status="SUCCESS", rate_limited=True, started_at_epoch_ms=at, executor_id="python-1")
    add(a, "ours", status="SUCCESS", rate_limited=True, started_at_epoch_ms=4500, executor_id="shop~9")
    rows, _, meta = fleet(a, starts=3, period=1000)
    equal((len(rows), meta["starts"], meta["oldest"]), (2, "1", "4100"))


def the_window_says_when_it_opens_before_it_is_full(server, a):
    basics(a), queue(a, "q", rate_limit_max=3, rate_limit_period_sec=1.0)
    for token, at, n in [("A", 4200, 1), ("B", 4300, 2), ("C", 4400, 2)]:
        a.query(f"INSERT INTO mainstay.starts VALUES ('{SYSTEM}', 'q', '', {at}, '{token}', {n})")
    equal({k: fleet(a, starts=3, period=1000)[2][k] for k in ("starts", "oldest")}, {"starts": "3", "oldest": "4300"})
    equal({k: fleet(a, starts=9, period=1000)[2][k] for k in ("starts", "oldest")}, {"starts": "5", "oldest": "4200"})
    equal({k: fleet(a, now=9000, starts=3, period=1000)[2][k] for k in ("starts", "oldest")}, {"starts": "0", "oldest": None})


def a_partitioned_claim_takes_rank_by_rank_in_rotation(server, a):
    basics(a), queue(a, "q", partition_concurrency=2)
    for key in "abcd":
        for n in range(3):
            add(a, f"{key}{n}", queue_partition_key=key, created_at=n + 1)
    add(a, "c-runs", status="PENDING", queue_partition_key="c"), add(a, "old", queue_partition_key="e", application_version="v1")
    rows, _, _, keys = partitioned(a, cursor="b", key_running=2, room=6)
    equal([(k["key"], k["running"]) for k in keys], [("c", "1"), ("d", "0"), ("e", "0"), ("a", "0"), ("b", "0")])
    equal(sorted(ids(rows)), ["a0", "a1", "b0", "c0", "d0", "d1"])
    equal(ids(rows), sorted(ids(rows), key=lambda i: (i[1], i)), "dispatch order is priority, age, id")
    rows, _, _, keys = partitioned(a, cursor="d", keys_limit=2, key_running=2, token="T2")
    equal(([k["key"] for k in keys], ids(rows)), (["e", "a"], []), "the rotation is bounded")


def a_partitioned_claim_keeps_the_windows_of_its_keys(server, a):
    basics(a), queue(a, "q", partition_rate_limit_max=2, partition_rate_limit_period_sec=1.0)
    for key in "ab":
        for n in range(4):
            add(a, f"{key}{n}", queue_partition_key=key, created_at=n + 1)
    limit = {"key_starts": 2, "key_period": 1000}
    equal(ids(partitioned(a, room=3, token="A", **limit)[0]), ["a0", "b0", "a1"])
    rows, _, _, keys = partitioned(a, token="B", now=5500, **limit)
    equal((ids(rows), [(k["starts"], k["oldest"]) for k in keys]), (["b1"], [("2", "5000"), ("1", "5000")]))
    equal(ids(partitioned(a, token="C", now=6000, **limit)[0]), ["a2", "b2", "a3"])


def process_limits_of_keys_need_one_statement(server, a):
    basics(a), queue(a, "q", partition_worker_concurrency=2)
    for key in "abc":
        for n in range(3):
            add(a, f"{key}{n}", queue_partition_key=key, created_at=n + 1)
    args = {**claim(room=4), "cursor": "a", "keys_limit": 8, "skip": ["c"], "busy": ["b"], "busy_running": [1], "key_limit": 2}
    rows, _, _ = split(a.flight(("partition_local", args))[0])
    equal(sorted(ids(rows)), ["a0", "a1", "b0"])
    equal(plain(a, queue="q", executor="x~1")[2]["state"], "unleased")
    _, _, meta = split(a.flight(("partition_local", {**args, "executor": "x~1"}))[0])
    equal(meta["state"], "unleased")


CHECKS = [v for v in list(globals().values()) if callable(v) and getattr(v, "__module__", "") == __name__
          and v.__name__ not in ("ids", "equal")]  # fmt: skip
