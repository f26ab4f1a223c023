//! The parts of a script that psql reads itself: backslash commands, branches, variables and the data of COPY.

mod branch;
mod command;
mod copy;
mod variables;

pub(super) use branch::{Branches, Certainty};
pub(super) use command::{Action, Command};
pub(super) use copy::{command_copies_from_stdin, copies_from_stdin, copy_data};
pub(super) use variables::{Variables, is_name_byte};
