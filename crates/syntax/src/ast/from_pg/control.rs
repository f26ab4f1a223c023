//! Transactions, settings, and statements that run other statements.

use super::context::{Context, Span, exact, written};
use super::index::is_set;
use super::name::{def_elem, literal};
use crate::ast::{
    Ast, Call, Copy, CopyBeyond, Discard, Do, Explain, FunctionBody, Prepare, QueryStatement, Set, Setting, Transaction,
};
use crate::ast::{Literal, Name};
use crate::lexer::identifier;
use pgvet_parser::tree as pg;

impl Context<'_> {
    pub(super) fn transaction(&self, statement: &pg::TransactionStmt, span: Span) -> Transaction {
        use pg::TransactionStmtKind as Kind;
        let savepoint = || Name::new(statement.savepoint_name.as_str(), self.token_range(span.end.saturating_sub(1)));
        match statement.kind {
            Kind::TRANS_STMT_BEGIN | Kind::TRANS_STMT_START => Transaction::Begin,
            Kind::TRANS_STMT_COMMIT => Transaction::Commit { chain: statement.chain },
            Kind::TRANS_STMT_ROLLBACK => Transaction::Rollback { chain: statement.chain },
            Kind::TRANS_STMT_SAVEPOINT => Transaction::Savepoint(savepoint()),
            Kind::TRANS_STMT_RELEASE => Transaction::Release(savepoint()),
            Kind::TRANS_STMT_ROLLBACK_TO => Transaction::RollbackTo(savepoint()),
            Kind::TRANS_STMT_PREPARE => Transaction::Prepare,
            Kind::TRANS_STMT_COMMIT_PREPARED => Transaction::CommitPrepared,
            _ => Transaction::RollbackPrepared,
        }
    }

    pub(super) fn set(&self, set: &pg::VariableSetStmt, span: Span) -> Set {
        use pg::VariableSetKind as Kind;
        let name = set.name.to_ascii_lowercase().into();
        let setting = match set.kind {
            Kind::VAR_SET_VALUE => Setting::Value { name, values: exact(set.args.iter().map(setting_value)) },
            Kind::VAR_SET_CURRENT => Setting::Value { name, values: Vec::new() },
            Kind::VAR_SET_DEFAULT | Kind::VAR_RESET => Setting::Default { name },
            Kind::VAR_SET_MULTI => Setting::Transaction,
            _ => Setting::ResetAll,
        };
        Set { setting, local: set.is_local, range: self.range(span) }
    }

    pub(super) fn do_block(&self, block: &pg::DoStmt, span: Span) -> Do {
        let mut language = "plpgsql".into();
        let mut body = FunctionBody::Missing;
        for element in block.args.iter().filter_map(def_elem) {
            match (element.defname.as_str(), element.arg.and_then(super::context::string)) {
                ("language", Some(name)) => language = name.into(),
                ("as", Some(text)) => body = self.body(element, text),
                _ => {}
            }
        }
        Do { language, body, keyword: self.token_range(span.start) }
    }

    pub(super) fn call(&self, call: &pg::CallStmt) -> Option<Call> {
        Some(Call { call: self.function_call(call.funccall?) })
    }

    pub(super) fn explain(&self, explain: &pg::ExplainStmt, span: Span) -> Option<Explain> {
        let mut start = span.start + 1;
        if self.is_mark(start, b'(') && explain.options.iter().any(|node| def_elem(node).is_some()) {
            start = self.next(start);
        }
        start = self.skip(start, &["ANALYZE"]);
        start = self.skip(start, &["ANALYSE"]);
        start = self.skip(start, &["VERBOSE"]);
        Some(Explain {
            analyze: is_set(&self.options(explain.options), "analyze"),
            statement: Box::new(self.statement(explain.query?, span.from(start))),
        })
    }

    pub(super) fn prepare(&self, prepare: &pg::PrepareStmt, span: Span) -> Option<Prepare> {
        let start = self.find_word(span.from(span.start + 2), &["AS"]).map_or(span.start, |at| at + 1);
        Some(Prepare {
            name: self.name(span.from(span.start + 1), &prepare.name),
            statement: Box::new(self.statement(prepare.query?, span.from(start))),
            text: self.source_of(span.from(start)).into(),
        })
    }

    /// The cursor's query; FOR ends its options.
    pub(super) fn declare_cursor(&self, cursor: &pg::DeclareCursorStmt, span: Span) -> Option<Ast> {
        let start = self.find_word(span.from(span.start + 2), &["FOR"]).map_or(span.start, |at| at + 1);
        self.select(cursor.query?, span.from(start)).map(|query| Ast::DeclareCursor(Box::new(query)))
    }

    pub(super) fn copy(&self, copy: &pg::CopyStmt, span: Span) -> Copy {
        let table = copy.relation.map(|relation| self.relation(relation));
        let after = table.as_ref().map_or(span.start, |table| self.index_after(table.range()));
        let query: Option<QueryStatement> =
            copy.query.and_then(|node| self.query_statement(node, self.inside(span.start + 1)));
        Copy {
            table,
            columns: self.names(span.from(after), copy.attlist),
            query,
            from: copy.is_from,
            options: self.options(copy.options),
            // For FROM and TO alike an absent file name stands for STDIN or STDOUT.
            stdin: copy.is_from && written(&copy.filename).is_none(),
            rows_at_most: None,
            beyond: match written(&copy.filename) {
                Some(_) if copy.is_program => Some(CopyBeyond::Program),
                name => name.map(|_| CopyBeyond::File),
            },
            filter: self.optional(copy.where_clause),
        }
    }
}

/// The value of a setting; what is no constant is kept as absent so that the count stays right.
fn setting_value(node: pg::NodeRef<'_>) -> Literal {
    literal(node).unwrap_or(Literal::Null)
}

impl Context<'_> {
    /// `DEALLOCATE [PREPARE] name | ALL`, which is read from its tokens.
    pub(super) fn deallocate(&self, span: Span) -> Ast {
        let has_prepare = span.end - span.start > 2 && self.is(span.start + 1, "PREPARE");
        let at = span.start + if has_prepare { 2 } else { 1 };
        let name = || Name::new(identifier(self.text(at)), self.token_range(at));
        Ast::Deallocate((!self.is(at, "ALL")).then(name))
    }
}

pub(super) fn discard(discard: &pg::DiscardStmt) -> Discard {
    match discard.target {
        pg::DiscardMode::DISCARD_PLANS => Discard::Plans,
        pg::DiscardMode::DISCARD_SEQUENCES => Discard::Sequences,
        pg::DiscardMode::DISCARD_TEMP => Discard::Temporary,
        _ => Discard::All,
    }
}
