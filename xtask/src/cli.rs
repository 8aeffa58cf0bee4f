//! The command line: words in, one `Command` out. Anything that is not understood is an error.

use crate::conformance::POSTGRES;
use crate::pg;

/// What `cargo xtask help` prints.
pub(crate) const HELP: &str = "\
usage: cargo xtask <command>

  test [--pg-version N] [-- ARGS]     every test, with a PostgreSQL of the run, then the doctests;
                                      ARGS go to the test runner (filters), without doctests
  conformance --backend NAME [--pg-version N] [--layout L] [FILTER ..]
                                      the conformance suite of one backend: memory, sqlite, postgres;
                                      --layout 108, 114: on databases at that number; inline: at 125, new
                                      inputs inline
  conformance --list                  the cases of every backend, and that they are the same
  pg [--pg-version N] [-- CMD ..]     a private PostgreSQL until Ctrl-C, or for the time of one command,
                                      which finds its URL in MAINSTAY_TEST_POSTGRES; N: 13, 15, 16, 17, 18
  migrate-check [--pg-version N]      the ladder of the shared PostgreSQL schema against its golden catalog,
                                      number by number and from every older one
  interop [--smoke] [FILTER ..]       programs of the DBOS SDKs and ours on one database, both ways;
                                      --smoke: the newest of two languages; FILTER: part of a scenario's name
  tidy                                the rules of the tree that no other tool checks
  deny                                licences, bans and sources of the dependencies
  bite [NAME ..]                      break the code with each patch of xtask/bites and demand red tests
  ci [--full]                         fmt, clippy, tidy, deny, docs and tests against their time limits;
                                      --full adds the long runs and bite
  help                                this text";

/// The backends that have a conformance binary, by the name that the command line gives them.
pub(crate) const BACKENDS: &[&str] = &["memory", "sqlite", POSTGRES];

/// The layouts of databases that `--layout` takes, beside the one that a fresh database has.
pub(crate) const LAYOUTS: &[&str] = &["108", "114", "inline"];

/// One understood command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Tidy,
    Deny,
    Test { version: Option<u32>, args: Vec<String> },
    Conformance { backend: String, filters: Vec<String>, version: Option<u32>, layout: Option<&'static str> },
    ConformanceList,
    Pg { version: Option<u32>, words: Vec<String> },
    MigrateCheck { version: Option<u32> },
    Interop { smoke: bool, filters: Vec<String> },
    Bite { names: Vec<String> },
    Ci { full: bool },
}

/// Reads the words after `cargo xtask`. Errors: a text for the user, to be printed with the help.
pub(crate) fn parse(args: &[String]) -> Result<Command, String> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => Err("no command given".into()),
        ["help" | "--help" | "-h"] => Ok(Command::Help),
        ["tidy"] => Ok(Command::Tidy),
        ["deny"] => Ok(Command::Deny),
        ["test", rest @ ..] => {
            let (version, args) = on_server("test", rest)?;
            Ok(Command::Test { version, args })
        }
        ["pg", rest @ ..] => {
            let (version, words) = on_server("pg", rest)?;
            Ok(Command::Pg { version, words })
        }
        ["migrate-check", rest @ ..] => match on_server("migrate-check", rest)? {
            (version, words) if words.is_empty() => Ok(Command::MigrateCheck { version }),
            (_, words) => Err(format!("`migrate-check` does not take `{}`", words[0])),
        },
        ["conformance", "--list"] => Ok(Command::ConformanceList),
        ["conformance", rest @ ..] => conformance(rest),
        ["interop", "--smoke", filters @ ..] => {
            no_flags(filters).map(|()| Command::Interop { smoke: true, filters: owned(filters) })
        }
        ["interop", filters @ ..] => {
            no_flags(filters).map(|()| Command::Interop { smoke: false, filters: owned(filters) })
        }
        ["bite", names @ ..] => no_flags(names).map(|()| Command::Bite { names: owned(names) }),
        ["ci"] => Ok(Command::Ci { full: false }),
        ["ci", "--full"] => Ok(Command::Ci { full: true }),
        [known @ ("help" | "tidy" | "deny" | "ci"), extra, ..] => Err(format!("`{known}` does not take `{extra}`")),
        [unknown, ..] => Err(format!("unknown command `{unknown}`")),
    }
}

/// `[--pg-version N] [-- WORDS ..]`
fn on_server(command: &str, words: &[&str]) -> Result<(Option<u32>, Vec<String>), String> {
    let (version, rest) = match words {
        ["--pg-version"] => return Err(version_needed()),
        ["--pg-version", number, rest @ ..] => (Some(version(number)?), rest),
        rest => (None, rest),
    };
    match rest {
        [] => Ok((version, Vec::new())),
        ["--", words @ ..] => Ok((version, owned(words))),
        [extra, ..] => Err(format!("`{command}` does not take `{extra}`")),
    }
}

fn version(word: &str) -> Result<u32, String> {
    word.parse().ok().filter(|major| pg::versions().contains(major)).ok_or_else(version_needed)
}

fn version_needed() -> String {
    let known: Vec<String> = pg::versions().iter().map(u32::to_string).collect();
    format!("`--pg-version` needs one of {}", known.join(", "))
}

fn conformance(words: &[&str]) -> Result<Command, String> {
    let mut backend = None;
    let mut number = None;
    let mut layout = None;
    let mut filters = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--backend" if backend.is_none() => {
                backend = Some(*words.next().ok_or("`--backend` needs a name")?);
            }
            "--pg-version" if number.is_none() => {
                number = Some(version(words.next().ok_or_else(version_needed)?)?);
            }
            "--layout" if layout.is_none() => {
                let known = words.next().and_then(|word| LAYOUTS.iter().copied().find(|known| known == word));
                layout = Some(known.ok_or_else(|| format!("`--layout` needs one of {}", LAYOUTS.join(", ")))?);
            }
            flag if flag.starts_with('-') => return Err(format!("`conformance` does not take `{flag}` here")),
            filter => filters.push(filter.to_owned()),
        }
    }
    let backend = backend.ok_or("`conformance` needs `--backend`")?;
    if !BACKENDS.contains(&backend) {
        return Err(format!("unknown backend `{backend}`: one of {}", BACKENDS.join(", ")));
    }
    if number.is_some() && backend != POSTGRES {
        return Err(format!("`--pg-version` says nothing about `{backend}`"));
    }
    if layout.is_some() && backend != POSTGRES {
        return Err(format!("`--layout` says nothing about `{backend}`"));
    }
    Ok(Command::Conformance { backend: backend.to_owned(), filters, version: number, layout })
}

fn no_flags(words: &[&str]) -> Result<(), String> {
    match words.iter().find(|word| word.starts_with('-')) {
        Some(flag) => Err(format!("unknown flag `{flag}`")),
        None => Ok(()),
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Command, String> {
        parse(&owned(&line.split_whitespace().collect::<Vec<_>>()))
    }

    #[test]
    fn every_command_of_the_help_is_understood() {
        assert_eq!(read("tidy"), Ok(Command::Tidy));
        assert_eq!(read("deny"), Ok(Command::Deny));
        assert_eq!(read("help"), Ok(Command::Help));
        assert_eq!(read("ci"), Ok(Command::Ci { full: false }));
        assert_eq!(read("ci --full"), Ok(Command::Ci { full: true }));
        let args: Vec<String> = vec!["a".into(), "b".into()];
        assert_eq!(read("test"), Ok(Command::Test { version: None, args: Vec::new() }));
        assert_eq!(read("test -- a b"), Ok(Command::Test { version: None, args: args.clone() }));
        assert_eq!(read("test --pg-version 13 -- a b"), Ok(Command::Test { version: Some(13), args: args.clone() }));
        assert_eq!(read("pg"), Ok(Command::Pg { version: None, words: Vec::new() }));
        assert_eq!(read("pg --pg-version 18 -- a b"), Ok(Command::Pg { version: Some(18), words: args }));
        assert_eq!(read("migrate-check"), Ok(Command::MigrateCheck { version: None }));
        assert_eq!(read("migrate-check --pg-version 13"), Ok(Command::MigrateCheck { version: Some(13) }));
        assert_eq!(read("bite one"), Ok(Command::Bite { names: vec!["one".into()] }));
        assert_eq!(read("conformance --list"), Ok(Command::ConformanceList));
        let expected = |backend: &str, version, layout| {
            Ok(Command::Conformance { backend: backend.into(), filters: vec!["claim".into()], version, layout })
        };
        assert_eq!(read("conformance claim --backend sqlite"), expected("sqlite", None, None));
        assert_eq!(read("conformance --backend postgres --pg-version 16 claim"), expected("postgres", Some(16), None));
        assert_eq!(read("conformance --backend postgres --layout 108 claim"), expected("postgres", None, Some("108")));
    }

    #[test]
    fn what_is_not_understood_is_refused_and_named() {
        for (line, named) in [
            ("", "no command"),
            ("tidi", "`tidi`"),
            ("tidy now", "`now`"),
            ("ci --fast", "`--fast`"),
            ("migrate-check -- claim", "`claim`"),
            ("test claim", "`claim`"),
            ("bite --all", "`--all`"),
            ("interop --fast", "`--fast`"),
            ("conformance", "--backend"),
            ("conformance --backend", "needs a name"),
            ("conformance --backend oracle", "`oracle`"),
            ("conformance --backend memory --x", "`--x`"),
            ("conformance --backend memory --pg-version 15", "`memory`"),
            ("conformance --backend postgres --pg-version 12", "13, 15, 16, 17, 18"),
            ("conformance --backend memory --layout 108", "`memory`"),
            ("conformance --backend postgres --layout 100", "108, 114, inline"),
            ("conformance --backend postgres --layout", "108, 114, inline"),
            ("pg now", "`now`"),
            ("pg --pg-version", "13, 15, 16, 17, 18"),
            ("test --pg-version x", "13, 15, 16, 17, 18"),
        ] {
            let error = read(line).expect_err(line);
            assert!(error.contains(named), "{line}: {error}");
        }
    }
}
