//! Schemas for tests, from SQL.

use crate::object::{Relation, Schema, Source};
use pgvet_model::checkpoint::Checkpoint;
use pgvet_model::migration::Migration;
use pgvet_model::version::{PgVersion, VersionRange};
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;

/// The schema that statements leave on PostgreSQL 18.
pub(crate) fn schema(sql: &str) -> Schema {
    let file = parse_file(SourceFile::new("test.sql".to_owned(), sql.to_owned()));
    for statement in &file.statements {
        assert!(statement.parsed.is_ok(), "{sql}: {:?}", statement.parsed);
    }
    let version = PgVersion(18);
    let mut state = Checkpoint::default();
    state.advance(&[Migration::new(&file)], 1, VersionRange { from: version, to: version }, &());
    crate::read(state.catalog(), version)
}

/// The same as if a database had it.
pub(crate) fn database(sql: &str) -> Schema {
    Schema { source: Source::Database, ..schema(sql) }
}

/// A relation of `public`.
#[expect(clippy::panic, reason = "a test may panic, in its helpers too")]
pub(crate) fn relation<'a>(schema: &'a mut Schema, name: &str) -> &'a mut Relation {
    let found = schema.relations.iter_mut().find(|relation| relation.name.name == name);
    found.unwrap_or_else(|| panic!("there is no relation {name}"))
}
