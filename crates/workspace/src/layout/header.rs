//! Comments before the first statement of a file by which a tool is known, or told to open no transaction.

use super::Tool;
use super::annotations::comment;

/// The tool that a comment of a file with one section gives away.
pub(super) fn tool(text: &str) -> Option<Tool> {
    let header = header(text);
    for comment in header.clone() {
        if comment.starts_with("! ") || comment.starts_with("!\t") {
            return Some(Tool::GraphileMigrate);
        }
        if comment.starts_with("atlas:txmode") {
            return Some(Tool::Atlas);
        }
    }
    if text.starts_with(SQLX_NO_TRANSACTION) {
        return Some(Tool::Sqlx);
    }
    if is_outside_for_tern(text) {
        return Some(Tool::Tern);
    }
    if header.clone().any(|comment| comment == &POSTGRES_MIGRATIONS_OUTSIDE[3..]) {
        return Some(Tool::PostgresMigrations);
    }
    let sqitch = |comment: &str| {
        let mut words = comment.split_whitespace();
        matches!(words.next(), Some("Deploy" | "Revert" | "Verify")) && comment.ends_with(" pg")
    };
    header.clone().any(sqitch).then_some(Tool::Sqitch)
}

/// Source: sqlx, `sqlx-core/src/migrate/source.rs`: the text must start with it.
pub(super) const SQLX_NO_TRANSACTION: &str = "-- no-transaction";

pub(super) const TERN_OUTSIDE: &str = "---- tern: disable-tx ----";

/// Source: tern, `migrate/migrate.go`, `disableTxPattern`: a line anywhere.
pub(super) fn is_outside_for_tern(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == TERN_OUTSIDE)
}

pub(super) const POSTGRES_MIGRATIONS_OUTSIDE: &str = "-- postgres-migrations disable-transaction";

/// Source: yoyo, `yoyo/migrations.py`, `parse_metadata_from_sql_comments`: a comment before the first statement.
pub(super) fn is_outside_for_yoyo(text: &str) -> bool {
    let is_false = |comment: &str| {
        comment
            .split_once(':')
            .is_some_and(|(key, value)| key.trim_end() == "transactional" && value.trim().eq_ignore_ascii_case("false"))
    };
    header(text).any(is_false)
}

/// The comments before the first statement.
fn header(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.lines().map(str::trim).take_while(|line| line.is_empty() || comment(line).is_some()).filter_map(comment)
}

/// The directives of a file for Atlas: the first block of comments, with an empty line after it. Source: Atlas,
/// `sql/migrate/lex.go`, `directive` and `reDelimiter`.
pub(super) fn atlas_directives(text: &str) -> impl Iterator<Item = &str> {
    let lines = || text.lines().map(str::trim);
    let block = lines().take_while(|line| comment(line).is_some()).count();
    let is_header = lines().nth(block).is_some_and(str::is_empty);
    lines().take(if is_header { block } else { 0 }).filter_map(comment)
}

/// The first line after the header that graphile-migrate writes, if it is a comment. Source: graphile-migrate,
/// `src/header.ts`, `firstLine`.
pub(super) fn graphile_first_line(text: &str) -> Option<&str> {
    let is_header = |line: &&str| {
        ["--! Previous:", "--! Hash:", "--! Message:", "--! AllowInvalidHash"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let mut lines = text.lines().map(str::trim);
    let first = if text.starts_with("--! Previous:") {
        let mut lines = lines.skip_while(is_header);
        lines.find(|line| !line.is_empty())
    } else {
        lines.next()
    };
    comment(first?).map(str::trim_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_leave_the_transaction_are_read_where_the_tool_reads_them() {
        for (text, expected) in [
            ("-- transactional: false\na;", true),
            ("-- depends: 1\n--transactional : False\n\na;", true),
            ("-- transactional: true\na;", false),
            ("a;\n-- transactional: false", false),
        ] {
            assert_eq!(is_outside_for_yoyo(text), expected, "{text}");
        }
        assert_eq!(tool("---- tern: disable-tx ----\na;"), Some(Tool::Tern));
        assert_eq!(tool("-- postgres-migrations disable-transaction\na;"), Some(Tool::PostgresMigrations));
        assert_eq!(tool("-- about disable-transaction\na;"), None);
    }

    #[test]
    fn header_comments_give_the_tool_away() {
        assert_eq!(tool("-- Deploy app:users to pg\nBEGIN;"), Some(Tool::Sqitch));
        assert_eq!(tool("--! Previous: -\n"), Some(Tool::GraphileMigrate));
        assert_eq!(tool("-- no-transaction\nSELECT 1"), Some(Tool::Sqlx));
        assert_eq!(tool("SELECT 1;\n-- atlas:txmode none\n"), None);
    }
}
