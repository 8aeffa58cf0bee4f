//! How often each action, fault and limit was met, over one sequence and over all.

use std::collections::BTreeMap;
use std::fmt;

/// What one sequence met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Met {
    counts: BTreeMap<&'static str, u64>,
}

impl Met {
    pub(crate) fn note(&mut self, label: &'static str) {
        self.add(label, 1);
    }

    pub(crate) fn add(&mut self, label: &'static str, count: u64) {
        *self.counts.entry(label).or_default() += count;
    }
}

/// Over many sequences: how often in all, and in how many sequences at least once.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    pub(crate) sequences: u64,
    counts: BTreeMap<&'static str, (u64, u64)>,
}

impl Coverage {
    pub(crate) fn add(&mut self, met: &Met) {
        self.sequences += 1;
        for (label, count) in met.counts.iter().filter(|(_, count)| **count > 0) {
            let entry = self.counts.entry(label).or_default();
            entry.0 += count;
            entry.1 += 1;
        }
    }

    /// Percent of the sequences that met it at least once.
    pub(crate) fn share(&self, label: &str) -> f64 {
        let met = self.counts.get(label).map_or(0, |(_, sequences)| *sequences);
        100.0 * met as f64 / self.sequences.max(1) as f64
    }

    /// Those of the floors that are not reached.
    pub(crate) fn below(&self, floors: &[(&'static str, f64)]) -> Vec<String> {
        let missed = floors.iter().filter(|(label, floor)| self.share(label) < *floor);
        missed.map(|(label, floor)| format!("{label}: {:.1} % of {floor} %", self.share(label))).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} sequences", self.sequences)?;
        for (label, (total, _)) in &self.counts {
            writeln!(f, "{label:<34}{total:>10}  in {:>5.1} % of sequences", self.share(label))?;
        }
        Ok(())
    }
}
