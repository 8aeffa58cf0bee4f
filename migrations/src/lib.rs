//! Database migrations as data: the text of each, in order, with a checksum that keeps a published one from changing.
//!
//! Nothing here runs them; a backend has its own runner.

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

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn a_frozen_migration_has_not_changed() {
        for migration in SQLITE {
            let digest = Sha256::digest(migration.sql.as_bytes());
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, migration.checksum, "{:03}_{}", migration.number, migration.name);
        }
    }

    #[test]
    fn numbers_count_up_from_one() {
        let numbers: Vec<u32> = SQLITE.iter().map(|migration| migration.number).collect();
        let expected: Vec<u32> = (1..).take(SQLITE.len()).collect();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn every_file_of_the_folder_is_in_the_list_and_no_other() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sqlite");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .expect("folder of the migrations")
            .map(|entry| entry.expect("entry").file_name().into_string().expect("name"))
            .collect();
        let listed: BTreeSet<String> =
            SQLITE.iter().map(|migration| format!("{:03}_{}.sql", migration.number, migration.name)).collect();
        assert_eq!(files, listed);
    }
}
