//! Inputs as other Rust programs store them: the one parameter as bare JSON, and none as null.

use mainstay_store::Payload;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::named::RUST_SERDE;
use crate::error::{Error, Result};

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "positionalArgs", borrow)]
    positional: Vec<&'a RawValue>,
    #[serde(rename = "namedArgs")]
    named: serde_json::Map<String, serde_json::Value>,
}

/// The bare form of an envelope of ours. Errors: `BadInput` for several arguments and for named ones.
pub(super) fn input(envelope: &Payload) -> Result<Payload> {
    let read: Envelope<'_> = serde_json::from_str(envelope.as_str())
        .map_err(|error| Error::bug(format!("an envelope of ours is not readable: {error}")))?;
    match (read.positional.as_slice(), read.named.is_empty()) {
        ([], true) => Ok("null".into()),
        ([one], true) => Ok(one.get().into()),
        (several, _) => {
            let count = several.len() + read.named.len();
            Err(Error::bad_input(format!("{RUST_SERDE} carries one positional argument, {count} are given or named")))
        }
    }
}
