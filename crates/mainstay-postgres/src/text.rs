//! Texts of statements: files of this crate, rendered for a schema and for what a database has.
//!
//! A file is one statement. Its head names the types of its parameters: `-- params: now bigint, ids text[]`. In its body
//! `{s}` is the shared schema and `{m}` our own, `{fence w}` what the fence of the row `w` is compared with, `{creator w}`
//! the token of the submit that made it. `-- use: part` puts a shared part in its place. `-- if split`, `-- if !split`,
//! `-- else` and `-- end` choose lines by [`Layout`]; they do not nest. Other comment lines are left out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_postgres::types::Type;

use crate::identifier::{Schema, quote};
use crate::layout::Layout;

/// Our own schema, the same in every database: installations share it, by the name of the shared schema as the first key
/// column of its tables.
pub(crate) const OURS: &str = "mainstay";

/// A statement of this crate.
#[derive(Debug)]
pub(crate) struct Text {
    /// Its name in errors and traces, unlike that of every other.
    pub(crate) name: &'static str,
    source: &'static str,
}

/// Makes the [`Text`] of a file under `src/sql`.
macro_rules! text {
    ($name:literal) => {
        $crate::text::Text::new($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql/", $name, ".sql")))
    };
}
pub(crate) use text;

impl Text {
    pub(crate) const fn new(name: &'static str, source: &'static str) -> Self {
        Self { name, source }
    }
}

/// A statement as it is sent.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) sql: String,
    pub(crate) types: Vec<Type>,
}

/// The statements for one database as it is now. Made anew when the database has changed.
#[derive(Debug)]
pub(crate) struct Texts {
    schema: Schema,
    pub(crate) layout: Layout,
    /// Whether new inputs go to their own table, where it is there; they do where they have no other place.
    write_split: bool,
    rendered: Mutex<HashMap<&'static str, Arc<Rendered>>>,
}

impl Texts {
    pub(crate) fn new(schema: Schema, layout: Layout, write_split: bool) -> Self {
        Self { schema, layout, write_split, rendered: Mutex::default() }
    }

    /// The same statements for a database that has changed.
    pub(crate) fn for_layout(&self, layout: Layout) -> Self {
        Self::new(self.schema.clone(), layout, self.write_split)
    }

    /// A statement as it is sent; rendered once.
    pub(crate) fn get(&self, text: &'static Text) -> Arc<Rendered> {
        let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        rendered.entry(text.name).or_insert_with(|| Arc::new(self.render(text))).clone()
    }

    fn render(&self, text: &Text) -> Rendered {
        let mut body = String::new();
        let mut types = Vec::new();
        self.lines(text.source, &mut body, &mut types);
        Rendered { sql: self.expressions(&body).trim().to_owned(), types }
    }

    fn lines(&self, source: &str, body: &mut String, types: &mut Vec<Type>) {
        let mut taken = true;
        for line in source.lines() {
            match line.strip_prefix("--").map(str::trim) {
                None if taken => {
                    body.push_str(line);
                    body.push('\n');
                }
                None => {}
                Some(comment) => match comment.split_once(": ") {
                    Some(("params", list)) => types.extend(list.split(", ").map(type_of)),
                    Some(("use", name)) if taken => self.lines(part(name.trim()), body, types),
                    _ => match comment.split_once(' ') {
                        Some(("if", condition)) if self.is_condition(condition).is_some() => {
                            taken = self.is_condition(condition) == Some(true);
                        }
                        _ if comment == "else" => taken = !taken,
                        _ if comment == "end" => taken = true,
                        _ => {}
                    },
                },
            }
        }
    }

    /// Whether a condition holds; nothing where the line is a comment that happens to begin so.
    fn is_condition(&self, condition: &str) -> Option<bool> {
        let (wanted, name) = match condition.strip_prefix('!') {
            Some(name) => (false, name),
            None => (true, condition),
        };
        let holds = match name {
            "split" => self.layout.split,
            // Where a later number has dropped the columns of the row there is one place left.
            "write_split" => self.layout.split && (self.write_split || !self.layout.inline),
            "owner" => self.layout.owner,
            "consumed_by" => self.layout.consumed_by,
            "inline" => self.layout.inline,
            _ => return None,
        };
        Some(holds == wanted)
    }

    /// Fills the places of a body in one pass, so that a name which looks like a place is not filled in turn.
    fn expressions(&self, body: &str) -> String {
        let mut out = String::with_capacity(body.len());
        let mut rest = body;
        while let Some(at) = rest.find('{') {
            let (before, after) = rest.split_at(at);
            out.push_str(before);
            let place = after.find('}').and_then(|end| Some((self.expression(&after[1..end])?, end + 1)));
            let (text, end) = place.unwrap_or_else(|| ("{".to_owned(), 1));
            out.push_str(&text);
            rest = &after[end..];
        }
        out.push_str(rest);
        out
    }

    /// What stands in a place; nothing where the braces are the statement's own.
    fn expression(&self, word: &str) -> Option<String> {
        Some(match word.split_once(' ').unwrap_or((word, "")) {
            ("s", "") => self.schema.quoted().to_owned(),
            ("m", "") => quote(OURS),
            ("fence", row) => self.fence(row),
            ("creator", row) if self.layout.owner => format!("{row}.creator_xid"),
            ("creator", row) => format!("{row}.owner_xid"),
            _ => return None,
        })
    }

    /// What the text of a fence is compared with: the owner's token and what no two runs of a row share, for a token may be
    /// used twice. Without a column for the token it is the latter alone.
    fn fence(&self, row: &str) -> String {
        if self.layout.owner {
            format!("({row}.owner_xid || '/' || {row}.started_at_epoch_ms)")
        } else {
            format!("concat_ws('/', {row}.started_at_epoch_ms, {row}.recovery_attempts, {row}.executor_id)")
        }
    }
}

fn type_of(declared: &str) -> Type {
    match declared.rsplit_once(' ').map_or(declared, |(_, name)| name).trim() {
        "bigint" => Type::INT8,
        "int" => Type::INT4,
        "text" => Type::TEXT,
        "bool" => Type::BOOL,
        "float" => Type::FLOAT8,
        "bigint[]" => Type::INT8_ARRAY,
        "int[]" => Type::INT4_ARRAY,
        "text[]" => Type::TEXT_ARRAY,
        "bool[]" => Type::BOOL_ARRAY,
        "float[]" => Type::FLOAT8_ARRAY,
        other => unreachable!("a statement declares a parameter of type {other}"),
    }
}

/// The parts that statements share, by name.
fn part(name: &str) -> &'static str {
    PARTS.iter().find(|(known, _)| *known == name).map_or_else(|| unreachable!("no part {name}"), |(_, source)| source)
}

macro_rules! parts {
    ($($name:literal),* $(,)?) => {
        const PARTS: &[(&str, &str)] = &[
            $(($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql/", $name, ".sql")))),*
        ];
    };
}

parts![
    "part_columns",
    "part_ended",
    "part_flip",
    "part_gate",
    "part_newest",
    "part_now",
    "part_park",
    "part_pick",
    "part_queue",
    "part_rooms",
    "part_rows",
    "part_starts",
];

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Text = Text::new(
        "sample",
        "-- A comment.\n-- params: now bigint, ids text[]\nSELECT {fence w}, {creator w}, '{}'\n-- if split\nFROM {s}.a\n\
         -- else\nFROM {s}.b\n-- end\n-- if !owner\n, {m}.c\n-- end\n",
    );

    fn layout(split: bool) -> Layout {
        Layout { number: 125, split, owner: split, consumed_by: split, inline: true }
    }

    fn texts(split: bool) -> Texts {
        Texts::new(Schema::new("schema", "a\"b").expect("a name"), layout(split), true)
    }

    #[test]
    fn a_statement_is_rendered_for_what_the_database_has() {
        static TEXT: Text = SAMPLE;
        let split = texts(true).get(&TEXT);
        assert_eq!(
            split.sql,
            "SELECT (w.owner_xid || '/' || w.started_at_epoch_ms), w.creator_xid, '{}'\nFROM \"a\"\"b\".a"
        );
        assert_eq!(split.types, [Type::INT8, Type::TEXT_ARRAY]);
        let inline = texts(false).get(&TEXT);
        let fence = "concat_ws('/', w.started_at_epoch_ms, w.recovery_attempts, w.executor_id)";
        assert_eq!(inline.sql, format!("SELECT {fence}, w.owner_xid, '{{}}'\nFROM \"a\"\"b\".b\n, \"mainstay\".c"));
    }

    #[test]
    fn a_name_that_looks_like_a_place_is_filled_in_once() {
        static TEXT: Text = Text::new("t", "FROM {s}.a, {m}.b, '{}'");
        let schema = Schema::new("schema", "{m}{s}{fence w}").expect("an odd name");
        let rendered = Texts::new(schema, layout(true), true).get(&TEXT);
        assert_eq!(rendered.sql, "FROM \"{m}{s}{fence w}\".a, \"mainstay\".b, '{}'");
    }

    #[test]
    fn inputs_stay_inline_on_request() {
        static TEXT: Text = Text::new("t", "-- if write_split\nsplit\n-- else\ninline\n-- end\n");
        let schema = || Schema::new("schema", "dbos").expect("a name");
        assert_eq!(Texts::new(schema(), layout(true), true).get(&TEXT).sql, "split");
        assert_eq!(Texts::new(schema(), layout(true), false).get(&TEXT).sql, "inline");
        assert_eq!(Texts::new(schema(), layout(false), true).get(&TEXT).sql, "inline");
        let dropped = Layout { inline: false, ..layout(true) };
        assert_eq!(Texts::new(schema(), dropped, false).get(&TEXT).sql, "split");
    }
}
