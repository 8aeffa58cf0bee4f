//! Messages about stored text that a type cannot read: type, place and reason, and nothing of the text itself.

use serde_json::error::Category;

use super::place;
use crate::error::type_label;

/// Longest part of a message that a type's description of itself may take.
const MAX_EXPECTED: usize = 300;

/// Says why `text` is no `T`.
pub(super) fn explain<T>(text: &str, error: &serde_json::Error) -> String {
    let label = type_label(std::any::type_name::<T>());
    let (line, column) = (error.line(), error.column());
    let path = place::written(&place::at(text, line, column));
    let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
    let full = error.to_string();
    let message = full.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&full);
    let reason = match error.classify() {
        Category::Data => shortened(&reason(message)),
        // The reader's own fixed texts about broken JSON.
        Category::Syntax | Category::Eof | Category::Io => message.to_owned(),
    };
    // A reason that serde found in what it had buffered comes without a position.
    let position = if line == 0 { String::new() } else { format!(" (line {line}, column {column})") };
    format!("not readable as {label}: {place}{reason}{position}")
}

/// The part of a message of serde that names types and fields, without the values.
fn reason(message: &str) -> String {
    const FIXED: &[&str] = &[
        "missing field `",
        "duplicate field `",
        "invalid length ",
        "data did not match any variant of untagged enum ",
    ];
    const LISTS: &[(&str, &str)] = &[("unknown field `", "unknown field"), ("unknown variant `", "unknown variant")];
    const FOUND: &[(&str, &str)] = &[("invalid type: ", ""), ("invalid value: ", "unacceptable ")];
    if FIXED.iter().any(|start| message.starts_with(start)) {
        return message.to_owned();
    }
    for (start, name) in LISTS {
        if let Some(rest) = message.strip_prefix(start) {
            return with_tail(name, rest, "`, ", &["expected ", "there are no "]);
        }
    }
    for (start, quality) in FOUND {
        if let Some(rest) = message.strip_prefix(start) {
            return with_tail(&format!("{quality}{}", kind(rest)), rest, ", ", &["expected "]);
        }
    }
    "refused by the type's own check".to_owned()
}

/// `head`, and what the type expects: the part after the last separator that is followed by one of `starts`.
fn with_tail(head: &str, rest: &str, separator: &str, starts: &[&str]) -> String {
    let tails = rest.rmatch_indices(separator).map(|(at, _)| &rest[at + separator.len()..]);
    let tail = tails.into_iter().find(|tail| starts.iter().any(|start| tail.starts_with(start)));
    tail.map_or_else(|| head.to_owned(), |tail| format!("{head}, {tail}"))
}

/// What was found instead, by kind; serde writes the value behind it.
fn kind(found: &str) -> &'static str {
    const KINDS: &[(&str, &str)] = &[
        ("boolean `", "boolean"),
        ("integer `", "integer"),
        ("floating point `", "number with a fraction"),
        ("character `", "character"),
        ("string \"", "string"),
        ("byte array", "bytes"),
        ("null", "null"),
        ("unit value", "null"),
        ("Option value", "optional value"),
        ("sequence", "list"),
        ("map", "object"),
        ("enum", "enum"),
        ("unit variant", "variant without a value"),
        ("newtype variant", "variant with a value"),
        ("tuple variant", "variant with a list"),
        ("struct variant", "variant with fields"),
    ];
    KINDS.iter().find(|(start, _)| found.starts_with(start)).map_or("value", |(_, kind)| kind)
}

fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_EXPECTED)].to_owned()
}
