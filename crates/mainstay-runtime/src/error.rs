//! The one error type of workflows, steps and the engine, and its recorded form.

mod engine;
mod foreign;
mod kind;
mod label;
mod record;
mod std_error;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::codec;

pub use kind::ErrorKind;
pub(crate) use label::type_label;
pub(crate) use record::ErrorTypes;
use std_error::AsStd;

/// Result of workflows, steps and calls of the engine.
///
/// ```
/// fn parse(text: &str) -> mainstay::Result<u32> {
///     Ok(text.trim().parse()?)
/// }
/// assert_eq!(parse(" 7 ").unwrap(), 7);
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure: what a step or a workflow ended with, or why the engine refused a call.
///
/// Any error of a library becomes one with `?`. It is stored as a name, a message, and an optional code and data, the
/// shape that programs in other languages read too; its source is kept until then, for predicates of retries.
/// `Display` is the message, `Debug` the name, the message and the sources beneath.
///
/// ```
/// use mainstay::{Error, ErrorKind, Result};
///
/// fn parse(text: &str) -> Result<u32> {
///     Ok(text.parse()?)
/// }
/// let error = parse("seven").unwrap_err();
/// assert_eq!((error.kind(), error.name()), (ErrorKind::App, "ParseIntError"));
/// assert!(error.is::<std::num::ParseIntError>());
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    name: String,
    message: String,
    code: Option<Value>,
    data: Option<Value>,
    source: Option<Source>,
    earlier: Vec<String>,
}

type Source = Arc<dyn StdError + Send + Sync>;

impl Error {
    /// An error of the application with a message alone; its name is `Error`.
    ///
    /// ```
    /// let error = mainstay::Error::new("the shop is closed");
    /// assert_eq!((error.name(), error.message()), ("Error", "the shop is closed"));
    /// ```
    pub fn new(message: impl Into<String>) -> Self {
        Self::named("Error", message)
    }

    /// An error of the application with a name, by which programs tell errors apart.
    ///
    /// ```
    /// let error = mainstay::Error::named("CardDeclined", "the card was declined");
    /// assert_eq!(format!("{error:?}"), "CardDeclined: the card was declined");
    /// ```
    pub fn named(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(ErrorKind::App, name.into(), message.into())
    }

    /// An error whose fields are recorded with it, so that [`Error::decode`] gives it back after a replay and to
    /// whoever awaits the workflow. Fields that cannot be encoded are left out, with a warning in the log.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Debug, PartialEq, Serialize, Deserialize)]
    /// struct Declined { reason: String }
    /// impl std::fmt::Display for Declined {
    ///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { write!(f, "declined: {}", self.reason) }
    /// }
    /// impl std::error::Error for Declined {}
    ///
    /// let error = mainstay::Error::typed(Declined { reason: "expired".into() });
    /// assert_eq!(error.decode::<Declined>(), Some(Declined { reason: "expired".into() }));
    /// ```
    pub fn typed<E>(error: E) -> Self
    where
        E: StdError + Serialize + Send + Sync + 'static,
    {
        let data = data_of(&error, std::any::type_name::<E>());
        let mut this = Self::from(error);
        this.inner().data = data;
        this
    }

    /// Takes an error whose type is not known, such as a boxed one or one of the crates that carry any error.
    ///
    /// ```
    /// fn library() -> Result<(), Box<dyn std::error::Error + Send + Sync>> { Err("no answer".into()) }
    /// fn step() -> mainstay::Result<()> { library().map_err(mainstay::Error::boxed) }
    /// assert_eq!(step().unwrap_err().message(), "no answer");
    /// ```
    pub fn boxed(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        match error.into().downcast::<AsStd>() {
            Ok(ours) => ours.0,
            Err(error) => {
                let message = error.to_string();
                let mut this = Self::new(message);
                this.inner().source = Some(Arc::from(error));
                this
            }
        }
    }

    /// What the error is about, for matching.
    ///
    /// ```
    /// use mainstay::{Error, ErrorKind};
    /// assert_eq!(Error::new("no").kind(), ErrorKind::App);
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Its name: the last part of the type it was made from, or what [`Error::named`] was given.
    ///
    /// ```
    /// let error = mainstay::Error::from("x".parse::<u8>().unwrap_err());
    /// assert_eq!(error.name(), "ParseIntError");
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its message, without name and sources.
    ///
    /// ```
    /// assert_eq!(mainstay::Error::new("no").message(), "no");
    /// ```
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Its code, a number or a text. Errors that the engine made carry `"mainstay"`.
    ///
    /// ```
    /// let error = mainstay::Error::new("no such page").with_code(404);
    /// assert_eq!(error.code(), Some(&serde_json::json!(404)));
    /// ```
    #[must_use]
    pub fn code(&self) -> Option<&Value> {
        self.0.code.as_ref()
    }

    /// Its data: what [`Error::typed`] or [`Error::with_data`] recorded.
    ///
    /// ```
    /// let error = mainstay::Error::new("sold out").with_data([7, 8]);
    /// assert_eq!(error.data(), Some(&serde_json::json!([7, 8])));
    /// ```
    #[must_use]
    pub fn data(&self) -> Option<&Value> {
        self.0.data.as_ref()
    }

    /// Sets the code: a number or a text; any other value becomes its JSON text, and null takes the code away.
    /// The error then counts as the application's own, whoever made it.
    ///
    /// ```
    /// let error = mainstay::Error::new("no such page").with_code("E404");
    /// assert_eq!(error.code(), Some(&serde_json::json!("E404")));
    /// ```
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Value>) -> Self {
        let inner = self.inner();
        inner.kind = ErrorKind::App;
        inner.code = match code.into() {
            Value::Null => None,
            code @ (Value::Number(_) | Value::String(_)) => Some(code),
            other => Some(Value::String(other.to_string())),
        };
        self
    }

    /// Sets the data. A value that cannot be encoded is left out, with a warning in the log.
    ///
    /// ```
    /// let error = mainstay::Error::new("sold out").with_data("book");
    /// assert_eq!(error.decode::<String>().as_deref(), Some("book"));
    /// ```
    #[must_use]
    pub fn with_data<T: Serialize>(mut self, data: T) -> Self {
        self.inner().data = data_of(&data, std::any::type_name::<T>());
        self
    }

    /// Reads the data back as a type; `None` when there is none or it is of another shape.
    ///
    /// ```
    /// let error = mainstay::Error::new("sold out").with_data(3);
    /// assert_eq!((error.decode::<u8>(), error.decode::<String>()), (Some(3), None));
    /// ```
    #[must_use]
    pub fn decode<E: DeserializeOwned>(&self) -> Option<E> {
        E::deserialize(self.data()?).ok()
    }

    /// The error of type `E` that this one was made from, or that lies beneath it. A recorded error has none:
    /// read it with [`Error::decode`].
    ///
    /// ```
    /// let error = mainstay::Error::from(std::io::Error::other("disk"));
    /// assert_eq!(error.downcast_ref::<std::io::Error>().unwrap().kind(), std::io::ErrorKind::Other);
    /// ```
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        self.chain().find_map(|source| source.downcast_ref::<E>())
    }

    /// Whether [`Error::downcast_ref`] finds an error of type `E`.
    ///
    /// ```
    /// let error = mainstay::Error::from(std::fmt::Error);
    /// assert!(error.is::<std::fmt::Error>() && !error.is::<std::io::Error>());
    /// ```
    #[must_use]
    pub fn is<E: StdError + 'static>(&self) -> bool {
        self.downcast_ref::<E>().is_some()
    }

    /// The error that this one was made from; `None` for one that was made from a message, or read back.
    ///
    /// ```
    /// let error = mainstay::Error::from(std::fmt::Error);
    /// assert!(error.source().is_some() && mainstay::Error::new("no").source().is_none());
    /// ```
    #[must_use]
    pub fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }

    /// What the attempts of a step before the last one failed with, oldest first, as `name: message`; at most the last 16.
    ///
    /// They are recorded with the step and not passed on by a workflow that ends with the error.
    ///
    /// ```
    /// assert!(mainstay::Error::new("the only one").earlier().is_empty());
    /// ```
    #[must_use]
    pub fn earlier(&self) -> &[String] {
        &self.0.earlier
    }

    /// The same as a standard error, for functions that return one; `?` does it too where they return a box.
    ///
    /// ```
    /// fn run() -> Result<(), Box<dyn std::error::Error>> {
    ///     Err(mainstay::Error::new("no"))?
    /// }
    /// assert_eq!(run().unwrap_err().to_string(), "no");
    /// ```
    #[must_use]
    pub fn into_std(self) -> Box<dyn StdError + Send + Sync> {
        Box::new(AsStd(self))
    }

    fn of(kind: ErrorKind, name: String, message: String) -> Self {
        Self(Arc::new(Inner { kind, name, message, code: None, data: None, source: None, earlier: Vec::new() }))
    }

    /// The error of the last attempt, with those of the ones before.
    pub(crate) fn after(mut self, earlier: Earlier) -> Self {
        self.inner().earlier = earlier.0.into();
        self
    }

    /// The same error without those of earlier attempts: what a workflow ends with is read by other languages too.
    pub(crate) fn alone(mut self) -> Self {
        if !self.0.earlier.is_empty() {
            self.inner().earlier.clear();
        }
        self
    }

    /// The fields, for a change; those of a clone stay as they are.
    fn inner(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.0)
    }

    /// The source and all beneath it.
    fn chain(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        std::iter::successors(self.source(), |error| (*error).source()).take(MAX_CHAIN)
    }
}

/// What the attempts of a step failed with so far; the latest alone, since a step may be tried for ever.
#[derive(Default)]
pub(crate) struct Earlier(VecDeque<String>);

impl Earlier {
    pub(crate) fn push(&mut self, error: &Error) {
        if self.0.len() == record::MAX_EARLIER {
            self.0.pop_front();
        }
        self.0.push_back(record::line(error.name(), error.message()));
    }
}

/// Sources that are followed: a chain that runs in a circle is a fault of its type, not to be waited for.
const MAX_CHAIN: usize = 128;

/// The data of an error, or none and a warning: an error that says less is better than none.
fn data_of<T: Serialize + ?Sized>(value: &T, type_name: &'static str) -> Option<Value> {
    match codec::encode_data(value) {
        Ok(Value::Null) => None,
        Ok(data) => Some(data),
        Err(reason) => {
            tracing::warn!(data = type_label(type_name), %reason, "the data of an error cannot be recorded");
            None
        }
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let mut this = Self::named(type_label(std::any::type_name::<E>()), error.to_string());
        this.inner().source = Some(Arc::new(error));
        this
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name() == "Error" {
            f.write_str(self.message())?;
        } else {
            write!(f, "{}: {}", self.name(), self.message())?;
        }
        let mut above = self.message().to_owned();
        for source in self.chain() {
            let text = source.to_string();
            // The first source is the error that the message was taken from.
            if text != above {
                write!(f, "\n  caused by: {text}")?;
                above = text;
            }
        }
        Ok(())
    }
}
