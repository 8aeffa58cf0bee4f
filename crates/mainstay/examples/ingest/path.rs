//! Paths as text without loss, so that any name can stand in a workflow's arguments, in JSON and on a terminal.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A path as text: a backslash, a control character and every byte that is no UTF-8 stand as `\xNN`, byte by byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PathText(String);

impl PathText {
    /// Spells a path.
    pub(crate) fn of(path: &Path) -> Self {
        let mut text = String::new();
        for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
            for letter in chunk.valid().chars() {
                if letter == '\\' || letter.is_control() {
                    escape(&mut text, letter.encode_utf8(&mut [0; 4]).as_bytes());
                } else {
                    text.push(letter);
                }
            }
            escape(&mut text, chunk.invalid());
        }
        Self(text)
    }

    /// The path that was spelled. A backslash that begins no escape stands for itself.
    pub(crate) fn to_path(&self) -> PathBuf {
        let mut bytes = Vec::with_capacity(self.0.len());
        let mut rest = self.0.as_bytes();
        while let Some((&first, after)) = rest.split_first() {
            match escaped(rest) {
                Some((byte, after)) => {
                    bytes.push(byte);
                    rest = after;
                }
                None => {
                    bytes.push(first);
                    rest = after;
                }
            }
        }
        os_string(bytes).into()
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PathText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn escape(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(&format!("\\x{byte:02X}"));
    }
}

/// The byte of an escape at the beginning of the text, and what follows it.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let digits = text.strip_prefix(b"\\x")?.get(..2)?;
    let byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    Some((byte, &text[4..]))
}

#[cfg(unix)]
fn os_string(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

/// Where names are no bytes, one that is not Unicode is replaced, and its file is then reported as missing.
#[cfg(not(unix))]
fn os_string(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_letters_is_spelled_as_it_is() {
        for name in ["a/b c.txt", "größe/名前", "a~b%20+x"] {
            assert_eq!(PathText::of(Path::new(name)).as_str(), name);
        }
    }

    #[cfg(unix)]
    #[test]
    fn any_bytes_come_back_and_look_harmless() {
        for name in [&b"a\xFFb"[..], b"line\nbreak", b"back\\slash", b"\\x41", b"\\", b"\xE2\x82", b"\x1B[31m"] {
            let path = PathBuf::from(os_string(name.to_vec()));
            let text = PathText::of(&path);
            assert_eq!(text.to_path(), path, "{text}");
            assert!(!text.as_str().chars().any(char::is_control), "{text}");
        }
        assert_eq!(PathText::of(&PathBuf::from(os_string(b"a\xFF".to_vec()))).as_str(), "a\\xFF");
    }

    #[cfg(unix)]
    #[test]
    fn different_names_are_spelled_differently() {
        let names = [&b"\xFF"[..], b"\\xFF", b"\\\\xFF", b"\xEF\xBF\xBD"];
        let texts: std::collections::BTreeSet<_> =
            names.iter().map(|name| PathText::of(&PathBuf::from(os_string(name.to_vec())))).collect();
        assert_eq!(texts.len(), names.len());
    }
}
