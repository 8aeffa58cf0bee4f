//! The table invariant → tests of docs/testing.md: every named test exists, and once the table is enforced every
//! invariant that the queue engine must hold has one.

use super::source;
use super::tree::Tree;
use super::workspace::Workspace;
use std::collections::BTreeSet;

/// The document of the tables.
pub(crate) const DOCUMENT: &str = "docs/testing.md";
const ENFORCED: &str = "<!-- invariants: enforced -->";
const OPEN: &str = "<!-- invariants: open -->";

/// The numbers of the queue invariants that tests must cover; the others concern partitions and debouncing.
const REQUIRED: &[(u32, u32)] =
    &[(1, 12), (15, 15), (17, 17), (19, 25), (28, 35), (36, 36), (37, 39), (42, 42), (44, 46), (48, 52)];

/// Where a case is a name in a table of the harness and not a function with a test attribute.
const CONFORMANCE: &str = "crates/mainstay-conformance/";

/// Reads the table and looks for its tests.
pub(crate) fn check(tree: &Tree, _: &Workspace) -> Vec<String> {
    let Some(text) = tree.get(DOCUMENT) else { return vec![format!("{DOCUMENT} is missing")] };
    let enforced = match (text.contains(ENFORCED), text.contains(OPEN)) {
        (true, false) => true,
        (false, true) => false,
        _ => return vec![format!("{DOCUMENT}: needs either `{ENFORCED}` or `{OPEN}`")],
    };
    let rows = match section(text, "invariants") {
        Ok(lines) => lines.into_iter().filter_map(row).collect::<Vec<_>>(),
        Err(fault) => return vec![fault],
    };
    let mut faults = Vec::new();
    for test in rows.iter().flat_map(|row| &row.tests).filter(|test| !exists(tree, test)) {
        faults.push(format!("{DOCUMENT}: there is no test `{test}`"));
    }
    let covered: BTreeSet<u32> = rows.iter().filter(|row| !row.tests.is_empty()).map(|row| row.number).collect();
    if enforced {
        let missing = REQUIRED.iter().flat_map(|(from, to)| *from..=*to).filter(|number| !covered.contains(number));
        faults.extend(missing.map(|number| format!("{DOCUMENT}: invariant {number} has no test")));
    }
    faults
}

/// The lines between `<!-- NAME -->` and `<!-- /NAME -->`.
pub(crate) fn section<'a>(text: &'a str, name: &str) -> Result<Vec<&'a str>, String> {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let inner = text.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
    let (inner, _) = inner.ok_or_else(|| format!("{DOCUMENT}: has no table between `{open}` and `{close}`"))?;
    Ok(inner.lines().collect())
}

struct Row<'a> {
    number: u32,
    tests: Vec<&'a str>,
}

/// A row is `| number | what | tests in code spans |`; head and rule have no number.
fn row(line: &str) -> Option<Row<'_>> {
    let mut cells = line.trim().trim_matches('|').split('|');
    let number = cells.next()?.trim().parse().ok()?;
    Some(Row { number, tests: code_spans(cells.next_back()?) })
}

/// The texts between backticks.
pub(crate) fn code_spans(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// A function with a test attribute, or a case of the conformance suite by its whole name.
pub(crate) fn exists(tree: &Tree, test: &str) -> bool {
    let last = test.rsplit("::").next().unwrap_or(test);
    tree.ending(".rs").any(|(path, text)| {
        if path.starts_with(CONFORMANCE) {
            source::code_lines(text).any(|(_, line)| source::has_word(line, last))
        } else {
            source::functions(text).iter().any(|function| function.is_test && function.name == last)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(marker: &str, rows: &str) -> String {
        format!("{marker}\n<!-- invariants -->\n| n | what | tests |\n|---|---|---|\n{rows}<!-- /invariants -->\n")
    }

    fn faults(document: &str) -> Vec<String> {
        let test = "#[test]\nfn rows_stay() {\n}\nfn not_a_test() {\n}\n";
        let case = "cases.add(\"claim_is_one_step\", claim);\n";
        let files = [(DOCUMENT, document), ("a.rs", test), ("crates/mainstay-conformance/src/claim.rs", case)];
        check(&Tree::of(&files), &Workspace::default())
    }

    fn full_table(without: u32) -> String {
        let numbers = REQUIRED.iter().flat_map(|(from, to)| *from..=*to).filter(|number| *number != without);
        numbers.map(|number| format!("| {number} | x | `rows_stay`, `claim_is_one_step` |\n")).collect()
    }

    #[test]
    fn an_open_table_may_be_empty_but_names_only_what_exists() {
        assert_eq!(faults(&document(OPEN, "")), Vec::<String>::new());
        assert_eq!(faults(&document(OPEN, "| 1 | x | `x::rows_stay` |\n")), Vec::<String>::new());
        let found = faults(&document(OPEN, "| 1 | x | `rows_go` `not_a_test` |\n"));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn an_enforced_table_covers_every_number() {
        assert_eq!(faults(&document(ENFORCED, &full_table(0))), Vec::<String>::new());
        assert_eq!(faults(&document(ENFORCED, &full_table(33))), [format!("{DOCUMENT}: invariant 33 has no test")]);
        let row_without_test = full_table(33) + "| 33 | x | |\n";
        assert_eq!(faults(&document(ENFORCED, &row_without_test)).len(), 1);
    }

    #[test]
    fn the_state_of_the_table_must_be_said() {
        assert!(faults(&document("", ""))[0].contains("either"));
        assert!(faults(&document(&format!("{OPEN}{ENFORCED}"), ""))[0].contains("either"));
        assert!(faults(OPEN)[0].contains("no table"));
        assert!(check(&Tree::default(), &Workspace::default())[0].contains("missing"));
    }
}
