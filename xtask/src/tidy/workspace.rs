//! What `cargo metadata` says of the workspace: packages, the edges between them, and their targets.

use crate::shell;
use serde_json::Value;
use std::path::Path;

/// The packages of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
}

#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The package's folder, relative to the root.
    pub(crate) dir: String,
    /// Dependencies on other packages of the workspace.
    pub(crate) edges: Vec<Edge>,
    pub(crate) targets: Vec<Target>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) to: String,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Dev,
    Build,
}

#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// Whether this is a test binary of its own (`tests/*.rs`).
    pub(crate) is_test: bool,
    /// The root file, relative to the workspace's root.
    pub(crate) src: String,
}

impl Workspace {
    /// Asks cargo. Errors: it fails, or its answer lacks a field that its format promises.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let args = ["metadata", "--format-version", "1", "--no-deps"];
        let text = shell::output(&mut shell::cargo(root, &args))?;
        let json: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
        Self::of_json(&json).ok_or_else(|| "cargo metadata: a field is missing".into())
    }

    fn of_json(json: &Value) -> Option<Self> {
        let root = json.get("workspace_root")?.as_str()?;
        let packages = json.get("packages")?.as_array()?.iter().map(|package| package_of(root, package));
        Some(Self { packages: packages.collect::<Option<_>>()? })
    }
}

fn package_of(root: &str, json: &Value) -> Option<Package> {
    let manifest = relative(root, json.get("manifest_path")?.as_str()?)?;
    let dependencies = json.get("dependencies")?.as_array()?.iter();
    let local = dependencies.filter(|dependency| dependency.get("path").is_some_and(Value::is_string));
    Some(Package {
        name: json.get("name")?.as_str()?.to_owned(),
        dir: super::tree::parent(&manifest).to_owned(),
        edges: local.map(edge_of).collect::<Option<_>>()?,
        targets: json.get("targets")?.as_array()?.iter().map(|t| target_of(root, t)).collect::<Option<_>>()?,
    })
}

fn edge_of(json: &Value) -> Option<Edge> {
    let kind = match json.get("kind")?.as_str() {
        None => Kind::Normal,
        Some("dev") => Kind::Dev,
        Some(_) => Kind::Build,
    };
    Some(Edge { to: json.get("name")?.as_str()?.to_owned(), kind })
}

fn target_of(root: &str, json: &Value) -> Option<Target> {
    Some(Target {
        name: json.get("name")?.as_str()?.to_owned(),
        is_test: json.get("kind")?.as_array()?.iter().any(|kind| kind == "test"),
        src: relative(root, json.get("src_path")?.as_str()?)?,
    })
}

fn relative(root: &str, path: &str) -> Option<String> {
    Some(path.strip_prefix(root)?.trim_start_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn edges_keep_their_kind_and_outside_crates_are_left_out() {
        let json = json!({"workspace_root": "/w", "packages": [{
            "name": "a", "manifest_path": "/w/crates/a/Cargo.toml",
            "dependencies": [
                {"name": "b", "kind": null, "path": "/w/crates/b"},
                {"name": "c", "kind": "dev", "path": "/w/crates/c"},
                {"name": "serde", "kind": null}],
            "targets": [{"name": "t", "kind": ["test"], "src_path": "/w/crates/a/tests/t.rs"}]}]});
        let workspace = Workspace::of_json(&json).expect("complete");
        let package = &workspace.packages[0];
        assert_eq!(package.dir, "crates/a");
        let edge = |to: &str, kind| Edge { to: to.into(), kind };
        assert_eq!(package.edges, [edge("b", Kind::Normal), edge("c", Kind::Dev)]);
        assert!(package.targets[0].is_test);
        assert_eq!(package.targets[0].src, "crates/a/tests/t.rs");
    }

    #[test]
    fn an_answer_without_a_promised_field_is_refused() {
        assert!(Workspace::of_json(&json!({"workspace_root": "/w"})).is_none());
    }
}
