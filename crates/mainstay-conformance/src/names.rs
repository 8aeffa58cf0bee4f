//! The list of cases: how many there are, how they are named, and that what the contract's documentation names is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::run::trials;
use crate::{Backend, Lack, Subject, cases};
use async_trait::async_trait;
use mainstay_store::{Capabilities, Capability, Env, Result, Store, StoreClock};
use std::sync::Arc;

/// A backend that is asked for nothing but its capabilities.
struct Unopened(Capabilities);

#[async_trait]
impl Backend for Unopened {
    fn capabilities(&self) -> Capabilities {
        self.0.clone()
    }

    fn has_own_clock(&self) -> bool {
        true
    }

    async fn open(&self, _env: Env, _clock: StoreClock) -> Result<Arc<dyn Store>> {
        panic!("a skipped case opens no store")
    }
}

fn subject(capabilities: Capabilities) -> Subject {
    Subject::new("unopened", move || Box::new(Unopened(capabilities.clone())))
}

fn names() -> Vec<String> {
    cases().iter().map(crate::Case::name).collect()
}

#[test]
fn there_are_at_least_250_cases_with_names_of_their_own() {
    let distinct: BTreeSet<String> = names().into_iter().collect();
    assert_eq!(distinct.len(), names().len());
    assert!(distinct.len() >= 250, "only {}", distinct.len());
}

#[test]
fn a_name_is_a_group_and_a_sentence() {
    for name in names() {
        let (group, sentence) = name.split_once("::").unwrap_or_else(|| panic!("{name} has no group"));
        let plain = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        assert!(plain(group) && plain(sentence) && sentence.split('_').count() > 2, "{name} is no sentence");
    }
}

#[test]
fn every_backend_has_the_same_list() {
    let all = Capability::ALL.into_iter().fold(Capabilities::none(), Capabilities::with);
    for capabilities in [Capabilities::none(), all] {
        let listed: Vec<String> = trials(&subject(capabilities)).iter().map(|trial| trial.name().to_owned()).collect();
        assert_eq!(listed, names());
    }
}

#[test]
fn a_case_is_skipped_by_the_capability_or_trouble_that_it_names() {
    let none = subject(Capabilities::none());
    let (mut skipped, mut troubles, mut clocks) = (0, 0, 0);
    for case in cases() {
        let Some(lacking) = case.lacks(&Unopened(Capabilities::none())) else { continue };
        assert_eq!(case.run(&none), Ok(crate::Verdict::Skipped(lacking)), "{}", case.name());
        match lacking {
            Lack::Capability(_) => skipped += 1,
            Lack::Trouble(_) => troubles += 1,
            Lack::EnvironmentClock => clocks += 1,
        }
    }
    assert!(skipped > 20 && troubles > 20 && clocks > 4, "only {skipped}, {troubles} and {clocks}");
}

/// The documentation of the contract, a paragraph of doc comments each.
fn paragraphs() -> Vec<String> {
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mainstay-store/src/contract");
    let mut found = Vec::new();
    for entry in fs::read_dir(contract).expect("the contract's folder") {
        let text = fs::read_to_string(entry.expect("a file").path()).expect("a source file");
        let lines = text.lines().map(|line| line.trim().strip_prefix("///").map(str::trim));
        let mut paragraph = String::new();
        for line in lines {
            match line {
                Some(line) => paragraph = format!("{paragraph} {line}"),
                None => found.push(std::mem::take(&mut paragraph)),
            }
        }
    }
    found
}

#[test]
fn what_the_contract_names_as_its_cases_is_there() {
    let names = names();
    let groups: BTreeSet<&str> = names.iter().filter_map(|name| name.split("::").next()).collect();
    let mut methods = 0;
    for paragraph in paragraphs() {
        let Some((_, said)) = paragraph.split_once("Conformance:") else { continue };
        methods += 1;
        let quoted: Vec<&str> = said.split('`').skip(1).step_by(2).collect();
        assert!(!quoted.is_empty(), "nothing is named: {paragraph}");
        for name in quoted {
            let known = groups.contains(name) || names.iter().any(|case| case == name);
            assert!(known, "there is no group and no case `{name}`: {paragraph}");
        }
    }
    assert_eq!(methods, 21, "the methods of the six required traits");
}
