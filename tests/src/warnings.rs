//! What a process warns of, for tests to hear.

use mainstay_env::Listen;
use tracing::Level;
use tracing::subscriber::SetGlobalDefaultError;

/// Has every warning of this process given to a function, its fields as `name=value` words in one line.
///
/// # Errors
/// The process has told somebody else to hear them.
pub fn tell(hear: fn(&str)) -> Result<(), SetGlobalDefaultError> {
    tracing::subscriber::set_global_default(Listen::new("", Level::WARN, move |line| hear(&line.text)))
}
