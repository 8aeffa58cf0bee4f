//! The text files of the tree in memory, so that a check is a pure function and its tests need no disk.

use crate::shell;
use std::collections::BTreeMap;
use std::path::Path;

/// Text files by path relative to the root, with `/` between the parts.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads what git knows or would add; a file that is not UTF-8 text has no rules here and is left out.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut files = BTreeMap::new();
        for path in shell::files(root)? {
            let bytes = std::fs::read(root.join(&path)).map_err(|error| format!("{path}: {error}"))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.insert(path, text);
            }
        }
        Ok(Self { files })
    }

    /// A tree for tests.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether a file or a folder has this path.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty() || self.files.contains_key(path) || self.files.keys().any(|file| file.starts_with(&folder))
    }

    /// Every file in path order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files whose name has this ending, dot included.
    pub(crate) fn ending(&self, ending: &str) -> impl Iterator<Item = (&str, &str)> {
        self.all().filter(move |(path, _)| path.ends_with(ending))
    }
}

/// Joins a relative path to a folder and resolves `.` and `..`; `None` when it leaves the tree.
pub(crate) fn join(dir: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in dir.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The folder that holds this file; empty for the root.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_files_are_there_and_nothing_else() {
        let tree = Tree::of(&[("docs/a.md", "")]);
        assert!(tree.has("docs") && tree.has("docs/a.md"));
        assert!(!tree.has("doc") && !tree.has("docs/a"));
    }

    #[test]
    fn paths_are_resolved_inside_the_tree() {
        assert_eq!(join("docs/x", "../a.md").as_deref(), Some("docs/a.md"));
        assert_eq!(join("", "./a").as_deref(), Some("a"));
        assert_eq!(join("docs", "../../a"), None);
        assert_eq!(parent("docs/a.md"), "docs");
        assert_eq!(parent("a.md"), "");
    }
}
