//! The function below an attribute, checked and taken apart.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{
    AttrStyle, Attribute, Error, FnArg, Ident, Item, ItemFn, Pat, PatType, Receiver, Result, ReturnType, Safety,
    Signature, Type,
};

use crate::types::{self, Parts, Selves};
use crate::{faults, step, workflow};

/// Which attribute stands above the function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Workflow,
    Step,
}

impl Kind {
    /// The word of messages.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Workflow => "a workflow",
            Self::Step => "a step",
        }
    }

    const fn attribute(self) -> &'static str {
        match self {
            Self::Workflow => "#[workflow]",
            Self::Step => "#[step]",
        }
    }

    const fn ctx(self) -> &'static str {
        match self {
            Self::Workflow => "ctx: Ctx",
            Self::Step => "ctx: &Ctx",
        }
    }

    fn takes_ctx(self, ty: &Type) -> bool {
        match (self, types::plain(ty)) {
            (Self::Step, Type::Reference(reference)) => {
                reference.mutability.is_none() && types::is_named(&reference.elem, "Ctx")
            }
            (Self::Workflow, ty) => types::is_named(ty, "Ctx"),
            (Self::Step, _) => false,
        }
    }
}

/// A function that can be expanded.
pub(crate) struct Function {
    pub(crate) item: ItemFn,
    /// What the context is called, unless its pattern is `_`.
    pub(crate) ctx: Option<Ident>,
    pub(crate) ctx_type: Type,
    /// The type of an `Attempt` argument.
    pub(crate) attempt: Option<Type>,
    pub(crate) args: Vec<Arg>,
    /// The type that it returns, `Result<value>`.
    pub(crate) returns: Type,
    /// The value in that type.
    pub(crate) value: Type,
}

/// An argument after the context.
pub(crate) struct Arg {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
}

impl Arg {
    /// Its name for the expansion's own code: no lint takes it for the user's.
    pub(crate) fn own_ident(&self) -> Ident {
        let mut ident = self.ident.clone();
        ident.set_span(Span::mixed_site().located_at(ident.span()));
        ident
    }
}

impl Function {
    /// Parses and checks the item below the attribute.
    pub(crate) fn read(item: TokenStream, kind: Kind) -> Result<Self> {
        let mut item = function(item, kind)?;
        for attribute in &mut item.attrs {
            attribute.style = AttrStyle::Outer;
        }
        if let Some(receiver) = item.sig.receiver() {
            return Err(has_receiver(receiver, &item.sig, kind));
        }
        let (ctx, rest) = context(&item.sig, kind);
        let (attempt, rest) = attempt(rest, kind);
        let args = faults::zip(arguments(&rest, kind), limit(&rest, kind)).map(|(args, ())| args);
        let qualifiers = faults::zip(qualifiers(&item.sig, kind), no_self(&item, kind));
        let checked = faults::zip(qualifiers, faults::zip(ctx, faults::zip(args, returned(&item.sig, kind))));
        let (_, ((ctx, ctx_type), (args, (returns, value)))) = checked?;
        Ok(Self { ctx, ctx_type, attempt, args, returns, value, item })
    }

    /// Attributes for the function that is called, and attributes for the body: what documents, lints or removes an
    /// item belongs to the former, what changes code to the latter.
    pub(crate) fn attributes(&self) -> (Vec<&Attribute>, Vec<&Attribute>) {
        const OUTER: &[&str] =
            &["doc", "cfg", "cfg_attr", "deprecated", "must_use", "allow", "expect", "warn", "deny", "forbid"];
        let is_outer = |attribute: &&Attribute| OUTER.iter().any(|name| attribute.path().is_ident(name));
        self.item.attrs.iter().partition(is_outer)
    }

    /// A type for the body, named so that it hides none of the user's. Errors of what names it stand at the return
    /// type.
    pub(crate) fn hidden(&self) -> Ident {
        let name = self.item.sig.ident.unraw().to_string();
        let camel: String = name.split('_').map(capitalized).collect();
        format_ident!("__{camel}Body", span = place(&self.returns))
    }

    /// The statements of the body, behind one that uses the context.
    pub(crate) fn body(&self) -> TokenStream {
        let statements = &self.item.block.stmts;
        let used = self.ctx.iter().filter(|ctx| !ctx.to_string().starts_with('_'));
        quote::quote_spanned! {self.item.block.brace_token.span.join()=> {
            #(let _ = &#used;)*
            #(#statements)*
        }}
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

fn function(item: TokenStream, kind: Kind) -> Result<ItemFn> {
    match syn::parse2::<Item>(item)? {
        Item::Fn(item) => Ok(item),
        _ => Err(Error::new(Span::call_site(), format!("{} goes on an `async fn` with a body", kind.attribute()))),
    }
}

fn has_receiver(receiver: &Receiver, sig: &Signature, kind: Kind) -> Error {
    let message = match kind {
        Kind::Workflow => workflow::with_receiver(),
        Kind::Step => step::with_receiver(sig),
    };
    Error::new_spanned(receiver, message)
}

/// The qualifiers and generics that an expansion cannot carry.
fn qualifiers(sig: &Signature, kind: Kind) -> Result<()> {
    let what = kind.what();
    let mut errors = Vec::new();
    if sig.asyncness.is_none() {
        errors.push(Error::new_spanned(sig.fn_token, format!("{what} is asynchronous: write `async fn`")));
    }
    let unwanted: [Option<&dyn ToTokens>; 4] = [
        sig.constness.as_ref().map(|token| token as _),
        (!matches!(sig.safety, Safety::Default)).then_some(&sig.safety as _),
        sig.abi.as_ref().map(|abi| abi as _),
        sig.variadic.as_ref().map(|variadic| variadic as _),
    ];
    let unwanted = unwanted.into_iter().flatten();
    errors.extend(unwanted.map(|part| Error::new_spanned(part, format!("{what} is a plain `async fn`: remove this"))));
    if kind == Kind::Workflow && !(sig.generics.params.is_empty() && sig.generics.where_clause.is_none()) {
        let message = "a workflow cannot be generic, since its name in the store means one function: \
                       write one workflow for each type";
        errors.push(match sig.generics.params.is_empty() {
            true => Error::new_spanned(&sig.generics.where_clause, message),
            false => Error::new_spanned(&sig.generics, message),
        });
    }
    faults::none(errors)
}

fn no_self(item: &ItemFn, kind: Kind) -> Result<()> {
    let mut selves = Selves::default();
    selves.visit_item_fn(item);
    let message = format!("`Self` means nothing in {}: name the type", kind.what());
    faults::none(selves.0.into_iter().map(|path| Error::new_spanned(&path.segments[0], &message)))
}

type Inputs<'a> = Vec<&'a PatType>;

/// The context's name and type, and the arguments after it.
fn context(sig: &Signature, kind: Kind) -> (Result<(Option<Ident>, Type)>, Inputs<'_>) {
    let mut inputs: Inputs<'_> = sig.inputs.iter().filter_map(typed).collect();
    let Some(first) = inputs.first().copied() else {
        let message = format!("{} takes its context first: write `{}` here", kind.what(), kind.ctx());
        return (Err(Error::new(sig.paren_token.span.join(), message)), inputs);
    };
    if kind.takes_ctx(&first.ty) {
        inputs.remove(0);
        return (context_name(first).map(|name| (name, (*first.ty).clone())), inputs);
    }
    let referent = match types::plain(&first.ty) {
        Type::Reference(reference) => &reference.elem,
        other => other,
    };
    let (verb, span): (_, &dyn ToTokens) = match (types::is_named(referent, "Ctx"), kind) {
        (true, Kind::Workflow) => ("takes its context by value", &first.ty),
        (true, Kind::Step) => ("borrows its context", &first.ty),
        (false, _) => ("takes its context first", first),
    };
    if types::is_named(referent, "Ctx") {
        inputs.remove(0);
    }
    let before = if verb.ends_with("first") { " before this" } else { "" };
    (Err(Error::new_spanned(span, format!("{} {verb}: write `{}`{before}", kind.what(), kind.ctx()))), inputs)
}

fn typed(input: &FnArg) -> Option<&PatType> {
    match input {
        FnArg::Typed(typed) => Some(typed),
        FnArg::Receiver(_) => None,
    }
}

fn context_name(ctx: &PatType) -> Result<Option<Ident>> {
    match &*ctx.pat {
        Pat::Wild(_) => Ok(None),
        pat => match simple(pat) {
            Some(ident) => Ok(Some(ident.clone())),
            None => Err(Error::new_spanned(pat, "the context needs a plain name: write `ctx`")),
        },
    }
}

/// The type of an `Attempt` right after the context, and the arguments after it.
fn attempt(mut inputs: Inputs<'_>, kind: Kind) -> (Option<Type>, Inputs<'_>) {
    let found = kind == Kind::Step && inputs.first().is_some_and(|input| types::is_named(&input.ty, "Attempt"));
    let attempt = found.then(|| (*inputs.remove(0).ty).clone());
    (attempt, inputs)
}

fn limit(inputs: &[&PatType], kind: Kind) -> Result<()> {
    let over = inputs.get(workflow::MOST_ARGUMENTS).filter(|_| kind == Kind::Workflow);
    faults::none(over.map(|input| Error::new_spanned(input, workflow::too_many())))
}

fn arguments(inputs: &[&PatType], kind: Kind) -> Result<Vec<Arg>> {
    faults::all(inputs.iter().map(|input| argument(input, kind)))
}

fn argument(input: &PatType, kind: Kind) -> Result<Arg> {
    let ty = &*input.ty;
    let name = match simple(&input.pat) {
        Some(ident) => Ok(ident.clone()),
        None => Err(Error::new_spanned(&input.pat, unnamed(ty, kind))),
    };
    let attributes = input.attrs.iter().map(|attribute| {
        Error::new_spanned(
            attribute,
            format!("an argument of {} takes no attributes: put it on the function", kind.what()),
        )
    });
    let mut errors: Vec<Error> = attributes.collect();
    errors.extend(Parts::of(ty).impls.into_iter().map(|opaque| Error::new_spanned(opaque, no_impl(kind))));
    errors.extend(match kind {
        Kind::Workflow => workflow::argument(ty),
        Kind::Step => step::argument(ty),
    });
    faults::zip(name, faults::none(errors)).map(|(ident, ())| Arg { ident, ty: ty.clone() })
}

fn unnamed(ty: &Type, kind: Kind) -> String {
    let name = match types::plain(ty) {
        Type::Path(path) => path.path.segments.last().map(|segment| snake(&segment.ident.to_string())),
        _ => None,
    };
    // A primitive's name is no good name for a value.
    let name = name.filter(|name| !types::is_named(ty, name)).unwrap_or_else(|| "value".to_owned());
    format!("an argument of {} needs a plain name: write `{name}` and take it apart in the body", kind.what())
}

fn snake(camel: &str) -> String {
    let mut snake = String::new();
    for letter in camel.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

const fn no_impl(kind: Kind) -> &'static str {
    match kind {
        Kind::Workflow => {
            "an argument of a workflow is stored and read back, so its type needs a name: write that type"
        }
        Kind::Step => {
            "the type of a step's argument needs a name: write a type parameter, as in \
                       `async fn save<T: Display>(ctx: &Ctx, value: T)`"
        }
    }
}

/// The name in a pattern that is only a name.
fn simple(pat: &Pat) -> Option<&Ident> {
    match pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => Some(&pat.ident),
        _ => None,
    }
}

/// The type that is returned and the value in it.
fn returned(sig: &Signature, kind: Kind) -> Result<(Type, Type)> {
    let what = kind.what();
    let ReturnType::Type(_, ty) = &sig.output else {
        let message = format!("{what} can fail: write `-> mainstay::Result<()>`");
        return Err(Error::new(sig.paren_token.span.close(), message));
    };
    let Some(value) = types::result_value(ty) else {
        let message =
            format!("{what} can fail: return `mainstay::Result` of a value, such as `mainstay::Result<String>`");
        return Err(Error::new_spanned(ty, message));
    };
    let parts = Parts::of(value);
    let owned =
        "is stored and read back, so it borrows from nothing: return an owned value, such as `String` for `&str`";
    let borrows = parts.references.iter().map(|part| part as &dyn ToTokens);
    let borrows = borrows.chain(parts.bound_lifetimes().map(|part| part as &dyn ToTokens));
    let borrows = borrows.map(|part| Error::new_spanned(part, format!("what {what} returns {owned}")));
    let unnamed = "is stored and read back, so its type needs a name: write that type";
    let impls = parts.impls.iter().map(|part| Error::new_spanned(part, format!("what {what} returns {unnamed}")));
    faults::none(borrows.chain(impls))?;
    Ok(((**ty).clone(), value.clone()))
}

/// A span of the expansion's own code that errors show at a type of the user.
pub(crate) fn place(ty: &Type) -> Span {
    Span::mixed_site().located_at(ty.span())
}

/// Tokens that mean the same, but whose errors show at a type of the user: bounds that the type does not meet.
pub(crate) fn shown_at(tokens: TokenStream, ty: &Type) -> TokenStream {
    let moved = tokens.into_iter().map(|mut token| {
        token.set_span(token.span().located_at(ty.span()));
        token
    });
    moved.collect()
}
