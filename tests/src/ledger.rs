//! The ledger: a file to which all processes append what their bodies do, and the judgement of it.
//!
//! A line is `S id pid` when a body starts, after its claim, and `E id pid` when it is about to end, before its outcome. A
//! body is thus open in the ledger only while its row is pending, and what is open never exceeds a limit that holds.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Appends to the ledger. Every line is one write to a file opened for appending, so that lines of several processes are
/// never mixed, and their order is that in which they were written.
#[derive(Clone, Debug)]
pub struct Ledger {
    file: Arc<File>,
    process: u32,
}

impl Ledger {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file: Arc::new(file), process: std::process::id() })
    }

    /// Writes that a body starts; it is open until what this answers is dropped.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn start(&self, id: &str) -> io::Result<Running> {
        self.write('S', id)?;
        Ok(Running { ledger: self.clone(), id: id.to_owned() })
    }

    fn write(&self, what: char, id: &str) -> io::Result<()> {
        (&*self.file).write_all(format!("{what} {id} {}\n", self.process).as_bytes())
    }
}

/// A body that is open in the ledger.
#[derive(Debug)]
pub struct Running {
    ledger: Ledger,
    id: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        // A ledger that cannot be written shows as a body that never ends, which no judgement passes.
        let _ = self.ledger.write('E', &self.id);
    }
}

/// What a ledger says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// How often each workflow was started.
    pub starts: BTreeMap<String, u32>,
    /// How many each process started.
    pub by_process: BTreeMap<u32, u32>,
    /// Most bodies open at once, of each queue.
    pub most: BTreeMap<String, i64>,
    /// The same in any one process.
    pub most_in_process: BTreeMap<String, i64>,
    /// Bodies that are open at the end.
    pub open: i64,
    /// Most bodies of one workflow open at once.
    pub most_of_one: i64,
    open_here: BTreeMap<(u32, String), i64>,
}

impl Account {
    /// Reads a ledger; `queue_of` tells a workflow's queue by its id.
    ///
    /// # Errors
    /// Names a line that is no line of a ledger.
    pub fn read(text: &str, queue_of: impl Fn(&str) -> String) -> Result<Self, String> {
        let mut account = Self::default();
        let mut open: BTreeMap<String, i64> = BTreeMap::new();
        let mut in_process: BTreeMap<(String, u32), i64> = BTreeMap::new();
        let mut of_one: BTreeMap<String, i64> = BTreeMap::new();
        for line in text.lines() {
            let (what, id, process) = parse(line).ok_or_else(|| format!("no line of a ledger: {line:?}"))?;
            let step = if what == "S" { 1 } else { -1 };
            if step > 0 {
                *account.starts.entry(id.to_owned()).or_default() += 1;
                *account.by_process.entry(process).or_default() += 1;
            }
            let queue = queue_of(id);
            account.open += step;
            let all = open.entry(queue.clone()).or_default();
            *all += step;
            let here = in_process.entry((queue.clone(), process)).or_default();
            *here += step;
            *account.open_here.entry((process, id.to_owned())).or_default() += step;
            let one = of_one.entry(id.to_owned()).or_default();
            *one += step;
            raise(account.most.entry(queue.clone()).or_default(), *all);
            raise(account.most_in_process.entry(queue).or_default(), *here);
            raise(&mut account.most_of_one, *one);
        }
        Ok(account)
    }

    /// Workflows whose body is open in a process.
    #[must_use]
    pub fn open_of(&self, process: u32) -> Vec<String> {
        let open = self.open_here.iter().filter(|((here, _), open)| *here == process && **open > 0);
        open.map(|((_, id), _)| id.clone()).collect()
    }

    /// Workflows that were started more than once.
    #[must_use]
    pub fn doubles(&self) -> Vec<&str> {
        self.starts.iter().filter(|(_, times)| **times > 1).map(|(id, _)| id.as_str()).collect()
    }
}

fn raise(most: &mut i64, now: i64) {
    *most = (*most).max(now);
}

fn parse(line: &str) -> Option<(&str, &str, u32)> {
    let mut words = line.split(' ');
    let (what, id, process) = (words.next()?, words.next()?, words.next()?);
    let whole = words.next().is_none() && matches!(what, "S" | "E");
    whole.then_some(())?;
    Some((what, id, process.parse().ok()?))
}

/// Most starts in any window `[t, t + period)` of start stamps in milliseconds.
#[must_use]
pub fn most_in_window(mut stamps: Vec<i64>, period: i64) -> usize {
    stamps.sort_unstable();
    let mut first = 0;
    let mut most = 0;
    for last in 0..stamps.len() {
        while stamps[last] - stamps[first] >= period {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(text: &str) -> Account {
        Account::read(text, |id| id.split('-').next().unwrap_or_default().to_owned()).expect("a ledger")
    }

    #[test]
    fn what_is_open_at_once_is_counted_by_queue_and_process() {
        let read = account("S a-1 7\nS a-2 8\nS b-1 7\nE a-1 7\nS a-3 8\nE a-2 8\nE a-3 8\nE b-1 7\n");
        assert_eq!(read.most, BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)]));
        assert_eq!(read.most_in_process["a"], 2);
        assert_eq!((read.by_process, read.open), (BTreeMap::from([(7, 2), (8, 2)]), 0));
    }

    #[test]
    fn a_second_start_is_found_and_so_is_one_beside_the_first() {
        let after = account("S a-1 7\nE a-1 7\nS a-1 8\nE a-1 8\n");
        assert_eq!((after.doubles(), after.most_of_one), (vec!["a-1"], 1));
        let beside = account("S a-1 7\nS a-1 8\nE a-1 7\n");
        assert_eq!((beside.most_of_one, beside.open), (2, 1));
        assert_eq!((beside.open_of(7).len(), beside.open_of(8)), (0, vec!["a-1".to_owned()]));
    }

    #[test]
    fn a_torn_line_is_not_passed_over() {
        for text in ["S a-1", "X a-1 7", "S a-1 7 8", "S a-1 x"] {
            assert!(Account::read(text, |_| String::new()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_window_leaves_out_its_end() {
        assert_eq!(most_in_window(vec![0, 10, 19, 20], 10), 2);
        assert_eq!(most_in_window(vec![5, 5, 5], 10), 3);
        assert_eq!(most_in_window(Vec::new(), 10), 0);
    }

    #[test]
    fn lines_of_several_writers_are_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger");
        let ledgers: Vec<Ledger> = (0..3).map(|_| Ledger::open(&path).expect("a ledger")).collect();
        for n in 0..100 {
            for (writer, ledger) in ledgers.iter().enumerate() {
                drop(ledger.start(&format!("a-{writer}-{n}")).expect("a line"));
            }
        }
        let read = account(&std::fs::read_to_string(&path).expect("the ledger"));
        assert_eq!((read.starts.len(), read.open), (300, 0));
    }
}
