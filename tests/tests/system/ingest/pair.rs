//! Two processes ingest one folder into one store; the one that leads is killed.

use std::time::Duration;

use mainstay_env::block_on;

use super::site::Site;

/// Files of the test.
const FILES: usize = 300;

/// Between two looks at the ledger.
const LOOK: Duration = Duration::from_millis(2);

/// Lease of a process on PostgreSQL, in milliseconds: long enough for two that share a machine with other tests.
const LEASE: u64 = 2_000;

/// Within this the other process must have finished. A usual lease that had to be seen standing still would take 10 s alone.
const SOON: Duration = Duration::from_secs(9);

#[test]
fn of_two_processes_on_one_folder_the_other_finishes_when_the_leading_one_is_killed() {
    let site = Site::of(FILES, 21);
    site.run("calm").ended(0);
    block_on(pair(&site));
}

#[test]
fn of_two_processes_on_one_database_the_other_finishes_when_the_leading_one_is_killed() {
    let Some(database) = crate::postgres::fresh_database() else { return };
    let site = Site::of(FILES, 21).on(database, LEASE);
    site.run("calm").ended(0);
    block_on(pair(&site));
}

#[test]
fn runs_over_two_folders_on_one_database_take_no_file_of_each_other() {
    let Some(database) = crate::postgres::fresh_database() else { return };
    let sites = [11, 12].map(|seed| Site::of(100, seed).on(database.clone(), LEASE));
    for site in &sites {
        site.run("calm").ended(0);
    }
    let programs = sites.each_ref().map(|site| site.start("out", 10));
    for (site, program) in sites.iter().zip(programs) {
        program.end().ended(0);
        assert_eq!(site.journal("out").workflows().len(), 100 + 1, "its own files, and its run");
        assert_eq!(site.summary("out"), site.summary("calm"));
    }
}

async fn pair(site: &Site) {
    let mut first = site.start("out", 10);
    let mut journal = site.journal("out");
    // It leads: the run is its own, and is under way.
    while journal.lines.len() < 20 {
        site.env.sleep(LOOK).await;
        journal.refresh();
    }
    let mut second = site.start("out", 10);
    let (leading, other) = (first.process(), second.process());
    let at_work = |journal: &super::journal::Journal, process| {
        journal.lines.iter().filter(|line| line.process == process).count() > 30
    };
    while !at_work(&journal, other) || journal.open_in(leading).is_empty() {
        assert!(first.runs() && second.runs(), "one ended before both were at work");
        site.env.sleep(LOOK).await;
        journal.refresh();
    }
    first.kill();
    let begun = site.env.monotonic();
    journal.refresh();
    let recorded = site.recorded("out", &journal.workflows()).await;
    journal.refresh();
    let known = journal.lines.len();
    second.end().ended(0);
    let took = site.env.monotonic().since(begun);
    journal.refresh();
    for line in journal.begun(known) {
        assert!(!recorded.contains(&line.step), "{:?} ran again after it was recorded", line.step);
    }
    journal.assert_once_in_each_process();
    assert_eq!(journal.workflows().len(), FILES + 1, "no file was lost, and there was one run");
    assert_eq!(site.summary("out"), site.summary("calm"));
    assert!(took < SOON, "it took {took:?} to go on alone");
}
