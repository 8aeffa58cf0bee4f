//! Every Rust file starts with a `//!` head that says what the file is.

use super::tree::Tree;
use super::workspace::Workspace;

/// The first line must be a head, and say something.
pub(crate) fn check(tree: &Tree, _: &Workspace) -> Vec<String> {
    let headless = |(_, text): &(&str, &str)| {
        let first = text.lines().next().unwrap_or_default();
        first.strip_prefix("//!").is_none_or(|head| head.trim().is_empty())
    };
    tree.ending(".rs").filter(headless).map(|(path, _)| format!("{path}: does not start with a `//!` head")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_head_is_named() {
        let tree = Tree::of(&[("a.rs", "//! Says.\n"), ("b.rs", "use x;\n"), ("c.rs", "//!\n"), ("d.md", "x")]);
        let faults = check(&tree, &Workspace::default());
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("b.rs") && faults[1].starts_with("c.rs"), "{faults:?}");
    }
}
