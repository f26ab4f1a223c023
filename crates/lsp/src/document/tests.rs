use super::*;

/// Long enough for blanks in several places.
fn long() -> String {
    let line = |number: u32| ["INSERT INTO t VALUES (", &number.to_string(), ", 'ä\u{1f418}');\n"].concat();
    (0..400).map(line).collect()
}

fn document() -> Document {
    Document::new(long(), Encoding::Utf16)
}

fn edit(line: u32, from: u32, to: u32, text: &str) -> TextDocumentContentChangeEvent {
    let range = Range::new(Position::new(line, from), Position::new(line, to));
    TextDocumentContentChangeEvent { range: Some(range), range_length: None, text: text.to_owned() }
}

fn whole(text: &str) -> TextDocumentContentChangeEvent {
    TextDocumentContentChangeEvent { range: None, range_length: None, text: text.to_owned() }
}

#[test]
fn the_client_does_not_see_the_blanks() {
    let document = document();
    assert!(document.slack.len() > 2);
    assert_eq!(document.written(), long());
    let plain = LineIndex::new(&long());
    for (at, _) in long().match_indices(';') {
        let position = Encoding::Utf16.position(&plain, &long(), at as u32 + 1);
        assert_eq!(document.position(document.offset(position)), position);
        assert_eq!(document.slice(TextRange::new(document.offset(position) - 1, document.offset(position))), ";");
    }
}

#[test]
fn an_edit_moves_only_the_text_before_the_next_blanks() {
    let mut document = document();
    let before = document.text.clone();
    document.change(edit(20, 0, 6, "INSERT /* longer */"));
    assert_eq!(document.text.len(), before.len());
    let first = document.slack[0];
    assert_eq!(document.text[first.end as usize..], before[first.end as usize..]);
    document.change(edit(20, 0, 19, "INSERT"));
    assert_eq!(document.text, before);
}

#[test]
fn any_edits_give_what_they_give_without_blanks() {
    for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
        let mut plain = long();
        let many = "SELECT 1;\n".repeat(40);
        let mut document = Document::new(plain.clone(), encoding);
        let mut seed = 7_u32;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % below.max(1)
        };
        for round in 0..600 {
            let lines = LineIndex::new(&plain);
            let boundary = |at: usize| (0..=at).rev().find(|at| plain.is_char_boundary(*at)).unwrap();
            let start = boundary(next(plain.len()));
            let length = if round % 50 == 0 { 5000 } else { next(60) };
            let end = boundary((start + length).min(plain.len())).max(start);
            let inserted = ["x", "", "é;\n", "\u{1f418}", many.as_str(), "\r\n"][next(6)];
            let position = |at: usize| encoding.position(&lines, &plain, at as u32);
            let range = Range::new(position(start), position(end));
            // Between the two bytes of a line's end there is no position.
            let place = |at: Position| encoding.offset(&lines, &plain, at) as usize;
            let (start, end) = (place(range.start), place(range.end));
            plain.replace_range(start..end, inserted);
            if round % 3 == 0 {
                document.change(whole(&plain));
            } else {
                document.change(TextDocumentContentChangeEvent {
                    range: Some(range),
                    range_length: None,
                    text: inserted.to_owned(),
                });
            }
            assert_eq!(document.written(), plain, "round {round}");
        }
    }
}

#[test]
fn the_same_text_changes_nothing() {
    let mut document = document();
    let before = document.text.clone();
    document.change(whole(&long()));
    assert_eq!(document.text, before);
}

#[test]
fn a_range_that_runs_backwards_is_turned_around() {
    let mut document = Document::new("abc".to_owned(), Encoding::Utf16);
    document.change(edit(0, 2, 1, "x"));
    assert_eq!(document.written(), "axc");
}
