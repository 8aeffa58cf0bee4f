//! Reading Rust source line by line: functions, module declarations, code without comments. It relies on rustfmt's
//! layout, which the fmt stage holds.

/// A function with a body or without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    /// The line of `fn`, from 1.
    pub(crate) line: usize,
    /// Lines from `fn` to the closing brace; 0 for a declaration.
    pub(crate) lines: usize,
    /// Whether an attribute above makes it a test.
    pub(crate) is_test: bool,
}

/// Every function of a file, also nested ones and those inside macro calls.
pub(crate) fn functions(text: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if let Some(name) = function_name(line) {
            let (is_test, lines) = (has_test_attribute(&lines[..index]), body_lines(&lines[index..]));
            found.push(Function { name, line: index + 1, lines, is_test });
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let mut rest = strip_visibility(line.trim_start());
    for word in ["default ", "const ", "async ", "unsafe ", "extern \"C\" "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    let end = name.find(|c: char| !is_word(c)).unwrap_or(name.len());
    (end > 0).then(|| &name[..end])
}

fn strip_visibility(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else { return line };
    match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, rest)) => rest.trim_start(),
        None => rest.strip_prefix(' ').unwrap_or(line),
    }
}

/// Attributes and comments stand directly above a function.
fn has_test_attribute(above: &[&str]) -> bool {
    let near = above.iter().rev().map(|line| line.trim_start());
    near.take_while(|line| line.starts_with("#[") || line.starts_with("//") || line.ends_with(")]"))
        .any(|line| line.starts_with("#[") && (line.contains("test]") || line.contains("test(")))
}

/// Lines to the brace that closes the body at the indentation of `fn`; 0 when a `;` comes before any body.
fn body_lines(lines: &[&str]) -> usize {
    let indent = indentation(lines[0]);
    let mut open = false;
    for (index, line) in lines.iter().enumerate() {
        let end = line.trim_end();
        if open {
            let at_indent = indentation(line) == indent && line.trim_start().starts_with('}');
            if at_indent {
                return index + 1;
            }
        } else if end.ends_with('{') {
            open = true;
        } else if end.ends_with('}') {
            return index + 1;
        } else if end.ends_with(';') {
            return 0;
        }
    }
    lines.len()
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A module declaration that another file fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module<'a> {
    pub(crate) name: &'a str,
    /// What a `#[path]` attribute says.
    pub(crate) path: Option<&'a str>,
}

/// The `mod name;` lines of a file.
pub(crate) fn modules(text: &str) -> Vec<Module<'_>> {
    let mut path = None;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(attribute) = line.strip_prefix("#[path = \"") {
            path = attribute.split('"').next();
        } else if let Some(name) = strip_visibility(line).strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            found.push(Module { name, path: path.take() });
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            path = None;
        }
    }
    found
}

/// The files that `include!` names.
pub(crate) fn includes(text: &str) -> Vec<&str> {
    let calls = text.lines().filter_map(|line| line.split_once("include!(\""));
    calls.filter_map(|(_, rest)| rest.split('"').next()).collect()
}

/// The lines that hold code, with their numbers from 1; a comment at the end of a line stays.
pub(crate) fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Whether a character can be part of an identifier.
pub(crate) const fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Where a word stands in a line with no identifier character on either side.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
impl X {
    /// Doc.
    #[test]
    fn one() {
        if x {
        }
    }

    pub(crate) async fn two(
        a: u8,
    ) -> u8
    where
        T: Y,
    {
        a
    }

    fn short() {}
    fn declared(&self) -> u8;
}
// fn in_a_comment() {}
#[tokio::test(start_paused = true)]
const fn three<T>() {
}
";

    #[test]
    fn functions_are_found_with_their_size() {
        let found = functions(SAMPLE);
        let seen: Vec<_> = found.iter().map(|f| (f.name, f.lines, f.is_test)).collect();
        let expected =
            [("one", 4, true), ("two", 8, false), ("short", 1, false), ("declared", 0, false), ("three", 2, true)];
        assert_eq!(seen, expected);
        assert_eq!(found[0].line, 4);
    }

    #[test]
    fn modules_are_found_with_their_path() {
        let text = "mod a;\npub(crate) mod b;\n#[path = \"x/y.rs\"]\n#[cfg(test)]\nmod c;\nmod d {\n}\n// mod e;\n";
        let names: Vec<_> = modules(text).iter().map(|m| (m.name, m.path)).collect();
        assert_eq!(names, [("a", None), ("b", None), ("c", Some("x/y.rs"))]);
    }

    #[test]
    fn words_end_where_identifiers_end() {
        assert!(has_word("a case_one(", "case_one"));
        assert!(!has_word("case_one_more", "case_one"));
        assert!(!has_word("my_case_one", "case_one"));
    }
}
