//! No forgotten file: every Rust file is a target or is named by a module of one, and a crate has one test binary.

use super::source;
use super::tree::{self, Tree};
use super::workspace::{Package, Workspace};
use std::collections::BTreeSet;

/// Test binaries that may stand beside a crate's own: the conformance harness brings its own `main`.
const HARNESSES: &[&str] = &["conformance"];

/// Walks the modules from every target.
pub(crate) fn check(tree: &Tree, workspace: &Workspace) -> Vec<String> {
    let mut reached = BTreeSet::new();
    for target in workspace.packages.iter().flat_map(|package| &package.targets) {
        walk(tree, &target.src, true, &mut reached);
    }
    // Every folder with a Cargo.lock of its own is a program outside the workspace, which cargo knows by itself.
    let outside =
        |path: &str| tree.ending("/Cargo.lock").any(|(lock, _)| path.starts_with(lock.trim_end_matches("Cargo.lock")));
    let forgotten = tree.ending(".rs").filter(|(path, _)| !reached.contains(*path) && !outside(path));
    let mut faults: Vec<String> =
        forgotten.map(|(path, _)| format!("{path}: no target and no module names this file")).collect();
    faults.extend(workspace.packages.iter().filter_map(second_binary));
    faults
}

fn walk(tree: &Tree, path: &str, is_root: bool, reached: &mut BTreeSet<String>) {
    let Some(text) = tree.get(path) else { return };
    if !reached.insert(path.to_owned()) {
        return;
    }
    let dir = tree::parent(path);
    let holds_modules_beside = is_root || path.ends_with("/mod.rs");
    let below = if holds_modules_beside { dir.to_owned() } else { path.trim_end_matches(".rs").to_owned() };
    for module in source::modules(text) {
        let candidates = match module.path {
            Some(named) => vec![tree::join(dir, named)],
            None => vec![Some(format!("{below}/{}.rs", module.name)), Some(format!("{below}/{}/mod.rs", module.name))],
        };
        for candidate in candidates.into_iter().flatten() {
            walk(tree, &candidate, false, reached);
        }
    }
    for included in source::includes(text).into_iter().filter_map(|named| tree::join(dir, named)) {
        walk(tree, &included, false, reached);
    }
}

fn second_binary(package: &Package) -> Option<String> {
    let tests = package.targets.iter().filter(|target| target.is_test).map(|target| target.name.as_str());
    let own: Vec<&str> = tests.filter(|name| !HARNESSES.contains(name)).collect();
    let names = own.join(", ");
    (own.len() > 1).then(|| format!("{}: {} has more than one test binary: {names}", package.dir, package.name))
}

#[cfg(test)]
mod tests {
    use super::super::workspace::Target;
    use super::*;

    fn package(targets: &[(&str, bool)]) -> Workspace {
        let target = |(src, is_test): &(&str, bool)| {
            let name = src.rsplit('/').next().unwrap_or(src).trim_end_matches(".rs").to_owned();
            Target { name, is_test: *is_test, src: (*src).to_owned() }
        };
        let targets = targets.iter().map(target).collect();
        Workspace { packages: vec![Package { name: "a".into(), dir: "a".into(), edges: Vec::new(), targets }] }
    }

    #[test]
    fn files_named_by_modules_are_reached() {
        let tree = Tree::of(&[
            ("a/src/lib.rs", "mod b;\npub mod c;\n#[path = \"odd/place.rs\"]\nmod d;\ninclude!(\"list.rs\");\n"),
            ("a/src/b.rs", "mod deep;\n"),
            ("a/src/b/deep.rs", ""),
            ("a/src/c/mod.rs", "mod beside;\n"),
            ("a/src/c/beside.rs", ""),
            ("a/src/odd/place.rs", ""),
            ("a/src/list.rs", ""),
            ("a/tests/all.rs", "mod one;\n"),
            ("a/tests/one.rs", ""),
        ]);
        let workspace = package(&[("a/src/lib.rs", false), ("a/tests/all.rs", true)]);
        assert_eq!(check(&tree, &workspace), Vec::<String>::new());
    }

    #[test]
    fn a_forgotten_file_is_named() {
        let tree = Tree::of(&[
            ("a/src/lib.rs", "mod b;\n"),
            ("a/src/b.rs", ""),
            ("a/src/left.rs", ""),
            ("a/tests/x/y.rs", ""),
        ]);
        let faults = check(&tree, &package(&[("a/src/lib.rs", false)]));
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("a/src/left.rs") && faults[1].starts_with("a/tests/x/y.rs"), "{faults:?}");
    }

    #[test]
    fn a_crate_has_one_test_binary_beside_the_harness() {
        let tree = Tree::default();
        let one = package(&[("a/tests/all.rs", true), ("a/tests/conformance.rs", true), ("a/src/lib.rs", false)]);
        assert_eq!(check(&tree, &one), Vec::<String>::new());
        let two = package(&[("a/tests/all.rs", true), ("a/tests/more.rs", true)]);
        assert!(check(&tree, &two)[0].contains("all, more"));
    }
}
