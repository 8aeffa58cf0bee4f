//! The PostgreSQL store beyond the contract: what the tables hold, what calls cost, and what a server does to them.

mod claim;
mod commit;
mod drops;
mod hidden;
mod hostile;
mod layouts;
mod lines;
mod locks;
mod migrated;
mod shapes;
mod strict;
mod support;
mod trips;
mod upkeep;
