//! From `pg_query`'s nodes to our own.
//!
//! PostgreSQL locates what its own messages point at; everything else is found among the tokens, see [`context`].
//! A statement is converted together with the span of its tokens.
//!
//! Deep nesting is refused before our recursion could overflow the stack, see [`depth`].

mod alter_table;
mod call;
mod constraint;
mod context;
mod control;
mod depth;
mod drop;
mod expression;
mod function_source;
mod index;
mod modify;
mod name;
mod object;
mod omitted;
mod other;
mod query;
mod role;
mod routine;
mod table;
#[cfg(test)]
mod tests;

use super::{Ast, CreateTypeKind, DropBehavior, Expr, ExprKind, Query, QueryBody, RoleList, SubqueryKind};
use crate::ast::SyntaxError;
use crate::lexer::{Token, tokenize};
use crate::source::TextRange;
use context::{Context, Span, exact};
use pg::Node;
use pgvet_parser::{ParseError, tree as pg};
use smol_str::SmolStr;

/// Parses the statement whose tokens are `tokens` (ranges are offsets in `source`, the whole file) and converts it.
pub fn parse_statement(source: &str, range: TextRange, tokens: &[Token]) -> Result<Ast, SyntaxError> {
    let context = Context::new(source, range.start.into(), tokens);
    let mut statements = context.parse(&source[range.as_usize()], range, |context, _| context.everything())?;
    match (statements.pop(), statements.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(SyntaxError { message: "no statement".to_owned(), range }),
        _ => Err(SyntaxError { message: "more than one statement".to_owned(), range }),
    }
}

/// Returns the message with which the parser of PL/pgSQL refuses the body of a CREATE FUNCTION or DO statement.
pub(crate) fn plpgsql_error(statement: &str) -> Option<String> {
    pgvet_parser::plpgsql_error(statement)
}

/// Parses SQL text that is no file, such as the body of a function. Ranges are offsets in this text.
pub fn parse_sql(sql: &str) -> Result<Vec<Ast>, SyntaxError> {
    let range = TextRange::new(0, sql.len() as u32);
    let tokens = tokenize(sql, range);
    Context::new(sql, 0, &tokens).parse(sql, range, Context::statement_span)
}

/// Parses an expression of PL/pgSQL, which is everything that can follow SELECT: `count(*) FROM t` is one.
pub fn parse_expression_query(source: &str, range: TextRange) -> Result<Query, SyntaxError> {
    const PREFIX: &str = "SELECT ";
    let tokens = tokenize(source, range);
    let text = format!("{PREFIX}{}", &source[range.as_usize()]);
    let base = i64::from(range.start) - i64::from(PREFIX.len() as u32);
    let context = Context::new(source, base, &tokens);
    let mut statements = context.parse(&text, range, |context, _| context.everything())?;
    match (statements.pop(), statements.is_empty()) {
        (Some(Ast::Select(query)), true) => Ok(*query),
        _ => Err(SyntaxError { message: "more than one expression".to_owned(), range }),
    }
}

/// Parses an expression. One with FROM or other clauses becomes a scalar subquery.
pub fn parse_expression(source: &str, range: TextRange) -> Result<Expr, SyntaxError> {
    let query = parse_expression_query(source, range)?;
    let plain = query.with.is_none() && query.order_by.is_empty() && query.limit.is_none() && query.offset.is_none();
    match query.body {
        QueryBody::Select(mut select)
            if plain
                && select.targets.len() == 1
                && select.distinct.is_none()
                && select.from.is_empty()
                && select.filter.is_none()
                && select.group_by.is_empty()
                && select.having.is_none() =>
        {
            Ok(select.targets.remove(0).value)
        }
        body => {
            let query = Box::new(Query { body, ..query });
            Ok(Expr { kind: ExprKind::Subquery { kind: SubqueryKind::Scalar, test: None, query }, range })
        }
    }
}

impl Context<'_> {
    /// Calls PostgreSQL's grammar and converts what it returns; an error points at the token at its position, or at the
    /// end of the text.
    fn parse(
        &self,
        text: &str,
        range: TextRange,
        span: impl Fn(&Self, &pg::RawStmt<'_>) -> Span,
    ) -> Result<Vec<Ast>, SyntaxError> {
        if self.is_too_deep() {
            return Err(SyntaxError { message: "stack depth limit exceeded".to_owned(), range: self.token_range(0) });
        }
        let convert = |statement: &&pg::RawStmt<'_>| self.raw_statement(statement, span(self, statement));
        pgvet_parser::parse(text, |statements| exact(statements.iter().map(convert)))
            .map_err(|ParseError { message, offset }| SyntaxError { message, range: self.error_range(offset, range) })
    }

    /// The tokens of one of several statements.
    fn statement_span(&self, statement: &pg::RawStmt) -> Span {
        let all = self.everything();
        let start = self.index(statement.stmt_location).unwrap_or(all.end);
        let end = match statement.stmt_len {
            0 => all.end,
            length => self.index(statement.stmt_location + length).unwrap_or(all.end),
        };
        Span::new(start, end)
    }

    fn raw_statement(&self, statement: &pg::RawStmt, span: Span) -> Ast {
        match statement.stmt {
            Some(node) => self.statement(node, span),
            None => Ast::Other(SmolStr::new_static("RawStmt")),
        }
    }

    /// A statement whose tokens are `span`.
    fn statement(&self, node: pg::NodeRef<'_>, span: Span) -> Ast {
        let node = node.node();
        let converted = self.table_statement(node, span).or_else(|| self.query_or_control(node, span));
        converted.or_else(|| self.object_statement(node, span)).unwrap_or_else(|| self.other_statement(node, span))
    }

    fn table_statement(&self, node: Node<'_>, span: Span) -> Option<Ast> {
        Some(match node {
            Node::AlterTableStmt(node) => Ast::AlterTable(self.alter_table(node, span)),
            Node::AlterTableMoveAllStmt(node) => Ast::AlterTableMoveAll(alter_table::alter_table_move_all(node)),
            Node::CreateStmt(node) => Ast::CreateTable(Box::new(self.create_table(node, false))),
            Node::CreateForeignTableStmt(node) => Ast::CreateTable(Box::new(self.create_table(&node.base, true))),
            Node::CreateTableAsStmt(node) => Ast::CreateTableAs(Box::new(self.create_table_as(node, span)?)),
            Node::IndexStmt(node) => Ast::CreateIndex(Box::new(self.create_index(node, span))),
            Node::CreateStatsStmt(node) => Ast::CreateStatistics(Box::new(self.create_statistics(node, span))),
            Node::TruncateStmt(node) => Ast::Truncate(self.truncate(node, span)),
            Node::LockStmt(node) => Ast::LockTable(self.lock_table(node, span)),
            Node::VacuumStmt(node) => Ast::Vacuum(Box::new(self.vacuum(node, span))),
            Node::ClusterStmt(node) => Ast::Cluster(Box::new(self.cluster(node, span))),
            Node::ReindexStmt(node) => Ast::Reindex(Box::new(self.reindex(node, span))),
            Node::DropStmt(node) => Ast::Drop(self.drop(node, span)),
            Node::RenameStmt(node) => Ast::Rename(Box::new(self.rename(node, span))),
            Node::AlterObjectSchemaStmt(node) => Ast::SetSchema(Box::new(self.set_schema(node, span))),
            Node::AlterOwnerStmt(node) => Ast::ChangeOwner(self.change_owner(node, span)),
            Node::CommentStmt(node) => Ast::Comment(Box::new(self.comment(node, span))),
            Node::GrantStmt(node) => Ast::Grant(Box::new(self.grant(node, span))),
            Node::GrantRoleStmt(node) => Ast::GrantRole(role::grant(node)),
            Node::CreateRoleStmt(node) => Ast::CreateRole(role::create(node)),
            Node::AlterDefaultPrivilegesStmt(node) => {
                Ast::AlterDefaultPrivileges(Box::new(self.default_privileges(node, span)?))
            }
            Node::DropOwnedStmt(node) => {
                Ast::DropOwned(RoleList { roles: name::roles(node.roles), behavior: name::behavior(node.behavior) })
            }
            Node::ReassignOwnedStmt(node) => {
                Ast::ReassignOwned(RoleList { roles: name::roles(node.roles), behavior: DropBehavior::Restrict })
            }
            _ => return None,
        })
    }

    fn query_or_control(&self, node: Node<'_>, span: Span) -> Option<Ast> {
        Some(match node {
            Node::SelectStmt(node) => Ast::Select(Box::new(self.query(node, span))),
            Node::InsertStmt(node) => Ast::Insert(Box::new(self.insert(node, span))),
            Node::UpdateStmt(node) => Ast::Update(Box::new(self.update(node, span))),
            Node::DeleteStmt(node) => Ast::Delete(Box::new(self.delete(node, span))),
            Node::MergeStmt(node) => Ast::Merge(Box::new(self.merge(node, span))),
            Node::ReturnStmt(node) => self.return_statement(node, span),
            Node::CopyStmt(node) => Ast::Copy(Box::new(self.copy(node, span))),
            Node::ExplainStmt(node) => Ast::Explain(self.explain(node, span)?),
            Node::PrepareStmt(node) => Ast::Prepare(self.prepare(node, span)?),
            Node::ExecuteStmt(node) => Ast::Execute(self.name(span.from(span.start + 1), &node.name)),
            Node::DeclareCursorStmt(node) => self.declare_cursor(node, span)?,
            Node::TransactionStmt(node) => Ast::Transaction(self.transaction(node, span)),
            Node::VariableSetStmt(node) => Ast::Set(self.set(node, span)),
            Node::DiscardStmt(node) => Ast::Discard(control::discard(node)),
            Node::DoStmt(node) => Ast::Do(self.do_block(node, span)),
            Node::CallStmt(node) => Ast::Call(Box::new(self.call(node)?)),
            _ => return None,
        })
    }

    fn object_statement(&self, node: Node<'_>, span: Span) -> Option<Ast> {
        Some(match node {
            Node::ViewStmt(node) => Ast::CreateView(Box::new(self.create_view(node, span)?)),
            Node::RefreshMatViewStmt(node) => Ast::RefreshMaterializedView(self.refresh(node, span)),
            Node::CreateSeqStmt(node) => Ast::CreateSequence(self.create_sequence(node)),
            Node::AlterSeqStmt(node) => Ast::AlterSequence(self.alter_sequence(node)),
            Node::CompositeTypeStmt(node) => Ast::CreateType(self.composite_type(node)),
            Node::CreateEnumStmt(node) => Ast::CreateType(self.create_enum(node, span)),
            Node::CreateRangeStmt(node) => {
                let kind = CreateTypeKind::Range(self.options(node.params));
                Ast::CreateType(self.create_type(node.type_name, kind, span))
            }
            Node::CreateDomainStmt(node) => Ast::CreateDomain(Box::new(self.create_domain(node, span))),
            Node::AlterDomainStmt(node) => Ast::AlterDomain(Box::new(self.alter_domain(node, span)?)),
            Node::AlterEnumStmt(node) => Ast::AlterEnum(Box::new(self.alter_enum(node, span))),
            Node::CreateFunctionStmt(node) => Ast::CreateFunction(Box::new(self.create_function(node, span))),
            Node::AlterFunctionStmt(node) => Ast::AlterFunction(Box::new(self.alter_function(node, span)?)),
            Node::CreateTrigStmt(node) => Ast::CreateTrigger(Box::new(self.create_trigger(node, span))),
            Node::RuleStmt(node) => Ast::CreateRule(Box::new(self.create_rule(node, span))),
            Node::CreatePolicyStmt(node) => Ast::CreatePolicy(Box::new(self.create_policy(node, span))),
            Node::AlterPolicyStmt(node) => Ast::AlterPolicy(Box::new(self.alter_policy(node, span))),
            Node::CreatePublicationStmt(node) => Ast::CreatePublication(self.create_publication(node, span)),
            Node::AlterPublicationStmt(node) => Ast::AlterPublication(self.alter_publication(node, span)),
            Node::CreateSchemaStmt(node) => Ast::CreateSchema(self.create_schema(node, span)),
            Node::CreateExtensionStmt(node) => Ast::CreateExtension(self.create_extension(node, span)),
            _ => return None,
        })
    }
}
