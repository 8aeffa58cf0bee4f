//! A crate's own `clippy.toml` replaces the root's, so it must repeat every ban of the root, and every ban says what
//! to use instead.

use super::tree::Tree;
use super::workspace::Workspace;
use std::collections::BTreeSet;

const ROOT: &str = "clippy.toml";

/// The crates whose code must not depend on hash order, and what they must ban beyond the root.
const ORDERED: &[&str] = &["crates/mainstay-store/clippy.toml", "crates/mainstay-queue/clippy.toml"];
const ORDERED_BANS: &[&str] = &["std::collections::HashMap", "std::collections::HashSet", "tokio::select"];

/// Compares every `clippy.toml` with the root's.
pub(crate) fn check(tree: &Tree, _: &Workspace) -> Vec<String> {
    let Some(root) = tree.get(ROOT) else { return vec![format!("{ROOT} is missing")] };
    let wanted = bans(root);
    let mut faults = Vec::new();
    if wanted.is_empty() {
        faults.push(format!("{ROOT}: bans nothing"));
    }
    for (path, text) in tree.ending(ROOT) {
        faults.extend(unreasoned(path, text));
        let missing = wanted.difference(&bans(text)).cloned().collect::<Vec<_>>();
        faults.extend(missing.iter().map(|(list, ban)| format!("{path}: lacks {ban} in {list}, which {ROOT} bans")));
    }
    for path in ORDERED {
        let own = tree.get(path).map(bans).unwrap_or_default();
        let lacks = |ban: &&&str| own.iter().all(|(_, own)| own != **ban);
        faults.extend(ORDERED_BANS.iter().filter(lacks).map(|ban| format!("{path}: does not ban {ban}")));
    }
    faults
}

/// The bans as (list, path). One ban stands on one line: `{ path = "..", reason = ".." },`.
fn bans(text: &str) -> BTreeSet<(String, String)> {
    let mut list = "";
    let mut found = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        if let Some((name, "[")) = line.split_once(" = ") {
            list = name;
        } else if let Some(path) = quoted(line, "path") {
            found.insert((list.to_owned(), path.to_owned()));
        }
    }
    found
}

fn unreasoned(path: &str, text: &str) -> Vec<String> {
    let bans = text.lines().filter_map(|line| Some((line, quoted(line, "path")?)));
    let bare = bans.filter(|(line, _)| quoted(line, "reason").is_none_or(|reason| reason.trim().is_empty()));
    bare.map(|(_, ban)| format!("{path}: the ban of {ban} gives no reason")).collect()
}

fn quoted<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("{key} = \""))?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "disallowed-methods = [\n    { path = \"a::now\", reason = \"use b\" },\n]\n";

    fn strict(extra: &str) -> String {
        let more: String =
            ORDERED_BANS.iter().map(|ban| format!("{{ path = \"{ban}\", reason = \"r\" }},\n")).collect();
        format!("{extra}disallowed-types = [\n{more}]\n")
    }

    fn faults(root: &str, store: &str, queue: &str) -> Vec<String> {
        check(&Tree::of(&[(ROOT, root), (ORDERED[0], store), (ORDERED[1], queue)]), &Workspace::default())
    }

    #[test]
    fn a_crate_that_repeats_the_root_passes() {
        assert_eq!(faults(BASE, &strict(BASE), &strict(BASE)), Vec::<String>::new());
    }

    #[test]
    fn a_ban_that_a_crate_forgot_is_named() {
        let found = faults(BASE, &strict(""), &strict(BASE));
        assert_eq!(found, [format!("{}: lacks a::now in disallowed-methods, which clippy.toml bans", ORDERED[0])]);
    }

    #[test]
    fn the_ordered_crates_need_their_own_bans() {
        assert_eq!(faults(BASE, BASE, &strict(BASE)).len(), ORDERED_BANS.len());
        let alone = check(&Tree::of(&[(ROOT, BASE)]), &Workspace::default());
        assert_eq!(alone.len(), 2 * ORDERED_BANS.len());
    }

    #[test]
    fn a_ban_without_a_reason_and_an_empty_root_are_faults() {
        let bare = "disallowed-methods = [\n    { path = \"a::now\" },\n]\n";
        assert!(faults(bare, &strict(BASE), &strict(BASE))[0].contains("gives no reason"));
        assert!(faults("", &strict(BASE), &strict(BASE))[0].contains("bans nothing"));
    }
}
