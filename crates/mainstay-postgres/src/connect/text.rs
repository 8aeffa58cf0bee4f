//! Splits an address into keys and values by libpq's rules, for both of its forms. No error holds a part of the address.

use mainstay_store::FieldError;

use super::Secret;

/// A key as it was written, and its value.
pub(crate) type Pair = (String, Secret);

const ENCODE: &str = "a character such as @ : / ? # in a user, password or name must be percent-encoded";

/// Reads a URL or a `key=value` text.
pub(crate) fn pairs(text: &str) -> Result<Vec<Pair>, FieldError> {
    match ["postgresql://", "postgres://"].iter().find_map(|scheme| text.strip_prefix(scheme)) {
        Some(rest) => url(rest),
        None if names_a_scheme(text) => refuse("must begin with postgres:// or postgresql://, or be key=value pairs"),
        None => dsn(text),
    }
}

fn refuse<T>(detail: impl Into<String>) -> Result<T, FieldError> {
    Err(FieldError::new("url", detail))
}

/// Whether a text is a URL of something else: `scheme://` before the first `=`.
fn names_a_scheme(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| !scheme.contains('='))
}

/// `[user[:password]@][host[:port]][,..][/dbname][?key=value[&..]]`
fn url(text: &str) -> Result<Vec<Pair>, FieldError> {
    let mut pairs = Vec::new();
    let mut put = |key: &str, value: &str| -> Result<(), FieldError> {
        if !value.is_empty() {
            pairs.push((key.to_owned(), decoded(value)?));
        }
        Ok(())
    };
    let mut rest = text;
    if let Some(at) = text.find(['@', '/']).filter(|&at| text[at..].starts_with('@')) {
        let (user, password) = text[..at].split_once(':').unwrap_or((&text[..at], ""));
        put("user", user)?;
        put("password", password)?;
        rest = &text[at + 1..];
    }
    let (hosts, ports, after) = netlocs(rest)?;
    put("host", &hosts)?;
    put("port", &ports)?;
    let (name, query) = after.split_once('?').unwrap_or((after, ""));
    put("dbname", name.strip_prefix('/').unwrap_or(name))?;
    query_pairs(query, &mut pairs)?;
    Ok(pairs)
}

/// The hosts and the ports, each joined by commas, and what follows them. Several hosts without ports have ports that are not
/// said, which stand before a variable's.
fn netlocs(text: &str) -> Result<(String, String, &str), FieldError> {
    let (mut hosts, mut ports, mut rest) = (Vec::new(), Vec::new(), text);
    loop {
        let host;
        if let Some(inner) = rest.strip_prefix('[') {
            let Some((address, after)) = inner.split_once(']') else {
                return refuse("an IPv6 address has no closing bracket");
            };
            if address.is_empty() {
                return refuse("an IPv6 address is empty");
            }
            if !after.is_empty() && !after.starts_with([':', '/', '?', ',']) {
                return refuse(format!("an IPv6 address must be followed by : / ? or a comma; {ENCODE}"));
            }
            (host, rest) = (address, after);
        } else {
            (host, rest) = rest.split_at(rest.find([':', '/', '?', ',']).unwrap_or(rest.len()));
        }
        hosts.push(host);
        let mut port = "";
        if let Some(after) = rest.strip_prefix(':') {
            (port, rest) = after.split_at(after.find(['/', '?', ',']).unwrap_or(after.len()));
        }
        ports.push(port);
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    Ok((hosts.join(","), ports.join(","), rest))
}

fn query_pairs(query: &str, pairs: &mut Vec<Pair>) -> Result<(), FieldError> {
    // A raw @ here is most likely the end of a password with a slash in it: nothing of this may be named.
    if query.contains('@') && query.split('&').any(|part| part.split('@').count() > 1 && !part.contains('=')) {
        return refuse(format!("the part after ? is not key=value pairs; {ENCODE}"));
    }
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let Some((key, value)) = part.split_once('=') else {
            return refuse(format!("a part after ? has no =; {ENCODE}"));
        };
        if value.contains('=') {
            return refuse("a part after ? has two =; a = in a value must be percent-encoded");
        }
        let key = decoded(key)?.reveal().to_owned();
        if key == "ssl" && value == "true" {
            pairs.push(("sslmode".into(), Secret::new("require".into())));
        } else {
            pairs.push((key, decoded(value)?));
        }
    }
    Ok(())
}

fn decoded(text: &str) -> Result<Secret, FieldError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return refuse("a % is not followed by two hexadecimal digits; a % itself is %25");
        };
        if high + low == 0 {
            return refuse("%00 is not allowed");
        }
        bytes.push((high * 16 + low) as u8);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Secret::new(text)),
        Err(_) => refuse("a percent-encoded part is not UTF-8"),
    }
}

/// `key = value` pairs between white space; a value may stand in single quotes, `\` escapes in both forms.
fn dsn(text: &str) -> Result<Vec<Pair>, FieldError> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        let Some(after) = after.trim_start().strip_prefix('=') else {
            return refuse("a key has no =; a value with spaces must stand in single quotes");
        };
        let (value, after) = value(after.trim_start())?;
        pairs.push((key.to_owned(), value));
        rest = after.trim_start();
    }
    Ok(pairs)
}

fn value(text: &str) -> Result<(Secret, &str), FieldError> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut chars = text.char_indices().skip(usize::from(quoted));
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            '\'' if quoted => return Ok((Secret::new(value), &text[at + 1..])),
            c if !quoted && c.is_ascii_whitespace() => return Ok((Secret::new(value), &text[at..])),
            c => value.push(c),
        }
    }
    if quoted { refuse("a quoted value has no closing quote") } else { Ok((Secret::new(value), "")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let pairs = pairs(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        pairs.iter().map(|(key, value)| format!("{key}={}", value.reveal())).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn urls_are_split_as_libpq_splits_them() {
        for (text, parts) in [
            ("postgres://", ""),
            ("postgresql://h", "host=h"),
            ("postgres://u@h:1/d", "user=u host=h port=1 dbname=d"),
            ("postgres://u:p%40%2F@h", "user=u password=p@/ host=h"),
            ("postgres://:p@h", "password=p host=h"),
            ("postgres://u:p:q@h", "user=u password=p:q host=h"),
            ("postgres:///db", "dbname=db"),
            ("postgres:///my%20db%2Fx", "dbname=my db/x"),
            ("postgres://h1:1,h2:2/d", "host=h1,h2 port=1,2 dbname=d"),
            ("postgres://h1,h2:2", "host=h1,h2 port=,2"),
            ("postgres://h1,h2/d", "host=h1,h2 port=, dbname=d"),
            ("postgres://[::1]:5432/d", "host=::1 port=5432 dbname=d"),
            ("postgres://[::1],[fe80::1%25eth0]?user=u", "host=::1,fe80::1%eth0 port=, user=u"),
            ("postgres://%2Fsock%2Fdir:5/d", "host=/sock/dir port=5 dbname=d"),
            ("postgres:///d?host=/sock/dir&port=5", "dbname=d host=/sock/dir port=5"),
            ("postgres://h/d?sslmode=require&options=-c%20a%3Db", "host=h dbname=d sslmode=require options=-c a=b"),
            ("postgres://h?ssl=true", "host=h sslmode=require"),
            ("postgres://h/d?application_name=a@b", "host=h dbname=d application_name=a@b"),
            ("postgres://u:a!b%40c$d()e*_,%2F:;=%3F%40ff[]22@h", "user=u password=a!b@c$d()e*_,/:;=?@ff[]22 host=h"),
        ] {
            assert_eq!(shown(text), parts, "{text}");
        }
    }

    #[test]
    fn key_value_texts_are_split_as_libpq_splits_them() {
        for (text, parts) in [
            ("", ""),
            ("host=h dbname=d", "host=h dbname=d"),
            ("  host = h\n port=5 ", "host=h port=5"),
            (r"password='it\'s a \\' user=u", r"password=it's a \ user=u"),
            (r"password=it\'s\ a user=u", "password=it's a user=u"),
            ("password='' user=u", "password= user=u"),
            ("password=a!b@c$d()e*_,/:;=?@ff[]22 host=h", "password=a!b@c$d()e*_,/:;=?@ff[]22 host=h"),
            ("password=http://x host=h", "password=http://x host=h"),
        ] {
            assert_eq!(shown(text), parts, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_split_is_refused_without_a_part_of_it() {
        for (text, says) in [
            ("mysql://u:CANARY-7f3a@h/d", "must begin"),
            ("postgres://u:CANARY-7f3a%zz@h", "hexadecimal"),
            ("postgres://u:CANARY-7f3a%2@h", "hexadecimal"),
            ("postgres://u:CANARY-7f3a%00@h", "%00"),
            ("postgres://u:CANARY-7f3a%ff@h", "UTF-8"),
            ("postgres://u:CANARY-7f3a@[::1", "closing bracket"),
            ("postgres://u:CANARY-7f3a@[]", "empty"),
            ("postgres://u:p@[::1]CANARY-7f3a", "followed"),
            ("postgres://u:a!b@c$d()e*_,/:;=?@CANARY-7f3a[]22@h/d", "percent-encoded"),
            ("postgres://h/d?CANARY-7f3a", "no ="),
            ("postgres://h/d?sslmode=CANARY=7f3a", "two ="),
            ("CANARY-7f3a", "no ="),
            ("password=my CANARY-7f3a", "no ="),
            ("password='CANARY-7f3a", "closing quote"),
        ] {
            let error = pairs(text).expect_err(text);
            assert!(error.field == "url" && error.detail.contains(says), "{text}: {error}");
            assert!(!error.to_string().contains("CANARY"), "{error}");
        }
    }
}
