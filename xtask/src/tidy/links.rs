//! Every relative link of a Markdown file leads to a file or folder of the tree.

use super::tree::{self, Tree};
use super::workspace::Workspace;

/// Follows the inline links outside code.
pub(crate) fn check(tree: &Tree, _: &Workspace) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in tree.ending(".md") {
        for (number, target) in links(text) {
            let file = target.split('#').next().unwrap_or_default();
            let there = tree::join(tree::parent(path), file).is_some_and(|file| tree.has(&file));
            if !file.is_empty() && !there {
                faults.push(format!("{path}:{number}: the link to {target} leads nowhere"));
            }
        }
    }
    faults
}

/// The relative targets with the numbers of their lines. Code blocks and code spans hold no links.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let prose = line.split('`').step_by(2);
            found.extend(prose.flat_map(targets).map(|target| (index + 1, target)));
        }
    }
    found
}

fn targets(prose: &str) -> impl Iterator<Item = &str> {
    // A link text that ends in a code span leaves its `](` at the start of the next piece of prose.
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(|target| target.split(' ').next().unwrap_or(target)).filter(|target| !is_outside(target))
}

fn is_outside(target: &str) -> bool {
    ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        check(&Tree::of(&[("docs/a.md", text), ("docs/b.md", ""), ("README.md", "")]), &Workspace::default())
    }

    #[test]
    fn links_into_the_tree_pass() {
        let text = "[b](b.md#part) [r](../README.md) [d](.) [`x`](b.md) [w](https://example.org/x) [h](#here)\n\
                    `[c](code.md)`\n```\n[f](fenced.md)\n```\n";
        assert_eq!(faults(text), Vec::<String>::new());
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named_with_its_line() {
        let found = faults("x\n[b](c.md) [`d`](e.md#x) [up](../../out.md)\n");
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("docs/a.md:2: the link to c.md"), "{found:?}");
    }
}
