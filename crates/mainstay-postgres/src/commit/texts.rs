//! The statements of a commit.

use crate::text::{Text, text};

pub(super) static LEASES: Text = text!("commit_leases");
pub(super) static LOCK: Text = text!("commit_lock");
pub(super) static PROBE: Text = text!("commit_probe");
pub(super) static SUBMIT: Text = text!("commit_submit");
pub(super) static JUDGE: Text = text!("commit_judge");
pub(super) static OUTCOMES: Text = text!("commit_outcomes");
pub(super) static CANCELS: Text = text!("commit_cancels");
pub(super) static GIVE_BACKS: Text = text!("commit_give_back");
pub(super) static STEPS: Text = text!("commit_steps");
pub(super) static FAMILY: Text = text!("commit_family");
pub(super) static STATES: Text = text!("commit_states");
pub(super) static RESUME: Text = text!("commit_resume");
pub(super) static DELETE: Text = text!("commit_delete");
pub(super) static FORK_ROW: Text = text!("commit_fork_row");
pub(super) static FORK_CLEAN: Text = text!("commit_fork_clean");
pub(super) static FORK_COPY: Text = text!("commit_fork_copy");
pub(super) static SET_DELAY: Text = text!("commit_set_delay");
pub(super) static ATTRIBUTES: Text = text!("commit_attributes");

/// All of them, for the test of their plans.
#[cfg(test)]
pub(super) const ALL: &[&Text] = &[
    &LEASES,
    &LOCK,
    &PROBE,
    &SUBMIT,
    &JUDGE,
    &OUTCOMES,
    &CANCELS,
    &GIVE_BACKS,
    &STEPS,
    &FAMILY,
    &STATES,
    &RESUME,
    &DELETE,
    &FORK_ROW,
    &FORK_CLEAN,
    &FORK_COPY,
    &SET_DELAY,
    &ATTRIBUTES,
];
