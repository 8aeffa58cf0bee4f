//! The copy of the tree that is broken on purpose. Unchanged files keep their time, so that cargo builds little.

use super::patch::Patch;
use crate::shell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of every file that git knows or would add.
#[derive(Debug)]
pub(crate) struct Copy {
    root: PathBuf,
    tree: PathBuf,
}

impl Copy {
    /// Makes the copy, or brings an older one up to date. Errors: a file cannot be read or written.
    pub(crate) fn make(root: &Path, tree: &Path) -> Result<Self, String> {
        let copy = Self { root: root.to_owned(), tree: tree.to_owned() };
        let files = shell::files(root)?;
        copy.restore(&files)?;
        let wanted: BTreeSet<PathBuf> = files.iter().map(|file| tree.join(file)).collect();
        remove_others(tree, &wanted).map_err(|error| format!("{}: {error}", tree.display()))?;
        Ok(copy)
    }

    /// The folder of the copy.
    pub(crate) fn tree(&self) -> &Path {
        &self.tree
    }

    /// Applies a patch, with exact context; returns the files that it may have changed. Errors: it does not apply.
    pub(crate) fn apply(&self, patch: &Patch) -> Result<Vec<String>, String> {
        // Inside a repository `git apply` passes over paths outside the current folder without a word.
        let ceiling = self.tree.parent().unwrap_or(&self.tree);
        let mut command = Command::new("git");
        command.current_dir(&self.tree).env("GIT_CEILING_DIRECTORIES", ceiling).arg("apply").arg(&patch.path);
        shell::output(&mut command)?;
        let same = |file: &String| fs::read(self.tree.join(file)).ok() == fs::read(self.root.join(file)).ok();
        if patch.changes.iter().all(same) {
            return Err(format!("{} applies without changing a file", patch.name));
        }
        Ok(patch.changes.clone())
    }

    /// Makes these files as they are in the tree; a file that is not there is removed.
    pub(crate) fn restore(&self, files: &[String]) -> Result<(), String> {
        for file in files {
            let (from, to) = (self.root.join(file), self.tree.join(file));
            update(&from, &to).map_err(|error| format!("{}: {error}", to.display()))?;
        }
        Ok(())
    }
}

fn update(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.exists() {
        return if to.exists() { fs::remove_file(to) } else { Ok(()) };
    }
    let content = fs::read(from)?;
    if fs::read(to).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(dir) = to.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(to, content)
}

/// Removes what an older copy or a test run left, such as seeds that would replay in the next run.
fn remove_others(dir: &Path, wanted: &BTreeSet<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, wanted)?;
        } else if !wanted.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::patch;
    use super::*;

    /// A repository of one file, removed when dropped.
    struct Repository(PathBuf);

    impl Repository {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("bite-{name}-{}", std::process::id()));
            fs::create_dir_all(root.join("src")).expect("a folder");
            fs::write(root.join("src/lib.rs"), "one\ntwo\n").expect("a file");
            shell::output(Command::new("git").args(["init", "-q"]).arg(&root)).expect("a repository");
            fs::write(root.join(".gitignore"), "target\n").expect("a file");
            Self(root)
        }

        fn copy(&self) -> Copy {
            Copy::make(&self.0, &self.0.join("target/bite/tree")).expect("a copy")
        }

        fn patch(&self, old: &str, new: &str) -> Patch {
            let diff = format!("--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,2 +1,2 @@\n-{old}\n+{new}\n two\n");
            let text = format!("# Breaks it.\n# expect: -p x\n{diff}");
            let path = self.0.join("target/break.patch");
            fs::write(&path, &text).expect("written");
            patch::parse(&path, &text).expect("good")
        }
    }

    impl Drop for Repository {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_patch_changes_the_copy_alone_and_is_taken_back() {
        let repository = Repository::new("apply");
        let copy = repository.copy();
        let changed = copy.apply(&repository.patch("one", "three")).expect("applies");
        let read = |root: &Path| fs::read_to_string(root.join("src/lib.rs")).expect("there");
        assert_eq!(read(copy.tree()), "three\ntwo\n");
        assert_eq!(read(&repository.0), "one\ntwo\n");
        copy.restore(&changed).expect("restored");
        assert_eq!(read(copy.tree()), "one\ntwo\n");
    }

    #[test]
    fn a_patch_whose_context_is_gone_does_not_apply() {
        let repository = Repository::new("stale");
        let copy = repository.copy();
        assert!(copy.apply(&repository.patch("gone", "three")).is_err());
    }

    #[test]
    fn every_patch_of_the_tree_applies_to_it() {
        let root = shell::root().expect("the tree");
        let patches = patch::read_all(&root.join(super::super::BITES), &[]).expect("patches");
        for patch in &patches {
            let mut check = Command::new("git");
            check.current_dir(&root).args(["apply", "--check"]).arg(&patch.path);
            shell::output(&mut check).unwrap_or_else(|error| panic!("{}: {error}", patch.name));
        }
        assert!(patches.len() > 20, "{}", patches.len());
    }

    #[test]
    fn a_second_copy_drops_what_the_tree_no_longer_has() {
        let repository = Repository::new("again");
        let copy = repository.copy();
        fs::write(copy.tree().join("src/left.rs"), "x").expect("written");
        let copy = repository.copy();
        assert!(!copy.tree().join("src/left.rs").exists());
        assert!(copy.tree().join("src/lib.rs").exists());
    }
}
