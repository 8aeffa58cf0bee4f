//! `cargo xtask tidy`: the rules of the tree that no other tool checks, each a function from the tree to its faults.

mod arrows;
mod banned;
mod bans;
mod cases;
mod examples;
mod heads;
mod invariants;
mod links;
mod numbered;
mod reach;
mod rules;
mod sizes;
mod source;
mod tree;
mod words;
mod workspace;

use std::path::Path;
use tree::Tree;
use workspace::Workspace;

/// A rule: what is wrong in the tree, one line a fault, each naming its place.
type Check = fn(&Tree, &Workspace) -> Vec<String>;

const CHECKS: &[(&str, Check)] = &[
    ("arrows", arrows::check),
    ("heads", heads::check),
    ("sizes", sizes::check),
    ("reach", reach::check),
    ("bans", bans::check),
    ("words", words::check),
    ("banned", banned::check),
    ("invariants", invariants::check),
    ("cases", cases::check),
    ("examples", examples::check),
    ("rules", rules::check),
    ("links", links::check),
    ("numbered", numbered::check),
];

/// Runs every check. Errors: how many faults there are, each printed.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let workspace = Workspace::read(root)?;
    let mut faults = 0;
    for (name, check) in CHECKS {
        for fault in check(&tree, &workspace) {
            println!("tidy {name}: {fault}");
            faults += 1;
        }
    }
    if faults > 0 {
        return Err(format!("tidy found {faults} faults"));
    }
    println!("tidy: {} files, {} checks, no fault", tree.len(), CHECKS.len());
    Ok(())
}
