//! Which failures come of others doing the same at the same time.

use std::time::Duration;

use mainstay_env::Env;
use tokio_postgres::Error;

use crate::fault::Fault;

/// The lock that the SDKs which take one hold while they migrate. Ours is for a transaction, theirs for a session; the two
/// exclude each other.
pub(super) const LOCK: i64 = 1_234_567_890;

/// How long somebody who holds the lock is waited for in one opening, and somebody who builds an index at one number.
/// After that the rows and names themselves keep order, as they do among SDKs that take no lock: a session that is gone may
/// have left it behind in a pooler.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(30);

/// What a transaction sets for itself first. Names of the server's functions are then nobody else's, a lock that a long
/// transaction holds up does not hold up everybody behind it, and a limit of the role ends no step of a large table.
pub(super) const BEGUN: &str =
    "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL lock_timeout = '5s'; SET LOCAL jit = off;
    SET LOCAL quote_all_identifiers = off;
    SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout')";

/// Lifts the limits that a role or an address has set for a session. An index is built in a transaction of its own, which
/// waits for those of others, as it does without limits: nobody but the next change of the table waits behind it.
pub(super) const UNLIMITED: &str = "SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings
    WHERE name IN ('statement_timeout', 'transaction_timeout', 'lock_timeout', 'idle_session_timeout')";

/// Objects that somebody else has just made or dropped, deadlocks, and locks that were not given in time.
const CODES: &[&str] =
    &["23505", "42701", "42704", "42710", "42723", "42P04", "42P06", "42P07", "40001", "40P01", "55P03", "55006"];

/// Whether to look again and go on.
pub(super) fn is_race(fault: &Fault) -> bool {
    fault.postgres().is_some_and(is_race_error)
}

/// Whether a lock was not given in time.
pub(super) fn is_lock_wait(error: &Error) -> bool {
    error.code().is_some_and(|code| code.code() == "55P03")
}

fn is_race_error(error: &Error) -> bool {
    let Some(db) = error.as_db_error() else { return false };
    // Two sessions that change one catalog row answer with an internal error and this text.
    CODES.contains(&db.code().code()) || (db.code().code() == "XX000" && db.message().contains("concurrently"))
}

/// Waits a moment that differs from one process to the next.
pub(super) async fn pause(env: &Env) {
    let spread = env.rng().below(150);
    env.sleep(Duration::from_millis(20 + spread)).await;
}
