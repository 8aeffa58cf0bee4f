//! What was said about a connection, by its address and by the environment, checked key by key.

use std::collections::BTreeMap;
use std::str::FromStr;

use mainstay_store::FieldError;

use super::Secret;
use super::environment::Environment;
use super::keys::{self, KEYS, Key, Support};
use super::text;

/// Most characters of an unknown key that is named in an error: what is longer is no key.
const LONGEST_KEY: usize = 32;

/// The variable by which libpq was told to use TLS before there were modes.
const REQUIRE_TLS: &str = "PGREQUIRESSL";

#[derive(Debug)]
struct Said {
    value: Secret,
    /// The name by which an error calls it: `url.port` or `PGPORT`.
    by: String,
}

/// Values by key.
#[derive(Debug)]
pub(crate) struct Given(BTreeMap<&'static str, Said>);

impl Given {
    /// Reads an address and, for what it does not say, the variables.
    pub(crate) fn read(address: &Secret, environment: &Environment) -> Result<Self, FieldError> {
        let mut given = BTreeMap::new();
        let mut before = String::new();
        for (name, value) in text::pairs(address.reveal())? {
            let Some(key) = keys::find(&name) else {
                return Err(unknown(&name, &before));
            };
            put(&mut given, key, Said { value, by: format!("url.{name}") })?;
            before = name;
        }
        for key in KEYS.iter().filter(|key| !key.variable.is_empty()) {
            if given.contains_key(key.name) {
                continue;
            }
            if let Some(value) = environment.variable(key.variable)? {
                put(&mut given, key, Said { value: Secret::new(value), by: key.variable.into() })?;
            }
        }
        // The old name: what begins with a 1 asks for TLS where no mode is said.
        if !given.contains_key("sslmode") && environment.variable(REQUIRE_TLS)?.is_some_and(|on| on.starts_with('1')) {
            given.insert("sslmode", Said { value: Secret::new("require".into()), by: REQUIRE_TLS.into() });
        }
        Ok(Self(given))
    }

    /// The value of a key, when it is there and not empty: of a name, a place or a file libpq takes an empty one for none.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.written(key).filter(|value| !value.is_empty())
    }

    /// The same as it was written. An empty word or number is wrong: taken for none, it would undo what was asked elsewhere.
    fn written(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|said| said.value.reveal())
    }

    /// The same in pieces at commas, each without white space around; none when it was not said.
    pub(crate) fn list(&self, key: &str) -> Vec<&str> {
        self.get(key).map_or_else(Vec::new, |list| list.split(',').map(str::trim).collect())
    }

    /// The same as a number.
    pub(crate) fn number<T: FromStr>(&self, key: &str) -> Result<Option<T>, FieldError> {
        let parse = |text: &str| text.trim().parse().map_err(|_| self.wrong(key, "is not a number that it may have"));
        self.written(key).map(parse).transpose()
    }

    /// The same as one of a few words.
    pub(crate) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, FieldError> {
        let Some(said) = self.written(key) else { return Ok(None) };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == said) {
            return Ok(Some(*meaning));
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Err(self.wrong(key, format!("must be one of {}", known.join(", "))))
    }

    /// An error about a key, under the name of where it came from.
    pub(crate) fn wrong(&self, key: &str, detail: impl Into<String>) -> FieldError {
        FieldError::new(self.0.get(key).map_or_else(|| format!("url.{key}"), |said| said.by.clone()), detail)
    }
}

fn put(given: &mut BTreeMap<&'static str, Said>, key: &Key, said: Said) -> Result<(), FieldError> {
    match key.support {
        Support::Refused(why) if !said.value.reveal().is_empty() => return Err(FieldError::new(said.by, why)),
        Support::Refused(_) | Support::Ignored => return Ok(()),
        Support::Read => {}
    }
    if said.value.reveal().contains('\0') {
        return Err(FieldError::new(said.by, "contains a NUL character"));
    }
    given.insert(key.name, said);
    Ok(())
}

/// An unknown key, named when it looks like one and cannot be the end of a password with spaces in it.
fn unknown(name: &str, before: &str) -> FieldError {
    let is_key = name.len() <= LONGEST_KEY && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    if is_key && before != "password" && !name.is_empty() {
        FieldError::new(format!("url.{name}"), "is not a key of libpq")
    } else {
        FieldError::new("url", "has a key that libpq does not have; a value with spaces must stand in single quotes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: &str, variables: &[(&str, &str)]) -> Result<Given, FieldError> {
        Given::read(&Secret::new(address.into()), &Environment::of(variables.iter().copied()))
    }

    #[test]
    fn what_the_address_says_stands_before_the_environment() {
        let variables = [("PGPORT", "7"), ("PGHOST", "env"), ("PGUSER", "")];
        let given = read("postgres://u@h/d", &variables).expect("read");
        assert_eq!((given.get("host"), given.get("port"), given.get("user")), (Some("h"), Some("7"), Some("u")));
        let given = read("", &variables).expect("read");
        assert_eq!((given.get("host"), given.get("user")), (Some("env"), None));
    }

    #[test]
    fn the_last_of_two_values_stands() {
        assert_eq!(read("host=a host=b", &[]).expect("read").get("host"), Some("b"));
    }

    #[test]
    fn each_unsupported_key_is_refused_by_its_name_and_ignored_ones_are_not() {
        for key in KEYS {
            let address = format!("{}=1", key.name);
            match key.support {
                Support::Refused(why) => {
                    let error = read(&address, &[]).expect_err(key.name);
                    assert_eq!((error.field, error.detail), (format!("url.{}", key.name), why.to_owned()));
                    if !key.variable.is_empty() {
                        let error = read("", &[(key.variable, "1")]).expect_err(key.variable);
                        assert_eq!(error.field, key.variable);
                    }
                }
                Support::Ignored => assert_eq!(read(&address, &[]).expect(key.name).get(key.name), None),
                Support::Read => assert_eq!(read(&address, &[]).expect(key.name).get(key.name), Some("1")),
            }
        }
    }

    #[test]
    fn an_unknown_key_is_named_only_where_it_cannot_be_part_of_a_password() {
        assert_eq!(read("postgres:///d?sslmod=require", &[]).expect_err("unknown").field, "url.sslmod");
        for address in ["host=h CANARY=1", "password=my canary=7 host=h", "postgres:///d?CANARY-7f3a=1"] {
            assert_eq!(read(address, &[]).expect_err(address).field, "url");
        }
    }

    #[test]
    fn words_and_numbers_are_checked_without_showing_them() {
        let given = read("connect_timeout=CANARY", &[("PGSSLMODE", "CANARY")]).expect("read");
        let number = given.number::<i32>("connect_timeout").expect_err("no number");
        let word = given.word("sslmode", &[("a", 1), ("b", 2)]).expect_err("no word");
        assert_eq!(number.to_string(), "url.connect_timeout: is not a number that it may have");
        assert_eq!(word.to_string(), "PGSSLMODE: must be one of a, b");
    }
}
