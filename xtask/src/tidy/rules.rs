//! The table rule → tests of docs/rules.md: every rule of the runtime is held by tests, left for a capability that is not
//! built yet, or overruled by the architecture, and then by a test of what holds instead.

use super::invariants::code_spans;
use super::source;
use super::tree::Tree;
use super::workspace::Workspace;

const DOCUMENT: &str = "docs/rules.md";
const ARCHITECTURE: &str = "docs/architecture.md";

/// The groups, in order; the rows of group n are numbered from n01 without a gap.
const GROUPS: &[&str] = &[
    "Lifecycle and identity",
    "Registration and stored forms",
    "Running and starting",
    "Context",
    "Steps",
    "Retries and timeouts",
    "Deadlines",
    "Children",
    "Waits and races",
    "Events, messages, sleep",
    "Recovery and queues",
    "Management",
    "Client",
    "Pinned nowhere before",
];

/// What a rule may wait for; it begins with one of these.
const LATER: &[&str] = &[
    "client",
    "debounce",
    "events",
    "fork",
    "joins",
    "management",
    "messages",
    "partitions",
    "postgres",
    "preemption",
    "schedules",
    "selects",
    "streams",
];

/// A row: `| E-101 | rule | state | tests in code spans |`.
struct Row<'a> {
    id: &'a str,
    rule: &'a str,
    state: &'a str,
    tests: Vec<&'a str>,
}

/// Reads the groups and judges each row.
pub(crate) fn check(tree: &Tree, _: &Workspace) -> Vec<String> {
    let Some(text) = tree.get(DOCUMENT) else { return vec![format!("{DOCUMENT} is missing")] };
    let mut faults = Vec::new();
    let mut group = 0;
    let mut rows = vec![0_usize; GROUPS.len() + 1];
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            group += 1;
            let expected = GROUPS.get(group - 1).map(|title| format!("{group}. {title}"));
            if expected.as_deref() != Some(heading) {
                let expected = expected.unwrap_or_else(|| "no group".to_owned());
                return vec![format!("{DOCUMENT}: the group {heading:?} stands where {expected:?} belongs")];
            }
        } else if let Some(row) = parsed(line) {
            rows[group] += 1;
            faults.extend(judged(tree, &row, group, rows[group]).into_iter().map(|what| format!("{DOCUMENT}: {what}")));
        }
    }
    for (index, title) in GROUPS.iter().enumerate().filter(|(index, _)| rows[index + 1] == 0) {
        faults.push(format!("{DOCUMENT}: the group {}, {title}, has no rule", index + 1));
    }
    faults
}

/// A line of a table; its head and its rule are none.
fn parsed(line: &str) -> Option<Row<'_>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
    let (id, rest) = cells.split_first()?;
    if *id == "id" || id.starts_with("--") {
        return None;
    }
    // A row with too few or too many cells is still a row, and judged by what it lacks.
    match rest {
        [rule, state, tests] => Some(Row { id, rule, state, tests: code_spans(tests) }),
        _ => Some(Row { id, rule: "", state: "", tests: Vec::new() }),
    }
}

/// What is wrong with the `place`th row of a group.
fn judged(tree: &Tree, row: &Row<'_>, group: usize, place: usize) -> Vec<String> {
    let Row { id, rule, state, tests } = row;
    let mut faults = Vec::new();
    let number = format!("E-{group}{place:02}");
    if *id != number {
        faults.push(format!("row {id} stands where {number} belongs"));
    }
    if rule.is_empty() {
        faults.push(format!("row {id} is not `id, rule, state, tests`"));
        return faults;
    }
    faults.extend(missing(tree, row).map(|what| format!("row {id} {what}")));
    let absent = tests.iter().filter(|test| !is_there(tree, test));
    faults.extend(absent.map(|test| format!("row {id}: there is no test `{test}`")));
    if tests.is_empty() && (*state == "held" || state.starts_with("overruled")) {
        faults.push(format!("row {id} is {state:?} and names no test"));
    }
    faults
}

/// What a row's state lacks.
fn missing(tree: &Tree, row: &Row<'_>) -> Option<String> {
    if row.state == "held" {
        return None;
    }
    if let Some(what) = row.state.strip_prefix("later: ") {
        let word = what.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
        if !LATER.contains(&word) {
            return Some(format!("waits for {word:?}, which is none of {}", LATER.join(", ")));
        }
        return (!row.tests.is_empty()).then(|| "is left for later and names a test".to_owned());
    }
    match row.state.strip_prefix("overruled: ") {
        Some(why) if says_where(tree, why) => None,
        Some(_) => Some("is overruled without a link to a section, a record or a difference that says so".to_owned()),
        None => Some(format!("has the state {:?}: it is held, later or overruled", row.state)),
    }
}

/// Whether a text links to a heading of the architecture that is there, to a decision record, or to a numbered difference.
/// That the files are there is the check of links, and that the number is, the one of numbered things.
fn says_where(tree: &Tree, why: &str) -> bool {
    let heading = why.split_once("](architecture.md#").and_then(|(_, rest)| rest.split_once(')'));
    match heading {
        Some((anchor, _)) => {
            let lines = tree.get(ARCHITECTURE).unwrap_or_default().lines();
            let mut headings = lines.filter_map(|line| line.strip_prefix("## "));
            headings.any(|heading| heading.to_lowercase().replace(' ', "-") == anchor)
        }
        None => why.contains("](decisions/") || (why.contains("[compat C-") && why.contains("](compat.md)")),
    }
}

/// Whether there is a function with a test attribute of this name, in a file of the named module where one is named.
fn is_there(tree: &Tree, test: &str) -> bool {
    let mut parts = test.rsplit("::");
    let name = parts.next().unwrap_or(test);
    let module = parts.next();
    tree.ending(".rs")
        .filter(|(path, _)| module.is_none_or(|module| is_module(path, module)))
        .any(|(_, text)| source::functions(text).iter().any(|function| function.is_test && function.name == name))
}

/// `…/module.rs`, or a file in a folder `…/module/…`.
fn is_module(path: &str, module: &str) -> bool {
    path.split('/').any(|part| part.strip_suffix(".rs").unwrap_or(part) == module)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "#[test]\nfn a_panic_ends_it() {\n}\nfn no_test() {\n}\n";

    /// A document whose first group has these rows, and every other one a row that is right.
    fn faults(rows: &str) -> Vec<String> {
        let mut document = String::from("# Rules\n");
        for (index, title) in GROUPS.iter().enumerate() {
            let number = index + 1;
            document += &format!("\n## {number}. {title}\n\n| id | rule | state | tests |\n|---|---|---|---|\n");
            if index == 0 {
                document += rows;
            } else {
                document += &format!("| E-{number}01 | x | later: events | |\n");
            }
        }
        let architecture = (ARCHITECTURE, "# Architecture\n\n## The end of it\n");
        let files = [(DOCUMENT, document.as_str()), architecture, ("a/tests/runs/ends.rs", TESTS)];
        check(&Tree::of(&files), &Workspace::default())
    }

    fn only(rows: &str, fault: &str) {
        let found = faults(rows);
        assert!(found.len() == 1 && found[0].contains(fault), "{rows}: {found:?}");
    }

    #[test]
    fn rows_that_are_held_left_or_overruled_pass() {
        let rows = "| E-101 | x | held | `ends::a_panic_ends_it`, `a_panic_ends_it` |\n\
                    | E-102 | x | later: events of a workflow | |\n\
                    | E-103 | x | overruled: no ([a](architecture.md#the-end-of-it)) | `runs::a_panic_ends_it` |\n\
                    | E-104 | x | overruled: no ([compat C-004](compat.md)) | `a_panic_ends_it` |\n\
                    | E-105 | x | overruled: no ([8](decisions/0008-x.md)) | `a_panic_ends_it` |\n";
        assert_eq!(faults(rows), Vec::<String>::new());
    }

    #[test]
    fn a_row_has_one_of_three_states() {
        only("| E-101 | x | open | |\n", "it is held, later or overruled");
        only("| E-101 | x | | `a_panic_ends_it` |\n", "it is held, later or overruled");
    }

    #[test]
    fn a_held_or_overruled_row_names_tests_that_are_there() {
        only("| E-101 | x | held | |\n", "names no test");
        only("| E-101 | x | overruled: y ([8](decisions/0008-x.md)) | |\n", "names no test");
        only("| E-101 | x | held | `it_never_ends` |\n", "there is no test `it_never_ends`");
        only("| E-101 | x | held | `starts::a_panic_ends_it` |\n", "there is no test");
        only("| E-101 | x | held | `no_test` |\n", "there is no test");
    }

    #[test]
    fn what_is_overruled_names_the_place_and_what_is_later_the_capability() {
        only("| E-101 | x | overruled: it is so | `a_panic_ends_it` |\n", "without a link");
        only("| E-101 | x | overruled: ([a](architecture.md#the-middle)) | `a_panic_ends_it` |\n", "without a link");
        only("| E-101 | x | later: someday | |\n", "none of client");
        only("| E-101 | x | later: events | `a_panic_ends_it` |\n", "names a test");
    }

    #[test]
    fn numbers_have_no_gap_and_no_twin() {
        only("| E-102 | x | later: events | |\n", "E-102 stands where E-101 belongs");
        only("| E-101 | x | later: events | |\n| E-101 | y | later: events | |\n", "E-101 stands where E-102 belongs");
        only("| E-101 | x | held, `a_panic_ends_it` |\n", "is not `id, rule, state, tests`");
    }

    #[test]
    fn every_group_is_there_and_has_a_rule() {
        only("", "the group 1, Lifecycle and identity, has no rule");
        assert!(check(&Tree::of(&[(DOCUMENT, "## 2. Context\n")]), &Workspace::default())[0].contains("belongs"));
        assert!(check(&Tree::default(), &Workspace::default())[0].contains("missing"));
        assert_eq!(check(&Tree::of(&[(DOCUMENT, "")]), &Workspace::default()).len(), GROUPS.len());
    }
}
