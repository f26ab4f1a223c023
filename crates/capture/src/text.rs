//! A migration as a file with SQL.

use crate::cut::{Migration, TransactionId, TransactionKind, Work};
use crate::own;
use crate::settings::SessionSettings;
use crate::source::Source;
use pgvet_model::builtin;
use pgvet_model::migration::times_comment;
use pgvet_workspace::captured::{Header, Wrapping, own_comments, place_comment};
use std::borrow::Cow;

/// What a file is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// For a check: values are named in comments, as far as they are known.
    Check,
    /// To be run: values are part of the statements.
    Run,
}

/// The comment in place of a statement that cannot be run again.
pub const NOT_RUN: &str = "-- not run again, because a value is not known";

/// Writes the file of a migration.
pub(crate) fn text(migration: &Migration, source: Option<&Source>, purpose: Purpose) -> String {
    let transaction = match migration.transaction {
        TransactionKind::Mixed => Wrapping::AsWritten,
        TransactionKind::One => Wrapping::One,
        TransactionKind::Shared => Wrapping::Shared,
    };
    let origin = source.map(|source| (source.path.clone(), source.digest.clone()));
    // A header without a name says that the migration did not run to its end.
    let name = if migration.is_complete { migration.name.clone() } else { String::new() };
    let mut text = Header { name, source: origin, transaction }.to_text();
    let mut writer = Writer { migration, open: None, settings: SessionSettings::default(), session: None };
    let mut lines = source.map(Source::lines);
    for work in &migration.work {
        writer.lead_to(work, &mut text);
        if let Some(source) = source {
            text += &place_comment(&source.path, lines.as_mut().and_then(|lines| lines.of(&work.sql)));
        }
        text += &statement(work, migration.is_complete, purpose);
    }
    writer.close(&mut text);
    text + &own_comments(if migration.is_complete { &migration.own } else { &[] })
}

/// What has been written so far.
struct Writer<'a> {
    migration: &'a Migration,
    /// The transaction that is open, and whether it is to be rolled back.
    open: Option<(TransactionId, bool)>,
    settings: SessionSettings,
    session: Option<u32>,
}

impl Writer<'_> {
    /// Writes what leads to the transaction and the settings of a statement.
    fn lead_to(&mut self, work: &Work, text: &mut String) {
        if self.open.map(|(id, _)| id) != work.transaction {
            self.close(text);
        }
        let settings = work.settings.after(&self.settings);
        for setting in settings {
            text.extend([setting.as_str(), ";\n"]);
        }
        self.settings.clone_from(&work.settings);
        if self.session.is_some_and(|session| session != work.session) {
            *text += "-- in another session\n";
        }
        self.session = Some(work.session);
        if self.open.is_none()
            && self.migration.transaction == TransactionKind::Mixed
            && let Some(id) = work.transaction
        {
            *text += "BEGIN;\n";
            self.open = Some((id, work.is_rolled_back));
        } else if self.open.is_none() {
            self.open = work.transaction.map(|id| (id, work.is_rolled_back));
        }
    }

    /// Writes the end of the transaction that is open.
    fn close(&mut self, text: &mut String) {
        let Some((_, is_rolled_back)) = self.open.take() else { return };
        if self.migration.transaction == TransactionKind::Mixed {
            *text += if is_rolled_back && self.migration.is_complete { "ROLLBACK;\n" } else { "COMMIT;\n" };
        }
    }
}

/// A statement with what is known about it. One that had no effect is a comment.
fn statement(work: &Work, is_complete: bool, purpose: Purpose) -> String {
    let mut text = String::new();
    let mut note = |line: &str| text += &comment(line);
    if work.times > 1 {
        note(&times_comment(work.times));
    }
    let sql = match purpose {
        Purpose::Check => Cow::Borrowed(&*work.sql),
        Purpose::Run => match own::with_values(&work.sql, &work.parameters) {
            Some(sql) => Cow::Owned(sql),
            None => {
                return text + NOT_RUN + "\n" + &comment(&work.sql);
            }
        },
    };
    if !work.parameters.is_empty() && purpose == Purpose::Check {
        note(&parameters(work));
    }
    if work.cut_from > 0 {
        note(&format!("a statement of {} bytes, which is too long to be recorded", work.cut_from));
        return text;
    }
    if work.copied > 0 {
        note(&format!("{} bytes of data are not recorded", work.copied));
    }
    match &work.error {
        Some(error) if is_complete => {
            note(&format!("refused, and the migration continued: {} (SQLSTATE {})", error.message, error.code));
            note(&work.sql);
            return text;
        }
        Some(error) => note(&format!("refused: {} (SQLSTATE {})", error.message, error.code)),
        None if work.is_undone => {
            note("undone by ROLLBACK TO SAVEPOINT:");
            note(&work.sql);
            return text;
        }
        None => {}
    }
    text += sql.trim_end();
    text += ";\n";
    if is_copy_from_client(&work.sql) {
        text += "\\.\n";
    }
    text
}

fn is_copy_from_client(sql: &str) -> bool {
    let mut words = sql.split_ascii_whitespace();
    words.next().is_some_and(|word| word.eq_ignore_ascii_case("copy")) && {
        let words: Vec<&str> = words.collect();
        words
            .windows(2)
            .any(|pair| pair[0].eq_ignore_ascii_case("from") && pair[1].to_ascii_lowercase().starts_with("stdin"))
    }
}

/// Lines of a comment.
fn comment(text: &str) -> String {
    let line = |line: &str| {
        let shown: String = line.chars().map(|one| if one.is_control() { ' ' } else { one }).collect();
        format!("-- {}\n", shown.trim_end())
    };
    text.lines().map(line).collect()
}

/// `$1 integer, $2 text (12 bytes)`.
fn parameters(work: &Work) -> String {
    let shown = work.parameters.iter().enumerate().map(|(at, parameter)| {
        let name = builtin::type_by_oid(parameter.oid).map_or(String::new(), |found| format!("{} ", found.name));
        let value = match (&parameter.value, parameter.length) {
            (Some(value), _) => format!("'{}'", value.replace('\'', "''")),
            (None, None) => "NULL".to_owned(),
            (None, Some(1)) => "1 byte".to_owned(),
            (None, Some(length)) => format!("{length} bytes"),
        };
        format!("${} {name}({value})", at + 1)
    });
    format!("parameters: {}", shown.collect::<Vec<_>>().join(", "))
}
