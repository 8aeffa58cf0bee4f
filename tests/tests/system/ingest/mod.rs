//! The example `ingest`, as a user runs it and kills it.

mod cases;
mod journal;
mod kills;
mod pair;
mod restart;
mod site;
