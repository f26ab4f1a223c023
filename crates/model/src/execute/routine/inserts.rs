//! The tables into which the code of a function inserts rows.

use super::code::{Bodies, Code};
use crate::catalog::Function;
use pgvet_syntax::ast::{Ast, FunctionBody, ObjectName, Part};
use pgvet_syntax::plpgsql::texts::{SqlRole, of_statement};
use pgvet_syntax::plpgsql::{Context, Statement, Visitor, walk};

impl Bodies {
    /// The names as they are written. Those in the text of EXECUTE are not among them.
    pub(crate) fn inserted(&self, function: &Function) -> Vec<ObjectName> {
        let mut found = Vec::new();
        match &*function.body {
            FunctionBody::Atomic { statements, .. } => statements.iter().for_each(|ast| collect(ast, &mut found)),
            FunctionBody::Source { text, .. } if text.to_ascii_lowercase().contains("insert") => {
                match function.language.as_str() {
                    "plpgsql" => {
                        let code = self.code(&function.body, text);
                        walk(&code.block, &mut Inserts { code: &code, found: &mut found });
                    }
                    "sql" => {
                        let code = self.sql(&function.body, text);
                        let statements = code.iter().flat_map(|code| &code.statements);
                        statements.for_each(|(_, ast)| collect(ast, &mut found));
                    }
                    _ => {}
                }
            }
            FunctionBody::Source { .. } | FunctionBody::Library | FunctionBody::Missing => {}
        }
        found
    }
}

struct Inserts<'c> {
    code: &'c Code,
    found: &'c mut Vec<ObjectName>,
}

impl Visitor for Inserts<'_> {
    fn statement(&mut self, statement: &Statement, _: Context) {
        for (role, text) in of_statement(statement) {
            if role == SqlRole::Statement
                && let Some(ast) = self.code.statement(text)
            {
                collect(&ast, self.found);
            }
        }
    }
}

fn collect(ast: &Ast, found: &mut Vec<ObjectName>) {
    ast.visit(&mut |part| {
        if let Part::Insert(insert) = part {
            found.push(insert.table.name.clone());
        }
    });
}
