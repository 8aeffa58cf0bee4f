//! A case: one named trial with its own precondition, operation and expectation.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::pin::Pin;
use std::sync::Once;
use std::time::Duration;

use mainstay_env::{Env, block_on};
use mainstay_store::Capability;

use crate::backend::{Backend, Subject};
use crate::desk::{Desk, Opening};
use crate::groups;
use crate::trouble::Trouble;

/// Real time that a case may take: one that hangs has failed. The longest takes some seconds on a slow machine.
const CASE_LIMIT: Duration = Duration::from_secs(60);

pub(crate) type Body = for<'a> fn(&'a Desk) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One named trial.
#[derive(Clone, Copy)]
pub struct Case {
    group: &'static str,
    name: &'static str,
    needs: &'static [Capability],
    trouble: Option<Trouble>,
    opening: Opening,
    body: Body,
}

/// How a case ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Passed,
    /// The backend lacks this.
    Skipped(Lack),
}

/// What a case needs and a backend lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// A part of the contract that is optional.
    Capability(Capability),
    /// It cannot be brought into this trouble.
    Trouble(Trouble),
    /// The clock of its environment: its database has one of its own.
    EnvironmentClock,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capability(capability) => write!(f, "capability {capability}"),
            Self::Trouble(trouble) => write!(f, "trouble: {trouble}"),
            Self::EnvironmentClock => f.write_str("the clock of its environment"),
        }
    }
}

impl Case {
    pub(crate) const fn new(group: &'static str, name: &'static str, body: Body) -> Self {
        Self { group, name, needs: &[], trouble: None, opening: Opening::MANUAL, body }
    }

    pub(crate) const fn needs(mut self, needs: &'static [Capability]) -> Self {
        self.needs = needs;
        self
    }

    pub(crate) const fn trouble(mut self, trouble: Trouble) -> Self {
        self.trouble = Some(trouble);
        self
    }

    pub(crate) const fn opening(mut self, opening: Opening) -> Self {
        self.opening = opening;
        self
    }

    pub(crate) const fn group(mut self, group: &'static str) -> Self {
        self.group = group;
        self
    }

    /// Its whole name, `group::sentence`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}::{}", self.group, self.name)
    }

    /// The first capability that it needs and the backend lacks, the trouble that it asks for in vain, or the clock of the
    /// environment.
    #[must_use]
    pub fn lacks(&self, backend: &dyn Backend) -> Option<Lack> {
        let capabilities = backend.capabilities();
        let lacking = self.needs.iter().copied().find(|needed| !capabilities.has(*needed)).map(Lack::Capability);
        let lacking = lacking.or(self.trouble.filter(|trouble| !backend.can_trouble(*trouble)).map(Lack::Trouble));
        lacking.or((self.opening.server_clock && backend.has_own_clock()).then_some(Lack::EnvironmentClock))
    }

    /// Runs it on an empty store.
    ///
    /// # Errors
    /// What did not hold, as text.
    pub fn run(&self, subject: &Subject) -> Result<Verdict, String> {
        let backend = subject.backend();
        if let Some(lacking) = self.lacks(&*backend) {
            return Ok(Verdict::Skipped(lacking));
        }
        let env = Env::system("conformance").map_err(|error| format!("no thread for the case: {error}"))?;
        let limited = env.timeout(CASE_LIMIT, async {
            let desk = Desk::open(env.clone(), subject, backend, self.opening).await;
            (self.body)(&desk).await;
        });
        match caught(|| block_on(limited)) {
            Ok(Ok(())) => Ok(Verdict::Passed),
            Ok(Err(_)) => Err(format!("did not end within {} s", CASE_LIMIT.as_secs())),
            Err(text) => Err(text),
        }
    }
}

thread_local! {
    /// Inside a case: where its latest panic was.
    static PANICKED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `body`; a panic in it is answered as text with its place instead of being printed.
fn caught<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            let place = info.location().map_or(String::new(), ToString::to_string);
            let in_case = PANICKED.with_borrow_mut(|panicked| panicked.replace(place).is_some());
            if !in_case {
                PANICKED.set(None);
                before(info);
            }
        }));
    });
    PANICKED.set(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(body));
    let place = PANICKED.take().unwrap_or_default();
    result.map_err(|panic| format!("{place}: {}", text(&*panic)))
}

fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "panicked with a value that is not text".to_owned())
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("name", &self.name())
            .field("needs", &self.needs)
            .field("trouble", &self.trouble)
            .finish_non_exhaustive()
    }
}

/// Every case of the suite, in order of groups; the same for every backend.
#[must_use]
pub fn cases() -> Vec<Case> {
    groups::all()
}

/// Declares the cases of a file: `cases! { "group"; a_sentence; another: Durable; }`, each an `async fn(&Desk)`.
macro_rules! cases {
    ($group:literal; $($name:ident $(: $($capability:ident)+)?;)*) => {
        cases! { $group, $crate::desk::Opening::MANUAL; $($name $(: $($capability)+)?;)* }
    };
    ($group:literal, $opening:expr; $($name:ident $(: $($capability:ident)+)?;)*) => {
        pub(crate) const CASES: &[$crate::case::Case] = &[$(
            $crate::case::Case::new($group, stringify!($name), |desk| Box::pin($name(desk)))
                .needs(&[$($(mainstay_store::Capability::$capability),+)?])
                .opening($opening),
        )*];
    };
}
