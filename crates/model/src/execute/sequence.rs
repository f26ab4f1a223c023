//! CREATE SEQUENCE and ALTER SEQUENCE.

use super::{Executor, Run, fail};
use crate::catalog::{
    Column, Counting, Mention, Oid, Relation, RelationDetail, RelationKind, SEQUENCE_FUNCTIONS, Sequence, SqlType,
};
use pgvet_syntax::ast::{
    AlterSequence, Argument, CreateSequence, DefElem, DefValue, Expr, ExprKind, FunctionCall, Literal, LockMode, Name,
    ObjectName, Persistence,
};
use pgvet_syntax::lexer::quote_identifier;
use pgvet_syntax::source::TextRange;
use smol_str::{SmolStr, format_smolstr};
use std::sync::Arc;

/// The type of a sequence without AS.
const BIGINT: SqlType = SqlType::new(Oid(20));

/// The argument of OWNED BY.
enum Owner {
    Unchanged,
    None,
    Column(ObjectName, SmolStr),
}

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/sequence.c`, `DefineSequence`.
    pub(super) fn create_sequence(&mut self, create: &CreateSequence) -> Run {
        let temporary = create.persistence == Persistence::Temporary;
        let schema = self.schema_to_fill(&create.name, temporary)?;
        let name = create.name.name.text.clone();
        if create.if_not_exists && self.catalog.relation_named(&schema, &name).is_some() {
            return Ok(());
        }
        self.check_name_is_free(&schema, &create.name)?;
        self.check_no_type(&schema, &create.name)?;
        let oid = self.catalog.new_oid();
        let mut relation = Relation::new(oid, schema, name, RelationKind::Sequence, self.birth(true));
        relation.persistence = create.persistence;
        relation.placed_by_path = self.is_placed_by_path(&create.name);
        let sql_type = self.sequence_type(&create.options).unwrap_or(BIGINT);
        relation.detail = RelationDetail::Sequence(Sequence {
            owned_by: None,
            identity: false,
            sql_type,
            counting: counting(&create.options),
        });
        self.catalog.add_relation(relation);
        self.created(oid);
        self.own_sequence(oid, &create.options, create.name.range())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/sequence.c`, `AlterSequence`.
    pub(super) fn alter_sequence(&mut self, alter: &AlterSequence) -> Run {
        let range = alter.name.range();
        let mode = LockMode::ShareRowExclusive;
        let Some(oid) = self.open_if_exists(&alter.name, RelationKind::Sequence, mode, alter.if_exists)? else {
            return Ok(());
        };
        let relation = self.catalog.relation(oid);
        if relation.kind != RelationKind::Sequence && relation.known {
            return fail("42809", format!("\"{}\" is not a sequence", relation.name), range);
        }
        let sql_type = self.sequence_type(&alter.options);
        if let RelationDetail::Sequence(sequence) = &mut self.catalog.relation_mut(oid).detail {
            // Bounds that follow from the direction stay when it changes.
            if alter.options.iter().any(|option| option.name == "increment") {
                sequence.counting = sequence.counting.complete(sequence.sql_type);
            }
            // The start does not follow a new minimum.
            sequence.counting.start = sequence.counting.complete(sequence.sql_type).start;
            change_counting(&mut sequence.counting, &alter.options);
            sequence.sql_type = sql_type.unwrap_or(sequence.sql_type);
        }
        let identity = self.catalog.relation(oid).sequence().is_some_and(|sequence| sequence.identity);
        if identity && !matches!(owner(&alter.options, range), Owner::Unchanged) {
            return fail("0A000", "cannot change ownership of identity sequence", range);
        }
        self.own_sequence(oid, &alter.options, range)
    }

    fn sequence_type(&mut self, options: &[DefElem]) -> Option<SqlType> {
        let option = options.iter().find(|option| option.name == "as")?;
        match &option.value {
            DefValue::Type(type_name) => Some(self.resolve_type(type_name)),
            _ => None,
        }
    }

    /// OWNED BY locks the table `AccessShare`.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/sequence.c`, `process_owned_by`.
    fn own_sequence(&mut self, sequence: Oid, options: &[DefElem], range: TextRange) -> Run {
        let owner = match owner(options, range) {
            Owner::Unchanged => return Ok(()),
            Owner::None => None,
            Owner::Column(table, column) => {
                let oid = self.open(&table, RelationKind::Table, LockMode::AccessShare)?;
                let relation = self.catalog.relation(oid);
                if relation.known && relation.schema != self.catalog.relation(sequence).schema {
                    return fail("55000", "sequence must be in same schema as table it is linked to", table.range());
                }
                if relation.known && relation.column(&column).is_none() {
                    let reason = format!("column \"{column}\" of relation \"{}\" does not exist", relation.name);
                    return fail("42703", reason, table.range());
                }
                Some((oid, column))
            }
        };
        self.set_sequence_owner(sequence, owner);
        Ok(())
    }

    fn set_sequence_owner(&mut self, sequence: Oid, owner: Option<(Oid, SmolStr)>) {
        let RelationDetail::Sequence(detail) = &mut self.catalog.relation_mut(sequence).detail else { return };
        let before = std::mem::replace(&mut detail.owned_by, owner.clone());
        if let Some((table, _)) = before
            && self.catalog.get_relation(table).is_some()
        {
            self.catalog.relation_mut(table).owned_sequences.retain(|other| *other != sequence);
        }
        if let Some((table, _)) = owner {
            self.catalog.relation_mut(table).owned_sequences.push(sequence);
        }
    }
}

/// The options of a new sequence.
pub(super) fn counting(options: &[DefElem]) -> Counting {
    let mut counting = Counting::default();
    change_counting(&mut counting, options);
    counting
}

pub(super) fn change_counting(counting: &mut Counting, options: &[DefElem]) {
    for option in options {
        // NO MINVALUE and NO MAXVALUE have no value.
        let number = match &option.value {
            DefValue::Literal(Literal::Integer(number)) => Some(*number),
            DefValue::Literal(Literal::Numeric(digits)) => digits.parse().ok(),
            _ => None,
        };
        match option.name.as_str() {
            "start" => counting.start = number,
            "increment" => counting.increment = number,
            "minvalue" => counting.minimum = number,
            "maxvalue" => counting.maximum = number,
            "cache" => counting.cache = number,
            "cycle" => counting.cycle = option.as_bool() == Some(true),
            _ => {}
        }
    }
}

fn owner(options: &[DefElem], range: TextRange) -> Owner {
    let Some(option) = options.iter().find(|option| option.name == "owned_by") else { return Owner::Unchanged };
    let DefValue::Names(names) = &option.value else { return Owner::Unchanged };
    let range = if option.range.is_empty() { range } else { option.range };
    let name = |text: &SmolStr| Name::new(text.clone(), range);
    match &names[..] {
        [.., schema, table, column] => {
            Owner::Column(ObjectName { schema: Some(name(schema)), name: name(table) }, column.clone())
        }
        [table, column] => Owner::Column(ObjectName { schema: None, name: name(table) }, column.clone()),
        [none] if none == "none" => Owner::None,
        _ => Owner::Unchanged,
    }
}

impl Executor<'_> {
    /// Defaults follow a sequence to its new name, for PostgreSQL keeps its oid in them.
    pub(super) fn rename_in_defaults(&mut self, sequence: Oid, schema: &str, name: &str) {
        let sequence = self.catalog.relation(sequence).clone();
        if sequence.kind != RelationKind::Sequence {
            return;
        }
        let uses = |column: &Column| column.default.as_ref().is_some_and(|it| sequence.is_sequence_of(it));
        let tables = self.catalog.relations_mentioning(&SEQUENCE_FUNCTIONS.map(|name| Mention::Call(name.into())));
        for table in tables.into_iter().map(|relation| relation.oid).collect::<Vec<_>>() {
            if !self.catalog.relation(table).columns.iter().any(uses) {
                continue;
            }
            for column in self.catalog.relation_mut(table).columns.iter_mut().filter(|column| uses(column)) {
                if let Some(default) = &mut column.default {
                    set_sequence(Arc::make_mut(default), &regclass_text(schema, name));
                }
            }
        }
    }
}

/// Changes the name of the sequence in `nextval('name')`.
fn set_sequence(default: &mut Expr, to: &SmolStr) {
    if let ExprKind::Literal(Literal::String(text)) = &mut default.kind {
        *text = to.clone();
    }
    default.for_each_child_mut(&mut |child| set_sequence(child, to));
}

/// The text of a constant that names a relation.
fn regclass_text(schema: &str, name: &str) -> SmolStr {
    format_smolstr!("{}.{}", quote_identifier(schema), quote_identifier(name))
}

/// `nextval('schema.sequence')`.
pub(super) fn nextval(schema: &str, sequence: &str, range: TextRange) -> Expr {
    let name = Expr { kind: ExprKind::Literal(Literal::String(regclass_text(schema, sequence))), range };
    let call = FunctionCall {
        schema: None,
        name: "nextval".into(),
        arguments: vec![Argument { name: None, value: name }],
        star: false,
        distinct: false,
        variadic: false,
        filter: None,
        order_by: Vec::new(),
        window: None,
        partition_keys: 0,
        name_range: range,
    };
    Expr { kind: ExprKind::Call(Box::new(call)), range }
}
