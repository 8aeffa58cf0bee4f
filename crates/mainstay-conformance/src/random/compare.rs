//! What of two replies must be equal: all but the marks that each backend makes for itself.

use mainstay_store::{Result, StoreError};
use serde_json::{Map, Value, json};

/// Gives a backend's own marks the numbers of their first appearance.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    revisions: Vec<Value>,
    stamps: Vec<Value>,
}

fn number(seen: &mut Vec<Value>, mark: &Value) -> Value {
    let at = seen.iter().position(|known| known == mark).unwrap_or_else(|| {
        seen.push(mark.clone());
        seen.len() - 1
    });
    json!(at)
}

impl Marks {
    /// A reply as it is compared: fences without their text, revisions and stamps as numbers, no proof of death, no number
    /// of the schema, which a database may be held at, and released queues in order.
    pub(crate) fn seen(&mut self, value: Value) -> Value {
        match value {
            Value::Array(list) => list.into_iter().map(|value| self.seen(value)).collect(),
            Value::Object(map) => Value::Object(self.object(map)),
            other => other,
        }
    }

    fn object(&mut self, map: Map<String, Value>) -> Map<String, Value> {
        let fence = map.len() == 2 && map.contains_key("workflow") && map.contains_key("raw");
        let mut seen = Map::new();
        for (key, value) in map {
            let value = match key.as_str() {
                "raw" if fence => continue,
                "dead" | "catalog" => continue,
                "revision" if value.is_number() => number(&mut self.revisions, &value),
                "stamp" => number(&mut self.stamps, &value),
                "released" => sorted(value),
                _ => self.seen(value),
            };
            seen.insert(key, value);
        }
        seen
    }
}

fn sorted(value: Value) -> Value {
    let Value::Array(mut list) = value else { return value };
    list.sort_by_key(ToString::to_string);
    list.dedup();
    Value::Array(list)
}

/// A result as a value: an error is its method, its kind and its field.
pub(crate) fn result<T: serde::Serialize>(result: &Result<T>) -> Value {
    match result {
        Ok(reply) => serde_json::to_value(reply).unwrap_or_else(|error| json!({ "unwritten": error.to_string() })),
        Err(error) => failure(error),
    }
}

pub(crate) fn failure(error: &StoreError) -> Value {
    let field = (error.kind() == mainstay_store::ErrorKind::Invalid).then(|| error.field()).flatten();
    json!({ "error": error.kind().to_string(), "op": error.op(), "field": field })
}

/// The first place where two values differ, with what stands there.
pub(crate) fn difference(path: &str, ours: &Value, memory: &Value) -> Option<String> {
    match (ours, memory) {
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.into_iter().find_map(|(at, (a, b))| difference(&format!("{path}[{at}]"), a, b))
        }
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().find_map(|(key, value)| difference(&format!("{path}.{key}"), value, &b[key]))
        }
        (a, b) if a == b => None,
        (a, b) => Some(format!("{path} is {a}, in memory {b}")),
    }
}
