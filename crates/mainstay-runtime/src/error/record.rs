//! The recorded form of errors: the portable object of name, message, code and data.

use std::error::Error as StdError;
use std::fmt;

use mainstay_store::Payload;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Error, ErrorKind, data_of, engine, foreign};
use crate::codec;

/// Most bytes of a recorded message, and of recorded data: an error is read by people and in listings, and one that
/// carries a whole document must not make its row unwritable.
pub(super) const MAX_BYTES: usize = 64 << 10;
/// Errors of earlier attempts that are recorded: the latest, which say what the end was like.
pub(super) const MAX_EARLIER: usize = 16;
/// Most bytes of one of them.
const MAX_LINE: usize = 1024;
/// Most bytes of a name or of a text code.
const MAX_NAME: usize = 512;
/// Room for the note that says what was cut.
const NOTE_BYTES: usize = 64;

/// The error types whose fields are recorded although `?` made the error.
#[derive(Clone, Default)]
pub(crate) struct ErrorTypes(Vec<Capture>);

/// The data of an error, when it is of the type: the inner option is `None` when it cannot be encoded.
type Capture = fn(&(dyn StdError + 'static)) -> Option<Option<Value>>;

impl ErrorTypes {
    /// Adds a type.
    pub(crate) fn register<E: StdError + Serialize + 'static>(&mut self) {
        self.0.push(capture::<E>);
    }

    /// The data of the outermost error that is of a registered type.
    fn capture(&self, error: &Error) -> Option<Value> {
        error.chain().find_map(|source| self.0.iter().find_map(|capture| capture(source))).flatten()
    }
}

fn capture<E: StdError + Serialize + 'static>(source: &(dyn StdError + 'static)) -> Option<Option<Value>> {
    source.downcast_ref::<E>().map(|error| data_of(error, std::any::type_name::<E>()))
}

impl fmt::Debug for ErrorTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ErrorTypes({})", self.0.len())
    }
}

impl Error {
    /// The form in which it is stored; what is too long is cut, so that there is always one.
    pub(crate) fn record(&self, types: &ErrorTypes) -> Payload {
        let code = match self.code() {
            Some(Value::String(text)) => Value::from(cut(text, MAX_NAME)),
            Some(code) => code.clone(),
            None => Value::Null,
        };
        let data = self.data().cloned().or_else(|| types.capture(self)).unwrap_or_default();
        let bytes = data.to_string().len();
        let (message, data) = if bytes > MAX_BYTES {
            let message = cut(self.message(), MAX_BYTES - NOTE_BYTES);
            (format!("{message} (its data of {bytes} bytes is left out)"), Value::Null)
        } else {
            (cut(self.message(), MAX_BYTES), data)
        };
        let mut form = json!({ "name": cut(self.name(), MAX_NAME), "message": message, "code": code, "data": data });
        if !self.earlier().is_empty() {
            form["earlier"] = json!(self.earlier());
        }
        Payload::from(form.to_string())
    }

    /// The error that is stored in place of this one when JavaScript would round an integer of its code or its data: as a
    /// result that cannot be written, it names what it stands for.
    pub(crate) fn unportable(&self, types: &ErrorTypes) -> Option<Self> {
        let captured = if self.data().is_none() { types.capture(self) } else { None };
        let parts = [("code", self.code()), ("data", self.data().or(captured.as_ref()))];
        let refused = |(part, value): (_, Option<&Value>)| Some((part, codec::check_portable_data(value?).err()?));
        let (part, reason) = parts.into_iter().find_map(refused)?;
        let own = line(self.name(), self.message());
        let mut this =
            Self::bad_output(format!("the {part} of an error cannot be stored: {reason} (the error: {own})"));
        this.inner().earlier.clone_from(&self.0.earlier);
        Some(this)
    }

    /// Reads a stored error, whoever wrote it; what is no error object becomes the message.
    pub(crate) fn recorded(payload: &Payload) -> Self {
        Self::formed(foreign::read(payload.as_str()))
    }

    /// Reads an error that another Rust program stored: a variant of an enum around its fields.
    pub(crate) fn recorded_by_variant(payload: &Payload) -> Self {
        Self::formed(foreign::read_variant(payload.as_str()))
    }

    fn formed(form: foreign::Form) -> Self {
        let code = form.code.filter(|code| code.is_number() || code.is_string());
        let made = code.as_ref().is_some_and(|code| code == engine::CODE);
        let kind = if made { ErrorKind::named(&form.name).unwrap_or(ErrorKind::App) } else { ErrorKind::App };
        let mut this = Self::of(kind, form.name, form.message);
        let inner = this.inner();
        inner.code = code;
        inner.data = form.data.filter(|data| !data.is_null());
        inner.earlier = form.earlier;
        this
    }
}

/// One error of an earlier attempt.
pub(super) fn line(name: &str, message: &str) -> String {
    cut(&format!("{name}: {message}"), MAX_LINE)
}

/// The start of a text that is too long, and how long it was; `most` bytes in all, so that it is cut once.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}… (cut from {} bytes)", &text[..text.floor_char_boundary(most - NOTE_BYTES)], text.len())
}
