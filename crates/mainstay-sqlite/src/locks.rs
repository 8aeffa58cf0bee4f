//! Lock files of executors: one that can be locked proves that the process which held it is gone.
//!
//! The operating system lets go of a lock with its process, however that ends. A lock that is held proves nothing (the
//! process may hang), nor does a file that is missing.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mainstay_env::Env;
use mainstay_store::ExecutorId;

/// How many fresh names are tried when one is taken, or its file is swept away between its creation and its lock.
const TRIES: usize = 8;

/// The locks of one handle of a store; closing it, or its process's end, lets go of all of them.
#[derive(Debug)]
pub(crate) struct Locks {
    folder: PathBuf,
    env: Env,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    held: BTreeMap<ExecutorId, Held>,
}

#[derive(Debug)]
struct Held {
    name: String,
    /// Holds the lock as long as it is open.
    _file: File,
}

impl Locks {
    /// The locks beside a database file.
    pub(crate) fn beside(database: &Path, env: &Env) -> Self {
        // Every process must find the same folder, whatever links lead to the file.
        let real = database.canonicalize().or_else(|_| {
            let name = database.file_name().ok_or(io::ErrorKind::InvalidInput)?;
            let parent = database.parent().filter(|parent| !parent.as_os_str().is_empty());
            Ok::<_, io::Error>(parent.unwrap_or(Path::new(".")).canonicalize()?.join(name))
        });
        let mut folder = real.unwrap_or_else(|_| database.to_owned()).into_os_string();
        folder.push("-exec");
        Self { folder: folder.into(), env: env.clone(), state: Mutex::default() }
    }

    /// Holds an executor's lock and names its file: the one that its lease names, unless that is gone. `None` when another
    /// handle holds it, or where the file system has no locks; the executor is then watched by its beats alone.
    pub(crate) fn hold(&self, executor: &ExecutorId, named: Option<&str>) -> Option<String> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        if let Some(held) = state.held.get(executor)
            && named.is_none_or(|named| named == held.name)
        {
            return Some(held.name.clone());
        }
        let taken = match named.map(|named| self.take(named)) {
            Some(Ok(Some(held))) => Ok(Some(held)),
            Some(Ok(None)) => return None,
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Some(Err(_)) | None => self.make(),
        };
        match taken {
            Ok(held) => held.map(|held| {
                let name = held.name.clone();
                state.held.insert(executor.clone(), held);
                name
            }),
            Err(error) => {
                tracing::warn!(%error, folder = %self.folder.display(), "no lock for an executor");
                None
            }
        }
    }

    /// Lets go of an executor's lock and removes the file.
    pub(crate) fn release(&self, executor: &ExecutorId) {
        let held = self.state().held.remove(executor);
        if let Some(held) = held {
            self.remove(&held.name);
        }
    }

    /// Removes a lock file whose executor is gone.
    pub(crate) fn remove(&self, name: &str) {
        if let Some(path) = self.path(name)
            && let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(%error, path = %path.display(), "a lock file stays");
        }
    }

    /// Whether the process that held this lock is proved dead.
    pub(crate) fn proves_death(&self, name: &str) -> bool {
        matches!(self.take(name), Ok(Some(_)))
    }

    /// Removes files that no lease names and nobody holds: those of processes that died before their first beat.
    pub(crate) fn sweep<E>(&self, mut is_named: impl FnMut(&str) -> Result<bool, E>) -> Result<(), E> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Ok(()) };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Ok(Some(held)) = self.take(name)
                && !is_named(name)?
            {
                self.remove(&held.name);
            }
        }
        Ok(())
    }

    /// Lets go of every lock at once. The files stay: a free lock is the proof.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.held.clear();
    }

    /// Locks a file that is there; `None` when it is held.
    fn take(&self, name: &str) -> io::Result<Option<Held>> {
        let path = self.path(name).ok_or(io::ErrorKind::InvalidInput)?;
        lock(OpenOptions::new().read(true).write(true).open(path)?, name)
    }

    /// Makes a file under a new name, and locks it.
    fn make(&self) -> io::Result<Option<Held>> {
        fs::create_dir_all(&self.folder)?;
        for _ in 0..TRIES {
            let name = format!("{}.lock", self.env.nonce());
            let path = self.folder.join(&name);
            let file = match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            // Whoever sweeps may have come before the lock.
            if let Some(held) = lock(file, &name)?
                && path.exists()
            {
                return Ok(Some(held));
            }
        }
        Ok(None)
    }

    /// Where a file is; a name comes from the database and must not lead out of the folder.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let stem = name.strip_suffix(".lock")?;
        let plain = !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_alphanumeric());
        plain.then(|| self.folder.join(name))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock(file: File, name: &str) -> io::Result<Option<Held>> {
    match file.try_lock() {
        Ok(()) => Ok(Some(Held { name: name.to_owned(), _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
