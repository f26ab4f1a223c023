//! Relations that a constant names: `nextval('s')`, `'t'::regclass`.

use crate::catalog::{Oid, SEQUENCE_FUNCTIONS};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{Expr, ExprKind, Name, ObjectName, string_literal};
use smol_str::SmolStr;

impl Executor<'_> {
    /// A constant of type regclass is looked up when the expression is read, wherever it stands.
    ///
    /// Source: PostgreSQL 14 to 18, `src/backend/parser/parse_coerce.c`, `coerce_type`;
    /// `src/backend/utils/adt/regproc.c`, `regclassin`.
    pub(in crate::execute) fn check_named_relations(&self, expr: &Expr) -> Run {
        let mut constants = Vec::new();
        expr.walk(&mut |part| match &part.kind {
            ExprKind::Call(call) if SEQUENCE_FUNCTIONS.contains(&call.name.as_str()) => {
                constants.extend(call.arguments.first().map(|argument| &argument.value));
            }
            ExprKind::Cast { operand, target } if target.name == "regclass" && !target.is_array => {
                constants.push(operand);
            }
            _ => {}
        });
        constants.into_iter().try_for_each(|constant| self.check_named_relation(constant))
    }

    fn check_named_relation(&self, constant: &Expr) -> Run {
        let Some(name) = relation_in_text(constant) else { return Ok(()) };
        let is_number = name.name.text.starts_with(|first: char| first.is_ascii_digit());
        if is_number || name.name.text.contains(pgvet_syntax::plpgsql::HOLE) || self.is_system_relation(&name) {
            return Ok(());
        }
        let path = self.session.settings.search_path();
        let certain = self.knows_all_of(name.schema_name()) || self.catalog.is_gone(&name, &path);
        if !certain || self.find(&name).is_some() {
            return Ok(());
        }
        if !self.target.at_least(16) {
            self.check_schema_of(&name)?;
        }
        fail("42P01", format!("relation \"{name}\" does not exist"), constant.range)
    }

    /// The sequence that `'name'` or `pg_get_serial_sequence('table', 'column')` stands for.
    pub(super) fn sequence_argument(&self, argument: &Expr) -> Option<Oid> {
        match &argument.kind {
            ExprKind::Call(call) if call.name == "pg_get_serial_sequence" => {
                let table = self.relation_argument(&call.arguments.first()?.value)?;
                let column = string_literal(&call.arguments.get(1)?.value)?;
                let owned = &self.catalog.relation(table).owned_sequences;
                owned.iter().copied().find(|sequence| {
                    let sequence = self.catalog.get_relation(*sequence).and_then(|relation| relation.sequence());
                    let owner = sequence.and_then(|sequence| sequence.owned_by.as_ref());
                    owner.is_some_and(|(_, owned)| owned == column)
                })
            }
            ExprKind::Cast { operand, .. } => self.sequence_argument(operand),
            _ => self.relation_argument(argument),
        }
    }

    /// The relation that a constant names.
    pub(super) fn relation_argument(&self, argument: &Expr) -> Option<Oid> {
        self.find(&relation_in_text(argument)?)
    }
}

pub(super) fn relation_in_text(constant: &Expr) -> Option<ObjectName> {
    let mut parts = split_identifier(string_literal(constant)?);
    let name = Name::new(parts.pop()?, constant.range);
    let schema = parts.pop().map(|schema| Name::new(schema, constant.range));
    Some(ObjectName { schema, name })
}

/// Splits the text of a possibly qualified name as PostgreSQL's regclass input does.
fn split_identifier(text: &str) -> Vec<SmolStr> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut quoted = false;
    let mut characters = text.trim().chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                part.push('"');
            }
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(SmolStr::new(std::mem::take(&mut part))),
            _ if quoted => part.push(character),
            _ => part.push(character.to_ascii_lowercase()),
        }
    }
    parts.push(SmolStr::new(part));
    parts
}

#[cfg(test)]
mod tests {
    use super::split_identifier;

    #[test]
    fn names_in_text_are_folded_and_unquoted() {
        assert_eq!(split_identifier("Public.\"My \"\"Seq\""), ["public", "My \"Seq"]);
    }
}
