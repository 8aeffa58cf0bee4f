//! Passwords in a file, as libpq reads `~/.pgpass`.

use std::fs;
use std::path::Path;

use zeroize::Zeroizing;

use super::Secret;

/// What a line of the file must fit.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) database: &'a str,
    pub(crate) user: &'a str,
}

/// The text of the file; `None` when there is none or others may read it, of which a warning tells.
pub(crate) fn read(path: &Path) -> Option<Zeroizing<String>> {
    let metadata = fs::metadata(path).ok()?;
    let ignored = |why: &str| {
        tracing::warn!(why, "the password file is ignored");
        None
    };
    if !metadata.is_file() {
        return ignored("it is not a plain file");
    }
    if is_open_to_others(&metadata) {
        return ignored("group or world have access to it; its permissions must be 0600 or less");
    }
    match fs::read_to_string(path) {
        Ok(text) => Some(Zeroizing::new(text)),
        Err(_) => ignored("it cannot be read as text"),
    }
}

#[cfg(unix)]
fn is_open_to_others(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_metadata: &fs::Metadata) -> bool {
    false
}

/// The password of the first line that fits.
pub(crate) fn find(text: &str, wanted: &Wanted<'_>) -> Option<Secret> {
    let port = wanted.port.to_string();
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = [wanted.host, &port, wanted.database, wanted.user];
        let password = fields.iter().try_fold(line, |rest, field| after(rest, field))?;
        Some(Secret::new(field(password).0))
    })
}

/// What follows the first field of a line, when it is `*` or the wanted text.
fn after<'a>(line: &'a str, wanted: &str) -> Option<&'a str> {
    let (text, rest) = field(line);
    let fits = line.starts_with("*:") || text == wanted;
    if fits { rest } else { None }
}

/// The first field of a line without its escapes, and what follows its colon.
fn field(line: &str) -> (String, Option<&str>) {
    let mut text = String::new();
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            ':' => return (text, Some(&line[at + 1..])),
            '\\' if chars.peek().is_some() => text.extend(chars.next().map(|(_, escaped)| escaped)),
            c => text.push(c),
        }
    }
    (text, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r"
# localhost:5432:shop:app:commented
localhost:5432:shop:app:first
localhost:5432:shop:app:second
db.example:*:shop:app:a\:b\\c
*:5433:*:app:any:rest
\:\:1:5432:shop:app:six
localhost:5432:*:*:
too:few
";

    fn password(host: &str, port: u16, database: &str, user: &str) -> Option<String> {
        find(FILE, &Wanted { host, port, database, user }).map(|secret| secret.reveal().to_owned())
    }

    #[test]
    fn the_first_line_that_fits_gives_the_password() {
        assert_eq!(password("localhost", 5432, "shop", "app").as_deref(), Some("first"));
        assert_eq!(password("db.example", 1, "shop", "app").as_deref(), Some(r"a:b\c"));
        assert_eq!(password("elsewhere", 5433, "x", "app").as_deref(), Some("any"));
        assert_eq!(password("::1", 5432, "shop", "app").as_deref(), Some("six"));
        assert_eq!(password("localhost", 5432, "x", "y").as_deref(), Some(""));
        assert_eq!(password("elsewhere", 5432, "shop", "app"), None);
        assert_eq!(password("too", 5432, "few", "app"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_ignored() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("pgpass");
        fs::write(&path, FILE).expect("written");
        for (mode, is_read) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("mode");
            assert_eq!(read(&path).is_some(), is_read, "{mode:o}");
        }
        assert!(read(folder.path()).is_none() && read(&folder.path().join("none")).is_none());
    }
}
