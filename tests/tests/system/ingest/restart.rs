//! The server of the store is stopped at once and started again while a run goes on, and the program stays.

use mainstay_env::block_on;
use mainstay_pgkit::{Options, Server};
use std::time::Duration;

use super::journal::{Journal, SUMMARY};
use super::site::{Program, Site};

/// Files of the test.
const FILES: usize = 200;

/// Lines of the ledger, of six a file, at which the server is stopped.
const MOMENTS: [usize; 2] = [300, 800];

/// Pause in the middle of a step that writes, in milliseconds.
const PAUSE: u64 = 20;

/// A usual lease, in milliseconds: an outage costs nobody his.
const LEASE: u64 = 10_000;

/// Between two looks at the ledger.
const LOOK: Duration = Duration::from_millis(1);

#[test]
fn ingest_goes_on_over_restarts_of_its_server_without_being_started_again() {
    let Some(server) = mainstay_pgkit::own_server(Options::new().durable()) else { return };
    let site = Site::of(FILES, 22).on(server.database(), LEASE);
    site.run("calm").ended(0);
    block_on(restarted(&site, &server));
}

async fn restarted(site: &Site, server: &Server) {
    let mut program = site.start("out", PAUSE);
    let mut journal = site.journal("out");
    let mut cut = 0;
    for moment in MOMENTS {
        reach(site, &mut program, &mut journal, moment).await;
        cut += journal.open_in(program.process()).len();
        server.stop_immediate();
        server.start_again().expect("a server");
        // What stands there after its recovery was recorded, and is never run again.
        let recorded = site.recorded("out", &journal.workflows()).await;
        journal.refresh();
        let known = journal.lines.len();
        reach(site, &mut program, &mut journal, known + 40).await;
        for line in journal.begun(known) {
            assert!(!recorded.contains(&line.step), "{:?} ran again after it was recorded", line.step);
        }
    }
    program.end().ended(0);
    journal.refresh();
    assert!(cut > 0, "no step was under way at a stop");
    journal.assert_once_in_each_process();
    let workflows = journal.workflows();
    assert_eq!(workflows.len(), FILES + 1, "each file is one workflow, and the run is one");
    let steps = site.recorded("out", &workflows).await;
    let steps = steps.iter().filter(|step| ["hash", "count", "write", SUMMARY].contains(&step.1.as_str()));
    assert_eq!(steps.count(), FILES * 3 + 1, "three steps a file, and the summary");
    assert_eq!(site.summary("out"), site.summary("calm"));
}

/// Waits for so many lines of the ledger.
async fn reach(site: &Site, program: &mut Program, journal: &mut Journal, lines: usize) {
    let limit = site.env.deadline(Duration::from_secs(20));
    while journal.lines.len() < lines {
        assert!(program.runs(), "it ended after {} lines", journal.lines.len());
        assert!(site.env.monotonic() < limit, "nothing happens after {} lines", journal.lines.len());
        site.env.sleep(LOOK).await;
        journal.refresh();
    }
}
