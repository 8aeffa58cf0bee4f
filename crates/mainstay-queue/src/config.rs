//! What an engine is told at its launch.

use std::time::Duration;

use mainstay_store::{AppName, QueueName, VersionName};

/// Settings of one engine: required ones are parameters of [`Config::new`], the others are chained.
///
/// ```
/// use mainstay_queue::Config;
/// let config = Config::new("shop", "shop@1", "web-1").max_running(64).listen([]);
/// assert!(config.listen.is_some_and(|queues| queues.is_empty()), "the internal queue alone");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The application: its rows and queues, and unowned ones, are served.
    pub app: AppName,
    /// The version that rows must have, or be free of.
    pub version: VersionName,
    /// Name of the process; the executor's id is `<name>~<nonce>`.
    pub executor: String,
    /// Queues to serve: `None` all, an empty list none. The internal queue is always served.
    pub listen: Option<Vec<QueueName>>,
    /// Most executions that do not wait in a durable call.
    pub max_running: u32,
    /// Most rows of one claim.
    pub batch: u32,
    /// Least time from one claim of a queue to the next.
    pub cooldown: Duration,
    /// Interval of the supervisor's round, before its jitter of 5 %.
    pub tick: Duration,
    /// Interval of the lease's beat; must be well under `ttl`.
    pub beat: Duration,
    /// How long a foreign beat must stand still under this process's own successful reads until its lease counts as dead.
    pub ttl: Duration,
    /// Least interval of the self-audit; it grows so that an audit costs at most 1 % of a connection.
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
}
