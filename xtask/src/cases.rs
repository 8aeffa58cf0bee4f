//! `cargo xtask conformance --list`: the cases of the suite, which must be the same for every backend.

use crate::cli::BACKENDS;
use crate::shell;
use std::path::Path;

/// Prints the names of the cases as the binary of each backend lists them. Errors: a binary cannot be run, or one list is
/// not that of the others.
pub(crate) fn list(root: &Path) -> Result<(), String> {
    let mut lists = Vec::new();
    for backend in BACKENDS {
        let package = format!("mainstay-{backend}");
        let words = ["test", "--package", &package, "--test", "conformance", "--", "--list", "--format", "terse"];
        lists.push((*backend, cases(&shell::output(&mut shell::cargo(root, &words))?)));
    }
    let count = same(&lists)?;
    println!("{}\n{count} cases, the same list for {}", lists[0].1.join("\n"), BACKENDS.join(", "));
    Ok(())
}

/// The names in what a binary lists.
fn cases(output: &str) -> Vec<String> {
    output.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// How many cases there are. Errors: there are none, or two lists differ, in names or their order.
fn same(lists: &[(&str, Vec<String>)]) -> Result<usize, String> {
    let (first, all) = lists.first().filter(|(_, all)| !all.is_empty()).ok_or("no case is listed")?;
    for (other, listed) in &lists[1..] {
        if listed != all {
            let lone =
                |from: &[String], in_other: &[String]| from.iter().find(|name| !in_other.contains(name)).cloned();
            let name = lone(listed, all).or_else(|| lone(all, listed)).unwrap_or_else(|| "the order".into());
            return Err(format!("the lists of {first} and {other} differ: {name}"));
        }
    }
    Ok(all.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_the_same_only_with_the_same_names_in_one_order() {
        let list = |text: &str| cases(&text.replace(' ', ": test\n"));
        let one = ("one", list("a::x a::y "));
        assert_eq!(one.1, ["a::x", "a::y"]);
        assert_eq!(same(&[one.clone(), ("two", list("a::x a::y "))]), Ok(2));
        for (other, named) in [("a::x ", "a::y"), ("a::x a::y a::z ", "a::z"), ("a::y a::x ", "order"), ("", "a::x")] {
            let error = same(&[one.clone(), ("two", list(other))]).expect_err(other);
            assert!(error.contains(named) && error.contains("two"), "{error}");
        }
        assert!(same(&[("one", Vec::new())]).is_err());
    }
}
