//! The fields of records of code, as far as the code shows them.

use super::scope::{Columns, Known, returned};
use pgvet_model::routine::{Node, Routine, VariableKind};
use pgvet_syntax::ast::{Ast, Name, ObjectName};
use pgvet_syntax::plpgsql::{DataType, LoopKind, SqlText, Statement, StatementKind, Target};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// Returns the fields of variables with the type of a table's rows, and of those of type `record` that one query fills.
pub(super) fn of<'a>(routine: &Routine, known: Known<'_, 'a>) -> FxHashMap<SmolStr, Columns<'a>> {
    let mut declared: BTreeMap<SmolStr, Option<VariableKind>> = BTreeMap::new();
    for variable in routine.variables() {
        declared.entry(variable.name).and_modify(|kind| *kind = None).or_insert(Some(variable.kind));
    }
    let mut records = FxHashMap::default();
    let mut sources = None;
    for (name, kind) in declared {
        let Some(VariableKind::Declared(data_type)) = kind else { continue };
        let columns = match data_type {
            DataType::PercentRowtype { path, is_array: false, .. } => of_table(&path, known),
            DataType::Named(text) if text.text.trim().eq_ignore_ascii_case("record") => {
                let sources = sources.get_or_insert_with(|| Sources::of(routine));
                sources.query(&name).map_or(Columns::Unknown, |query| match routine.sql(query) {
                    Some(Ast::Select(query)) => returned(query, known),
                    _ => Columns::Unknown,
                })
            }
            DataType::Named(text) => of_table(&path_of(&text.text), known),
            DataType::PercentRowtype { .. } | DataType::PercentType { .. } => continue,
        };
        if !matches!(columns, Columns::Unknown) {
            records.insert(name, columns);
        }
    }
    records
}

/// The names of a type that may be a table; none if it is anything else.
fn path_of(text: &str) -> Vec<SmolStr> {
    let is_name =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let parts: Vec<&str> = text.trim().split('.').collect();
    if !parts.iter().all(|part| is_name(part)) {
        return Vec::new();
    }
    parts.into_iter().map(|part| part.to_ascii_lowercase().into()).collect()
}

fn of_table<'a>(path: &[SmolStr], known: Known<'_, 'a>) -> Columns<'a> {
    let name = |text: &SmolStr| Name::new(text.clone(), TextRange::default());
    let table = match path {
        [table] => ObjectName { schema: None, name: name(table) },
        [schema, table] => ObjectName { schema: Some(name(schema)), name: name(table) },
        _ => return Columns::Unknown,
    };
    known(&table).map_or(Columns::Unknown, Columns::Relation)
}

/// What gives variables their values.
struct Sources {
    /// `None` if it is anything but a query whose text is known.
    all: Vec<(SmolStr, Option<SqlText>)>,
    /// Arguments of a procedure may be given values.
    has_call: bool,
}

impl Sources {
    fn of(routine: &Routine) -> Self {
        let mut sources = Self { all: Vec::new(), has_call: false };
        for step in routine.steps() {
            if let Node::Statement(statement) = step.node {
                sources.add(statement);
            }
        }
        sources
    }

    fn add(&mut self, statement: &Statement) {
        use StatementKind as K;
        let (targets, query): (&[Target], _) = match &statement.kind {
            K::Call(_) => {
                self.has_call = true;
                return;
            }
            K::Loop(a_loop) => match &a_loop.kind {
                LoopKind::Query { targets, query } => (targets, Some(query)),
                LoopKind::Dynamic { targets, .. }
                | LoopKind::Cursor { targets, .. }
                | LoopKind::Foreach { targets, .. } => (targets, None),
                LoopKind::Integer { .. } | LoopKind::Endless | LoopKind::While(_) => return,
            },
            K::Sql(sql) => (sql.into.as_ref().map_or(&[], |into| &into.targets), Some(&sql.text)),
            K::Execute(execute) => (execute.into.as_ref().map_or(&[], |into| &into.targets), None),
            K::Fetch(fetch) => (fetch.into.as_ref().map_or(&[], |into| &into.targets), None),
            K::Assign(assign) => (std::slice::from_ref(&assign.target), None),
            _ => return,
        };
        let query = query.filter(|_| targets.len() == 1);
        for target in targets {
            if let [name] = target.names.as_slice() {
                self.all.push((name.clone(), query.cloned()));
            }
        }
    }

    /// The one query that fills a variable.
    fn query(&self, name: &SmolStr) -> Option<&SqlText> {
        let mut own = self.all.iter().filter(|(target, _)| target == name);
        match (own.next(), own.next()) {
            (Some((_, query)), None) if !self.has_call => query.as_ref(),
            _ => None,
        }
    }
}
