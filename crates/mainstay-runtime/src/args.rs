//! The arguments of a workflow: tuples, and how they are read from what any program stored.

mod input;
#[cfg(test)]
mod tests;

use mainstay_store::{CodecName, Payload};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::codec;
use crate::error::{Error, Result};
use input::Input;

/// The arguments of a workflow: a tuple of none to eight values that serde writes and reads.
///
/// ```
/// use mainstay::prelude::*;
///
/// struct Pay;
/// impl Workflow for Pay {
///     type Args = (String, u64);
///     # type Output = u64;
///     # const NAME: &'static str = "pay";
///     const PARAMS: &'static [&'static str] = &["card", "cents"];
///     # async fn run(&self, _ctx: Ctx, (_, cents): Self::Args) -> Result<u64> { Ok(cents) }
/// }
/// fn named<A: mainstay::Args, W: Workflow<Args = A>>(_: W, args: A) -> String {
///     W::invoke(args).name().to_owned()
/// }
/// assert_eq!(named(Pay, ("4242".to_owned(), 995)), "pay");
/// ```
pub trait Args: sealed::Sealed + Sized + Send + 'static {
    /// Encodes each of them; an error names the parameter.
    #[doc(hidden)]
    fn encode(self, params: &'static [&'static str]) -> Result<Vec<Box<RawValue>>>;

    /// Reads them from a row's input: positional ones first, then by name.
    #[doc(hidden)]
    fn decode(params: &'static [&'static str], input: Option<&Payload>, codec: Option<&CodecName>) -> Result<Self>;
}

mod sealed {
    /// Keeps the trait to tuples: the stored form of arguments is a contract with other programs.
    pub trait Sealed {}
}

fn encode_one<T: Serialize>(value: &T, params: &[&str], index: usize) -> Result<Box<RawValue>> {
    let refused = |error| Error::bad_input(format!("{}: {error}", input::parameter(params, index)));
    codec::encode_raw(value).map_err(refused)
}

macro_rules! tuples {
    ($(($($type:ident $index:tt),*);)*) => {$(
        impl<$($type),*> sealed::Sealed for ($($type,)*) {}

        impl<$($type),*> Args for ($($type,)*)
        where
            $($type: Serialize + DeserializeOwned + Send + 'static),*
        {
            fn encode(self, _params: &'static [&'static str]) -> Result<Vec<Box<RawValue>>> {
                Ok(vec![$(encode_one(&self.$index, _params, $index)?),*])
            }

            fn decode(
                params: &'static [&'static str],
                input: Option<&Payload>,
                codec: Option<&CodecName>,
            ) -> Result<Self> {
                const INDEXES: &[usize] = &[$($index),*];
                let mut _input = Input::read(params, INDEXES.len(), input, codec)?;
                let args = ($(_input.take::<$type>($index)?,)*);
                _input.finish()?;
                Ok(args)
            }
        }
    )*};
}

tuples! {
    ();
    (A 0);
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
    (A 0, B 1, C 2, D 3, E 4, F 5);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
}
