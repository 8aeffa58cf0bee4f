//! Every public item of the crates whose documentation a user reads has an example that runs and asserts something.

use super::source::is_word;
use super::tree::{Tree, parent};
use super::workspace::Workspace;

/// Where these items are: the facade, and the crates whose items it exports.
const SHOWN: &[&str] = &["crates/mainstay/src/", "crates/mainstay-macros/src/", "crates/mainstay-runtime/src/"];
/// Types that tell two implementations of a trait apart; nobody names them.
const MARKERS: &[&str] = &["Finished", "Value"];
/// What begins an item, after `pub` and what may stand before `fn`.
const KINDS: &[&str] = &["const", "enum", "fn", "mod", "static", "struct", "trait", "type", "union"];
/// What may stand before `fn`.
const BEFORE_FN: &[&str] = &["async", "const", "unsafe"];

/// Names the public items without an example. Fields, variants and the methods of traits are shown by the item's example.
pub(crate) fn check(tree: &Tree, _: &Workspace) -> Vec<String> {
    let mut faults = Vec::new();
    for folder in SHOWN {
        let files: Vec<_> = tree.ending(".rs").filter(|(path, _)| path.starts_with(folder)).collect();
        let hidden: Vec<String> = files.iter().flat_map(|(path, text)| hidden_modules(path, text)).collect();
        let mut seen = 0;
        for (path, text) in files {
            if hidden.iter().any(|module| path == format!("{module}.rs") || path.starts_with(&format!("{module}/"))) {
                continue;
            }
            let items = items(text);
            seen += items.len();
            let of_file = items.iter().filter_map(|item| Some((item, item.fault()?)));
            faults.extend(of_file.map(|(item, what)| format!("{path}:{}: `{}` {what}", item.line, item.name)));
        }
        if seen == 0 {
            faults.push(format!("{folder}: no public item is found, so that nothing is checked"));
        }
    }
    faults
}

/// A public item and what stands above it.
struct Item<'a> {
    name: &'a str,
    line: usize,
    above: Above<'a>,
}

impl Item<'_> {
    fn fault(&self) -> Option<&'static str> {
        let blocks = blocks(&self.above.docs);
        if blocks.is_empty() {
            return Some("has no example that runs");
        }
        let asserts = |(info, code): &(&str, String)| info.contains("should_panic") || code.contains("assert");
        (!blocks.iter().any(asserts)).then_some("has an example that asserts nothing")
    }
}

/// The comment and the attributes of an item.
#[derive(Default)]
struct Above<'a> {
    docs: Vec<&'a str>,
    is_hidden: bool,
}

fn above<'a>(lines: &[&'a str]) -> Above<'a> {
    let mut above = Above::default();
    let mut in_attribute = false;
    for line in lines.iter().rev().map(|line| line.trim()) {
        if let Some(doc) = line.strip_prefix("///") {
            above.docs.push(doc.strip_prefix(' ').unwrap_or(doc));
        } else if line.starts_with("#[") {
            above.is_hidden |= line.contains("doc(hidden)");
            in_attribute = false;
        } else if in_attribute || line.ends_with(")]") {
            in_attribute = true;
        } else {
            break;
        }
    }
    above.docs.reverse();
    above
}

/// The public items of a file; not what lies in a module that is private or hidden.
fn items(text: &str) -> Vec<Item<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut closed: Option<String> = None;
    for (index, line) in lines.iter().enumerate() {
        if let Some(end) = &closed {
            if line == end {
                closed = None;
            }
            continue;
        }
        let item = public(line).map(|name| Item { name, line: index + 1, above: above(&lines[..index]) });
        let is_shown = item.as_ref().is_some_and(|item| !item.above.is_hidden);
        if !is_shown && opens_module(line) {
            let indent = &line[..line.len() - line.trim_start().len()];
            closed = Some(format!("{indent}}}"));
        }
        found.extend(item.filter(|item| is_shown && !MARKERS.contains(&item.name)));
    }
    found
}

/// The name of the item that a line declares with `pub`.
fn public(line: &str) -> Option<&str> {
    let mut rest = line.trim_start().strip_prefix("pub ")?;
    loop {
        let (word, after) = rest.split_once(' ')?;
        let is_modifier = BEFORE_FN.contains(&word) && after.split(' ').any(|word| word == "fn");
        if !is_modifier {
            let end = after.find(|c: char| !is_word(c)).unwrap_or(after.len());
            return KINDS.contains(&word).then(|| &after[..end]);
        }
        rest = after;
    }
}

fn opens_module(line: &str) -> bool {
    let code = line.trim_start();
    let is_module =
        ["mod ", "pub mod ", "pub(crate) mod ", "pub(super) mod "].iter().any(|start| code.starts_with(start));
    is_module && code.ends_with('{')
}

/// Paths, without ending, of the modules that a file declares as hidden.
fn hidden_modules(path: &str, text: &str) -> Vec<String> {
    let dir = match path.strip_suffix(".rs") {
        Some(stem) if !stem.ends_with("/lib") && !stem.ends_with("/mod") => stem,
        _ => parent(path),
    };
    let lines: Vec<&str> = text.lines().collect();
    let declared = lines.iter().enumerate().filter_map(|(index, line)| {
        let name = line.trim().strip_prefix("pub mod ")?.strip_suffix(';')?;
        above(&lines[..index]).is_hidden.then(|| format!("{dir}/{name}"))
    });
    declared.collect()
}

/// The code blocks of a comment that the documentation tests run, with their info strings.
fn blocks<'a>(docs: &[&'a str]) -> Vec<(&'a str, String)> {
    let mut found = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in docs {
        match (line.trim().strip_prefix("```"), open.take()) {
            (Some(info), None) => open = Some((info, String::new())),
            (Some(_), Some(block)) => found.push(block),
            (None, Some((info, code))) => open = Some((info, code + line + "\n")),
            (None, None) => {}
        }
    }
    found.retain(|(info, _)| info.split(',').all(|word| ["", "rust", "should_panic"].contains(&word.trim())));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "/// Does.\n///\n/// ```\n/// assert!(x());\n/// ```\n";

    /// The faults of one file, the other folders having nothing to find.
    fn faults(text: &str) -> Vec<String> {
        let good = format!("//! Head.\n{GOOD}pub fn x() {{}}\n");
        let tree = Tree::of(&[
            ("crates/mainstay/src/lib.rs", text),
            ("crates/mainstay-macros/src/lib.rs", &good),
            ("crates/mainstay-runtime/src/lib.rs", &good),
        ]);
        check(&tree, &Workspace::default())
    }

    #[test]
    fn items_with_a_running_example_pass() {
        let text = format!(
            "{GOOD}#[must_use]\npub struct A {{\n    /// A field.\n    pub b: u8,\n}}\nimpl A {{\n{GOOD}    \
             #[allow(\n        x,\n        reason = \"y\"\n    )]\n    pub async fn c(&self) {{}}\n}}\n\
             /// ```should_panic\n/// x();\n/// ```\npub const fn d() {{}}\npub use x::y;\n"
        );
        assert_eq!(faults(&text), Vec::<String>::new());
    }

    #[test]
    fn items_without_a_running_example_are_named() {
        for (text, named) in [
            ("/// Says.\npub fn a() {}\n", "`a` has no example"),
            ("pub(crate) fn x() {}\npub struct B;\n", "`B` has no example"),
            ("impl A {\n    /// Says.\n    #[must_use]\n    pub async fn c(&self) {}\n}\n", "`c` has no example"),
            ("/// ```ignore\n/// assert!(x);\n/// ```\npub const fn d() {}\n", "`d` has no example"),
            ("/// ```text\n/// assert!(x);\n/// ```\npub trait E {}\n", "`E` has no example"),
            ("/// ```rust,no_run\n/// assert!(x);\n/// ```\npub type F = u8;\n", "`F` has no example"),
            ("/// ```\n/// x();\n/// ```\npub const G: u8 = 1;\n", "`G` has an example that asserts nothing"),
            ("/// Says.\npub mod prelude {\n    pub use x::y;\n}\n", "`prelude` has no example"),
        ] {
            let faults = faults(text);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].starts_with("crates/mainstay/src/lib.rs:") && faults[0].contains(named), "{faults:?}");
        }
    }

    #[test]
    fn what_no_reader_sees_needs_no_example() {
        let text = format!(
            "{GOOD}pub fn a() {{}}\n#[doc(hidden)]\npub mod private {{\n    pub fn b() {{}}\n}}\n#[doc(hidden)]\n\
             pub fn c() {{}}\npub struct Value;\nmod sealed {{\n    pub trait D {{}}\n}}\npub(crate) fn e() {{}}\n"
        );
        assert_eq!(faults(&text), Vec::<String>::new());
        let hidden = format!("#[doc(hidden)]\npub mod private;\nmod open;\n{GOOD}pub fn a() {{}}\n");
        let bare = "pub fn b() {}\n";
        let mut files = Vec::new();
        for folder in SHOWN {
            files.push((format!("{folder}lib.rs"), hidden.as_str()));
            files.extend(["private.rs", "private/more.rs", "open.rs"].map(|file| (format!("{folder}{file}"), bare)));
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let found = check(&Tree::of(&files), &Workspace::default());
        assert_eq!(found.len(), SHOWN.len(), "{found:?}");
        assert!(found.iter().all(|fault| fault.contains("/open.rs:1: `b`")), "{found:?}");
    }

    #[test]
    fn a_folder_without_items_is_a_fault() {
        let found = check(&Tree::default(), &Workspace::default());
        assert_eq!(found.len(), SHOWN.len(), "{found:?}");
        assert!(faults("fn private() {}\n")[0].contains("nothing is checked"));
    }
}
