//! Migrations that are programs: runs them on a private server, and keeps what they send as migrations in SQL.

mod command;
mod cut;
mod line;
mod proxy;
mod question;
mod recording;
mod run;
mod save;
mod session;
mod settings;
mod shape;
mod source;
mod statement;
mod text;
mod tools;
mod value;
mod wire;

pub use command::{Place, shown};
pub use cut::{Capture, Counts, Migration, TransactionId, TransactionKind, Work, cut};
pub use recording::{Outcome, Parameter, Recorded, Recording, Refused, Session};
pub use run::{Captured, Request, run};
pub use save::{Files, files, loops};
pub use settings::SessionSettings;
pub use source::{MAX_FILES, Source, Sources};
pub use tools::{MigrationTable, Naming, Row, Tables};
