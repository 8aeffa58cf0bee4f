//! Only mainstay-env names the clock, a random source, a thread or a spawn function. Clippy holds this where it
//! compiles; this check also sees code that is compiled on other systems or with other features.

use super::source;
use super::tree::Tree;
use super::workspace::Workspace;

/// mainstay-env is the one owner; xtask, the kit of test servers and what talks to programs of other SDKs are tools beside the
/// product that use std and tokio.
const EXEMPT: &[&str] = &["crates/mainstay-env/", "tests/interop/", "tests/pgkit/", "xtask/"];

const NAMES: &[&str] = &[
    "SystemTime::now",
    "Instant::now",
    "thread::spawn",
    "thread::sleep",
    "thread::Builder",
    "tokio::spawn",
    "tokio::time",
    "tokio::task::spawn",
    "spawn_blocking",
    "Uuid::new_v4",
    "Uuid::now_v7",
    "fastrand::",
    "rand::",
];

/// Looks through the code of every Rust file outside the exempt folders.
pub(crate) fn check(tree: &Tree, _: &Workspace) -> Vec<String> {
    let mut faults = Vec::new();
    let bound = tree.ending(".rs").filter(|(path, _)| EXEMPT.iter().all(|exempt| !path.starts_with(exempt)));
    for (path, text) in bound {
        for (number, line) in source::code_lines(text) {
            let named = NAMES.iter().find(|name| names(line, name));
            faults.extend(named.map(|name| format!("{path}:{number}: names {name}, which only mainstay-env may")));
        }
    }
    faults
}

/// The name must not be the end of a longer word: `strand::` is not `rand::`.
fn names(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| !line[..at].chars().next_back().is_some_and(source::is_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, line: &str) -> Vec<String> {
        check(&Tree::of(&[(path, line)]), &Workspace::default())
    }

    #[test]
    fn a_clock_outside_env_is_found() {
        for line in ["let t = Instant::now();", "std::thread::spawn(f)", "use rand::Rng;", "tokio::time::sleep(d)"] {
            assert_eq!(faults("crates/mainstay-queue/src/a.rs", line).len(), 1, "{line}");
            assert_eq!(faults("crates/mainstay-env/src/a.rs", line).len(), 0, "{line}");
        }
    }

    #[test]
    fn comments_and_longer_words_pass() {
        for line in ["/// never `Instant::now`", "strand::x()", "let x = env.clock().now();"] {
            assert_eq!(faults("crates/mainstay-queue/src/a.rs", line), Vec::<String>::new(), "{line}");
        }
    }
}
