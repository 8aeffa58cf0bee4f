//! What errors keep, what is recorded of them, and what is read back.

mod recorded;

use std::error::Error as StdError;
use std::fmt;

use mainstay_store::{ErrorKind as StoreKind, FieldError, StoreError, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;

/// An error of an application with fields and a cause.
#[derive(Debug, Serialize, Deserialize)]
struct Declined {
    reason: String,
    cents: u64,
    #[serde(skip)]
    cause: Option<std::num::ParseIntError>,
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the card was declined: {}", self.reason)
    }
}

impl StdError for Declined {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_ref().map(|cause| cause as &(dyn StdError + 'static))
    }
}

/// An error around another, as libraries nest them.
#[derive(Debug)]
struct Outer<E>(E);

impl<E> fmt::Display for Outer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the payment failed")
    }
}

impl<E: StdError + 'static> StdError for Outer<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}

fn declined() -> Declined {
    Declined { reason: "expired".to_owned(), cents: u64::MAX, cause: "x".parse::<u8>().err() }
}

/// One error of every kind that the engine makes.
fn made() -> Vec<Error> {
    let id = WorkflowId::from("order-42");
    vec![
        Error::bad_input("no input"),
        Error::bad_output("no output"),
        Error::panic("index out of bounds"),
        Error::timeout("too slow"),
        Error::cancelled(&id),
        Error::parked(&id, "too many attempts"),
        Error::not_found(&id),
        Error::refused("not here"),
        Error::conflict("taken"),
        Error::store(StoreError::new(StoreKind::Timeout, "commit")),
        Error::stopped(),
        Error::mismatch("another step"),
        Error::bug("broken"),
    ]
}

#[test]
fn any_error_becomes_one_with_the_question_mark() {
    fn run(text: &str) -> Result<u8> {
        let number: u8 = text.parse()?;
        if number == 0 {
            Err(Outer(declined()))?;
        }
        Err(Error::named("Zero", "not zero"))
    }
    let (parse, outer, own) = (run("x").unwrap_err(), run("0").unwrap_err(), run("1").unwrap_err());
    assert_eq!((parse.name(), parse.message()), ("ParseIntError", "invalid digit found in string"));
    assert_eq!((outer.name(), outer.message()), ("Outer", "the payment failed"));
    assert_eq!((own.name(), own.message(), own.source().is_some()), ("Zero", "not zero", false));
    assert!([parse, outer, own].iter().all(|error| error.kind() == ErrorKind::App && error.code().is_none()));
}

#[test]
fn the_source_is_found_wherever_it_lies_in_the_chain() {
    let error = Error::from(Outer(Outer(declined())));
    assert_eq!(error.downcast_ref::<Declined>().map(|declined| declined.cents), Some(u64::MAX));
    assert!(error.is::<Outer<Outer<Declined>>>() && error.is::<Outer<Declined>>());
    assert!(error.is::<std::num::ParseIntError>() && !error.is::<fmt::Error>());
    assert!(error.clone().with_code(1).is::<Declined>());
    assert!(!Error::new("no").is::<Declined>());
}

#[test]
fn a_chain_that_runs_in_a_circle_is_followed_to_an_end() {
    #[derive(Debug)]
    struct Circle;
    impl fmt::Display for Circle {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("round")
        }
    }
    impl StdError for Circle {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(self)
        }
    }
    let error = Error::from(Circle);
    assert!(!error.is::<fmt::Error>());
    assert_eq!(format!("{error:?}"), "Circle: round");
}

#[test]
fn debug_is_the_chain_and_display_the_message() {
    let error = Error::from(Outer(declined()));
    assert_eq!(error.to_string(), "the payment failed");
    let chain = "Outer: the payment failed\n  caused by: the card was declined: expired\n  caused by: invalid digit \
                 found in string";
    assert_eq!(format!("{error:?}"), chain);
    assert_eq!(format!("{:?}", Error::new("closed")), "closed");
}

#[test]
fn a_typed_error_keeps_its_fields_and_its_source() {
    let error = Error::typed(declined());
    assert_eq!((error.name(), error.data()), ("Declined", Some(&json!({ "reason": "expired", "cents": u64::MAX }))));
    assert_eq!(error.decode::<Declined>().map(|declined| declined.cents), Some(u64::MAX));
    assert!(error.is::<Declined>() && error.decode::<u8>().is_none());
}

#[test]
fn data_that_cannot_be_encoded_is_left_out() {
    let error = Error::new("no").with_data(f64::NAN);
    assert_eq!((error.message(), error.data()), ("no", None));
    assert_eq!(Error::new("no").with_data(()).data(), None);
}

#[test]
fn a_code_is_a_number_or_a_text() {
    let of = |code: Value| Error::new("no").with_code(code).code().cloned();
    assert_eq!(of(json!(404)), Some(json!(404)));
    assert_eq!(of(json!("E404")), Some(json!("E404")));
    assert_eq!(of(json!([1, true])), Some(json!("[1,true]")));
    assert_eq!(of(json!(true)), Some(json!("true")));
    assert_eq!(of(Value::Null), None);
}

#[test]
fn an_error_of_the_engine_with_a_code_of_its_own_is_the_applications() {
    let error = Error::timeout("too slow").with_code(504);
    assert_eq!((error.kind(), error.name()), (ErrorKind::App, "Timeout"));
    assert_eq!(Error::recorded(&error.record(&ErrorTypes::default())).kind(), ErrorKind::App);
}

#[test]
fn a_change_of_a_clone_leaves_the_first_alone() {
    let first = Error::new("no").with_code(1);
    let second = first.clone().with_code(2).with_data(3);
    assert_eq!((first.code(), first.data()), (Some(&json!(1)), None));
    assert_eq!((second.code(), second.data()), (Some(&json!(2)), Some(&json!(3))));
}

#[test]
fn a_boxed_error_goes_out_and_comes_back_as_itself() {
    fn run() -> std::result::Result<(), Box<dyn StdError>> {
        Err(Error::from(Outer(declined())))?
    }
    fn run_send() -> std::result::Result<(), Box<dyn StdError + Send>> {
        Err(Error::new("no"))?
    }
    let text = run().unwrap_err();
    assert_eq!(text.to_string(), "the payment failed");
    assert!(text.source().is_some_and(|source| source.is::<Outer<Declined>>()));
    assert_eq!(run_send().unwrap_err().to_string(), "no");

    let back = Error::boxed(Error::not_found(&"w".into()).into_std());
    assert_eq!((back.kind(), back.name()), (ErrorKind::NotFound, "NotFound"));
    let inside = Error::from(Outer(Held(Error::typed(declined()).into_std())));
    assert!(inside.is::<Declined>());
}

/// A wrapper that hands on the source it holds.
#[derive(Debug)]
struct Held(Box<dyn StdError + Send + Sync>);

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("held")
    }
}

impl StdError for Held {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0)
    }
}

#[test]
fn a_boxed_error_of_any_other_type_keeps_message_and_source() {
    let error = Error::boxed(Box::new(declined()) as Box<dyn StdError + Send + Sync>);
    assert_eq!((error.name(), error.message()), ("Error", "the card was declined: expired"));
    assert!(error.is::<Declined>());
    assert_eq!(Error::boxed("no answer").message(), "no answer");
}

#[test]
fn every_kind_of_the_engine_has_a_name_of_its_own_and_an_error() {
    let kinds: Vec<ErrorKind> = made().iter().map(Error::kind).collect();
    assert_eq!(kinds, ErrorKind::MADE);
    for error in made() {
        assert_eq!((error.name(), error.code()), (error.kind().name(), Some(&json!("mainstay"))));
        assert_eq!(ErrorKind::named(error.name()), Some(error.kind()));
        assert!(!error.message().ends_with('.') && !error.message().is_empty(), "{error:?}");
    }
    assert_eq!(ErrorKind::named("Error"), None);
}

#[test]
fn a_failure_of_the_store_becomes_the_kind_that_says_what_to_do() {
    for (store, kind) in [
        (StoreKind::Unavailable, ErrorKind::Unavailable),
        (StoreKind::Timeout, ErrorKind::Unavailable),
        (StoreKind::Contended, ErrorKind::Unavailable),
        (StoreKind::Denied, ErrorKind::Refused),
        (StoreKind::Full, ErrorKind::Unavailable),
        (StoreKind::Invalid, ErrorKind::Refused),
        (StoreKind::Unsupported, ErrorKind::Refused),
        (StoreKind::NotFound, ErrorKind::NotFound),
        (StoreKind::Corrupt, ErrorKind::Bug),
        (StoreKind::Bug, ErrorKind::Bug),
    ] {
        let error = Error::store(StoreError::new(store, "commit"));
        assert_eq!((error.kind(), error.message()), (kind, format!("store: commit: {store}").as_str()));
        assert!(error.is::<StoreError>());
    }
}

#[test]
fn a_refused_field_is_named_and_a_drivers_text_is_not_shown() {
    let invalid = Error::store(StoreError::invalid("commit", "submit.id", "is empty"));
    assert_eq!((invalid.kind(), invalid.message()), (ErrorKind::Refused, "commit: submit.id: is empty"));
    assert!(invalid.is::<FieldError>());

    let denied = Error::store(StoreError::new(StoreKind::Denied, "commit").with_source("no right to write orders"));
    assert_eq!(
        (denied.kind(), denied.message()),
        (ErrorKind::Refused, "store: commit: denied: no right to write orders")
    );

    let driver = StoreError::new(StoreKind::Unavailable, "commit").with_source("password=hunter2");
    let error = Error::store(driver);
    let stored = error.record(&ErrorTypes::default());
    assert!(!error.to_string().contains("hunter2") && !stored.as_str().contains("hunter2"));
}

#[test]
fn an_error_is_one_pointer_wide() {
    assert_eq!(size_of::<Error>(), size_of::<usize>());
    assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
}
