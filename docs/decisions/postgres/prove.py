"""Runs the checks, the races and the measurements against the private server that run.sh has started."""

import argparse
import sys
import time
import traceback

import checks_claim
import checks_race
import checks_write
from fixtures import Server

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
                conn.close()
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
    failed = run_checks(server)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
