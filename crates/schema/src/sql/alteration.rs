//! The statements that give one schema what another has.

use super::casts::Casts;
use super::{Script, Writer, comment, quoted};
use crate::compare::{Action, Change, Comparison, compare};
use crate::facets::signature;
use crate::kind::Kind;
use crate::object::{Column, ConstraintKind, Enum, Identity, Name, Relation, Schema, Sequence};
use crate::words;
use pgvet_syntax::deparse::string;
use pgvet_syntax::lexer::quote_identifier;
use std::cell::OnceCell;

/// Writes the statements that give `before` what `after` has, for a replay: relations that are known only in part are
/// replaced as a whole. Empty if nothing differs that is compared.
///
/// The drop of an object takes what depends on it along, so that another round may have to create that again.
pub fn alteration(before: &Schema, after: &Schema) -> String {
    let mut known = before.clone();
    let is_of_extension = |own: &Relation| after.extension_relations.contains(&own.name);
    known.relations.retain(|own| !is_of_extension(own));
    let (known_relations, unseen) = known.relations.into_iter().partition(|own: &Relation| own.created_by_migrations);
    known.relations = known_relations;
    let changes = compare(&known, after).changes;
    if changes.is_empty() && unseen.is_empty() {
        return String::new();
    }
    written(&known, after, &changes, &unseen).text
}

/// Writes the difference of two schemas as statements that a database can run. Comments say what is not written, and what
/// is not compared.
pub fn difference(before: &Schema, after: &Schema) -> String {
    let Comparison { changes, not_compared } = compare(before, after);
    let mut text = String::new();
    if !changes.is_empty() {
        text = written(before, after, &changes, &[]).with_comments().text;
    }
    text.extend(not_compared.iter().map(|one| comment("not compared", &one.text())));
    text
}

/// The statements that make changes. Relations of which only a part is known can be dropped first.
fn written(before: &Schema, after: &Schema, changes: &[Change], unseen: &[Relation]) -> Script {
    let early = selection(after, changes, false);
    let late = selection(after, changes, true);
    let mut writer = Writer { schema: &early, text: String::new(), omitted: Vec::new() };
    let schemas = changes.iter().filter(|change| change.action == Action::Added && change.kind == Kind::Schema);
    schemas.for_each(|change| writer.statement(&format!("CREATE SCHEMA {}", quote_identifier(&change.object.name))));
    writer.settings(&after.schemas);
    for relation in unseen {
        writer.statement(&format!("DROP TABLE IF EXISTS {} CASCADE", quoted(&relation.name)));
    }
    for change in changes.iter().filter(|change| is_dropped(change)) {
        writer.drop(change, before);
    }
    writer.objects();
    writer.changes(changes, before, after);
    for relation in &after.relations {
        writer.parts(relation, changes);
    }
    let Writer { text, omitted, .. } = writer;
    let mut writer = Writer { schema: &late, text, omitted };
    writer.objects();
    writer.invalid_indexes(before, after);
    Script { text: writer.text, omitted: writer.omitted }
}

/// Whether an object with changed properties is dropped and created again.
fn is_replaced(change: &Change) -> bool {
    change.action == Action::Changed
        && match change.kind {
            Kind::Index => change.properties.iter().any(|property| property.name != "valid"),
            kind => matches!(
                kind,
                Kind::Constraint
                    | Kind::Trigger
                    | Kind::Policy
                    | Kind::Rule
                    | Kind::View
                    | Kind::MaterializedView
                    | Kind::Function
                    | Kind::Procedure
                    | Kind::Publication
            ),
        }
}

fn is_dropped(change: &Change) -> bool {
    change.action == Action::Removed || is_replaced(change)
}

fn is_created(change: &Change) -> bool {
    change.action == Action::Added || is_replaced(change)
}

/// The whole objects that are created: those that others do not need if `late`, all others otherwise.
fn selection(after: &Schema, changes: &[Change], late: bool) -> Schema {
    let created = |name: &Name, kinds: &[Kind]| {
        let is_it = |change: &Change| change.part.is_none() && change.object == *name && kinds.contains(&change.kind);
        changes.iter().any(|change| is_created(change) && is_it(change))
    };
    let alone = |name: &str| Name { schema: String::new(), name: name.to_owned() };
    let mut part = Schema { source: after.source, pg_version: after.pg_version, ..Schema::default() };
    part.relations.clone_from(&after.relations);
    part.relations.retain(|own| own.kind.is_view() == late && created(&own.name, &[own.kind.into()]));
    if late {
        part.publications.clone_from(&after.publications);
        part.publications.retain(|own| created(&alone(&own.name), &[Kind::Publication]));
        return part;
    }
    let Schema { extensions, enums, domains, composites, sequences, functions, .. } = after.clone();
    part = Schema { extensions, enums, domains, composites, sequences, functions, ..part };
    part.extensions.retain(|own| created(&alone(&own.name), &[Kind::Extension]));
    part.enums.retain(|own| created(&own.name, &[Kind::Enum]));
    part.domains.retain(|own| created(&own.name, &[Kind::Domain]));
    part.composites.retain(|own| created(&own.name, &[Kind::CompositeType]));
    part.sequences.retain(|own| created(&own.name, &[Kind::Sequence]));
    part.functions.retain(|own| created(&signature(own), &[Kind::Function, Kind::Procedure]));
    part
}

impl Writer<'_> {
    /// Changes the objects that stay.
    fn changes(&mut self, changes: &[Change], before: &Schema, after: &Schema) {
        let casts = OnceCell::new();
        let casts = || casts.get_or_init(|| Casts::between(before, after));
        for change in changes {
            let length = self.text.len();
            self.alter(change, before, after, &casts);
            // Indexes that are not valid come last.
            let is_due = change.action == Action::Changed && !is_replaced(change) && change.kind != Kind::Index;
            if is_due && self.text.len() == length {
                let names: Vec<&str> = change.properties.iter().map(|property| property.name.as_str()).collect();
                self.omit(change.kind.noun(), &change.name(), &format!("no statement for its {}", names.join(", ")));
            }
        }
    }

    /// Changes an object that stays.
    fn alter<'c>(&mut self, change: &Change, before: &Schema, after: &Schema, casts: &dyn Fn() -> &'c Casts) {
        let is = |name: &Name| *name == change.object;
        if change.action == Action::Changed {
            match change.kind {
                Kind::Enum => {
                    let [old, new] = [before, after].map(|side| side.enums.iter().find(|own| is(&own.name)));
                    old.zip(new).into_iter().for_each(|(old, new)| self.add_labels(old, new));
                }
                Kind::Sequence => {
                    after.sequences.iter().filter(|own| is(&own.name)).for_each(|own| self.alter_sequence(own));
                }
                Kind::Table | Kind::PartitionedTable => {
                    after.relations.iter().filter(|own| is(&own.name)).for_each(|own| self.alter_table(own, change));
                }
                _ => {}
            }
        }
        let Some(name) = change.part.as_ref().filter(|_| change.kind == Kind::Column) else { return };
        let Some(table) = after.relations.iter().find(|own| is(&own.name)) else { return };
        let Some(column) = table.columns.iter().find(|column| column.name == *name) else { return };
        match change.action {
            Action::Added => {
                if let Some(line) = self.column(table, column) {
                    self.statement(&format!("ALTER TABLE {} ADD COLUMN {line}", quoted(&table.name)));
                }
            }
            Action::Changed => {
                let old = before.relations.iter().find(|own| is(&own.name));
                let old = old.and_then(|old| old.columns.iter().find(|column| column.name == *name));
                self.alter_column(table, [old.unwrap_or(column), column], change, casts);
            }
            Action::Removed => {}
        }
    }

    fn add_labels(&mut self, before: &Enum, after: &Enum) {
        let missing = after.labels.iter().enumerate().filter(|(_, label)| !before.labels.contains(label));
        for (at, label) in missing {
            let place = match (at.checked_sub(1).and_then(|at| after.labels.get(at)), before.labels.first()) {
                (Some(previous), _) => format!(" AFTER {}", string(previous)),
                (None, Some(first)) => format!(" BEFORE {}", string(first)),
                (None, None) => String::new(),
            };
            self.statement(&format!("ALTER TYPE {} ADD VALUE {}{place}", quoted(&after.name), string(label)));
        }
    }

    fn alter_sequence(&mut self, sequence: &Sequence) {
        let name = quoted(&sequence.name);
        if let Some(options) = sequence.options.value() {
            let options = words::sequence(options);
            self.statement(&format!("ALTER SEQUENCE {name} AS {} {options}", sequence.sql_type));
        }
        if sequence.owned_by.is_none() {
            self.statement(&format!("ALTER SEQUENCE {name} OWNED BY NONE"));
        }
        self.sequence_owner(sequence);
        self.statement(&format!("REVOKE ALL ON SEQUENCE {name} FROM PUBLIC"));
        self.privileges("SEQUENCE", &name, &sequence.privileges);
    }

    fn alter_table(&mut self, table: &Relation, change: &Change) {
        let name = quoted(&table.name);
        for property in &change.properties {
            let flag = |on: bool, yes, no| Some(if on { yes } else { no });
            let action = match property.name.as_str() {
                "row-level security" => {
                    flag(table.row_level_security, "ENABLE ROW LEVEL SECURITY", "DISABLE ROW LEVEL SECURITY")
                }
                "forced row-level security" => {
                    flag(table.forced_row_level_security, "FORCE ROW LEVEL SECURITY", "NO FORCE ROW LEVEL SECURITY")
                }
                "unlogged" => flag(table.unlogged, "SET UNLOGGED", "SET LOGGED"),
                _ => None,
            };
            if let Some(action) = action {
                self.statement(&format!("ALTER TABLE {name} {action}"));
            }
            match property.name.as_str() {
                "replica identity" => {
                    let identity = &table.replica_identity;
                    self.statement(&format!("ALTER TABLE {name} REPLICA IDENTITY {identity}"));
                }
                "privileges" => self.replace_privileges(table, property.before.as_deref()),
                _ => {}
            }
        }
    }

    /// The comparison names those that had privileges.
    fn replace_privileges(&mut self, table: &Relation, before: Option<&str>) {
        let name = quoted(&table.name);
        let grantees = before.unwrap_or_default().split(", ").filter_map(|one| Some(one.rsplit_once(" to ")?.1));
        for grantee in grantees {
            let grantee = if grantee == "public" { "PUBLIC".to_owned() } else { quote_identifier(grantee) };
            self.statement(&format!("REVOKE ALL ON TABLE {name} FROM {grantee}"));
        }
        self.privileges("TABLE", &name, &table.privileges);
    }

    /// Changes a column; the first of the two is the old one.
    fn alter_column<'c>(
        &mut self,
        table: &Relation,
        [old, column]: [&Column; 2],
        change: &Change,
        casts: &dyn Fn() -> &'c Casts,
    ) {
        let alter = format!("ALTER TABLE {} ALTER COLUMN {}", quoted(&table.name), quote_identifier(&column.name));
        let differs = |name: &str| change.properties.iter().any(|property| property.name == name);
        let new_type = column.sql_type.value().filter(|_| differs("type") || differs("collation"));
        // PostgreSQL computes generated values again. Source: `src/backend/commands/tablecmds.c`, `ATPrepAlterColumnType`.
        let stored = new_type.filter(|_| column.generated.is_none());
        let using = stored.map(|new| casts().using(&column.name, old.sql_type.value(), new)).unwrap_or_default();
        // A default is not converted by USING.
        let replaces_default = differs("default") || (!using.is_empty() && old.default.is_some());
        if replaces_default {
            self.statement(&format!("{alter} DROP DEFAULT"));
        }
        if differs("identity") {
            self.statement(&format!("{alter} DROP IDENTITY IF EXISTS"));
        }
        if let Some(sql_type) = new_type {
            let collation = column.collation.as_deref().map(quote_identifier);
            let collation = collation.map_or_else(String::new, |name| format!(" COLLATE {name}"));
            self.statement(&format!("{alter} TYPE {sql_type}{collation}{using}"));
        }
        if differs("NOT NULL") {
            let word = if column.not_null { "SET" } else { "DROP" };
            self.statement(&format!("{alter} {word} NOT NULL"));
        }
        let default = column.default.as_ref().and_then(|code| code.value()).filter(|_| column.generated.is_none());
        if let Some(default) = default.filter(|_| replaces_default) {
            self.statement(&format!("{alter} SET DEFAULT {default}"));
        }
        if let Some(identity) = column.identity.filter(|_| differs("identity")) {
            let word = if identity == Identity::Always { "ALWAYS" } else { "BY DEFAULT" };
            self.statement(&format!("{alter} ADD GENERATED {word} AS IDENTITY"));
        }
    }

    /// Creates the parts of a relation that it lacks.
    fn parts(&mut self, relation: &Relation, changes: &[Change]) {
        let of_it = changes.iter().filter(|change| change.object == relation.name && is_created(change));
        let lacks: Vec<(Kind, &str)> =
            of_it.filter_map(|change| Some((change.kind, change.part.as_deref()?))).collect();
        let mut part = Relation {
            name: relation.name.clone(),
            kind: relation.kind,
            query: relation.query.clone(),
            parents: relation.parents.clone(),
            constraints: relation.constraints.clone(),
            indexes: relation.indexes.clone(),
            triggers: relation.triggers.clone(),
            policies: relation.policies.clone(),
            rules: relation.rules.clone(),
            ..Relation::default()
        };
        part.constraints.retain(|own| lacks.contains(&(Kind::Constraint, own.name.as_str())));
        part.indexes.retain(|own| lacks.contains(&(Kind::Index, own.name.as_str())));
        part.triggers.retain(|own| lacks.contains(&(Kind::Trigger, own.name.as_str())));
        part.policies.retain(|own| lacks.contains(&(Kind::Policy, own.name.as_str())));
        part.rules.retain(|own| lacks.contains(&(Kind::Rule, own.name.as_str())));
        let checks: Vec<_> = part.constraints.iter().filter(|one| one.kind == ConstraintKind::Check).collect();
        checks.into_iter().for_each(|check| self.add_constraint(&part, check));
        self.keys(&part);
        self.indexes(&part);
        self.foreign_keys(&part);
        self.hangs_on(&part);
    }

    /// Sets which indexes queries use: only a build that fails leaves another state, and a superuser in the catalog.
    fn invalid_indexes(&mut self, before: &Schema, after: &Schema) {
        let was_valid = |relation: &Relation, name: &str| {
            let old = before.relations.iter().find(|old| old.name == relation.name);
            old.and_then(|old| old.indexes.iter().find(|index| index.name == name)).is_none_or(|index| index.valid)
        };
        for relation in &after.relations {
            for index in relation.indexes.iter().filter(|index| index.valid != was_valid(relation, &index.name)) {
                let name = Name { schema: relation.name.schema.clone(), name: index.name.clone() };
                let (valid, name) = (index.valid, string(&quoted(&name)));
                self.statement(&format!(
                    "UPDATE pg_catalog.pg_index SET indisvalid = {valid} WHERE indexrelid = {name}::regclass"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests;
