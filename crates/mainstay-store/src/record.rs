//! The macro that declares requests and replies: plain data that may grow without breaking its users.

/// Declares a `#[non_exhaustive]` struct with public fields, `new` and chained setters.
///
/// Fields of `required` are parameters of `new`; those of `optional` are `Option`s that start as `None`; those of
/// `default` start with the given value. The last two get a setter of the field's name.
macro_rules! record {
    ($(
        $(#[$doc:meta])*
        $name:ident {
            required { $($(#[$rd:meta])* $req:ident: $rt:ty,)* }
            optional { $($(#[$od:meta])* $opt:ident: $ot:ty,)* }
            default { $($(#[$dd:meta])* $def:ident: $dt:ty = $value:expr,)* }
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$rd])* pub $req: $rt,)*
            $($(#[$od])* #[serde(default)] pub $opt: Option<$ot>,)*
            $($(#[$dd])* pub $def: $dt,)*
        }

        impl $name {
            /// Makes one from its required fields; the others have their defaults.
            #[must_use]
            #[allow(clippy::new_without_default, reason = "only records without required fields would have one")]
            pub fn new($($req: impl Into<$rt>),*) -> Self {
                Self { $($req: $req.into(),)* $($opt: None,)* $($def: $value,)* }
            }

            $(
                /// Sets the field of this name.
                #[must_use]
                pub fn $opt(mut self, $opt: impl Into<$ot>) -> Self {
                    self.$opt = Some($opt.into());
                    self
                }
            )*

            $(
                /// Sets the field of this name.
                #[must_use]
                pub fn $def(mut self, $def: $dt) -> Self {
                    self.$def = $def;
                    self
                }
            )*
        }
    )*};
}
