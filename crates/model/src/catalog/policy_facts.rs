//! What the policies of a database have shown so far: the schemas in which there are any, and the columns that they compare
//! with the current user.

use super::{Catalog, Column, Oid, Relation};
use crate::builtin::{self, oid};
use imbl::OrdSet;
use pgvet_syntax::ast::{Expr, ExprKind, FunctionCall, OperatorForm, Part};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Facts that no later statement removes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct PolicyFacts {
    schemas: OrdSet<SmolStr>,
    /// By their names: tables that refer to the same users name them alike.
    user_columns: OrdSet<SmolStr>,
    /// The columns that policies of their own table compare.
    own_columns: OrdSet<(Oid, SmolStr)>,
}

/// Maximum number of foreign keys that are followed from a table to one of users.
const MAX_KEYS: u8 = 3;

impl Catalog {
    /// Notes the conditions of a policy.
    pub fn note_policy<'a>(&mut self, table: Oid, conditions: impl Iterator<Item = &'a Expr>) {
        let schema = self.relation(table).schema.clone();
        self.policy_facts.schemas.insert(schema);
        for column in conditions.filter(|condition| asks_user(condition)).flat_map(compared_columns) {
            self.policy_facts.own_columns.insert((table, column.clone()));
            self.policy_facts.user_columns.insert(column);
        }
    }

    /// Whether a migration has created a policy for a table of the schema.
    pub fn has_policies_in(&self, schema: &str) -> bool {
        self.policy_facts.schemas.contains(schema)
    }

    /// Whether a column of the table may say which user a row belongs to: it refers to users, its default is the current
    /// user, or a policy compares a column of this name with the current user.
    pub fn may_have_owners(&self, table: &Relation) -> bool {
        // If no policy asks for the user, nothing shows which columns say it.
        let is_any = self.policy_facts.user_columns.is_empty();
        let may_name_user = |column: &Column| {
            let is_key = matches!(column.sql_type.oid.0, oid::UUID | oid::INT4 | oid::INT8);
            let is_own_key = || table.primary_key().is_some_and(|key| key.columns() == [column.name.clone()]);
            let is_generated = column.default.is_some() || column.identity.is_some();
            is_key && !is_generated && !is_own_key()
        };
        !table.known || (is_any && table.columns.iter().any(may_name_user)) || self.has_owner_column(table, MAX_KEYS)
    }

    fn has_owner_column(&self, table: &Relation, keys: u8) -> bool {
        let own = table.columns.iter().any(|column| match &column.default {
            _ if self.is_compared_with_user(table.oid, &column.name) => true,
            Some(default) if asks_user(default) => true,
            // A key that is generated belongs to no user.
            Some(_) => false,
            None => column.identity.is_none() && self.policy_facts.user_columns.contains(&column.name),
        });
        let Some(keys) = keys.checked_sub(1) else { return own };
        let referenced = || table.constraints.iter().filter_map(|constraint| constraint.foreign_key());
        own || referenced().any(|key| {
            let other = self.get_relation(key.referenced);
            other.is_none_or(|other| !other.known || other.oid != table.oid && self.has_owner_column(other, keys))
        })
    }

    /// Whether a policy of the table compares the column with the current user.
    fn is_compared_with_user(&self, table: Oid, column: &SmolStr) -> bool {
        self.policy_facts.own_columns.contains(&(table, column.clone()))
    }
}

/// Whether an expression depends on the current user: it calls a function of the project or reads a setting, too.
fn asks_user(expression: &Expr) -> bool {
    let mut found = false;
    expression.visit(&mut |part| {
        found |= match part {
            Part::Expr(Expr { kind: ExprKind::SqlValue(word, _), .. }) => {
                matches!(word.as_str(), "current_user" | "session_user" | "user" | "current_role" | "system_user")
            }
            Part::Expr(Expr { kind: ExprKind::Call(call), .. }) => may_ask_user(call),
            _ => false,
        };
    });
    found
}

fn may_ask_user(call: &FunctionCall) -> bool {
    call.name == "current_setting"
        || builtin::functions_called(call).is_empty() && !builtin::is_extension_function(&call.name)
}

/// The columns that a condition compares with something other than constants.
fn compared_columns(condition: &Expr) -> Vec<SmolStr> {
    let mut found = Vec::new();
    let mut add = |expression: &Expr| {
        expression.walk(&mut |part| {
            if let ExprKind::Column(path) = &part.kind {
                found.extend(path.last().cloned());
            }
        });
    };
    condition.visit(&mut |part| {
        let Part::Expr(expression) = part else { return };
        match &expression.kind {
            ExprKind::Operator { operator, form, operands, .. } if operator == "=" => {
                let is_list = matches!(form, OperatorForm::In | OperatorForm::AnyArray | OperatorForm::Plain);
                if is_list && !operands.iter().any(|operand| matches!(operand.kind, ExprKind::Literal(_))) {
                    operands.iter().for_each(&mut add);
                }
            }
            ExprKind::Subquery { test: Some(test), .. } => add(test),
            ExprKind::Call(call) if may_ask_user(call) => {
                call.arguments.iter().for_each(|argument| add(&argument.value));
            }
            _ => {}
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use crate::catalog::Catalog;
    use crate::routine::Trial;
    use crate::version::PgVersion;
    use pgvet_syntax::ast::from_pg::parse_sql;

    fn may_have_owners(sql: &str) -> bool {
        let mut trial = Trial::new(&Catalog::new(), &vec!["public".into()].into(), PgVersion(17));
        for statement in parse_sql(sql).unwrap() {
            trial.run(&statement);
        }
        let catalog = trial.catalog();
        catalog.may_have_owners(catalog.relation(catalog.relation_named("public", "t").unwrap()))
    }

    #[test]
    fn owners_of_rows() {
        let policy = "CREATE TABLE notes (id int PRIMARY KEY, owner_id int, kind text, item_id int);
            CREATE POLICY own ON notes USING (owner_id = app.user_id() AND kind = 'x');";
        for (sql, expected) in [
            ("CREATE TABLE t (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), email text);", false),
            ("CREATE TABLE t (id int PRIMARY KEY, owner_id int);", true),
            ("CREATE TABLE t (id int PRIMARY KEY, kind text);", false),
            ("CREATE TABLE t (id int PRIMARY KEY, by name DEFAULT current_user);", true),
            ("CREATE TABLE t (id int PRIMARY KEY, by text DEFAULT current_setting('app.user'));", true),
            ("CREATE TABLE t (id int PRIMARY KEY, note int REFERENCES notes);", true),
            ("CREATE TABLE t (id int PRIMARY KEY, by uuid REFERENCES auth.users);", true),
            (
                "CREATE TABLE people (id serial PRIMARY KEY); CREATE POLICY p ON people USING (id = app.user_id());
                 CREATE TABLE t (id int PRIMARY KEY, by int REFERENCES people);",
                true,
            ),
            (
                "CREATE TABLE tag (id int PRIMARY KEY); CREATE TABLE t (id int PRIMARY KEY, tag int REFERENCES tag);",
                false,
            ),
        ] {
            assert_eq!(may_have_owners(&format!("{policy} {sql}")), expected, "{sql}");
        }
        let key = "CREATE TABLE tag (id int PRIMARY KEY); CREATE TABLE t (id int PRIMARY KEY, tag int REFERENCES tag);";
        assert!(may_have_owners(key));
        assert!(!may_have_owners("CREATE TABLE t (id int PRIMARY KEY, email text, at timestamptz DEFAULT now());"));
    }
}
