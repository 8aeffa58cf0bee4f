//! What a type says by its text alone, which is all that a macro sees of it.

use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{
    GenericArgument, Lifetime, ParenthesizedGenericArguments, Path, PathArguments, Type, TypeFnPtr, TypeImplTrait,
    TypeReference,
};

/// A type without parentheses and invisible groups.
pub(crate) fn plain(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => plain(&group.elem),
        Type::Paren(paren) => plain(&paren.elem),
        other => other,
    }
}

/// Whether a type's path ends in `name`.
pub(crate) fn is_named(ty: &Type, name: &str) -> bool {
    last(ty).is_some_and(|(ident, _)| ident == name)
}

/// Whether a type is this type parameter.
pub(crate) fn is_param(ty: &Type, param: &syn::Ident) -> bool {
    matches!(plain(ty), Type::Path(path) if path.path.is_ident(param))
}

/// The value in a `Result<value>` or `Result<value, error>`.
pub(crate) fn result_value(ty: &Type) -> Option<&Type> {
    let (_, arguments) = last(ty).filter(|(ident, _)| *ident == "Result")?;
    let PathArguments::AngleBracketed(arguments) = arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(value) if arguments.args.len() <= 2 => Some(value),
        _ => None,
    }
}

fn last(ty: &Type) -> Option<(&syn::Ident, &PathArguments)> {
    let Type::Path(path) = plain(ty) else { return None };
    path.path.segments.last().map(|segment| (&segment.ident, &segment.arguments))
}

/// The parts of a type that borrow, each the outermost one, or have no name.
#[derive(Default)]
pub(crate) struct Parts<'ast> {
    /// `&T`, `&mut T`.
    pub(crate) references: Vec<&'ast TypeReference>,
    /// `impl Trait`.
    pub(crate) impls: Vec<&'ast TypeImplTrait>,
    /// Lifetimes in other places than a reference, such as `Cow<'_, str>`.
    pub(crate) lifetimes: Vec<&'ast Lifetime>,
    in_reference: bool,
}

impl<'ast> Parts<'ast> {
    /// Those of one type. What a function pointer or an `Fn` bound takes is not part of the value.
    pub(crate) fn of(ty: &'ast Type) -> Self {
        let mut parts = Self::default();
        parts.visit_type(ty);
        parts
    }

    /// The lifetimes that end.
    pub(crate) fn bound_lifetimes(&self) -> impl Iterator<Item = &Lifetime> {
        self.lifetimes.iter().copied().filter(|lifetime| lifetime.ident != "static")
    }
}

impl<'ast> Visit<'ast> for Parts<'ast> {
    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        if self.in_reference {
            return self.visit_type(&reference.elem);
        }
        self.references.push(reference);
        self.in_reference = true;
        self.visit_type(&reference.elem);
        self.in_reference = false;
    }

    fn visit_type_impl_trait(&mut self, opaque: &'ast TypeImplTrait) {
        self.impls.push(opaque);
    }

    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if !self.in_reference {
            self.lifetimes.push(lifetime);
        }
    }

    fn visit_type_fn_ptr(&mut self, _: &'ast TypeFnPtr) {}

    fn visit_parenthesized_generic_arguments(&mut self, _: &'ast ParenthesizedGenericArguments) {}
}

/// The references of a type that allow changes, at any depth.
pub(crate) fn mutable_references(ty: &Type) -> Vec<&TypeReference> {
    struct Mutable<'ast>(Vec<&'ast TypeReference>);
    impl<'ast> Visit<'ast> for Mutable<'ast> {
        fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
            if reference.mutability.is_some() {
                self.0.push(reference);
            }
            visit::visit_type_reference(self, reference);
        }

        fn visit_type_fn_ptr(&mut self, _: &'ast TypeFnPtr) {}

        fn visit_parenthesized_generic_arguments(&mut self, _: &'ast ParenthesizedGenericArguments) {}
    }
    let mut mutable = Mutable(Vec::new());
    mutable.visit_type(ty);
    mutable.0
}

/// Gives every elided lifetime of a type a name; says whether there was one.
pub(crate) fn name_elided(ty: &mut Type, name: &Lifetime) -> bool {
    let mut elided = Elided { name, found: false };
    elided.visit_type_mut(ty);
    elided.found
}

struct Elided<'a> {
    name: &'a Lifetime,
    found: bool,
}

impl VisitMut for Elided<'_> {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        if reference.lifetime.is_none() {
            reference.lifetime = Some(self.name.clone());
            self.found = true;
        }
        visit_mut::visit_type_reference_mut(self, reference);
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = self.name.clone();
            self.found = true;
        }
    }

    // An elided lifetime in here is the function's own, as in `fn(&str)`.
    fn visit_type_fn_ptr_mut(&mut self, _: &mut TypeFnPtr) {}

    fn visit_parenthesized_generic_arguments_mut(&mut self, _: &mut ParenthesizedGenericArguments) {}
}

/// Every `Self` of a function that means the type around it, not that of an item inside the function.
#[derive(Default)]
pub(crate) struct Selves<'ast>(pub(crate) Vec<&'ast Path>);

impl<'ast> Visit<'ast> for Selves<'ast> {
    fn visit_path(&mut self, path: &'ast Path) {
        if path.segments.first().is_some_and(|segment| segment.ident == "Self") {
            self.0.push(path);
        }
        visit::visit_path(self, path);
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::ToTokens;
    use syn::parse_quote;

    fn named(mut ty: Type) -> (String, bool) {
        let found = name_elided(&mut ty, &parse_quote!('step));
        (ty.to_token_stream().to_string(), found)
    }

    fn text(ty: Type) -> String {
        ty.to_token_stream().to_string()
    }

    #[test]
    fn elided_lifetimes_are_named_at_every_depth() {
        let cases: [(Type, Type); 4] = [
            (parse_quote!(&str), parse_quote!(&'step str)),
            (parse_quote!(Option<&[&str]>), parse_quote!(Option<&'step [&'step str]>)),
            (parse_quote!(Cow<'_, str>), parse_quote!(Cow<'step, str>)),
            (parse_quote!((&u8, &'a u8)), parse_quote!((&'step u8, &'a u8))),
        ];
        for (before, after) in cases {
            assert_eq!(named(before), (text(after), true));
        }
    }

    #[test]
    fn other_lifetimes_are_left_alone() {
        let cases: [Type; 4] =
            [parse_quote!(String), parse_quote!(&'static str), parse_quote!(fn(&str) -> &str), parse_quote!(Foo<'a>)];
        for ty in cases {
            assert_eq!(named(ty.clone()), (text(ty), false));
        }
        let boxed: Type = parse_quote!(Box<dyn Fn(&str) -> &str>);
        assert!(!named(boxed).1);
    }

    #[test]
    fn the_value_of_a_result_is_found() {
        let cases: [(Type, Option<Type>); 7] = [
            (parse_quote!(Result<u32>), Some(parse_quote!(u32))),
            (parse_quote!(mainstay::Result<(), mainstay::Error>), Some(parse_quote!(()))),
            (parse_quote!(std::result::Result<Vec<u8>, E>), Some(parse_quote!(Vec<u8>))),
            (parse_quote!(Result), None),
            (parse_quote!(Option<u32>), None),
            (parse_quote!(Result<'a, u32>), None),
            (parse_quote!((u32,)), None),
        ];
        for (ty, value) in cases {
            assert_eq!(result_value(&ty).map(|value| text(value.clone())), value.map(text));
        }
    }

    #[test]
    fn only_the_own_self_counts() {
        let function: syn::ItemFn = parse_quote! {
            fn f() -> Self::Out {
                struct Inner;
                impl Inner { fn new() -> Self { Self } }
                Self::helper()
            }
        };
        let mut selves = Selves::default();
        selves.visit_item_fn(&function);
        assert_eq!(selves.0.len(), 2);
    }
}
