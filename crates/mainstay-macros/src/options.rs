//! The options of an attribute: `key = value`, each at most once.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Ident, Lit, Path, Result, Token};

use crate::{duration, faults};

/// The longest name that a store takes, in bytes (`Bounds` of mainstay-store).
const LONGEST_NAME: usize = 512;
/// Step names that begin so are the engine's own (`RESERVED_PREFIX` of mainstay-store).
const RESERVED_PREFIX: &str = "DBOS.";

/// What was written in the parentheses of an attribute.
pub(crate) struct Options {
    given: Vec<(String, Expr)>,
}

impl Options {
    /// Reads options of which `known` are all that exist; `what` takes them, such as `a step`.
    pub(crate) fn read(tokens: TokenStream, what: &str, known: &[&str]) -> Result<Self> {
        let pairs = |input: ParseStream<'_>| Punctuated::<_, Token![,]>::parse_terminated_with(input, pair);
        let pairs = pairs.parse2(tokens)?;
        let mut seen = Vec::new();
        let given = pairs.into_iter().map(|(key, value)| {
            let name = key.to_string();
            if !known.contains(&name.as_str()) {
                return Err(Error::new_spanned(
                    &key,
                    format!("there is no option `{name}`: {what} takes {}", list(known)),
                ));
            }
            if seen.contains(&name) {
                return Err(Error::new_spanned(&key, format!("`{name}` is given twice: remove one")));
            }
            seen.push(name.clone());
            Ok((name, value))
        });
        Ok(Self { given: faults::all(given)? })
    }

    fn get(&self, key: &str) -> Option<&Expr> {
        self.given.iter().find(|(name, _)| name == key).map(|(_, value)| plain(value))
    }

    /// The crate whose items the expansion names.
    pub(crate) fn krate(&self) -> Result<TokenStream> {
        match self.get("crate") {
            None => Ok(quote!(::mainstay)),
            Some(value) => match path(value) {
                Some(path) => Ok(path.to_token_stream()),
                None => Err(Error::new_spanned(value, "`crate` is a path, such as `crate = my_crate::mainstay`")),
            },
        }
    }

    /// A text that a store takes as a name.
    pub(crate) fn name(&self, key: &str) -> Result<Option<String>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = value else {
            return Err(Error::new_spanned(value, format!("`{key}` is a text, such as `{key} = \"shop\"`")));
        };
        let text = text.value();
        let fault = if text.is_empty() {
            format!("`{key}` is empty: give it a text, or leave the option out")
        } else if text.contains('\0') {
            format!("`{key}` contains a NUL character, which no store takes")
        } else if text.len() > LONGEST_NAME {
            format!("`{key}` has {} bytes: a store takes at most {LONGEST_NAME}", text.len())
        } else {
            return Ok(Some(text));
        };
        Err(Error::new_spanned(value, fault))
    }

    /// A name that is not the engine's own.
    pub(crate) fn step_name(&self) -> Result<Option<String>> {
        let name = self.name("name")?;
        if name.as_ref().is_some_and(|name| name.starts_with(RESERVED_PREFIX)) {
            let fault = format!("names that begin with `{RESERVED_PREFIX}` are the engine's own: choose another");
            return Err(Error::new_spanned(self.get("name"), fault));
        }
        Ok(name)
    }

    /// A whole number of at least `least`, or the path of a constant.
    pub(crate) fn count(&self, key: &str, least: u32) -> Result<Option<Count>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        if path(value).is_some() {
            return Ok(Some(Count::Constant(value.to_token_stream())));
        }
        let number = match value {
            Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse::<u32>().ok(),
            _ => None,
        };
        match number.filter(|number| *number >= least) {
            Some(number) => Ok(Some(Count::Literal(number))),
            None => {
                let fault =
                    format!("`{key}` is a whole number from {least} to {}, or a constant of type u32", u32::MAX);
                Err(Error::new_spanned(value, fault))
            }
        }
    }

    /// A number in a range, or the path of a constant.
    pub(crate) fn number(&self, key: &str, range: (f64, f64), what: &str) -> Result<Option<TokenStream>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        if path(value).is_some() {
            return Ok(Some(value.to_token_stream()));
        }
        let number = match value {
            Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.base10_parse::<f64>().ok(),
            Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse::<f64>().ok(),
            _ => None,
        };
        match number.filter(|number| *number >= range.0 && *number <= range.1) {
            Some(number) => Ok(Some(quote!(#number))),
            None => Err(Error::new_spanned(value, format!("`{key}` is {what}, or a constant of type f64"))),
        }
    }

    /// A duration as text, or the path of a constant.
    pub(crate) fn duration(&self, key: &str) -> Result<Option<TokenStream>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        if path(value).is_some() {
            return Ok(Some(value.to_token_stream()));
        }
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = value else {
            let fault = format!("`{key}` is a duration, such as `{key} = \"30s\"`, or a constant of type Duration");
            return Err(Error::new_spanned(value, fault));
        };
        let duration = duration::parse(&text.value());
        let duration = duration.map_err(|fault| Error::new_spanned(value, format!("`{key}`: {fault}")))?;
        if key == "timeout" && duration.is_zero() {
            return Err(Error::new_spanned(value, "no attempt can be that short: leave `timeout` out for no limit"));
        }
        let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
        Ok(Some(quote!(::core::time::Duration::new(#seconds, #nanos))))
    }

    /// A function: its path, or a closure.
    pub(crate) fn function(&self, key: &str) -> Result<Option<TokenStream>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        if path(value).is_some() || matches!(value, Expr::Closure(_)) {
            return Ok(Some(value.to_token_stream()));
        }
        let fault =
            format!("`{key}` is a function that takes `&Error` and returns bool, such as `{key} = is_transient`");
        Err(Error::new_spanned(value, fault))
    }
}

/// A count that is known to the macro, or a constant that is not.
pub(crate) enum Count {
    Literal(u32),
    Constant(TokenStream),
}

impl ToTokens for Count {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Literal(number) => number.to_tokens(tokens),
            Self::Constant(path) => path.to_tokens(tokens),
        }
    }
}

fn pair(input: ParseStream<'_>) -> Result<(Ident, Expr)> {
    if !input.peek(Ident::peek_any) {
        return Err(input.error("expected an option, such as `name = \"shop\"`"));
    }
    let key = input.call(Ident::parse_any)?;
    if !input.peek(Token![=]) {
        return Err(Error::new_spanned(&key, format!("`{key}` needs a value: write `{key} = ..`")));
    }
    input.parse::<Token![=]>()?;
    if input.is_empty() || input.peek(Token![,]) {
        return Err(Error::new_spanned(&key, format!("`{key}` needs a value: write `{key} = ..`")));
    }
    Ok((key, input.parse()?))
}

/// An expression without the invisible group that a macro by example puts around it.
fn plain(value: &Expr) -> &Expr {
    match value {
        Expr::Group(group) => plain(&group.expr),
        other => other,
    }
}

fn path(value: &Expr) -> Option<&Path> {
    match value {
        Expr::Path(path) if path.qself.is_none() => Some(&path.path),
        _ => None,
    }
}

/// `a, b and c`
fn list(words: &[&str]) -> String {
    match words {
        [] => "no options".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
