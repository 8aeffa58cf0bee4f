//! The command line: words in, one `Command` out. Anything that is not understood is an error.

/// What `cargo xtask help` prints.
pub(crate) const HELP: &str = "\
usage: cargo xtask <command>

  test [-- ARGS]                      every test that needs no server, then the doctests;
                                      ARGS go to the test runner (filters), without doctests
  conformance --backend NAME [FILTER ..]
                                      the conformance suite of one backend: memory, sqlite
  tidy                                the rules of the tree that no other tool checks
  deny                                licences, bans and sources of the dependencies
  bite [NAME ..]                      break the code with each patch of xtask/bites and demand red tests
  ci [--full]                         fmt, clippy, tidy, deny, docs and tests against their time limits;
                                      --full adds the long runs and bite
  help                                this text";

/// The backends that have a conformance binary, by the name that the command line gives them.
pub(crate) const BACKENDS: &[&str] = &["memory", "sqlite"];

/// One understood command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Tidy,
    Deny,
    Test { args: Vec<String> },
    Conformance { backend: String, filters: Vec<String> },
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
        ["test"] => Ok(Command::Test { args: Vec::new() }),
        ["test", "--", rest @ ..] => Ok(Command::Test { args: owned(rest) }),
        ["conformance", rest @ ..] => conformance(rest),
        ["bite", names @ ..] => no_flags(names).map(|()| Command::Bite { names: owned(names) }),
        ["ci"] => Ok(Command::Ci { full: false }),
        ["ci", "--full"] => Ok(Command::Ci { full: true }),
        [known @ ("help" | "tidy" | "deny" | "test" | "ci"), extra, ..] => {
            Err(format!("`{known}` does not take `{extra}`"))
        }
        [unknown, ..] => Err(format!("unknown command `{unknown}`")),
    }
}

fn conformance(words: &[&str]) -> Result<Command, String> {
    let mut backend = None;
    let mut filters = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--backend" if backend.is_none() => {
                backend = Some(*words.next().ok_or("`--backend` needs a name")?);
            }
            flag if flag.starts_with('-') => return Err(format!("`conformance` does not take `{flag}` here")),
            filter => filters.push(filter.to_owned()),
        }
    }
    let backend = backend.ok_or("`conformance` needs `--backend`")?;
    if !BACKENDS.contains(&backend) {
        return Err(format!("unknown backend `{backend}`: one of {}", BACKENDS.join(", ")));
    }
    Ok(Command::Conformance { backend: backend.to_owned(), filters })
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
        assert_eq!(read("test -- a b"), Ok(Command::Test { args: vec!["a".into(), "b".into()] }));
        assert_eq!(read("bite one"), Ok(Command::Bite { names: vec!["one".into()] }));
        let expected = Command::Conformance { backend: "sqlite".into(), filters: vec!["claim".into()] };
        assert_eq!(read("conformance claim --backend sqlite"), Ok(expected));
    }

    #[test]
    fn what_is_not_understood_is_refused_and_named() {
        for (line, named) in [
            ("", "no command"),
            ("tidi", "`tidi`"),
            ("tidy now", "`now`"),
            ("ci --fast", "`--fast`"),
            ("test claim", "`claim`"),
            ("bite --all", "`--all`"),
            ("conformance", "--backend"),
            ("conformance --backend", "needs a name"),
            ("conformance --backend oracle", "`oracle`"),
            ("conformance --backend memory --x", "`--x`"),
        ] {
            let error = read(line).expect_err(line);
            assert!(error.contains(named), "{line}: {error}");
        }
    }
}
