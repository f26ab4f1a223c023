//! The statements that remove objects.

use super::{Writer, quoted};
use crate::compare::Change;
use crate::facets::signature;
use crate::kind::Kind;
use crate::object::Schema;
use pgvet_syntax::lexer::quote_identifier;

impl Writer<'_> {
    /// Removes the object of a change, with what depends on it. `before` has it.
    pub(super) fn drop(&mut self, change: &Change, before: &Schema) {
        let (whole, alone) = (quoted(&change.object), quote_identifier(&change.object.name));
        let part = change.part.as_deref().map(quote_identifier).unwrap_or_default();
        let in_schema = || format!("{}.{part}", quote_identifier(&change.object.schema));
        let text = match change.kind {
            Kind::Schema => format!("SCHEMA IF EXISTS {alone} CASCADE"),
            Kind::Extension => format!("EXTENSION IF EXISTS {alone} CASCADE"),
            Kind::Publication => format!("PUBLICATION IF EXISTS {alone}"),
            Kind::Enum | Kind::CompositeType => format!("TYPE IF EXISTS {whole} CASCADE"),
            Kind::Domain => format!("DOMAIN IF EXISTS {whole} CASCADE"),
            Kind::Sequence => format!("SEQUENCE IF EXISTS {whole} CASCADE"),
            Kind::Table | Kind::PartitionedTable => format!("TABLE IF EXISTS {whole} CASCADE"),
            Kind::ForeignTable => format!("FOREIGN TABLE IF EXISTS {whole} CASCADE"),
            Kind::View => format!("VIEW IF EXISTS {whole} CASCADE"),
            Kind::MaterializedView => format!("MATERIALIZED VIEW IF EXISTS {whole} CASCADE"),
            Kind::Index => format!("INDEX IF EXISTS {} CASCADE", in_schema()),
            Kind::Trigger => format!("TRIGGER IF EXISTS {part} ON {whole} CASCADE"),
            Kind::Policy => format!("POLICY IF EXISTS {part} ON {whole}"),
            Kind::Rule => format!("RULE IF EXISTS {part} ON {whole} CASCADE"),
            Kind::Column | Kind::Constraint => {
                let what = if change.kind == Kind::Column { "COLUMN" } else { "CONSTRAINT" };
                return self.statement(&format!("ALTER TABLE {whole} DROP {what} IF EXISTS {part} CASCADE"));
            }
            Kind::Function | Kind::Procedure | Kind::Aggregate => {
                let called = |name| signature(name) == change.object;
                let Some(function) = before.functions.iter().find(|own| called(own)) else { return };
                format!("ROUTINE IF EXISTS {}({}) CASCADE", quoted(&function.name), function.inputs.join(", "))
            }
        };
        self.statement(&format!("DROP {text}"));
    }
}
