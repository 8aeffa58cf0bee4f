//! The table of public bug reports in docs/testing.md names exactly the `case_oNN_*` tests of the tree.

use super::invariants::{DOCUMENT, code_spans, exists, section};
use super::source;
use super::tree::Tree;
use super::workspace::Workspace;
use std::collections::BTreeSet;

const ENFORCED: &str = "<!-- cases: enforced -->";
/// The names in the fixtures of this tool are no tests.
const EXEMPT: &str = "xtask/";

/// Compares table and tree, both ways; once enforced, every row needs a test.
pub(crate) fn check(tree: &Tree, _: &Workspace) -> Vec<String> {
    let Some(text) = tree.get(DOCUMENT) else { return vec![format!("{DOCUMENT} is missing")] };
    let lines = match section(text, "cases") {
        Ok(lines) => lines,
        Err(fault) => return vec![fault],
    };
    let mut faults = Vec::new();
    let mut listed = BTreeSet::new();
    for line in lines.into_iter().filter(|line| line.trim_start().starts_with("| O")) {
        let tests: Vec<&str> = code_spans(line).into_iter().filter(|span| span.starts_with("case_o")).collect();
        let id = line.trim_start_matches(['|', ' ']).split(' ').next().unwrap_or_default();
        let own = format!("case_{}_", id.to_lowercase());
        if tests.is_empty() && text.contains(ENFORCED) {
            faults.push(format!("{DOCUMENT}: case {id} has no test"));
        }
        if !line.contains("](https://") {
            faults.push(format!("{DOCUMENT}: case {id} has no link to its report"));
        }
        let foreign = tests.iter().filter(|test| !test.starts_with(&own));
        faults.extend(foreign.map(|test| format!("{DOCUMENT}: `{test}` stands in the row of {id}")));
        listed.extend(tests);
    }
    let absent = listed.iter().filter(|test| !exists(tree, test));
    faults.extend(absent.map(|test| format!("{DOCUMENT}: there is no test `{test}`")));
    let unlisted = in_tree(tree).into_iter().filter(|(test, _)| !listed.contains(test));
    faults.extend(unlisted.map(|(test, path)| format!("{path}: `{test}` is not listed in {DOCUMENT}")));
    faults
}

/// Every name of a case in code, with a file that holds it.
fn in_tree(tree: &Tree) -> BTreeSet<(&str, &str)> {
    let mut found = BTreeSet::new();
    for (path, text) in tree.ending(".rs").filter(|(path, _)| !path.starts_with(EXEMPT)) {
        for (_, line) in source::code_lines(text) {
            found.extend(line.split(|c| !source::is_word(c)).filter(|word| is_case(word)).map(|word| (word, path)));
        }
    }
    found
}

/// `case_o` and two digits, then the sentence.
fn is_case(word: &str) -> bool {
    let Some((number, sentence)) = word.strip_prefix("case_o").and_then(|rest| rest.split_once('_')) else {
        return false;
    };
    number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit()) && !sentence.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "#[test]\nfn case_o20_once() {\n}\n";
    const ROW: &str = "| O20 | [report](https://example.org/1) | `case_o20_once` |\n";

    fn faults(marker: &str, rows: &str, source: &str) -> Vec<String> {
        let document =
            format!("{marker}\n<!-- cases -->\n| id | report | tests |\n|---|---|---|\n{rows}<!-- /cases -->\n");
        check(&Tree::of(&[(DOCUMENT, &document), ("a.rs", source)]), &Workspace::default())
    }

    #[test]
    fn table_and_tree_that_agree_pass() {
        assert_eq!(faults(ENFORCED, ROW, TEST), Vec::<String>::new());
    }

    #[test]
    fn each_side_misses_what_the_other_lacks() {
        assert!(faults("", "", TEST)[0].contains("a.rs: `case_o20_once` is not listed"));
        assert!(faults("", ROW, "")[0].contains("there is no test `case_o20_once`"));
    }

    #[test]
    fn a_row_without_test_passes_only_until_the_table_is_enforced() {
        let row = "| O02 | [report](https://example.org/1) | |\n";
        assert_eq!(faults("", row, ""), Vec::<String>::new());
        assert!(faults(ENFORCED, row, "")[0].contains("case O02 has no test"));
    }

    #[test]
    fn a_row_needs_its_link_and_its_own_tests() {
        let row = "| O02 | report | `case_o20_once` |\n";
        let found = faults("", row, TEST);
        assert!(found.iter().any(|fault| fault.contains("no link")), "{found:?}");
        assert!(found.iter().any(|fault| fault.contains("row of O02")), "{found:?}");
    }
}
