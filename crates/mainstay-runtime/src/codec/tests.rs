//! What is refused when it is written, what is read back, and what messages say.

mod depth;
mod messages;
mod properties;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::*;

fn refusal<T: Serialize + ?Sized>(value: &T) -> String {
    encode(value).expect_err("the value must be refused").to_string()
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("the text is json")
}

#[derive(Serialize)]
#[serde(tag = "kind")]
enum Tagged {
    Point { x: f64 },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Untagged {
    Number(f64),
}

#[derive(Serialize)]
enum Plain {
    One(f64),
    Two(u8, f64),
    Fields { y: f64 },
}

#[derive(Serialize)]
struct Order {
    items: Vec<Item>,
    #[serde(flatten)]
    more: BTreeMap<String, f64>,
}

#[derive(Serialize)]
struct Item {
    price: f64,
}

#[test]
fn a_float_that_json_cannot_hold_is_refused_wherever_it_lies() {
    const WHY: &str = "not a finite number";
    for bad in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let order = |price, more| Order {
            items: vec![Item { price: 1.0 }, Item { price }],
            more: BTreeMap::from([("tax".to_owned(), more)]),
        };
        for (text, path) in [
            (refusal(&bad), ""),
            (refusal(&(bad as f32)), ""),
            (refusal(&Some(bad)), ""),
            (refusal(&Some(Some(vec![bad]))), "[0]: "),
            (refusal(&(1, (2, bad))), "[1][1]: "),
            (refusal(&BTreeMap::from([("k", bad)])), "k: "),
            (refusal(&BTreeMap::from([("a secret", bad)])), "[key]: "),
            (refusal(&BTreeMap::from([(7, bad)])), "[key]: "),
            (refusal(&order(bad, 0.0)), "items[1].price: "),
            (refusal(&order(0.0, bad)), "tax: "),
            (refusal(&Tagged::Point { x: bad }), "x: "),
            (refusal(&Untagged::Number(bad)), ""),
            (refusal(&Plain::One(bad)), "One: "),
            (refusal(&vec![Plain::Two(1, bad)]), "[0][1]: "),
            (refusal(&Plain::Fields { y: bad }), "y: "),
        ] {
            assert_eq!(text, format!("{path}{WHY}"));
        }
        assert!(encode_raw(&[bad]).is_err() && encode_data(&[bad]).is_err());
        assert_eq!(encode(&order(1.0, 2.0)).unwrap().as_str(), r#"{"items":[{"price":1.0},{"price":1.0}],"tax":2.0}"#);
    }
}

#[test]
fn some_value_that_would_be_read_back_as_none_is_refused() {
    let why = "some value that is written as null would be read back as none";
    #[derive(Serialize)]
    struct Nothing;
    #[derive(Serialize)]
    struct Wrapped(Option<u8>);
    for text in [
        refusal(&Some(None::<u8>)),
        refusal(&Some(())),
        refusal(&Some(Nothing)),
        refusal(&Some(Wrapped(None))),
        refusal(&Some(serde_json::Value::Null)),
        refusal(&Some(raw("null"))),
    ] {
        assert_eq!(text, why);
    }
    assert_eq!(refusal(&json_field(Some(None))), format!("field: {why}"));
    for fine in [encode(&None::<Option<u8>>), encode(&Some(Some(1))), encode(&Some(vec![None::<u8>])), encode(&Nothing)]
    {
        fine.unwrap();
    }
}

fn json_field(field: Option<Option<u8>>) -> impl Serialize {
    #[derive(Serialize)]
    struct Holder {
        field: Option<Option<u8>>,
    }
    Holder { field }
}

#[test]
fn integers_that_javascript_rounds_are_refused_when_asked_alone() {
    const LAST: i64 = (1 << 53) - 1;
    let strict = |value: &dyn Fn(Strictness) -> Result<Payload, EncodeError>| {
        value(Strictness::Exact).expect("an exact integer");
        value(Strictness::Portable).is_ok()
    };
    assert!(strict(&|s| encode_with(&LAST, s)) && !strict(&|s| encode_with(&(LAST + 1), s)));
    assert!(strict(&|s| encode_with(&-LAST, s)) && !strict(&|s| encode_with(&(-LAST - 1), s)));
    assert!(!strict(&|s| encode_with(&i64::MIN, s)) && !strict(&|s| encode_with(&u64::MAX, s)));
    assert!(!strict(&|s| encode_with(&i128::MIN, s)) && !strict(&|s| encode_with(&(1_u128 << 53), s)));
    assert!(
        !strict(&|s| encode_with(&json!({ "a": [u64::MAX] }), s)) && strict(&|s| encode_with(&json!([1.5e300]), s))
    );
    assert!(strict(&|s| encode_with(&raw("9007199254740991"), s)));
    assert!(!strict(&|s| encode_with(&raw("[-9007199254740992]"), s)));
    assert!(!strict(&|s| encode_with(&raw("123456789012345678901234567890"), s)));
}

#[test]
fn an_envelope_is_checked_for_javascript_as_a_whole() {
    let of = |value: u64| envelope(&[encode_raw("a").unwrap(), encode_raw(&value).unwrap()], &BTreeMap::new()).unwrap();
    assert_eq!(check_portable(&of((1 << 53) - 1)), Ok(()));
    let refused = check_portable(&of(1 << 53)).unwrap_err().to_string();
    assert!(refused.contains("javascript"), "{refused}");
}

#[test]
fn an_envelope_holds_positional_arguments_and_no_named_ones() {
    let args = [encode_raw("a\n").unwrap(), encode_raw(&()).unwrap(), encode_raw(&[1, 2]).unwrap()];
    assert_eq!(
        envelope(&args, &BTreeMap::new()).unwrap().as_str(),
        r#"{"positionalArgs":["a\n",null,[1,2]],"namedArgs":{}}"#
    );
    assert_eq!(envelope(&[], &BTreeMap::new()).unwrap().as_str(), r#"{"positionalArgs":[],"namedArgs":{}}"#);
}

#[test]
fn json_text_inside_a_value_is_written_as_it_is() {
    let text = r#"{"b":1.00,"a":[true,"]"]}"#;
    assert_eq!(encode(&vec![raw(text)]).unwrap().as_str(), format!("[{text}]"));
    assert_eq!(decode::<Vec<Box<RawValue>>>(&encode(&vec![raw(text)]).unwrap()).unwrap()[0].get(), text);
    let read = encode_data(&to_raw_value(&[1]).unwrap()).unwrap();
    assert_eq!(read, json!([1]));
}

#[test]
fn json_text_that_no_value_can_hold_is_refused() {
    let text = refusal(&vec![raw("1e999")]);
    assert!(text.starts_with("[0]: raw json: number out of range"), "{text}");
}

#[test]
fn what_serde_refuses_is_refused_with_its_place() {
    let keys = BTreeMap::from([(vec![1], 1)]);
    assert_eq!(refusal(&vec![keys]), "[0][key]: key must be a string");
    #[derive(Serialize)]
    #[serde(tag = "t")]
    enum Bad {
        Number(u8),
    }
    let text = refusal(&(1, Bad::Number(1)));
    assert!(text.starts_with("[1]: cannot serialize tagged newtype variant"), "{text}");
}

#[test]
fn a_long_message_of_a_type_is_cut() {
    struct Talks;
    impl Serialize for Talks {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("é".repeat(10_000)))
        }
    }
    assert_eq!(refusal(&Talks).len(), 300);
}

#[test]
fn a_value_that_its_own_type_cannot_read_is_refused_by_a_round_trip() {
    #[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
    #[serde(untagged)]
    enum Wide {
        Number(i128),
    }
    let (payload, read) = round_trip(&vec![7_i128], Strictness::Exact).unwrap();
    assert_eq!((payload.as_str(), read), ("[7]", vec![7]));
    // Serde buffers what has no tag, and its buffer has no integers of this width.
    let error = round_trip(&Wide::Number(7), Strictness::Exact).unwrap_err().to_string();
    let reason = "not readable as Wide: data did not match any variant of untagged enum Wide";
    assert_eq!(error, format!("what is written is not read back: {reason}"));
    assert!(round_trip(&u64::MAX, Strictness::Portable).is_err());
}
