//! Brings the shared schema and our own one to what this code knows, and says what a database has.
//!
//! A schema that is empty is made whole in one transaction. An older one climbs the ladder number by number, each with its
//! number in one transaction; steps that build or drop an index while others write run outside one, and their number follows.
//! Nothing is held between two statements outside a transaction, so all of it works through a pooler, and every start is
//! a repeat: whoever finds work half done goes on with it.

mod catalog;
mod ladder;
mod online;
mod own;
mod race;
mod rights;
mod shape;
mod state;
mod taken;
#[doc(hidden)]
pub mod testing;

use mainstay_env::Env;
use mainstay_store::{ErrorKind, StoreError};
use tokio_postgres::Client;

use crate::fault::Fault;
use crate::identifier::Schema;
use crate::layout::Layout;
use state::State;

pub(crate) use state::probe;

const OP: &str = "open";

/// The newest number that this code knows: fresh schemas have it, and none is ever recorded above it.
pub(crate) const NEWEST: u32 = 125;
/// The last number that engines without tables for payloads can read.
pub(crate) const HELD: u32 = 108;
/// The oldest number that can be worked with as it stands; the numbers after it bring indexes only.
const FLOOR: u32 = 123;

/// What may be done to a schema when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Bring it up: to the newest number, or to 108 at most. A higher one is left as it is.
    Migrate {
        /// Whether to stop at 108, for a fleet with engines that know no more.
        hold_at_108: bool,
    },
    /// Change nothing; a schema below 123 is refused.
    Verify,
    /// Change nothing; a schema below 108 is refused.
    VerifyHeld,
}

impl Mode {
    /// The number to climb to, where climbing is allowed.
    const fn target(self) -> Option<u32> {
        match self {
            Self::Migrate { hold_at_108: true } => Some(HELD),
            Self::Migrate { hold_at_108: false } => Some(NEWEST),
            Self::Verify | Self::VerifyHeld => None,
        }
    }

    /// The number that is asked for, and the lowest that will do.
    const fn needs(self) -> (u32, u32) {
        match self {
            Self::Migrate { hold_at_108: false } => (NEWEST, NEWEST),
            Self::Migrate { hold_at_108: true } | Self::VerifyHeld => (HELD, HELD),
            Self::Verify => (NEWEST, FLOOR),
        }
    }
}

/// What the connection is, on which a schema is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// One of this store alone.
    Own,
    /// One that a pooler shares out by transactions: nothing may be set for longer than one.
    Pooled,
}

/// Makes a database ready for the store, as far as `mode` allows, and says what it has.
///
/// Atomic: each number by itself. Idempotent: yes, also beside others that do the same.
/// Errors: `Unsupported` for a schema that is too old to be used as it is, sharded, or numbered by an old TypeScript SDK, for
/// names that somebody's own objects have, and for an encoding that cannot hold every text;
/// `Corrupt` for one that lacks what its number promises; `Denied` names the right that is missing; `Contended` when another
/// program holds the schema up.
pub(crate) async fn prepare(
    client: &mut Client,
    route: Route,
    schema: &Schema,
    mode: Mode,
    env: &Env,
) -> Result<Layout, StoreError> {
    let opened = async {
        if route == Route::Own {
            client.batch_execute(race::UNLIMITED).await?;
        }
        prepared(client, schema, mode, env).await
    };
    opened.await.map_err(|fault: Fault| fault.of(OP))
}

async fn prepared(client: &mut Client, schema: &Schema, mode: Mode, env: &Env) -> Result<Layout, Fault> {
    state::refuse_encoding(client).await?;
    let found = state::read(client, schema).await?;
    found.refuse(schema)?;
    if let Some(target) = mode.target() {
        ladder::climb(client, schema, target, env).await?;
    }
    let state = state::read(client, schema).await?;
    state.refuse(schema)?;
    check_number(&state, schema, mode)?;
    own::prepare(client, mode.target().is_some(), env).await?;
    rights::check(client, schema).await?;
    check_catalog(client, schema, &state).await?;
    Ok(probe(client, schema).await?)
}

fn check_number(state: &State, schema: &Schema, mode: Mode) -> Result<(), Fault> {
    let (wanted, least) = mode.needs();
    if state.number < i64::from(least) {
        let number = state.number;
        let floor = if least < wanted { format!(" (at least {least})") } else { String::new() };
        return Err(Fault::Store(
            ErrorKind::Unsupported,
            format!(
                "schema {} is at number {number} of its ladder, and {wanted} is required{floor}: \
                 open it once with migrations on, by a role that owns it",
                schema.quoted()
            ),
        ));
    }
    if state.number > i64::from(NEWEST) {
        tracing::info!(schema = schema.name(), number = state.number, known = NEWEST, "newer schema is left as it is");
    }
    Ok(())
}

/// Whether the catalog has what the recorded number promises. An index that is missing costs time, not sense: it is logged.
async fn check_catalog(client: &Client, schema: &Schema, state: &State) -> Result<(), Fault> {
    let Some(number) = state.known_number() else { return Ok(()) };
    let found = catalog::read(client, schema).await?;
    catalog::judge(&found, number, schema)?;
    let promised = if number >= FLOOR { NEWEST } else { number };
    for missing in catalog::lacks(&found, promised) {
        tracing::warn!(schema = schema.name(), number, missing, "schema lacks an object of its ladder");
    }
    Ok(())
}
