//! Bytes into messages: a tag, a length that counts itself, a body. The first message of a client has no tag.

use super::message::Kind;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A longer message is a line that is out of step: no test sends one.
const LIMIT: usize = 1 << 30;

/// Gathers bytes and gives whole messages with a tag.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    from: usize,
}

impl Frames {
    /// Where the next bytes are read to, behind what is not yet a whole message.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        self.bytes.drain(..self.from);
        self.from = 0;
        &mut self.bytes
    }

    /// The next whole message, tag and length included. Errors: an impossible length.
    pub(crate) fn take(&mut self) -> std::io::Result<Option<&[u8]>> {
        let rest = &self.bytes[self.from..];
        let Some(head) = rest.get(..5) else { return Ok(None) };
        let length = 1 + length(&head[1..])?;
        if rest.len() < length {
            return Ok(None);
        }
        let begin = self.from;
        self.from += length;
        Ok(Some(&self.bytes[begin..self.from]))
    }
}

/// The length at the head of a message; it counts its own four bytes.
pub(crate) fn length(head: &[u8]) -> std::io::Result<usize> {
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
    if !(4..=LIMIT).contains(&length) {
        return Err(std::io::Error::other(format!("a message of {length} bytes")));
    }
    Ok(length)
}

/// What a first message is, by the code after its length.
pub(crate) fn first_kind(message: &[u8]) -> Kind {
    let code = message.get(4..8).map(|code| u32::from_be_bytes([code[0], code[1], code[2], code[3]]));
    match code {
        Some(80_877_102) => Kind::CancelRequest,
        Some(80_877_103 | 80_877_104) => Kind::EncryptionRequest,
        _ => Kind::Startup,
    }
}

/// What a session has prepared and bound, so that an Execute can be named by its statement.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    statements: BTreeMap<Vec<u8>, Arc<str>>,
    portals: BTreeMap<Vec<u8>, Arc<str>>,
}

impl Prepared {
    /// Notes a message of the client and returns its kind and its statement.
    pub(crate) fn note(&mut self, message: &[u8]) -> (Kind, Option<Arc<str>>) {
        let kind = Kind::of_tag(message[0]);
        let mut words = message[5..].split(|byte| *byte == 0);
        let mut word = || words.next().unwrap_or_default();
        let sql = match kind {
            Kind::Query => Some(text(word())),
            Kind::Parse => {
                let (name, sql) = (word().to_vec(), text(word()));
                self.statements.insert(name, Arc::clone(&sql));
                Some(sql)
            }
            Kind::Bind => {
                let portal = word().to_vec();
                let sql = self.statements.get(word()).cloned();
                self.portals.extend(sql.clone().map(|sql| (portal, sql)));
                sql
            }
            Kind::Execute => self.portals.get(word()).cloned(),
            Kind::Close => {
                self.close(word());
                None
            }
            _ => None,
        };
        (kind, sql)
    }

    /// `S` or `P`, then the name.
    fn close(&mut self, what: &[u8]) {
        match what.split_first() {
            Some((b'S', name)) => drop(self.statements.remove(name)),
            Some((_, name)) => drop(self.portals.remove(name)),
            None => {}
        }
    }
}

fn text(bytes: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).expect("short");
        [&[tag][..], &length.to_be_bytes(), body].concat()
    }

    #[test]
    fn messages_are_whole_however_the_bytes_arrive() {
        let all = [message(b'Q', b"SELECT 1\0"), message(b'S', b""), message(b'X', b"")].concat();
        for step in 1..all.len() {
            let mut frames = Frames::default();
            let mut seen = Vec::new();
            for chunk in all.chunks(step) {
                frames.room().extend_from_slice(chunk);
                while let Some(frame) = frames.take().expect("lengths") {
                    seen.push(frame.to_vec());
                }
            }
            assert_eq!(seen.concat(), all, "in steps of {step}");
            assert_eq!(seen.len(), 3);
        }
    }

    #[test]
    fn a_length_below_its_own_size_is_an_error() {
        let mut frames = Frames::default();
        frames.room().extend_from_slice(&[b'Q', 0, 0, 0, 3]);
        assert!(frames.take().is_err());
    }

    #[test]
    fn an_execute_is_named_by_the_statement_that_its_portal_binds() {
        let mut prepared = Prepared::default();
        prepared.note(&message(b'P', b"s1\0COMMIT\0\0\0"));
        prepared.note(&message(b'P', b"s2\0SELECT 1\0\0\0"));
        assert_eq!(prepared.note(&message(b'B', b"\0s1\0")).1.as_deref(), Some("COMMIT"));
        assert_eq!(prepared.note(&message(b'E', b"\0\0\0\0\0")), (Kind::Execute, Some("COMMIT".into())));
        prepared.note(&message(b'B', b"p\0s2\0"));
        assert_eq!(prepared.note(&message(b'E', b"p\0\0\0\0\0")).1.as_deref(), Some("SELECT 1"));
        prepared.note(&message(b'C', b"Ss2\0"));
        assert_eq!(prepared.note(&message(b'B', b"p\0s2\0")).1, None);
    }

    #[test]
    fn a_first_message_is_told_by_its_code() {
        let first = |code: u32| first_kind(&[&8_u32.to_be_bytes()[..], &code.to_be_bytes()].concat());
        assert_eq!(first(196_608), Kind::Startup);
        assert_eq!(first(80_877_103), Kind::EncryptionRequest);
        assert_eq!(first(80_877_102), Kind::CancelRequest);
    }
}
