//! Opening: what is refused and how, and what several openers make of a fresh file.

use mainstay_env::{Sim, block_on};
use mainstay_sqlite::{Config, Sqlite};
use mainstay_store::{ErrorKind, StoreClock, StoreError, WorkflowStore, WriteStore};
use rusqlite::Connection;

use crate::support::{Folder, enqueue, env, open, soon};

fn refusal(config: Config) -> StoreError {
    block_on(Sqlite::open(&env(), config, StoreClock::Server)).expect_err("refused")
}

fn check(config: Config, kind: ErrorKind, says: &str) {
    let error = refusal(config);
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn a_path_that_names_no_file_is_invalid() {
    let folder = Folder::new();
    std::fs::write(folder.path().join("plain"), "text").expect("a file");
    for (path, says) in [
        (folder.path().to_owned(), "is a directory"),
        (folder.path().join("none/store.db"), "its directory does not exist"),
        (folder.path().join("plain/store.db"), "its parent is not a directory"),
        (":memory:".into(), "names no file"),
        ("".into(), "is empty"),
    ] {
        check(Config::new(&path), ErrorKind::Invalid, says);
        assert_eq!(refusal(Config::new(&path)).field(), Some("path"), "{path:?}");
    }
}

#[test]
fn what_is_no_database_is_corrupt_and_stays_as_it_is() {
    let folder = Folder::new();
    let text = "not a database at all, however long it is ".repeat(100);
    std::fs::write(folder.file(), &text).expect("a file");
    check(folder.config(), ErrorKind::Corrupt, "not a database");
    assert_eq!(std::fs::read_to_string(folder.file()).expect("the file"), text);
}

#[test]
fn a_database_of_another_program_is_invalid_and_stays_as_it_is() {
    let folder = Folder::new();
    folder.stranger().execute_batch("CREATE TABLE workflow_status (id TEXT)").expect("a table");
    check(folder.config(), ErrorKind::Invalid, "another program");
    let tables: i64 =
        folder.stranger().query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).expect("a count");
    assert_eq!(tables, 1);
}

#[test]
fn a_file_that_may_not_be_written_is_denied() {
    let folder = Folder::new();
    block_on(folder.open().close());
    let mut rights = std::fs::metadata(folder.file()).expect("the file").permissions();
    rights.set_readonly(true);
    std::fs::set_permissions(folder.file(), rights).expect("rights");
    let writable = std::fs::OpenOptions::new().append(true).open(folder.file()).is_ok();
    let opened = block_on(Sqlite::open(&env(), folder.config(), StoreClock::Server));
    // A superuser may write whatever the rights say.
    assert_eq!(opened.err().map(|error| error.kind()), (!writable).then_some(ErrorKind::Denied));
}

#[test]
fn a_simulation_has_no_threads_to_open_with() {
    let sim = Sim::new(1);
    let env = sim.env("shop");
    let opened = sim.block_on(Sqlite::open(&env, Folder::new().config(), StoreClock::Server));
    assert_eq!(opened.expect_err("refused").kind(), ErrorKind::Unsupported);
}

#[test]
fn openers_of_a_fresh_file_end_in_one_schema() {
    for _ in 0..5 {
        let folder = Folder::new();
        let opening: Vec<_> = (0..6)
            .map(|n| {
                let (env, config) = (env(), folder.config());
                env.tasks().spawn(format!("opener-{n}"), {
                    let env = env.clone();
                    async move { Sqlite::open(&env, config, StoreClock::Server).await }
                })
            })
            .collect();
        let stores: Vec<Sqlite> =
            opening.into_iter().map(|task| soon(task).expect("a result").expect("opened")).collect();
        for (n, store) in stores.iter().enumerate() {
            soon(store.commit(&[enqueue(&format!("w{n}"))])).expect("a commit");
        }
        let ids: Vec<_> = (0..stores.len()).map(|n| format!("w{n}").into()).collect();
        let rows = soon(stores[0].workflow_rows(&ids)).expect("rows");
        assert!(rows.iter().all(Option::is_some), "{rows:?}");
        assert_eq!(schema(&folder.stranger()), schema_of_one());
    }
}

fn schema(conn: &Connection) -> (u32, Vec<String>) {
    let number = conn.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("a number");
    let mut names = conn.prepare("SELECT name FROM sqlite_schema ORDER BY name").expect("a statement");
    let names = names.query_map([], |row| row.get(0)).expect("names").collect::<Result<_, _>>().expect("names");
    (number, names)
}

fn schema_of_one() -> (u32, Vec<String>) {
    let folder = Folder::new();
    let store = folder.open();
    let schema = schema(&folder.stranger());
    drop(store);
    schema
}

#[test]
fn a_file_of_a_newer_program_is_used_as_it_is() {
    let folder = Folder::new();
    block_on(folder.open().close());
    let newer = "PRAGMA user_version = 900; ALTER TABLE workflow_status ADD COLUMN later TEXT";
    folder.stranger().execute_batch(newer).expect("a newer schema");
    let store = open(&env(), folder.config());
    soon(store.commit(&[enqueue("w")])).expect("a commit");
    let number: u32 = folder.stranger().query_row("PRAGMA user_version", [], |row| row.get(0)).expect("a number");
    assert_eq!(number, 900);
}
