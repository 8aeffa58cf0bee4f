//! How long a file and a function may be. What is longer stands in `xtask/ratchet.txt`, whose numbers only shrink.

use super::source::{self, Function};
use super::tree::Tree;
use super::workspace::Workspace;
use std::collections::BTreeMap;

/// Lines of a file; over it there is usually a second idea in the file.
const FILE_LIMIT: usize = 600;
/// Lines of a function from `fn` to its closing brace.
const FUNCTION_LIMIT: usize = 70;
/// The exceptions: `file PATH LINES` and `fn PATH NAME LINES`.
const RATCHET: &str = "xtask/ratchet.txt";

/// Compares what is over a limit with the ratchet file.
pub(crate) fn check(tree: &Tree, _: &Workspace) -> Vec<String> {
    let (allowed, mut faults) = read_ratchet(tree.get(RATCHET).unwrap_or_default());
    let found = over_limit(tree);
    for (what, lines) in &found {
        match allowed.get(what) {
            None => faults.push(format!("{what}: {lines} lines, over the limit of {}", limit(what))),
            Some(allowed) if lines > allowed => {
                faults.push(format!("{what}: grew to {lines} lines from the {allowed} in {RATCHET}"));
            }
            Some(allowed) if lines < allowed => {
                faults.push(format!("{what}: shrank to {lines} lines: lower its {allowed} in {RATCHET}"));
            }
            Some(_) => {}
        }
    }
    let stale = allowed.keys().filter(|what| !found.contains_key(*what));
    faults.extend(stale.map(|what| format!("{what}: is within the limit or gone: take it out of {RATCHET}")));
    faults
}

fn limit(what: &str) -> usize {
    if what.starts_with("file ") { FILE_LIMIT } else { FUNCTION_LIMIT }
}

fn over_limit(tree: &Tree) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for (path, text) in tree.ending(".rs") {
        let lines = text.lines().count();
        if lines > FILE_LIMIT {
            found.insert(format!("file {path}"), lines);
        }
        for function in source::functions(text).iter().filter(|function| function.lines > FUNCTION_LIMIT) {
            found.insert(key(&found, path, function), function.lines);
        }
    }
    found
}

/// A second long function of one name in one file is `name#2`.
fn key(found: &BTreeMap<String, usize>, path: &str, function: &Function<'_>) -> String {
    let first = format!("fn {path} {}", function.name);
    let later = (2..).map(|nth| format!("{first}#{nth}"));
    std::iter::once(first.clone()).chain(later).find(|key| !found.contains_key(key)).unwrap_or(first)
}

fn read_ratchet(text: &str) -> (BTreeMap<String, usize>, Vec<String>) {
    let (mut allowed, mut faults) = (BTreeMap::new(), Vec::new());
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let entry = line.rsplit_once(' ').and_then(|(what, lines)| Some((what.to_owned(), lines.parse().ok()?)));
        match entry {
            Some((what, lines)) if what.starts_with("file ") || what.starts_with("fn ") => {
                allowed.insert(what, lines);
            }
            _ => faults.push(format!("{RATCHET}: `{line}` is neither `file PATH LINES` nor `fn PATH NAME LINES`")),
        }
    }
    (allowed, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_function(name: &str, lines: usize) -> String {
        format!("fn {name}() {{\n{}}}\n", "    x();\n".repeat(lines - 2))
    }

    fn faults(source: &str, ratchet: &str) -> Vec<String> {
        check(&Tree::of(&[("a.rs", source), (RATCHET, ratchet)]), &Workspace::default())
    }

    #[test]
    fn sizes_at_the_limit_pass_and_one_line_more_fails() {
        assert_eq!(faults(&long_function("f", 70), ""), Vec::<String>::new());
        assert!(faults(&long_function("f", 71), "")[0].contains("fn a.rs f: 71 lines"));
        assert_eq!(faults(&"//\n".repeat(600), ""), Vec::<String>::new());
        assert!(faults(&"//\n".repeat(601), "")[0].contains("file a.rs: 601 lines"));
    }

    #[test]
    fn a_listed_exception_may_only_shrink_and_then_its_number_too() {
        let long = long_function("f", 80);
        assert_eq!(faults(&long, "# why\nfn a.rs f 80\n"), Vec::<String>::new());
        assert!(faults(&long, "fn a.rs f 79\n")[0].contains("grew to 80"));
        assert!(faults(&long, "fn a.rs f 81\n")[0].contains("lower its 81"));
        assert!(faults(&long_function("f", 70), "fn a.rs f 80\n")[0].contains("take it out"));
    }

    #[test]
    fn two_long_functions_of_one_name_are_two_entries() {
        let both = long_function("f", 80) + &long_function("f", 90);
        assert_eq!(faults(&both, "fn a.rs f 80\nfn a.rs f#2 90\n"), Vec::<String>::new());
        assert_eq!(faults(&both, "fn a.rs f 80\n").len(), 1);
    }

    #[test]
    fn a_line_that_is_no_entry_is_a_fault() {
        assert!(faults("", "fn a.rs f many\n")[0].contains("neither"));
        assert!(faults("", "dir a 3\n")[0].contains("neither"));
    }
}
