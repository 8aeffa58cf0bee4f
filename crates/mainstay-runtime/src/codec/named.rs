//! Codecs by name: what a row's label says of its texts, and codecs that a program brings along.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use mainstay_store::{Bounds, CodecName, Payload, StepResult, wire};

use super::DecodeError;
use super::bare;
use crate::error::{Error, ErrorTypes, Result};

/// The codec of rows that another Rust program wrote: bare JSON of values and of the one parameter.
pub(crate) const RUST_SERDE: &str = "rust_serde";
/// Codecs of other languages for themselves: what they write as text says more than its name.
const FOREIGN: &[&str] = &["py_pickle", "js_superjson", "js_legacy", "DBOS_JSON", "DBOS_GOB", "java_jackson"];

/// What a text is that a [`Codec`] is given.
///
/// ```
/// use mainstay::{CodecPart, Result};
///
/// fn sealed(part: CodecPart, json: &str) -> Result<String> {
///     Ok(if part == CodecPart::Error { json.to_owned() } else { json.chars().rev().collect() })
/// }
/// assert_eq!(sealed(CodecPart::Value, "12").unwrap(), "21");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodecPart {
    /// The arguments of a workflow: `{"positionalArgs": [..], "namedArgs": {..}}`.
    Input,
    /// The result of a workflow or step.
    Value,
    /// An error: `{"name": .., "message": .., "code": .., "data": ..}`.
    Error,
}

/// A stored form of one's own, such as a compressed or encrypted one, for all that rows carry of a workflow: inputs,
/// results, errors and steps. [`Builder::codec`](crate::Builder::codec) makes rows with its name readable,
/// [`Builder::write_with`](crate::Builder::write_with) makes the engine write with it.
///
/// It is given the JSON that would be stored without it. `decode` must give back what `encode` was given.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// use mainstay::{Codec, CodecPart};
///
/// struct Reversed;
/// impl Codec for Reversed {
///     fn name(&self) -> &str { "reversed" }
///     fn encode(&self, _part: CodecPart, json: &str) -> Result<String> { Ok(json.chars().rev().collect()) }
///     fn decode(&self, _part: CodecPart, text: &str) -> Result<String> { Ok(text.chars().rev().collect()) }
/// }
/// # #[workflow]
/// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> { Ok(2 * number) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let builder = Engine::builder(mainstay::memory()).app("shop").codec(Reversed).write_with("reversed");
/// let engine = builder.register(double).launch().await?;
/// let handle = engine.start(double(4)).await?;
/// assert_eq!(handle.result().await?, 8);
/// assert_eq!(handle.row().await?.codec.unwrap(), "reversed");
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
pub trait Codec: Send + Sync + 'static {
    /// The label of its rows: at most 512 bytes, and none that an SDK of the shared schema has taken.
    fn name(&self) -> &str;

    /// The stored form of JSON text. It may not contain NUL characters.
    ///
    /// # Errors
    /// Whatever stands in the way: the call that wanted to store the value fails with it.
    fn encode(&self, part: CodecPart, json: &str) -> Result<String>;

    /// The JSON text of a stored form.
    ///
    /// # Errors
    /// Whatever stands in the way: what reads the value fails with it.
    fn decode(&self, part: CodecPart, text: &str) -> Result<String>;
}

/// The codecs that an engine knows, and the one that it writes with.
#[derive(Clone, Default)]
pub(crate) struct Codecs {
    known: BTreeMap<CodecName, Arc<dyn Codec>>,
    writes: Option<CodecName>,
}

impl Codecs {
    /// Adds one. Errors: `Refused` for a name that is taken or that no row can carry.
    pub(crate) fn add(&mut self, codec: Arc<dyn Codec>) -> Result<()> {
        let name = codec.name();
        Bounds::default().name("codec", name).map_err(|error| Error::refused(error.to_string()))?;
        if [wire::PORTABLE_JSON, RUST_SERDE].contains(&name) || FOREIGN.contains(&name) {
            return Err(Error::refused(format!("codec {name:?}: the name belongs to an sdk of the shared schema")));
        }
        if self.known.insert(name.into(), codec.clone()).is_some() {
            return Err(Error::refused(format!("codec {name:?} is registered twice")));
        }
        Ok(())
    }

    /// Chooses what the engine writes with. Errors: `Refused` when it is not known.
    pub(crate) fn write_with(&mut self, name: CodecName) -> Result<()> {
        self.check(&name)?;
        self.writes = Some(name);
        Ok(())
    }

    /// Whether texts of this name can be written here. Errors: `Refused`.
    pub(crate) fn check(&self, name: &CodecName) -> Result<()> {
        if self.known.contains_key(name) || [wire::PORTABLE_JSON, RUST_SERDE].contains(&name.as_str()) {
            return Ok(());
        }
        Err(Error::refused(format!("codec {name:?} is not known here: add it with `.codec(..)`")))
    }

    /// What the engine writes with.
    pub(crate) fn own(&self) -> CodecName {
        self.writes.clone().unwrap_or_else(|| wire::PORTABLE_JSON.into())
    }

    /// The stored form of JSON under a row's label. A label that is not known here cannot be served: its rows end in an
    /// error, which is left readable.
    pub(crate) fn stored(&self, label: Option<&CodecName>, part: CodecPart, json: Payload) -> Result<Payload> {
        let Some(label) = label else { return Ok(json) };
        if label.as_str() == RUST_SERDE && part == CodecPart::Input {
            return bare::input(&json);
        }
        let Some(codec) = self.known.get(label) else { return Ok(json) };
        let failed = |error: Error| Error::bad_output(format!("codec {label:?}: {}", error.message()));
        let text = codec.encode(part, json.as_str()).map_err(failed)?;
        // What a replay reads is what the body saw.
        if codec.decode(part, &text).map_err(failed)? != json.as_str() {
            return Err(Error::bad_output(format!("codec {label:?} does not give back what it was given")));
        }
        Ok(text.into())
    }

    /// The stored form of an error, which there always is: as it stands where the codec fails.
    pub(crate) fn stored_error(&self, label: Option<&CodecName>, json: Payload) -> Payload {
        self.stored(label, CodecPart::Error, json.clone()).unwrap_or(json)
    }

    /// The input of a row as JSON, and the label that it has then. Errors: `BadInput`.
    pub(crate) fn input(
        &self,
        stored: Option<Payload>,
        label: Option<CodecName>,
    ) -> Result<(Option<Payload>, Option<CodecName>)> {
        let (Some(payload), Some(name)) = (&stored, &label) else { return Ok((stored, label)) };
        let Some(codec) = self.known.get(name) else { return Ok((stored, label)) };
        match codec.decode(CodecPart::Input, payload.as_str()) {
            Ok(json) => Ok((Some(json.into()), Some(wire::PORTABLE_JSON.into()))),
            Err(error) => Err(Error::bad_input(format!("codec {name:?} cannot read the input: {}", error.message()))),
        }
    }

    /// A value as JSON.
    pub(crate) fn value(&self, stored: &Payload, label: Option<&CodecName>) -> Result<Payload, DecodeError> {
        match label.map_or("", CodecName::as_str) {
            "" | wire::PORTABLE_JSON | RUST_SERDE => Ok(stored.clone()),
            name => match self.known.get(name) {
                None => Err(DecodeError(unknown(name))),
                Some(codec) => codec
                    .decode(CodecPart::Value, stored.as_str())
                    .map(Payload::from)
                    .map_err(|error| DecodeError(format!("codec {name:?}: {}", error.message()))),
            },
        }
    }

    /// A stored error; there is always one: a text that nobody can read is named by its codec.
    pub(crate) fn error(&self, stored: &Payload, label: Option<&CodecName>) -> Error {
        match label.map_or("", CodecName::as_str) {
            "" | wire::PORTABLE_JSON => Error::recorded(stored),
            RUST_SERDE => Error::recorded_by_variant(stored),
            name => match self.known.get(name).map(|codec| codec.decode(CodecPart::Error, stored.as_str())) {
                Some(Ok(json)) => Error::recorded(&json.into()),
                Some(Err(error)) => Error::new(format!("codec {name:?} cannot read the error: {}", error.message())),
                // Some languages write errors as JSON, which says something to anybody.
                None if stored.as_str().starts_with('{') => Error::recorded(stored),
                None => Error::new(format!("an error that is {}", unknown(name))),
            },
        }
    }

    /// A recorded form in portable JSON.
    pub(crate) fn plain(&self, result: &StepResult, label: Option<&CodecName>) -> Result<StepResult, DecodeError> {
        Ok(match result {
            StepResult::Nothing => StepResult::Nothing,
            StepResult::Value(stored) => StepResult::Value(self.value(stored, label)?),
            StepResult::Failure(stored) if label.is_none_or(|name| name.as_str() == wire::PORTABLE_JSON) => {
                StepResult::Failure(stored.clone())
            }
            StepResult::Failure(stored) => {
                StepResult::Failure(self.error(stored, label).record(&ErrorTypes::default()))
            }
        })
    }
}

/// What is said of a text whose codec is not known.
pub(crate) fn unknown(name: &str) -> String {
    let whose =
        if FOREIGN.contains(&name) { "which other languages keep to themselves" } else { "which is not known here" };
    format!("encoded as {name:?}, {whose}")
}

impl fmt::Debug for Codecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codecs").field("known", &self.known.keys()).field("writes", &self.writes).finish()
    }
}
