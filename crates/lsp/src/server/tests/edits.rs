//! Edits at random, as a client sends them: nothing panics, and the findings at the end are those of a new start.
//! `.ci/faults edits 100000` makes more of them.

use super::*;
use fastrand::Rng;

/// Number of edits without `PGVET_FAULTS`.
const FEW: usize = 200;
/// Number of edits of one document.
const OF_DOCUMENT: u8 = 100;

/// Texts that are typed, pasted and undone.
const SNIPPETS: [&str; 24] = [
    "",
    ";",
    "'",
    "\"",
    "$$",
    "(",
    ")",
    "\n",
    "\r\n",
    "-- ",
    "/*",
    "*/",
    "é𝄞\u{2028}",
    "\\",
    "{{ x }}",
    "CREATE TABLE t (a int);\n",
    "ALTER TABLE a ALTER COLUMN b TYPE varchar(10);\n",
    "DROP TABLE a;\n",
    "DO $$ BEGIN EXECUTE 'DROP TABLE a'; END $$;\n",
    "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;\n",
    "BEGIN;\n",
    "COMMIT;\n",
    "-- pgvet: ignore[drop-table] why\n",
    "COPY t FROM stdin;\n1\n\\.\n",
];

#[test]
fn random_edits_leave_what_a_new_document_has() {
    let count = std::env::var("PGVET_FAULTS").ok().and_then(|count| count.parse().ok()).unwrap_or(FEW);
    for seed in 0..count.div_ceil(OF_DOCUMENT.into()) {
        edit_one(Rng::with_seed(seed as u64));
    }
}

fn edit_one(mut random: Rng) {
    let mut client = TestClient::start(&[TABLE], json!({}));
    let mut text = "ALTER TABLE a ADD COLUMN c int;\nDROP TABLE a;\n".to_owned();
    client.open("migrations/2.sql", &text);
    let document = json!({"uri": client.uri("migrations/2.sql")});
    for version in 2..=i32::from(OF_DOCUMENT) + 1 {
        let (start, end) = range(&text, &mut random);
        let snippet = random.choice(SNIPPETS).unwrap_or_default();
        let changed = json!({"start": position(&text, start), "end": position(&text, end)});
        client.change("migrations/2.sql", version, json!([{"range": changed, "text": snippet}]));
        text.replace_range(start..end, snippet);
        let at = position(&text, random.usize(..=text.len()));
        match random.u8(..10) {
            0 => drop(client.ask("textDocument/hover", json!({"textDocument": document, "position": at}))),
            1 => drop(client.ask("textDocument/documentSymbol", json!({"textDocument": document}))),
            2 => drop(client.ask("textDocument/completion", json!({"textDocument": document, "position": at}))),
            _ => {}
        }
    }
    let found = client.published("migrations/2.sql", i32::from(OF_DOCUMENT) + 1);
    assert!(client.end());
    let mut fresh = TestClient::start(&[TABLE], json!({}));
    fresh.open("migrations/2.sql", &text);
    assert_eq!(found, fresh.published("migrations/2.sql", 1), "{text:?}");
    assert!(fresh.end());
}

/// A range between characters, mostly a short one. No position of the protocol is within a line end.
fn range(text: &str, random: &mut Rng) -> (usize, usize) {
    let is_in_line_end = |at: usize| text[..at].ends_with('\r') && text[at..].starts_with('\n');
    let places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let boundaries: Vec<usize> = places.filter(|at| !is_in_line_end(*at)).collect();
    let start = random.usize(..boundaries.len());
    let longest = if random.u8(..10) == 0 { 200 } else { 3 };
    let end = (start + random.usize(..=longest)).min(boundaries.len() - 1);
    (boundaries[start], boundaries[end])
}

/// The line, and the units of UTF-16 before the place on it.
fn position(text: &str, at: usize) -> Value {
    let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let before = &text[..at];
    let ends =
        |(at, character): (usize, char)| character == '\n' || (character == '\r' && !text[at + 1..].starts_with('\n'));
    let line = before.char_indices().filter(|end| ends(*end)).count();
    let start = before.char_indices().rfind(|end| ends(*end)).map_or(0, |(at, _)| at + 1);
    json!({"line": line, "character": before[start..].encode_utf16().count()})
}
