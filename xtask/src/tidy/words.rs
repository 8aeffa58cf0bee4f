//! Words that must not stand anywhere in the tree: machine paths, registry hosts, stubs, switched-off tests. They are
//! put together here from pieces, so that this file passes its own check.

use super::tree::Tree;
use super::workspace::Workspace;

/// Cargo writes this file, sources included.
const EXEMPT: &str = "Cargo.lock";

/// Looks through every line of every text file.
pub(crate) fn check(tree: &Tree, _: &Workspace) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in tree.all().filter(|(path, _)| *path != EXEMPT) {
        for (index, line) in text.lines().enumerate() {
            faults.extend(what(path, line).map(|what| format!("{path}:{}: {what}", index + 1)));
        }
    }
    faults
}

fn what(path: &str, line: &str) -> Option<String> {
    let in_rust = path.ends_with(".rs");
    if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| names_folder(line, folder)) {
        return Some(format!("names the machine's folder /{folder}/"));
    }
    if let Some((host, _)) = HOSTS.iter().find(|(a, b)| line.contains(&format!("{a}.{b}"))) {
        return Some(format!("names a registry host of {host}"));
    }
    if let Some(name) = STUBS.iter().find(|name| line.contains(&format!("{name}!("))) {
        return Some(format!("calls the macro {name}"));
    }
    (in_rust && is_switched_off(line)).then(|| "switches a test off".to_owned())
}

const MACHINE_FOLDERS: &[&str] = &["work", "home", "root"];
const HOSTS: &[(&str, &str)] =
    &[("static", "crates"), ("index", "crates"), ("registry", "npmjs"), ("files", "pythonhosted"), ("pypi", "org")];
const STUBS: &[&str] = &["todo", "unimplemented", "dbg"];

/// An absolute path, not the middle of a relative one or of an address.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(&format!("/{folder}/")).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | '/'))
    })
}

fn is_switched_off(line: &str) -> bool {
    let line = line.trim_start();
    let word = "ignore";
    let attribute = line.starts_with(&format!("#[{word}")) || line.contains(&format!(", {word})]"));
    let fence = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim);
    attribute || fence.is_some_and(|fence| fence.starts_with("```") && fence.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, line: &str) -> Vec<String> {
        check(&Tree::of(&[(path, line)]), &Workspace::default())
    }

    #[test]
    fn each_banned_word_is_found_with_its_line() {
        for line in [
            concat!("x\nsee /", "work/main"),
            concat!("x\n\"/", "home/me/x\""),
            concat!("x\n/", "root/.cargo"),
            concat!("x\nhttps://static", ".crates.io"),
            concat!("x\nfiles", ".pythonhosted.org"),
            concat!("x\n    to", "do!()"),
            concat!("x\n    db", "g!(x)"),
            concat!("x\nunimple", "mented!(\"x\")"),
            concat!("x\n    #[", "ignore]"),
            concat!("x\n    #[", "ignore = \"slow\"]"),
            concat!("x\n    #[cfg_attr(windows, ", "ignore)]"),
            concat!("x\n/// ```rust,", "ignore"),
        ] {
            let found = faults("a.rs", line);
            assert_eq!(found.len(), 1, "{line}");
            assert!(found[0].starts_with("a.rs:2: "), "{found:?}");
        }
    }

    #[test]
    fn words_that_only_look_like_them_pass() {
        for line in [
            "let ignored = true; // we ignore it",
            concat!("docs/", "work/x and ../", "home/x"),
            concat!("https://example.org/", "home/x"),
            "todo list; static crates",
            "/// ```text",
        ] {
            assert_eq!(faults("a.rs", line), Vec::<String>::new(), "{line}");
        }
        assert_eq!(faults("Cargo.lock", concat!("https://static", ".crates.io")), Vec::<String>::new());
    }
}
