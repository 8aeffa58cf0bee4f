//! The stored form: what any reader finds in it, and what is read from what any writer stored.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn types() -> ErrorTypes {
    let mut types = ErrorTypes::default();
    types.register::<fmt::Error2>();
    types.register::<Declined>();
    types
}

mod fmt {
    //! A second type of error, which nothing here gives.

    pub(super) use std::fmt::*;

    /// Never met.
    #[derive(Debug, serde::Serialize)]
    pub(super) struct Error2;

    impl Display for Error2 {
        fn fmt(&self, f: &mut Formatter<'_>) -> Result {
            f.write_str("second")
        }
    }

    impl std::error::Error for Error2 {}
}

fn parts(error: &Error) -> (ErrorKind, &str, &str, Option<&Value>, Option<&Value>) {
    (error.kind(), error.name(), error.message(), error.code(), error.data())
}

fn stored(error: &Error) -> Value {
    serde_json::from_str(error.record(&types()).as_str()).expect("a recorded error is json")
}

#[test]
fn the_stored_form_is_the_portable_object() {
    let error = Error::named("CardDeclined", "no").with_code(402).with_data(["a"]);
    assert_eq!(stored(&error), json!({ "name": "CardDeclined", "message": "no", "code": 402, "data": ["a"] }));
    let bare = json!({ "name": "Error", "message": "no", "code": null, "data": null });
    assert_eq!(stored(&Error::new("no")), bare);
}

#[test]
fn an_error_that_is_read_back_is_the_same_without_its_source() {
    let mut errors = made();
    errors.extend([
        Error::new(""),
        Error::typed(declined()),
        Error::from(Outer(declined())).with_code(-1.5).with_data(i64::MIN),
        Error::named("Timeout", "an application's own").with_code("E1"),
        Error::named("NotFound", "an application's own"),
    ]);
    for error in errors {
        let read = Error::recorded(&error.record(&ErrorTypes::default()));
        assert_eq!(parts(&read), parts(&error));
        assert!(read.source().is_none());
    }
}

#[test]
fn an_applications_error_with_a_name_of_ours_stays_the_applications() {
    let foreign = r#"{"name":"Timeout","message":"requests timed out","code":null}"#;
    assert_eq!(Error::recorded(&foreign.into()).kind(), ErrorKind::App);
    let unknown = r#"{"name":"FromALaterVersion","message":"m","code":"mainstay"}"#;
    assert_eq!(Error::recorded(&unknown.into()).kind(), ErrorKind::App);
}

#[test]
fn the_fields_of_a_registered_type_survive_the_question_mark() {
    for error in [Error::from(declined()), Error::from(Outer(declined()))] {
        assert!(error.data().is_none());
        let read = Error::recorded(&error.record(&types()));
        assert_eq!(read.decode::<Declined>().map(|declined| declined.cents), Some(u64::MAX));
        assert_eq!((read.name(), read.message()), (error.name(), error.message()));
        assert!(Error::recorded(&error.record(&ErrorTypes::default())).data().is_none());
    }
    let own = Error::from(declined()).with_data("own");
    assert_eq!(stored(&own)["data"], json!("own"));
}

#[test]
fn errors_of_other_languages_are_read() {
    let read = |text: &str| Error::recorded(&text.into());
    for (text, name, message, code, data) in [
        (r#"{"name": "ValueError", "message": "bad", "code": null}"#, "ValueError", "bad", None, None),
        (r#"{"message":"m","data":null,"code":7,"name":"N"}"#, "N", "m", Some(json!(7)), None),
        (
            r#"{"code":"E1","data":{"a":[1]},"message":"","name":"N"}"#,
            "N",
            "",
            Some(json!("E1")),
            Some(json!({"a":[1]})),
        ),
        (r#"{"name":"QueueDeduplicated","message":"m","code":9}"#, "QueueDeduplicated", "m", Some(json!(9)), None),
        (r#"{"name":null,"message":"m"}"#, "Error", "m", None, None),
        (r#"{"message":"m","extra":[1]}"#, "Error", "m", None, None),
        (r#"{"name":"N","message":"m","code":{"odd":1}}"#, "N", "m", None, None),
        (
            r#"{"v":1,"type":"java.lang.IllegalStateException","message":"m"}"#,
            "java.lang.IllegalStateException",
            "m",
            None,
            None,
        ),
        (
            r#"{"json":{"name":"TypeError","message":"m","stack":"s"},"__dbos_serializer":"superjson"}"#,
            "TypeError",
            "m",
            None,
            None,
        ),
        (r#""plain words""#, "Error", "plain words", None, None),
    ] {
        let error = read(text);
        assert_eq!(parts(&error), (ErrorKind::App, name, message, code.as_ref(), data.as_ref()), "{text}");
    }
}

#[test]
fn what_is_no_error_object_becomes_the_message() {
    for text in [
        r#"{"Application":{"reason":"x"}}"#,
        r#"{"StepTimeout":{"step":"s","timeout":{"secs":1,"nanos":0}}}"#,
        r#"{"name":"N","message":7}"#,
        r#"{"json":{"reason":"x"}}"#,
        "gASVKAAAAAAAAACMCGJ1aWx0aW5zlIwKVmFsdWVFcnJvcpSTlIwDYmFklIWUUpQu",
        "[1,2]",
        "null",
        "{broken",
        "",
    ] {
        let error = Error::recorded(&text.into());
        assert_eq!((error.kind(), error.name(), error.message()), (ErrorKind::App, "Error", text));
    }
    let deep = "[".repeat(100_000);
    assert_eq!(Error::recorded(&deep.as_str().into()).message(), deep);
}

#[test]
fn what_is_too_long_is_cut_once_and_says_so() {
    let long = "é".repeat(100_000);
    let error = Error::named(long.clone(), long.clone()).with_code(long.clone()).with_data(&long);
    let read = Error::recorded(&error.record(&types()));
    assert!(read.message().len() <= 64 << 10 && read.message().starts_with("ééé"), "{}", read.message().len());
    let note = format!("… (cut from 200000 bytes) (its data of {} bytes is left out)", 200_002);
    assert!(read.message().ends_with(&note), "{}", &read.message()[read.message().len() - 100..]);
    assert!(read.name().len() <= 512 && read.name().ends_with("(cut from 200000 bytes)"));
    assert!(read.code().and_then(Value::as_str).is_some_and(|code| code.len() <= 512));
    assert_eq!(read.data(), None);
    assert_eq!(parts(&Error::recorded(&read.record(&types()))), parts(&read));
}

#[test]
fn data_that_just_fits_is_kept() {
    let error = |bytes: usize| Error::new("no").with_data("x".repeat(bytes - 2));
    assert!(Error::recorded(&error(64 << 10).record(&types())).data().is_some());
    assert!(Error::recorded(&error((64 << 10) + 1).record(&types())).data().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn reading_any_text_as_an_error_gives_one_that_can_be_recorded_again(
        text in prop_oneof![any::<String>(), r#"\{"(name|message|code|data|json)":("[a-z]*"|null|1e999|\{\}|\[),?\}?"#]
    ) {
        let first = Error::recorded(&text.as_str().into());
        let second = Error::recorded(&first.record(&types()));
        prop_assert_eq!(parts(&first), parts(&second));
    }

    #[test]
    fn any_error_is_read_back_as_it_was(
        name in any::<String>(), message in any::<String>(), code in any::<Option<i64>>(), data in any::<Option<Vec<u64>>>()
    ) {
        let name = if name.is_empty() { "N".to_owned() } else { name };
        let error = Error::named(name, message).with_code(json!(code)).with_data(data);
        let read = Error::recorded(&error.record(&types()));
        prop_assert_eq!(parts(&read), parts(&error));
    }
}
