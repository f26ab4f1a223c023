//! A statement that needs a table which nothing in the history creates.

use crate::assumption::{Assumption, CreatorEvidence};
use crate::diagnostic::Diagnostic;
use crate::report::Reporter;
use crate::repository::WholeHistory;
use crate::rule::{RuleContext, declare_rule};
use pgvet_model::catalog::{Catalog, Oid, Relation, RelationKind};
use pgvet_model::migration::{Direction, Migration};
use pgvet_syntax::lexer::{TokenKind, identifier, tokenize};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};

declare_rule! {
    /// A foreign key, policy, trigger, view or other statement that needs a table which no earlier migration creates.
    ///
    /// ## Why it matters
    ///
    /// The migration fails in every new database: on the computer of a developer, in CI, and in a new environment. A
    /// database that already has the table hides the mistake, which is often a name that is spelled in another way than in
    /// the migration that creates the table.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- set: whole-history
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY);
    /// -- migration:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint REFERENCES usres (id));
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- set: whole-history
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY);
    /// -- migration:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint REFERENCES users (id));
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - pgvet does not know the first migration of the folder: a file was checked without its folder or without
    ///   `--history`, a schema was given with `--schema`, the numbers of the files begin with a higher number than 1, or the
    ///   order of the files is not known.
    /// - pgvet cannot read all SQL files that it skips: they are more than 300, larger than 4 MiB together, or not text.
    /// - The name has a schema that no migration creates, such as `auth.users`.
    /// - A migration tool records in the table which migrations have run, or the name begins with `pg_`, as those of system
    ///   views do.
    /// - The statement has `IF EXISTS`, or a condition or an exception handler surrounds it.
    /// - The migrations drop or rename the table: `statement-will-fail` reports the statement.
    ///
    /// ## Confidence
    ///
    /// The confidence is `likely`. It is `possible`, and the finding is shown only with `--confidence possible`, in these
    /// cases:
    ///
    /// - No earlier statement creates a table, so the history does not begin with an empty database.
    /// - The migrations also use another table that they do not create.
    /// - A later migration creates the table, or another SQL file of the project does.
    /// - Code of the project creates tables with a framework or library, such as `AutoMigrate` of GORM.
    /// - An earlier migration runs code that pgvet does not analyze, or installs an extension whose objects pgvet does not
    ///   know.
    /// - A script of the project also runs the files with psql in another order.
    "table-never-created", Engine, Error,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let evidence = context.settings.repository.get(&context.file);
    let Some(history) = evidence.and_then(|evidence| evidence.history.as_ref()) else { return };
    let is_guarded = context.code.is_some_and(|code| code.guarded || code.caught);
    if context.effects.fails.is_some() || !context.migration.ordered || is_guarded {
        return;
    }
    let mut seen: BTreeSet<Oid> = BTreeSet::new();
    for lock in &context.effects.locks {
        let oid = lock.relation.oid;
        if context.before.get_relation(oid).is_some() || !seen.insert(oid) {
            continue;
        }
        let Some(missing) = context.after.get_relation(oid).filter(|relation| is_missing(context, relation)) else {
            continue;
        };
        let name = missing.name.clone();
        if history.of_tools.contains(&name) {
            continue;
        }
        let message =
            format!("PostgreSQL refuses this in a new database: no earlier migration creates `{}`", shown(missing));
        let range = if lock.range.is_empty() { context.statement.range } else { lock.range };
        let near = near(context.before, &name);
        let assumption = match contrary(context, missing, history) {
            Some(because) => Assumption::NothingElseCreatesThough { table: name, because },
            None => Assumption::NothingElseCreates { table: name },
        };
        let help = near.unwrap_or_else(|| {
            "create the table in an earlier migration. If something else creates it, let pgvet read its definition \
             (--schema)"
                .to_owned()
        });
        reporter.report(range, message).help(help).relation(&lock.relation).assuming(assumption).emit();
    }
}

fn shown(relation: &Relation) -> String {
    if relation.schema == "public" {
        relation.name.to_string()
    } else {
        format!("{}.{}", relation.schema, relation.name)
    }
}

/// Whether the statement needs a relation of a schema of the history that nothing has shown.
fn is_missing(context: &RuleContext<'_>, relation: &Relation) -> bool {
    let is_own_schema = relation.schema == "public" || context.before.has_schema(&relation.schema);
    is_needed(relation)
        && is_own_schema
        && !relation.is_temporary()
        && !relation.name.starts_with("pg_")
        && matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable | RelationKind::View)
}

/// Whether a statement needs a relation of which nothing shows who creates it.
fn is_needed(relation: &Relation) -> bool {
    !relation.known && relation.birth.deployment.is_none() && relation.birth.needed_in.is_some()
}

fn is_created(relation: &Relation) -> bool {
    relation.known && relation.kind == RelationKind::Table && relation.birth.deployment.is_some()
}

/// The evidence that something else creates the relation.
fn contrary(context: &RuleContext<'_>, missing: &Relation, history: &WholeHistory) -> Option<CreatorEvidence> {
    let name = &missing.name;
    let before = context.before;
    let is_other = |relation: &Relation| is_needed(relation) && before.has_schema(&relation.schema);
    if let Some(path) = history.elsewhere.get(name) {
        return Some(CreatorEvidence::File { path: path.clone() });
    }
    if context.settings.script_of_other_order(context.file).is_some() {
        return Some(CreatorEvidence::Order);
    }
    if let Some(place) = &history.creator {
        return Some(CreatorEvidence::Code { place: place.clone() });
    }
    if before.relations().any(|relation| is_other(relation)) {
        return Some(CreatorEvidence::OtherTables);
    }
    if !before.relations().any(|relation| is_created(relation)) {
        return Some(CreatorEvidence::NothingCreated);
    }
    if before.follows_hidden_code() {
        return Some(CreatorEvidence::HiddenCode);
    }
    if let Some((extension, _)) = before.unknown_extensions().next() {
        return Some(CreatorEvidence::Extension { name: extension.clone() });
    }
    is_created_later(context, name).then_some(CreatorEvidence::LaterMigration)
}

/// Whether a later migration of the database creates a relation of this name.
fn is_created_later(context: &RuleContext<'_>, name: &SmolStr) -> bool {
    let own = context.migration;
    let later = context.migrations.iter().skip(context.file as usize);
    let mut texts = later.filter(|later| later.database == own.database && later.direction == Direction::Up);
    texts.any(|migration| creates(&migration.file.text, name, DEPTH))
}

/// Maximum depth of code in code that is searched.
const DEPTH: usize = 3;

/// Whether a text has `TABLE name` or `VIEW name` after CREATE, in any spelling, also in code.
fn creates(text: &str, name: &str, depth: usize) -> bool {
    if depth == 0 || !text.to_ascii_lowercase().contains(&name.to_ascii_lowercase()) {
        return false;
    }
    let tokens = tokenize(text, TextRange::new(0, text.len() as u32));
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is_keyword(text, word));
    (0..tokens.len()).any(|at| {
        let token = &tokens[at];
        if token.kind == TokenKind::DollarString {
            let inner = token.text(text).trim_matches('$');
            return inner.len() < token.text(text).len() && creates(inner, name, depth - 1);
        }
        if !(is(at, "TABLE") || is(at, "VIEW")) || !(1..=3).any(|back| at >= back && is(at - back, "CREATE")) {
            return false;
        }
        let mut next = at + 1;
        while ["IF", "NOT", "EXISTS"].iter().any(|word| is(next, word)) {
            next += 1;
        }
        let has_schema = tokens.get(next + 1).is_some_and(|token| token.is_punctuation(b'.'));
        let named = tokens.get(if has_schema { next + 2 } else { next });
        named.is_some_and(|token| identifier(token.text(text)) == name)
    })
}

/// A table of the history with almost the same name. In a large schema, many missing names would each be compared with
/// many others.
fn near(catalog: &Catalog, name: &str) -> Option<String> {
    const COMPARED: usize = 500;
    if catalog.relation_count() > COMPARED {
        return None;
    }
    let distance = |other: &Relation| strsim::damerau_levenshtein(&other.name, name);
    let known = catalog.relations().filter(|relation| is_created(relation));
    let nearest = known.map(|relation| (distance(relation), shown(relation))).min()?;
    (nearest.0 <= 2 && nearest.0 < name.len()).then(|| format!("did you mean `{}`?", nearest.1))
}

/// Lowers the confidence of findings in databases in which several tables are missing: something else creates them.
pub(crate) fn compare(found: &mut [Diagnostic], migrations: &[Migration<'_>]) {
    let database = |found: &Diagnostic| migrations.get(found.file as usize).map(|migration| migration.database);
    let mut tables: BTreeMap<Option<u32>, BTreeSet<String>> = BTreeMap::new();
    for finding in found.iter().filter(|finding| finding.is_of(&RULE.meta)) {
        tables.entry(database(finding)).or_default().extend(finding.relations.iter().cloned());
    }
    for finding in found.iter_mut().filter(|finding| finding.is_of(&RULE.meta)) {
        let sure = finding.assumptions.iter().position(|one| matches!(one, Assumption::NothingElseCreates { .. }));
        let is_one = tables.get(&database(finding)).is_none_or(|tables| tables.len() < 2);
        let Some(at) = sure.filter(|_| !is_one) else { continue };
        let Assumption::NothingElseCreates { table } = finding.assumptions.remove(at) else { continue };
        finding.assume(Assumption::NothingElseCreatesThough { table, because: CreatorEvidence::OtherTables });
    }
}
