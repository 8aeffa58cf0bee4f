//! Counting a text as it streams by: bytes, lines, words, and the commonest words.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// How many of the commonest words are kept.
const COMMONEST: usize = 20;

/// Bytes of a word that are looked at, so that a file without a space does not enter the store as one word. A longer word
/// counts as what it begins with, followed by [`CUT`].
const WORD: usize = 256;

/// Ends a word that was cut.
const CUT: char = '…';

/// A word and how often it stands in the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Common {
    /// In lower case.
    pub(crate) word: String,
    /// How often.
    pub(crate) count: u64,
}

/// What a text has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Its length.
    pub(crate) bytes: u64,
    /// Lines; a last one without its end counts.
    pub(crate) lines: u64,
    /// What stands between white space.
    pub(crate) words: u64,
    /// The commonest words, the most frequent first, equals in the order of the words.
    pub(crate) commonest: Vec<Common>,
}

/// A text is not UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotUtf8 {
    /// First byte that does not belong, from 0.
    pub(crate) offset: u64,
}

impl fmt::Display for NotUtf8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not UTF-8 at byte {}", self.offset)
    }
}

impl std::error::Error for NotUtf8 {}

/// Counts a text that comes in pieces, wherever it is cut. Memory: its different words.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    bytes: u64,
    lines: u64,
    words: u64,
    seen: HashMap<String, u64>,
    /// The beginning of a character whose rest has not come.
    partial: Vec<u8>,
    /// The word that may go on.
    word: String,
    is_cut: bool,
    line_is_open: bool,
}

impl Counter {
    /// Takes the next piece.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Result<(), NotUtf8> {
        let joined;
        let text = if self.partial.is_empty() {
            piece
        } else {
            joined = [std::mem::take(&mut self.partial).as_slice(), piece].concat();
            &joined
        };
        match std::str::from_utf8(text) {
            Ok(text) => self.text(text),
            Err(error) => {
                let (valid, rest) = text.split_at(error.valid_up_to());
                self.text(std::str::from_utf8(valid).unwrap_or_default());
                if error.error_len().is_some() {
                    return Err(NotUtf8 { offset: self.bytes });
                }
                self.partial = rest.to_vec();
            }
        }
        Ok(())
    }

    /// Ends the text.
    pub(crate) fn finish(mut self) -> Result<Counts, NotUtf8> {
        if !self.partial.is_empty() {
            return Err(NotUtf8 { offset: self.bytes });
        }
        self.end_word();
        let mut all: Vec<Common> = self.seen.into_iter().map(|(word, count)| Common { word, count }).collect();
        all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.word.cmp(&b.word)));
        all.truncate(COMMONEST);
        let lines = self.lines + u64::from(self.line_is_open);
        Ok(Counts { bytes: self.bytes, lines, words: self.words, commonest: all })
    }

    fn text(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.lines += text.bytes().filter(|byte| *byte == b'\n').count() as u64;
        self.line_is_open = text.bytes().next_back().map_or(self.line_is_open, |last| last != b'\n');
        let mut pieces = text.split(char::is_whitespace);
        self.go_on(pieces.next().unwrap_or_default());
        for piece in pieces {
            self.end_word();
            self.go_on(piece);
        }
    }

    fn go_on(&mut self, piece: &str) {
        let room = piece.floor_char_boundary(WORD.saturating_sub(self.word.len()));
        let room = if self.is_cut { 0 } else { room };
        self.is_cut |= room < piece.len();
        self.word.push_str(&piece[..room]);
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let mut word = self.word.to_lowercase();
        if self.is_cut {
            word.push(CUT);
        }
        self.words += 1;
        *self.seen.entry(word).or_default() += 1;
        self.word.clear();
        self.is_cut = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(pieces: &[&[u8]]) -> Result<Counts, NotUtf8> {
        let mut counter = Counter::default();
        pieces.iter().try_for_each(|piece| counter.feed(piece))?;
        counter.finish()
    }

    fn whole(text: &str) -> Counts {
        count(&[text.as_bytes()]).expect("text")
    }

    fn common(counts: &Counts) -> Vec<(&str, u64)> {
        counts.commonest.iter().map(|common| (common.word.as_str(), common.count)).collect()
    }

    #[test]
    fn bytes_lines_and_words_are_those_of_the_text() {
        for (text, bytes, lines, words) in [
            ("", 0, 0, 0),
            ("\n", 1, 1, 0),
            ("a", 1, 1, 1),
            ("a\n", 2, 1, 1),
            ("a\nb", 3, 2, 2),
            ("  a \t b\r\n\n", 10, 2, 2),
            ("größe\u{3000}名前", 16, 1, 2),
        ] {
            let counts = whole(text);
            assert_eq!((counts.bytes, counts.lines, counts.words), (bytes, lines, words), "{text:?}");
        }
    }

    #[test]
    fn the_commonest_words_come_first_and_equals_in_order() {
        let counts = whole("b A a c B\nÄ ä ä");
        assert_eq!(common(&counts), [("ä", 3), ("a", 2), ("b", 2), ("c", 1)]);
    }

    #[test]
    fn twenty_words_are_kept() {
        let text: Vec<String> = (0..30).map(|n| format!("w{n:02}")).collect();
        let counts = whole(&text.join(" "));
        assert_eq!((counts.words, counts.commonest.len()), (30, 20));
        assert_eq!(counts.commonest[19].word, "w19");
    }

    #[test]
    fn a_text_counts_the_same_wherever_it_is_cut() {
        let text = "Größe a\u{2003}b 名前\n\nzwei  Wörter😀 a\n";
        let counts = whole(text);
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let bytes = text.as_bytes();
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(count(&pieces).as_ref(), Ok(&counts), "{first} {second}");
            }
        }
    }

    #[test]
    fn what_is_no_text_is_reported_at_its_first_byte() {
        for (pieces, offset) in [
            (vec![&b"ab\xFFc"[..]], 2),
            (vec![b"\x80"], 0),
            (vec![b"a\xE2", b"\x82x"], 1),
            (vec![b"ok \xE2\x82"], 3),
            (vec![b"a", b"b\xC3"], 2),
        ] {
            assert_eq!(count(&pieces), Err(NotUtf8 { offset }), "{pieces:?}");
        }
        assert_eq!(NotUtf8 { offset: 3 }.to_string(), "not UTF-8 at byte 3");
    }

    #[test]
    fn an_endless_word_counts_by_its_beginning() {
        let (long, longer) = ("x".repeat(WORD), "x".repeat(5_000));
        let counts = whole(&format!("{long} {longer} {longer}y"));
        assert_eq!(counts.words, 3);
        assert_eq!(common(&counts), [(format!("{long}…").as_str(), 2), (&long, 1)]);
        let split = count(&[longer.as_bytes(), longer.as_bytes(), b" z"]).expect("text");
        assert_eq!(split.commonest.iter().map(|common| common.word.len()).max(), Some(WORD + CUT.len_utf8()));
        let wide = whole(&"ä".repeat(1_000));
        assert_eq!(wide.commonest[0].word, format!("{}…", "ä".repeat(WORD / 2)));
    }
}
