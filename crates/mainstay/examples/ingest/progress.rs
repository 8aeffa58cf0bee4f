//! How far a run is: a bar on a terminal, plain lines elsewhere, on standard error.

use std::fmt;
use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// Plain lines of a run, beside the first one.
const LINES: u64 = 10;

/// How often the bar is drawn anew while nothing ends.
const TICK: Duration = Duration::from_millis(250);

/// Shows how many files have ended.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    total: u64,
    done: u64,
}

impl Progress {
    /// Says how many files there are and how many of them have ended before, and begins to show.
    pub(crate) fn new(total: u64, done: u64) -> Self {
        say(&format!("{total} {}: {done} done, {} left", files(total), total - done));
        let bar = (stderr().is_terminal() && done < total).then(|| bar(total, done));
        Self { bar, total, done }
    }

    /// Counts files that have ended.
    pub(crate) fn add(&mut self, more: u64) {
        let before = self.done;
        self.done = (before + more).min(self.total);
        match &self.bar {
            Some(bar) => bar.set_position(self.done),
            None => {
                if let Some(line) = line(self.total, before, self.done) {
                    say(&line);
                }
            }
        }
    }

    /// Ends the show.
    pub(crate) fn finish(&mut self) {
        self.add(self.total - self.done);
        self.close();
    }

    /// Ends it where it is.
    pub(crate) fn close(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: u64, done: u64) -> ProgressBar {
    let bar = ProgressBar::new(total).with_position(done);
    // The estimate is of what this process sees, not of what was done before.
    bar.reset_eta();
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} files, {speed}") {
        bar.set_style(style.with_key("speed", |state: &ProgressState, out: &mut dyn fmt::Write| {
            // A line that cannot be drawn is drawn again soon.
            let _ = out.write_str(&speed(state.per_sec(), state.eta()));
        }));
    }
    bar.enable_steady_tick(TICK);
    bar
}

/// Rate and estimate, as far as they are known.
fn speed(rate: f64, left: Duration) -> String {
    let seconds = left.as_secs();
    match rate {
        rate if rate < f64::EPSILON => "starting".to_owned(),
        rate if seconds < 60 => format!("{rate:.0}/s, {seconds} s left"),
        rate => format!("{rate:.0}/s, {} min {:02} s left", seconds / 60, seconds % 60),
    }
}

/// The line for a step from `before` to `done` files, where one is due.
fn line(total: u64, before: u64, done: u64) -> Option<String> {
    let tenth = |count: u64| count * LINES / total.max(1);
    (tenth(done) > tenth(before)).then(|| format!("{done} of {total} done"))
}

fn files(count: u64) -> &'static str {
    if count == 1 { "file" } else { "files" }
}

/// Writes a line to standard error. One that cannot be written is no reason to stop.
pub(crate) fn say(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_given_once_there_is_a_rate() {
        assert_eq!(speed(0.0, Duration::ZERO), "starting");
        assert_eq!(speed(248.98, Duration::from_millis(3_400)), "249/s, 3 s left");
        assert_eq!(speed(2.0, Duration::from_secs(605)), "2/s, 10 min 05 s left");
    }

    #[test]
    fn a_plain_line_comes_with_every_tenth() {
        assert_eq!(line(500, 0, 49), None);
        assert_eq!(line(500, 49, 50).as_deref(), Some("50 of 500 done"));
        assert_eq!(line(500, 50, 99), None);
        assert_eq!(line(500, 99, 500).as_deref(), Some("500 of 500 done"));
        assert_eq!(line(3, 0, 1).as_deref(), Some("1 of 3 done"));
        assert_eq!(line(0, 0, 0), None);
    }
}
