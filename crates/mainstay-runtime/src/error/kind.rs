//! What an error is about.

/// What an error is about.
///
/// All kinds but [`ErrorKind::App`] are made by the engine, and keep their kind when they are recorded and read back.
///
/// ```
/// use mainstay::{Error, ErrorKind};
/// let error = Error::new("the shop is closed");
/// assert_eq!(error.kind(), ErrorKind::App);
/// assert_eq!(ErrorKind::Timeout.name(), "Timeout");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The application's own.
    App,
    /// Arguments cannot be encoded, or a row's input cannot be decoded.
    BadInput,
    /// A result cannot be encoded, or what is recorded cannot be decoded.
    BadOutput,
    /// A body panicked.
    Panic,
    /// An attempt or a wait took longer than its limit.
    Timeout,
    /// The awaited workflow was cancelled.
    Cancelled,
    /// The awaited workflow was set aside; a resume takes it up.
    Parked,
    /// There is no such workflow.
    NotFound,
    /// The call is in the wrong place, has a wrong argument, names what is not registered, or needs a right that the store
    /// does not grant.
    Refused,
    /// The id belongs to another function, or the deduplication key is held.
    Conflict,
    /// The store cannot serve now; nothing is known of what was asked.
    Unavailable,
    /// The engine has been shut down.
    Stopped,
    /// The code does not ask for what is recorded.
    Mismatch,
    /// A rule was broken on this side, or what is stored is damaged.
    Bug,
}

impl ErrorKind {
    /// All kinds that the engine makes.
    pub(super) const MADE: [Self; 13] = [
        Self::BadInput,
        Self::BadOutput,
        Self::Panic,
        Self::Timeout,
        Self::Cancelled,
        Self::Parked,
        Self::NotFound,
        Self::Refused,
        Self::Conflict,
        Self::Unavailable,
        Self::Stopped,
        Self::Mismatch,
        Self::Bug,
    ];

    /// The name that errors of this kind are recorded under; those of the application have their own, or `Error`.
    ///
    /// ```
    /// assert_eq!(mainstay::ErrorKind::BadInput.name(), "BadInput");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::App => "Error",
            Self::BadInput => "BadInput",
            Self::BadOutput => "BadOutput",
            Self::Panic => "Panic",
            Self::Timeout => "Timeout",
            Self::Cancelled => "Cancelled",
            Self::Parked => "Parked",
            Self::NotFound => "NotFound",
            Self::Refused => "Refused",
            Self::Conflict => "Conflict",
            Self::Unavailable => "Unavailable",
            Self::Stopped => "Stopped",
            Self::Mismatch => "Mismatch",
            Self::Bug => "Bug",
        }
    }

    /// The kind of an error that the engine recorded under a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::MADE.into_iter().find(|kind| kind.name() == name)
    }
}
