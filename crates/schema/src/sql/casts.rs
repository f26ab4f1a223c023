//! How the stored values of a column are converted to another type.

use super::Writer;
use crate::alike::parsed;
use crate::from_catalog::Types;
use crate::object::Schema;
use pgvet_model::builtin::CastContext;
use pgvet_model::catalog::SqlType;
use pgvet_model::checkpoint::Checkpoint;
use pgvet_model::expression::{Analyzer, Coercion};
use pgvet_model::migration::Migration;
use pgvet_model::version::{PgVersion, Target, VersionRange};
use pgvet_syntax::ast::ExprKind;
use pgvet_syntax::lexer::quote_identifier;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;

/// The types of two schemas, with the casts between them.
pub(super) struct Casts {
    state: Checkpoint,
    target: Target,
}

impl Casts {
    pub(super) fn between(before: &Schema, after: &Schema) -> Self {
        let version = PgVersion(after.pg_version);
        let file = parse_file(SourceFile::new(String::new(), types(before, after)));
        let mut state = Checkpoint::default();
        state.advance(&[Migration::new(&file)], 1, VersionRange { from: version, to: version }, &());
        Self { state, target: Target::new(version) }
    }

    /// Returns the USING clause of a type change with a space before it. It is empty if PostgreSQL casts the values
    /// without one.
    pub(super) fn using(&self, column: &str, from: Option<&String>, to: &str) -> String {
        let types = Types(self.state.catalog());
        let analyzer = Analyzer::new(&types, &self.target);
        let resolved = |text: &str| resolved(&analyzer, text);
        let (old, new) = (from.map_or(SqlType::UNKNOWN, |from| resolved(from)), resolved(to));
        let coercion = |context| analyzer.coercion(old, new, context);
        if matches!(coercion(CastContext::Assignment), Coercion::Steps(_)) {
            return String::new();
        }
        // Every type has a text form.
        let detour = if coercion(CastContext::Explicit) == Coercion::Impossible { "::text" } else { "" };
        format!(" USING {}{detour}::{to}", quote_identifier(column))
    }
}

/// The types of both schemas as SQL. What has the same name is that of `after`.
fn types(before: &Schema, after: &Schema) -> String {
    let Schema { source, pg_version, extensions, .. } = after.clone();
    let only = Schema {
        source,
        pg_version,
        extensions,
        schemas: both(&before.schemas, &after.schemas, |name| name),
        enums: both(&before.enums, &after.enums, |own| &own.name),
        domains: both(&before.domains, &after.domains, |own| &own.name),
        composites: both(&before.composites, &after.composites, |own| &own.name),
        ..Schema::default()
    };
    let mut writer = Writer { schema: &only, text: String::new(), omitted: Vec::new() };
    writer.write();
    writer.text
}

fn both<T: Clone, N: PartialEq>(before: &[T], after: &[T], name: impl Fn(&T) -> &N) -> Vec<T> {
    let gone = before.iter().filter(|old| !after.iter().any(|new| name(new) == name(old)));
    after.iter().chain(gone).cloned().collect()
}

/// The type that a text names.
fn resolved(analyzer: &Analyzer<'_>, text: &str) -> SqlType {
    match parsed(&format!("NULL::{text}")).map(|value| value.kind) {
        Some(ExprKind::Cast { target, .. }) => analyzer.resolve_type(&target),
        _ => SqlType::UNKNOWN,
    }
}
