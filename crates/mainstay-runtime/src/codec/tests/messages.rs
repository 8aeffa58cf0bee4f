//! Errors of reading name the type, the place and the reason, and show nothing of what is stored.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    #[expect(dead_code, reason = "read by serde alone")]
    items: Vec<Item>,
}

#[derive(Debug, Deserialize)]
struct Item {
    #[expect(dead_code, reason = "read by serde alone")]
    price: u32,
    #[serde(default)]
    #[expect(dead_code, reason = "read by serde alone")]
    colour: Option<Colour>,
}

#[derive(Debug, Deserialize)]
enum Colour {
    Red,
    Blue,
}

fn message<T: DeserializeOwned>(text: &str) -> String {
    match decode::<T>(&Payload::from(text)) {
        Ok(_) => panic!("{text} must not be readable"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_error_of_reading_names_type_place_and_reason() {
    for (text, expected) in [
        (r#"{"items":[{"price":1},{"price":"x"}]}"#, "items[1].price: string, expected u32 (line 1, column 34)"),
        (r#"{"items":[{"price":-5}]}"#, "items[0].price: unacceptable integer, expected u32 (line 1, column 21)"),
        (r#"{"items":[{"price":1},{}]}"#, "items[1]: missing field `price` (line 1, column 24)"),
        ("{\"items\":\n[true]}", "items[0]: boolean, expected struct Item (line 2, column 5)"),
        (r#"{"items":{}}"#, "items: object, expected a sequence (line 1, column 9)"),
        (r#"{"items":[],"hunter2":1}"#, "unknown field, expected `items` (line 1, column 21)"),
        (
            r#"{"items":[{"price":1,"colour":"hunter2"}]}"#,
            "items[0].colour: unknown variant, expected `Red` or `Blue` (line 1, column 39)",
        ),
        (r#"{"items":["#, "items[0]: EOF while parsing a list (line 1, column 10)"),
        ("{} x", "missing field `items` (line 1, column 2)"),
        ("", "EOF while parsing a value (line 1, column 0)"),
    ] {
        assert_eq!(message::<Order>(text), format!("not readable as Order: {expected}"), "{text}");
    }
}

#[test]
fn no_message_shows_a_stored_value() {
    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    enum Either {
        #[expect(dead_code, reason = "read by serde alone")]
        Number(u8),
        #[expect(dead_code, reason = "read by serde alone")]
        Flag(bool),
    }
    #[derive(Debug)]
    struct Picky;
    impl<'de> Deserialize<'de> for Picky {
        fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
            let text = String::deserialize(reader)?;
            Err(serde::de::Error::custom(format!("{text} is not to my taste")))
        }
    }
    const SECRETS: &[&str] = &[
        "hunter2",
        "hunter2, expected hunter2",
        "`hunter2`, expected hunter2",
        "\"hunter2\", expected hunter2",
        "invalid type: hunter2",
        "hunter2 at line 1 column 5",
        "hunter2 \u{e9}\n\0",
    ];
    for secret in SECRETS {
        let text = serde_json::to_string(secret).unwrap();
        let listed = format!("[{text}]");
        let keyed = format!("{{{text}:{{}}}}");
        for message in [
            message::<u8>(&text),
            message::<bool>(&text),
            message::<char>(&text),
            message::<Colour>(&text),
            message::<Either>(&text),
            message::<Picky>(&text),
            message::<std::net::IpAddr>(&text),
            message::<Vec<Option<u8>>>(&listed),
            message::<Order>(&keyed),
            message::<BTreeMap<u8, u8>>(&keyed),
        ] {
            assert!(!message.contains("hunter2"), "{secret}: {message}");
            assert!(message.starts_with("not readable as "), "{message}");
        }
    }
    for (text, kind) in [("4711", "integer"), ("47.11", "number with a fraction"), ("[4711]", "list")] {
        let message = message::<String>(text);
        assert!(message.contains(kind) && !message.contains("47"), "{message}");
    }
}

#[test]
fn a_long_description_of_a_type_is_cut() {
    struct Wordy;
    impl<'de> Deserialize<'de> for Wordy {
        fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
            struct Words;
            impl serde::de::Visitor<'_> for Words {
                type Value = Wordy;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str(&"é".repeat(10_000))
                }
            }
            reader.deserialize_any(Words)
        }
    }
    assert!(message::<Wordy>("1").len() < 400);
}
