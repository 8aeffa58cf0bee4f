//! Which crate may depend on which. An edge that is not in the table is a fault; a new one needs a decision record.

use super::tree::Tree;
use super::workspace::{Edge, Kind, Package, Workspace};

/// A crate, what it may depend on, and what its tests may depend on besides.
struct Row {
    from: &'static str,
    normal: &'static [&'static str],
    dev: &'static [&'static str],
}

const fn row(from: &'static str, normal: &'static [&'static str], dev: &'static [&'static str]) -> Row {
    Row { from, normal, dev }
}

const ENV: &str = "mainstay-env";
const STORE: &str = "mainstay-store";
const MEMORY: &str = "mainstay-memory";
const SQLITE: &str = "mainstay-sqlite";
const POSTGRES: &str = "mainstay-postgres";
const MIGRATIONS: &str = "mainstay-migrations";
const PGKIT: &str = "mainstay-pgkit";
const CONFORMANCE: &str = "mainstay-conformance";
const QUEUE: &str = "mainstay-queue";
const RUNTIME: &str = "mainstay-runtime";
const MACROS: &str = "mainstay-macros";
const FACADE: &str = "mainstay";

/// The arrows of docs/architecture.md: down only, and no crate beside itself.
const TABLE: &[Row] = &[
    row(ENV, &[], &[]),
    row(MIGRATIONS, &[], &[]),
    row(STORE, &[ENV], &[]),
    row(MEMORY, &[STORE, ENV], &[CONFORMANCE]),
    row(SQLITE, &[STORE, MIGRATIONS, ENV], &[CONFORMANCE]),
    row(POSTGRES, &[STORE, MIGRATIONS, ENV], &[CONFORMANCE, PGKIT]),
    row(PGKIT, &[], &[]),
    row(CONFORMANCE, &[STORE, MEMORY, ENV], &[]),
    row(QUEUE, &[STORE, ENV], &[MEMORY]),
    row(RUNTIME, &[QUEUE, STORE, ENV], &[MEMORY, FACADE]),
    row(MACROS, &[], &[FACADE]),
    row(FACADE, &[RUNTIME, MACROS, POSTGRES, SQLITE, MEMORY, STORE, ENV], &[]),
    row("mainstay-tests", &[FACADE, QUEUE, SQLITE, STORE, ENV], &[POSTGRES, PGKIT]),
    row("mainstay-interop", &[FACADE, PGKIT], &[]),
    row("mainstay-custom-store-example", &[FACADE, STORE], &[]),
    row("xtask", &[PGKIT], &[]),
];

/// Compares the manifests with the table, both ways.
pub(crate) fn check(_: &Tree, workspace: &Workspace) -> Vec<String> {
    against(TABLE, workspace)
}

fn against(table: &[Row], workspace: &Workspace) -> Vec<String> {
    let mut faults = Vec::new();
    for package in &workspace.packages {
        match table.iter().find(|row| row.from == package.name) {
            Some(row) => faults.extend(package.edges.iter().filter_map(|edge| fault(row, package, edge))),
            None => faults.push(format!("{} has no row in the table of arrows", package.name)),
        }
    }
    for row in table {
        if workspace.packages.iter().all(|package| package.name != row.from) {
            faults.push(format!("the table of arrows names {}, which is not in the workspace", row.from));
        }
    }
    faults
}

fn fault(row: &Row, package: &Package, edge: &Edge) -> Option<String> {
    let to = edge.to.as_str();
    let (allowed, what) = match edge.kind {
        Kind::Normal => (row.normal.contains(&to), "depends on"),
        Kind::Dev => (row.normal.contains(&to) || row.dev.contains(&to), "depends in its tests on"),
        Kind::Build => (false, "depends in its build script on"),
    };
    (!allowed)
        .then(|| format!("{}/Cargo.toml: {} {what} {to}, an arrow that is not in the table", package.dir, package.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &[Row] = &[row("low", &[], &[]), row("side", &["low"], &[]), row("high", &["low"], &["side"])];

    fn package(name: &str, edges: &[(&str, Kind)]) -> Package {
        let edges = edges.iter().map(|(to, kind)| Edge { to: (*to).into(), kind: *kind }).collect();
        Package { name: name.into(), dir: name.into(), edges, targets: Vec::new() }
    }

    fn faults(high: &[(&str, Kind)], low: &[(&str, Kind)]) -> Vec<String> {
        let packages = vec![package("low", low), package("side", &[]), package("high", high)];
        against(SMALL, &Workspace { packages })
    }

    #[test]
    fn arrows_of_the_table_pass_in_their_kind() {
        assert_eq!(
            faults(&[("low", Kind::Normal), ("side", Kind::Dev), ("low", Kind::Dev)], &[]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn an_arrow_outside_the_table_is_named() {
        for (faults, named) in [
            (faults(&[], &[("high", Kind::Normal)]), "low depends on high"),
            (faults(&[("side", Kind::Normal)], &[]), "high depends on side"),
            (faults(&[], &[("high", Kind::Dev)]), "low depends in its tests on high"),
            (faults(&[("low", Kind::Build)], &[]), "high depends in its build script on low"),
        ] {
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].contains(named), "{faults:?}");
        }
    }

    #[test]
    fn table_and_workspace_name_the_same_crates() {
        let packages = vec![package("low", &[]), package("side", &[]), package("new", &[])];
        let faults = against(SMALL, &Workspace { packages });
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("new ") && faults[1].contains("high"), "{faults:?}");
    }

    #[test]
    fn the_table_itself_has_no_circle_of_normal_arrows() {
        let mut done: Vec<&str> = Vec::new();
        while let Some(next) =
            TABLE.iter().find(|row| !done.contains(&row.from) && row.normal.iter().all(|to| done.contains(to)))
        {
            done.push(next.from);
        }
        assert_eq!(done.len(), TABLE.len(), "{done:?}");
    }
}
