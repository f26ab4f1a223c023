//! Relations with columns, and what hangs on them.

use super::{Reader, code, name, strings, view};
use crate::object::{
    Column, Constraint, ConstraintKind, Generation, Identity, Index, Key, Known, Name, Policy, Reference, Relation,
    RelationKind, Rule, Trigger,
};
use pgvet_model::builtin;
use pgvet_model::catalog::{self, Catalog, IdentityKind, Oid, TEMPORARY_SCHEMA};
use pgvet_syntax::ast::{
    Firing, IndexElement, Persistence, ReferentialAction, ReplicaIdentity, TransitionTable, TriggerEvents,
    TriggerTiming,
};
use smol_str::SmolStr;
use std::collections::BTreeSet;
use std::sync::Arc;

fn kind_of(kind: catalog::RelationKind) -> Option<RelationKind> {
    Some(match kind {
        catalog::RelationKind::Table => RelationKind::Table,
        catalog::RelationKind::PartitionedTable => RelationKind::PartitionedTable,
        catalog::RelationKind::ForeignTable => RelationKind::ForeignTable,
        catalog::RelationKind::View => RelationKind::View,
        catalog::RelationKind::MaterializedView => RelationKind::MaterializedView,
        _ => return None,
    })
}

impl Reader<'_> {
    pub(super) fn relations(&self) -> Vec<Relation> {
        let open: BTreeSet<Oid> = self.catalog.open_relations().map(|relation| relation.oid).collect();
        let is_named = |relation: &&Arc<catalog::Relation>| !open.contains(&relation.oid);
        let all = self.catalog.relations().filter(|relation| relation.schema != TEMPORARY_SCHEMA).filter(is_named);
        let own = all.filter_map(|relation| Some((relation, kind_of(relation.kind)?)));
        let mut relations: Vec<Relation> = own.map(|(relation, kind)| self.relation(relation, kind)).collect();
        relations.sort_by(|one, other| one.name.cmp(&other.name));
        relations
    }

    fn relation(&self, relation: &catalog::Relation, kind: RelationKind) -> Relation {
        // PostgreSQL accepts `oids = false` and does not store it (`reloptions.c`, `transformRelOptions`).
        let stored = relation.options.iter().filter(|(name, _)| *name != "oids");
        let mut options: Vec<String> = stored.map(|(name, value)| format!("{name}={value}")).collect();
        options.sort();
        let key = relation.partition_by.as_ref();
        let mut parents: Vec<Name> = relation.parents.iter().filter_map(|oid| self.name_of(*oid)).collect();
        parents.sort();
        let mut statistics: Vec<Name> =
            self.catalog.statistics_of(relation.oid).iter().map(|(schema, own)| name(schema, own)).collect();
        statistics.sort();
        Relation {
            name: name(&relation.schema, &relation.name),
            kind,
            created_by_migrations: relation.known && !self.catalog.is_doubtful(relation.oid),
            unlogged: relation.persistence == Persistence::Unlogged,
            columns: self.columns(relation),
            constraints: self.constraints(relation),
            indexes: self.indexes(relation),
            triggers: self.triggers(relation),
            policies: policies(self.catalog, relation),
            rules: rules(relation),
            statistics,
            row_level_security: relation.row_security,
            forced_row_level_security: relation.force_row_security,
            replica_identity: replica_identity(&relation.replica_identity),
            options: Known::Value(options),
            parents,
            partition_key: key.map(|key| code::partition_key(key.strategy, &key.keys)),
            partition_bound: relation.partition_bound.as_deref().map(code::partition_bound),
            query: relation.view().map(|definition| view::query(self.catalog, relation, definition)),
            privileges: self.privileges(relation.oid, |_| false),
        }
    }

    pub(super) fn columns(&self, relation: &catalog::Relation) -> Vec<Column> {
        relation.columns.iter().map(|column| self.column(column)).collect()
    }

    fn column(&self, column: &catalog::Column) -> Column {
        let generated = column.generated.as_ref();
        let expression = generated.map(|generated| &generated.expression).or(column.default.as_ref());
        Column {
            name: column.name.to_string(),
            sql_type: self.sql_type(column.sql_type),
            not_null: column.not_null,
            default: expression.map(|expression| code::expression(expression)),
            identity: column.identity.map(|identity| match identity {
                IdentityKind::Always => Identity::Always,
                IdentityKind::ByDefault => Identity::ByDefault,
            }),
            generated: generated.map(|one| if one.stored { Generation::Stored } else { Generation::Virtual }),
            collation: column.collation.as_ref().filter(|name| *name != "default").map(SmolStr::to_string),
            local: column.is_local,
        }
    }

    fn constraints(&self, relation: &catalog::Relation) -> Vec<Constraint> {
        let all = relation.constraints.iter();
        let mut constraints: Vec<Constraint> = all.filter_map(|one| self.constraint(relation, one)).collect();
        constraints.sort_by(|one, other| one.name.cmp(&other.name));
        constraints
    }

    fn constraint(&self, relation: &catalog::Relation, constraint: &catalog::Constraint) -> Option<Constraint> {
        let index = constraint.index().and_then(|oid| self.catalog.get_relation(oid)?.index().cloned());
        let (kind, expression) = match &constraint.kind {
            catalog::ConstraintKind::NotNull { .. } => return None,
            catalog::ConstraintKind::Check { expression, .. } => {
                (ConstraintKind::Check, Some(code::of_relation(self.catalog, relation, expression)))
            }
            catalog::ConstraintKind::PrimaryKey { .. } => (ConstraintKind::PrimaryKey, None),
            catalog::ConstraintKind::Unique { .. } => (ConstraintKind::Unique, None),
            catalog::ConstraintKind::Exclude { .. } => {
                (ConstraintKind::Exclude, Some(Known::unknown("the operators of an exclusion constraint")))
            }
            catalog::ConstraintKind::ForeignKey(_) => (ConstraintKind::ForeignKey, None),
        };
        let has_columns = !matches!(kind, ConstraintKind::Check | ConstraintKind::Exclude);
        Some(Constraint {
            name: constraint.name.to_string(),
            kind,
            columns: if has_columns { strings(constraint.columns()) } else { Vec::new() },
            including: index.as_ref().map_or_else(Vec::new, |index| strings(&index.including)),
            valid: constraint.valid,
            enforced: constraint.enforced,
            deferrable: constraint.deferrable,
            initially_deferred: constraint.initially_deferred,
            no_inherit: constraint.no_inherit && kind == ConstraintKind::Check,
            local: constraint.is_local,
            nulls_not_distinct: index.as_ref().is_some_and(|index| index.nulls_not_distinct),
            over_period: match constraint.foreign_key() {
                Some(key) => self.references_periods(key),
                None => index.as_ref().is_some_and(|index| is_over_period(index)),
            },
            expression,
            references: constraint.foreign_key().map(|key| self.reference(key)),
        })
    }

    /// Whether the key has PERIOD: then, and only then, it references a key that is WITHOUT OVERLAPS.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATAddForeignKeyConstraint`.
    fn references_periods(&self, key: &catalog::ForeignKeyConstraint) -> bool {
        let Some(referenced) = self.catalog.get_relation(key.referenced) else { return false };
        let mut keys = referenced.constraints.iter().filter(|one| one.columns() == key.referenced_columns.as_slice());
        keys.any(|one| {
            let index = one.index().and_then(|oid| self.catalog.get_relation(oid));
            index.and_then(|index| index.index()).is_some_and(|index| is_over_period(index))
        })
    }

    fn reference(&self, key: &catalog::ForeignKeyConstraint) -> Reference {
        let mut on_delete = action(key.on_delete).to_owned();
        if !key.set_columns.is_empty() {
            on_delete = format!("{on_delete} ({})", key.set_columns.join(", "));
        }
        Reference {
            table: self.name_of(key.referenced).unwrap_or_default(),
            columns: strings(&key.referenced_columns),
            on_delete,
            on_update: action(key.on_update).to_owned(),
            match_full: key.match_full,
        }
    }

    fn triggers(&self, relation: &catalog::Relation) -> Vec<Trigger> {
        let function = |of: &catalog::Trigger| match self.catalog.get_function(of.function) {
            Some(function) => name(&function.schema, &function.name),
            None => name("", &of.function_name),
        };
        let mut triggers: Vec<Trigger> = relation.triggers.iter().map(|one| trigger(one, function(one))).collect();
        triggers.sort_by(|one, other| one.name.cmp(&other.name));
        triggers
    }

    fn indexes(&self, relation: &catalog::Relation) -> Vec<Index> {
        let of_constraints: Vec<Oid> = relation.constraints.iter().filter_map(|one| one.index()).collect();
        let free = relation.indexes.iter().filter(|oid| !of_constraints.contains(oid));
        let mut indexes: Vec<Index> = free.filter_map(|oid| self.index(*oid)).collect();
        indexes.sort_by(|one, other| one.name.cmp(&other.name));
        indexes
    }

    fn index(&self, oid: Oid) -> Option<Index> {
        let relation = self.catalog.get_relation(oid)?;
        let index = relation.index()?;
        Some(Index {
            name: relation.name.to_string(),
            unique: index.unique,
            valid: index.valid,
            method: index.method.to_string(),
            keys: index.elements.iter().map(|element| key(&index.method, element)).collect(),
            including: strings(&index.including),
            predicate: index.predicate.as_deref().map(code::expression),
            nulls_not_distinct: index.nulls_not_distinct,
            parent: index.parent.and_then(|parent| self.name_of(parent)),
        })
    }
}

/// Whether the index is that of a key WITHOUT OVERLAPS: only they are unique and use `GiST`.
fn is_over_period(index: &catalog::Index) -> bool {
    index.unique && index.method == "gist"
}

fn key(method: &str, element: &IndexElement) -> Key {
    let is_default = |name: &SmolStr| {
        builtin::operator_classes(method).iter().any(|class| class.name == name.as_str() && class.default)
    };
    Key {
        expression: code::expression(&element.key),
        collation: element.collation.as_ref().filter(|name| *name != "default").map(SmolStr::to_string),
        operator_class: element.operator_class.as_ref().filter(|name| !is_default(name)).map(SmolStr::to_string),
        descending: element.descending,
        nulls_first: element.nulls_first.unwrap_or(element.descending),
    }
}

fn action(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "NO ACTION",
        ReferentialAction::Restrict => "RESTRICT",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    }
}

fn replica_identity(identity: &ReplicaIdentity) -> String {
    match identity {
        ReplicaIdentity::Default => "DEFAULT".to_owned(),
        ReplicaIdentity::Full => "FULL".to_owned(),
        ReplicaIdentity::Nothing => "NOTHING".to_owned(),
        ReplicaIdentity::Index(index) => format!("USING INDEX {}", index.text),
    }
}

fn trigger(trigger: &catalog::Trigger, function: Name) -> Trigger {
    let TriggerEvents { insert, update, delete, truncate } = trigger.events;
    let events = [(insert, "INSERT"), (update, "UPDATE"), (delete, "DELETE"), (truncate, "TRUNCATE")];
    let transition_table =
        |table: &TransitionTable| format!("{} {}", if table.is_new { "NEW" } else { "OLD" }, table.name);
    let (new, old): (Vec<_>, Vec<_>) = trigger.transitions.iter().partition(|table| table.is_new);
    let transition_tables = Known::Value(old.into_iter().chain(new).map(transition_table).collect());
    Trigger {
        name: trigger.name.to_string(),
        timing: match trigger.timing {
            TriggerTiming::Before => "BEFORE",
            TriggerTiming::After => "AFTER",
            TriggerTiming::InsteadOf => "INSTEAD OF",
        }
        .to_owned(),
        events: events.into_iter().filter(|(on, _)| *on).map(|(_, word)| word.to_owned()).collect(),
        columns: strings(&trigger.columns),
        for_each_row: trigger.for_each_row,
        constraint: trigger.constraint.is_some(),
        deferrable: trigger.deferrable,
        initially_deferred: trigger.initially_deferred,
        condition: trigger.condition.as_deref().map(code::expression),
        function,
        arguments: strings(&trigger.arguments),
        transition_tables,
        firing: match trigger.firing {
            Firing::Enable => "ENABLE",
            Firing::Disable => "DISABLE",
            Firing::EnableAlways => "ENABLE ALWAYS",
            Firing::EnableReplica => "ENABLE REPLICA",
        }
        .to_owned(),
        inherited: trigger.inherited,
    }
}

fn policies(catalog: &Catalog, relation: &catalog::Relation) -> Vec<Policy> {
    let read = |policy: &catalog::Policy| {
        let mut roles = strings(&policy.roles);
        roles.sort();
        Policy {
            name: policy.name.to_string(),
            permissive: policy.permissive,
            command: policy.command.to_uppercase(),
            roles,
            using: policy.using.as_deref().map(|using| code::of_relation(catalog, relation, using)),
            check: policy.check.as_deref().map(|check| code::of_relation(catalog, relation, check)),
        }
    };
    let mut policies: Vec<Policy> = relation.policies.iter().map(|policy| read(policy)).collect();
    policies.sort_by(|one, other| one.name.cmp(&other.name));
    policies
}

fn rules(relation: &catalog::Relation) -> Vec<Rule> {
    let rule = |name: &SmolStr| Rule { name: name.to_string(), definition: Known::unknown("what a rule does") };
    let mut rules: Vec<Rule> = relation.rules.iter().map(rule).collect();
    rules.sort_by(|one, other| one.name.cmp(&other.name));
    rules
}
