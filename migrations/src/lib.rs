//! Database migrations as data: the text of each, in order, with a checksum that keeps a published one from changing.
//!
//! Nothing here runs them; a backend has its own runner.

mod postgres;

pub use postgres::{OWN, POSTGRES};

/// One step of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migration {
    /// Its place in the order, from 1 without gaps.
    pub number: u32,
    /// What it does, in a word or two.
    pub name: &'static str,
    /// Its statements, each ended by a semicolon; a runner runs them in one transaction.
    pub sql: &'static str,
    /// SHA-256 of `sql` in lower-case hexadecimal.
    pub checksum: &'static str,
}

/// The schema of the SQLite backend, in order.
///
/// ```
/// let first = mainstay_migrations::SQLITE[0];
/// assert_eq!((first.number, first.name), (1, "base"));
/// ```
pub const SQLITE: &[Migration] = &[Migration {
    number: 1,
    name: "base",
    sql: include_str!("../sqlite/001_base.sql"),
    checksum: "a97f9bf4f51991aa7da2dc67e3a8e2c681582758625db60c4b7c6941206d4b73",
}];

/// One number of a PostgreSQL ladder.
///
/// Its text is a shape: `{{schema}}` stands for the quoted name of the schema, `{{schema_text}}` for that name as a literal,
/// `{{body}}` for a dollar quote that the name does not hold, and `{{concurrently}}` for CONCURRENTLY or, where the whole ladder is run
/// on an empty schema in one transaction, for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Its number, from 1 without gaps.
    pub number: u32,
    /// What it does, in a word or two; empty where the number has no statements.
    pub name: &'static str,
    /// Its statements, each ended by a semicolon; empty where there are none.
    pub sql: &'static str,
    /// Whether it is one statement that builds or drops an index while others write, and so runs outside a transaction.
    pub online: bool,
    /// SHA-256 of `sql` in lower-case hexadecimal; empty where there are no statements.
    pub checksum: &'static str,
}

impl Step {
    const fn empty(number: u32) -> Self {
        Self { number, name: "", sql: "", online: false, checksum: "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn a_frozen_migration_has_not_changed() {
        for migration in SQLITE {
            assert_eq!(hex(migration.sql), migration.checksum, "{:03}_{}", migration.number, migration.name);
        }
        for step in POSTGRES.iter().chain(OWN).filter(|step| !step.sql.is_empty()) {
            assert_eq!(hex(step.sql), step.checksum, "{:03}_{}", step.number, step.name);
        }
    }

    fn hex(text: &str) -> String {
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn numbers_count_up_from_one() {
        let lists: [Vec<u32>; 3] = [
            SQLITE.iter().map(|migration| migration.number).collect(),
            POSTGRES.iter().map(|step| step.number).collect(),
            OWN.iter().map(|step| step.number).collect(),
        ];
        for numbers in lists {
            let expected: Vec<u32> = (1..).take(numbers.len()).collect();
            assert_eq!(numbers, expected);
        }
    }

    #[test]
    fn the_shared_ladder_ends_at_125_and_has_the_numbers_of_the_other_sdks() {
        let empty: Vec<u32> = POSTGRES.iter().filter(|step| step.sql.is_empty()).map(|step| step.number).collect();
        assert_eq!((POSTGRES.len(), empty), (125, (48..=99).collect()));
        let online: Vec<u32> = POSTGRES.iter().filter(|step| step.online).map(|step| step.number).collect();
        let expected = [
            22, 23, 24, 25, 26, 27, 29, 30, 31, 32, 34, 35, 37, 45, 46, 47, 107, 111, 114, 115, 116, 117, 118, 119,
            120, 122, 124, 125,
        ];
        assert_eq!(online, expected);
    }

    #[test]
    fn an_online_step_is_one_statement_that_may_be_run_again() {
        for step in POSTGRES.iter().filter(|step| step.online) {
            assert_eq!((step.sql.matches(';').count(), step.sql.ends_with(";\n")), (1, true), "{}", step.number);
            let again = ["INDEX {{concurrently}} IF NOT EXISTS", "INDEX {{concurrently}} IF EXISTS"];
            assert!(again.iter().any(|shape| step.sql.contains(shape)), "{}", step.number);
        }
        let others = POSTGRES.iter().filter(|step| !step.online);
        assert!(others.clone().all(|step| !step.sql.contains("concurrently")), "outside the online ones");
    }

    #[test]
    fn no_shape_names_a_schema_of_its_own() {
        let known = ["{{schema}}", "{{schema_text}}", "{{body}}", "{{concurrently}}"];
        for step in POSTGRES {
            let bare = known.iter().fold(step.sql.to_owned(), |text, shape| text.replace(shape, ""));
            assert!(!bare.contains("{{") && !bare.contains("dbos."), "{}", step.number);
        }
    }

    #[test]
    fn every_file_of_the_folder_is_in_the_list_and_no_other() {
        let sqlite = SQLITE.iter().map(|migration| (migration.number, migration.name));
        assert_eq!(files("sqlite"), listed(sqlite));
        for (folder, steps) in [("postgres", POSTGRES), ("own", OWN)] {
            let written = steps.iter().filter(|step| !step.sql.is_empty()).map(|step| (step.number, step.name));
            assert_eq!(files(folder), listed(written));
        }
    }

    fn files(folder: &str) -> BTreeSet<String> {
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))
            .expect("folder of the migrations")
            .map(|entry| entry.expect("entry").file_name().into_string().expect("name"))
            .collect()
    }

    fn listed<'a>(entries: impl Iterator<Item = (u32, &'a str)>) -> BTreeSet<String> {
        entries.map(|(number, name)| format!("{number:03}_{name}.sql")).collect()
    }
}
