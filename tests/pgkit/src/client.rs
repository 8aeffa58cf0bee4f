//! A small client of the wire protocol: simple queries under trust authentication, values as text.

use crate::error::{During, Error};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The values of one row as text, `None` for NULL.
pub type Row = Vec<Option<String>>;

/// How long a connection waits for an answer; a test never has a statement that takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Version 3.0 of the protocol.
const PROTOCOL: i32 = 196_608;

/// An open connection that sends one statement text at a time and blocks for the answer.
#[derive(Debug)]
pub struct Client {
    line: Line,
    pid: i32,
}

#[derive(Debug)]
enum Line {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Client {
    /// Connects to `postgres://USER@HOST[:PORT]/DATABASE`; a query part is passed over. Errors: the server is not there,
    /// refuses, or asks for a password.
    pub fn connect(url: &str) -> Result<Self, Error> {
        let place = Place::of(url)?;
        let stream = TcpStream::connect((place.host, place.port)).during("the server cannot be reached")?;
        stream.set_nodelay(true).during("the socket")?;
        stream.set_read_timeout(Some(PATIENCE)).during("the socket")?;
        Self::begin(Line::Tcp(stream), place.user, place.database)
    }

    /// Connects through the unix socket of the server at `port` whose sockets are in `folder`.
    pub fn connect_unix(folder: &std::path::Path, port: u16, user: &str, database: &str) -> Result<Self, Error> {
        let path = folder.join(format!(".s.PGSQL.{port}"));
        let stream = UnixStream::connect(path).during("the server's socket")?;
        stream.set_read_timeout(Some(PATIENCE)).during("the socket")?;
        Self::begin(Line::Unix(stream), user, database)
    }

    /// The process of the server that serves this connection.
    pub fn backend_pid(&self) -> i32 {
        self.pid
    }

    /// Sends statements as one simple query and returns the rows of all of them. Errors: the server's first one.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>, Error> {
        let mut body = sql.as_bytes().to_vec();
        if body.contains(&0) {
            return Err(Error::new("a statement has no NUL"));
        }
        body.push(0);
        // A session that was ended cannot be written to, and the server's last word still waits to be read.
        let sent = self.send(Some(b'Q'), &body);
        let mut rows = Vec::new();
        let mut failed = None;
        loop {
            let Ok((tag, body)) = self.receive() else {
                let lost = sent.err().unwrap_or_else(|| Error::new("the connection was lost"));
                return Err(failed.unwrap_or(lost));
            };
            match tag {
                b'D' => rows.push(row(&body)?),
                b'E' => failed = failed.or(Some(server_error(&body))),
                b'Z' => break,
                b'G' | b'W' => return Err(Error::new("COPY is not for this client")),
                _ => {}
            }
        }
        failed.map_or(Ok(rows), Err)
    }

    /// As [`Client::query`]. Panics: on an error, with the statement.
    pub fn rows(&mut self, sql: &str) -> Vec<Row> {
        self.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The single value of a single row. Panics: on an error, another shape, or NULL.
    pub fn value(&mut self, sql: &str) -> String {
        let rows = self.rows(sql);
        match rows.as_slice() {
            [row] if row.len() == 1 => row[0].clone().unwrap_or_else(|| panic!("{sql}: the value is NULL")),
            other => panic!("{sql}: not one value: {other:?}"),
        }
    }

    /// Runs statements for what they do. Panics: on an error.
    pub fn run(&mut self, sql: &str) {
        self.rows(sql);
    }

    fn begin(line: Line, user: &str, database: &str) -> Result<Self, Error> {
        let mut client = Self { line, pid: 0 };
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        for word in ["user", user, "database", database, "application_name", "mainstay-pgkit"] {
            body.extend_from_slice(word.as_bytes());
            body.push(0);
        }
        body.push(0);
        client.send(None, &body)?;
        loop {
            let (tag, body) = client.receive()?;
            match (tag, body.as_slice()) {
                (b'E', _) => return Err(server_error(&body)),
                (b'R', [0, 0, 0, 0]) => {}
                (b'R', _) => return Err(Error::new("the server asks for a password, which this client has not")),
                (b'K', [a, b, c, d, ..]) => client.pid = i32::from_be_bytes([*a, *b, *c, *d]),
                (b'Z', _) => return Ok(client),
                _ => {}
            }
        }
    }

    fn send(&mut self, tag: Option<u8>, body: &[u8]) -> Result<(), Error> {
        let length = i32::try_from(body.len() + 4).map_err(|_| Error::new("a message is too long"))?;
        let mut bytes: Vec<u8> = tag.into_iter().collect();
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(body);
        let sent = match &mut self.line {
            Line::Tcp(stream) => stream.write_all(&bytes),
            Line::Unix(stream) => stream.write_all(&bytes),
        };
        sent.during("the connection was lost")
    }

    fn receive(&mut self) -> Result<(u8, Vec<u8>), Error> {
        let mut head = [0; 5];
        self.fill(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let length = length.checked_sub(4).ok_or_else(|| Error::new("a message without a length"))?;
        let mut body = vec![0; length as usize];
        self.fill(&mut body)?;
        Ok((head[0], body))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        let read = match &mut self.line {
            Line::Tcp(stream) => stream.read_exact(bytes),
            Line::Unix(stream) => stream.read_exact(bytes),
        };
        read.during("the connection was lost")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Terminate; a server that is gone cannot hear it.
        let _ = self.send(Some(b'X'), &[]);
    }
}

/// The parts of a URL that this client uses.
pub(crate) struct Place<'a> {
    pub(crate) user: &'a str,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) database: &'a str,
}

impl<'a> Place<'a> {
    pub(crate) fn of(url: &'a str) -> Result<Self, Error> {
        Self::parse(url).ok_or_else(|| Error::new(format!("not `postgres://USER@HOST[:PORT]/DATABASE`: {url}")))
    }

    fn parse(url: &'a str) -> Option<Self> {
        let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"))?;
        let (login, rest) = rest.rsplit_once('@')?;
        let (place, database) = rest.split_once('/')?;
        let (host, port) = place.rsplit_once(':').unwrap_or((place, "5432"));
        let user = login.split(':').next()?;
        let database = database.split('?').next()?;
        (![user, host, database].contains(&"")).then_some(Self { user, host, port: port.parse().ok()?, database })
    }
}

/// A DataRow: a count, then each value with its length, -1 for NULL.
fn row(body: &[u8]) -> Result<Row, Error> {
    let broken = || Error::new("a row that ends too early");
    let (count, mut rest) = body.split_at_checked(2).ok_or_else(broken)?;
    let mut values = Vec::new();
    for _ in 0..u16::from_be_bytes([count[0], count[1]]) {
        let (length, after) = rest.split_at_checked(4).ok_or_else(broken)?;
        let length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
        let (value, after) = match usize::try_from(length) {
            Ok(length) => after.split_at_checked(length).map(|(value, after)| (Some(value), after)),
            Err(_) => Some((None, after)),
        }
        .ok_or_else(broken)?;
        values.push(value.map(|value| String::from_utf8_lossy(value).into_owned()));
        rest = after;
    }
    Ok(values)
}

/// An ErrorResponse: fields of a letter and a text, of which `C` is the code and `M` the message.
fn server_error(body: &[u8]) -> Error {
    let fields = body.split(|byte| *byte == 0).filter_map(|field| field.split_first());
    let (mut code, mut message) = (String::new(), String::new());
    for (letter, text) in fields {
        match letter {
            b'C' => code = String::from_utf8_lossy(text).into_owned(),
            b'M' => message = String::from_utf8_lossy(text).into_owned(),
            _ => {}
        }
    }
    Error::of_server(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_and_what_is_not_one_is_refused() {
        let place = Place::of("postgres://me:secret@127.0.0.1:6000/shop?sslmode=disable").expect("a URL");
        assert_eq!((place.user, place.host, place.port, place.database), ("me", "127.0.0.1", 6000, "shop"));
        assert_eq!(Place::of("postgresql://me@localhost/shop").expect("a URL").port, 5432);
        for url in ["sqlite:x", "postgres://localhost/shop", "postgres://me@host", "postgres://me@host:x/shop"] {
            assert!(Place::of(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_row_with_a_null_is_read_and_a_short_one_refused() {
        let body = [0, 2, 0, 0, 0, 1, b'x', 255, 255, 255, 255];
        assert_eq!(row(&body), Ok(vec![Some("x".into()), None]));
        assert!(row(&body[..7]).is_err() && row(&[0, 1, 0, 0, 0, 9, b'x']).is_err());
    }
}
