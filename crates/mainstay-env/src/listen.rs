//! What is logged, handed to a function: by it a test hears what a user would read.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// One event of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// How grave it is.
    pub level: Level,
    /// Its fields, each as `name=value` and a space; the message is the field `message`.
    pub text: String,
}

/// A subscriber that hands events to a function and keeps no spans.
#[derive(Debug)]
pub struct Listen<F> {
    target: &'static str,
    most: Level,
    hear: F,
}

impl<F: Fn(LogLine) + Send + Sync + 'static> Listen<F> {
    /// Hears events whose target begins with `target`, from the gravest down to the level `most`.
    pub const fn new(target: &'static str, most: Level, hear: F) -> Self {
        Self { target, most, hear }
    }
}

/// Runs `work`, and gives what was logged meanwhile on this thread, as [`Listen::new`] chooses it.
pub fn logged<R>(target: &'static str, most: Level, work: impl FnOnce() -> R) -> (R, Vec<LogLine>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let heard = lines.clone();
    let listen = Listen::new(target, most, move |line| {
        heard.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    });
    let result = tracing::subscriber::with_default(listen, work);
    let lines = std::mem::take(&mut *lines.lock().unwrap_or_else(PoisonError::into_inner));
    (result, lines)
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A string takes all.
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl<F: Fn(LogLine) + Send + Sync + 'static> Subscriber for Listen<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(self.target) && *metadata.level() <= self.most
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        (self.hear)(LogLine { level: *event.metadata().level(), text: fields.0 });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_hears_what_is_logged_of_its_target_down_to_its_level() {
        let (result, lines) = logged("shop", Level::INFO, || {
            tracing::warn!(target: "shop::orders", order = 7, "late");
            tracing::debug!(target: "shop", "too fine");
            tracing::warn!(target: "other", "not asked for");
            1
        });
        let expected = LogLine { level: Level::WARN, text: "message=late order=7 ".into() };
        assert_eq!((result, lines), (1, vec![expected]));
    }
}
