//! Visiting every statement of a body with what surrounds it.

use super::{Block, Branch, Else, Handler, Loop, Statement, StatementKind};

/// Under which conditions a statement runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Loops around it.
    pub loops: u32,
    /// How often it runs at most because of those loops, if the text tells; 1 outside of loops.
    pub iterations: Option<u64>,
    /// Blocks with EXCEPTION around it: the subtransactions that it runs in. A handler runs after its block was rolled
    /// back, so the block does not count for it.
    pub subtransactions: u32,
    /// Exception handlers around it.
    pub handlers: u32,
    /// Branches of IF and CASE around it: it may not run at all.
    pub branches: u32,
}

impl Default for Context {
    fn default() -> Self {
        Self { loops: 0, iterations: Some(1), subtransactions: 0, handlers: 0, branches: 0 }
    }
}

impl Context {
    #[must_use]
    pub fn in_loop(self, around: &Loop) -> Self {
        let times = self.iterations.zip(around.constant_iterations());
        let iterations = times.map(|(outer, inner)| outer.saturating_mul(inner));
        Self { loops: self.loops + 1, iterations, ..self }
    }
}

/// The methods that [`walk`] calls, outer before inner, in the order of the text.
pub trait Visitor {
    fn statement(&mut self, statement: &Statement, context: Context);

    /// `context` is that of the block, without the subtransaction that it may start.
    fn block(&mut self, _block: &Block, _context: Context) {}

    /// `context` is that of the handler's statements.
    fn handler(&mut self, _handler: &Handler, _block: &Block, _context: Context) {}
}

/// Visits the block and everything in it.
pub fn walk(block: &Block, visitor: &mut impl Visitor) {
    walk_block(block, Context::default(), visitor);
}

fn walk_block(block: &Block, context: Context, visitor: &mut impl Visitor) {
    visitor.block(block, context);
    let Some(exception) = &block.exception else {
        return walk_statements(&block.statements, context, visitor);
    };
    let inside = Context { subtransactions: context.subtransactions + 1, ..context };
    walk_statements(&block.statements, inside, visitor);
    let handling = Context { handlers: context.handlers + 1, ..context };
    for handler in &exception.handlers {
        visitor.handler(handler, block, handling);
        walk_statements(&handler.statements, handling, visitor);
    }
}

fn walk_statements(statements: &[Statement], context: Context, visitor: &mut impl Visitor) {
    for statement in statements {
        visitor.statement(statement, context);
        match &statement.kind {
            StatementKind::Block(block) => walk_block(block, context, visitor),
            StatementKind::If(conditional) => {
                walk_branches(&conditional.branches, conditional.otherwise.as_ref(), context, visitor);
            }
            StatementKind::Case(case) => walk_branches(&case.branches, case.otherwise.as_ref(), context, visitor),
            StatementKind::Loop(around) => walk_statements(&around.statements, context.in_loop(around), visitor),
            _ => {}
        }
    }
}

fn walk_branches(branches: &[Branch], otherwise: Option<&Else>, context: Context, visitor: &mut impl Visitor) {
    let context = Context { branches: context.branches + 1, ..context };
    for branch in branches {
        walk_statements(&branch.statements, context, visitor);
    }
    if let Some(otherwise) = otherwise {
        walk_statements(&otherwise.statements, context, visitor);
    }
}

impl Statement {
    /// The lists of statements directly inside it: of a block with its handlers, of branches, of a loop.
    pub fn inner(&self) -> Vec<&[Statement]> {
        fn lists<'a>(branches: &'a [Branch], otherwise: Option<&'a Else>) -> Vec<&'a [Statement]> {
            let branches = branches.iter().map(|branch| branch.statements.as_slice());
            branches.chain(otherwise.map(|otherwise| otherwise.statements.as_slice())).collect()
        }
        match &self.kind {
            StatementKind::Block(block) => {
                let handlers = block.exception.iter().flat_map(|section| &section.handlers);
                let handlers = handlers.map(|handler| handler.statements.as_slice());
                std::iter::once(block.statements.as_slice()).chain(handlers).collect()
            }
            StatementKind::If(conditional) => lists(&conditional.branches, conditional.otherwise.as_ref()),
            StatementKind::Case(case) => lists(&case.branches, case.otherwise.as_ref()),
            StatementKind::Loop(a_loop) => vec![&a_loop.statements],
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plpgsql::{BodyText, read};
    use crate::source::TextRange;

    struct Trace<'a>(&'a str, Vec<(&'a str, Context)>);

    impl Visitor for Trace<'_> {
        fn statement(&mut self, statement: &Statement, context: Context) {
            if let StatementKind::Sql(_) = statement.kind {
                self.1.push((&self.0[statement.range.as_usize()], context));
            }
        }
    }

    #[test]
    fn the_context_counts_loops_subtransactions_and_branches() {
        let text = "BEGIN
            DELETE FROM a;
            FOR i IN 1..10 LOOP
                FOR j IN REVERSE 9..0 BY 3 LOOP DELETE FROM b; END LOOP;
                BEGIN DELETE FROM c; EXCEPTION WHEN OTHERS THEN DELETE FROM d; END;
            END LOOP;
            IF x THEN WHILE y LOOP DELETE FROM e; END LOOP; ELSE DELETE FROM f; END IF;
        END";
        let body = read(&BodyText::verbatim(text, TextRange::new(0, text.len() as u32)));
        assert_eq!(body.errors, []);
        let mut trace = Trace(text, Vec::new());
        walk(&body.block, &mut trace);
        let outside = Context::default();
        let in_loop = Context { loops: 1, iterations: Some(10), ..outside };
        assert_eq!(
            trace.1,
            [
                ("DELETE FROM a", outside),
                ("DELETE FROM b", Context { loops: 2, iterations: Some(40), ..outside }),
                ("DELETE FROM c", Context { subtransactions: 1, ..in_loop }),
                ("DELETE FROM d", Context { handlers: 1, ..in_loop }),
                ("DELETE FROM e", Context { loops: 1, iterations: None, branches: 1, ..outside }),
                ("DELETE FROM f", Context { branches: 1, ..outside }),
            ]
        );
    }
}
