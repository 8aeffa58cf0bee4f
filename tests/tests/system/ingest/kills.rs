//! The crash test: killed thirty times at moments drawn by seed, it loses nothing and repeats nothing that was recorded.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

use mainstay_env::{Rng, block_on};
use mainstay_store::{Outcome, Standing};

use super::journal::{Journal, SUMMARY, Step};
use super::site::{Program, Site};

/// Files of the test.
const FILES: usize = 500;

/// Kills while files are ingested.
const KILLS: usize = 28;

/// Kills while the summary is written.
const IN_SUMMARY: usize = 2;

/// Seed of the files and of the moments.
const SEED: u64 = 20;

/// Pause in the middle of a step that writes, in milliseconds.
const PAUSE: u64 = 4;

/// The same where the summary is to be met while it is written.
const LONG_PAUSE: u64 = 1_000;

/// Lease of a process on PostgreSQL, in milliseconds: what a killed one had in its hands waits for it.
const LEASE: u64 = 600;

/// Between two looks at the ledger.
const LOOK: Duration = Duration::from_millis(1);

/// Within this something must happen. A lease that had to be seen standing still would take 10 s alone.
const SOON: Duration = Duration::from_secs(5);

/// What was found at one kill.
struct Kill {
    /// Steps that had begun in the killed process and had not ended.
    open: BTreeSet<Step>,
    /// Steps that were recorded.
    recorded: usize,
    /// Whether that of the summary was among them.
    is_over: bool,
}

/// The runs of the test, and what they left behind.
struct Series {
    site: Site,
    journal: Journal,
    recorded: BTreeSet<Step>,
    /// Lines that were judged.
    judged: usize,
    kills: Vec<Kill>,
}

#[test]
fn ingest_survives_thirty_kills_and_repeats_no_recorded_step() {
    kill_thirty_times(Site::of(FILES, SEED));
}

#[test]
fn ingest_on_postgres_survives_thirty_kills_and_repeats_no_recorded_step() {
    let Some(database) = crate::postgres::fresh_database() else { return };
    kill_thirty_times(Site::of(FILES, SEED).on(database, LEASE));
}

fn kill_thirty_times(site: Site) {
    site.run("calm").ended(0);
    let journal = site.journal("out");
    let series = Series { site, journal, recorded: BTreeSet::new(), judged: 0, kills: Vec::new() };
    block_on(killed(series));
}

async fn killed(mut series: Series) {
    for moment in moments() {
        let mut program = series.site.start("out", PAUSE);
        series.until(&mut program, |journal| journal.lines.len() >= moment).await;
        series.kill(program).await;
    }
    for _ in 0..IN_SUMMARY {
        let mut program = series.site.start("out", LONG_PAUSE);
        let process = program.process();
        series.until(&mut program, |journal| journal.open_in(process).iter().any(|step| step.1 == SUMMARY)).await;
        series.kill(program).await;
    }
    series.site.start("out", 0).end().ended(0);
    series.judge().await;
    series.assert_complete().await;
    assert_spread(&series.kills);
}

/// Lines of the ledger at which a process is killed: two before it can have done anything, the others spread by seed
/// over three steps a file of two lines each.
fn moments() -> Vec<usize> {
    let rng = Rng::seeded(SEED).child("moments");
    let all = FILES as u64 * 6;
    let mut moments: Vec<usize> = (2..KILLS).map(|_| rng.between(10, all - 60) as usize).collect();
    moments.extend([0, 1]);
    moments.sort_unstable();
    moments
}

impl Series {
    /// Waits for something in the ledger, which must grow meanwhile.
    async fn until(&mut self, program: &mut Program, is_there: impl Fn(&Journal) -> bool) {
        let mut moved = self.site.env.monotonic();
        loop {
            let before = self.journal.lines.len();
            self.journal.refresh();
            if is_there(&self.journal) {
                return;
            }
            assert!(program.runs(), "it ended before its moment, after {before} lines");
            let now = self.site.env.monotonic();
            if self.journal.lines.len() > before {
                moved = now;
            }
            let still = now.since(moved);
            assert!(still < SOON, "nothing happens for {still:?}, after {before} lines");
            self.site.env.sleep(LOOK).await;
        }
    }

    async fn kill(&mut self, program: Program) {
        let process = program.process();
        program.kill();
        self.judge().await;
        self.kills.push(Kill {
            open: self.journal.open_in(process).into_iter().cloned().collect(),
            recorded: self.recorded.len(),
            is_over: self.recorded.iter().any(|step| step.1 == SUMMARY),
        });
    }

    /// Judges what the last process did by what was recorded before it, and reads what is recorded now.
    async fn judge(&mut self) {
        self.journal.refresh();
        for line in self.journal.begun(self.judged) {
            assert!(!self.recorded.contains(&line.step), "{:?} ran again after it was recorded", line.step);
        }
        self.judged = self.journal.lines.len();
        let names = ["hash", "count", "write", SUMMARY];
        let mut recorded = self.site.recorded("out", &self.journal.workflows()).await;
        recorded.retain(|step| names.contains(&step.1.as_str()));
        assert!(recorded.is_superset(&self.recorded), "a recorded step is gone");
        let ended: BTreeSet<_> = self.journal.lines.iter().filter(|line| !line.begins).map(|line| &line.step).collect();
        assert!(recorded.iter().all(|step| ended.contains(step)), "a step is recorded that never ended");
        self.recorded = recorded;
    }

    /// No file was lost, and the summary is that of a run that nobody disturbed.
    async fn assert_complete(&self) {
        self.journal.assert_once_in_each_process();
        assert_eq!(self.recorded.len(), FILES * 3 + 1, "three steps a file, and the summary");
        let workflows = self.journal.workflows();
        assert_eq!(workflows.len(), FILES + 1, "each file is one workflow, and the run is one");
        let standing = self.site.standing("out", &workflows).await;
        let well = standing.iter().filter(|standing| matches!(standing, Standing::Ended(Outcome::Success(_))));
        assert_eq!(well.count(), FILES + 1);
        assert_eq!(self.site.summary("out"), self.site.summary("calm"));
    }
}

/// The kills were where they were to be, as ledger and store show.
fn assert_spread(kills: &[Kill]) {
    let between = kills.iter().filter(|kill| kill.recorded > 0 && !kill.is_over).count();
    let in_step = kills.iter().filter(|kill| !kill.open.is_empty()).count();
    let in_summary = kills.iter().filter(|kill| kill.open.iter().any(|step| step.1 == SUMMARY)).count();
    let recorded: Vec<usize> = kills.iter().map(|kill| kill.recorded).collect();
    // A line for whoever reads the log; nothing can be said on an output that is closed.
    let _ = writeln!(
        std::io::stderr(),
        "{} kills: {between} between the first and the last checkpoint, {in_step} inside a step, {in_summary} in the \
         summary; steps recorded at each: {recorded:?}",
        kills.len()
    );
    assert_eq!(kills.len(), 30);
    assert!(between >= 20 && in_step >= 5 && in_summary >= 2, "{between} {in_step} {in_summary}");
}
