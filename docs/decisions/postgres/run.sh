#!/usr/bin/env bash
# Builds the schema on a private PostgreSQL, runs the statements of this directory on it, and fails when a semantic check
# fails or a plan is dear. Usage: run.sh [--brief] (no plans printed) | --bite (breaks statements on purpose, one at a
# time, and fails when a check stays green). Needs PostgreSQL 15 binaries ($PG_BIN, Debian's folder or PATH) and python3.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${PG_BIN:-}
[ -n "$bin" ] || { [ -x /usr/lib/postgresql/15/bin/initdb ] && bin=/usr/lib/postgresql/15/bin; } || bin=$(dirname "$(command -v initdb)")
[ -x "$bin/initdb" ] || { echo "no initdb; set PG_BIN" >&2; exit 2; }

dir=$(mktemp -d "${TMPDIR:-/tmp}/pgproof.XXXXXX")
as=()
user=$(id -un)
if [ "$(id -u)" = 0 ]; then # the server refuses to run as root
    user=${PG_USER:-$(id -un postgres 2>/dev/null || echo nobody)}
    chown "$user" "$dir"
    as=(setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups)
fi
chmod 755 "$dir"
port=${PG_PORT:-54397}
stop() {
    "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -m immediate -w stop >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT TERM

cd "$dir"
"${as[@]}" "$bin/initdb" -D "$dir/data" -U proof -A trust -E UTF8 --locale=C.UTF-8 --locale-provider=icu --icu-locale=en --no-sync >"$dir/init.log" 2>&1 ||
    { cat "$dir/init.log" >&2; exit 2; }
# autovacuum off: statistics must stay as stale as the fixtures make them; durable commits are not what is measured
"${as[@]}" "$bin/pg_ctl" -D "$dir/data" -l "$dir/server.log" -w start -o "-p $port -k $dir -c listen_addresses='' \
    -c autovacuum=off -c fsync=off -c shared_buffers=512MB -c max_wal_size=4GB -c track_counts=on \
    -c deadlock_timeout=200ms -c max_connections=60" >/dev/null || { cat "$dir/server.log" >&2; exit 2; }
python3 "$here/prove.py" --socket "$dir" --port "$port" "$@"
