//! A file of statements as psql would run it, as far as `docs/postgres/roles.sql` needs that.

/// What is done with a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is run.
    Run(String),
    /// It is asked, and each value of its answer is run in turn: `\gexec`.
    RunAnswers(String),
}

/// The statements of a file, its variables filled in: `:"name"` as an identifier, `:'name'` as a literal. A statement ends
/// at the end of a line. Panics when one does not end.
pub(crate) fn steps(file: &str, variables: &[(&str, &str)]) -> Vec<Step> {
    let mut filled = file.to_owned();
    for (name, value) in variables {
        filled = filled.replace(&format!(":\"{name}\""), &format!("\"{value}\""));
        filled = filled.replace(&format!(":'{name}'"), &format!("'{value}'"));
    }
    let mut steps = Vec::new();
    let mut statement = String::new();
    for line in filled.lines().filter(|line| !line.starts_with("--")) {
        statement.push_str(line);
        statement.push('\n');
        if let Some(ask) = statement.trim_end().strip_suffix("\\gexec") {
            steps.push(Step::RunAnswers(ask.to_owned()));
        } else if line.ends_with(';') {
            steps.push(Step::Run(statement.clone()));
        } else {
            continue;
        }
        statement.clear();
    }
    assert!(statement.trim().is_empty(), "an unfinished statement: {statement}");
    steps
}
