//! New texts from old ones: statements and tokens are moved about, so that most texts still parse and statements speak
//! of the same objects. The tests of the engine use it, too.

use fastrand::Rng;
use pgvet_syntax::lexer::{Token, tokenize};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::split;
use std::path::Path;
use std::sync::LazyLock;

/// Statements of the fixtures.
static POOL: LazyLock<Vec<String>> = LazyLock::new(|| {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("fixtures"));
    let fixtures = folders.into_iter().find(|folder| folder.join("rules").is_dir()).expect("there are fixtures");
    let mut pool = Vec::new();
    for folder in ["rules", "generated", "locks", "patterns", "catalog_rows"] {
        read_folder(&fixtures.join(folder), &mut pool);
    }
    pool.sort();
    pool.dedup();
    assert!(pool.len() > 1000, "only {} statements in {}", pool.len(), fixtures.display());
    pool
});

fn read_folder(folder: &Path, pool: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of fixtures can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            read_folder(&path, pool);
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("sql") => add_statements(&text, pool),
            // The texts with blanks are SQL, but for a few notes.
            Some("jsonl") => text.split('"').filter(|text| text.contains(' ')).for_each(|text| {
                add_statements(&text.replace("\\n", "\n"), pool);
            }),
            _ => {}
        }
    }
}

fn add_statements(text: &str, pool: &mut Vec<String>) {
    pool.extend(pieces(text).into_iter().map(|range| text[range.as_usize()].to_owned()));
}

fn pieces(text: &str) -> Vec<TextRange> {
    split(text).pieces.into_iter().filter(|piece| piece.kind.is_statement()).map(|piece| piece.range).collect()
}

/// Lines that say how migrations run, as fixtures write them.
const DIRECTIVES: [&str; 10] = [
    "-- history:",
    "-- migration:",
    "-- migration: transaction",
    "-- migration: single-string",
    "-- baseline:",
    "-- pg-version: 10-18",
    "-- pg-version: 14",
    "-- set: table t rows=100000000 hot",
    "-- pgvet: ignore[missing-lock-timeout] why",
    "-- pgvet: ignore-file[table-rewrite, unknown]",
];

/// A text after one edit.
pub(crate) fn changed(text: &str, random: &mut Rng) -> String {
    let mut text = text.to_owned();
    change(&mut text, random);
    text
}

fn change(text: &mut String, random: &mut Rng) {
    let pieces = pieces(text);
    let piece = random.choice(&pieces).copied();
    let boundary = piece.map_or(0, |piece| piece.start as usize);
    match (random.u8(..12), piece) {
        (0..=2, _) | (_, None) => {
            let statement = pooled(random);
            text.insert_str(boundary, &format!("{statement};\n"));
        }
        (3, Some(piece)) => remove_statement(text, piece),
        (4, Some(piece)) => {
            let copy = format!("{};\n", &text[piece.as_usize()]);
            let place = random.choice(&pieces).map_or(0, |piece| piece.start as usize);
            text.insert_str(place, &copy);
        }
        (5, Some(piece)) => {
            let inner = text[piece.as_usize()].to_owned();
            text.replace_range(piece.as_usize(), &wrapped(&inner, random));
        }
        (6, _) => text.insert_str(boundary, &format!("\n{}\n", random.choice(DIRECTIVES).unwrap_or_default())),
        (_, Some(piece)) => change_token(text, piece, random),
    }
}

fn pooled(random: &mut Rng) -> &'static str {
    random.choice(POOL.iter()).map_or("", String::as_str)
}

fn remove_statement(text: &mut String, piece: TextRange) {
    let behind = piece.end as usize;
    let end = if text[behind..].starts_with(';') { behind + 1 } else { behind };
    text.replace_range(piece.start as usize..end, "");
}

/// A statement as code of a block or a function, or in a transaction.
fn wrapped(statement: &str, random: &mut Rng) -> String {
    match random.u8(..5) {
        0 => format!("DO $x$ BEGIN {statement}; END $x$"),
        1 => format!("CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $x$ BEGIN {statement}; END $x$; SELECT f()"),
        2 => format!("CREATE OR REPLACE PROCEDURE p() LANGUAGE sql AS $x$ {statement} $x$; CALL p()"),
        3 => format!("DO $x$ BEGIN FOR i IN 1..10 LOOP EXECUTE '{}'; END LOOP; END $x$", statement.replace('\'', "''")),
        _ => format!("BEGIN; {statement}; COMMIT"),
    }
}

/// Puts a token of this text or of another statement in the place of one, before it, or takes it away.
fn change_token(text: &mut String, piece: TextRange, random: &mut Rng) {
    let Some(token) = any_token(text, piece, random) else { return };
    let other = if random.u8(..3) == 0 { pooled(random).to_owned() } else { text.clone() };
    let everything = TextRange::new(0, other.len() as u32);
    let same_kind = |candidate: &Token| candidate.kind == token.kind;
    // Mostly the grammar survives a token of the same kind only.
    let new = (0..8).filter_map(|_| any_token(&other, everything, random)).find(same_kind);
    let new = new.map_or(String::new(), |new| new.text(&other).to_owned());
    match random.u8(..8) {
        0 => text.replace_range(token.range.as_usize(), ""),
        1 => text.insert_str(token.range.start as usize, &format!("{new} ")),
        _ => text.replace_range(token.range.as_usize(), &new),
    }
}

/// A token, also one in a body: those in dollar quotes are as good as others.
fn any_token(text: &str, range: TextRange, random: &mut Rng) -> Option<Token> {
    let tokens = tokenize(text, range);
    let token = random.choice(tokens).filter(|token| !token.range.is_empty())?;
    let tag = |text: &str| text.strip_prefix('$').and_then(|rest| rest.find('$')).map(|at| at as u32 + 2);
    match tag(token.text(text)).filter(|tag| token.range.end - token.range.start > 2 * tag) {
        Some(tag) => any_token(text, TextRange::new(token.range.start + tag, token.range.end - tag), random),
        None => Some(token),
    }
}
