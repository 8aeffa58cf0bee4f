//! Programs that must not run as root, signals, and the watchdog that ends what its owner leaves behind.

use crate::error::{During, Error};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Nobody, on every system where a server refuses root.
const NOBODY: u32 = 65_534;

/// How much must be free on a tmpfs before data goes there, in KiB: a container may give it 64 MiB.
const ROOM: u64 = 2 * 1024 * 1024;

/// Whom servers run as: nobody when we are root, else us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    drop_to: Option<u32>,
    own: u32,
}

impl User {
    pub(crate) fn current() -> Self {
        static OWN: OnceLock<u32> = OnceLock::new();
        let own = *OWN.get_or_init(|| {
            let id = Command::new("id").arg("-u").output().ok();
            let text = id.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
            text.and_then(|text| text.parse().ok()).unwrap_or(NOBODY)
        });
        Self { drop_to: (own == 0).then_some(NOBODY), own }
    }

    /// The user of this process.
    pub(crate) fn own(self) -> u32 {
        self.own
    }

    /// The user of this process, whom nothing need be given.
    pub(crate) fn kept(self) -> Self {
        Self { drop_to: None, own: self.own }
    }

    pub(crate) fn is_dropped(self) -> bool {
        self.drop_to.is_some()
    }

    /// A program with this user's rights, none of the caller's `PG*` settings, and signals of its own. Dropping the user
    /// id also clears the supplementary groups.
    pub(crate) fn command(self, program: impl AsRef<std::ffi::OsStr>, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder).process_group(0).stdin(Stdio::null());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C");
        if let Some(id) = self.drop_to {
            command.uid(id).gid(id);
        }
        command
    }

    /// Makes a file or folder this user's.
    pub(crate) fn give(self, path: &Path) -> io::Result<()> {
        self.drop_to.map_or(Ok(()), |id| std::os::unix::fs::chown(path, Some(id), Some(id)))
    }
}

/// A folder that no other process uses: on a tmpfs where there is room, unless what is in it must be durable.
pub(crate) fn fresh_folder(user: User, durable: bool) -> Result<PathBuf, Error> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let memory = Path::new("/dev/shm");
    let base = if !durable && has_room(memory) { memory.to_owned() } else { std::env::temp_dir() };
    let folder = loop {
        let name = format!("mainstay-pg-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = base.join(name);
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => break made.map(|()| folder).during(&format!("a folder in {}", base.display()))?,
        }
    };
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).during("the folder's mode")?;
    user.give(&folder).during("the folder's owner")?;
    Ok(folder)
}

fn has_room(folder: &Path) -> bool {
    let Ok(output) = Command::new("df").arg("-Pk").arg(folder).output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let free = text.lines().nth(1).and_then(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok());
    free.is_some_and(|free| free >= ROOM) && is_writable(folder)
}

fn is_writable(folder: &Path) -> bool {
    let probe = folder.join(format!("mainstay-probe-{}", std::process::id()));
    let made = std::fs::create_dir(&probe).is_ok();
    made && std::fs::remove_dir(&probe).is_ok()
}

/// A folder that we keep between runs and nobody else can have put there.
pub(crate) fn cache_folder() -> Result<PathBuf, Error> {
    let own = User::current().own();
    let folder = std::env::temp_dir().join(format!("mainstay-pgkit-{own}"));
    match std::fs::create_dir(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error).during("the cache"),
        _ => {}
    }
    let meta = std::fs::symlink_metadata(&folder).during("the cache")?;
    if !meta.is_dir() || meta.uid() != own || meta.mode() & 0o022 != 0 {
        return Err(Error::new(format!("{} is not ours alone: remove it", folder.display())));
    }
    Ok(folder)
}

/// Sends a signal by name (`QUIT`, `KILL`) to a process that is ours.
pub(crate) fn signal(pid: u32, name: &str) {
    // The shell's own kill: a small system has no program of that name. A process that is gone is no error.
    let _ = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).stderr(Stdio::null()).status();
}

/// Waits for a child's end; `None` when it takes longer.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(Duration::from_millis(5)),
            _ => return None,
        }
    }
}

/// A shell that reads a pipe of which we hold the other end. At its end, ours or by our death, it ends the process
/// named in a pid file, if that still works in the folder given, and removes everything.
#[derive(Debug)]
pub(crate) struct Watchdog {
    child: Child,
    line: Option<ChildStdin>,
}

const WATCH: &str = r#"
trap '' INT TERM HUP QUIT
while read -r _; do :; done
pid=$(head -n 1 "$2" 2>/dev/null)
lives() { [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$3" ]; }
if lives "$@"; then
    kill -s "$4" "$pid"
    n=0
    while lives "$@" && [ $n -lt 50 ]; do sleep 0.1; n=$((n + 1)); done
    if lives "$@"; then kill -s KILL "$pid"; fi
fi
rm -rf "$1"
"#;

impl Watchdog {
    /// Watches over the process of `pid_file`, which works in `works_in`; `folder` is removed with it.
    pub(crate) fn start(user: User, folder: &Path, pid_file: &Path, works_in: &Path, end: &str) -> Result<Self, Error> {
        let mut command = user.command("sh", Path::new("/"));
        command.args(["-c", WATCH, "mainstay-watchdog"]).arg(folder).arg(pid_file).arg(works_in).arg(end);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().during("the watchdog")?;
        let line = child.stdin.take();
        Ok(Self { child, line })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.line = None;
        let _ = self.child.wait();
    }
}
