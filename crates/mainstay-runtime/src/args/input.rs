//! A row's input taken apart: which text belongs to which parameter.

use std::collections::BTreeMap;

use mainstay_store::{CodecName, Payload, wire};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::codec::{self, RUST_SERDE, unknown};
use crate::error::{Error, Result};

const NO_ENVELOPE: &str = "the input is no object of positionalArgs and namedArgs";

/// What is stored for the parameters of one function.
pub(super) struct Input<'a> {
    params: &'static [&'static str],
    positional: Vec<&'a RawValue>,
    named: BTreeMap<String, &'a RawValue>,
}

/// Either key may be absent or null, and the order varies with the writer.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "positionalArgs", borrow, default)]
    positional: Option<Vec<&'a RawValue>>,
    #[serde(rename = "namedArgs", borrow, default)]
    named: Option<BTreeMap<String, &'a RawValue>>,
}

/// A parameter in a message, by name where it has one, from 1 where not.
pub(super) fn parameter(params: &[&str], index: usize) -> String {
    match params.get(index) {
        Some(name) => format!("parameter `{name}`"),
        None => format!("parameter {}", index + 1),
    }
}

impl<'a> Input<'a> {
    /// Takes an input apart by the codec that its row names.
    pub(super) fn read(
        params: &'static [&'static str],
        arity: usize,
        input: Option<&'a Payload>,
        codec: Option<&CodecName>,
    ) -> Result<Self> {
        let codec = codec.map_or(wire::PORTABLE_JSON, CodecName::as_str);
        let text = input.map(Payload::as_str);
        let (positional, named) = match (text, codec) {
            (None, _) => (Vec::new(), BTreeMap::new()),
            (Some(text), wire::PORTABLE_JSON | "") => {
                // Serde would read the fields from a list too.
                if text.trim_start().starts_with('[') {
                    return Err(Error::bad_input(NO_ENVELOPE));
                }
                let envelope: Envelope<'a> = parse(text)?;
                (envelope.positional.unwrap_or_default(), envelope.named.unwrap_or_default())
            }
            (Some(text), RUST_SERDE) => (bare(text, arity)?, BTreeMap::new()),
            (Some(_), other) => {
                return Err(Error::bad_input(format!("the input is {}", unknown(other))));
            }
        };
        if positional.len() > arity {
            let given = positional.len();
            return Err(Error::bad_input(format!("{given} positional arguments for {}", listed(params, arity))));
        }
        Ok(Self { params, positional, named })
    }

    /// Decodes the argument for one parameter.
    pub(super) fn take<T: DeserializeOwned>(&mut self, index: usize) -> Result<T> {
        let name = self.params.get(index);
        let named = name.and_then(|name| self.named.remove(*name));
        let raw = match (self.positional.get(index).copied(), named) {
            (Some(_), Some(_)) => return Err(self.fault(index, "is given twice, by position and by name")),
            (Some(raw), None) | (None, Some(raw)) => raw,
            (None, None) => return Err(self.fault(index, "is missing")),
        };
        codec::decode_text(raw.get()).map_err(|error| self.fault(index, format!("is {error}")))
    }

    /// Refuses what no parameter took.
    pub(super) fn finish(self) -> Result<()> {
        match self.named.keys().next() {
            Some(name) => Err(Error::bad_input(format!("there is no parameter `{}`", shown(name)))),
            None => Ok(()),
        }
    }

    fn fault(&self, index: usize, what: impl std::fmt::Display) -> Error {
        Error::bad_input(format!("{} {what}", parameter(self.params, index)))
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|error| Error::bad_input(format!("{NO_ENVELOPE} (line {}, column {})", error.line(), error.column())))
}

/// One parameter is the whole text, several are its parts, and none is null.
fn bare(text: &str, arity: usize) -> Result<Vec<&RawValue>> {
    match arity {
        0 if text.trim() == "null" => Ok(Vec::new()),
        0 | 1 => Ok(vec![parse(text)?]),
        _ => parse(text),
    }
}

/// The parameters of a function, for a message.
fn listed(params: &[&str], arity: usize) -> String {
    match (arity, params) {
        (0, _) => "a function without parameters".to_owned(),
        (_, []) => format!("a function with {arity}"),
        _ => format!("the parameters {}", params.join(", ")),
    }
}

/// A name that a caller gave, cut to what a message bears.
fn shown(name: &str) -> &str {
    &name[..name.floor_char_boundary(40)]
}
