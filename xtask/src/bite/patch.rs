//! One patch file: a header of `#` lines, then a diff.

use std::path::{Path, PathBuf};

/// A way to break the code, and the tests that must notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Patch {
    /// The file's name without its ending.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// For each `# expect:` line the arguments of a test run that must turn red.
    pub(crate) expect: Vec<Vec<String>>,
    /// The files that the diff changes, relative to the tree.
    pub(crate) changes: Vec<String>,
}

/// Reads the patches of a folder, or those named. Errors: an unknown name, a faulty header, no patch at all.
pub(crate) fn read_all(dir: &Path, names: &[String]) -> Result<Vec<Patch>, String> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", dir.display()))?.path();
        if path.extension().is_some_and(|ending| ending == "patch") {
            found.push(path);
        }
    }
    found.sort();
    let mut patches = Vec::new();
    for path in found {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        patches.push(parse(&path, &text)?);
    }
    if let Some(unknown) = names.iter().find(|name| patches.iter().all(|patch| patch.name != **name)) {
        return Err(format!("there is no patch `{unknown}`"));
    }
    patches.retain(|patch| names.is_empty() || names.contains(&patch.name));
    if patches.is_empty() { Err(format!("{} holds no patch", dir.display())) } else { Ok(patches) }
}

/// Reads one patch. Errors: a header without `# expect:`, an expectation without a package, a diff without a file.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Patch, String> {
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let header = text.lines().take_while(|line| line.starts_with('#') || line.trim().is_empty());
    let mut expect = Vec::new();
    for line in header.filter_map(|line| line.strip_prefix("# expect:")) {
        let args = words(line).map_err(|error| format!("{name}: {error}"))?;
        if !args.iter().any(|arg| arg == "-p" || arg == "--package") {
            return Err(format!("{name}: `# expect:{line}` names no package with -p"));
        }
        expect.push(args);
    }
    if expect.is_empty() {
        return Err(format!("{name}: the header has no `# expect: -p <package> <filter>`"));
    }
    let changes: Vec<String> = text.lines().filter_map(changed_file).collect();
    if changes.is_empty() {
        return Err(format!("{name}: the diff changes no file"));
    }
    Ok(Patch { name, path: path.to_owned(), expect, changes })
}

/// Both sides count, so that a file which a patch removes or renames is put back.
fn changed_file(line: &str) -> Option<String> {
    let side = line.strip_prefix("--- a/").or_else(|| line.strip_prefix("+++ b/"))?;
    side.split('\t').next().map(str::to_owned)
}

/// Splits at spaces, with single and double quotes as in a shell.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for character in line.chars() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, space) if space.is_whitespace() => words.extend(word.take()),
            (_, other) => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    if quote.is_some() { Err("a quote is not closed".into()) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/crates/x/src/lib.rs\n+++ b/crates/x/src/lib.rs\n@@ -1 +1 @@\n-a\n+b\n";

    fn read(header: &str) -> Result<Patch, String> {
        parse(Path::new("xtask/bites/lost-release.patch"), &format!("{header}\n{DIFF}"))
    }

    #[test]
    fn a_header_names_the_tests_that_must_turn_red() {
        let patch =
            read("# Forgets a release.\n# expect: -p mainstay-queue -E 'test(a b)'\n# expect: -p x y").expect("good");
        assert_eq!(patch.name, "lost-release");
        assert_eq!(patch.expect[0], ["-p", "mainstay-queue", "-E", "test(a b)"]);
        assert_eq!(patch.expect[1], ["-p", "x", "y"]);
        assert_eq!(patch.changes, ["crates/x/src/lib.rs", "crates/x/src/lib.rs"]);
    }

    #[test]
    fn a_header_that_demands_nothing_is_refused() {
        for (header, named) in [
            ("# Only words.", "no `# expect:"),
            ("# expect: some_test", "names no package"),
            ("# expect: -p x 'open", "not closed"),
        ] {
            let error = read(header).expect_err(header);
            assert!(error.contains("lost-release") && error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_patch_without_a_diff_is_refused() {
        let error = parse(Path::new("empty.patch"), "# expect: -p x\n").expect_err("no diff");
        assert!(error.contains("changes no file"), "{error}");
    }

    #[test]
    fn an_unknown_name_and_an_empty_folder_are_errors() {
        let dir = std::env::temp_dir().join(format!("bites-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder");
        assert!(read_all(&dir, &[]).expect_err("empty").contains("holds no patch"));
        std::fs::write(dir.join("one.patch"), format!("# expect: -p x\n{DIFF}")).expect("written");
        assert!(read_all(&dir, &["two".into()]).expect_err("unknown").contains("`two`"));
        assert_eq!(read_all(&dir, &["one".into()]).expect("known").len(), 1);
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}
