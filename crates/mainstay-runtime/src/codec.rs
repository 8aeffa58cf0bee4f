//! Values to stored JSON and back: what would be read back differently is refused when it is written.

mod bare;
mod check;
mod fragment;
mod named;
mod place;
mod reading;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use mainstay_store::Payload;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use check::{Item, Walk};

pub use named::{Codec, CodecPart};
pub(crate) use named::{Codecs, RUST_SERDE, unknown};

/// Arrays and objects within each other that `serde_json` reads back; one more is an error of its reader.
pub(crate) const MAX_DEPTH: u16 = 127;
/// An argument lies in the list of an object.
const ARGUMENT_DEPTH: u16 = 2;
/// The data of an error lies in an object.
const DATA_DEPTH: u16 = 1;

/// Which integers may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// All of them: they are exact for us and for most languages.
    #[default]
    Exact,
    /// Those alone that JavaScript reads exactly: within ±(2^53 − 1).
    Portable,
}

/// Why a value cannot be written: where in it, and what is wrong there; never the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncodeError(String);

/// Why a stored value cannot be read as a type: the type, the place and what is wrong there; never the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecodeError(String);

/// Encodes a value.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Payload, EncodeError> {
    encode_with(value, Strictness::Exact)
}

/// Encodes a value under a rule for integers.
pub(crate) fn encode_with<T: Serialize + ?Sized>(value: &T, strictness: Strictness) -> Result<Payload, EncodeError> {
    let walk = Walk::new(strictness);
    walk.finish(serde_json::to_string(&Item::root(value, &walk, 0))).map(Payload::from)
}

/// Encodes a value and reads it back, as a body sees it: one that its own type cannot read is refused, not stored.
pub(crate) fn round_trip<T>(value: &T, strictness: Strictness) -> Result<(Payload, T), EncodeError>
where
    T: Serialize + DeserializeOwned,
{
    let payload = encode_with(value, strictness)?;
    match decode(&payload) {
        Ok(read) => Ok((payload, read)),
        Err(error) => Err(EncodeError(format!("what is written is not read back: {error}"))),
    }
}

/// Encodes one argument.
pub(crate) fn encode_raw<T: Serialize + ?Sized>(value: &T) -> Result<Box<RawValue>, EncodeError> {
    let walk = Walk::new(Strictness::Exact);
    walk.finish(serde_json::value::to_raw_value(&Item::root(value, &walk, ARGUMENT_DEPTH)))
}

/// A value as the data of an error.
pub(crate) fn encode_data<T: Serialize + ?Sized>(value: &T) -> Result<Value, EncodeError> {
    let walk = Walk::new(Strictness::Exact);
    walk.finish(serde_json::to_value(Item::root(value, &walk, DATA_DEPTH)))
}

/// Refuses the data or the code of an error when JavaScript would not read all its integers exactly.
pub(crate) fn check_portable_data(value: &Value) -> Result<(), EncodeError> {
    let walk = Walk::new(Strictness::Portable);
    walk.finish(serde_json::to_value(Item::root(value, &walk, DATA_DEPTH))).map(drop)
}

/// Refuses what is encoded already, such as an envelope, when JavaScript would not read all its integers exactly.
pub(crate) fn check_portable(payload: &Payload) -> Result<(), EncodeError> {
    fragment::check(payload.as_str(), 0, Strictness::Portable).map_err(EncodeError)
}

/// Decodes a stored value.
pub(crate) fn decode<T: DeserializeOwned>(payload: &Payload) -> Result<T, DecodeError> {
    decode_text(payload.as_str())
}

/// Decodes a piece of a stored value.
pub(crate) fn decode_text<T: DeserializeOwned>(text: &str) -> Result<T, DecodeError> {
    serde_json::from_str(text).map_err(|error| DecodeError(reading::explain::<T>(text, &error)))
}

/// The stored form of arguments: an object with positional and named ones, both always, as every language of the schema
/// reads it.
pub(crate) fn envelope(args: &[Box<RawValue>], named: &BTreeMap<String, Box<RawValue>>) -> Result<Payload> {
    let unencodable = |error: serde_json::Error| Error::bug(format!("arguments cannot be written: {error}"));
    let envelope = Envelope { positional: args, named };
    serde_json::to_string(&envelope).map(Payload::from).map_err(unencodable)
}

#[derive(Serialize)]
struct Envelope<'a> {
    #[serde(rename = "positionalArgs")]
    positional: &'a [Box<RawValue>],
    #[serde(rename = "namedArgs")]
    named: &'a BTreeMap<String, Box<RawValue>>,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EncodeError {}
impl std::error::Error for DecodeError {}
