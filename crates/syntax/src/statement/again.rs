//! Parsing a text again after an edit: statements whose text is where it was keep their trees.

use super::parse::Parser;
use super::{Piece, PieceKind, Statement, copied, each_piece};
use crate::source::TextRange;

/// The bytes that two versions of a text have in common: those before one place, and, where both are equally long, those
/// from another place on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unchanged {
    before: u32,
    from: u32,
}

impl Unchanged {
    pub fn between(old: &str, new: &str) -> Self {
        let common = |old: &mut dyn Iterator<Item = u8>, new: &mut dyn Iterator<Item = u8>| {
            old.zip(new).take_while(|(old, new)| old == new).count()
        };
        // Blocks first: most of a long text is the same.
        const BLOCK: usize = 4096;
        let blocks = old.as_bytes().chunks_exact(BLOCK).zip(new.as_bytes().chunks_exact(BLOCK));
        let skipped = BLOCK * blocks.take_while(|(old, new)| old == new).count();
        let before = skipped + common(&mut old.bytes().skip(skipped), &mut new.bytes().skip(skipped));
        let mut from = u32::MAX;
        if old.len() == new.len() {
            let length = new.len();
            let blocks = old.as_bytes().rchunks_exact(BLOCK).zip(new.as_bytes().rchunks_exact(BLOCK));
            let skipped = BLOCK * blocks.take_while(|(old, new)| old == new).count();
            let (old, new) = (&old.as_bytes()[..length - skipped], &new.as_bytes()[..length - skipped]);
            let common = skipped + common(&mut old.iter().rev().copied(), &mut new.iter().rev().copied());
            from = (length - common).max(before) as u32;
        }
        Self { before: before as u32, from }
    }

    /// Whether the text of this range is the same.
    pub fn holds(self, range: TextRange) -> bool {
        range.end <= self.before || range.start >= self.from
    }
}

/// [`super::parse`] of a text, given the statements of its last version.
pub fn parse_again(text: &str, previous: Vec<Statement>, unchanged: Unchanged) -> Vec<Statement> {
    let mut parser = Parser::new(text);
    let mut previous = previous.into_iter().peekable();
    let mut statements = Vec::new();
    each_piece(text, &mut |piece| {
        if piece.kind == PieceKind::CopyData {
            return copied::note_rows(text, piece.range, &mut statements);
        }
        while previous.next_if(|known| known.range.start < piece.range.start).is_some() {}
        match previous.next_if(|known| unchanged.holds(piece.range) && is_same(known, &piece)) {
            Some(known) => statements.push(known),
            None => parser.parse(piece, &mut statements),
        }
    });
    statements
}

/// Whether the statement was made of just this piece. Equal tokens also mean that quotes were read the same way.
fn is_same(known: &Statement, piece: &Piece) -> bool {
    piece.kind == PieceKind::Sql
        && known.range == piece.range
        && known.parsed.is_ok()
        && known.placeholders.is_empty()
        && known.terminated == piece.terminated
        && known.comments == piece.comments
        && known.quoting == piece.quoting
        && known.tokens == piece.tokens
        && !copied::has_data(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::parse;

    #[test]
    fn the_common_bytes_of_two_texts() {
        let unchanged = Unchanged::between("SELECT 1;   \nSELECT 2;", "SELECT 10;  \nSELECT 2;");
        assert_eq!(unchanged, Unchanged { before: 8, from: 10 });
        assert!(unchanged.holds(TextRange::new(13, 21)) && !unchanged.holds(TextRange::new(0, 9)));
        let longer = "x".repeat(10_000);
        assert_eq!(Unchanged::between(&longer, &longer), Unchanged { before: 10_000, from: 10_000 });
        let grown = format!("{longer}y");
        assert_eq!(Unchanged::between(&longer, &grown), Unchanged { before: 10_000, from: u32::MAX });
    }

    #[test]
    fn an_edit_anywhere_gives_what_parsing_gives() {
        let text = "-- a\nCREATE TABLE t (a int); -- b\nINSERT INTO t VALUES ('x;y');   \nSELECT ${a};\nDO $$ BEGIN END $$;\n\
                    SET standard_conforming_strings = off; SELECT 'a\\'b'; SELECT 1 SELECT 2;\nCOPY t FROM stdin;\n1\n\\.\nSELECT 3;";
        let shown = |statements: &[Statement]| format!("{statements:?}");
        for at in 0..=text.len() {
            for (removed, inserted) in [(0, ";"), (1, " "), (0, "--"), (0, "'"), (1, "$$")] {
                if at + removed > text.len() {
                    continue;
                }
                let edited = [&text[..at], inserted, &text[at + removed..]].concat();
                for (old, new) in [(text, edited.as_str()), (edited.as_str(), text)] {
                    let again = parse_again(new, parse(old), Unchanged::between(old, new));
                    assert_eq!(shown(&again), shown(&parse(new)), "{old}\n---\n{new}");
                }
            }
        }
    }
}
