"""A PostgreSQL client of the standard library: extended protocol, pipelined, with its round trips counted.

A flight is one write of any number of Bind/Execute messages closed by one Sync, and one wait for ReadyForQuery:
`trips` counts those waits, `executes` the statements. Statements are prepared beforehand (a prepare is counted apart,
in `prepares`: a connection does it once). Values travel as text; a list becomes an array literal.
"""

import json
import socket
import struct

SETTINGS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "plan_cache_mode": "force_generic_plan",
}


class PgError(Exception):
    """An ErrorResponse; `code` is its SQLSTATE."""

    def __init__(self, fields):
        super().__init__(f"{fields.get('C')}: {fields.get('M')} {fields.get('D', '')}")
        self.code = fields.get("C")


def text(value):
    """One parameter in text form, or None for NULL."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "{" + ",".join("NULL" if v is None else _element(text(v)) for v in value) + "}"
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _element(item):
    return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'


def literal(value):
    """One parameter as a quoted literal, for EXPLAIN EXECUTE."""
    item = text(value)
    return "NULL" if item is None else "'" + item.replace("'", "''") + "'"


class Conn:
    """One connection over a unix socket, trust authentication."""

    def __init__(self, directory, port, database, user, settings=SETTINGS):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(f"{directory}/.s.PGSQL.{port}")
        self.buffer = b""
        self.trips = self.executes = self.prepares = 0
        self.columns, self.params = {}, {}
        self.status = b"I"
        options = {"user": user, "database": database, "client_encoding": "UTF8", **settings}
        body = b"".join(k.encode() + b"\0" + v.encode() + b"\0" for k, v in options.items())
        self.sock.sendall(struct.pack("!ii", len(body) + 9, 196608) + body + b"\0")
        self._drain()
        for name in ("BEGIN", "COMMIT", "ROLLBACK"):
            self.prepare(name, name, [])

    def close(self):
        """Ends the session; a thread that waits for it gets an error."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()

    def _read(self):
        while len(self.buffer) < 5 or len(self.buffer) < 1 + struct.unpack("!i", self.buffer[1:5])[0]:
            chunk = self.sock.recv(1 << 18)
            if not chunk:
                raise EOFError("the server closed the connection")
            self.buffer += chunk
        size = 1 + struct.unpack("!i", self.buffer[1:5])[0]
        kind, body = self.buffer[:1], self.buffer[5:size]
        self.buffer = self.buffer[size:]
        return kind, body

    def _drain(self):
        """Reads to ReadyForQuery: the result sets in order; the first error is raised after it."""
        results, rows, described, error = [], [], None, None
        while True:
            kind, body = self._read()
            if kind == b"D":
                rows.append(_row(body))
            elif kind == b"C":
                results.append((rows, body[:-1].decode()))
                rows = []
            elif kind == b"T":
                described = _columns(body)
            elif kind == b"E":
                fields = {p[:1].decode(): p[1:].decode() for p in body.split(b"\0") if p}
                error = error or PgError(fields)
            elif kind == b"Z":
                self.status = body
                if error:
                    raise error
                self.described = described
                return results

    def prepare(self, name, sql, params):
        """Parses and describes one statement under `name`; `params` names its parameters in order."""
        key = name.encode() + b"\0"
        self.described = None
        self.sock.sendall(_message(b"P", key + sql.encode() + b"\0\0\0") + _message(b"D", b"S" + key) + _message(b"S"))
        self._drain()
        self.prepares += 1
        self.columns[name], self.params[name] = self.described or [], list(params)

    def flight(self, *calls):
        """Sends (name, {param: value}) calls in one write with one Sync; answers each with a list of row dicts."""
        out, names = [], []
        for call in calls:
            name, given = call if isinstance(call, tuple) else (call, {})
            names.append(name)
            wanted = self.params[name]
            if set(given) - set(wanted) or set(wanted) - set(given):
                raise KeyError(f"{name}: parameters differ: {set(given) ^ set(wanted)}")
            values = [text(given[p]) for p in wanted]
            body = b"\0" + name.encode() + b"\0" + struct.pack("!hh", 0, len(values))
            for value in values:
                raw = None if value is None else value.encode()
                body += struct.pack("!i", -1) if raw is None else struct.pack("!i", len(raw)) + raw
            out += [_message(b"B", body + b"\0\0"), _message(b"E", b"\0" + b"\0\0\0\0")]
        self.sock.sendall(b"".join(out) + _message(b"S"))
        self.trips += 1
        self.executes += len(names)
        results = self._drain()
        return [[dict(zip(self.columns[n], row)) for row in rows] for n, (rows, _) in zip(names, results)]

    def query(self, sql):
        """A simple query, for fixtures and questions of the test itself; counted as no trip. Rows of the last set."""
        self.sock.sendall(_message(b"Q", sql.encode() + b"\0"))
        results = self._drain()
        return results[-1][0] if results else []

    def one(self, sql):
        """The single value of a simple query."""
        rows = self.query(sql)
        return rows[0][0] if rows else None

    def explain(self, name, given, form="text", analyze=True):
        """EXPLAIN EXECUTE of a prepared statement; with `analyze` it runs, so wrap it in a transaction."""
        args = ", ".join(literal(given[p]) for p in self.params[name])
        what = f'EXECUTE "{name}"' + (f"({args})" if args else "")
        options = "ANALYZE, BUFFERS, " if analyze else ""
        rows = self.query(f"EXPLAIN ({options}COSTS OFF, TIMING OFF, FORMAT {form}) {what}")
        return "\n".join(r[0] for r in rows)


def _message(kind, body=b""):
    return kind + struct.pack("!i", len(body) + 4) + body


def _columns(body):
    names, at = [], 2
    for _ in range(struct.unpack("!h", body[:2])[0]):
        end = body.index(b"\0", at)
        names.append(body[at:end].decode())
        at = end + 19
    return names


def _row(body):
    values, at = [], 2
    for _ in range(struct.unpack("!h", body[:2])[0]):
        size = struct.unpack("!i", body[at : at + 4])[0]
        at += 4
        values.append(None if size < 0 else body[at : at + size].decode())
        at += max(size, 0)
    return values
