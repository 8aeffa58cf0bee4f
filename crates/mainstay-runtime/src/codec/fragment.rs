//! JSON text that a value holds already encoded: it must be readable where it will lie.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::check::INEXACT;
use super::{MAX_DEPTH, Strictness};

/// Checks text that will lie `depth` levels deep.
pub(super) fn check(text: &str, depth: u16, strictness: Strictness) -> Result<(), String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let fragment = Fragment { depth, strictness };
    let read = fragment.deserialize(&mut reader).and_then(|()| reader.end());
    read.map_err(|error| format!("raw json: {error}"))
}

#[derive(Clone, Copy)]
struct Fragment {
    depth: u16,
    strictness: Strictness,
}

impl Fragment {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format_args!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    fn portable<E: Error>(self, exact: bool) -> Result<(), E> {
        if self.strictness == Strictness::Portable && !exact {
            return Err(E::custom("an integer beyond 2^53 - 1 is not exact in javascript"));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Fragment {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fragment {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("json")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.portable(u128::from(value.unsigned_abs()) < INEXACT)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.portable(u128::from(value) < INEXACT)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        // The reader gives integers beyond 64 bits as floats.
        self.portable(value.fract() != 0.0 || value.abs() < INEXACT as f64)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while list.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while object.next_key::<IgnoredAny>()?.is_some() {
            object.next_value_seed(inner)?;
        }
        Ok(())
    }
}
