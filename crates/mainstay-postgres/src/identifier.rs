//! Names of schemas, checked and quoted in one place: the only text that is ever built into a statement.

use std::fmt;

use mainstay_store::FieldError;

/// Most bytes of a name: PostgreSQL cuts longer ones off without a word.
const MOST: usize = 63;

/// The checked name of a schema.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Schema {
    name: String,
    quoted: String,
}

impl Schema {
    /// Checks a name: 1 to 63 bytes without control characters, and none of the server's own. A line break would end a
    /// comment that the name stands in.
    pub(crate) fn new(field: &str, name: &str) -> Result<Self, FieldError> {
        let refuse = |detail: String| Err(FieldError::new(field, detail));
        if name.is_empty() {
            return refuse("is empty".into());
        }
        if name.contains('\0') {
            return refuse("contains a NUL character".into());
        }
        if let Some(control) = name.chars().find(|char| char.is_control()) {
            return refuse(format!("contains the control character {control:?}"));
        }
        if name.len() > MOST {
            return refuse(format!("has {} bytes, at most {MOST} are allowed", name.len()));
        }
        if name.starts_with("pg_") || name == "information_schema" {
            return refuse("is a schema of the server itself".into());
        }
        Ok(Self { name: name.into(), quoted: quote(name) })
    }

    /// The name as it was given.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The name as it stands in a statement.
    pub(crate) fn quoted(&self) -> &str {
        &self.quoted
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// An identifier in a statement.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in a statement that takes no parameters, such as NOTIFY or CREATE DATABASE.
pub(crate) fn literal(text: &str) -> String {
    let escaped = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", escaped.replace('\\', "\\\\")) } else { format!("'{escaped}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_quoted_and_impossible_ones_refused() {
        for (name, quoted) in [
            ("dbos", r#""dbos""#),
            ("My-Schema", r#""My-Schema""#),
            ("user", r#""user""#),
            ("1abc", r#""1abc""#),
            ("schéma", r#""schéma""#),
            (r#"a"b c"#, r#""a""b c""#),
        ] {
            assert_eq!(Schema::new("schema", name).expect(name).quoted(), quoted);
        }
        assert!(Schema::new("schema", &"x".repeat(63)).is_ok());
        for (name, rule) in [
            ("", "empty"),
            ("a\0", "NUL"),
            ("\n;DROP TABLE public.victim;--", "control character '\\n'"),
            ("a\r", "control character"),
            ("a\u{85}", "control character"),
            ("pg_x", "server"),
            ("information_schema", "server"),
            (&"x".repeat(64), "64 bytes"),
            (&"é".repeat(32), "64 bytes"),
        ] {
            let error = Schema::new("schema", name).expect_err(rule);
            assert!(error.field == "schema" && error.detail.contains(rule), "{error}");
        }
    }

    #[test]
    fn a_literal_is_one_text_whatever_it_holds() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal(r"a\'b"), r"E'a\\''b'");
    }
}
