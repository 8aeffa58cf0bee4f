"""Runs the checks, the races and the measurements against the private server that run.sh has started."""

import argparse
import sys
import time
import traceback

import bites
import checks_claim
import checks_race
import checks_write
import measure
from fixtures import Server

DATABASES = {
    "proof_empty": measure.base,
    "proof_large": measure.large,
    "proof_skewed": lambda conn: measure.large(conn, "PENDING"),
}
SUITES = [checks_claim, checks_write, checks_race]


def run_checks(server, only=None):
    """Runs every check on its own connection; answers the names of the failed ones."""
    failed = []
    for suite in SUITES:
        for check in suite.CHECKS:
            if only and check.__name__ not in only:
                continue
            conn = server.open("proof_checks")
            began = time.monotonic()
            try:
                check(server, conn)
            except Exception:
                failed.append(check.__name__)
                if not only:
                    print(f"FAILED {check.__name__}")
                    traceback.print_exc(limit=4, file=sys.stdout)
            else:
                if not only:
                    print(f"ok     {check.__name__} ({time.monotonic() - began:.1f} s)")
            finally:
                server.close_all()
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True)
    parser.add_argument("--port", required=True)
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--bite", action="store_true")
    args = parser.parse_args()
    server = Server(args.socket, args.port)
    server.create("proof_checks")
    sys.exit(bite(args) if args.bite else prove(server, args.brief))


def prove(server, brief):
    """Checks and measurements; 1 when anything is red."""
    failed = run_checks(server)
    results, bad = [], []
    for database, build in DATABASES.items():
        counts, faults = measure.measure(server, database, build, brief)
        results.append(counts)
        bad += faults
    for fault in bad:
        print(f"FAILED {fault}")
    print(
        "\nTransactions and buffers: differences of the server's pg_stat_database around one warm run. Round trips: waits for "
        "ReadyForQuery\nat the client, one for each write of a pipeline; statements: Execute messages, BEGIN and COMMIT included.\n"
    )
    print(measure.table(*results))
    return 1 if failed or bad else 0


def bite(args):
    """Every fault of bites.py, one at a time; 1 when one of them stays green."""
    survived = 0
    for what, patches, checks in bites.SEMANTIC:
        failed = run_checks(Server(args.socket, args.port, patches), only=checks)
        survived += not failed
        print(f"{'red  ' if failed else 'GREEN'} {what}: {', '.join(failed) or 'no check failed'}")
    for database in ("proof_large", "proof_skewed"):
        measure.measure(Server(args.socket, args.port), database, DATABASES[database], True, only=[])
    for what, patches, settings, database, ops in bites.DEAR:
        build = DATABASES[database] if database == "proof_empty" else None
        bad = measure.measure(Server(args.socket, args.port, patches, settings), database, build, True, only=ops)[1]
        survived += not bad
        print(f"{'red  ' if bad else 'GREEN'} {what}: {bad[0] if bad else 'no plan is dear'}")
    print(f"{len(bites.SEMANTIC) + len(bites.DEAR)} faults, {survived} of them green")
    return 1 if survived else 0


if __name__ == "__main__":
    main()
