//! The two workflows: one ingests a file, the other a whole run of files.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use mainstay::{Ctx, Error, Handle, Result, Workflow};
use mainstay_store::Env;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::fs::{self, File};
use tokio::io::AsyncReadExt;

use crate::ledger::Ledger;
use crate::output::{self, Out};
use crate::path::PathText;
use crate::plan::{Job, List, Place, hex};
use crate::summary::{FileResult, Ingested, Summary};
use crate::words::{Counter, Counts};

/// The queue of the files.
pub(crate) const FILES: &str = "files";

/// Bytes that are read at once.
const PIECE: usize = 256 * 1024;

/// Children that are started, or waited for, at once, which bounds what a run holds in memory.
const AT_ONCE: usize = 1_000;

/// Step that reads a file.
const HASH: &str = "hash";

/// Step that counts its words.
const COUNT: &str = "count";

/// Step that writes its result.
const WRITE: &str = "write";

/// Step that writes the summary of a run.
const SUMMARY: &str = "summary";

/// What steps need beside their arguments.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    /// Where tests read what happened.
    pub(crate) ledger: Ledger,
    /// How long a step that writes waits between its halves.
    pub(crate) pause: Duration,
    /// Clock of the pauses.
    pub(crate) env: Env,
}

impl Tools {
    /// A step's body between its two lines of the ledger.
    async fn noted<T>(&self, id: &str, step: &str, body: impl Future<Output = Result<T>>) -> Result<T> {
        self.ledger.starts(id, step)?;
        let result = body.await;
        self.ledger.ends(id, step)?;
        result
    }

    /// Puts a file where it belongs, whole or not at all.
    async fn write(&self, temporary: &Path, place: &Path, bytes: &[u8]) -> Result<()> {
        let broken = |error| Error::new(format!("cannot write the result: {error}"));
        output::stage(temporary, bytes).await.map_err(broken)?;
        if !self.pause.is_zero() {
            self.env.sleep(self.pause).await;
        }
        output::publish(temporary, place).await.map_err(broken)
    }
}

/// What was read of a file at first.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Fingerprint {
    sha256: String,
}

/// Ingests one file. Its contents never enter the store: each step reads the file again, and one that has changed in
/// between fails it.
#[derive(Clone, Debug)]
pub(crate) struct IngestFile(pub(crate) Tools);

impl Workflow for IngestFile {
    type Args = (Place, PathText);
    type Output = Ingested;
    const NAME: &'static str = "ingest_file";
    const PARAMS: &'static [&'static str] = &["place", "path"];

    async fn run(&self, ctx: Ctx, (place, path): Self::Args) -> Result<Ingested> {
        let Self(tools) = self;
        let id = ctx.workflow_id().as_str();
        let file = &place.folder.to_path().join(path.to_path());
        let print = ctx.step(HASH, || tools.noted(id, HASH, hash(file))).await?;
        let (print, path, out) = (&print, &path, &Out::new(place.out.to_path()));
        let counts = ctx.step(COUNT, || tools.noted(id, COUNT, count(file, print))).await?;
        let counts = &counts;
        ctx.step(WRITE, || {
            tools.noted(id, WRITE, async move {
                unchanged(file, print).await?;
                let Counts { bytes, lines, words, ref commonest } = *counts;
                let result = FileResult { path, sha256: &print.sha256, bytes, lines, words, commonest };
                tools.write(&out.temporary(id), &out.file(path, id), &output::json(&result)?).await
            })
        })
        .await?;
        Ok(Ingested::new(print.sha256.clone(), counts))
    }
}

/// Reads a file piece by piece.
async fn read(file: &Path, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let broken = |error| Error::new(format!("cannot be read: {error}"));
    // A pipe in the place of the file would let the reader wait for ever.
    if !fs::symlink_metadata(file).await.map_err(broken)?.is_file() {
        return Err(Error::new("is no regular file any more"));
    }
    let mut file = File::open(file).await.map_err(broken)?;
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).await.map_err(broken)? {
            0 => return Ok(()),
            read => take(&piece[..read])?,
        }
    }
}

async fn hash(file: &Path) -> Result<Fingerprint> {
    let mut hasher = Sha256::new();
    read(file, |piece| {
        hasher.update(piece);
        Ok(())
    })
    .await?;
    Ok(Fingerprint { sha256: hex(&hasher.finalize()) })
}

async fn count(file: &Path, print: &Fingerprint) -> Result<Counts> {
    let (mut hasher, mut counter) = (Sha256::new(), Counter::default());
    read(file, |piece| {
        hasher.update(piece);
        Ok(counter.feed(piece)?)
    })
    .await?;
    same(&hex(&hasher.finalize()), print)?;
    Ok(counter.finish()?)
}

async fn unchanged(file: &Path, print: &Fingerprint) -> Result<()> {
    same(&hash(file).await?.sha256, print)
}

fn same(sha256: &str, print: &Fingerprint) -> Result<()> {
    if sha256 == print.sha256 { Ok(()) } else { Err(Error::new("changed while it was ingested")) }
}

/// What a run tells at its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// SHA-256 of the summary that it wrote; none when another run had begun meanwhile.
    pub(crate) sha256: Option<String>,
}

/// Which run the summary is to be of; stands in the folder of the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Current {
    /// The folder that is read.
    pub(crate) folder: PathText,
    /// The run's id.
    pub(crate) run: String,
}

/// Starts a workflow for every file of a list, waits for all, and writes the summary.
///
/// The list stands in a file, since it may be larger than the store takes; the argument is its hash.
#[derive(Clone, Debug)]
pub(crate) struct IngestRun(pub(crate) Tools);

impl Workflow for IngestRun {
    type Args = (PathText, String);
    type Output = Report;
    const NAME: &'static str = "ingest_run";
    const PARAMS: &'static [&'static str] = &["out", "list_sha256"];

    async fn run(&self, ctx: Ctx, (out, list_sha256): Self::Args) -> Result<Report> {
        let Self(tools) = self;
        let (out, id) = (&Out::new(out.to_path()), ctx.workflow_id().as_str());
        let list = listed(&out.list(id), &list_sha256)?;
        let mut handles = Vec::with_capacity(list.files.len());
        for jobs in list.files.chunks(AT_ONCE) {
            handles.extend(start(&ctx, &list.place, jobs).await?);
        }
        let mut results = Vec::with_capacity(handles.len());
        for handles in handles.chunks(AT_ONCE) {
            // Calls take their positions here, in order; the waits may end in any.
            results.extend(join_all(handles.iter().map(|handle| handle.result().into_future())).await);
        }
        let results = results.into_iter().map(|result| result.map_err(|error| error.message().to_owned()));
        let results = list.files.iter().map(|job| job.path.clone()).zip(results).collect();
        let summary = &output::json(&Summary::new(results, &list.skipped, &list.unread))?;
        ctx.step(SUMMARY, || tools.noted(id, SUMMARY, write_summary(tools, out, id, summary))).await
    }
}

/// The list that a run was started with. It is read outside a step: it can only be what the argument says.
fn listed(file: &Path, sha256: &str) -> Result<List> {
    let gone = |what: &str| Error::new(format!("the list of the run, {}, {what}", file.display()));
    let text = std::fs::read(file).map_err(|error| gone(&format!("cannot be read: {error}")))?;
    if hex(&Sha256::digest(&text)) != sha256 {
        return Err(gone("has been changed"));
    }
    Ok(serde_json::from_slice(&text)?)
}

async fn start(ctx: &Ctx, place: &Place, jobs: &[Job]) -> Result<Vec<Handle<Ingested>>> {
    let starts: Vec<_> = jobs
        .iter()
        .map(|Job { path, id }| {
            ctx.start(IngestFile::invoke((place.clone(), path.clone()))).id(id).queue(FILES).into_future()
        })
        .collect();
    join_all(starts).await.into_iter().collect()
}

async fn write_summary(tools: &Tools, out: &Out, id: &str, summary: &[u8]) -> Result<Report> {
    // A run that was killed and followed by one over other files ends beside it.
    if current(out)?.is_none_or(|current| current.run != id) {
        return Ok(Report { sha256: None });
    }
    tools.write(&out.temporary(id), &out.summary(), summary).await?;
    Ok(Report { sha256: Some(hex(&Sha256::digest(summary))) })
}

/// The run that was begun last.
pub(crate) fn current(out: &Out) -> Result<Option<Current>> {
    match std::fs::read(out.current()) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Puts a list where its run finds it, and names the run as the one whose summary is wanted. Answers the list's hash.
pub(crate) async fn announce(out: &Out, run: &str, list: &List) -> Result<String> {
    let text = output::json(list)?;
    replace(out, &out.list(run), &text).await?;
    let current = Current { folder: list.place.folder.clone(), run: run.to_owned() };
    replace(out, &out.current(), &output::json(&current)?).await?;
    Ok(hex(&Sha256::digest(&text)))
}

async fn replace(out: &Out, place: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = out.own_temporary(place);
    output::stage(&temporary, bytes).await?;
    Ok(output::publish(&temporary, place).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn file(text: &[u8]) -> (TempDir, std::path::PathBuf) {
        let dir = TempDir::new().expect("a folder");
        let file = dir.path().join("file");
        std::fs::write(&file, text).expect("a file");
        (dir, file)
    }

    #[tokio::test]
    async fn a_file_that_changed_since_it_was_hashed_is_not_counted_or_told_of() {
        let (_dir, file) = file(b"one two");
        let print = hash(&file).await.expect("a hash");
        assert_eq!(count(&file, &print).await.expect("counts").words, 2);
        unchanged(&file, &print).await.expect("the same");
        std::fs::write(&file, "one twu").expect("a file");
        for error in
            [count(&file, &print).await.expect_err("changed"), unchanged(&file, &print).await.expect_err("changed")]
        {
            assert_eq!(error.message(), "changed while it was ingested");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_read_says_why() {
        let (_dir, file) = file(b"a\xFF");
        let print = hash(&file).await.expect("any bytes have a hash");
        assert_eq!(count(&file, &print).await.expect_err("no text").message(), "not UTF-8 at byte 1");
        let gone = hash(&file.with_file_name("gone")).await.expect_err("no file");
        assert!(gone.message().starts_with("cannot be read: "), "{gone:?}");
        let folder = hash(file.parent().expect("a folder")).await.expect_err("no file");
        assert_eq!(folder.message(), "is no regular file any more");
    }

    #[tokio::test]
    async fn a_list_is_what_its_hash_says_or_nothing() {
        let (dir, _file) = file(b"");
        let (out, text) = (Out::new(dir.path().to_owned()), |path| PathText::of(Path::new(path)));
        let place = Place { folder: text("/in"), out: text("/out"), host: None };
        let files = vec![Job { path: text("a"), id: "1".to_owned() }];
        let list = List { place, files, skipped: Vec::new(), unread: Vec::new() };
        let sha256 = announce(&out, "run", &list).await.expect("announced");
        assert_eq!(listed(&out.list("run"), &sha256).expect("the list"), list);
        let current = current(&out).expect("readable").expect("there");
        assert_eq!((current.run.as_str(), current.folder.as_str()), ("run", "/in"));
        std::fs::write(out.list("run"), "{}").expect("a file");
        assert!(listed(&out.list("run"), &sha256).expect_err("changed").message().ends_with("has been changed"));
    }
}
