//! Fills the shapes of the migrations with a schema's name.

use mainstay_migrations::Step;

use crate::identifier::{Schema, literal};

/// How the statements of a step are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// In a transaction, with everything else.
    Whole,
    /// By themselves, while others write.
    Online,
}

/// The statements of a step for one schema.
pub(super) fn fill(step: &Step, schema: &Schema, manner: Manner) -> String {
    let concurrently = if manner == Manner::Online { "CONCURRENTLY" } else { "" };
    // One pass, so that a name which looks like a shape is not filled in turn.
    let shapes = [
        ("{{schema}}", schema.quoted().to_owned()),
        ("{{schema_text}}", literal(schema.name())),
        ("{{body}}", dollar_quote(schema.name())),
        ("{{concurrently}}", concurrently.to_owned()),
    ];
    let mut rest = step.sql;
    let mut filled = String::with_capacity(rest.len() + 256);
    while let Some(at) = rest.find("{{") {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        match shapes.iter().find(|(shape, _)| rest.starts_with(shape)) {
            Some((shape, text)) => {
                filled.push_str(text);
                rest = &rest[shape.len()..];
            }
            None => {
                filled.push_str("{{");
                rest = &rest[2..];
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// A dollar quote that a body with this name inside does not end.
fn dollar_quote(name: &str) -> String {
    // A name has 63 bytes, so that one of these is not in it.
    let free = (0..64).map(|n| format!("$body{n}$")).find(|quote| !name.contains(quote.as_str()));
    free.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_migrations::POSTGRES;

    #[test]
    fn a_name_that_looks_like_a_shape_is_filled_in_once() {
        let schema = Schema::new("schema", "{{body}}$body0$").expect("an odd name");
        let step = POSTGRES.iter().find(|step| step.number == 14).expect("a step with a body");
        let text = fill(step, &schema, Manner::Whole);
        assert!(text.contains(r#""{{body}}$body0$".send_message"#), "{text}");
        assert!(text.contains("$body1$") && !text.contains("{{schema"), "{text}");
    }

    #[test]
    fn only_an_online_step_builds_concurrently() {
        let schema = Schema::new("schema", "dbos").expect("a name");
        let step = POSTGRES.last().expect("a ladder");
        assert!(fill(step, &schema, Manner::Online).contains("INDEX CONCURRENTLY IF NOT EXISTS"));
        assert!(!fill(step, &schema, Manner::Whole).contains("CONCURRENTLY"));
    }
}
