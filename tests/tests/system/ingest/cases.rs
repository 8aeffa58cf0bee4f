//! What a user meets beside crashes: bad folders, bad files, second runs.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use mainstay_env::block_on;

use super::journal::SUMMARY;
use super::site::{INGEST, Site};

/// Steps that began after the first `from` lines of the ledger, by name.
fn begun(site: &Site, from: usize) -> Vec<String> {
    let mut names: Vec<String> = site.journal("out").begun(from).map(|line| line.step.1.clone()).collect();
    names.sort();
    names
}

fn lines(site: &Site) -> usize {
    site.journal("out").lines.len()
}

/// Every file below a folder with its text, in order.
fn files_below(folder: &Path) -> Vec<(PathBuf, String)> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}")) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).expect("text");
                files.push((path, text));
            }
        }
    }
    files.sort();
    files
}

fn value(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("a summary")
}

#[test]
fn a_missing_folder_is_one_clear_line() {
    let site = Site::empty();
    let folder = site.path("none");
    let output = Command::new(INGEST).arg(&folder).arg("--out").arg(site.path("out")).output().expect("a process");
    let told = String::from_utf8(output.stderr).expect("text");
    assert_eq!((output.status.code(), told.lines().count()), (Some(2), 1), "{told}");
    assert_eq!(told.trim_end(), format!("ingest: {}: there is no such folder", folder.display()));
    assert!(output.stdout.is_empty() && !site.path("out").exists());
}

#[test]
fn a_second_run_over_an_unchanged_folder_does_nothing() {
    let site = Site::of(40, 1);
    let told = site.run("out").ended(0);
    assert!(told.contains("40 files: 0 done, 40 left"), "{told}");
    let (known, summary) = (lines(&site), site.summary("out"));
    let told = site.run("out").ended(0);
    assert!(told.contains("40 files: 40 done, 0 left"), "{told}");
    assert_eq!((lines(&site), site.summary("out")), (known, summary));
}

#[test]
fn a_new_file_is_ingested_alone_and_a_summary_that_is_gone_is_written_again() {
    let site = Site::of(10, 2);
    site.run("out").ended(0);
    let known = lines(&site);
    site.write("new", "Eins zwei\nzwei");
    site.run("out").ended(0);
    assert_eq!(begun(&site, known), ["count", "hash", SUMMARY, "write"]);
    let summary = site.summary("out");
    assert_eq!(value(&summary)["files"][0]["path"], "new");
    let result = fs::read_to_string(site.path("out/files/new.json")).expect("a result");
    assert_eq!(value(&result)["commonest"][0], serde_json::json!({"word": "zwei", "count": 2}));
    // The first run's files again: its run is known, but the summary is of another.
    fs::remove_file(site.path("in/new")).expect("the file");
    site.run("out").ended(0);
    assert_eq!(value(&site.summary("out"))["totals"]["files"], 10);
    let known = lines(&site);
    fs::remove_file(site.path("out/summary.json")).expect("the summary");
    site.run("out").ended(0);
    assert_eq!(begun(&site, known), [SUMMARY]);
    assert_eq!(value(&site.summary("out"))["totals"]["files"], 10);
}

#[test]
fn a_file_that_is_no_text_fails_alone_and_is_tried_again_by_the_next_run() {
    let site = Site::of(5, 3);
    site.write("bad", b"ab\xFFcd");
    let written = fs::metadata(site.path("in/bad")).and_then(|meta| meta.modified()).expect("its time");
    let told = site.run("out").ended(1);
    assert!(told.contains("failed: bad: not UTF-8 at byte 2"), "{told}");
    let first = site.summary("out");
    let summary = value(&first);
    assert_eq!(summary["failed"], serde_json::json!([{"path": "bad", "reason": "not UTF-8 at byte 2"}]));
    assert_eq!(summary["totals"]["files"], 5);
    for number in 1..=2 {
        let known = lines(&site);
        site.run("out").ended(1);
        assert_eq!(begun(&site, known), ["count", "hash", SUMMARY], "the others are not touched");
        let journal = site.journal("out");
        let tried: BTreeSet<_> =
            journal.begun(known).filter(|line| line.step.1 != SUMMARY).map(|line| &line.step.0).collect();
        assert!(tried.iter().all(|id| id.ends_with(&format!("-r{number}"))), "{tried:?}");
        assert_eq!(site.summary("out"), first);
    }
    site.write("bad", b"ab cd");
    File::options().write(true).open(site.path("in/bad")).and_then(|file| file.set_modified(written)).expect("a time");
    site.run("out").ended(0);
    assert_eq!(value(&site.summary("out"))["totals"]["files"], 6);
}

#[test]
fn results_that_are_gone_are_written_again_and_no_others() {
    let site = Site::of(30, 6);
    site.run("out").ended(0);
    let summary = site.summary("out");
    let results = |site: &Site| -> BTreeSet<_> { files_below(&site.path("out/files")).into_iter().collect() };
    let (known, first) = (lines(&site), results(&site));
    let (gone, text) = first.first().cloned().expect("a result");
    fs::remove_file(&gone).expect("a result");
    let told = site.run("out").ended(0);
    assert!(told.contains("30 files: 29 done, 1 left"), "{told}");
    assert_eq!(begun(&site, known), ["count", "hash", SUMMARY, "write"]);
    assert_eq!(fs::read_to_string(&gone).expect("the result"), text);
    fs::remove_dir_all(site.path("out/files")).expect("the results");
    let told = site.run("out").ended(0);
    assert!(told.contains("30 files: 0 done, 30 left"), "{told}");
    assert_eq!((results(&site), site.summary("out")), (first, summary));
    let known = lines(&site);
    let told = site.run("out").ended(0);
    assert!(told.contains("30 files: 30 done, 0 left"), "{told}");
    assert_eq!(lines(&site), known);
}

#[test]
fn results_that_are_gone_from_a_killed_run_are_written_again_over_another_kill() {
    let site = Site::of(60, 7);
    site.run("calm").ended(0);
    for results in 0..2 {
        let program = site.start("out", 50);
        let mut journal = site.journal("out");
        let known = journal.lines.len();
        block_on(async {
            while journal.lines[known..].iter().filter(|line| !line.begins && line.step.1 == "write").count() < 16 {
                site.env.sleep(Duration::from_millis(2)).await;
                journal.refresh();
            }
        });
        program.kill();
        if results == 0 {
            fs::remove_dir_all(site.path("out/files")).expect("results");
        }
    }
    let told = site.run("out").ended(0);
    assert!(!told.contains("60 files: 0 done"), "{told}");
    let (out, calm) = (files_below(&site.path("out/files")), files_below(&site.path("calm/files")));
    assert_eq!((out.len(), calm.len()), (60, 60));
    assert!(out.iter().map(|(_, text)| text).eq(calm.iter().map(|(_, text)| text)));
    assert_eq!(site.summary("out"), site.summary("calm"));
}

#[test]
fn what_a_killed_process_prepared_is_removed_once_it_is_old() {
    let site = Site::of(1, 8);
    site.run("out").ended(0);
    let prepared = |name: &str| site.path("out/tmp").join(name);
    for name in ["run.json.17", "0a1b.json.18", "run.json.19", "0a1b"] {
        let file = File::create(prepared(name)).expect("a file");
        if name != "run.json.19" {
            file.set_modified(UNIX_EPOCH).expect("a time");
        }
    }
    site.run("out").ended(0);
    let is_left = ["run.json.17", "0a1b.json.18", "run.json.19", "0a1b"].map(|name| prepared(name).exists());
    assert_eq!(is_left, [false, false, true, true], "a young one may be of a process at work, an id of a workflow");
}

#[test]
fn a_folder_that_cannot_be_read_is_told_of_before_it_is_counted_as_failed() {
    let site = Site::of(2, 9);
    // Too long a path is the one that no user may read; a shell makes it from inside.
    let name = "n".repeat(250);
    let deep = format!("for n in $(seq 20); do mkdir {name} && cd -P {name} || exit 1; done");
    let made = Command::new("sh").args(["-c", &deep]).current_dir(site.path("in")).status().expect("a shell");
    assert!(made.success());
    for done in ["0 done, 2 left", "2 done, 0 left"] {
        let told = site.run("out").ended(1);
        assert!(told.contains(&format!("2 files: {done}")), "{told}");
        assert!(told.contains("1 entry cannot be read and counts as failed, beside the files"), "{told}");
        assert!(told.contains("2 ingested, 1 failed"), "{told}");
    }
}

#[test]
fn results_inside_the_folder_are_not_ingested_and_links_are_named() {
    let site = Site::of(6, 4);
    std::os::unix::fs::symlink("part-0", site.path("in/link")).expect("a link");
    let run = || {
        let mut command = Command::new(INGEST);
        command.arg(".").arg("--out").arg("results").current_dir(site.path("in"));
        assert!(command.status().expect("a process").success());
        fs::read_to_string(site.path("in/results/summary.json")).expect("a summary")
    };
    let first = run();
    assert_eq!(value(&first)["totals"]["files"], 6);
    assert_eq!(value(&first)["skipped"], serde_json::json!([{"path": "link", "reason": "is a symbolic link"}]));
    assert_eq!(run(), first);
}

#[test]
fn names_that_are_no_text_and_names_that_clash_have_results_of_their_own() {
    use std::os::unix::ffi::OsStrExt;
    let site = Site::empty();
    site.write("a", "x");
    fs::create_dir(site.path("in/a.json")).expect("a folder");
    site.write("a.json/b", "y z");
    fs::write(site.path("in").join(std::ffi::OsStr::from_bytes(b"no\xFFtext\n")), "1 2 3").expect("a file");
    site.run("out").ended(0);
    let summary = value(&site.summary("out"));
    let words: Vec<_> = summary["files"].as_array().expect("files").iter().map(|file| file["words"].as_u64()).collect();
    assert_eq!((words, summary["totals"]["failed"].as_u64()), (vec![Some(1), Some(2), Some(3)], Some(0)));
    for (result, word) in [(&b"a.json"[..], "x"), (b"a.json~/b.json", "y"), (b"no\xFFtext\n.json", "1")] {
        let file = site.path("out/files").join(std::ffi::OsStr::from_bytes(result));
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        assert_eq!(value(&text)["commonest"][0]["word"], word);
    }
}

#[test]
fn an_empty_folder_has_an_empty_summary() {
    let site = Site::empty();
    site.run("out").ended(0);
    assert_eq!(value(&site.summary("out"))["totals"]["files"], 0);
}

#[test]
fn ctrl_c_lets_running_steps_end_and_the_next_run_goes_on() {
    let site = Site::of(60, 5);
    site.run("calm").ended(0);
    let program = site.start("out", 100);
    let process = program.process();
    let mut journal = site.journal("out");
    block_on(async {
        while journal.open_in(process).is_empty() || journal.lines.len() < 30 {
            site.env.sleep(Duration::from_millis(2)).await;
            journal.refresh();
        }
    });
    program.interrupt();
    let told = program.end().ended(130);
    assert!(told.contains("stopping"), "{told}");
    journal.refresh();
    assert_eq!(journal.open_in(process), BTreeSet::new(), "no step was cut off");
    assert!(!site.path("out/summary.json").exists(), "it was stopped before its end");
    let told = site.run("out").ended(0);
    assert!(!told.contains("60 files: 0 done"), "{told}");
    assert_eq!(site.summary("out"), site.summary("calm"));
}

#[test]
fn a_file_that_changes_between_its_steps_fails_and_is_ingested_as_it_is_by_the_next_run() {
    let site = Site::empty();
    site.write("kept", "one two");
    site.write("changed", "one two");
    let written = fs::metadata(site.path("in/changed")).and_then(|meta| meta.modified()).expect("its time");
    // Killed while both results are prepared: hashes and counts are recorded, nothing is written.
    let program = site.start("out", 10_000);
    let process = program.process();
    let mut journal = site.journal("out");
    block_on(async {
        while journal.open_in(process).iter().filter(|step| step.1 == "write").count() < 2 {
            site.env.sleep(Duration::from_millis(2)).await;
            journal.refresh();
        }
    });
    program.kill();
    site.write("changed", "one twu");
    File::options()
        .write(true)
        .open(site.path("in/changed"))
        .and_then(|file| file.set_modified(written))
        .expect("a time");
    let told = site.run("out").ended(1);
    assert!(told.contains("failed: changed: changed while it was ingested"), "{told}");
    let names = begun(&site, journal.lines.len());
    assert_eq!(names, [SUMMARY, "write", "write"], "only what was not recorded ran again");
    assert!(site.path("out/files/kept.json").exists() && !site.path("out/files/changed.json").exists());
    site.run("out").ended(0);
    let result = fs::read_to_string(site.path("out/files/changed.json")).expect("a result");
    assert_eq!(value(&result)["commonest"][1]["word"], "twu");
}
