"""What a mixed commit, a take-over, a tick, a probe and an audit must do, on small databases."""

import json

from fixtures import APP, EXECUTOR, NO_HOLE, SYSTEM, add, basics, claim, lease, plain, queue, row, status, step, submits
from checks_claim import equal, ids
from wire import PgError

FALLBACK = "_dbos_internal_queue"


def commit(conn, units, now=5000, submits_of=(), end="COMMIT", fences=(), cancels=(), gives=(), **kinds):
    """A whole batch in one flight: `units` are (ord, id, token), None for clients; answers {statement: rows}."""
    fenced = [u for u in units if u[1] is not None]
    none = lambda *names: {n: [] for n in names}  # noqa: E731
    ids_locked = sorted({u[1] for u in fenced} | {i for _, i in cancels})
    calls = ["BEGIN"]
    runs = sorted({s["executor"] for s in submits_of if s.get("executor")})
    if runs:
        calls.append(("commit_leases", {"system": SYSTEM, "executors": runs}))
    calls.append(("commit_lock", {
        "now": now, "ids": ids_locked, "ords": [u[0] for u in fenced], "fence_ids": [u[1] for u in fenced],
        "fence_tokens": [u[2] for u in fenced], "clients": [u[0] for u in units if u[1] is None],
    }))  # fmt: skip
    steps, takes, mails = kinds.get("steps", []), kinds.get("takes", []), kinds.get("mails", [])
    calls.append(("commit_probe", {
        "step_ords": [s[0] for s in steps], "step_ids": [s[1] for s in steps], "positions": [s[2] for s in steps],
        "take_ords": [t[0] for t in takes], "take_ids": [t[1] for t in takes], "messages": [t[3] for t in takes],
        "mail_ords": [m[0] for m in mails], "mail_ids": [m[2] for m in mails],
    }))  # fmt: skip
    if submits_of:
        insert, judge = submits(*submits_of, now=now)
        calls += [("commit_submit", insert), ("commit_judge", judge)]
    if takes:
        calls.append(("commit_takes", {"take_ords": [t[0] for t in takes], "take_positions": [t[2] for t in takes],
                                       "messages": [t[3] for t in takes]}))  # fmt: skip
    if mails:
        calls.append(("commit_mail", {
            "now": now, "mail_ords": [m[0] for m in mails], "message_ids": [m[1] for m in mails],
            "mail_ids": [m[2] for m in mails], "topics": [None] * len(mails), "bodies": [m[3] for m in mails],
            "mail_codecs": [None] * len(mails),
        }))  # fmt: skip
    outcomes = kinds.get("outcomes", [])
    if outcomes:
        calls.append(("commit_outcomes", {
            "now": now, "outcome_ords": [o[0] for o in outcomes], "outcome_ids": [o[1] for o in outcomes],
            "statuses": [o[2] for o in outcomes], "outputs": [o[3] for o in outcomes], "errors": [o[4] for o in outcomes],
        }))  # fmt: skip
    if cancels:
        calls.append(("commit_cancels", {"now": now, "cancel_ords": [c[0] for c in cancels],
                                         "cancel_effects": [0] * len(cancels), "cancel_ids": [c[1] for c in cancels]}))  # fmt: skip
    if gives:
        calls.append(("commit_give_back", {"now": now, "give_ords": [g[0] for g in gives], "give_ids": [g[1] for g in gives],
                                           "give_delays": [g[2] for g in gives], "fallback": FALLBACK}))  # fmt: skip
    if steps:
        calls.append(("commit_steps", {
            "now": now, "step_ords": [s[0] for s in steps], "step_ids": [s[1] for s in steps],
            "positions": [s[2] for s in steps], "step_names": [s[3] for s in steps], "outputs": [s[4] for s in steps],
            "errors": [None] * len(steps), "wakes": [s[5] if len(s) > 5 else None for s in steps],
            "children": [s[6] if len(s) > 6 else None for s in steps], "step_codecs": [None] * len(steps),
            "step_apps": [APP] * len(steps), "tooks": [3] * len(steps),
            "answers": [s[7] if len(s) > 7 else None for s in steps],
        }))  # fmt: skip
    if end:
        calls.append(end)
    replies = conn.flight(*calls)
    return dict(zip([c if isinstance(c, str) else c[0] for c in calls], replies))


def running(conn, *names, token="T1"):
    """Rows that run under a token."""
    for name in names:
        add(conn, name, status="PENDING", owner_xid=token, executor_id=EXECUTOR, recovery_attempts=1, started_at_epoch_ms=2000)


def a_mixed_batch_commits_the_good_units_and_refuses_the_others_without_an_abort(server, a):
    basics(a), running(a, "w1", "w2", "w3", "w4", "w5", "w6", "w7")
    add(a, "ended", status="SUCCESS", completed_at=9), a.query("INSERT INTO dbos.workflow_output VALUES ('ended', '42')")
    add(a, "parked", status="MAX_RECOVERY_ATTEMPTS_EXCEEDED", queue_name=None, inputs="[]", error="why")
    add(a, "holder", deduplication_id="once"), add(a, "victim"), add(a, "taken", name="g")
    step(a, "w2", 0, "10")
    a.query("INSERT INTO dbos.notifications (message_uuid, destination_uuid, message) VALUES ('m1', 'w4', 'hi'), ('m2', 'w5', 'x')")
    a.query("UPDATE dbos.notifications SET consumed = true WHERE message_uuid = 'm2'")
    units = [
        (1, "w1", "T1"), (2, "w2", "T1"), (3, "w3", "T1"), (4, "w1", "stale"), (5, "w4", "T1"), (6, "w5", "T1"),
        (7, "w6", "T1"), (8, None, None), (9, "gone", "T1"), (10, "ended", "T1"), (11, "parked", "T1"),
        (12, None, None), (13, None, None), (14, "w7", "T1"), (15, None, None), (16, None, None),
    ]  # fmt: skip
    got = commit(
        a, units,
        steps=[(1, "w1", 0, "step", "1"), (2, "w2", 0, "arm", "x"), (2, "w2", 1, "select", "0"), (4, "w1", 7, "late", "1"),
               (5, "w4", 0, "recv", "hi"), (6, "w5", 0, "recv", "x"), (7, "w6", 0, "start", None, None, "w6-0"),
               (14, "w7", 0, "sleep", None, 250)],
        takes=[(5, "w4", 0, "m1"), (6, "w5", 0, "m2")],
        mails=[(12, "m3", "victim", "ho"), (13, "m4", "nobody", "ho")],
        submits_of=[{"ord": 7, "id": "w6-0", "token": "c1", "dedup": "once"}, {"ord": 8, "id": "e1", "token": "c2"},
                    {"ord": 16, "id": "taken", "token": "c3"}],
        outcomes=[(3, "w3", "SUCCESS", '"done"', None), (10, "ended", "ERROR", None, "late")],
        cancels=[(15, "victim"), (15, "ended"), (15, "nobody")],
    )  # fmt: skip
    equal([(r["ord"], r["status"], r["output"], r["error"]) for r in got["commit_lock"]],
          [("4", "PENDING", None, None), ("9", None, None, None), ("10", "SUCCESS", "42", None),
           ("11", "MAX_RECOVERY_ATTEMPTS_EXCEEDED", None, "why")])  # fmt: skip
    equal([(r["ord"], r["why"], r["name"], r["output"]) for r in got["commit_probe"]],
          [("2", "recorded", "s", "10"), ("6", "consumed", "m2", None), ("13", "missing", "nobody", None)])  # fmt: skip
    equal([(r["ord"], r["verdict"], r["holder"], r["name"]) for r in got["commit_judge"]],
          [("7", "held", "holder", None), ("8", "created", None, "f"), ("16", "conflict", None, "g")])  # fmt: skip
    equal([(r["id"], r["position"]) for r in got["commit_steps"]], [("w1", "0"), ("w4", "0"), ("w7", "0")])
    equal(got["commit_cancels"], [{"ord": "15", "effect": "0", "id": "victim", "executor_id": None}])
    stored = a.query("SELECT workflow_uuid, function_id, output, started_at_epoch_ms, completed_at_epoch_ms "
                     "FROM dbos.operation_outputs ORDER BY 1, 2")  # fmt: skip
    equal(stored, [["w1", "0", "1", "4997", "5000"], ["w2", "0", "10", None, None], ["w4", "0", "hi", "4997", "5000"],
                   ["w7", "0", "5250", "4997", "5250"]])  # fmt: skip
    equal([status(a, i) for i in ("w1", "w3", "e1", "victim", "ended", "w6-0", "taken")],
          ["PENDING", "SUCCESS", "ENQUEUED", "CANCELLED", "SUCCESS", None, "ENQUEUED"])  # fmt: skip
    equal(a.query("SELECT message_uuid, consumed, consumed_by_function_id FROM dbos.notifications ORDER BY 1"),
          [["m1", "t", "0"], ["m2", "t", None], ["m3", "f", None]])  # fmt: skip
    w3 = row(a, "w3")
    equal((w3["owner_xid"], w3["completed_at"], w3["output"], w3["queue_name"]), (None, 5000, None, "q"))
    equal(a.one("SELECT output FROM dbos.workflow_output WHERE workflow_uuid = 'w3'"), '"done"')
    equal(a.status, b"I")


def an_outcome_has_the_shape_of_its_row(server, a):
    basics(a), running(a, "split")
    add(a, "inline", inputs="[]", status="PENDING", owner_xid="T1", deduplication_id="d", updated_at=8000)
    a.query("INSERT INTO dbos.workflow_output VALUES ('inline', 'orphan')")
    commit(a, [(1, "inline", "T1"), (2, "split", "T1")],
           outcomes=[(1, "inline", "ERROR", None, "bad"), (2, "split", "SUCCESS", "1", None)])  # fmt: skip
    got = row(a, "inline")
    equal((got["status"], got["error"], got["deduplication_id"], got["updated_at"], got["completed_at"]),
          ("ERROR", "bad", None, 8000, 8000))  # fmt: skip
    equal(a.query("SELECT workflow_uuid, output FROM dbos.workflow_output"), [["split", "1"]])


def a_cancel_made_in_a_body_is_recorded_with_what_it_moved(server, a):
    basics(a), running(a, "w", "x"), add(a, "b"), add(a, 'A"'), add(a, "ended", status="ERROR")
    commit(a, [(1, "w", "T1"), (2, "x", "T1")], cancels=[(1, "b"), (1, "ended"), (1, 'A"'), (2, "ended")],
           steps=[(1, "w", 0, "cancel", None, None, None, "1/0"), (2, "x", 0, "cancel", None, None, None, "2/0")])  # fmt: skip
    stored = a.query("SELECT output FROM dbos.operation_outputs ORDER BY workflow_uuid")
    equal(stored, [['["A\\"","b"]'], ["[]"]])


def a_submit_is_its_own_again_by_token_and_joins_or_conflicts_else(server, a):
    basics(a)
    first = {"ord": 1, "id": "w", "token": "A", "input": '"a"'}
    equal([r["verdict"] for r in commit(a, [(1, None, None)], submits_of=[first])["commit_judge"]], ["created"])
    for more, wanted in (
        ({}, "created"), ({"token": "B"}, "existing"), ({"token": "B", "keep": False}, "exists"),
        ({"token": "B", "name": "g"}, "conflict"), ({"name": "g"}, "conflict"), ({"token": "B", "class": "C"}, "conflict"),
    ):  # fmt: skip
        got = commit(a, [(1, None, None)], submits_of=[{**first, "input": '"b"', **more}])["commit_judge"]
        equal([r["verdict"] for r in got], [wanted], more)
    equal(a.query("SELECT inputs FROM dbos.workflow_input"), [['"a"']])


def a_unit_of_two_submits_is_whole_or_nothing_while_others_commit(server, a):
    basics(a), add(a, "holder", deduplication_id="once")
    got = commit(a, [(1, None, None), (2, None, None)], submits_of=[
        {"ord": 1, "id": "a", "token": "A"}, {"ord": 1, "id": "b", "token": "B", "dedup": "once"}, {"ord": 2, "id": "c", "token": "C"},
    ])  # fmt: skip
    equal([(r["id"], r["verdict"]) for r in got["commit_judge"]], [("a", "created"), ("b", "held"), ("c", "created")])
    equal(a.query("SELECT workflow_uuid FROM dbos.workflow_status ORDER BY 1"), [["c"], ["holder"]])
    equal(a.query("SELECT workflow_uuid FROM dbos.workflow_input ORDER BY 1"), [["c"], ["holder"]])


def a_direct_start_holds_a_lease_and_runs_under_its_token(server, a):
    basics(a)
    got = commit(a, [(1, None, None), (2, None, None)], submits_of=[
        {"ord": 1, "id": "a", "token": "A", "executor": EXECUTOR, "queue": None, "timeout": 70},
        {"ord": 2, "id": "b", "token": "B", "executor": "gone~1", "queue": None},
    ])  # fmt: skip
    equal([(r["id"], r["verdict"], r["mine"]) for r in got["commit_judge"]], [("a", "created", "t"), ("b", "unleased", None)])
    w = row(a, "a")
    equal((w["status"], w["owner_xid"], w["creator_xid"], w["started_at_epoch_ms"], w["created_at"], w["recovery_attempts"],
           w["workflow_deadline_epoch_ms"]), ("PENDING", "A", "A", 5000, 5000, 1, 5070))  # fmt: skip


def a_reused_id_finds_nothing_that_an_earlier_workflow_left(server, a):
    basics(a), step(a, "w", 0, "old"), a.query("INSERT INTO dbos.workflow_output VALUES ('w', 'old')")
    a.query("INSERT INTO dbos.workflow_input VALUES ('w', 'old', 1)")
    commit(a, [(1, None, None)], submits_of=[{"ord": 1, "id": "w", "token": "A", "input": "new", "delay": 50}])
    equal(a.query("SELECT inputs, retention_timestamp FROM dbos.workflow_input"), [["new", "5000"]])
    equal(a.one("SELECT (SELECT count(*) FROM dbos.operation_outputs) + (SELECT count(*) FROM dbos.workflow_output)"), "0")
    equal((row(a, "w")["status"], row(a, "w")["delay_until_epoch_ms"]), ("DELAYED", 5050))


def moments_are_resolved_against_the_store_s_clock(server, a):
    basics(a)
    commit(a, [(1, None, None)], submits_of=[{"ord": 1, "id": id, "token": id, **more} for id, more in {
        "past": {"due": 10, "life": 30}, "soon": {"delay": 0, "deadline": 7}, "run": {"queue": None, "executor": EXECUTOR, "timeout": 9},
        "queued": {"timeout": 9},
    }.items()])  # fmt: skip
    got = {i: [row(a, i)[k] for k in ("status", "delay_until_epoch_ms", "workflow_deadline_epoch_ms")] for i in ("past", "soon", "run", "queued")}
    equal(got, {"past": ["DELAYED", 10, 5030], "soon": ["DELAYED", 5000, 7], "run": ["PENDING", None, 5009], "queued": ["ENQUEUED", None, None]})


def a_give_back_returns_the_row_now_or_later_and_voids_the_fence(server, a):
    basics(a), running(a, "now", "later")
    add(a, "direct", status="PENDING", owner_xid="T1", queue_name=None, updated_at=7000)
    gives = [(1, "now", None), (2, "later", 100), (3, "direct", None), (4, "now", None)]
    got = commit(a, [(1, "now", "T1"), (2, "later", "T1"), (3, "direct", "T1"), (4, "now", "stale")], gives=gives)
    equal(sorted((r["ord"], r["id"], r["queue_name"]) for r in got["commit_give_back"]),
          [("1", "now", "q"), ("2", "later", "q"), ("3", "direct", FALLBACK)])  # fmt: skip
    equal([(row(a, i)["status"], row(a, i)["delay_until_epoch_ms"], row(a, i)["updated_at"], row(a, i)["owner_xid"],
            row(a, i)["recovery_attempts"]) for i in ("now", "later", "direct")],
          [("ENQUEUED", None, 5000, None, 1), ("DELAYED", 5100, 5000, None, 1), ("ENQUEUED", None, 7000, None, 0)])  # fmt: skip
    again = commit(a, [(1, "now", "T1")], gives=[(1, "now", None)])
    equal([r["status"] for r in again["commit_lock"]], ["ENQUEUED"])


def a_poisoned_value_fails_its_batch_with_a_code_to_bisect_on(server, a):
    basics(a), running(a, "w")
    try:
        commit(a, [(1, "w", "T1"), (2, None, None)], steps=[(1, "w", 0, "s", "1")],
               submits_of=[{"ord": 2, "id": "x", "token": "A", "attributes": '{"a":"\\u0000"}'}])  # fmt: skip
    except PgError as error:
        equal(error.code[:2], "22")
    else:
        raise AssertionError("a NUL in jsonb was taken")
    a.flight("ROLLBACK")
    equal(a.one("SELECT count(*) FROM dbos.operation_outputs"), "0")


def take_over(conn, executor, beat=1, limit=1000, now=6000):
    """One call; answers (state, ids, more)."""
    reply = conn.flight(
        "BEGIN",
        ("take_over_lease", {"system": SYSTEM, "executor": executor, "beat": beat}),
        ("take_over_rows", {"now": now, "system": SYSTEM, "executor": executor, "fallback": FALLBACK, "limit": limit}),
        "COMMIT",
    )[2]
    return reply[0]["state"], [r["id"] for r in reply if r["id"]], reply[0]["more"] == "t"


def a_take_over_walks_the_pending_rows_by_pages_and_removes_the_lease_last(server, a):
    basics(a), lease(a, "dead~1")
    for n in range(10):
        add(a, f"w{n}", status="PENDING", owner_xid="T", executor_id="dead~1" if n % 2 else EXECUTOR, created_at=n // 3,
            recovery_attempts=2, started_at_epoch_ms=1, workflow_deadline_epoch_ms=99, priority=4)  # fmt: skip
    a.query("UPDATE dbos.workflow_status SET queue_name = NULL WHERE workflow_uuid = 'w3'")
    add(a, "done", status="SUCCESS", executor_id="dead~1", created_at=0)
    equal(take_over(a, "dead~1", beat=0), ("alive", [], False), "the beat has moved")
    seen, calls = [], 0
    while True:
        state, moved, more = take_over(a, "dead~1", limit=4)
        equal((state, moved), ("ended", sorted(moved)))
        seen, calls = seen + moved, calls + 1
        if not more:
            break
        equal(a.one("SELECT ended FROM mainstay.leases WHERE executor = 'dead~1'"), "t")
        equal(a.flight(("lease_beat", {"system": SYSTEM, "executor": "dead~1", "beat": 2}))[0], [], "a beat after it")
    equal((seen, calls), (["w1", "w3", "w5", "w7", "w9"], 3))
    equal(a.one("SELECT count(*) FROM mainstay.leases WHERE executor = 'dead~1'"), "0")
    w = row(a, "w3")
    equal((w["status"], w["queue_name"], w["owner_xid"], w["started_at_epoch_ms"], w["recovery_attempts"], w["priority"],
           w["created_at"], w["workflow_deadline_epoch_ms"], w["updated_at"]),
          ("ENQUEUED", FALLBACK, None, None, 2, 4, 1, 99, 6000))  # fmt: skip
    equal([status(a, i) for i in ("w0", "w2", "done")], ["PENDING", "PENDING", "SUCCESS"])
    equal(take_over(a, "dead~1"), ("none", [], False))
    add(a, "python", status="PENDING", executor_id="local")
    equal(take_over(a, "local"), ("none", [], False), "an executor that never had a lease")
    equal(status(a, "python"), "PENDING")


def tick(conn, now=5000, seen=None, limit=1000, beat=None):
    """One tick, with a beat when given; answers (moved rows, the read's row)."""
    calls = [("lease_beat", {"system": SYSTEM, "executor": EXECUTOR, "beat": beat})] if beat else []
    calls += [("tick_sweep", {"now": now, "app": APP, "limit": limit}),
              ("tick_read", {"now": now, "system": SYSTEM, "app": APP, "seen": seen})]  # fmt: skip
    reply = conn.flight(*calls)
    return sorted((r["kind"], r["id"]) for r in reply[-2]), reply[-1][0]


def a_tick_releases_due_rows_and_cancels_late_ones(server, a):
    basics(a)
    add(a, "due", status="DELAYED", delay_until_epoch_ms=5000, deduplication_id="k")
    add(a, "bounced", status="DELAYED", delay_until_epoch_ms=10, is_debounced=True, deduplication_id="d", application_name=None)
    add(a, "soon", status="DELAYED", delay_until_epoch_ms=5001), add(a, "late", workflow_deadline_epoch_ms=5000, deduplication_id="x")
    add(a, "running", status="PENDING", workflow_deadline_epoch_ms=1, owner_xid="T1")
    add(a, "both", status="DELAYED", delay_until_epoch_ms=1, workflow_deadline_epoch_ms=2)
    add(a, "foreign", status="DELAYED", delay_until_epoch_ms=1, application_name="other")
    add(a, "theirs", workflow_deadline_epoch_ms=1, application_name="other"), add(a, "ended", status="SUCCESS", workflow_deadline_epoch_ms=1)
    moved, read = tick(a)
    equal(moved, [("cancelled", i) for i in ("both", "late", "running")] + [("released", i) for i in ("bounced", "due")])
    equal((row(a, "due")["status"], row(a, "due")["deduplication_id"], row(a, "bounced")["deduplication_id"]), ("ENQUEUED", "k", None))
    late = row(a, "late")
    equal((late["status"], late["queue_name"], late["deduplication_id"], late["completed_at"]), ("CANCELLED", None, None, 5000))
    equal(read["next_due"], "5001")
    add(a, "deadline", workflow_deadline_epoch_ms=5000)
    b = server.open("proof_checks")
    b.query("BEGIN; SELECT 1 FROM dbos.workflow_status WHERE workflow_uuid IN ('deadline', 'soon') FOR UPDATE")
    a.query("SET lock_timeout = 500")
    equal(tick(a, now=6000)[0], [], "rows that are held are left to the next tick")
    a.query("RESET lock_timeout")
    b.query("ROLLBACK")
    b.close()
    equal(tick(a, now=6000, limit=1)[0], [("cancelled", "deadline"), ("released", "soon")])


def a_tick_reads_leases_catalog_and_the_queues_only_when_they_changed(server, a):
    basics(a), queue(a, "p"), queue(a, "q", application_name=None), queue(a, "r", application_name="other"), lease(a, "b~1", 9)
    _, read = tick(a, beat=5)
    equal((json.loads(read["leases"]), read["catalog"], read["next_due"]), ([["b~1", 9, False], [EXECUTOR, 5, False]], "125", None))
    equal([q["name"] for q in json.loads(read["queues"])], ["p", "q"])
    equal(tick(a, seen=read["stamp"])[1]["queues"], None)
    for change in ("UPDATE dbos.queues SET updated_at = 8 WHERE name = 'q'", "DELETE FROM dbos.queues WHERE name = 'p'",
                   "INSERT INTO dbos.queues (name, updated_at, application_name) VALUES ('p', 7, 'shop')"):  # fmt: skip
        a.query(change)
        new = tick(a, seen=read["stamp"])[1]
        assert new["queues"] is not None and new["stamp"] != read["stamp"], change
        read = new
    equal(tick(a, beat=3)[1]["leases"], tick(a)[1]["leases"], "an older beat changes nothing")


def an_idle_tick_takes_no_transaction_id(server, a):
    basics(a), queue(a, "q"), tick(a)
    before = a.one("SELECT pg_snapshot_xmax(pg_current_snapshot())")
    tick(a), tick(a)
    equal(a.one("SELECT pg_snapshot_xmax(pg_current_snapshot())"), before)


def a_beat_opens_a_lease_once(server, a):
    basics(a)
    call = ("lease_open", {"system": SYSTEM, "executor": "new~1", "app": APP})
    equal(a.flight(call)[0], [{"beat": "1"}])
    a.flight(("lease_beat", {"system": SYSTEM, "executor": "new~1", "beat": 4}))
    equal(a.flight(call)[0], [{"beat": "4"}])
    a.query("UPDATE mainstay.leases SET ended = true")
    equal(a.flight(call)[0], [], "a lease that a take-over has ended")
    equal(a.flight(("lease_beat", {"system": SYSTEM, "executor": "none~1", "beat": 4}))[0], [])


def probe(conn, queues, holes=None, **over):
    base = {k: claim()[k] for k in "now app version names classes configs".split()}
    n = len(queues)
    holes = holes or {"hole_priorities": [None] * n, "hole_tos": [None] * n, "hole_latests": [None] * n}
    return conn.flight(("queue_probe", {**base, "queues": queues, **holes, **over}))[0][0]


def a_probe_names_the_queues_with_an_eligible_row_in_the_order_asked(server, a):
    basics(a)
    add(a, "a", queue_name="yes"), add(a, "b", queue_name="old", application_version="v1")
    add(a, "c", queue_name="pending", status="PENDING"), add(a, "d", queue_name="last", application_version=None)
    add(a, "e", queue_name="foreign", application_name="other"), add(a, "g", status="DELAYED", delay_until_epoch_ms=9000)
    got = probe(a, ["yes", "old", "pending", "last", "foreign", "empty"][::-1])
    equal((got["due"], got["next_due"]), ("{last,yes}", "9000"))
    hole = {"hole_priorities": [0], "hole_tos": [1001], "hole_latests": [True]}
    equal(probe(a, ["yes"], hole)["due"], "{}")
    equal(probe(a, ["yes"], {**hole, "hole_latests": [False]})["due"], "{yes}")


def an_audit_pages_through_what_an_executor_owns(server, a):
    basics(a)
    for n in range(9):
        add(a, f"w{n}", status="PENDING", owner_xid=f"T{n}", executor_id=EXECUTOR if n % 3 == 0 else "x", created_at=n // 2)
    after, seen, pages = [-(2**63), ""], [], 0
    while after:
        page = a.flight(("queue_audit", {"now": 1, "executor": EXECUTOR, "after_created": after[0], "after_id": after[1], "limit": 2}))[0]
        seen += [(r["id"], r["owner_xid"]) for r in page if r["id"]]
        after, pages = json.loads(page[0]["next"]) if page[0]["next"] else None, pages + 1
    equal((seen, pages), ([("w0", "T0"), ("w3", "T3"), ("w6", "T6")], 5))


def a_fence_is_void_after_every_hand_off(server, a):
    basics(a), queue(a, "q"), running(a, "w")
    commit(a, [(1, None, None)], cancels=[(1, "w")])
    got = commit(a, [(1, "w", "T1")], steps=[(1, "w", 0, "s", "1")], outcomes=[(1, "w", "SUCCESS", "1", None)])
    equal(([r["status"] for r in got["commit_lock"]], status(a, "w")), (["CANCELLED"], "CANCELLED"))
    a.query("UPDATE dbos.workflow_status SET status = 'ENQUEUED', queue_name = 'q', completed_at = NULL")
    equal(ids(plain(a, token="T2")[0]), ["w"])
    got = commit(a, [(1, "w", "T1"), (2, "w", "T2")], steps=[(1, "w", 0, "old", "1"), (2, "w", 0, "new", "2")])
    equal(([r["ord"] for r in got["commit_lock"]], a.query("SELECT function_name FROM dbos.operation_outputs")), (["1"], [["new"]]))


HELPERS = ("commit", "running", "take_over", "tick", "probe", "equal", "ids")
CHECKS = [v for v in list(globals().values()) if callable(v) and getattr(v, "__module__", "") == __name__
          and v.__name__ not in HELPERS]  # fmt: skip
