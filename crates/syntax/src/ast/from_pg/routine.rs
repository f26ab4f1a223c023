//! Functions, triggers and rules.

use super::context::{Context, Span, exact, string, strings};
use super::name::def_elem;
use crate::ast::{
    AlterFunction, Ast, CreateFunction, CreateRule, CreateTrigger, FunctionBody, FunctionParameter, ParameterMode,
    Query, QueryBody, Rare, RuleEvent, Select, Signature, Target, TransitionTable, TriggerEvents, TriggerTiming,
};
use crate::lexer::TokenKind;
use crate::source::TextRange;
use pg::Node;
use pgvet_parser::tree as pg;
use smol_str::SmolStr;

impl Context<'_> {
    pub(super) fn create_function(&self, create: &pg::CreateFunctionStmt, span: Span) -> CreateFunction {
        let word = self.find_word(span, &["FUNCTION", "PROCEDURE"]).unwrap_or(span.start);
        let mut language = SmolStr::default();
        let mut body = FunctionBody::Missing;
        let mut options = Vec::new();
        for element in create.options.iter().filter_map(def_elem) {
            let arg = element.arg;
            match element.defname.as_str() {
                "language" => language = arg.and_then(string).unwrap_or_default().to_ascii_lowercase().into(),
                "as" => body = self.function_source(element),
                _ => options.push(self.option(element)),
            }
        }
        if let Some(sql_body) = create.sql_body {
            body = self.atomic_body(sql_body, span);
            // Source: PostgreSQL 18, `src/backend/commands/functioncmds.c`, `CreateFunction`.
            if language.is_empty() {
                language = "sql".into();
            }
        }
        CreateFunction {
            name: self.object_name_of(create.funcname, word + 1),
            or_replace: create.replace,
            procedure: create.is_procedure,
            parameters: exact(create.parameters.iter().filter_map(|node| self.parameter_def(node))),
            returns: create.return_type.map(|name| self.type_name(name)),
            language,
            body,
            options,
        }
    }

    fn function_source(&self, element: &pg::DefElem) -> FunctionBody {
        match element.arg.map(pg::NodeRef::node) {
            Some(Node::List(list)) if list.items().len() > 1 => FunctionBody::Library,
            Some(Node::List(list)) => {
                list.items().first().and_then(string).map_or(FunctionBody::Missing, |text| self.body(element, text))
            }
            Some(Node::String(text)) => self.body(element, &text.sval),
            _ => FunctionBody::Missing,
        }
    }

    /// A body in quotes, after AS or (in DO) at the element's location.
    pub(super) fn body(&self, element: &pg::DefElem, text: &str) -> FunctionBody {
        let range =
            self.index(element.location).map_or(TextRange::default(), |start| self.unquoted(self.skip(start, &["AS"])));
        FunctionBody::Source { text: text.into(), range }
    }

    /// The text between the quotes of a string.
    fn unquoted(&self, index: usize) -> TextRange {
        let range = self.token_range(index);
        let text = self.text(index);
        let (open, close) = match self.kind(index) {
            Some(TokenKind::DollarString) => {
                let tag = text[1..].find('$').map_or(0, |at| at + 2);
                (tag, tag)
            }
            Some(TokenKind::String) => (text.find('\'').map_or(0, |at| at + 1), 1),
            _ => (0, 0),
        };
        TextRange::new(range.start + open as u32, (range.end - close as u32).max(range.start + open as u32))
    }

    /// `RETURN expression`, or the list of statements of BEGIN ATOMIC.
    fn atomic_body(&self, body: pg::NodeRef<'_>, span: Span) -> FunctionBody {
        if let Node::List(list) = body.node() {
            let statements: Vec<pg::NodeRef<'_>> = list.items().iter().flat_map(flattened).collect();
            let start = self.find_word(span, &["ATOMIC"]).map_or(span.start, |at| at + 1);
            let end = self.find_last(span, |at| self.is(at, "END")).unwrap_or(span.end);
            let inner = Span::new(start, end.max(start));
            let (text, range) = (self.source_of(inner).into(), self.range(inner));
            FunctionBody::Atomic { statements: self.statement_list(&statements, span.from(start)), text, range }
        } else {
            let start = self.find_last(span, |at| self.is(at, "RETURN")).unwrap_or(span.start);
            let statements = vec![self.statement(body, span.from(start))];
            FunctionBody::Atomic { statements, text: SmolStr::default(), range: TextRange::default() }
        }
    }

    /// Statements with semicolons between them.
    fn statement_list(&self, nodes: &[pg::NodeRef<'_>], span: Span) -> Vec<Ast> {
        let parts: Vec<Span> = self.split(span, b';').into_iter().filter(|part| !part.is_empty()).collect();
        let span_of = |at: usize| parts.get(at).copied().unwrap_or(span);
        nodes.iter().enumerate().map(|(at, node)| self.statement(*node, span_of(at))).collect()
    }

    /// RETURN of a function body, as the SELECT that it is.
    pub(super) fn return_statement(&self, statement: &pg::ReturnStmt, span: Span) -> Ast {
        let target = Target { value: self.operand(statement.returnval), alias: None };
        let select = Select {
            distinct: Rare::NONE,
            targets: vec![target],
            into: Rare::NONE,
            from: Vec::new(),
            filter: Rare::NONE,
            group_by: Vec::new(),
            having: Rare::NONE,
            windows: Vec::new(),
        };
        Ast::Select(Box::new(Query::of_body(QueryBody::Select(Box::new(select)), self.range(span))))
    }

    fn parameter_def(&self, node: pg::NodeRef<'_>) -> Option<FunctionParameter> {
        use pg::FunctionParameterMode as Mode;
        let Node::FunctionParameter(parameter) = node.node() else { return None };
        let start = self.index(parameter.location).unwrap_or(0);
        let place = Span::new(start, (start + 3).min(self.everything().end));
        Some(FunctionParameter {
            name: super::context::written(&parameter.name).map(|name| self.name(place, &name)),
            mode: match parameter.mode {
                Mode::FUNC_PARAM_OUT => ParameterMode::Out,
                Mode::FUNC_PARAM_INOUT => ParameterMode::InOut,
                Mode::FUNC_PARAM_VARIADIC => ParameterMode::Variadic,
                Mode::FUNC_PARAM_TABLE => ParameterMode::Table,
                _ => ParameterMode::In,
            },
            type_name: self.required_type(parameter.arg_type),
            default: self.optional(parameter.defexpr),
        })
    }

    pub(super) fn alter_function(&self, alter: &pg::AlterFunctionStmt, span: Span) -> Option<AlterFunction> {
        Some(AlterFunction {
            signature: self.signature(alter.func?, span.start + 2),
            options: self.options(alter.actions),
        })
    }

    fn signature(&self, object: &pg::ObjectWithArgs, index: usize) -> Signature {
        Signature { name: self.object_name_of(object.objname, index), arguments: self.argument_types(object) }
    }

    pub(super) fn create_trigger(&self, create: &pg::CreateTrigStmt, span: Span) -> CreateTrigger {
        let word = self.find_word(span, &["TRIGGER"]).unwrap_or(span.start);
        let after_name = span.from(word + 2);
        let of = self.find_word(after_name, &["OF"]).filter(|_| !create.columns.is_empty());
        let function = self
            .find_last(span, |at| self.is_any(at, &["FUNCTION", "PROCEDURE"]) && self.is(at.wrapping_sub(1), "EXECUTE"))
            .unwrap_or(span.start);
        CreateTrigger {
            name: self.name_at(word + 1, &create.trigname),
            table: self.required_relation(create.relation),
            or_replace: create.replace,
            constraint: create.isconstraint,
            constraint_from: create.constrrel.map(|relation| self.relation(relation)),
            deferrable: create.deferrable,
            initially_deferred: create.initdeferred,
            function: self.object_name_of(create.funcname, function + 1),
            timing: trigger_timing(create.timing.into()),
            for_each_row: create.row,
            events: trigger_events(create.events.into()),
            columns: self.names(after_name.from(of.map_or(after_name.start, |of| of + 1)), create.columns),
            condition: self.optional(create.when_clause),
            arguments: strings(create.args),
            transitions: create.transition_rels.iter().filter_map(transition_table).collect(),
            keyword: self.range(span.to(word + 1)),
        }
    }

    pub(super) fn create_rule(&self, create: &pg::RuleStmt, span: Span) -> CreateRule {
        let word = self.find_word(span, &["RULE"]).unwrap_or(span.start);
        let start = self.find_word(span.from(word + 2), &["DO"]).map_or(span.start, |at| at + 1);
        let start = self.skip_any(start, &["ALSO", "INSTEAD"]);
        let body = span.from(start);
        let wrapped = self.is_mark(start, b'(') && self.partner(start) + 1 == span.end;
        let actions: Vec<pg::NodeRef<'_>> = create.actions.iter().collect();
        CreateRule {
            name: self.name_at(word + 1, &create.rulename),
            table: self.required_relation(create.relation),
            or_replace: create.replace,
            event: match create.event {
                pg::CmdType::CMD_INSERT => RuleEvent::Insert,
                pg::CmdType::CMD_UPDATE => RuleEvent::Update,
                pg::CmdType::CMD_DELETE => RuleEvent::Delete,
                _ => RuleEvent::Select,
            },
            instead: create.instead,
            condition: self.optional(create.where_clause),
            actions: self.statement_list(&actions, if wrapped { self.inside(start) } else { body }),
        }
    }
}

/// The grammar wraps the statements of BEGIN ATOMIC in a list of one list.
fn flattened(node: pg::NodeRef<'_>) -> Vec<pg::NodeRef<'_>> {
    match node.node() {
        Node::List(list) => list.items().iter().collect(),
        _ => vec![node],
    }
}

/// `TRIGGER_TYPE`_* of PostgreSQL 18 `src/include/catalog/pg_trigger.h`.
fn transition_table(node: pg::NodeRef<'_>) -> Option<TransitionTable> {
    match node.node() {
        Node::TriggerTransition(table) => {
            Some(TransitionTable { is_new: table.is_new, name: SmolStr::new(&*table.name) })
        }
        _ => None,
    }
}

fn trigger_timing(bits: i32) -> TriggerTiming {
    match bits {
        2 => TriggerTiming::Before,
        64 => TriggerTiming::InsteadOf,
        _ => TriggerTiming::After,
    }
}

fn trigger_events(bits: i32) -> TriggerEvents {
    TriggerEvents { insert: bits & 4 != 0, delete: bits & 8 != 0, update: bits & 16 != 0, truncate: bits & 32 != 0 }
}
