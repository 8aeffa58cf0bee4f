//! The values that go through, and what of them arrives in which language.

use serde_json::{Value, json};

/// Text that quoting, escaping and encodings have gone wrong on.
pub(crate) fn odd_texts() -> Vec<String> {
    let controls: String = (0_u8..32).map(char::from).collect();
    let long = "äöü\u{1F980}".repeat(10_000);
    [
        "",
        " ",
        "\u{0}",
        "a\u{0}b",
        "\u{7f}",
        "\"",
        "\\",
        "\\u0000",
        "'; drop table t; --",
        "$1 %s {} \\x00",
        "\u{2028}\u{2029}\u{feff}",
        "e\u{301} \u{202e}right to left",
        "\u{1F980}\u{10FFFF}\u{FFFF}",
        "null",
        "{\"positionalArgs\":[1]}",
        "__null__topic__",
        controls.as_str(),
        long.as_str(),
    ]
    .map(str::to_owned)
    .into()
}

/// Values that arrive everywhere as they were sent.
pub(crate) fn plain() -> Vec<Value> {
    let deep = (0..100)
        .fold(json!("inside"), |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({ "in": inner }) });
    let numbers = json!([
        0,
        -1,
        9_007_199_254_740_991_i64,
        -9_007_199_254_740_991_i64,
        0.1,
        -2.5,
        1e-7,
        5e-324,
        1.7976931348623157e308
    ]);
    let mut all = vec![
        Value::Null,
        json!(true),
        numbers,
        json!([]),
        json!({}),
        json!({ "": null, "a b": [1, { "c": "d" }], "\u{0}": "\u{0}" }),
        deep,
    ];
    all.extend(odd_texts().into_iter().map(Value::from));
    all
}

/// Integers that JavaScript rounds.
pub(crate) fn wide() -> Vec<Value> {
    vec![json!(9_007_199_254_740_993_i64), json!(-9_007_199_254_740_993_i64), json!(i64::MIN), json!(u64::MAX)]
}

/// Whether two values are the same: numbers by what they are worth, as one language writes 1.0 where another writes 1.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || ((a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        (a, b) => a == b,
    }
}

/// A value for a message, cut.
pub(crate) fn shown(value: &Value) -> String {
    let text = value.to_string();
    text[..text.floor_char_boundary(80)].to_owned()
}
