//! The objects beyond its database that a statement reaches: those that other databases of the server share, and its
//! machine.

use super::Effects;
use smol_str::SmolStr;
use std::fmt;

/// Something outside of the database that a statement changes or uses. A copy of the database does not contain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Roles and their memberships, settings and privileges on other shared objects.
    Role,
    /// Settings of the server, a database or a role: ALTER SYSTEM, ALTER DATABASE, a reload.
    Settings,
    /// Tablespaces.
    Tablespace,
    /// Databases as a whole.
    Database,
    /// Slots, origins and subscriptions.
    Replication,
    /// A program that the server starts.
    Program,
    /// Files on the machine of the server.
    Files,
    /// Code that can do what the server can: in this language, or a library.
    Code(SmolStr),
    /// Another server, or another connection to this one.
    Connection,
    /// Sessions of others.
    Sessions,
    /// Statistics that all databases share.
    Statistics,
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role => f.write_str("changes roles"),
            Self::Settings => f.write_str("changes settings of the server"),
            Self::Tablespace => f.write_str("changes tablespaces"),
            Self::Database => f.write_str("changes databases"),
            Self::Replication => f.write_str("changes replication"),
            Self::Program => f.write_str("runs a program on the server"),
            Self::Files => f.write_str("uses files of the server"),
            Self::Code(language) => {
                write!(f, "runs or defines code in {language}, which can do all that the server can")
            }
            Self::Connection => f.write_str("opens another connection"),
            Self::Sessions => f.write_str("ends or stops other sessions"),
            Self::Statistics => f.write_str("resets statistics of the server"),
        }
    }
}

impl Effects {
    /// Adds what a statement reaches, once.
    pub(crate) fn note_reach(&mut self, reach: Reach) {
        if !self.reaches.contains(&reach) {
            self.reaches.push(reach);
        }
    }
}
