//! What an engine is told at its launch.

use std::fmt::Debug;
use std::time::Duration;

use mainstay_store::{AppName, Bounds, FieldError, QueueName, VersionName};

/// Least interval: a shorter one would only spin.
const SHORTEST: Duration = Duration::from_millis(1);
/// What an executor's id adds to its name: `~` and a nonce of 12 characters.
const SUFFIX_BYTES: usize = 13;

/// Settings of one engine: required ones are parameters of [`Config::new`], the others are chained.
///
/// ```
/// use mainstay_queue::Config;
/// let config = Config::new("shop", "shop@1", "web-1").max_running(64).listen([]);
/// assert!(config.listen.is_some_and(|queues| queues.is_empty()), "the internal queue alone");
/// ```
///
/// A launch refuses settings that break a rule of their field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The application: its rows and queues, and unowned ones, are served.
    pub app: AppName,
    /// The version that rows must have, or be free of.
    pub version: VersionName,
    /// Name of the process, at most 499 bytes and without `~`; the executor's id is `<name>~<nonce>`.
    pub executor: String,
    /// Queues to serve: `None` all, an empty list none. The internal queue is always served.
    pub listen: Option<Vec<QueueName>>,
    /// Most executions that do not wait in a durable call; at least 1.
    pub max_running: u32,
    /// Most rows of one claim; at least 1.
    pub batch: u32,
    /// Least time from one claim of a queue to the next; may be zero.
    pub cooldown: Duration,
    /// Interval of the supervisor's round, before its jitter of 5 %; at least 1 ms.
    pub tick: Duration,
    /// Interval of the lease's beat; at least 1 ms, and a quarter of `ttl` or less where it can be.
    pub beat: Duration,
    /// How long a foreign beat must stand still under this process's own successful reads until its lease counts as dead;
    /// at least twice `beat` and twice `tick`, those of the application's other processes too.
    pub ttl: Duration,
    /// Least interval of the self-audit, at least 1 ms; it grows so that an audit costs at most 1 % of a connection.
    pub audit: Duration,
}

impl Config {
    /// The usual settings: all queues, 1,024 running, batches of 64, 5 ms between claims, a tick a second, a beat each
    /// 2.5 s, leases of 10 s, an audit each 5 s.
    #[must_use]
    pub fn new(app: impl Into<AppName>, version: impl Into<VersionName>, executor: impl Into<String>) -> Self {
        Self {
            app: app.into(),
            version: version.into(),
            executor: executor.into(),
            listen: None,
            max_running: 1024,
            batch: 64,
            cooldown: Duration::from_millis(5),
            tick: Duration::from_secs(1),
            beat: Duration::from_millis(2_500),
            ttl: Duration::from_secs(10),
            audit: Duration::from_secs(5),
        }
    }

    /// Serves these queues only, and the internal one.
    #[must_use]
    pub fn listen(mut self, queues: impl IntoIterator<Item = QueueName>) -> Self {
        self.listen = Some(queues.into_iter().collect());
        self
    }

    /// Sets the most executions that do not wait in a durable call; at least 1.
    #[must_use]
    pub fn max_running(mut self, most: u32) -> Self {
        self.max_running = most.max(1);
        self
    }

    /// Sets the most rows of one claim; at least 1.
    #[must_use]
    pub fn batch(mut self, most: u32) -> Self {
        self.batch = most.max(1);
        self
    }

    /// Sets the least time from one claim of a queue to the next.
    #[must_use]
    pub fn cooldown(mut self, cooldown: Duration) -> Self {
        self.cooldown = cooldown;
        self
    }

    /// Sets the interval of the supervisor's round.
    #[must_use]
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// Sets the interval of the beat.
    #[must_use]
    pub fn beat(mut self, beat: Duration) -> Self {
        self.beat = beat;
        self
    }

    /// Sets the time after which a standing beat counts as dead.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the least interval of the self-audit.
    #[must_use]
    pub fn audit(mut self, interval: Duration) -> Self {
        self.audit = interval;
        self
    }

    /// Checks every field. Errors: names the first one that breaks a rule, as `config.ttl`.
    pub fn check(&self) -> Result<(), FieldError> {
        self.check_names()?;
        at_least("config.max_running", self.max_running, 1)?;
        at_least("config.batch", self.batch, 1)?;
        at_least("config.tick", self.tick, SHORTEST)?;
        at_least("config.beat", self.beat, SHORTEST)?;
        at_least("config.audit", self.audit, SHORTEST)?;
        at_least("config.ttl", self.ttl, self.beat.max(self.tick).saturating_mul(2))
    }

    fn check_names(&self) -> Result<(), FieldError> {
        let mut bounds = Bounds::default();
        bounds.name("config.app", self.app.as_str())?;
        bounds.name("config.version", self.version.as_str())?;
        bounds.name_bytes -= SUFFIX_BYTES;
        bounds.name("config.executor", &self.executor)?;
        if self.executor.contains('~') {
            return Err(FieldError::new("config.executor", "contains a ~, which sets the nonce off"));
        }
        Ok(())
    }
}

fn at_least<T: PartialOrd + Debug>(field: &str, value: T, least: T) -> Result<(), FieldError> {
    if value < least {
        return Err(FieldError::new(field, format!("is {value:?}, at least {least:?} is needed")));
    }
    Ok(())
}
