//! How many rows the data after a COPY have.

use super::Statement;
use crate::ast::Ast;
use crate::source::TextRange;
use std::sync::Arc;

/// Gives the number of lines of these data to the statement that they belong to: the first COPY since the last data.
pub(super) fn note_rows(text: &str, data: TextRange, statements: &mut [Statement]) {
    let lines = text[data.as_usize()].lines().filter(|line| *line != "\\.").count() as u64;
    let waiting = statements.iter_mut().rev().map_while(|statement| match statement.parsed.as_mut() {
        Ok(ast) if is_waiting(ast) => Some(ast),
        _ => None,
    });
    if let Some(Ast::Copy(copy)) = waiting.last().map(Arc::make_mut) {
        copy.rows_at_most = Some(lines);
    }
}

/// Whether it is a COPY whose data are not known yet.
fn is_waiting(ast: &Ast) -> bool {
    matches!(ast, Ast::Copy(copy) if copy.from && copy.stdin && copy.rows_at_most.is_none())
}

/// Whether the number of rows that a statement changes is not in its own text.
pub(super) fn has_data(statement: &Statement) -> bool {
    matches!(statement.ast(), Some(Ast::Copy(copy)) if copy.rows_at_most.is_some())
}

#[cfg(test)]
mod tests {
    use super::super::{Statement, Unchanged, parse, parse_again};
    use crate::ast::Ast;

    fn rows(statements: &[Statement]) -> Vec<Option<u64>> {
        let copies = statements.iter().filter_map(|statement| match statement.ast() {
            Some(Ast::Copy(copy)) => Some(copy.rows_at_most),
            _ => None,
        });
        copies.collect()
    }

    #[test]
    fn each_copy_knows_its_own_lines() {
        let text = "COPY a FROM stdin;\n1\n2\n\\.\nCOPY b FROM stdin;\n\\.\nCOPY c FROM '/c';\n";
        assert_eq!(rows(&parse(text)), [Some(2), Some(0), None]);
        let together = "COPY a FROM stdin \\; COPY b FROM stdin;\n1\n\\.\n1\n2\n\\.\n";
        assert_eq!(rows(&parse(together)), [Some(1), Some(2)]);
    }

    #[test]
    fn an_edit_of_the_data_is_counted() {
        let [old, new] = ["COPY a FROM stdin;\n1\n\\.\n", "COPY a FROM stdin;\n1\n2\n\\.\n"];
        assert_eq!(rows(&parse_again(new, parse(old), Unchanged::between(old, new))), [Some(2)]);
    }
}
