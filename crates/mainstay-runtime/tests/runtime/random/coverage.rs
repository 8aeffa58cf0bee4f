//! What was met: how often in one run, and in how many of all runs.

use std::collections::BTreeMap;
use std::fmt;

/// Counts of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Met(BTreeMap<&'static str, u64>);

impl Met {
    pub(crate) fn add(&mut self, what: &'static str, count: u64) {
        *self.0.entry(what).or_default() += count;
    }

    /// The larger of what is there and `count`.
    pub(crate) fn raise(&mut self, what: &'static str, count: u64) {
        let most = self.0.entry(what).or_default();
        *most = count.max(*most);
    }
}

/// Counts of many runs.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    runs: u64,
    found: BTreeMap<&'static str, Found>,
}

#[derive(Debug, Default)]
struct Found {
    total: u64,
    most: u64,
    runs: u64,
}

impl Coverage {
    pub(crate) fn take(&mut self, met: &Met) {
        self.runs += 1;
        for (what, count) in &met.0 {
            let found = self.found.entry(what).or_default();
            found.total += count;
            found.most = found.most.max(*count);
            found.runs += u64::from(*count > 0);
        }
    }

    /// Percent of the runs that met it.
    fn share(&self, what: &str) -> f64 {
        100.0 * self.found.get(what).map_or(0, |found| found.runs) as f64 / self.runs.max(1) as f64
    }

    /// What was met in fewer percent of the runs than it must be.
    pub(crate) fn missed(&self, floors: &[(&str, f64)]) -> Vec<String> {
        let missed = floors.iter().filter(|(what, floor)| self.share(what) < *floor);
        missed
            .map(|(what, floor)| format!("{what}: in {:.1} % of the runs, at least {floor} %", self.share(what)))
            .collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} runs{:>44}{:>9}{:>10}", self.runs, "in all", "most", "of runs")?;
        for (what, found) in &self.found {
            writeln!(f, "{what:<40}{:>10}{:>9}{:>8.1} %", found.total, found.most, self.share(what))?;
        }
        Ok(())
    }
}
