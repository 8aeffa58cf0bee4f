//! What is logged while a test runs, by a subscriber of its own.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// One line: its level, and its fields as `name=value`.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) text: String,
}

struct Capture(Arc<Mutex<Vec<Line>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).expect("a string takes all");
    }
}

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("mainstay_runtime") && *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        let line = Line { level: *event.metadata().level(), text: fields.0 };
        self.0.lock().expect("no panic under the lock").push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Runs `work`, and gives what the runtime logged meanwhile on this thread, from the level info on.
pub(crate) fn logged<R>(work: impl FnOnce() -> R) -> (R, Vec<Line>) {
    let lines = Arc::new(Mutex::default());
    let result = tracing::subscriber::with_default(Capture(lines.clone()), work);
    let lines = lines.lock().expect("no panic under the lock").clone();
    (result, lines)
}

/// The lines of a level that contain a text.
pub(crate) fn count(lines: &[Line], level: Level, text: &str) -> usize {
    lines.iter().filter(|line| line.level == level && line.text.contains(text)).count()
}
