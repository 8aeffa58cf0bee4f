//! Trouble made behind the store's back, on its file: SQLite itself then answers the code that the trouble is named for.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use mainstay_conformance::{Lasting, Trouble};
use mainstay_store::ErrorKind;
use mainstay_store::wrap::Method;
use rusqlite::Connection;

/// What [`make`] makes. A busy file is waited for and never contended, and only a deadline around the store times out.
pub(crate) fn can(trouble: Trouble) -> bool {
    match trouble {
        Trouble::Fails(kind, _) => matches!(kind, ErrorKind::Unavailable | ErrorKind::Full),
        Trouble::MalformedQueue(_) | Trouble::MalformedWorkflow(_) => true,
        _ => false,
    }
}

pub(crate) fn make(file: &Path, trouble: Trouble) -> Lasting {
    let conn = stranger(file);
    match trouble {
        Trouble::Fails(ErrorKind::Unavailable, _) => Box::new(NewerIndex::write(file, &conn).expect("the log's index")),
        Trouble::Fails(ErrorKind::Full, method) => {
            Box::new(NoSpace::after(writes_before(method), file, &conn).expect("triggers"))
        }
        Trouble::MalformedQueue(name) => damaged(&conn, "UPDATE queues SET rate_limit_max = 5 WHERE name = ?1", name),
        Trouble::MalformedWorkflow(id) => {
            damaged(&conn, "UPDATE workflow_status SET authenticated_roles = '?' WHERE workflow_uuid = ?1", id)
        }
        other => unreachable!("{other} was not offered"),
    }
}

/// A connection that knows nothing of the store.
fn stranger(file: &Path) -> Connection {
    Connection::open(file).expect("a connection")
}

/// Damage that stays.
fn damaged(conn: &Connection, statement: &str, name: &str) -> Lasting {
    assert_eq!(conn.execute(statement, [name]).expect("damage"), 1, "{name} is there");
    Box::new(())
}

/// The head of the log's index, which every transaction reads first: two equal copies of 40 bytes and their checksum.
///
/// Source: <https://sqlite.org/walformat.html>, section 2.1.
const COPY: usize = 48;
const SUMMED: usize = 40;

/// The index says that a newer SQLite wrote it: no transaction begins, `SQLITE_CANTOPEN`. Nothing that is stored changes.
struct NewerIndex {
    index: File,
    before: [u8; 2 * COPY],
}

impl NewerIndex {
    fn write(file: &Path, conn: &Connection) -> io::Result<Self> {
        // Nobody writes meanwhile, so that the two copies are equal and stay so.
        conn.execute_batch("BEGIN IMMEDIATE").map_err(io::Error::other)?;
        let mut index = OpenOptions::new().read(true).write(true).open(beside(file, "-shm"))?;
        let mut before = [0; 2 * COPY];
        index.read_exact(&mut before)?;
        let mut copy = [0; COPY];
        copy.copy_from_slice(&before[..COPY]);
        let version = u32::from_ne_bytes([copy[0], copy[1], copy[2], copy[3]]) + 1;
        copy[..4].copy_from_slice(&version.to_ne_bytes());
        let sum = checksum(&copy[..SUMMED]);
        copy[SUMMED..].copy_from_slice(&sum);
        put(&mut index, &[copy, copy].concat())?;
        Ok(Self { index, before })
    }
}

impl Drop for NewerIndex {
    fn drop(&mut self) {
        put(&mut self.index, &self.before).expect("the index as it was");
    }
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

fn put(index: &mut File, bytes: &[u8]) -> io::Result<()> {
    index.seek(SeekFrom::Start(0))?;
    index.write_all(bytes)
}

/// The checksum of the same format, over words in the machine's order.
fn checksum(bytes: &[u8]) -> [u8; 8] {
    let (mut even, mut odd) = (0_u32, 0_u32);
    for words in bytes.chunks_exact(8) {
        let word = |at: usize| u32::from_ne_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]]);
        even = even.wrapping_add(word(0)).wrapping_add(odd);
        odd = odd.wrapping_add(word(4)).wrapping_add(even);
    }
    let mut sum = [0; 8];
    sum[..4].copy_from_slice(&even.to_ne_bytes());
    sum[4..].copy_from_slice(&odd.to_ne_bytes());
    sum
}

/// Rows that a call of this method can still write: where it writes several, it is stopped between two.
fn writes_before(method: Method) -> u32 {
    let several = [Method::Commit, Method::QueueClaim, Method::LeaseTakeOver, Method::Tick, Method::Collect];
    u32::from(several.contains(&method))
}

/// Behind each write of any table stands one to a table whose numbers have run out, which SQLite answers with `SQLITE_FULL`
/// as it does a full disk, and undoes what the statement has written.
struct NoSpace {
    file: PathBuf,
    triggers: Vec<String>,
}

impl NoSpace {
    fn after(writes: u32, file: &Path, conn: &Connection) -> rusqlite::Result<Self> {
        let mut list =
            conn.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")?;
        let tables: Vec<String> = list.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        drop(list);
        let mut script = "BEGIN; CREATE TABLE spent (n INTEGER PRIMARY KEY AUTOINCREMENT); \
            INSERT INTO spent VALUES (9223372036854775807); CREATE TABLE written (n INTEGER); \
            INSERT INTO written VALUES (0);"
            .to_owned();
        let spend = format!(
            "UPDATE written SET n = n + 1; INSERT INTO spent SELECT NULL FROM written WHERE written.n > {writes};"
        );
        let mut triggers = Vec::new();
        for table in tables {
            for write in ["INSERT", "UPDATE", "DELETE"] {
                let name = format!("no_space_{table}_{write}");
                script += &format!("CREATE TRIGGER {name} AFTER {write} ON {table} BEGIN {spend} END;");
                triggers.push(name);
            }
        }
        conn.execute_batch(&(script + "COMMIT"))?;
        Ok(Self { file: file.to_owned(), triggers })
    }
}

impl Drop for NoSpace {
    fn drop(&mut self) {
        let drops: String = self.triggers.iter().map(|name| format!("DROP TRIGGER {name};")).collect();
        stranger(&self.file)
            .execute_batch(&format!("BEGIN; {drops} DROP TABLE spent; DROP TABLE written; COMMIT"))
            .expect("space again");
    }
}
