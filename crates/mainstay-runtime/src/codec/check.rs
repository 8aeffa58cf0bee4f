//! A serializer around another: it passes everything on and refuses what would be read back differently.

use std::cell::RefCell;
use std::fmt::Display;

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::place::{self, Turn};
use super::{EncodeError, MAX_DEPTH, Strictness, fragment};

/// Calls within each other for one value. Options and newtypes add no level to the text but do to the stack; a value
/// of [`MAX_DEPTH`] levels has four for each.
const MAX_CALLS: u16 = 512;
/// Longest message of a type's own `Serialize` that is passed on.
const MAX_MESSAGE: usize = 300;
/// The name under which `serde_json` hands over JSON text that is to be written as it is.
const RAW: &str = "$serde_json::private::RawValue";
/// Integers of that many units and more are not exact in JavaScript.
pub(super) const INEXACT: u128 = 1 << 53;

/// One pass over one value: its rule, and the way to what was refused, innermost turn first.
pub(super) struct Walk {
    strictness: Strictness,
    way: RefCell<Vec<Turn>>,
}

impl Walk {
    pub(super) fn new(strictness: Strictness) -> Self {
        Self { strictness, way: RefCell::default() }
    }

    /// Notes a turn on the way back from an error.
    fn came_from(&self, turn: Turn) {
        self.way.borrow_mut().push(turn);
    }

    /// Names the place of an error.
    pub(super) fn finish<T>(&self, result: Result<T, serde_json::Error>) -> Result<T, EncodeError> {
        result.map_err(|error| {
            let mut way = self.way.take();
            way.reverse();
            let mut text = error.to_string();
            text.truncate(text.floor_char_boundary(MAX_MESSAGE));
            let path = place::written(&way);
            EncodeError(if path.is_empty() { text } else { format!("{path}: {text}") })
        })
    }

    fn integer<E: serde::ser::Error>(&self, magnitude: u128) -> Result<(), E> {
        if self.strictness == Strictness::Portable && magnitude >= INEXACT {
            return Err(E::custom("an integer beyond 2^53 - 1 is not exact in javascript"));
        }
        Ok(())
    }
}

/// Where in a value a call is made.
#[derive(Clone, Copy)]
struct At {
    depth: u16,
    calls: u16,
    in_some: bool,
    raw: bool,
}

/// A part of a value that is written through the check.
pub(super) struct Item<'a, T: ?Sized> {
    value: &'a T,
    walk: &'a Walk,
    at: At,
}

impl<'a, T: ?Sized> Item<'a, T> {
    /// A whole value, which lies `depth` levels deep in what is stored.
    pub(super) fn root(value: &'a T, walk: &'a Walk, depth: u16) -> Self {
        Self { value, walk, at: At { depth, calls: depth, in_some: false, raw: false } }
    }
}

impl<T: Serialize + ?Sized> Serialize for Item<'_, T> {
    fn serialize<S: Serializer>(&self, inner: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(Checked { inner, walk: self.walk, at: self.at })
    }
}

struct Checked<'a, S> {
    inner: S,
    walk: &'a Walk,
    at: At,
}

impl<'a, S: Serializer> Checked<'a, S> {
    /// One level of the text deeper.
    fn deeper(&self) -> Result<At, S::Error> {
        if self.at.depth >= MAX_DEPTH {
            return Err(S::Error::custom(format_args!("nested deeper than {MAX_DEPTH} levels")));
        }
        let at = self.inward()?;
        Ok(At { depth: at.depth + 1, in_some: false, ..at })
    }

    /// One call deeper, for what the text does not show.
    fn inward(&self) -> Result<At, S::Error> {
        if self.at.calls >= MAX_CALLS {
            return Err(S::Error::custom(format_args!("nested deeper than {MAX_CALLS} options and newtypes")));
        }
        Ok(At { calls: self.at.calls + 1, ..self.at })
    }

    /// Refuses what is written as null where a value is promised.
    fn null(&self) -> Result<(), S::Error> {
        if self.at.in_some {
            return Err(S::Error::custom("some value that is written as null would be read back as none"));
        }
        Ok(())
    }

    fn parts<C>(inner: C, walk: &'a Walk, at: At) -> Parts<'a, C> {
        Parts { inner, walk, at, next: 0 }
    }

    /// The one part of a newtype.
    fn item<'b, T: ?Sized>(value: &'b T, walk: &'b Walk, at: At) -> Item<'b, T> {
        Item { value, walk, at }
    }
}

macro_rules! pass {
    ($($method:ident($type:ty);)*) => {$(
        #[inline]
        fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            self.inner.$method(value)
        }
    )*};
}

macro_rules! integers {
    ($($method:ident($type:ty) = $magnitude:expr;)*) => {$(
        #[inline]
        fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            let magnitude: fn($type) -> u128 = $magnitude;
            self.walk.integer(magnitude(value))?;
            self.inner.$method(value)
        }
    )*};
}

macro_rules! floats {
    ($($method:ident($type:ty);)*) => {$(
        #[inline]
        fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            if !value.is_finite() {
                return Err(S::Error::custom("not a finite number"));
            }
            self.inner.$method(value)
        }
    )*};
}

impl<'a, S: Serializer> Serializer for Checked<'a, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Parts<'a, S::SerializeSeq>;
    type SerializeTuple = Parts<'a, S::SerializeTuple>;
    type SerializeTupleStruct = Parts<'a, S::SerializeTupleStruct>;
    type SerializeTupleVariant = Parts<'a, S::SerializeTupleVariant>;
    type SerializeMap = Parts<'a, S::SerializeMap>;
    type SerializeStruct = Parts<'a, S::SerializeStruct>;
    type SerializeStructVariant = Parts<'a, S::SerializeStructVariant>;

    pass! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_char(char);
        serialize_bytes(&[u8]);
    }

    integers! {
        serialize_i64(i64) = |value| value.unsigned_abs().into();
        serialize_u64(u64) = u128::from;
        serialize_i128(i128) = i128::unsigned_abs;
        serialize_u128(u128) = |value| value;
    }

    floats! {
        serialize_f32(f32);
        serialize_f64(f64);
    }

    #[inline]
    fn serialize_str(self, text: &str) -> Result<S::Ok, S::Error> {
        if self.at.raw {
            fragment::check(text, self.at.depth, self.walk.strictness).map_err(S::Error::custom)?;
            if text == "null" {
                self.null()?;
            }
        }
        self.inner.serialize_str(text)
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.null()?;
        self.inner.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        let at = At { in_some: true, ..self.inward()? };
        self.inner.serialize_some(&Self::item(value, self.walk, at))
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.null()?;
        self.inner.serialize_unit()
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<S::Ok, S::Error> {
        self.null()?;
        self.inner.serialize_unit_struct(name)
    }

    fn serialize_unit_variant(self, name: &'static str, i: u32, variant: &'static str) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_variant(name, i, variant)
    }

    fn serialize_newtype_struct<T>(self, name: &'static str, value: &T) -> Result<S::Ok, S::Error>
    where
        T: Serialize + ?Sized,
    {
        let at = self.inward()?;
        self.inner.serialize_newtype_struct(name, &Self::item(value, self.walk, at))
    }

    fn serialize_newtype_variant<T>(
        self,
        name: &'static str,
        i: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error>
    where
        T: Serialize + ?Sized,
    {
        let (at, walk) = (self.deeper()?, self.walk);
        self.inner
            .serialize_newtype_variant(name, i, variant, &Self::item(value, walk, at))
            .inspect_err(|_| walk.came_from(Turn::Key(variant.to_owned())))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        let at = self.deeper()?;
        Ok(Self::parts(self.inner.serialize_seq(len)?, self.walk, at))
    }

    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        let at = self.deeper()?;
        Ok(Self::parts(self.inner.serialize_tuple(len)?, self.walk, at))
    }

    fn serialize_tuple_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeTupleStruct, S::Error> {
        let at = self.deeper()?;
        Ok(Self::parts(self.inner.serialize_tuple_struct(name, len)?, self.walk, at))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        i: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let walk = self.walk;
        let (at, inner) = self.variant(|inner| inner.serialize_tuple_variant(name, i, variant, len))?;
        Ok(Self::parts(inner, walk, at))
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        let at = self.deeper()?;
        Ok(Self::parts(self.inner.serialize_map(len)?, self.walk, at))
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeStruct, S::Error> {
        let at = if name == RAW { At { raw: true, ..self.inward()? } } else { self.deeper()? };
        Ok(Self::parts(self.inner.serialize_struct(name, len)?, self.walk, at))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        i: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let walk = self.walk;
        let (at, inner) = self.variant(|inner| inner.serialize_struct_variant(name, i, variant, len))?;
        Ok(Self::parts(inner, walk, at))
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.collect_str(value)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

impl<S: Serializer> Checked<'_, S> {
    /// A variant with several parts is two levels: an object around its list or object.
    fn variant<C>(self, open: impl FnOnce(S) -> Result<C, S::Error>) -> Result<(At, C), S::Error> {
        let outer = Checked { at: self.deeper()?, inner: self.inner, walk: self.walk };
        Ok((outer.deeper()?, open(outer.inner)?))
    }
}

/// The parts of a list or an object.
struct Parts<'a, C> {
    inner: C,
    walk: &'a Walk,
    at: At,
    next: usize,
}

impl<'a, C> Parts<'a, C> {
    fn item<'b, T: ?Sized>(&self, value: &'b T) -> Item<'b, T>
    where
        'a: 'b,
    {
        Item { value, walk: self.walk, at: self.at }
    }

    /// The turn of the next part of a list.
    fn index(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }
}

macro_rules! lists {
    ($($part:ident::$method:ident;)*) => {$(
        impl<C: $part> $part for Parts<'_, C> {
            type Ok = C::Ok;
            type Error = C::Error;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
                let (index, walk, item) = (self.index(), self.walk, self.item(value));
                self.inner.$method(&item).inspect_err(|_| walk.came_from(Turn::Index(index)))
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.inner.end()
            }
        }
    )*};
}

lists! {
    SerializeSeq::serialize_element;
    SerializeTuple::serialize_element;
    SerializeTupleStruct::serialize_field;
    SerializeTupleVariant::serialize_field;
}

macro_rules! structs {
    ($($part:ident;)*) => {$(
        impl<C: $part> $part for Parts<'_, C> {
            type Ok = C::Ok;
            type Error = C::Error;

            #[inline]
            fn serialize_field<T>(&mut self, key: &'static str, value: &T) -> Result<(), C::Error>
            where
                T: Serialize + ?Sized,
            {
                let (walk, item, raw) = (self.walk, self.item(value), self.at.raw);
                self.inner.serialize_field(key, &item).inspect_err(|_| {
                    if !raw {
                        walk.came_from(Turn::Key(key.to_owned()));
                    }
                })
            }

            fn skip_field(&mut self, key: &'static str) -> Result<(), C::Error> {
                self.inner.skip_field(key)
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.inner.end()
            }
        }
    )*};
}

structs! {
    SerializeStruct;
    SerializeStructVariant;
}

impl<C: SerializeMap> SerializeMap for Parts<'_, C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), C::Error> {
        self.inner.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        let (walk, item) = (self.walk, self.item(value));
        self.inner.serialize_value(&item).inspect_err(|_| walk.came_from(Turn::SomeKey))
    }

    #[inline]
    fn serialize_entry<K, V>(&mut self, key: &K, value: &V) -> Result<(), C::Error>
    where
        K: Serialize + ?Sized,
        V: Serialize + ?Sized,
    {
        let (walk, item) = (self.walk, self.item(value));
        self.inner.serialize_entry(key, &item).inspect_err(|_| {
            // The fields of a flattened struct come here too, and are names.
            let key = serde_json::to_value(key).ok().and_then(|key| key.as_str().map(str::to_owned));
            walk.came_from(key.map_or(Turn::SomeKey, Turn::Key));
        })
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}
