//! Migrations that are programs: runs them on a private server, and keeps what they send as migrations in SQL.

mod command;
mod cut;
mod line;
mod own;
mod proxy;
mod question;
mod recording;
mod run;
mod save;
mod saved;
mod session;
mod settings;
mod shape;
mod source;
mod statement;
mod text;
mod tools;
mod upstream;
mod value;
mod wire;

pub use command::{Place, shown};
pub use cut::{Capture, Counts, Migration, TransactionId, TransactionKind, Work, cut, cut_without_folding};
pub use recording::{Outcome, Parameter, Recorded, Recording, Refused, Session};
pub use run::{Captured, Request, Started, State, run};
pub use save::{Files, files, files_to_run};
pub use saved::{Saved, SavedMigration};
pub use settings::SessionSettings;
pub use source::{MAX_FILES, Source, Sources};
pub use text::NOT_RUN;
pub use tools::{MigrationTable, Naming, Row, Tables};
