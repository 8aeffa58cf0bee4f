//! Places inside a value, as `items[3].price`.

use std::fmt::Write as _;

/// Longest key that a path shows; a longer one is data rather than a name.
const MAX_KEY: usize = 40;

/// One turn on the way into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// A field or a key, by its name.
    Key(String),
    /// A key whose name is not told.
    SomeKey,
    /// A place in a list, from 0.
    Index(usize),
}

/// Writes a path; the top of the value is the empty one.
pub(super) fn written(turns: &[Turn]) -> String {
    let mut path = String::new();
    for turn in turns {
        match turn {
            Turn::Key(key) if is_name(key) => {
                let dot = if path.is_empty() { "" } else { "." };
                let _ = write!(path, "{dot}{key}");
            }
            Turn::Key(_) | Turn::SomeKey => path.push_str("[key]"),
            Turn::Index(index) => {
                let _ = write!(path, "[{index}]");
            }
        }
    }
    path
}

/// Whether a key reads like a name: others may be data, which stays out of messages.
pub(super) fn is_name(key: &str) -> bool {
    let plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    plain && !key.is_empty() && key.len() <= MAX_KEY
}

/// The path to where a reader of JSON stood; `line` from 1 and `column` in bytes, as `serde_json` counts them.
pub(super) fn at(text: &str, line: usize, column: usize) -> Vec<Turn> {
    let mut levels: Vec<Option<Turn>> = Vec::new();
    let mut scan = Scan { bytes: &text.as_bytes()[..offset(text, line, column)], next: 0 };
    let mut word = None;
    while let Some(byte) = scan.take() {
        match byte {
            b'"' => word = scan.string(),
            b':' => {
                if let Some(level) = levels.last_mut() {
                    *level = Some(word.take().map_or(Turn::SomeKey, Turn::Key));
                }
            }
            b'[' => levels.push(Some(Turn::Index(0))),
            b'{' => levels.push(None),
            b']' | b'}' => {
                levels.pop();
            }
            b',' => match levels.last_mut() {
                Some(Some(Turn::Index(index))) => *index += 1,
                Some(level) => *level = None,
                None => {}
            },
            _ => {}
        }
    }
    levels.into_iter().flatten().collect()
}

/// Bytes of the text before a line and a column.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column).min(text.len())
}

struct Scan<'a> {
    bytes: &'a [u8],
    next: usize,
}

impl Scan<'_> {
    fn take(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.next).copied();
        self.next += 1;
        byte
    }

    /// The rest of a string whose quote has been taken, where it has an end and no escapes.
    fn string(&mut self) -> Option<String> {
        let start = self.next;
        let mut plain = true;
        while let Some(byte) = self.take() {
            match byte {
                b'\\' => {
                    plain = false;
                    self.next += 1;
                }
                b'"' if plain => {
                    return std::str::from_utf8(&self.bytes[start..self.next - 1]).ok().map(str::to_owned);
                }
                b'"' => return None,
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str, line: usize, column: usize) -> String {
        written(&at(text, line, column))
    }

    #[test]
    fn a_place_is_found_from_line_and_column() {
        let text = "{\"items\": [\n {\"price\": 1},\n {\"price\": true}\n]}";
        assert_eq!(path(text, 3, 15), "items[1].price");
        assert_eq!(path(text, 3, 16), "items[1]");
        assert_eq!(path(text, 2, 12), "items[0].price");
        assert_eq!(path(text, 9, 9), "");
    }

    #[test]
    fn brackets_commas_and_quotes_inside_strings_are_text() {
        let text = r#"{"a":"]},:\"{[","b":[0,{"c":1}]}"#;
        assert_eq!(path(text, 1, text.len() - 3), "b[1].c");
    }

    #[test]
    fn a_key_that_does_not_read_like_a_name_is_not_shown() {
        assert_eq!(path(r#"{"my secret":1}"#, 1, 14), "[key]");
        assert_eq!(path(r#"{"a\u0062":1}"#, 1, 12), "[key]");
        assert_eq!(path(&format!(r#"{{"{}":1}}"#, "k".repeat(41)), 1, 46), "[key]");
        assert_eq!(path(r#"{"a":{"b":1}}"#, 1, 10), "a.b");
    }

    #[test]
    fn text_that_is_no_json_and_positions_outside_it_give_some_path() {
        for text in ["", "]]}}", "\"", "{\"\\", ":,:", "é:é", "{{{"] {
            for column in 0..10 {
                let _ = path(text, 1, column);
                let _ = path(text, 3, column);
            }
        }
        assert_eq!(path("]]}}[", 1, 5), "[0]");
    }
}
