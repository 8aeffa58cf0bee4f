//! Errors as programs in other languages store them.

use serde_json::{Map, Value};

use super::record::MAX_EARLIER;

/// What is known of a stored error.
pub(super) struct Form {
    pub(super) name: String,
    pub(super) message: String,
    pub(super) code: Option<Value>,
    pub(super) data: Option<Value>,
    /// Errors of earlier attempts, which only our own steps record.
    pub(super) earlier: Vec<String>,
}

/// Name of an error whose text names none.
const UNNAMED: &str = "Error";

/// Reads the portable object, or one of the shapes that other languages use for themselves; any other text is the
/// message as it is.
pub(super) fn read(text: &str) -> Form {
    let form = match serde_json::from_str(text) {
        Ok(Value::Object(object)) => portable(object).or_else(|object| nested(object).ok_or(())).ok(),
        Ok(Value::String(message)) => Some(bare(message)),
        _ => None,
    };
    form.unwrap_or_else(|| bare(text.to_owned()))
}

/// Reads a variant of an enum: its name, and its fields as data. The one that carries an application's own error is what
/// it carries.
pub(super) fn read_variant(text: &str) -> Form {
    const OWN: &str = "Application";
    let (name, fields) = match serde_json::from_str(text) {
        Ok(Value::String(variant)) => return Form { name: variant.clone(), ..bare(variant) },
        Ok(Value::Object(object)) if object.len() == 1 => match object.into_iter().next() {
            Some(variant) => variant,
            None => return bare(text.to_owned()),
        },
        _ => return read(text),
    };
    if name != OWN {
        return Form { message: format!("{name}: {fields}"), name, data: Some(fields), ..bare(String::new()) };
    }
    match fields {
        Value::String(message) => bare(message),
        Value::Object(object) => portable(object).unwrap_or_else(|object| own(Value::Object(object))),
        other => own(other),
    }
}

/// An application's error without a message: its JSON says what it is.
fn own(data: Value) -> Form {
    Form { message: data.to_string(), data: Some(data), ..bare(String::new()) }
}

fn bare(message: String) -> Form {
    Form { name: UNNAMED.to_owned(), message, code: None, data: None, earlier: Vec::new() }
}

/// `{"name", "message", "code"?, "data"?}`, in any order, each of them possibly null but the message.
fn portable(mut object: Map<String, Value>) -> Result<Form, Map<String, Value>> {
    if !object.get("message").is_some_and(Value::is_string) {
        return Err(object);
    }
    let name = text(&mut object, "name").or_else(|| text(&mut object, "type"));
    Ok(Form {
        name: name.filter(|name| !name.is_empty()).unwrap_or_else(|| UNNAMED.to_owned()),
        message: text(&mut object, "message").unwrap_or_default(),
        code: object.remove("code"),
        data: object.remove("data"),
        earlier: texts(object.remove("earlier")),
    })
}

/// The object that a typed JSON of JavaScript wraps: `{"json": {..}, "meta": ..}`.
fn nested(mut object: Map<String, Value>) -> Option<Form> {
    match object.remove("json") {
        Some(Value::Object(inner)) => portable(inner).ok(),
        _ => None,
    }
}

fn texts(list: Option<Value>) -> Vec<String> {
    match list {
        Some(Value::Array(list)) => {
            list.into_iter().filter_map(|line| line.as_str().map(str::to_owned)).take(MAX_EARLIER).collect()
        }
        _ => Vec::new(),
    }
}

fn text(object: &mut Map<String, Value>, key: &str) -> Option<String> {
    match object.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}
