//! Dependencies between objects, as far as the catalog shows them.
//!
//! Source: PostgreSQL 18, `src/backend/catalog/dependency.c` and the callers of `recordDependencyOn`.

use super::Executor;
use crate::catalog::{
    ConstraintKind, Index, Mention, Oid, QualifiedName, Relation, RelationKind, SEQUENCE_FUNCTIONS, SqlType, TypeKind,
};
use crate::execute::expressions::mentions;
use pgvet_syntax::ast::Expr;
use smol_str::SmolStr;

/// Something that can be dropped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Object {
    Relation(Oid),
    Column(Oid, SmolStr),
    Default(Oid, SmolStr),
    Constraint(Oid, SmolStr),
    Trigger(Oid, SmolStr),
    Policy(Oid, SmolStr),
    Rule(Oid, SmolStr),
    Statistics(QualifiedName),
    Type(Oid),
    Function(Oid),
    Schema(SmolStr),
    Extension(SmolStr),
}

/// The fate of a dependent object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dependency {
    /// It goes silently.
    Auto,
    /// It goes with CASCADE and prevents RESTRICT.
    Normal,
}

use Dependency::{Auto, Normal};

type Dependents = Vec<(Object, Dependency)>;

impl Object {
    /// The relation that it is or is a part of.
    pub(super) fn relation(&self) -> Option<Oid> {
        match self {
            Self::Relation(oid)
            | Self::Column(oid, _)
            | Self::Default(oid, _)
            | Self::Constraint(oid, _)
            | Self::Trigger(oid, _)
            | Self::Policy(oid, _)
            | Self::Rule(oid, _) => Some(*oid),
            _ => None,
        }
    }

    /// The relation that is locked when the object is found; constraints, triggers and policies are not relations.
    pub(super) fn locked_relation(&self) -> Option<Oid> {
        match self {
            Self::Relation(oid) | Self::Column(oid, _) => Some(*oid),
            _ => None,
        }
    }
}

impl Executor<'_> {
    pub(super) fn dependents(&self, object: &Object) -> Dependents {
        match object {
            Object::Relation(oid) => self.dependents_of_relation(self.catalog.relation(*oid)),
            Object::Column(table, column) => self.dependents_of_column(self.catalog.relation(*table), column),
            Object::Constraint(table, name) => self.dependents_of_constraint(*table, name),
            Object::Type(oid) => self.dependents_of_type(*oid),
            Object::Function(oid) => self.dependents_of_function(*oid),
            Object::Schema(name) => self.members_of_schema(name),
            Object::Extension(name) => self.dependents_of_extension(name),
            Object::Default(table, column) => {
                let generated = self.catalog.relation(*table).column(column).is_some_and(|it| it.generated.is_some());
                if generated { vec![(Object::Column(*table, column.clone()), Auto)] } else { Vec::new() }
            }
            Object::Trigger(table, name) => self.clones_of_trigger(*table, name),
            Object::Policy(..) | Object::Rule(..) | Object::Statistics(_) => Vec::new(),
        }
    }

    /// The object that a part belongs to, and the relation that is locked on the way to it.
    pub(super) fn owner_of(&self, object: &Object) -> Option<(Object, Option<Oid>)> {
        match object {
            Object::Relation(oid) => {
                let relation = self.catalog.relation(*oid);
                if let Some(index) = relation.index() {
                    if let Some(parent) = index.parent {
                        return Some((Object::Relation(parent), Some(parent)));
                    }
                    let constraint = self.constraint_of_index(index.table, *oid)?;
                    return Some((Object::Constraint(index.table, constraint), None));
                }
                let sequence = relation.sequence().filter(|sequence| sequence.identity)?;
                let (table, column) = sequence.owned_by.clone()?;
                self.catalog.get_relation(table)?.column(&column)?.identity?;
                Some((Object::Column(table, column), Some(table)))
            }
            Object::Type(oid) => match self.catalog.get_type(*oid)?.kind {
                TypeKind::Composite { relation } => {
                    let row_type_of_table = self.catalog.relation(relation).kind != RelationKind::CompositeType;
                    row_type_of_table.then_some((Object::Relation(relation), Some(relation)))
                }
                TypeKind::Array { element } => Some((Object::Type(element), None)),
                _ => None,
            },
            _ => None,
        }
    }

    fn dependents_of_relation(&self, relation: &Relation) -> Dependents {
        let oid = relation.oid;
        let mut found = Dependents::new();
        for child in &relation.children {
            let partition = self.catalog.relation(*child).is_partition();
            found.push((Object::Relation(*child), if partition { Auto } else { Normal }));
        }
        let defaults = relation.columns.iter().filter(|column| column.default.is_some());
        found.extend(defaults.map(|column| (Object::Default(oid, column.name.clone()), Auto)));
        found.extend(relation.constraints.iter().map(|it| (Object::Constraint(oid, it.name.clone()), Auto)));
        found.extend(relation.indexes.iter().map(|index| (Object::Relation(*index), Auto)));
        found.extend(relation.owned_sequences.iter().map(|sequence| (Object::Relation(*sequence), Auto)));
        found.extend(self.catalog.statistics_of(oid).into_iter().map(|name| (Object::Statistics(name), Auto)));
        // The relation of a composite type is part of the type, not the other way round.
        let row_type = self.row_type(relation).filter(|_| relation.kind != RelationKind::CompositeType);
        found.extend(row_type.map(|row_type| (Object::Type(row_type), Auto)));
        found.extend(relation.viewed_by.iter().map(|view| (Object::Relation(*view), Normal)));
        for ruled in self.catalog.ruled_relations().filter(|ruled| ruled.oid != oid) {
            let rules =
                ruled.rule_references.iter().filter(|(rule, named)| *named == oid && ruled.rules.contains(rule));
            found.extend(rules.map(|(rule, _)| (Object::Rule(ruled.oid, rule.clone()), Normal)));
        }
        // A foreign key to a partitioned table is also one to each of its partitions.
        for referenced in std::iter::once(oid).chain(self.partition_ancestors(relation)) {
            let keys = self.catalog.foreign_keys_to(referenced);
            found.extend(keys.into_iter().map(|(table, key)| (Object::Constraint(table, key.name.clone()), Normal)));
        }
        if let Some(index) = relation.index() {
            found.extend(self.dependents_of_index(oid, index));
        }
        if relation.kind == RelationKind::Sequence {
            found.extend(self.defaults_using_sequence(relation));
        }
        found
    }

    fn partition_ancestors(&self, relation: &Relation) -> Vec<Oid> {
        let mut ancestors = Vec::new();
        let mut current = relation;
        while let (true, Some(parent)) = (current.is_partition(), current.parents.first()) {
            ancestors.push(*parent);
            current = self.catalog.relation(*parent);
        }
        ancestors
    }

    fn dependents_of_index(&self, oid: Oid, index: &Index) -> Dependents {
        if self.catalog.get_relation(index.table).is_none() {
            return Vec::new();
        }
        let mut found = Dependents::new();
        for (child, counterpart) in self.parts_of_index(oid) {
            found.push((Object::Relation(counterpart), Auto));
            let constraint = self.constraint_of_index(child, counterpart);
            found.extend(constraint.map(|name| (Object::Constraint(child, name), Auto)));
        }
        for (referencing, key) in self.catalog.foreign_keys_to(index.table) {
            if key.foreign_key().is_some_and(|key| key.referenced_index == oid) {
                found.push((Object::Constraint(referencing, key.name.clone()), Normal));
            }
        }
        found
    }

    fn defaults_using_sequence(&self, sequence: &Relation) -> Dependents {
        let mut found = Dependents::new();
        for table in self.catalog.relations_mentioning(&SEQUENCE_FUNCTIONS.map(|name| Mention::Call(name.into()))) {
            for column in &table.columns {
                let uses = column.default.as_deref().is_some_and(|default| sequence.is_sequence_of(default));
                if uses {
                    found.push((Object::Default(table.oid, column.name.clone()), Normal));
                }
            }
        }
        found
    }

    fn dependents_of_column(&self, table: &Relation, column: &SmolStr) -> Dependents {
        let oid = table.oid;
        let mut found = Dependents::new();
        if table.column(column).is_some_and(|own| own.default.is_some()) {
            found.push((Object::Default(oid, column.clone()), Auto));
        }
        for index in &table.indexes {
            let uses = self.catalog.relation(*index).index().is_some_and(|index| index_uses(index, column));
            if uses && self.constraint_of_index(oid, *index).is_none() {
                found.push((Object::Relation(*index), Auto));
            }
        }
        for constraint in &table.constraints {
            let index = constraint.index().and_then(|index| self.catalog.get_relation(index)?.index().cloned());
            let is_key = index.as_ref().is_some_and(|index| {
                let mut keys = index.elements.iter().filter_map(|element| element.key.as_column());
                keys.any(|key| key == column) || index.including.contains(column)
            });
            if constraint.columns().contains(column) || is_key {
                found.push((Object::Constraint(oid, constraint.name.clone()), Auto));
            } else if index.is_some_and(|index| index_uses(&index, column)) {
                // Its index uses the column in an expression or its predicate, which the constraint itself does not.
                found.push((Object::Constraint(oid, constraint.name.clone()), Normal));
            }
        }
        for (referencing, key) in self.catalog.foreign_keys_to(oid) {
            if key.foreign_key().is_some_and(|key| key.referenced_columns.contains(column)) {
                found.push((Object::Constraint(referencing, key.name.clone()), Normal));
            }
        }
        for sequence in &table.owned_sequences {
            let owner = self.catalog.relation(*sequence).sequence().and_then(|sequence| sequence.owned_by.as_ref());
            if owner.is_some_and(|(_, owner)| owner == column) {
                found.push((Object::Relation(*sequence), Auto));
            }
        }
        let statistics = self.catalog.statistics_using(oid, column);
        found.extend(statistics.into_iter().map(|name| (Object::Statistics(name), Auto)));
        for view in &table.viewed_by {
            let uses = self.catalog.relation(*view).view().is_some_and(|view| {
                view.references.iter().any(|(read, columns)| *read == oid && columns.contains(column))
            });
            if uses {
                found.push((Object::Relation(*view), Normal));
            }
        }
        for other in table.columns.iter().filter(|other| other.name != *column) {
            let uses = other.generated.as_ref().is_some_and(|generated| mentions(&generated.expression, column));
            if uses {
                // The column went silently before 15.
                let dependency = if self.target.at_least(15) { Normal } else { Auto };
                found.push((Object::Column(oid, other.name.clone()), dependency));
            }
        }
        for trigger in &table.triggers {
            let in_condition = trigger.condition.as_deref().is_some_and(|condition| mentions(condition, column));
            if trigger.columns.contains(column) || in_condition {
                found.push((Object::Trigger(oid, trigger.name.clone()), Normal));
            }
        }
        for policy in &table.policies {
            let uses = [&policy.using, &policy.check].into_iter().flatten().any(|expr| mentions(expr, column));
            if uses {
                found.push((Object::Policy(oid, policy.name.clone()), Normal));
            }
        }
        found
    }

    fn dependents_of_constraint(&self, table: Oid, name: &str) -> Dependents {
        let relation = self.catalog.relation(table);
        let Some(constraint) = relation.constraint(name) else { return Vec::new() };
        if let Some(index) = constraint.index().filter(|index| self.catalog.get_relation(*index).is_some()) {
            return vec![(Object::Relation(index), Auto)];
        }
        let ConstraintKind::ForeignKey(key) = &constraint.kind else { return Vec::new() };
        let clones = relation.children.iter().filter_map(|child| {
            let clone = self.catalog.relation(*child).constraints.iter().find(|clone| {
                clone.inherited_from > 0
                    && clone.foreign_key().is_some_and(|clone| {
                        clone.referenced == key.referenced
                            && clone.columns == key.columns
                            && clone.referenced_columns == key.referenced_columns
                    })
            })?;
            Some((Object::Constraint(*child, clone.name.clone()), Auto))
        });
        clones.collect()
    }

    fn clones_of_trigger(&self, table: Oid, name: &SmolStr) -> Dependents {
        let has_clone =
            |child: &&Oid| self.catalog.relation(**child).triggers.get(name).is_some_and(|trigger| trigger.inherited);
        let children = self.catalog.relation(table).children.iter().filter(has_clone);
        children.map(|child| (Object::Trigger(*child, name.clone()), Auto)).collect()
    }

    fn row_type(&self, relation: &Relation) -> Option<Oid> {
        let oid = self.catalog.type_named(&relation.schema, &relation.name)?;
        let definition = self.catalog.get_type(oid)?;
        matches!(definition.kind, TypeKind::Composite { relation: of } if of == relation.oid).then_some(oid)
    }

    fn dependents_of_type(&self, oid: Oid) -> Dependents {
        let Some(definition) = self.catalog.get_type(oid) else { return Vec::new() };
        let is_it = |sql_type: SqlType| {
            sql_type.oid == oid || (definition.array.is_valid() && sql_type.oid == definition.array)
        };
        let mut found = Dependents::new();
        if let TypeKind::Composite { relation } = definition.kind
            && self.catalog.relation(relation).kind == RelationKind::CompositeType
        {
            found.push((Object::Relation(relation), Auto));
        }
        let sought = [Mention::Object(oid), Mention::Object(definition.array)];
        for relation in self.catalog.relations_mentioning(&sought) {
            if relation.of_type == Some(oid) {
                found.push((Object::Relation(relation.oid), Normal));
            }
            if relation.view().is_some_and(|view| view.objects.contains(&oid)) {
                found.push((Object::Relation(relation.oid), Normal));
                continue;
            }
            // The columns of a view go with the view.
            let is_view = matches!(relation.kind, RelationKind::View | RelationKind::MaterializedView);
            for column in relation.columns.iter().filter(|column| is_it(column.sql_type)) {
                let object = if is_view {
                    Object::Relation(relation.oid)
                } else {
                    Object::Column(relation.oid, column.name.clone())
                };
                found.push((object, Normal));
            }
        }
        let dependency = |other: &TypeKind| match other {
            TypeKind::Domain(domain) if is_it(domain.base) => Some(Normal),
            TypeKind::Range { subtype } if is_it(*subtype) => Some(Normal),
            TypeKind::Multirange { range } if *range == oid => Some(Auto),
            _ => None,
        };
        let types = self.catalog.types_mentioning(&sought).into_iter();
        found.extend(types.filter_map(|other| Some((Object::Type(other.oid), dependency(&other.kind)?))));
        let functions = self.catalog.functions_mentioning(&sought).into_iter().filter(|function| {
            is_it(function.returns) || function.parameters.iter().any(|parameter| is_it(parameter.sql_type))
        });
        found.extend(functions.map(|function| (Object::Function(function.oid), Normal)));
        found
    }

    fn dependents_of_function(&self, oid: Oid) -> Dependents {
        let mut found = Dependents::new();
        let Some(name) = self.catalog.get_function(oid).map(|function| function.name.clone()) else { return found };
        for relation in self.catalog.relations_mentioning(&[Mention::Call(name.clone()), Mention::Object(oid)]) {
            let table = relation.oid;
            let calls =
                |expr: &Expr| calls_by_name(expr, &name) && self.analyze(expr, Some(table)).functions.contains(&oid);
            if relation.view().is_some_and(|view| view.objects.contains(&oid)) {
                found.push((Object::Relation(table), Normal));
            }
            for trigger in relation.triggers.iter().filter(|trigger| !trigger.inherited) {
                if trigger.function == oid || trigger.condition.as_deref().is_some_and(calls) {
                    found.push((Object::Trigger(table, trigger.name.clone()), Normal));
                }
            }
            for column in &relation.columns {
                if column.default.as_deref().is_some_and(calls) {
                    found.push((Object::Default(table, column.name.clone()), Normal));
                }
                if column.generated.as_ref().is_some_and(|generated| calls(&generated.expression)) {
                    found.push((Object::Column(table, column.name.clone()), Normal));
                }
            }
            for constraint in &relation.constraints {
                if matches!(&constraint.kind, ConstraintKind::Check { expression, .. } if calls(expression)) {
                    found.push((Object::Constraint(table, constraint.name.clone()), Normal));
                }
            }
            for policy in &relation.policies {
                if [&policy.using, &policy.check].into_iter().flatten().any(|expr| calls(expr)) {
                    found.push((Object::Policy(table, policy.name.clone()), Normal));
                }
            }
            if let Some(index) = relation.index() {
                let keys = index.elements.iter().map(|element| &element.key);
                if keys.chain(index.predicate.as_deref()).any(calls) {
                    found.push((Object::Relation(table), Normal));
                }
            }
        }
        found
    }

    fn members_of_schema(&self, name: &str) -> Dependents {
        let mut found = Dependents::new();
        // Indexes go with their tables, composite types with their type.
        let whole = |kind: RelationKind| !kind.is_index() && kind != RelationKind::CompositeType;
        let members = self.catalog.relations_where(|relation| relation.schema == name && whole(relation.kind));
        found.extend(members.into_iter().map(|relation| (Object::Relation(relation.oid), Normal)));
        let mut types: Vec<Oid> = self
            .catalog
            .types()
            .filter(|definition| definition.schema == name && self.owner_of(&Object::Type(definition.oid)).is_none())
            .map(|definition| definition.oid)
            .collect();
        types.sort_unstable();
        found.extend(types.into_iter().map(|oid| (Object::Type(oid), Normal)));
        let mut functions: Vec<Oid> =
            self.catalog.functions().filter(|function| function.schema == name).map(|function| function.oid).collect();
        functions.sort_unstable();
        found.extend(functions.into_iter().map(|oid| (Object::Function(oid), Normal)));
        found.extend(self.catalog.statistics_in(name).into_iter().map(|name| (Object::Statistics(name), Normal)));
        let extensions = self.catalog.extensions().filter(|(_, schema)| schema.as_str() == name);
        found.extend(extensions.map(|(extension, _)| (Object::Extension(extension.clone()), Normal)));
        found
    }

    /// The types of an extension that columns use. Its functions and operators leave no trace in the catalog.
    fn dependents_of_extension(&self, name: &str) -> Dependents {
        let Some(extension) = crate::builtin::extension(name) else { return Vec::new() };
        let mut types: Vec<Oid> = self
            .catalog
            .types()
            .filter(|definition| {
                matches!(definition.kind, TypeKind::Assumed | TypeKind::Base)
                    && extension.types.iter().any(|provided| provided.name == definition.name)
            })
            .map(|definition| definition.oid)
            .collect();
        types.sort_unstable();
        types.into_iter().map(|oid| (Object::Type(oid), Auto)).collect()
    }

    pub(super) fn describe(&self, object: &Object) -> String {
        let table = |oid: &Oid| self.catalog.get_relation(*oid).map_or_else(String::new, |it| it.name.to_string());
        match object {
            Object::Relation(oid) => {
                let relation = self.catalog.relation(*oid);
                format!("{} \"{}\"", relation.kind.word(), relation.name)
            }
            Object::Column(oid, name) => format!("column \"{name}\" of table \"{}\"", table(oid)),
            Object::Default(oid, name) => format!("default of column \"{name}\" of table \"{}\"", table(oid)),
            Object::Constraint(oid, name) => format!("constraint \"{name}\" on table \"{}\"", table(oid)),
            Object::Trigger(oid, name) => format!("trigger \"{name}\" on table \"{}\"", table(oid)),
            Object::Policy(oid, name) => format!("policy \"{name}\" on table \"{}\"", table(oid)),
            Object::Rule(oid, name) => format!("rule \"{name}\" on table \"{}\"", table(oid)),
            Object::Statistics((_, name)) => format!("statistics \"{name}\""),
            Object::Type(oid) => match self.catalog.get_type(*oid) {
                Some(definition) => format!("type \"{}\"", definition.name),
                None => "type".into(),
            },
            Object::Function(oid) => match self.catalog.get_function(*oid) {
                Some(function) => format!("function \"{}\"", function.name),
                None => "function".into(),
            },
            Object::Schema(name) => format!("schema \"{name}\""),
            Object::Extension(name) => format!("extension \"{name}\""),
        }
    }
}

fn index_uses(index: &Index, column: &SmolStr) -> bool {
    index.elements.iter().any(|element| mentions(&element.key, column))
        || index.including.contains(column)
        || index.predicate.as_deref().is_some_and(|predicate| mentions(predicate, column))
}

/// Whether the expression calls a function of that name, whichever it is.
fn calls_by_name(expr: &Expr, name: &str) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(&part.kind, pgvet_syntax::ast::ExprKind::Call(call) if call.name == name));
    found
}
