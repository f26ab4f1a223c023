//! Statements of a migration that set sequences.

use crate::rule::RuleContext;
use crate::rules::deployment::other_statements::any_later;
use pgvet_model::catalog::{Oid, Relation};
use pgvet_model::effect::RelationName;
use pgvet_model::migration::Direction;
use pgvet_model::routine::Routines;
use pgvet_syntax::ast::{AlterTableAction, Ast, Expr, ExprKind, FunctionCall, Name, ObjectName, Part, string_literal};
use pgvet_syntax::lexer::quote_identifier;
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::cell::RefCell;

/// What a statement sets.
#[derive(Debug)]
enum Target {
    /// A sequence by its name.
    Sequence(ObjectName),
    /// The sequence of a column.
    Column(SmolStr, SmolStr),
    /// A sequence whose name is known only at run time.
    Any,
}

/// The sequences that a migration sets, read once.
#[derive(Debug)]
struct Set {
    file: u32,
    targets: Vec<Target>,
    /// Whether code of the migration runs SQL, or sets a sequence, that is known only at run time.
    hidden: bool,
    /// The first statements that were reported, by sequence.
    reported: FxHashMap<Oid, u32>,
}

/// Whether there is evidence that something hidden sets a sequence; `None` if the migration sets it, or if an earlier statement
/// was reported for it.
pub(super) fn doubt(context: &RuleContext<'_>, sequence: &Relation, table: &RelationName, key: &str) -> Option<bool> {
    let known = context.endings.recall().filter(|set: &Set| set.file == context.file);
    let mut set = known.unwrap_or_else(|| Set::of(context));
    let is_set = set.targets.iter().any(|target| match target {
        Target::Sequence(name) => {
            name.name.text == sequence.name && name.schema.as_ref().is_none_or(|schema| schema.text == sequence.schema)
        }
        Target::Column(of, column) => *of == table.name && column == key,
        Target::Any => false,
    });
    let start = context.outer().start;
    let first = *set.reported.entry(sequence.oid).or_insert(start);
    let hidden = set.hidden;
    context.endings.remember(set);
    (!is_set && first == start).then_some(hidden || is_released_with_later(context))
}

/// Whether a later migration belongs to the same deployment.
fn is_released_with_later(context: &RuleContext<'_>) -> bool {
    let later = context.migrations.iter().enumerate().skip(context.file as usize + 1);
    let mut same =
        later.filter(|(_, other)| other.database == context.migration.database && other.direction == Direction::Up);
    same.next().is_some_and(|(at, other)| other.deployment(at as u32) == context.deployment())
}

impl Set {
    fn of(context: &RuleContext<'_>) -> Self {
        let targets = RefCell::new(Vec::new());
        let read = |ast: &Ast| {
            targets_of(ast, &mut targets.borrow_mut());
            false
        };
        context.earlier.iter().for_each(|run| {
            read(&run.ast);
        });
        let code = context.code.map_or(&[][..], |code| code.earlier);
        code.iter().filter_map(|run| run.statement.ast()).for_each(|ast| {
            read(ast);
        });
        read(context.ast);
        any_later(context, read);
        let targets = targets.into_inner();
        let is_any = targets.iter().any(|target| matches!(target, Target::Any));
        let hidden = is_any || runs_hidden_sql(context);
        Self { file: context.file, targets, hidden, reported: FxHashMap::default() }
    }
}

/// Whether a DO block of the migration runs SQL that is known only at run time.
fn runs_hidden_sql(context: &RuleContext<'_>) -> bool {
    let routines = Routines::new(context.migrations, context.before, &context.settings.functions, context.reader);
    let path = context.session.settings.search_path();
    context.migration.statements().any(|statement| {
        let Some(Ast::Do(block)) = statement.ast() else { return false };
        let routine = routines.block(context.file, statement.range, block, path.clone());
        routine.is_some_and(|routine| !routine.unread_dynamic().is_empty())
    })
}

fn targets_of(ast: &Ast, found: &mut Vec<Target>) {
    match ast {
        Ast::AlterSequence(alter) => {
            if alter.options.iter().any(|option| option.name == "restart") {
                found.push(Target::Sequence(alter.name.clone()));
            }
        }
        Ast::AlterTable(alter) => found.extend(alter.commands.iter().filter_map(|command| match &command.action {
            AlterTableAction::SetIdentity { column, options } => {
                let restarts = options.iter().any(|option| option.name == "restart");
                restarts.then(|| Target::Column(alter.name.name.text.clone(), column.text.clone()))
            }
            _ => None,
        })),
        _ => ast.visit(&mut |part| {
            if let Part::Expr(Expr { kind: ExprKind::Call(call), .. }) = part
                && call.name == "setval"
            {
                found.push(target_of(call));
            }
        }),
    }
}

/// The sequence of `setval(...)`.
fn target_of(call: &FunctionCall) -> Target {
    let text = |call: &FunctionCall, at: usize| {
        call.arguments.get(at).and_then(|argument| string_literal(&argument.value)).map(ToOwned::to_owned)
    };
    if let Some(name) = text(call, 0) {
        return Target::Sequence(name_in(&name));
    }
    let of_column = call.arguments.first().and_then(|argument| {
        let mut value = &argument.value;
        while let ExprKind::Cast { operand, .. } = &value.kind {
            value = operand;
        }
        let ExprKind::Call(inner) = &value.kind else { return None };
        let (table, column) = (text(inner, 0)?, text(inner, 1)?);
        (inner.name == "pg_get_serial_sequence").then(|| Target::Column(name_in(&table).name.text, column.into()))
    });
    of_column.unwrap_or(Target::Any)
}

/// The name in a text such as `'app."Orders_id_seq"'`.
pub(super) fn name_in(text: &str) -> ObjectName {
    let nowhere = TextRange::default();
    let mut parts: Vec<SmolStr> = Vec::new();
    let (mut part, mut quoted) = (String::new(), false);
    for letter in text.chars() {
        match letter {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(std::mem::take(&mut part).into()),
            _ if quoted => part.push(letter),
            _ => part.extend(letter.to_lowercase()),
        }
    }
    parts.push(part.into());
    let name = parts.pop().unwrap_or_default();
    ObjectName { schema: parts.pop().map(|schema| Name::new(schema, nowhere)), name: Name::new(name, nowhere) }
}

/// A sequence as SQL names it in a text.
pub(super) fn text_of(context: &RuleContext<'_>, sequence: &Relation) -> String {
    let name = quote_identifier(&sequence.name);
    if context.session.settings.search_path().contains(&sequence.schema) {
        name
    } else {
        format!("{}.{name}", quote_identifier(&sequence.schema))
    }
}
