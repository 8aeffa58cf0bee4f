//! What only this backend can show: the file, its locks, its threads, and other connections on it.

mod busy;
mod ending;
mod hints;
mod locks;
mod opening;
mod poison;
mod starts;
mod support;
mod unreadable;
