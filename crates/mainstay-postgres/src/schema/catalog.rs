//! Compares a catalog with what the numbers of the ladder promise.

use std::collections::BTreeSet;

use mainstay_store::ErrorKind;
use tokio_postgres::Client;

use crate::fault::Fault;
use crate::identifier::{Schema, literal};
use crate::plain;

/// One fact a line, of the whole schema; `@schema@` stands for its name.
const CATALOG: &str = include_str!("catalog.sql");
/// Facts with the first and the last number that they hold at.
const FACTS: &str = include_str!("facts.txt");

/// What a schema has, as keys of facts.
pub(super) type Found = BTreeSet<String>;

/// A fact of the ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fact {
    first: u32,
    last: u32,
    text: &'static str,
}

/// Reads the catalog of a schema.
pub(super) async fn read(client: &Client, schema: &Schema) -> Result<Found, tokio_postgres::Error> {
    Ok(lines(client, schema).await?.iter().filter(|line| !line.ends_with(" invalid")).map(|line| key(line)).collect())
}

/// The facts themselves, in their order.
pub(super) async fn lines(client: &Client, schema: &Schema) -> Result<Vec<String>, tokio_postgres::Error> {
    // A role may have keys and predicates spelled with quotes. The setting ends with these two statements, or with the
    // transaction that they are part of.
    let facts = CATALOG.replace("@schema@", &literal(schema.name()));
    let rows = plain::rows(client, &format!("SET LOCAL quote_all_identifiers = off;\n{facts}")).await?;
    Ok(rows.iter().filter_map(|row| row.get(0).map(str::to_owned)).collect())
}

/// The facts that hold at a number.
pub(super) fn facts(number: u32) -> Vec<&'static str> {
    all().filter(|fact| (fact.first..=fact.last).contains(&number)).map(|fact| fact.text).collect()
}

/// Refuses a catalog that lacks what statements need at `number`, or has what makes them ambiguous.
///
/// What comes with later numbers is not looked at: a step may be done and its number not yet recorded.
pub(super) fn judge(found: &Found, number: u32, schema: &Schema) -> Result<(), Fault> {
    let wanted: BTreeSet<String> = facts(number).iter().map(|text| key(text)).collect();
    let missing = facts(number).into_iter().filter(|text| is_grave(text) && !found.contains(&key(text)));
    let left = all()
        .filter(|fact| fact.last < number && is_grave(fact.text))
        .map(|fact| fact.text)
        .filter(|text| found.contains(&key(text)) && !wanted.contains(&key(text)));
    let faults: Vec<String> = missing
        .map(|text| format!("lacks {}", key(text)))
        .chain(left.map(|text| format!("still has {}", key(text))))
        .collect();
    refuse(&faults, number, schema)
}

/// Refuses a catalog that is not what the step to `number` makes of it.
pub(super) fn judge_step(found: &Found, number: u32, schema: &Schema) -> Result<(), Fault> {
    judge(found, number, schema)?;
    let wanted: BTreeSet<String> = facts(number).iter().map(|text| key(text)).collect();
    let missing =
        all().filter(|fact| fact.first == number && is_checked(fact.text) && !found.contains(&key(fact.text)));
    let left = all().filter(|fact| fact.last + 1 == number && is_checked(fact.text)).filter(|fact| {
        let key = key(fact.text);
        found.contains(&key) && !wanted.contains(&key)
    });
    let faults: Vec<String> = missing
        .map(|fact| format!("lacks {}", key(fact.text)))
        .chain(left.map(|fact| format!("still has {}", key(fact.text))))
        .collect();
    refuse(&faults, number, schema)
}

/// What a catalog lacks at `number` that statements can do without: indexes, and the trigger that tells of messages.
pub(super) fn lacks(found: &Found, number: u32) -> Vec<&'static str> {
    facts(number).into_iter().filter(|text| !is_grave(text) && !found.contains(&key(text))).collect()
}

/// The names of the indexes that the ladder builds.
pub(super) fn index_names() -> BTreeSet<&'static str> {
    names(u32::MAX, |text| text.strip_prefix("index ")?.split(' ').next())
}

/// The names that tables and indexes have at some number up to `number`.
pub(super) fn relation_names(number: u32) -> BTreeSet<&'static str> {
    names(number, |text| text.strip_prefix("table ").or_else(|| text.strip_prefix("index ")?.split(' ').next()))
}

/// The names that functions have at some number up to `number`.
pub(super) fn function_names(number: u32) -> BTreeSet<&'static str> {
    names(number, |text| text.strip_prefix("function ")?.split('(').next())
}

fn names(number: u32, name: impl Fn(&'static str) -> Option<&'static str>) -> BTreeSet<&'static str> {
    all().filter(|fact| fact.first <= number).filter_map(|fact| name(fact.text)).collect()
}

fn refuse(faults: &[String], number: u32, schema: &Schema) -> Result<(), Fault> {
    let Some(first) = faults.first() else { return Ok(()) };
    let more = if faults.len() > 1 { format!(" (and {} more)", faults.len() - 1) } else { String::new() };
    let name = schema.quoted();
    Err(Fault::Store(
        ErrorKind::Corrupt,
        format!("schema {name} is not what number {number} of its ladder makes: it {first}{more}"),
    ))
}

fn all() -> impl Iterator<Item = Fact> {
    FACTS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (range, text) = line.split_once(' ')?;
        let (first, last) = range.split_once('-')?;
        let last = if last.is_empty() { u32::MAX - 1 } else { last.parse().ok()? };
        Some(Fact { first: first.parse().ok()?, last, text })
    })
}

/// What of a fact must be equal, whoever has migrated: defaults and predicates are spelled in several ways.
fn key(text: &str) -> String {
    if text.starts_with("column ") {
        text.split(" default ").next().unwrap_or(text).to_owned()
    } else if text.starts_with("function ") {
        text.split(" returns ").next().unwrap_or(text).to_owned()
    } else if let Some((index, _)) = text.split_once(" where ").filter(|_| text.starts_with("index ")) {
        format!("{index} partial")
    } else {
        text.to_owned()
    }
}

/// Whether a schema is of no use without it: everything but plain indexes and what a trigger tells.
fn is_grave(text: &str) -> bool {
    let is_index = text.starts_with("index ") && !text.contains(" btree unique ");
    is_checked(text) && !is_index
}

/// Whether a step must have made it: a database without LISTEN has no triggers, and nobody adds them later.
fn is_checked(text: &str) -> bool {
    !(text.starts_with("trigger ") || text.contains("_function() returns trigger"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        Schema::new("schema", "dbos").expect("a name")
    }

    fn at(number: u32) -> Found {
        facts(number).iter().map(|text| key(text)).collect()
    }

    #[test]
    fn every_line_of_the_facts_is_read() {
        let written = FACTS.lines().filter(|line| !line.starts_with('#')).count();
        assert!(all().count() == written && written > 181, "{written}");
        assert_eq!(facts(125).len(), 181);
        assert_eq!(facts(48), facts(99));
    }

    #[test]
    fn each_number_is_what_its_own_facts_say_and_no_other_step_passes_for_it() {
        for number in (1..=47).chain(100..=125) {
            assert!(judge_step(&at(number), number, &schema()).is_ok(), "{number}");
            let before = if number == 100 { 47 } else { number - 1 };
            // These steps change nothing that is compared: a guarded key, a pin, a body, a trigger.
            if ![1, 10, 20, 39, 43, 44, 113].contains(&number) {
                assert!(judge_step(&at(before), number, &schema()).is_err(), "{number}");
            }
        }
    }

    #[test]
    fn a_lost_column_is_refused_and_a_lost_index_is_only_told() {
        let mut found = at(125);
        found.retain(|key| !key.starts_with("index idx_workflow_status_deadline"));
        assert!(judge(&found, 125, &schema()).is_ok());
        assert_eq!(lacks(&found, 125).len(), 1);
        found.retain(|key| !key.starts_with("column workflow_status.is_debounced"));
        let text = format!("{:?}", judge(&found, 125, &schema()).expect_err("a lost column"));
        assert!(text.contains("lacks column workflow_status.is_debounced"), "{text}");
    }

    #[test]
    fn an_older_signature_beside_the_new_one_is_refused() {
        let old =
            facts(104).into_iter().find(|text| text.starts_with("function enqueue_workflow")).expect("a function");
        let mut found = at(125);
        found.insert(key(old));
        let text = format!("{:?}", judge(&found, 125, &schema()).expect_err("two signatures"));
        assert!(text.contains("still has function enqueue_workflow"), "{text}");
    }
}
