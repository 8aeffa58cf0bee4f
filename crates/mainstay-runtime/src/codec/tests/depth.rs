//! How deep a value may be, and that a deeper one costs no stack.

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::*;

/// How a test nests its value.
#[derive(Clone, Copy, Debug)]
enum Nest {
    List,
    Object,
    Variant,
    Mixed,
}

/// So many levels, made while they are written: a value of as many would overflow the stack of its own drop.
struct Deep(Nest, u32);

impl Serialize for Deep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(nest, levels) = *self;
        let inner = Self(nest, levels.saturating_sub(1));
        match nest {
            _ if levels == 0 => serializer.serialize_u8(7),
            Nest::List => one(serializer, &inner),
            Nest::Mixed if levels % 2 == 0 => one(serializer, &inner),
            Nest::Object | Nest::Mixed => {
                let mut object = serializer.serialize_map(None)?;
                object.serialize_entry("k", &inner)?;
                object.end()
            }
            Nest::Variant => serializer.serialize_newtype_variant("Deep", 0, "V", &inner),
        }
    }
}

fn one<S: Serializer>(serializer: S, inner: &Deep) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(1))?;
    list.serialize_element(inner)?;
    list.end()
}

fn text(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// O35: a step returns a value so deep that it could be written and never be read.
#[test]
fn case_o35_what_is_written_can_be_read_and_what_is_deeper_is_refused() {
    for nest in [Nest::List, Nest::Object, Nest::Variant, Nest::Mixed] {
        for levels in [1, 126, 127] {
            let payload = encode(&Deep(nest, levels)).unwrap_or_else(|error| panic!("{nest:?} {levels}: {error}"));
            assert!(decode::<Value>(&payload).is_ok(), "{nest:?} {levels}");
        }
        for levels in [128, 200, 100_000] {
            let error = encode(&Deep(nest, levels)).expect_err("too deep to be read back").to_string();
            assert!(error.ends_with("nested deeper than 127 levels"), "{nest:?} {levels}: {error}");
        }
    }
}

/// O35, for values that are JSON already.
#[test]
fn case_o35_deep_json_values_and_texts_are_held_to_the_same_limit() {
    let value = |levels| (0..levels).fold(Value::from(7), |inner, _| Value::Array(vec![inner]));
    assert!(decode::<Value>(&encode(&value(127)).unwrap()).is_ok());
    assert!(encode(&value(128)).is_err() && encode(&value(200)).is_err());

    assert!(encode(&raw(&text(127))).is_ok() && encode(&vec![raw(&text(126))]).is_ok());
    for levels in [127, 200, 100_000] {
        let error = encode(&vec![raw(&text(levels))]).expect_err("too deep to be read back").to_string();
        assert!(error.starts_with("[0]: raw json: "), "{levels}: {error}");
    }
}

#[test]
fn an_argument_may_be_as_deep_as_its_envelope_can_be_read() {
    let args = [encode_raw(&Deep(Nest::List, 125)).unwrap(), encode_raw(&raw(&text(125))).unwrap()];
    assert!(decode::<Value>(&envelope(&args, &std::collections::BTreeMap::new()).unwrap()).is_ok());
    assert!(encode_raw(&Deep(Nest::List, 126)).is_err() && encode_raw(&raw(&text(126))).is_err());
}

#[test]
fn the_data_of_an_error_may_be_as_deep_as_the_error_can_be_read() {
    assert!(encode_data(&Deep(Nest::Mixed, 126)).is_ok() && encode_data(&Deep(Nest::Mixed, 127)).is_err());
}

#[test]
fn variants_with_several_parts_count_twice() {
    #[derive(Serialize)]
    enum Shape {
        Pair(Box<Self>, u8),
        Fields { inner: Box<Self> },
        End,
    }
    let pairs = |levels| (0..levels).fold(Shape::End, |inner, _| Shape::Pair(Box::new(inner), 0));
    let fields = |levels| (0..levels).fold(Shape::End, |inner, _| Shape::Fields { inner: Box::new(inner) });
    for (fits, over) in [(pairs(63), pairs(64)), (fields(63), fields(64))] {
        assert!(decode::<Value>(&encode(&fits).unwrap()).is_ok());
        assert!(encode(&over).is_err());
    }
}

/// Options and newtypes within each other add nothing to the text, and must not overflow the stack either.
#[test]
fn depth_that_the_text_does_not_show_is_bounded_too() {
    struct Hidden(u32);
    impl Serialize for Hidden {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self.0 {
                0 => serializer.serialize_u8(7),
                n if n % 2 == 0 => serializer.serialize_some(&Self(n - 1)),
                n => serializer.serialize_newtype_struct("Hidden", &Self(n - 1)),
            }
        }
    }
    assert_eq!(encode(&Hidden(300)).unwrap().as_str(), "7");
    assert!(refusal(&Hidden(100_000)).contains("options and newtypes"));
}

#[test]
fn a_stored_value_that_is_too_deep_is_an_error_of_its_reader() {
    for levels in [128, 100_000] {
        let error = decode::<Value>(&Payload::from(text(levels))).expect_err("too deep").to_string();
        assert!(error.contains("recursion limit exceeded"), "{levels}: {error}");
    }
}
