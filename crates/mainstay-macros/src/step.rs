//! `#[step]`: a function that takes a position when it is called and returns the call of a step.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{
    Error, FnArg, GenericParam, Generics, Lifetime, Pat, Result, Signature, Type, TypeParamBound, WherePredicate,
    parse_quote,
};

use crate::function::{Arg, Function, Kind, place, shown_at};
use crate::options::{Count, Options};
use crate::{faults, types};

const OPTIONS: &[&str] =
    &["name", "retries", "backoff", "backoff_rate", "max_backoff", "jitter", "timeout", "retry_if", "crate"];

/// What the options say.
struct Settings {
    krate: TokenStream,
    name: Option<String>,
    retries: Option<Count>,
    /// The calls that set all options, in a fixed order.
    chain: TokenStream,
}

impl Settings {
    /// Whether the step asks for more than one attempt, as far as a macro can know.
    fn may_retry(&self) -> bool {
        !matches!(self.retries, None | Some(Count::Literal(0)))
    }
}

/// Expands the attribute with these options above this item.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let settings = Options::read(options, "a step", OPTIONS).and_then(|options| settings(&options));
    let (settings, function) = faults::zip(settings, Function::read(item, Kind::Step))?;
    let hidden = function.hidden();
    let body = body(&function, &hidden);
    let outside = Outside::of(&function);
    Ok(write(&settings, &function, &outside, &hidden, &body))
}

fn settings(options: &Options) -> Result<Settings> {
    let names = faults::zip(options.step_name(), options.krate());
    let retries = faults::zip(options.count("retries", 0), options.function("retry_if"));
    let waits = faults::zip(options.duration("backoff"), options.duration("max_backoff"));
    let rate = options.number("backoff_rate", (1.0, f64::MAX), "a number of at least 1");
    let jitter = options.number("jitter", (0.0, 1.0), "a number from 0 to 1");
    let rest = faults::zip(faults::zip(rate, jitter), options.duration("timeout"));
    let ((names, retries), (waits, rest)) = faults::zip(faults::zip(names, retries), faults::zip(waits, rest))?;
    let ((name, krate), (retries, retry_if)) = (names, retries);
    let ((backoff, max_backoff), ((rate, jitter), timeout)) = (waits, rest);
    let calls = [
        ("retries", retries.as_ref().map(ToTokens::to_token_stream)),
        ("backoff", backoff),
        ("backoff_rate", rate),
        ("max_backoff", max_backoff),
        ("jitter", jitter),
        ("retry_if", retry_if),
        ("timeout", timeout),
    ];
    let calls = calls.into_iter().filter_map(|(method, value)| {
        let method = Ident::new(method, Span::call_site());
        value.map(|value| quote!(.#method(#value)))
    });
    let chain = calls.collect();
    Ok(Settings { krate, name, retries, chain })
}

/// What is wrong with an argument's type.
pub(crate) fn argument(ty: &Type) -> Vec<Error> {
    let changes = "a step that is replayed does not run, so what it changed would be lost: return it instead";
    let mutable = types::mutable_references(ty).into_iter().map(|part| Error::new_spanned(part, changes));
    let attempt = types::is_named(ty, "Attempt").then(|| {
        Error::new_spanned(ty, "an `Attempt` comes right after the context: write `ctx: &Ctx, attempt: Attempt`")
    });
    let borrowed = match types::plain(ty) {
        Type::Reference(reference) if types::is_named(&reference.elem, "Attempt") => {
            Some(Error::new_spanned(ty, "a step takes its attempt by value: write `attempt: Attempt`"))
        }
        _ => None,
    };
    mutable.chain(attempt).chain(borrowed).collect()
}

pub(crate) fn with_receiver(sig: &Signature) -> String {
    let name = sig.ident.unraw();
    let args = sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) if !types::is_named(referent(&typed.ty), "Ctx") => match &*typed.pat {
            Pat::Ident(pat) => Some(pat.ident.to_string()),
            _ => Some("..".to_owned()),
        },
        _ => None,
    });
    let args = args.collect::<Vec<_>>().join(", ");
    format!(
        "a step has no `self`: leave the method without the attribute and call it as \
         `ctx.step(\"{name}\", || self.{name}({args})).await`"
    )
}

fn referent(ty: &Type) -> &Type {
    match types::plain(ty) {
        Type::Reference(reference) => &reference.elem,
        other => other,
    }
}

/// The signature of the function that is called: every borrowed argument lives as long as the call that it returns.
struct Outside {
    lifetime: Lifetime,
    generics: Generics,
    args: Vec<Arg>,
}

impl Outside {
    fn of(function: &Function) -> Self {
        let mut generics = function.item.sig.generics.clone();
        let taken = generics.lifetimes().any(|param| param.lifetime.ident == "step");
        let name = if taken { "'step_call" } else { "'step" };
        let named = Lifetime::new(name, Span::mixed_site());
        let mut borrows = false;
        let args = function.args.iter().map(|arg| {
            let mut ty = arg.ty.clone();
            borrows |= types::name_elided(&mut ty, &named);
            Arg { ident: arg.ident.clone(), ty }
        });
        let args = args.collect();
        if !borrows && generics.lifetimes().next().is_none() && generics.type_params().next().is_none() {
            return Self { lifetime: Lifetime::new("'static", Span::mixed_site()), generics, args };
        }
        outlive(&mut generics, &named);
        generics.params.insert(0, parse_quote!(#named));
        Self { lifetime: named, generics, args }
    }
}

/// What the call may hold must live as long as the call. A bound stands where the parameter has its others.
fn outlive(generics: &mut Generics, lifetime: &Lifetime) {
    let Generics { params, where_clause, .. } = generics;
    let mut predicates = where_clause.iter_mut().flat_map(|clause| &mut clause.predicates).collect::<Vec<_>>();
    for param in params {
        match param {
            GenericParam::Lifetime(param) => {
                let elsewhere = predicates.iter_mut().find_map(|predicate| match predicate {
                    WherePredicate::Lifetime(known) if known.lifetime == param.lifetime => Some(&mut known.bounds),
                    _ => None,
                });
                match elsewhere.filter(|_| param.bounds.is_empty()) {
                    Some(bounds) => bounds.push(lifetime.clone()),
                    None => param.bounds.push(lifetime.clone()),
                }
            }
            GenericParam::Type(param) => {
                let elsewhere = predicates.iter_mut().find_map(|predicate| match predicate {
                    WherePredicate::Type(known) if types::is_param(&known.bounded_ty, &param.ident) => {
                        Some(&mut known.bounds)
                    }
                    _ => None,
                });
                let bound = TypeParamBound::Lifetime(lifetime.clone());
                match elsewhere.filter(|_| param.bounds.is_empty()) {
                    Some(bounds) => bounds.push(bound),
                    None => param.bounds.push(bound),
                }
            }
            GenericParam::Const(_) => {}
        }
    }
}

/// The body as an associated function, in which the step's own name still means the step.
fn body(function: &Function, hidden: &Ident) -> TokenStream {
    let (_, inner) = function.attributes();
    let sig = &function.item.sig;
    let (name, inputs, returns, body) = (&sig.ident, &sig.inputs, &function.returns, function.body());
    let (generics, conditions) = (&sig.generics, &sig.generics.where_clause);
    quote! {
        struct #hidden;
        #[allow(
            clippy::too_many_arguments,
            clippy::unused_async,
            clippy::needless_pass_by_value,
            reason = "the arguments and the async are those of every step"
        )]
        impl #hidden {
            #(#inner)*
            async fn #name #generics(#inputs) -> #returns #conditions #body
        }
    }
}

fn write(
    settings: &Settings,
    function: &Function,
    outside: &Outside,
    hidden: &Ident,
    body: &TokenStream,
) -> TokenStream {
    let Settings { krate, name, chain, .. } = settings;
    let (outer, _) = function.attributes();
    let (vis, sig, value) = (&function.item.vis, &function.item.sig, &function.value);
    let (fn_token, ident) = (&sig.fn_token, &sig.ident);
    let name = name.clone().unwrap_or_else(|| ident.unraw().to_string());
    let Outside { lifetime, generics, args } = outside;
    let conditions = &generics.where_clause;
    let params = args.iter().map(|arg| {
        let (ident, ty) = (arg.own_ident(), &arg.ty);
        quote!(#ident: #ty)
    });
    let ctx = Ident::new("ctx", Span::call_site().located_at(place(&function.ctx_type)));
    let (ctx_type, own_ctx) = (&function.ctx_type, own_ctx(function));
    let kept: Vec<Kept> = args.iter().map(|arg| Kept::of(arg, settings.may_retry())).collect();
    let (items, before) = (Kept::items(&kept), kept.iter().map(Kept::before));
    let attempt = closure(settings, function, hidden, &kept, &name);
    let call = shown_at(quote!(#krate::Ctx::step(#ctx, #name, #attempt)), value);
    quote! {
        #(#outer)*
        #vis #fn_token #ident #generics(#ctx: #ctx_type, #(#params),*) -> #krate::StepCall<#lifetime, #value>
        #conditions
        {
            #body
            #items
            #(#before)*
            let #own_ctx = ::core::clone::Clone::clone(#ctx);
            #call #chain
        }
    }
}

/// The context that the call holds, apart from every argument of that name.
fn own_ctx(function: &Function) -> Ident {
    Ident::new("__ctx", place(&function.ctx_type))
}

/// What runs for each attempt.
fn closure(settings: &Settings, function: &Function, hidden: &Ident, kept: &[Kept], name: &str) -> TokenStream {
    let krate = &settings.krate;
    let (sig, value) = (&function.item.sig, &function.value);
    let ctx = own_ctx(function);
    let attempt = function.attempt.as_ref().map(|ty| Ident::new("__attempt", place(ty)));
    let param = attempt.iter().map(|attempt| quote!(#attempt: #krate::Attempt));
    let passed = attempt.iter();
    let given = kept.iter().map(Kept::given);
    let ready = kept.iter().map(|kept| kept.ready(krate, name));
    let idents = kept.iter().map(|kept| &kept.ident);
    let generics = explicit(&sig.generics);
    let body = &sig.ident;
    // The annotation shows another error type where the user wrote it.
    let call = quote_spanned! {place(&function.returns)=>
        let outcome: #krate::Result<#value> = #hidden::#body #generics(&#ctx, #(#passed,)* #(#idents),*).await;
        outcome
    };
    quote! {
        move |#(#param)*| {
            let #ctx = ::core::clone::Clone::clone(&#ctx);
            #(#given)*
            async move {
                #(#ready)*
                #call
            }
        }
    }
}

/// Type and constant parameters as arguments; lifetimes are inferred.
fn explicit(generics: &Generics) -> TokenStream {
    let params = generics.params.iter().filter_map(|param| match param {
        GenericParam::Lifetime(_) => None,
        GenericParam::Type(param) => Some(&param.ident),
        GenericParam::Const(param) => Some(&param.ident),
    });
    let params: Vec<_> = params.collect();
    if params.is_empty() { TokenStream::new() } else { quote!(::<#(#params),*>) }
}

/// How an argument reaches each attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// A shared reference, copied.
    Borrowed,
    /// Cloned; its type is known to be `Clone`, or the compiler asks for it.
    Cloned,
    /// Cloned where it can be, else moved into the only attempt.
    Moved,
}

struct Kept {
    ident: Ident,
    shown: String,
    ty: Type,
    how: How,
}

/// Types of the prelude that are `Clone`.
const CLONE: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
    "usize", "String",
];

impl Kept {
    fn of(arg: &Arg, may_retry: bool) -> Self {
        let plain = types::plain(&arg.ty);
        let how = match plain {
            Type::Reference(reference) if reference.mutability.is_none() => How::Borrowed,
            _ if may_retry || CLONE.iter().any(|name| types::is_named(plain, name)) => How::Cloned,
            _ => How::Moved,
        };
        Self { ident: arg.own_ident(), shown: arg.ident.to_string(), ty: arg.ty.clone(), how }
    }

    /// Items that the ways of these arguments need.
    fn items(kept: &[Self]) -> TokenStream {
        let cloned = kept.iter().any(|kept| kept.how == How::Cloned).then(|| {
            quote! {
                fn cloned_for_each_attempt<T: ::core::clone::Clone>(value: &T) -> T {
                    ::core::clone::Clone::clone(value)
                }
            }
        });
        // The inherent method stands before the trait's wherever the value is `Clone`.
        let moved = kept.iter().any(|kept| kept.how == How::Moved).then(|| {
            quote! {
                struct __Kept<T>(::core::option::Option<T>);
                impl<T: ::core::clone::Clone> __Kept<T> {
                    #[allow(dead_code, reason = "used where an argument is `Clone`")]
                    fn given(&mut self) -> ::core::option::Option<T> {
                        ::core::clone::Clone::clone(&self.0)
                    }
                }
                #[allow(dead_code, reason = "used where an argument is not `Clone`")]
                trait __Given<T> {
                    fn given(&mut self) -> ::core::option::Option<T>;
                }
                impl<T> __Given<T> for __Kept<T> {
                    fn given(&mut self) -> ::core::option::Option<T> {
                        self.0.take()
                    }
                }
            }
        });
        quote!(#cloned #moved)
    }

    /// Before the closure.
    fn before(&self) -> Option<TokenStream> {
        let ident = &self.ident;
        (self.how == How::Moved).then(|| quote!(let mut #ident = __Kept(::core::option::Option::Some(#ident));))
    }

    /// In the closure, before the attempt's future is made.
    fn given(&self) -> Option<TokenStream> {
        let ident = &self.ident;
        match self.how {
            How::Borrowed => None,
            How::Cloned => {
                let mut original = ident.clone();
                original.set_span(place(&self.ty));
                let cloned = quote_spanned!(place(&self.ty)=> cloned_for_each_attempt(&#original));
                Some(quote!(let #ident = #cloned;))
            }
            How::Moved => Some(quote!(let #ident = #ident.given();)),
        }
    }

    /// At the start of the attempt's future.
    fn ready(&self, krate: &TokenStream, name: &str) -> Option<TokenStream> {
        let ident = &self.ident;
        let message = format!(
            "step {name:?} cannot be tried again: its first attempt took the argument `{}`, whose type is not Clone",
            self.shown
        );
        (self.how == How::Moved).then(|| {
            quote! {
                let ::core::option::Option::Some(#ident) = #ident else {
                    return ::core::result::Result::Err(#krate::Error::new(#message));
                };
            }
        })
    }
}
