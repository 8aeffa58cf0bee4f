//! `#[workflow]`: a function that returns a typed invocation, and the workflow that it invokes.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Error, Result, Type};

use crate::faults;
use crate::function::{Arg, Function, Kind, place, shown_at};
use crate::options::Options;
use crate::types::Parts;

/// The longest tuple that `Args` of the runtime takes.
pub(crate) const MOST_ARGUMENTS: usize = 8;
/// Clippy asks about functions with more arguments.
const LINTED_ARGUMENTS: usize = 7;

const OPTIONS: &[&str] = &["name", "max_attempts", "class", "crate"];

/// What the options say.
struct Settings {
    krate: TokenStream,
    name: Option<String>,
    class: Option<String>,
    max_attempts: Option<TokenStream>,
}

/// Expands the attribute with these options above this item.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let settings = Options::read(options, "a workflow", OPTIONS).and_then(|options| settings(&options));
    let (settings, function) = faults::zip(settings, Function::read(item, Kind::Workflow))?;
    Ok(write(&settings, &function))
}

fn settings(options: &Options) -> Result<Settings> {
    let names = faults::zip(options.name("name"), options.name("class"));
    let rest = faults::zip(options.count("max_attempts", 1), options.krate());
    let ((name, class), (max_attempts, krate)) = faults::zip(names, rest)?;
    Ok(Settings { krate, name, class, max_attempts: max_attempts.map(ToTokens::into_token_stream) })
}

/// What is wrong with an argument's type.
pub(crate) fn argument(ty: &Type) -> Vec<Error> {
    let parts = Parts::of(ty);
    let message =
        "an argument of a workflow is stored, so it must be owned: take an owned value, such as `String` for `&str`";
    let references = parts.references.iter().map(|part| Error::new_spanned(part, message));
    references.chain(parts.bound_lifetimes().map(|part| Error::new_spanned(part, message))).collect()
}

pub(crate) fn too_many() -> String {
    format!("a workflow takes at most {MOST_ARGUMENTS} arguments after its context: put some of them into a struct")
}

pub(crate) fn with_receiver() -> String {
    "a workflow has no `self`: implement `mainstay::Workflow` for the struct, whose fields its body may use, \
     and register a value of it"
        .to_owned()
}

fn write(settings: &Settings, function: &Function) -> TokenStream {
    let (outer, _) = function.attributes();
    let Function { item, value, args, .. } = function;
    let Settings { krate, .. } = settings;
    let (vis, fn_token, name) = (&item.vis, &item.sig.fn_token, &item.sig.ident);
    let hidden = function.hidden();
    let (tuple, given) = (tuple(args), args.iter().map(Arg::own_ident).collect::<Vec<_>>());
    let types = args.iter().map(|arg| &arg.ty);
    let must_use = (!outer.iter().any(|attribute| attribute.path().is_ident("must_use")))
        .then(|| quote!(#[must_use = "a workflow does nothing until it is started"]));
    let many = (args.len() > LINTED_ARGUMENTS).then(|| {
        let reason = "as many arguments as a workflow may have";
        quote!(#[allow(clippy::too_many_arguments, reason = #reason)])
    });
    let body = body(function, &hidden);
    let workflow = workflow(settings, function, &hidden, &tuple);
    quote! {
        #(#outer)*
        #must_use
        #many
        #vis #fn_token #name(#(#given: #types),*) -> #krate::Invocation<
            impl #krate::Workflow<Args = #tuple, Output = #value> + ::core::default::Default
        > {
            #[derive(::core::default::Default)]
            struct #hidden;
            #body
            #workflow
            <#hidden as #krate::Workflow>::invoke((#(#given,)*))
        }
    }
}

/// The body as an associated function, in which the workflow's own name still means its invocation.
fn body(function: &Function, hidden: &Ident) -> TokenStream {
    let (_, inner) = function.attributes();
    let Function { item, returns, .. } = function;
    let (name, inputs, body) = (&item.sig.ident, &item.sig.inputs, function.body());
    quote! {
        #[allow(
            clippy::too_many_arguments,
            clippy::unused_async,
            clippy::needless_pass_by_value,
            reason = "the arguments and the async are those of every workflow"
        )]
        impl #hidden {
            #(#inner)*
            async fn #name(#inputs) -> #returns #body
        }
    }
}

fn workflow(settings: &Settings, function: &Function, hidden: &Ident, tuple: &TokenStream) -> TokenStream {
    let Settings { krate, name, class, max_attempts } = settings;
    let Function { item, value, args, .. } = function;
    let body = &item.sig.ident;
    let name = name.clone().unwrap_or_else(|| body.unraw().to_string());
    let params = args.iter().map(|arg| arg.ident.unraw().to_string());
    let class = class.iter();
    let max_attempts = max_attempts.iter();
    let arguments = Ident::new(if args.is_empty() { "_arguments" } else { "arguments" }, Span::mixed_site());
    let fields = (0..args.len()).map(|index| {
        let index = Literal::usize_unsuffixed(index);
        quote!(#arguments.#index)
    });
    let ctx = Ident::new("ctx", place(&function.ctx_type));
    // The annotation shows another error type where the user wrote it.
    let call = quote_spanned! {place(&function.returns)=>
        let outcome: #krate::Result<#value> = #hidden::#body(#ctx, #(#fields),*).await;
        outcome
    };
    quote! {
        impl #krate::Workflow for #hidden {
            type Args = #tuple;
            type Output = #value;
            const NAME: &'static str = #name;
            const PARAMS: &'static [&'static str] = &[#(#params),*];
            #(const CLASS: ::core::option::Option<&'static str> = ::core::option::Option::Some(#class);)*
            #(const MAX_ATTEMPTS: u32 = #max_attempts;)*
            async fn run(&self, #ctx: #krate::Ctx, #arguments: Self::Args) -> #krate::Result<Self::Output> {
                #call
            }
        }
    }
}

fn tuple(args: &[Arg]) -> TokenStream {
    match args {
        [Arg { ty, .. }] => shown_at(quote!((#ty,)), ty),
        args => {
            let types = args.iter().map(|arg| &arg.ty);
            quote!((#(#types),*))
        }
    }
}
