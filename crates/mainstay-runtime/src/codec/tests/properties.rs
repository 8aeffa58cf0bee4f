//! Whatever is accepted when it is written is read back as it was; and nothing else is refused.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Number, Value};

use super::*;

/// Bytes that are written as bytes rather than as a list.
#[derive(Clone, Debug)]
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        Vec::deserialize(reader).map(Self)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Unit;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Newtype(Option<i16>);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pair(Unit, char);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Key {
    Red,
    #[serde(rename = "dark blue")]
    Blue,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum External {
    Unit,
    New(f64),
    Tuple(i64, Option<u64>),
    Fields { a: Option<Newtype>, b: Vec<Self> },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Internal {
    Unit,
    Fields { x: f64, y: Option<Unit> },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    Unit,
    New(Option<f32>),
    Tuple(u64, String),
    Fields { x: f64 },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    List(Vec<f64>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Numbers {
    u64: u64,
    i64: i64,
    i128: i128,
    u128: u128,
    f64: f64,
    f32: f32,
    tuple: (u8, i8, bool),
    list: Vec<Option<f64>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Everything {
    numbers: Numbers,
    unit: (),
    pair: Pair,
    option: Option<Option<u8>>,
    nothing: Option<()>,
    loose: Option<Value>,
    bytes: Bytes,
    result: Result<u8, String>,
    by_number: BTreeMap<i64, External>,
    by_wide: BTreeMap<i128, Option<Unit>>,
    by_char: BTreeMap<char, f64>,
    by_flag: BTreeMap<bool, Newtype>,
    by_key: BTreeMap<Key, Adjacent>,
    internal: Vec<Internal>,
    untagged: Vec<Untagged>,
    #[serde(flatten)]
    more: BTreeMap<String, Option<f64>>,
}

fn floats() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![8 => any::<f64>(), 4 => any::<u64>().prop_map(f64::from_bits), 1 => Just(-0.0), 1 => Just(5e-324)]
}

/// Any bits, now and then one that is not finite.
fn narrow() -> impl Strategy<Value = f32> + Clone {
    any::<u32>().prop_map(f32::from_bits)
}

fn numbers() -> impl Strategy<Value = Numbers> {
    let u64s = prop_oneof![any::<u64>(), Just(u64::MAX)];
    let i64s = prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX)];
    let i128s = prop_oneof![any::<i128>(), Just(i128::MIN)];
    let u128s = prop_oneof![any::<u128>(), Just(u128::MAX)];
    let list = vec(of(floats()), 0..3);
    let narrow = prop_oneof![narrow(), any::<f32>()];
    (u64s, i64s, i128s, u128s, floats(), narrow, any::<(u8, i8, bool)>(), list).prop_map(
        |(u64, i64, i128, u128, f64, f32, tuple, list)| Numbers { u64, i64, i128, u128, f64, f32, tuple, list },
    )
}

fn of<S: Strategy<Value: Clone> + Clone>(inner: S) -> impl Strategy<Value = Option<S::Value>> + Clone {
    proptest::option::of(inner)
}

fn newtype() -> impl Strategy<Value = Newtype> + Clone {
    any::<Option<i16>>().prop_map(Newtype)
}

fn external() -> impl Strategy<Value = External> {
    let leaf = prop_oneof![
        Just(External::Unit),
        floats().prop_map(External::New),
        any::<(i64, Option<u64>)>().prop_map(|(a, b)| External::Tuple(a, b)),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        (of(newtype()), vec(inner, 0..3)).prop_map(|(a, b)| External::Fields { a, b })
    })
}

fn internal() -> impl Strategy<Value = Internal> {
    let fields = (floats(), prop_oneof![20 => Just(None), 1 => Just(Some(Unit))]);
    prop_oneof![Just(Internal::Unit), fields.prop_map(|(x, y)| Internal::Fields { x, y })]
}

fn adjacent() -> impl Strategy<Value = Adjacent> {
    prop_oneof![
        Just(Adjacent::Unit),
        of(narrow()).prop_map(Adjacent::New),
        (any::<u64>(), plain()).prop_map(|(a, b)| Adjacent::Tuple(a, b)),
        floats().prop_map(|x| Adjacent::Fields { x }),
    ]
}

/// An integer that both variants could hold is the first's; the second holds those below zero.
fn untagged() -> impl Strategy<Value = Untagged> {
    prop_oneof![
        any::<u64>().prop_map(Untagged::Unsigned),
        (i64::MIN..0).prop_map(Untagged::Signed),
        floats().prop_map(Untagged::Float),
        plain().prop_map(Untagged::Text),
        vec(floats(), 0..3).prop_map(Untagged::List),
    ]
}

/// Any text but the words by which [`is_lossy`] knows what JSON cannot hold.
fn plain() -> impl Strategy<Value = String> + Clone {
    any::<String>().prop_map(|text| text.replace(['N', 'f', 'S'], "_"))
}

fn json(depth: u32, text: impl Strategy<Value = String> + Clone + 'static) -> impl Strategy<Value = Value> + Clone {
    let number = prop_oneof![
        any::<u64>().prop_map(Number::from),
        any::<i64>().prop_map(Number::from),
        floats().prop_filter_map("finite", Number::from_f64),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number.prop_map(Value::Number),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(depth, 64, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(text.clone(), inner, 0..4).prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

fn everything() -> impl Strategy<Value = Everything> {
    let rare = |some| prop_oneof![20 => Just(None), 1 => Just(some)];
    let flat = (
        numbers(),
        any::<char>(),
        rare(Some(())),
        vec(any::<u8>(), 0..4),
        proptest::result::maybe_ok(any::<u8>(), plain()),
    );
    let options = (
        prop_oneof![10 => any::<u8>().prop_map(|n| Some(Some(n))), 5 => Just(None), 1 => Just(Some(None))],
        of(json(3, plain())),
    );
    let maps = (
        btree_map(any::<i64>(), external(), 0..3),
        btree_map(any::<i128>(), prop_oneof![20 => Just(None), 1 => Just(Some(Unit))], 0..3),
        btree_map(any::<char>(), floats(), 0..3),
        btree_map(any::<bool>(), newtype(), 0..3),
        btree_map(prop_oneof![Just(Key::Red), Just(Key::Blue)], adjacent(), 0..3),
    );
    let rest = (vec(internal(), 0..3), vec(untagged(), 0..3), btree_map("x[a-z]{1,3}", of(floats()), 0..3));
    (flat, options, maps, rest).prop_map(|(flat, options, maps, rest)| {
        let (numbers, letter, nothing, bytes, result) = flat;
        let (by_number, by_wide, by_char, by_flag, by_key) = maps;
        Everything {
            numbers,
            unit: (),
            pair: Pair(Unit, letter),
            option: options.0,
            nothing,
            loose: options.1,
            bytes: Bytes(bytes),
            result,
            by_number,
            by_wide,
            by_char,
            by_flag,
            by_key,
            internal: rest.0,
            untagged: rest.1,
            more: rest.2,
        }
    })
}

/// Whether the debug form, which shows all of a value, shows something that JSON cannot hold.
fn is_lossy(value: &impl Debug) -> bool {
    let shown = shown(value);
    [
        "NaN",
        ": inf",
        "(inf",
        "[inf",
        " inf,",
        "-inf",
        "Some(None)",
        "Some(())",
        "Some(Unit)",
        "Some(Newtype(None))",
        "Some(Null)",
    ]
    .iter()
    .any(|lossy| shown.contains(lossy))
}

/// Floats show their shortest exact form and the sign of zero: two values with one form are bit for bit the same.
fn shown(value: &impl Debug) -> String {
    format!("{value:?}")
}

/// Says whether the value was accepted, which only a lossy one may not be.
fn check<T: Serialize + DeserializeOwned + Debug>(value: &T, lossy: bool) -> Result<bool, TestCaseError> {
    let Ok(payload) = encode(value) else {
        prop_assert!(lossy, "refused without a reason");
        return Ok(false);
    };
    prop_assert!(!lossy, "accepted {}", payload.as_str());
    let read = decode::<T>(&payload).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(shown(value), shown(&read));
    let read = decode_text::<T>(encode_raw(value).expect("the same checks").get()).expect("the same text");
    prop_assert_eq!(shown(value), shown(&read));
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]

    #[test]
    fn any_json_value_is_read_back_as_it_was(value in json(8, any::<String>())) {
        prop_assert!(check(&value, false)?);
    }

    #[test]
    fn any_float_is_read_back_bit_for_bit_or_refused(bits in any::<u64>(), narrow in any::<u32>()) {
        let (wide, narrow) = (f64::from_bits(bits), f32::from_bits(narrow));
        prop_assert_eq!(check(&wide, !wide.is_finite())?, wide.is_finite());
        prop_assert_eq!(check(&narrow, !narrow.is_finite())?, narrow.is_finite());
        if let Ok(payload) = encode(&(wide, narrow)) {
            let (a, b) = decode::<(f64, f32)>(&payload).expect("a pair of floats");
            prop_assert_eq!((a.to_bits(), b.to_bits()), (wide.to_bits(), narrow.to_bits()));
        }
    }
}

#[test]
fn values_of_derived_types_are_read_back_as_they_were_or_refused() {
    use proptest::test_runner::{Config, TestRunner};
    let (accepted, refused) = (std::cell::Cell::new(0_u32), std::cell::Cell::new(0_u32));
    let config = Config { failure_persistence: None, ..Config::with_cases(1_000) };
    TestRunner::new(config)
        .run(&everything(), |value| {
            let count = if check(&value, is_lossy(&value))? { &accepted } else { &refused };
            count.set(count.get() + 1);
            Ok(())
        })
        .unwrap_or_else(|failed| panic!("{failed}"));
    assert!(accepted.get() > 100 && refused.get() > 100, "{accepted:?} accepted, {refused:?} refused");
}
