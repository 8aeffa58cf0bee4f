//! Sizes and characters that a store accepts, checked before anything is sent to a database.

use serde::{Deserialize, Serialize};

use super::{AppName, Payload};
use crate::error::FieldError;

/// Sizes that a store accepts, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bounds {
    /// Ids, names and keys; a longer one may not fit an index entry of a database.
    pub name_bytes: usize,
    /// One payload.
    pub payload_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { name_bytes: Self::NAME_BYTES, payload_bytes: Self::PAYLOAD_BYTES }
    }
}

impl Bounds {
    /// Most bytes of an id, a name or a key.
    pub const NAME_BYTES: usize = 512;
    /// Most bytes of a token: some databases of the shared schema hold it in a column of 40 characters.
    pub const TOKEN_BYTES: usize = 40;
    /// Most bytes of a class and of a configured instance: the shared schema holds them in columns of 255 characters.
    pub const CLASS_BYTES: usize = 255;
    /// Most bytes of one payload, unless set otherwise: 16 MiB.
    pub const PAYLOAD_BYTES: u64 = 16 << 20;

    /// The same with another payload cap.
    #[must_use]
    pub const fn payload_bytes(mut self, bytes: u64) -> Self {
        self.payload_bytes = bytes;
        self
    }

    /// Checks an id, a name or a key: not empty, no NUL character, not too long.
    ///
    /// # Errors
    /// Names `field` and the rule that was broken.
    pub fn name(&self, field: &str, text: &str) -> Result<(), FieldError> {
        let detail = match text {
            "" => "is empty".to_owned(),
            text if text.contains('\0') => "contains a NUL character".to_owned(),
            text if text.len() > self.name_bytes => {
                format!("has {} bytes, at most {} are allowed", text.len(), self.name_bytes)
            }
            _ => return Ok(()),
        };
        Err(FieldError::new(field, detail))
    }

    /// Checks a name that may be missing.
    ///
    /// # Errors
    /// As [`Bounds::name`].
    pub fn name_if<T: AsRef<str>>(&self, field: &str, text: Option<&T>) -> Result<(), FieldError> {
        text.map_or(Ok(()), |text| self.name(field, text.as_ref()))
    }

    /// Checks the application and what it owns by name: `field` is the name's, that of the application is `app`.
    ///
    /// # Errors
    /// As [`Bounds::name`], the application first.
    pub fn owned(&self, app: &AppName, field: &str, name: &str) -> Result<(), FieldError> {
        self.name("app", app.as_str())?;
        self.name(field, name)
    }

    /// Checks a token: as a name, and at most 40 bytes.
    ///
    /// # Errors
    /// Names `field` and the rule that was broken.
    pub fn token(&self, field: &str, text: &str) -> Result<(), FieldError> {
        Self { name_bytes: Self::TOKEN_BYTES, ..*self }.name(field, text)
    }

    /// Checks a class or a configured instance that may be missing: as a name, and at most 255 bytes.
    ///
    /// # Errors
    /// Names `field` and the rule that was broken.
    pub fn class_if<T: AsRef<str>>(&self, field: &str, text: Option<&T>) -> Result<(), FieldError> {
        Self { name_bytes: Self::CLASS_BYTES, ..*self }.name_if(field, text)
    }

    /// Checks a payload: no NUL character (an escaped one is text like any other), not too long.
    ///
    /// # Errors
    /// Names `field` and the rule that was broken.
    pub fn payload(&self, field: &str, payload: &Payload) -> Result<(), FieldError> {
        if payload.as_str().contains('\0') {
            return Err(FieldError::new(field, "contains a NUL character"));
        }
        if payload.bytes() > self.payload_bytes {
            let detail = format!("has {} bytes, at most {} are allowed", payload.bytes(), self.payload_bytes);
            return Err(FieldError::new(field, detail));
        }
        Ok(())
    }

    /// Most digits after the point of a number in attributes: a JSON column keeps numbers as PostgreSQL's `numeric` does.
    pub const DIGITS: i64 = 16_383;

    /// Checks attributes: a JSON object without what no JSON column can hold: NUL characters, escaped ones included, and
    /// numbers of more than 16,383 digits after the point.
    ///
    /// # Errors
    /// Names `field` and the rule that was broken.
    pub fn attributes(&self, field: &str, payload: &Payload) -> Result<(), FieldError> {
        self.payload(field, payload)?;
        match serde_json::from_str::<serde_json::Value>(payload.as_str()) {
            Ok(value @ serde_json::Value::Object(_)) if holds_nul(&value) => {
                Err(FieldError::new(field, "contains a NUL character"))
            }
            Ok(serde_json::Value::Object(_)) if numbers(payload.as_str()).any(is_too_fine) => {
                let detail = format!("has a number of more than {} digits after the point", Self::DIGITS);
                Err(FieldError::new(field, detail))
            }
            Ok(serde_json::Value::Object(_)) => Ok(()),
            _ => Err(FieldError::new(field, "is not a json object")),
        }
    }
}

fn holds_nul(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::String(text) => text.contains('\0'),
        serde_json::Value::Array(list) => list.iter().any(holds_nul),
        serde_json::Value::Object(map) => map.iter().any(|(key, value)| key.contains('\0') || holds_nul(value)),
        _ => false,
    }
}

/// The numbers of a valid JSON text as they are written: parsed ones have lost their digits.
fn numbers(json: &str) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    let parts = json.split(move |found: char| {
        let ends = if quoted { found == '"' && !escaped } else { found == '"' };
        escaped = quoted && found == '\\' && !escaped;
        quoted ^= ends;
        quoted || !matches!(found, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')
    });
    // What is left of the words `true` and `false` begins with a letter.
    parts.filter(|part| part.starts_with(|first: char| first == '-' || first.is_ascii_digit()))
}

/// Whether a number has more digits after the point than a column of `numeric` keeps, those of a zero included.
fn is_too_fine(number: &str) -> bool {
    let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let fraction = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let fraction = i64::try_from(fraction).unwrap_or(i64::MAX);
    // One that does not fit in 64 bits is out of every range.
    exponent
        .parse::<i64>()
        .map_or(true, |exponent| exponent > Bounds::DIGITS || fraction.saturating_sub(exponent) > Bounds::DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_in_bytes_and_free_of_nul() {
        let bounds = Bounds::default();
        assert!(bounds.name("id", &"x".repeat(512)).is_ok());
        for (text, rule) in [("", "empty"), ("a\0b", "NUL"), (&"é".repeat(257), "514 bytes")] {
            let error = bounds.name("id", text).expect_err(rule);
            assert!(error.field == "id" && error.detail.contains(rule), "{error}");
        }
        let owned = bounds.owned(&"".into(), "name", "").expect_err("two empty names");
        assert_eq!(owned.field, "app");
        assert!(bounds.token("token", &"t".repeat(41)).is_err());
        assert!(bounds.class_if("class", Some(&"c".repeat(255))).is_ok());
        let error = bounds.class_if("class", Some(&"c".repeat(256))).expect_err("too long");
        assert!(error.detail.contains("at most 255"), "{error}");
    }

    #[test]
    fn an_escaped_nul_passes_in_a_payload_and_not_in_attributes() {
        let bounds = Bounds::default().payload_bytes(64);
        assert!(bounds.payload("p", &r#""a\u0000""#.into()).is_ok());
        assert!(bounds.payload("p", &"a\0".into()).is_err());
        assert!(bounds.payload("p", &"x".repeat(65).into()).is_err());
        assert!(bounds.attributes("a", &r#"{"k":"v"}"#.into()).is_ok());
        for bad in [r#"{"k":"a\u0000"}"#, r#"{"k\u0000":1}"#, "[1]", "not json"] {
            assert!(bounds.attributes("a", &bad.into()).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_of_attributes_are_as_fine_as_a_numeric_column_keeps() {
        let text = r#"{"1": [-1.5E+3, true, 0], "\"2\"": false, "e": {"x": "3\\", "y": 4e-1}}"#;
        let found: Vec<&str> = numbers(text).collect();
        assert_eq!(found, ["-1.5E+3", "0", "4e-1"]);
        for fine in ["0", "-1.5", "1e-16383", "1.5e-16382", "1e308", "0.5e16383"] {
            assert!(!is_too_fine(fine), "{fine}");
        }
        for too_fine in ["1e-16384", "-1.5E-16383", "0e-20000", "1e-99999999999999999999", "0e16384"] {
            assert!(is_too_fine(too_fine), "{too_fine}");
        }
        let error = Bounds::default().attributes("a", &r#"{"k":[1e-20000]}"#.into()).expect_err("too fine");
        assert!(error.detail.contains("16383 digits"), "{error}");
    }
}
