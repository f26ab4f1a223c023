//! Arguments that do not describe their command.

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::ops::Deref;

/// The arguments of a command that keeps its own description, also if it gets its arguments only when it runs.
#[derive(Debug)]
pub(crate) struct Described<A>(A);

impl<A> Deref for Described<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.0
    }
}

impl<A: FromArgMatches> FromArgMatches for Described<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        A::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        A::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<A: Args> Args for Described<A> {
    fn augment_args(command: Command) -> Command {
        let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
        A::augment_args(command).about(Resettable::from(about)).long_about(Resettable::from(long_about))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
