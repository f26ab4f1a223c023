//! Objects as what is compared: an identity, and properties in words.

use crate::alike::Form;
use crate::kind::Kind;
use crate::object::{
    Code, Column, Composite, Constraint, ConstraintKind, Domain, Function, Generation, Identity, Index, Key, Known,
    Name, Policy, Privilege, Publication, Relation, Schema, Sequence, Trigger,
};
use crate::words;
use std::collections::BTreeMap;

/// The property of a table that changes when a column is dropped and added again.
pub const COLUMN_ORDER: &str = "column order";

/// Why the schema of an extension is not known.
const SCHEMA_NOT_NAMED: &str = "no statement names it, and the extension may choose it";

/// The identity of an object; their order is that of a report.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identifier {
    /// The kind of the object itself, or of the relation that has it; one for all kinds that share their names.
    names: Kind,
    /// The object itself, or the relation that has it.
    pub(crate) name: Name,
    /// The kind and name within the relation: none for the relation itself.
    pub(crate) part: Option<(Kind, String)>,
}

impl Identifier {
    fn new(kind: Kind, name: &Name) -> Self {
        Self { names: kind.of_names(), name: name.clone(), part: None }
    }

    /// The relation that an object is a part of.
    pub(crate) fn whole(&self) -> Option<Self> {
        self.part.as_ref().map(|_| Self { part: None, ..self.clone() })
    }
}

/// A property of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing, such as no default.
    None,
    Text(String),
    /// What is likely, and why it may be something else.
    Assumed(String, &'static str),
    Code(Form, String),
    /// One without a schema may be any of its name.
    Function(Name),
    /// Columns of a view, whose types may not be known.
    Columns(Vec<Column>),
    Unknown(String),
}

/// The properties of an object, with their names.
pub(crate) type Properties = Vec<(&'static str, Value)>;

/// An object with its properties.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    /// Its definition, shown if it is added or removed.
    pub(crate) summary: String,
    /// Whether a statement that was read creates it.
    pub(crate) is_complete: bool,
    pub(crate) properties: Properties,
}

/// All objects of a schema.
pub(crate) fn items(schema: &Schema) -> BTreeMap<Identifier, Item> {
    let mut items = Items { found: BTreeMap::new() };
    for own in &schema.schemas {
        items.put(Kind::Schema, &alone(own), String::new(), Vec::new());
    }
    for own in &schema.extensions {
        let schema =
            if own.assumed_schema { Value::Assumed(own.schema.clone(), SCHEMA_NOT_NAMED) } else { text(&own.schema) };
        items.put(Kind::Extension, &alone(&own.name), String::new(), vec![("schema", schema)]);
    }
    for own in &schema.enums {
        let labels = words::list(&own.labels);
        items.put(Kind::Enum, &own.name, format!("({labels})"), vec![("labels", Value::Text(labels))]);
    }
    schema.domains.iter().for_each(|own| items.domain(own));
    schema.composites.iter().for_each(|own| items.composite(own));
    schema.sequences.iter().for_each(|own| items.sequence(own));
    schema.relations.iter().for_each(|own| items.relation(own));
    schema.functions.iter().for_each(|own| items.function(own));
    schema.publications.iter().for_each(|own| items.publication(own));
    items.found
}

/// The name of a function with the types by which it is called.
pub(crate) fn signature(function: &Function) -> Name {
    let Name { schema, name } = &function.name;
    Name { schema: schema.clone(), name: format!("{name}({})", function.inputs.join(", ")) }
}

fn alone(name: &str) -> Name {
    Name { schema: String::new(), name: name.to_owned() }
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn flag(value: bool) -> Value {
    if value { text("yes") } else { text("no") }
}

fn list(values: &[String]) -> Value {
    if values.is_empty() { Value::None } else { Value::Text(words::list(values)) }
}

fn code(form: Form, code: Option<&Code>) -> Value {
    code.map_or(Value::None, |code| known(code, |text| Value::Code(form, text.clone())))
}

fn known<T>(value: &Known<T>, write: impl Fn(&T) -> Value) -> Value {
    match value {
        Known::Value(value) => write(value),
        Known::Unknown { not_known } => Value::Unknown(not_known.clone()),
    }
}

fn privileges(privileges: &[Privilege]) -> Value {
    let one = |privilege: &Privilege| {
        let column = privilege.column.as_ref().map_or_else(String::new, |column| format!(" ({column})"));
        format!("{}{column} to {}", privilege.privilege, privilege.grantee)
    };
    list(&privileges.iter().map(one).collect::<Vec<String>>())
}

struct Items {
    found: BTreeMap<Identifier, Item>,
}

impl Items {
    fn put(&mut self, kind: Kind, name: &Name, summary: String, properties: Properties) {
        self.found.insert(Identifier::new(kind, name), Item { kind, summary, is_complete: true, properties });
    }

    fn put_part(&mut self, of: &Relation, kind: Kind, name: &str, part: (String, Properties)) {
        let (summary, properties) = part;
        let whole = Identifier::new(of.kind.into(), &of.name);
        let identifier = Identifier { part: Some((kind, name.to_owned())), ..whole };
        let is_complete = of.created_by_migrations;
        self.found.insert(identifier, Item { kind, summary, is_complete, properties });
    }

    fn domain(&mut self, domain: &Domain) {
        let checks = domain.checks.iter().map(|check| {
            let valid = if check.valid { "" } else { " NOT VALID" };
            match &check.expression {
                Known::Value(text) => format!("{} ({text}){valid}", check.name),
                Known::Unknown { .. } => format!("{}{valid}", check.name),
            }
        });
        // Whether expressions are alike is only known one by one: those of a domain with one CHECK.
        let expressions = match domain.checks.as_slice() {
            [] => Value::None,
            [only] => code(Form::Expression, Some(&only.expression)),
            _ => Value::Unknown("the conditions of a domain with several".to_owned()),
        };
        let names: Vec<String> = domain.checks.iter().map(|check| check.name.clone()).collect();
        let summary = words::join(&[words::shown(&domain.base).to_owned(), checks.collect::<Vec<String>>().join(", ")]);
        let properties = vec![
            ("type", known(&domain.base, |base| text(base))),
            ("NOT NULL", flag(domain.not_null)),
            ("default", code(Form::Expression, domain.default.as_ref())),
            ("checks", list(&names)),
            ("condition", expressions),
            ("validated", flag(domain.checks.iter().all(|check| check.valid))),
        ];
        self.put(Kind::Domain, &domain.name, summary, properties);
    }

    fn composite(&mut self, composite: &Composite) {
        let columns: Vec<String> = composite.columns.iter().map(words::column).collect();
        let summary = format!("({})", columns.join(", "));
        self.put(Kind::CompositeType, &composite.name, summary, vec![("columns", list(&columns))]);
    }

    fn sequence(&mut self, sequence: &Sequence) {
        let owner = sequence.owned_by.as_ref().map(|(table, column)| format!("{table}.{column}"));
        let options = known(&sequence.options, |options| text(&words::sequence(options)));
        let properties = vec![
            ("type", text(&sequence.sql_type)),
            ("counting", options),
            ("owner column", owner.map_or(Value::None, Value::Text)),
            ("privileges", privileges(&sequence.privileges)),
        ];
        self.put(Kind::Sequence, &sequence.name, String::new(), properties);
    }

    fn relation(&mut self, relation: &Relation) {
        let names: Vec<String> = relation.columns.iter().map(|column| column.name.clone()).collect();
        let parents: Vec<String> = relation.parents.iter().map(ToString::to_string).collect();
        let statistics: Vec<String> = relation.statistics.iter().map(ToString::to_string).collect();
        let mut properties = vec![
            ("kind", text(relation.kind.noun())),
            ("unlogged", flag(relation.unlogged)),
            ("row-level security", flag(relation.row_level_security)),
            ("forced row-level security", flag(relation.forced_row_level_security)),
            ("replica identity", text(&relation.replica_identity)),
            ("parents", list(&parents)),
            ("partition key", code(Form::PartitionKey, relation.partition_key.as_ref())),
            ("partition bound", code(Form::PartitionBound, relation.partition_bound.as_ref())),
            ("query", code(Form::Query, relation.query.as_ref())),
            ("options", known(&relation.options, |options| list(options))),
            ("statistics", list(&statistics)),
            ("privileges", privileges(&relation.privileges)),
        ];
        if relation.kind.is_view() {
            properties.push(("columns", Value::Columns(relation.columns.clone())));
        } else {
            properties.push((COLUMN_ORDER, list(&names)));
        }
        let kind = relation.kind.into();
        let item =
            Item { kind, summary: words::relation(relation), is_complete: relation.created_by_migrations, properties };
        self.found.insert(Identifier::new(kind, &relation.name), item);
        if !relation.kind.is_view() {
            for column in &relation.columns {
                let part = (words::column_details(column), column_properties(column));
                self.put_part(relation, Kind::Column, &column.name, part);
            }
        }
        for own in &relation.constraints {
            let part = (words::constraint(own), constraint_properties(own));
            self.put_part(relation, Kind::Constraint, &own.name, part);
        }
        for own in &relation.indexes {
            self.put_part(relation, Kind::Index, &own.name, (words::index(own), index_properties(own)));
        }
        for own in &relation.triggers {
            self.put_part(relation, Kind::Trigger, &own.name, (words::trigger(own), trigger_properties(own)));
        }
        for own in &relation.policies {
            self.put_part(relation, Kind::Policy, &own.name, (words::policy(own), policy_properties(own)));
        }
        for own in &relation.rules {
            let properties = vec![("definition", code(Form::Query, Some(&own.definition)))];
            self.put_part(relation, Kind::Rule, &own.name, (String::new(), properties));
        }
    }

    fn function(&mut self, function: &Function) {
        let properties = vec![
            ("kind", text(&function.kind)),
            ("parameters", known(&function.parameters, |text| Value::Code(Form::Parameters, text.clone()))),
            ("result", known(&function.returns, |returns| text(returns))),
            ("language", text(&function.language)),
            ("volatility", text(&function.volatility)),
            ("STRICT", flag(function.strict)),
            ("SECURITY DEFINER", flag(function.security_definer)),
            ("settings", list(&function.settings)),
            ("body", known(&function.body, |text| Value::Text(text.clone()))),
            ("privileges", privileges(&function.privileges)),
        ];
        let name = signature(function);
        let kind = match function.kind.as_str() {
            "procedure" => Kind::Procedure,
            "aggregate" => Kind::Aggregate,
            _ => Kind::Function,
        };
        self.put(kind, &name, words::function(function), properties);
    }

    fn publication(&mut self, publication: &Publication) {
        let tables: Vec<String> = publication.tables.iter().map(ToString::to_string).collect();
        let properties = vec![
            ("all tables", flag(publication.all_tables)),
            ("schemas", list(&publication.schemas)),
            ("tables", list(&tables)),
            ("UPDATE", flag(publication.updates)),
            ("DELETE", flag(publication.deletes)),
        ];
        self.put(Kind::Publication, &alone(&publication.name), String::new(), properties);
    }
}

fn column_properties(column: &Column) -> Properties {
    let identity = column.identity.map(|identity| match identity {
        Identity::Always => text("always"),
        Identity::ByDefault => text("by default"),
    });
    let generated = column.generated.map(|generated| match generated {
        Generation::Stored => text("stored"),
        Generation::Virtual => text("virtual"),
    });
    let expression = if column.generated.is_some() { "expression" } else { "default" };
    vec![
        ("type", known(&column.sql_type, |name| text(name))),
        ("collation", column.collation.as_ref().map_or(Value::None, |name| text(name))),
        ("NOT NULL", flag(column.not_null)),
        (expression, code(Form::Expression, column.default.as_ref())),
        ("identity", identity.unwrap_or(Value::None)),
        ("generated", generated.unwrap_or(Value::None)),
        ("defined by", text(if column.local { "the table" } else { "its parents" })),
    ]
}

fn constraint_properties(constraint: &Constraint) -> Properties {
    let kind = match constraint.kind {
        ConstraintKind::PrimaryKey => "PRIMARY KEY",
        ConstraintKind::Unique => "UNIQUE",
        ConstraintKind::Exclude => "EXCLUDE",
        ConstraintKind::Check => "CHECK",
        ConstraintKind::ForeignKey => "FOREIGN KEY",
    };
    let references = constraint.references.as_ref();
    let target = references.map(|to| format!("{} ({})", to.table, to.columns.join(", ")));
    vec![
        ("kind", text(kind)),
        ("columns", list(&constraint.columns)),
        ("included columns", list(&constraint.including)),
        ("condition", code(Form::Expression, constraint.expression.as_ref())),
        ("referenced columns", target.map_or(Value::None, Value::Text)),
        ("ON DELETE", references.map_or(Value::None, |to| text(&to.on_delete))),
        ("ON UPDATE", references.map_or(Value::None, |to| text(&to.on_update))),
        ("MATCH FULL", flag(references.is_some_and(|to| to.match_full))),
        ("validated", flag(constraint.valid)),
        ("enforced", flag(constraint.enforced)),
        ("deferrable", flag(constraint.deferrable)),
        ("initially deferred", flag(constraint.initially_deferred)),
        ("NO INHERIT", flag(constraint.no_inherit)),
        ("NULLS NOT DISTINCT", flag(constraint.nulls_not_distinct)),
        (
            if constraint.kind == ConstraintKind::ForeignKey { "PERIOD" } else { "WITHOUT OVERLAPS" },
            flag(constraint.over_period),
        ),
        ("defined by", text(if constraint.local { "the table" } else { "its parents" })),
    ]
}

fn index_properties(index: &Index) -> Properties {
    let sides = |key: &Key| words::key_options(key);
    let options: Vec<String> = index.keys.iter().map(sides).collect();
    let keys: Option<Vec<&str>> = index.keys.iter().map(|key| key.expression.value().map(String::as_str)).collect();
    let keys = keys.map_or_else(
        || Value::Unknown("the key of an index".to_owned()),
        |keys| Value::Code(Form::Expression, format!("ROW({})", keys.join(", "))),
    );
    vec![
        ("method", text(&index.method)),
        ("keys", keys),
        ("order and operator classes", list(&options)),
        ("included columns", list(&index.including)),
        ("condition", code(Form::Expression, index.predicate.as_ref())),
        ("unique", flag(index.unique)),
        ("NULLS NOT DISTINCT", flag(index.nulls_not_distinct)),
        ("valid", flag(index.valid)),
        ("parent", index.parent.as_ref().map_or(Value::None, |parent| Value::Text(parent.to_string()))),
    ]
}

fn trigger_properties(trigger: &Trigger) -> Properties {
    vec![
        ("timing", text(&trigger.timing)),
        ("events", list(&trigger.events)),
        ("columns", list(&trigger.columns)),
        ("level", text(if trigger.for_each_row { "row" } else { "statement" })),
        ("constraint", flag(trigger.constraint)),
        ("condition", code(Form::Expression, trigger.condition.as_ref())),
        ("deferrable", flag(trigger.deferrable)),
        ("initially deferred", flag(trigger.initially_deferred)),
        ("function", Value::Function(trigger.function.clone())),
        ("arguments", list(&trigger.arguments)),
        ("transition tables", known(&trigger.transition_tables, |names| list(names))),
        ("firing", text(&trigger.firing)),
    ]
}

fn policy_properties(policy: &Policy) -> Properties {
    vec![
        ("command", text(&policy.command)),
        ("kind", text(if policy.permissive { "permissive" } else { "restrictive" })),
        ("roles", list(&policy.roles)),
        ("USING", code(Form::Expression, policy.using.as_ref())),
        ("WITH CHECK", code(Form::Expression, policy.check.as_ref())),
    ]
}
