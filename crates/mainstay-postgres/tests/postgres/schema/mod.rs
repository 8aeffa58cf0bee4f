//! The shared schema: made, brought up, raced for, refused, and what roles may do in it.

mod acceptance;
mod functions;
mod ladder;
mod logs;
mod names;
mod opening;
mod processes;
mod psql;
mod races;
mod roles;
mod standing;
mod support;
