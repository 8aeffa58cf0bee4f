//! Arguments as they are stored, and as they are read from what any program stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::error::ErrorKind;

const PARAMS: &[&str] = &["order", "count"];

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u64,
}

type Two = (Order, Option<u8>);

fn decode<A: Args>(params: &'static [&'static str], text: &str) -> Result<A> {
    A::decode(params, Some(&text.into()), Some(&"portable_json".into()))
}

fn message<A: Args>(params: &'static [&'static str], text: &str) -> String {
    let Err(error) = decode::<A>(params, text) else { panic!("{text} must be refused") };
    assert_eq!(error.kind(), ErrorKind::BadInput, "{text}");
    error.message().to_owned()
}

fn stored<A: Args>(args: A) -> Payload {
    codec::envelope(&args.encode(PARAMS).expect("encodable"), &BTreeMap::new()).expect("an envelope")
}

#[test]
fn arguments_are_stored_by_position_and_read_back() {
    let payload = stored((Order { id: u64::MAX }, Some(3_u8)));
    assert_eq!(payload.as_str(), r#"{"positionalArgs":[{"id":18446744073709551615},3],"namedArgs":{}}"#);
    assert_eq!(Two::decode(PARAMS, Some(&payload), None).unwrap(), (Order { id: u64::MAX }, Some(3)));

    let eight = (1_u8, i64::MIN, "c".to_owned(), 'd', [5], (6, 7), (), Some(8));
    let payload = stored(eight.clone());
    assert_eq!(Args::decode(&[], Some(&payload), None).ok(), Some(eight));
}

#[test]
fn positional_arguments_come_first_and_named_ones_after() {
    for text in [
        r#"{"positionalArgs":[{"id":1},2],"namedArgs":{}}"#,
        r#"{"positionalArgs":[{"id":1},2]}"#,
        r#"{"positionalArgs":[{"id":1},2],"namedArgs":null}"#,
        r#"{"positionalArgs":[{"id":1}],"namedArgs":{"count":2}}"#,
        r#"{"namedArgs":{"count":2,"order":{"id":1}},"positionalArgs":null}"#,
        r#"{ "namedArgs" : {"order": {"id" : 1}, "count": 2} }"#,
        r#"{"positionalArgs":[{"id":1},2],"namedArgs":{},"more":[1]}"#,
    ] {
        assert_eq!(decode::<Two>(PARAMS, text).unwrap(), (Order { id: 1 }, Some(2)), "{text}");
    }
    let null = r#"{"positionalArgs":[{"id":1},null]}"#;
    assert_eq!(decode::<Two>(PARAMS, null).unwrap(), (Order { id: 1 }, None));
}

#[test]
fn a_function_without_parameters_needs_no_input() {
    <()>::decode(&[], None, None).unwrap();
    for text in ["{}", r#"{"positionalArgs":[]}"#, r#"{"positionalArgs":null,"namedArgs":{}}"#] {
        decode::<()>(&[], text).unwrap();
    }
    <()>::decode(&[], Some(&"null".into()), Some(&"rust_serde".into())).unwrap();
    assert_eq!(stored(()).as_str(), r#"{"positionalArgs":[],"namedArgs":{}}"#);
}

#[test]
fn an_argument_that_does_not_fit_is_named() {
    for (text, expected) in [
        ("{}", "parameter `order` is missing"),
        (r#"{"positionalArgs":[{"id":1}]}"#, "parameter `count` is missing"),
        (
            r#"{"positionalArgs":[{"id":1}],"namedArgs":{"order":{"id":1}}}"#,
            "parameter `order` is given twice, by position and by name",
        ),
        (r#"{"positionalArgs":[{"id":1},2,3]}"#, "3 positional arguments for the parameters order, count"),
        (r#"{"positionalArgs":[{"id":1},2],"namedArgs":{"cuont":1}}"#, "there is no parameter `cuont`"),
        (
            r#"{"positionalArgs":[{"id":"hunter2"},2]}"#,
            "parameter `order` is not readable as Order: id: string, expected u64 (line 1, column 15)",
        ),
        (
            r#"{"namedArgs":{"order":{"id":1},"count":"hunter2"}}"#,
            "parameter `count` is not readable as Option: string, expected u8 (line 1, column 9)",
        ),
        (r#"{"id":1}"#, "parameter `order` is missing"),
        ("[[{\"id\":1},2],{}]", "the input is no object of positionalArgs and namedArgs"),
        (r#"{"positionalArgs":{"#, "the input is no object of positionalArgs and namedArgs (line 1, column 18)"),
        ("hunter2", "the input is no object of positionalArgs and namedArgs (line 1, column 1)"),
    ] {
        assert_eq!(message::<Two>(PARAMS, text), expected, "{text}");
    }
    assert_eq!(
        message::<()>(&[], r#"{"positionalArgs":[1]}"#),
        "1 positional arguments for a function without parameters"
    );
    assert_eq!(message::<(u8,)>(&[], r#"{"positionalArgs":[1,2]}"#), "2 positional arguments for a function with 1");
    assert_eq!(message::<(u8,)>(&[], "{}"), "parameter 1 is missing");
    let long = format!(r#"{{"namedArgs":{{"{}":1}}}}"#, "é".repeat(100));
    assert_eq!(message::<()>(&[], &long), format!("there is no parameter `{}`", "é".repeat(20)));
    let none = Two::decode(PARAMS, None, None).unwrap_err();
    assert_eq!((none.kind(), none.message()), (ErrorKind::BadInput, "parameter `order` is missing"));
}

#[test]
fn an_argument_that_cannot_be_encoded_is_named() {
    let error = ("a".to_owned(), vec![f64::NAN]).encode(PARAMS).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::BadInput, "parameter `count`: [0]: not a finite number"));
    let error = (f64::NAN,).encode(&[]).unwrap_err();
    assert_eq!(error.message(), "parameter 1: not a finite number");
}

#[test]
fn rows_of_bare_json_are_read_when_their_codec_says_so() {
    let bare = "rust_serde".into();
    let one = <(Order,)>::decode(&["order"], Some(&r#"{"id":7}"#.into()), Some(&bare));
    assert_eq!(one.unwrap(), (Order { id: 7 },));
    let unit = <((),)>::decode(&["nothing"], Some(&"null".into()), Some(&bare));
    assert_eq!(unit.unwrap(), ((),));
    let tuple = Two::decode(PARAMS, Some(&r#"[{"id":7},null]"#.into()), Some(&bare));
    assert_eq!(tuple.unwrap(), (Order { id: 7 }, None));
    let list = <(Vec<u8>,)>::decode(&["list"], Some(&"[1,2]".into()), Some(&bare));
    assert_eq!(list.unwrap(), (vec![1, 2],));
    assert!(<()>::decode(&[], Some(&"7".into()), Some(&bare)).is_err());
    assert!(Two::decode(PARAMS, Some(&"[1,2,3]".into()), Some(&bare)).is_err());
    assert!(Two::decode(PARAMS, Some(&r#"{"id":7}"#.into()), Some(&bare)).is_err());
}

#[test]
fn an_input_of_an_unknown_codec_is_refused_by_its_name() {
    let input = "gASVKAAA".into();
    let error = <(u8,)>::decode(&["n"], Some(&input), Some(&"py_pickle".into())).unwrap_err();
    assert_eq!(error.message(), r#"the input is encoded as "py_pickle", which other languages keep to themselves"#);
    let default = <(u8,)>::decode(&["n"], Some(&r#"{"positionalArgs":[7]}"#.into()), Some(&"".into()));
    assert_eq!(default.unwrap(), (7,));
}

#[test]
fn a_whole_envelope_can_be_the_argument_of_none() {
    let value = json!({ "positionalArgs": [1], "namedArgs": { "a": null } });
    let payload = stored((value.clone(),));
    assert_eq!(<(serde_json::Value,)>::decode(&["value"], Some(&payload), None).unwrap(), (value,));
}
