//! Comments by which migration tools steer: directions in one file, and opt-outs from transactions.

use super::header::is_outside_for_tern;
use super::{Layout, Section, Sign, Tool, delimiter, splitter};
use pgvet_model::migration::{Direction, TransactionMode};
use pgvet_model::runner::{KnownTransaction, Refusal, RefusalKind};
use pgvet_syntax::source::TextRange;

/// A line that begins a section of a file.
struct Marker {
    /// `None` for a section that is not for PostgreSQL.
    direction: Option<Direction>,
    transaction: TransactionMode,
    unsplit: Unsplit,
}

/// Which parts of a section are sent as one string each, whatever semicolons they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsplit {
    Nothing,
    All,
    /// Those between two delimiters.
    Parts,
}

/// Reads a comment; `None` if it begins no section.
type ReadMarker = fn(&str) -> Option<Marker>;

/// How files with several sections are written.
struct Form {
    tool: Tool,
    /// A word for it.
    kind: &'static str,
    marker: ReadMarker,
    /// The direction of the text before the first marker. Most tools do not run that text, but skipping it would hide
    /// it from everybody. sql-migrate and `psql_migration` say nothing about it, Play has it for remarks, others refuse
    /// the file. It is the up migration if only the down migration has a marker.
    before: Option<Direction>,
}

/// The sections of a file for tools that keep several in one.
pub(super) fn sections(text: &str) -> Option<Layout> {
    form(text).map(|form| divided(text, &form))
}

/// The sections of a file whose marks are those of no tool that is known: an up mark, and a down mark after it.
pub(super) fn sections_of_unknown_tool(text: &str) -> Option<Layout> {
    let directions: Vec<Direction> = comments(text).filter_map(|comment| unnamed(comment)?.direction).collect();
    let is_pair = directions.first() == Some(&Direction::Up) && directions.contains(&Direction::Down);
    let form = Form { tool: Tool::Plain, kind: "up and down", marker: unnamed, before: Some(Direction::Up) };
    is_pair.then(|| Layout { sign: Sign::None, ..divided(text, &form) })
}

fn divided(text: &str, form: &Form) -> Layout {
    let Form { tool, marker, before: direction, .. } = *form;
    let mut sections: Vec<Section> = Vec::new();
    let is_without = tool == Tool::Tern && is_outside_for_tern(text);
    let transaction = if is_without { TransactionMode::Autocommit } else { TransactionMode::Transaction };
    let mut open = Some((0, Marker { direction, transaction, unsplit: Unsplit::Nothing }));
    let mut unsplit_parts = Vec::new();
    let mut close = |open: Option<(u32, Marker)>, end: u32| {
        let Some((start, Marker { direction: Some(direction), transaction, unsplit })) = open else { return };
        match unsplit {
            Unsplit::Nothing => {}
            Unsplit::All => unsplit_parts.push(TextRange::new(start, end)),
            Unsplit::Parts => unsplit_parts.extend(delimited(text, start, end)),
        }
        if start > 0 || text[..end as usize].lines().any(is_statement) {
            sections.push(Section { range: Some(TextRange::new(start, end)), direction, transaction });
        }
    };
    for (start, line) in lines(text) {
        if let Some(marker) = comment(line).or_else(|| hash_mark(line)).and_then(marker) {
            close(open.replace((start + line.len() as u32, marker)), start);
        }
    }
    close(open, text.len() as u32);
    let mut strings = strings(text, tool);
    strings.extend(unsplit_parts);
    let refusals = refusals(tool, text, &sections, &strings);
    if tool == Tool::Goose && comments(text).any(|comment| is_words(comment, &["+goose", "NO", "TRANSACTION"])) {
        for section in &mut sections {
            section.transaction = TransactionMode::Autocommit;
        }
    }
    if tool == Tool::SqlMigrate {
        share_autocommit(&mut sections);
    }
    Layout {
        tool,
        sign: Sign::Comment,
        sections,
        strings,
        first_schemas: Vec::new(),
        refusals,
        unlisted: false,
        in_other_languages: false,
        release: None,
        has_doubted_marks: false,
        known_transaction: KnownTransaction::Known,
        runner_of_code: None,
        runs_again: false,
        runs_always: false,
        accepts_commit: false,
    }
}

/// The parts of a section that delimiters end.
fn delimited(text: &str, start: u32, end: u32) -> impl Iterator<Item = TextRange> {
    let parts = text[start as usize..end as usize].split_inclusive(delimiter::END);
    parts.scan(start, |start, part| {
        let range = TextRange::new(*start, *start + part.len() as u32);
        *start = range.end;
        Some(range)
    })
}

/// The parts of a file that the tool refuses or skips.
fn refusals(tool: Tool, text: &str, sections: &[Section], strings: &[TextRange]) -> Vec<Refusal> {
    let prefix = match tool {
        Tool::Goose => "+goose",
        Tool::SqlMigrate => "+migrate",
        Tool::Dbmate => "migrate:up",
        _ => return Vec::new(),
    };
    let mut refusals = Vec::new();
    let is_read =
        |section: &&Section| section.direction == Direction::Up || section.range.is_some_and(|range| range.start == 0);
    for range in sections.iter().filter(is_read).filter_map(|section| section.range) {
        if range.start == 0 {
            let is_code = |(_, line): &(u32, &str)| is_statement(line);
            let first = lines(&text[range.as_usize()]).find(is_code);
            let Some((start, line)) = first else { continue };
            let (kind, what, help) = match tool {
                Tool::SqlMigrate => (
                    RefusalKind::Skips,
                    "skips this statement, because it is",
                    "move the statement below `-- +migrate Up`",
                ),
                Tool::Goose => (
                    RefusalKind::Fails,
                    "refuses this file, because this statement is",
                    "move the statement below `-- +goose Up`",
                ),
                _ => (
                    RefusalKind::Fails,
                    "refuses this file, because this statement is",
                    "move the statement below `-- migrate:up`",
                ),
            };
            refusals.push(Refusal {
                kind,
                range: TextRange::new(start, start + line.trim_end().len() as u32),
                message: format!("{} {what} before the first annotation", tool.as_str()),
                help: help.to_owned(),
                by_default: false,
                unproven: None,
            });
        } else if tool != Tool::Dbmate {
            refusals.extend(splitter::refusals(tool.as_str(), prefix, text, range, strings));
        }
    }
    refusals
}

/// `notransaction` at one marker holds for all sections of its direction. Source: sql-migrate, `sqlparse/sqlparse.go`.
fn share_autocommit(sections: &mut [Section]) {
    let without = |section: &Section| section.transaction == TransactionMode::Autocommit;
    let directions: Vec<Direction> =
        sections.iter().filter(|section| without(section)).map(|section| section.direction).collect();
    for section in sections.iter_mut().filter(|section| directions.contains(&section.direction)) {
        section.transaction = TransactionMode::Autocommit;
    }
}

/// The ranges that goose and sql-migrate send as one string. A statement that is not finished before the mark continues
/// after it. Source: as for their sections, below.
fn strings(text: &str, tool: Tool) -> Vec<TextRange> {
    let prefix = match tool {
        Tool::Goose => "+goose",
        Tool::SqlMigrate => "+migrate",
        _ => return Vec::new(),
    };
    let mut strings = Vec::new();
    let mut begun = None;
    let mut unfinished = None;
    for (start, line) in lines(text) {
        let Some(comment) = comment(line) else {
            if is_statement(line) {
                unfinished = (!splitter::ends_with_semicolon(line)).then(|| unfinished.unwrap_or(start));
            }
            continue;
        };
        if is_words(comment, &[prefix, "StatementBegin"]) {
            begun = Some(unfinished.take().unwrap_or(start + line.len() as u32));
        } else if is_words(comment, &[prefix, "StatementEnd"])
            && let Some(begun) = begun.take()
        {
            strings.push(TextRange::new(begun, start));
            unfinished = None;
        } else if up_or_down(comment, &[prefix, "Up"], &[prefix, "Down"]).is_some() {
            unfinished = None;
        }
    }
    strings
}

/// Lines with the offsets of their starts; the line break belongs to the line.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    text.split_inclusive('\n').scan(0, |offset, line| {
        let start = *offset;
        *offset += line.len() as u32;
        Some((start, line))
    })
}

/// The text of a line that is nothing but a `--` comment.
pub(super) fn comment(line: &str) -> Option<&str> {
    // Nearly all lines begin with something else, and every line of every file is examined.
    if line.bytes().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|first| first.is_ascii() && first != b'-') {
        return None;
    }
    Some(line.trim_start_matches('\u{feff}').trim().strip_prefix("--")?.trim_start())
}

/// Whether it is more than a comment of one line.
fn is_statement(line: &str) -> bool {
    !line.trim_start_matches('\u{feff}').trim().is_empty() && comment(line).is_none()
}

fn comments(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(comment)
}

/// Whether the comment begins with these words, in any case.
fn is_words(comment: &str, words: &[&str]) -> bool {
    let mut actual = comment.split_whitespace();
    words.iter().all(|word| actual.next().is_some_and(|actual| actual.eq_ignore_ascii_case(word)))
}

/// A file without an up section is run whole, whatever its comments say.
fn begins_up(read: ReadMarker, comment: &str) -> bool {
    read(comment).is_some_and(|marker| marker.direction == Some(Direction::Up))
}

fn form(text: &str) -> Option<Form> {
    use Direction::{Down, Up};
    // Without an up mark Play runs nothing of the file, which is no reason to hide what its author wrote.
    let before_play = if text.contains(PLAY_UPS) { None } else { Some(Up) };
    text.lines().filter_map(|line| comment(line).or_else(|| hash_mark(line))).find_map(|comment| {
        let (tool, kind, marker, before): (Tool, &str, ReadMarker, Option<Direction>) = match comment {
            _ if begins_up(goose, comment) => (Tool::Goose, "goose", goose, Some(Up)),
            _ if begins_up(sql_migrate, comment) => (Tool::SqlMigrate, "sql-migrate", sql_migrate, Some(Down)),
            _ if begins_up(dbmate, comment) => (Tool::Dbmate, "dbmate", dbmate, Some(Up)),
            _ if begins_up(node_pg_migrate, comment) => {
                (Tool::NodePgMigrate, "node-pg-migrate", node_pg_migrate, Some(Up))
            }
            _ if is_words(comment, &["liquibase", "formatted", "sql"]) => {
                (Tool::Liquibase, "liquibase", liquibase, Some(Up))
            }
            _ if play(comment).is_some() => (Tool::Plain, "play", play, before_play),
            _ if begins_up(rambler, comment) => (Tool::Plain, "rambler", rambler, Some(Up)),
            _ if begins_up(psql_migration, comment) => (Tool::Plain, "psql_migration", psql_migration, Some(Down)),
            _ if my_batis(comment).is_some() => (Tool::Mybatis, "mybatis", my_batis, Some(Up)),
            _ if tern(comment).is_some() => (Tool::Tern, "tern", tern, Some(Up)),
            _ => return None,
        };
        Some(Form { tool, kind, marker, before })
    })
}

/// A word for the marks that divide a text.
pub(super) fn kind(text: &str) -> Option<&'static str> {
    form(text).map(|form| form.kind)
}

/// Whether a text has marks of that kind, be it only one for the step forward.
pub(super) fn marked_for(text: &str, kind: &str) -> bool {
    self::kind(text) == Some(kind)
}

fn up_or_down(comment: &str, up: &[&str], down: &[&str]) -> Option<Direction> {
    if is_words(comment, up) { Some(Direction::Up) } else { is_words(comment, down).then_some(Direction::Down) }
}

/// `-- UP`, `-- @down` or `-- ==== Rollback ====` alone on a line. Of the transaction nothing is known.
fn unnamed(comment: &str) -> Option<Marker> {
    const UP: [&str; 8] = ["up", "upgrade", "up migration", "migration up", "migrate up", "forward", "apply", "do"];
    const DOWN: [&str; 9] = [
        "down",
        "downgrade",
        "down migration",
        "migration down",
        "migrate down",
        "rollback",
        "undo",
        "revert",
        "backward",
    ];
    let is_edge = |one: char| !one.is_alphanumeric();
    let words = comment.trim_start_matches("+micrate").trim_matches(is_edge);
    let is = |names: &[&str]| names.iter().any(|name| words.eq_ignore_ascii_case(name));
    let direction = if is(&UP) { Direction::Up } else { is(&DOWN).then_some(Direction::Down)? };
    Some(Marker { direction: Some(direction), transaction: TransactionMode::Autocommit, unsplit: Unsplit::Nothing })
}

/// Source: goose, `internal/sqlparser/parser.go`.
fn goose(comment: &str) -> Option<Marker> {
    let direction = up_or_down(comment, &["+goose", "Up"], &["+goose", "Down"])?;
    Some(Marker { direction: Some(direction), transaction: TransactionMode::Transaction, unsplit: Unsplit::Nothing })
}

/// Source: sql-migrate, `sqlparse/sqlparse.go`.
fn sql_migrate(comment: &str) -> Option<Marker> {
    let direction = up_or_down(comment, &["+migrate", "Up"], &["+migrate", "Down"])?;
    let without = comment.split_whitespace().any(|word| word.eq_ignore_ascii_case("notransaction"));
    let transaction = if without { TransactionMode::Autocommit } else { TransactionMode::Transaction };
    Some(Marker { direction: Some(direction), transaction, unsplit: Unsplit::Nothing })
}

/// dbmate sends a section as one string. Source: dbmate, `pkg/dbmate/migration.go` and issue 126.
fn dbmate(comment: &str) -> Option<Marker> {
    let direction = up_or_down(comment, &["migrate:up"], &["migrate:down"])?;
    let without = comment.split_whitespace().any(|word| word == "transaction:false");
    let transaction = if without { TransactionMode::SingleString } else { TransactionMode::Transaction };
    Some(Marker { direction: Some(direction), transaction, unsplit: Unsplit::Nothing })
}

/// Source: node-pg-migrate, `src/sqlMigration.ts`.
fn node_pg_migrate(comment: &str) -> Option<Marker> {
    let comment = comment.trim_start_matches(['-', ' ', '\t']);
    let direction = up_or_down(comment, &["Up", "Migration"], &["Down", "Migration"])?;
    Some(Marker { direction: Some(direction), transaction: TransactionMode::Transaction, unsplit: Unsplit::Nothing })
}

/// Play sends each statement alone. Source: Play, `EvolutionsReader` and `DatabaseEvolutions`.
fn play(comment: &str) -> Option<Marker> {
    let direction = up_or_down(comment.trim_start_matches(['-', '#', ' ', '\t']), &["!Ups"], &["!Downs"])?;
    Some(Marker { direction: Some(direction), transaction: TransactionMode::Autocommit, unsplit: Unsplit::Nothing })
}

const PLAY_UPS: &str = "!Ups";
const PLAY_DOWNS: &str = "!Downs";

/// A mark of Play after `#`, which PostgreSQL reads as an operator.
fn hash_mark(line: &str) -> Option<&str> {
    let comment = without_indent(line).strip_prefix('#')?;
    play(comment).map(|_| comment)
}

/// A line without what is before its first character: spaces, and the byte order mark of the file.
fn without_indent(line: &str) -> &str {
    line.trim_start_matches(|one: char| one.is_whitespace() || one == '\u{feff}')
}

/// rambler sends each section as one string. Source: rambler 4.4, `migration.go`, `scan`, and `service.go`, `Apply`.
fn rambler(comment: &str) -> Option<Marker> {
    let direction = match comment.strip_prefix("rambler")?.trim() {
        "up" => Direction::Up,
        _ => Direction::Down,
    };
    Some(Marker { direction: Some(direction), transaction: TransactionMode::SingleString, unsplit: Unsplit::Nothing })
}

/// Text that Play changes before sending it: `#` before marks, and `;;` for a semicolon inside of a statement. With the
/// SQL that replaces it. Source: Play documentation, "Managing database evolutions".
pub(super) fn play_escapes(text: &str) -> Vec<(TextRange, &'static str)> {
    let is_mark =
        |line: &str| comment(line).is_some_and(|comment| play(comment).is_some()) || hash_mark(line).is_some();
    if ![PLAY_UPS, PLAY_DOWNS].iter().any(|mark| text.contains(mark)) || !lines(text).any(|(_, line)| is_mark(line)) {
        return Vec::new();
    }
    let mut escapes = Vec::new();
    let mut is_before = true;
    for (start, line) in lines(text) {
        let is_mark = is_mark(line);
        let indent = (line.len() - without_indent(line).len()) as u32;
        if without_indent(line).starts_with('#') && (is_mark || is_before) {
            escapes.push((TextRange::new(start + indent, start + indent + 1), "--"));
        }
        is_before &= !is_mark;
    }
    let semicolons = text.match_indices(";;").map(|(at, _)| (TextRange::new(at as u32, at as u32 + 2), ";"));
    escapes.extend(semicolons);
    escapes
}

/// `psql_migration` sends a section as one string. Source: `psql_migration`, `src/psql_migration.erl`.
fn psql_migration(comment: &str) -> Option<Marker> {
    let direction = up_or_down(comment, &[":up"], &[":down"])?;
    Some(Marker { direction: Some(direction), transaction: TransactionMode::SingleString, unsplit: Unsplit::Nothing })
}

/// `-- //@UNDO`. Source: `MyBatis` Migrations, `MigrationReader`.
fn my_batis(comment: &str) -> Option<Marker> {
    let is_down = is_words(comment.strip_prefix("//")?, &["@UNDO"]);
    let down = Marker {
        direction: Some(Direction::Down),
        transaction: TransactionMode::Transaction,
        unsplit: Unsplit::Nothing,
    };
    is_down.then_some(down)
}

/// Source: tern, `migrate/migrate.go`.
fn tern(comment: &str) -> Option<Marker> {
    let is_down = comment.trim_end() == "-- create above / drop below ----";
    let down = Marker {
        direction: Some(Direction::Down),
        transaction: TransactionMode::Transaction,
        unsplit: Unsplit::Nothing,
    };
    is_down.then_some(down)
}

/// Source: Liquibase documentation, "Formatted SQL changelog". Rollbacks are comments there.
fn liquibase(comment: &str) -> Option<Marker> {
    let mut words = comment.split_whitespace();
    words.next().filter(|word| word.eq_ignore_ascii_case("changeset"))?;
    let mut direction = Some(Direction::Up);
    let mut transaction = TransactionMode::Transaction;
    let mut unsplit = if delimiter::has_own(comment) { Unsplit::Parts } else { Unsplit::Nothing };
    for (name, value) in words.filter_map(|word| word.split_once(':')) {
        if name.eq_ignore_ascii_case("runInTransaction") && value.eq_ignore_ascii_case("false") {
            transaction = TransactionMode::Autocommit;
        } else if name.eq_ignore_ascii_case("dbms") && !is_postgresql(value) {
            direction = None;
        } else if name.eq_ignore_ascii_case("splitStatements") && value.eq_ignore_ascii_case("false") {
            unsplit = Unsplit::All;
        }
    }
    Some(Marker { direction, transaction, unsplit })
}

/// Whether PostgreSQL is among the databases of an attribute `dbms`.
pub(super) fn is_postgresql(dbms: &str) -> bool {
    let mut names = dbms.trim_matches('"').split(',').map(str::trim);
    names.any(|name| matches!(name, "postgresql" | "all") || (name.starts_with('!') && name != "!postgresql"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Tool, Vec<(&str, Direction, TransactionMode)>) {
        let layout = sections(text).unwrap();
        let part = |section: &Section| {
            (text[section.range.unwrap().as_usize()].trim(), section.direction, section.transaction)
        };
        (layout.tool, layout.sections.iter().map(part).collect())
    }

    #[test]
    fn up_and_down_in_one_file_are_two_sections() {
        use Direction::{Down, Up};
        use TransactionMode::{Autocommit, SingleString, Transaction};
        for (text, tool, up, down) in [
            ("-- +goose Up\na;\n-- +goose Down\nb;\n", Tool::Goose, Transaction, Transaction),
            ("-- +goose NO TRANSACTION\n-- +goose up\na;\n--+goose Down\nb;", Tool::Goose, Autocommit, Autocommit),
            ("-- +migrate Up notransaction\na;\n-- +migrate Down\nb;", Tool::SqlMigrate, Autocommit, Transaction),
            ("-- migrate:up transaction:false\na;\n-- migrate:down\nb;", Tool::Dbmate, SingleString, Transaction),
            ("-- Up Migration\na;\n-- Down Migration\r\nb;\r\n", Tool::NodePgMigrate, Transaction, Transaction),
        ] {
            assert_eq!(parts(text), (tool, vec![("a;", Up, up), ("b;", Down, down)]), "{text}");
        }
    }

    #[test]
    fn down_migrations_of_other_programs_are_sections() {
        use Direction::{Down, Up};
        use TransactionMode::{Autocommit, SingleString, Transaction};
        for (text, expected, up, down) in [
            ("-- --- !Ups\na;\n-- --- !Downs\nb;\n", Tool::Plain, Autocommit, Autocommit),
            ("-- users\n-- !Ups\na;\n\n-- !Downs\nb;\n", Tool::Plain, Autocommit, Autocommit),
            ("-- migrations/1-a.sql\n-- :up\na;\n-- :down\nb;\n", Tool::Plain, SingleString, SingleString),
            ("-- rambler up\na;\n-- rambler down\nb;\n", Tool::Plain, SingleString, SingleString),
            ("\u{feff}# --- !Ups\na;\n# --- !Downs\nb;\n", Tool::Plain, Autocommit, Autocommit),
            ("-- // users\na;\n\n-- //@UNDO\nb;\n", Tool::Mybatis, Transaction, Transaction),
            ("a;\n---- create above / drop below ----\nb;\n", Tool::Tern, Transaction, Transaction),
            (
                "---- tern: disable-tx ----\na;\n---- create above / drop below ----\nb;\n",
                Tool::Tern,
                Autocommit,
                Transaction,
            ),
        ] {
            let (tool, parts) = parts(text);
            let parts: Vec<_> = parts.iter().map(|part| (part.0.lines().last(), part.1, part.2)).collect();
            assert_eq!((tool, parts), (expected, vec![(Some("a;"), Up, up), (Some("b;"), Down, down)]), "{text}");
        }
        assert_eq!(sections("-- uploads !Ups\na;\n"), None);
    }

    #[test]
    fn sections_of_rambler_are_sent_one_by_one() {
        let (_, all) = parts("-- rambler up\na; b;\n-- rambler up\nc;\n-- rambler down\nd;\n");
        let directions: Vec<_> = all.iter().map(|part| (part.0, part.1)).collect();
        assert_eq!(directions, [("a; b;", Direction::Up), ("c;", Direction::Up), ("d;", Direction::Down)]);
        assert_eq!(sections("-- ramblers update\na;\n"), None);
    }

    #[test]
    fn a_down_mark_of_play_needs_no_up_mark() {
        for text in ["a;\n# --- !Downs\nb;\n", "\u{feff}a;\n-- !Downs\nb;\n"] {
            let (_, all) = parts(text);
            let directions: Vec<_> = all.iter().map(|part| part.1).collect();
            assert_eq!(directions, [Direction::Up, Direction::Down], "{text}");
        }
        let (_, all) = parts("-- gone\n\n-- !Downs\nb;\n");
        assert_eq!(all, [("b;", Direction::Down, TransactionMode::Autocommit)]);
    }

    #[test]
    fn marks_of_no_known_tool_count_in_pairs() {
        use Direction::{Down, Up};
        for text in [
            "-- UP\na;\n-- DOWN\nb;\n",
            "-- @up\na;\n-- @down\nb;\n",
            "-- +micrate Up\na;\n-- +micrate Down\nb;\n",
            "-- ==== up ====\na;\n-- ==== Rollback ====\nb;\n",
            "-- up:\na;\n-- down:\nb;\n",
        ] {
            let layout = sections_of_unknown_tool(text).unwrap();
            let parts: Vec<_> = layout.sections.iter().map(|section| section.direction).collect();
            assert_eq!((layout.tool, layout.sign, parts), (Tool::Plain, Sign::None, vec![Up, Down]), "{text}");
        }
        for text in ["-- up\na;\n", "a;\n-- down\nb;\n", "-- go up\na;\n-- go down\nb;\n", "-- down\na;\n-- up\nb;\n"] {
            assert_eq!(sections_of_unknown_tool(text), None, "{text}");
        }
    }

    #[test]
    fn play_has_marks_and_semicolons_of_its_own() {
        let escapes = |text: &str| -> Vec<(u32, &str)> {
            play_escapes(text).iter().map(|(range, value)| (range.start, *value)).collect()
        };
        assert_eq!(escapes("# a\n # --- !Ups\nb;;\n# c\n"), [(0, "--"), (5, "--"), (17, ";")]);
        assert_eq!(escapes("\u{feff}# a\n# --- !Downs\n"), [(3, "--"), (7, "--")]);
        assert!(escapes("SELECT '!Ups';;\n# a").is_empty());
    }

    #[test]
    fn the_text_between_begin_and_end_is_one_string() {
        let strings = |text| {
            let layout = sections(text).unwrap();
            layout.strings.iter().map(|string| text[string.as_usize()].trim()).collect::<Vec<_>>()
        };
        let goose = "-- +goose NO TRANSACTION\n-- +goose Up\na;\n-- +goose StatementBegin\nb; c;\n-- +goose StatementEnd\n\
                     d;\n--+goose statementbegin\r\ne;\r\n--+goose statementend\r\n-- +goose StatementBegin\nf;";
        assert_eq!(strings(goose), ["b; c;", "e;"]);
        let joined = "-- +goose Up\na;\nCREATE FUNCTION f() RETURNS int AS\n-- +goose StatementBegin\n$$\nSELECT 1;\n$$\n\
                      LANGUAGE sql;\n-- +goose StatementEnd\nb;\n";
        let text = strings(joined)[0];
        assert!(text.starts_with("CREATE FUNCTION") && text.ends_with("LANGUAGE sql;"), "{text}");
        assert_eq!(sections(joined).unwrap().refusals, []);
        let sql_migrate = "-- +migrate Up notransaction\n-- +migrate StatementBegin\na; b;\n-- +migrate StatementEnd\n-- +migrate Down\n";
        assert_eq!(strings(sql_migrate), ["a; b;"]);
        assert!(strings("-- migrate:up\n-- +goose StatementBegin\na;\n-- +goose StatementEnd\n").is_empty());
    }

    #[test]
    fn notransaction_holds_for_all_sections_of_its_direction() {
        use TransactionMode::{Autocommit, Transaction};
        let text = "-- +migrate Up\na;\n-- +migrate Down\nb;\n-- +migrate Up notransaction\nc;\n";
        let transactions: Vec<_> = sections(text).unwrap().sections.iter().map(|section| section.transaction).collect();
        assert_eq!(transactions, [Autocommit, Transaction, Autocommit]);
    }

    #[test]
    fn a_changeset_is_a_section_unless_it_is_for_another_database() {
        let text = "--liquibase formatted sql\n--changeset a:1\nx;\n--changeset a:2 dbms:mysql\ny;\n\
                    --changeset a:3 runInTransaction:false\nz;\n--rollback drop z;\n";
        let (tool, parts) = parts(text);
        assert_eq!(tool, Tool::Liquibase);
        assert_eq!(parts[0], ("x;", Direction::Up, TransactionMode::Transaction));
        assert_eq!(parts[1].2, TransactionMode::Autocommit);
        assert_eq!(parts.len(), 2);
    }

    #[test]
    fn nothing_is_skipped() {
        let (_, parts) = parts("SELECT 0;\n-- ---- Up Migration for x\nSELECT 1;\n-- Down Migration\n-- none\n");
        assert_eq!(parts.iter().map(|part| part.0).collect::<Vec<_>>(), ["SELECT 0;", "SELECT 1;", "-- none"]);
        assert_eq!(sections("SELECT 1;\n-- Down Migration\n-- DROP TABLE a;\n"), None);
    }

    #[test]
    fn plain_files_have_no_sections() {
        assert_eq!(sections("-- up\nSELECT 1;\nSELECT '-- +goose Up';"), None);
    }
}
