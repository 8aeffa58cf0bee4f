//! Running other programs: with their output shown, captured, or both.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The root of the workspace: the folder above this crate when cargo runs us, else found from the current folder.
pub(crate) fn root() -> Result<PathBuf, String> {
    if let Some(dir) = std::env::var_os("CARGO_MANIFEST_DIR")
        && let Some(root) = Path::new(&dir).parent()
    {
        return Ok(root.to_owned());
    }
    let here = std::env::current_dir().map_err(|error| format!("the current folder cannot be read: {error}"))?;
    let is_root = |dir: &&Path| dir.join("xtask/Cargo.toml").is_file() && dir.join("Cargo.toml").is_file();
    here.ancestors().find(is_root).map(Path::to_owned).ok_or_else(|| "not inside the workspace".into())
}

/// The files that git knows or would add, relative to `root`, sorted.
pub(crate) fn files(root: &Path) -> Result<Vec<String>, String> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let text = output(Command::new("git").current_dir(root).args(list))?;
    let mut files: Vec<String> = text.split('\0').map(str::to_owned).collect();
    files.retain(|path| !path.is_empty() && root.join(path).is_file());
    files.sort();
    files.dedup();
    Ok(files)
}

/// A cargo command that runs in `dir`.
pub(crate) fn cargo(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(dir).args(args);
    command
}

/// Runs with the output shown. Errors: the program cannot be started, or ends with a failure.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{}: {error}", line(command)))?;
    succeeded(command, status)
}

/// Runs silently and returns what was printed on stdout. Errors: as `run`, with the program's stderr.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", line(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} ended with {}\n{}", line(command), output.status, stderr.trim_end()));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{}: {error}", line(command)))
}

/// Runs with the output shown as it comes and returns it too, stdout first. A failing status is not an error here.
pub(crate) fn tee(command: &mut Command) -> Result<(ExitStatus, String), String> {
    let failed = |command: &Command, error: std::io::Error| format!("{}: {error}", line(command));
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| failed(command, error))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (out, err) = std::thread::scope(|scope| {
        let out = scope.spawn(|| stdout.map_or_else(String::new, |pipe| echo(pipe, std::io::stdout())));
        let err = scope.spawn(|| stderr.map_or_else(String::new, |pipe| echo(pipe, std::io::stderr())));
        (out.join(), err.join())
    });
    let status = child.wait().map_err(|error| failed(command, error))?;
    match (out, err) {
        (Ok(out), Ok(err)) => Ok((status, out + &err)),
        _ => Err(format!("{}: its output could not be read", line(command))),
    }
}

/// The status as a result that names the command.
pub(crate) fn succeeded(command: &Command, status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", line(command))) }
}

fn echo(pipe: impl Read, mut to: impl Write) -> String {
    let mut kept = String::new();
    let mut reader = BufReader::new(pipe);
    let mut bytes = Vec::new();
    while matches!(reader.read_until(b'\n', &mut bytes), Ok(1..)) {
        // A closed terminal must not stop the reading, or the child would block on a full pipe.
        let _ = to.write_all(&bytes).and_then(|()| to.flush());
        kept.push_str(&String::from_utf8_lossy(&bytes));
        bytes.clear();
    }
    kept
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    format!("`{}`", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_an_error_that_names_it() {
        let error = run(Command::new("false").arg("x")).expect_err("false fails");
        assert!(error.contains("`false x`"), "{error}");
        let error = run(&mut Command::new("no-such-program-here")).expect_err("not there");
        assert!(error.contains("no-such-program-here"), "{error}");
    }

    #[test]
    fn teed_output_keeps_both_streams_and_the_status() {
        let (status, text) = tee(Command::new("sh").args(["-c", "echo one; echo two >&2; exit 3"])).expect("sh runs");
        assert_eq!(status.code(), Some(3));
        assert_eq!(text, "one\ntwo\n");
    }
}
