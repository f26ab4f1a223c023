//! Sequences that will generate keys that rows already have.

use crate::assumption::Assumption;
use crate::report::{Finding, Reporter};
use crate::rule::{RuleContext, declare_rule};
use crate::rules::conflict::inserted::{Inserted, ValueSource, Values};
use crate::rules::conflict::unique::unique_indexes;
use crate::rules::data::insert_may_violate_unique::is_copy;
use crate::rules::deployment::other_statements::{Until, ahead};
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::{Catalog, Oid, Relation, SearchPath, SqlType};
use pgvet_model::effect::{DataChangeKind, RelationName, Visibility};
use pgvet_syntax::ast::{
    AlterTable, AlterTableAction, Ast, Expr, ExprKind, Insert, Literal, Name, ObjectName, Overriding, Part,
    string_literal,
};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

mod advanced;

declare_rule! {
    /// A sequence that will generate keys that rows of its table already have.
    ///
    /// ## Why it matters
    ///
    /// A sequence knows nothing about rows whose keys did not come from it. If rows are copied into a table together with
    /// their keys, the sequence of the key still starts at 1. The next `INSERT` that leaves the key to the database
    /// fails with a duplicate key error, and so do all others until the sequence is beyond the copied keys.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total int);
    /// -- migration:
    /// CREATE TABLE invoices (id bigserial PRIMARY KEY, total int);
    /// INSERT INTO invoices (id, total) SELECT id, total FROM orders;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total int);
    /// -- migration:
    /// CREATE TABLE invoices (id bigserial PRIMARY KEY, total int);
    /// INSERT INTO invoices (id, total) SELECT id, total FROM orders;
    /// SELECT setval('invoices_id_seq', (SELECT max(id) FROM invoices));
    /// ```
    ///
    /// ## When it is reported
    ///
    /// - A migration copies keys from another table into a key that has a sequence.
    /// - A migration gives constant keys to a table of the same deployment whose sequence starts at or below them. For
    ///   older tables, `insert-may-violate-unique` reports this.
    /// - `ADD GENERATED` or a new default with `nextval` gives the key of a table with rows a new sequence that starts at
    ///   1.
    ///
    /// The first statement of a migration is reported for each sequence.
    ///
    /// ## When it is not reported
    ///
    /// - The migration calls `setval` for the sequence, restarts it, or creates it with another start.
    /// - The table from which the keys are copied has the same sequence.
    /// - `OVERRIDING USER VALUE`, with which PostgreSQL ignores the given keys.
    /// - No unique index or primary key consists of the column alone at the end of the migration.
    /// - The migration drops the table again, or gives the column another sequence.
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible`, and the finding is shown only with `--confidence possible`, in these cases:
    ///
    /// - the keys are constants, and no query of the project inserts rows into the table
    /// - code of the migration runs SQL that is known only at run time, which may set the sequence
    /// - later migrations are released together with this one
    "sequence-behind-keys", Data, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    if let Ast::AlterTable(alter) = context.ast {
        return new_sequences(context, alter, reporter);
    }
    let mut inserts: Vec<&Insert> = Vec::new();
    if context.effects.data_changes.iter().any(|change| change.kind == DataChangeKind::Insert) {
        context.ast.visit(&mut |part| {
            if let Part::Insert(insert) = part {
                inserts.push(insert);
            }
        });
    }
    inserts.retain(|insert| insert.overriding != Some(Overriding::User));
    let path = context.session.settings.search_path();
    inserts.into_iter().for_each(|insert| given_keys(context, &path, insert, reporter));
}

/// Keys that an INSERT gives.
fn given_keys(context: &RuleContext<'_>, path: &SearchPath, insert: &Insert, reporter: &mut Reporter<'_>) {
    let catalog = context.before;
    let Some(table) = catalog.find_relation(&insert.table.name, path).map(|oid| catalog.relation(oid)) else { return };
    let mut changes = context.effects.data_changes.iter().map(|change| &change.relation);
    let Some(target) = changes.find(|relation| relation.oid == table.oid) else { return };
    let inserted = Inserted { insert, table, variable: &|_| None, earlier: &|_| Vec::new() };
    for key in table.columns.iter().map(|column| &column.name) {
        let Some(sequence) = sequence_of(catalog, path, table, key) else { continue };
        let listed = insert.columns.iter().find(|name| name.text == *key);
        let range = listed.map_or(insert.table.name.range(), |name| name.range);
        let is_new = sequence.birth.is_of(context.deployment());
        let kind = match inserted.column_source(key) {
            ValueSource::Given
                if starts_at_one(sequence)
                    && is_copy(insert)
                    && !reads_sequence(context, path, insert, sequence.oid) =>
            {
                Keys::Copied
            }
            // What an older table gets is reported as the duplicate that it may be.
            ValueSource::Constant if is_new && meets(sequence, &inserted, key) => Keys::Listed,
            _ => continue,
        };
        // An older sequence of a new table counts for another one.
        if is_new || target.visibility == Visibility::Existing {
            Behind { context, table: target, key, sequence, kind }.report(range, reporter);
        }
    }
}

/// New sequences of keys that rows already have.
fn new_sequences(context: &RuleContext<'_>, alter: &AlterTable, reporter: &mut Reporter<'_>) {
    let path = context.session.settings.search_path();
    let Some(oid) = context.before.find_relation(&alter.name, &path) else { return };
    let mut locks = context.effects.locks.iter().map(|lock| &lock.relation);
    let Some(target) = locks.find(|relation| relation.oid == oid).filter(|table| table.may_have_rows()) else { return };
    let (Some(before), Some(after)) = (context.before.get_relation(oid), context.after.get_relation(oid)) else {
        return;
    };
    for name in alter.commands.iter().filter_map(|command| counted(&command.action)) {
        let Some(sequence) = sequence_of(context.after, &path, after, &name.text) else { continue };
        let was = sequence_of(context.before, &path, before, &name.text).map(|sequence| sequence.oid);
        let is_new = sequence.birth.is_of(context.deployment()) && was != Some(sequence.oid);
        let is_older = before.column(&name.text).is_some_and(|column| column.held.is_none());
        if is_new && is_older && starts_at_one(sequence) {
            Behind { context, table: target, key: &name.text, sequence, kind: Keys::Older }
                .report(name.range, reporter);
        }
    }
}

/// The column for which a command begins to count.
fn counted(action: &AlterTableAction) -> Option<&Name> {
    match action {
        AlterTableAction::AddIdentity { column, .. } | AlterTableAction::SetDefault { column, .. } => Some(column),
        _ => None,
    }
}

/// Whether a column is a unique key alone.
fn is_key(catalog: &Catalog, table: &Relation, column: &SmolStr) -> bool {
    let mut indexes = unique_indexes(catalog, table).into_iter().filter_map(|index| index.columns());
    indexes.any(|columns| matches!(columns.as_slice(), [only] if only == column))
}

/// The sequence that gives a column its values.
fn sequence_of<'c>(catalog: &'c Catalog, path: &SearchPath, table: &Relation, column: &str) -> Option<&'c Relation> {
    let column = table.column(column)?;
    let default = column.default.as_deref();
    let counts = |sequence: &&Relation| {
        let is_owned = sequence.sequence().is_some_and(|detail| {
            detail.identity && detail.owned_by.as_ref().is_some_and(|(_, owner)| *owner == column.name)
        });
        is_owned && column.identity.is_some() || default.is_some_and(|default| sequence.is_sequence_of(default))
    };
    let mut owned = table.owned_sequences.iter().filter_map(|oid| catalog.get_relation(*oid)).map(|found| &**found);
    owned.find(counts).or_else(|| {
        let name = default.and_then(next_of)?;
        let oid = catalog.find_relation(&name, path)?;
        Some(catalog.relation(oid)).filter(|relation| relation.sequence().is_some())
    })
}

/// The sequence in `nextval('s')`.
fn next_of(default: &Expr) -> Option<ObjectName> {
    let mut found = None;
    default.walk(&mut |part| {
        if let ExprKind::Call(call) = &part.kind
            && call.name == "nextval"
        {
            found = call.arguments.first().and_then(|argument| string_literal(&argument.value)).map(advanced::name_in);
        }
    });
    found
}

/// Whether the INSERT copies from a table with the same sequence, which has generated its keys.
fn reads_sequence(context: &RuleContext<'_>, path: &SearchPath, insert: &Insert, sequence: Oid) -> bool {
    let catalog = context.before;
    let has_it = |name: &ObjectName| {
        let table = catalog.find_relation(name, path).map(|oid| catalog.relation(oid));
        table.is_some_and(|table| {
            let of =
                |column: &SmolStr| sequence_of(catalog, path, table, column).is_some_and(|own| own.oid == sequence);
            table.columns.iter().any(|column| of(&column.name))
        })
    };
    let mut reads = false;
    insert.visit(&mut |part| {
        if let Part::Read(read) = part {
            reads = reads || has_it(&read.name);
        }
    });
    reads
}

/// Whether a sequence counts up from 1, as one without options does.
fn starts_at_one(sequence: &Relation) -> bool {
    sequence.sequence().is_some_and(|detail| {
        let counting = detail.counting.complete(SqlType::new(detail.sql_type.oid));
        counting.start == Some(1) && counting.increment > Some(0)
    })
}

/// Whether a sequence will reach one of the constant keys.
fn meets(sequence: &Relation, inserted: &Inserted<'_>, key: &SmolStr) -> bool {
    let Some(detail) = sequence.sequence() else { return false };
    let counting = detail.counting.complete(SqlType::new(detail.sql_type.oid));
    let (Some(start), true) = (counting.start, counting.increment > Some(0)) else { return false };
    let reaches = |value: &Expr| match &value.kind {
        ExprKind::Literal(Literal::Integer(number)) => *number >= start,
        _ => false,
    };
    let Values::Rows(rows) = inserted.values_of(key) else { return false };
    rows.into_iter().any(reaches)
}

/// Where the keys come from that a sequence will meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    Copied,
    Listed,
    /// The table had them before the sequence.
    Older,
}

/// A sequence that is behind the keys of its table.
struct Behind<'f> {
    context: &'f RuleContext<'f>,
    table: &'f RelationName,
    key: &'f SmolStr,
    sequence: &'f Relation,
    kind: Keys,
}

impl Behind<'_> {
    /// Whether the sequence still gives the column its values at the end of the migration, and the column is then a key.
    fn lasts(&self) -> bool {
        let Self { context, table, key, sequence, .. } = *self;
        let end = ahead(context, &table.name, Until::EndOfMigration);
        let path = context.session.settings.search_path();
        end.get_relation(table.oid).is_some_and(|table| {
            is_key(&end, table, key) && sequence_of(&end, &path, table, key).is_some_and(|own| own.oid == sequence.oid)
        })
    }

    fn report(&self, range: TextRange, reporter: &mut Reporter<'_>) {
        let Self { context, table, key, sequence, kind } = *self;
        let Some(doubt) = advanced::doubt(context, sequence, table, key).filter(|_| self.lasts()) else { return };
        let (name, counter) = (&table.name, &sequence.name);
        let what = match kind {
            Keys::Copied => format!("nothing sets the sequence `{counter}` after keys are copied into `{name}.{key}`"),
            Keys::Listed => {
                format!(
                    "nothing sets the sequence `{counter}` although this INSERT gives `{name}.{key}` keys that the sequence will generate"
                )
            }
            Keys::Older => {
                format!("the new sequence `{counter}` starts at 1 although rows already have values in `{name}.{key}`")
            }
        };
        let message = format!(
            "{what}, so a later INSERT without `{key}` fails with a duplicate key error when the sequence reaches an \
             existing key"
        );
        let column = identifier(key);
        let help = format!(
            "set the sequence after this statement:\n    SELECT setval('{}', (SELECT max({column}) FROM {}));",
            advanced::text_of(context, sequence).replace('\'', "''"),
            sql_name(context, table),
        );
        let finding = reporter.report(range, message).relation(table).help(help);
        let inserts = context.settings.application.inserts_into(&table.schema, &table.name);
        let listed = (kind == Keys::Listed && !inserts)
            .then(|| Assumption::InsertsWithoutKey { table: name.clone(), column: key.clone() });
        Finding::assuming(finding, doubt.then(|| Assumption::SequenceNotSet { sequence: counter.clone() }))
            .assuming(listed)
            .emit();
    }
}
