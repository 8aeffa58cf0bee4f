"""The statements of this directory by name: a text is `-- name:`, its parts are appended in order."""

import pathlib
import re

HERE = pathlib.Path(__file__).parent


def load(patches=()):
    """{name: (sql, params)}; each patch (file, old, new) must apply, so that a stale one is an error."""
    found = {}
    for path in sorted(HERE.glob("*.sql")):
        if path.name == "schema.sql":
            continue
        source = path.read_text()
        for file, old, new in patches:
            if file == path.name:
                if old not in source:
                    raise SystemExit(f"patch does not apply to {file}: {old!r}")
                source = source.replace(old, new)
        for block in re.split(r"^-- name: ", source, flags=re.M)[1:]:
            name, _, body = block.partition("\n")
            found[name.strip()] = body
    out = {}
    for name, body in found.items():
        if name.startswith("part_"):
            continue
        params = re.search(r"^-- params: (.*)$", body, flags=re.M)
        parts = re.search(r"^-- parts: (.*)$", body, flags=re.M)
        pieces = [body] + [found[part] for part in (parts.group(1).split() if parts else [])]
        sql = "\n".join(line for line in "\n".join(pieces).splitlines() if not line.startswith("--"))
        out[name] = (sql.strip(), params.group(1).split() if params else [])
    return out


def prepare_all(conn, patches=()):
    """Prepares every statement on a connection."""
    for name, (sql, params) in load(patches).items():
        try:
            conn.prepare(name, sql, params)
        except Exception as error:
            raise SystemExit(f"{name} does not prepare: {error}") from error
