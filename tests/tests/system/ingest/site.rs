//! A folder to ingest, the program that does it, and what its store has recorded.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use mainstay_env::{Env, Rng};
use mainstay_pgkit::Database;
use mainstay_sqlite::Sqlite;
use mainstay_store::{ErrorKind, ReadSteps, Standing, Steps, Store, StoreClock, WorkflowStore};
use tempfile::TempDir;

use super::journal::{Journal, Step};
use crate::process::Kept;

/// The program.
pub(crate) const INGEST: &str = env!("CARGO_BIN_EXE_ingest");

/// Where the runs of a site store their progress, but for the calm one.
enum Progress {
    /// In a SQLite file in the folder of the results.
    File,
    /// In a PostgreSQL database, with leases of so many milliseconds.
    Postgres { database: Database, lease: u64 },
}

/// A folder `in`, and beside it what runs over it leave behind.
pub(crate) struct Site {
    dir: TempDir,
    pub(crate) env: Env,
    progress: Progress,
}

impl Site {
    /// An empty folder.
    pub(crate) fn empty() -> Self {
        let (dir, env) = (TempDir::new().expect("a folder"), Env::system("test").expect("a thread"));
        let site = Self { dir, env, progress: Progress::File };
        fs::create_dir(site.path("in")).expect("a folder");
        site
    }

    /// A folder of so many files, by seed; some are nested, some empty.
    pub(crate) fn of(files: usize, seed: u64) -> Self {
        let (site, rng) = (Self::empty(), Rng::seeded(seed));
        for number in 0..files {
            let folder = site.path("in").join(format!("part-{}", rng.below(9)));
            fs::create_dir_all(&folder).expect("a folder");
            let words = (0..rng.below(300)).map(|_| format!("word{}", rng.below(90)));
            let text = words.collect::<Vec<_>>().join(if rng.chance(0.5) { " " } else { "\n" });
            fs::write(folder.join(format!("{number}.txt")), text).expect("a file");
        }
        site
    }

    /// The same with the progress of runs in a database, under leases of so many milliseconds. The run `calm` keeps its file.
    pub(crate) fn on(mut self, database: Database, lease: u64) -> Self {
        self.progress = Progress::Postgres { database, lease };
        self
    }

    /// The database of the runs under this name, where it is one.
    fn database(&self, out: &str) -> Option<(&Database, u64)> {
        match &self.progress {
            Progress::Postgres { database, lease } if out != "calm" => Some((database, *lease)),
            _ => None,
        }
    }

    /// Something of this site.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file of the folder.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path("in").join(name), text).expect("a file");
    }

    /// The program over the folder, with results and ledger under this name.
    pub(crate) fn command(&self, out: &str) -> Command {
        let mut command = Command::new(INGEST);
        command.arg(self.path("in")).arg("--out").arg(self.path(out));
        command.arg("--ledger").arg(self.path(&format!("{out}.ledger")));
        if let Some((database, lease)) = self.database(out) {
            command.args(["--store", &database.url(), "--lease", &lease.to_string()]);
        }
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, out: &str) -> Ran {
        Ran(self.command(out).output().expect("a process"))
    }

    /// Starts it, with a pause in every step that writes.
    pub(crate) fn start(&self, out: &str, pause: u64) -> Program {
        let mut command = self.command(out);
        command.args(["--pause", &pause.to_string()]).stdout(Stdio::null()).stderr(Stdio::piped());
        Program(Kept(command.spawn().expect("a process")))
    }

    /// The ledger of the runs under this name.
    pub(crate) fn journal(&self, out: &str) -> Journal {
        let mut journal = Journal::new(&self.path(&format!("{out}.ledger")));
        journal.refresh();
        journal
    }

    /// The summary under this name, as it stands on the disk.
    pub(crate) fn summary(&self, out: &str) -> String {
        fs::read_to_string(self.path(out).join("summary.json")).expect("a summary")
    }

    /// The file of the runs under this name.
    async fn file(&self, out: &str) -> Sqlite {
        let file = self.path(out).join("ingest.db");
        Sqlite::open(&self.env, file, StoreClock::Server).await.expect("the store")
    }

    /// Every step of these workflows that is recorded.
    pub(crate) async fn recorded(&self, out: &str, workflows: &BTreeSet<String>) -> BTreeSet<Step> {
        // A process that was killed at once has not even made the file.
        if workflows.is_empty() {
            return BTreeSet::new();
        }
        if let Some((database, _)) = self.database(out) {
            return recorded_in(database, workflows);
        }
        let mut recorded = BTreeSet::new();
        let store = self.file(out).await;
        for id in workflows {
            match store.workflow_steps(ReadSteps::new(id)).await {
                Ok(Steps::Complete(steps)) => {
                    recorded.extend(steps.into_iter().map(|step| (id.clone(), step.name.to_string())));
                }
                Ok(partial @ Steps::Partial { .. }) => panic!("more steps than one answer holds: {partial:?}"),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => panic!("{error}"),
            }
        }
        store.close().await;
        recorded
    }

    /// How these workflows stand.
    pub(crate) async fn standing(&self, out: &str, workflows: &BTreeSet<String>) -> Vec<Standing> {
        let store: Arc<dyn Store> = match self.database(out) {
            Some((database, _)) => mainstay::open(&database.url()).await.expect("the store"),
            None => Arc::new(self.file(out).await),
        };
        let ids: Vec<_> = workflows.iter().map(Into::into).collect();
        store.workflow_standing(&ids).await.expect("a read")
    }
}

/// Every step of these workflows in the table of the shared schema, in one look: the store would be asked for each.
fn recorded_in(database: &Database, workflows: &BTreeSet<String>) -> BTreeSet<Step> {
    let rows = database.client().rows("SELECT workflow_uuid, function_name FROM dbos.operation_outputs");
    let steps = rows.into_iter().map(|mut row| {
        let (name, id) = (row.pop().flatten(), row.pop().flatten());
        (id.expect("an id"), name.expect("a name"))
    });
    steps.filter(|(id, _)| workflows.contains(id)).collect()
}

/// A run that has ended.
pub(crate) struct Ran(Output);

impl Ran {
    /// Its exit code, and what it said to its user.
    pub(crate) fn told(&self) -> (Option<i32>, String) {
        (self.0.status.code(), String::from_utf8_lossy(&self.0.stderr).into_owned())
    }

    /// Fails unless the run ended like this; gives what it said.
    pub(crate) fn ended(&self, code: i32) -> String {
        let (is, told) = self.told();
        assert_eq!(is, Some(code), "{told}");
        told
    }
}

/// A run that goes on.
pub(crate) struct Program(Kept);

impl Program {
    /// Its number in the ledger.
    pub(crate) fn process(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has not ended.
    pub(crate) fn runs(&mut self) -> bool {
        self.0.try_wait().expect("its state").is_none()
    }

    /// Kills it at once, with no chance to do anything more.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("a signal");
        let status = self.0.wait().expect("its end");
        assert_eq!(status.code(), None, "it had ended before it was killed: {status}");
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&self) {
        self.0.signal("INT");
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ran {
        let mut stderr = Vec::new();
        if let Some(mut pipe) = self.0.stderr.take() {
            std::io::Read::read_to_end(&mut pipe, &mut stderr).expect("its words");
        }
        Ran(Output { status: self.0.wait().expect("its end"), stdout: Vec::new(), stderr })
    }
}
