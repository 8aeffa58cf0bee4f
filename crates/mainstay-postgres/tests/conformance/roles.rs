//! The three roles of `docs/postgres/roles.sql`, one set for a server.

use mainstay_pgkit::{Client, Server};

use crate::psql::{self, Step};

/// The file that users run with psql.
pub(crate) const FILE: &str = include_str!("../../../../docs/postgres/roles.sql");

/// Who makes the schema.
pub(crate) const MIGRATOR: &str = "mainstay_suite_migrator";
/// Who works in it.
pub(crate) const APP: &str = "mainstay_suite_app";
const VIEWER: &str = "mainstay_suite_viewer";

/// Makes the roles that are not there. They outlive the run where the server does.
pub(crate) fn create(server: &Server) {
    let mut client = server.client();
    for role in [MIGRATOR, APP, VIEWER] {
        if client.rows(&format!("SELECT FROM pg_roles WHERE rolname = '{role}'")).is_empty() {
            client.run(&format!("CREATE ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE"));
        }
    }
}

/// Runs the file as psql would.
pub(crate) fn grant(owner: &mut Client) {
    let variables = [("schema", "dbos"), ("migrator", MIGRATOR), ("app", APP), ("viewer", VIEWER)];
    for step in psql::steps(FILE, &variables) {
        let made = match step {
            Step::Run(statement) => vec![statement],
            Step::RunAnswers(ask) => owner.rows(&ask).into_iter().flatten().flatten().collect(),
        };
        for statement in made {
            owner.run(&statement);
        }
    }
}

/// A superuser's URL with another role in its place.
pub(crate) fn url(superuser: &str, role: &str) -> String {
    let (scheme, rest) = superuser.split_once("://").expect("a URL");
    let (before, database) = rest.rsplit_once('/').expect("a database");
    let host = before.rsplit_once('@').map_or(before, |(_, host)| host);
    format!("{scheme}://{role}@{host}/{database}")
}
