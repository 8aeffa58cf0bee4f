//! Numbered things: a cited difference stands in docs/compat.md, and every decision record is listed in its folder.

use super::source;
use super::tree::Tree;
use super::workspace::Workspace;

const COMPAT: &str = "docs/compat.md";
const RECORDS: &str = "docs/decisions/";
const LIST: &str = "docs/decisions/README.md";
/// The numbers in the fixtures of this tool cite nothing.
const EXEMPT: &str = "xtask/";

/// Looks for citations such as `compat C-001` and for records that the list lacks.
pub(crate) fn check(tree: &Tree, _: &Workspace) -> Vec<String> {
    let compat = tree.get(COMPAT).unwrap_or_default();
    let mut faults = Vec::new();
    for (path, text) in tree.all().filter(|(path, _)| !path.starts_with(EXEMPT)) {
        for (index, line) in text.lines().enumerate() {
            let unknown = cited(line).filter(|number| !compat.contains(&format!("\n## {number} ")));
            faults.extend(unknown.map(|number| format!("{path}:{}: {number} is not in {COMPAT}", index + 1)));
        }
    }
    let list = tree.get(LIST).unwrap_or_default();
    for (path, _) in tree.ending(".md").filter(|(path, _)| *path != LIST) {
        let record = path.strip_prefix(RECORDS).filter(|name| !name.contains('/'));
        let unlisted = record.filter(|name| !list.contains(&format!("]({name})")));
        faults.extend(unlisted.map(|_| format!("{path}: is not listed in {LIST}")));
    }
    faults
}

/// The texts `C-` and three digits, with no other word around.
fn cited(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !source::is_word(c) && c != '-');
    words.filter(|word| {
        let number = word.strip_prefix("C-").unwrap_or_default();
        number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files), &Workspace::default())
    }

    #[test]
    fn a_cited_difference_must_have_its_heading() {
        let compat = (COMPAT, "# Differences\n\n## C-001 One\n");
        assert_eq!(faults(&[compat, ("a.rs", "/// (compat C-001). MC-002 C-12 C-1234")]), Vec::<String>::new());
        assert_eq!(faults(&[compat, ("a.rs", "\n/// compat C-002.")]), ["a.rs:2: C-002 is not in docs/compat.md"]);
    }

    #[test]
    fn a_decision_record_must_be_listed() {
        let list = (LIST, "- [0001](0001-a.md): a\n");
        let files = [list, ("docs/decisions/0001-a.md", ""), ("docs/decisions/sql/NOTES.md", "")];
        assert_eq!(faults(&files), Vec::<String>::new());
        let unlisted = faults(&[list, ("docs/decisions/0002-b.md", "")]);
        assert_eq!(unlisted, ["docs/decisions/0002-b.md: is not listed in docs/decisions/README.md"]);
    }
}
