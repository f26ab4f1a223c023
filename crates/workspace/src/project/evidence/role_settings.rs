//! Timeouts that earlier migrations set for a role or a database. They are in effect in new sessions only, and which role
//! runs the migrations is not known. Source: PostgreSQL 18 documentation, "ALTER ROLE".

use super::is_judged;
use super::timeout::SETTINGS;
use crate::project::ProjectFile;
use pgvet_linter::repository::CodeTimeout;
use pgvet_model::migration::Direction;
use pgvet_syntax::lexer::{Token, TokenKind, tokenize};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;
use smol_str::{SmolStr, format_smolstr};

/// Gives files the timeout that a migration before them has set, unless code of the project sets one.
pub(super) fn mark(files: &mut [ProjectFile]) {
    let mut set: FxHashMap<u32, CodeTimeout> = FxHashMap::default();
    for file in files.iter_mut().filter(|file| file.role.is_migration() && file.is_run()) {
        if is_judged(file) && file.evidence.timeout.is_none() {
            file.evidence.timeout = set.get(&file.database).cloned();
        }
        let text = &file.parsed.source.text;
        let whole = TextRange::new(0, text.len() as u32);
        let forward = file.layout.sections.iter().filter(|section| section.direction == Direction::Up);
        for change in forward.flat_map(|section| changes(text, section.range.unwrap_or(whole))) {
            match change {
                Change::Set { setting, line } => {
                    let place = format_smolstr!("{}:{line}", file.shown().path);
                    set.insert(file.database, CodeTimeout { setting: SmolStr::new_static(setting), place });
                }
                Change::Reset => drop(set.remove(&file.database)),
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Change {
    Set { setting: &'static str, line: usize },
    Reset,
}

/// What a part of a text does with timeouts of roles and databases, in its order; in code of functions and DO blocks as
/// well.
fn changes(text: &str, range: TextRange) -> Vec<Change> {
    let mut found = Vec::new();
    if SETTINGS.iter().any(|setting| text.contains(setting)) {
        collect(text, range, &mut found);
    }
    found
}

fn collect(text: &str, range: TextRange, found: &mut Vec<Change>) {
    let tokens = tokenize(text, range);
    for (at, token) in tokens.iter().enumerate() {
        if token.is_keyword(text, "ALTER") {
            found.extend(change(&tokens[at + 1..], text));
        } else if token.kind == TokenKind::DollarString {
            let tag = token.text(text)[1..].find('$').map_or(0, |end| end as u32 + 2);
            let inside = TextRange::new(token.range.start + tag, token.range.end.saturating_sub(tag));
            if tag > 0 && inside.start < inside.end {
                collect(text, inside, found);
            }
        }
    }
}

/// The change of `ROLE app SET lock_timeout = '2s'`, as it stands after ALTER.
fn change(rest: &[Token], text: &str) -> Option<Change> {
    const OBJECTS: [&str; 4] = ["ROLE", "USER", "DATABASE", "SYSTEM"];
    let is = |at: usize, word: &str| rest.get(at).is_some_and(|token| token.is_keyword(text, word));
    let is_end = |token: &Token| token.is_punctuation(b';');
    OBJECTS.iter().any(|object| is(0, object)).then_some(())?;
    let end = rest.iter().position(is_end).unwrap_or(rest.len());
    let at = (1..end).find(|at| is(*at, "SET") || is(*at, "RESET"))?;
    let setting = SETTINGS.into_iter().find(|setting| is(at + 1, setting));
    if is(at, "RESET") {
        return (setting.is_some() || is(at + 1, "ALL")).then_some(Change::Reset);
    }
    let setting = setting?;
    let value = rest.get(at + 3).filter(|_| at + 3 < end)?.text(text).trim_matches('\'');
    let is_none =
        value.eq_ignore_ascii_case("default") || value.trim_start_matches('0').trim_end_matches("ms").is_empty();
    let line = text[..rest[at].range.start as usize].matches('\n').count() + 1;
    Some(if is_none { Change::Reset } else { Change::Set { setting, line } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_of_roles_and_databases_are_found() {
        let set = |line| vec![Change::Set { setting: "lock_timeout", line }];
        for (text, expected) in [
            ("ALTER ROLE app SET lock_timeout = '2s';", set(1)),
            ("\n-- x\nalter role app in database shop set lock_timeout to 2000;", set(3)),
            ("ALTER DATABASE shop SET lock_timeout TO '2s';", set(1)),
            ("ALTER SYSTEM SET lock_timeout = '2s';", set(1)),
            ("DO $x$ BEGIN\n ALTER USER app SET lock_timeout = '1s'; END $x$;", set(2)),
            ("ALTER ROLE app RESET lock_timeout;", vec![Change::Reset]),
            ("ALTER ROLE app RESET ALL; -- lock_timeout", vec![Change::Reset]),
            ("ALTER ROLE app SET lock_timeout = 0;", vec![Change::Reset]),
            ("ALTER ROLE app SET lock_timeout TO DEFAULT;", vec![Change::Reset]),
            ("ALTER ROLE app SET search_path = a; SET lock_timeout = '2s';", vec![]),
            ("ALTER FUNCTION f() SET lock_timeout = '2s';", vec![]),
            ("-- ALTER ROLE app SET lock_timeout = '2s';", vec![]),
        ] {
            assert_eq!(changes(text, TextRange::new(0, text.len() as u32)), expected, "{text}");
        }
    }
}
