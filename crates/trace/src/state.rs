//! A database at one moment: its schema, and what its tables hold.

use crate::Error;
use crate::connection::Connection;
use crate::contents::{Contents, contents};
use crate::provider::ThinClone;
use pgvet_schema::Schema;

/// A database at one moment.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) schema: Schema,
    pub(crate) contents: Contents,
}

impl State {
    pub(crate) async fn of(clone: &ThinClone) -> Result<Self, Error> {
        let schema = clone.schema().await?;
        let connection = Connection::open(&clone.database, "rows").await?;
        let contents = contents(&connection).await?;
        connection.close().await;
        Ok(Self { schema, contents })
    }
}
