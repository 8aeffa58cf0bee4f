//! Short names of types.

/// The last part of a type's path without its generics; of a box, that of what it holds.
pub(crate) fn type_label(path: &str) -> &str {
    const BOXES: &[&str] = &["Box", "Arc", "Rc"];
    let (base, generics) = path.split_once('<').unwrap_or((path, ""));
    let label = base.rsplit("::").next().unwrap_or(base);
    // The second parameter of a box is its allocator, which the name of the type leaves out.
    match generics.strip_suffix('>') {
        Some(held) if BOXES.contains(&label) => type_label(held),
        _ if label.is_empty() => path,
        _ => label,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_the_last_part_of_a_path_without_generics() {
        for (path, label) in [
            ("core::num::ParseIntError", "ParseIntError"),
            ("shop::Failure<alloc::vec::Vec<u8>>", "Failure"),
            ("alloc::boxed::Box<shop::a::Declined>", "Declined"),
            ("alloc::boxed::Box<alloc::sync::Arc<shop::Wrapped<u8>>>", "Wrapped"),
            ("shop::f::{{closure}}::Inner", "Inner"),
            ("u32", "u32"),
            ("(u8, shop::A)", "A)"),
            ("", ""),
        ] {
            assert_eq!(type_label(path), label, "{path}");
        }
    }
}
