use crate::ranges::assert_inside;
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::{self, Piece, PieceKind};

/// Pieces stand in order, and nothing is lost but blanks, semicolons and MySQL's delimiters.
pub fn split(text: &str) {
    let result = statement::split(text);
    assert_inside(text, &result);
    let mut covered = result.comments.clone();
    for piece in &result.pieces {
        if piece.kind.is_statement() {
            assert!(piece.tokens.iter().all(|token| piece.range.contains(token.range)), "{piece:?} of {text:?}");
            assert!(piece.tokens.is_sorted_by(|one, next| one.range.end <= next.range.start), "{piece:?} of {text:?}");
            covered.extend(piece.tokens.iter().map(|token| token.range));
        } else {
            covered.push(piece.range);
        }
    }
    // A psql command, or a branch that is not run, may be inside a statement.
    let is_apart = |piece: &&Piece| !matches!(piece.kind, PieceKind::MetaCommand | PieceKind::NotRun);
    let statements = result.pieces.iter().filter(is_apart);
    let starts = statements.map(|piece| piece.range);
    assert!(starts.is_sorted_by(|one, next| one.end <= next.start), "{:?} of {text:?}", result.pieces);

    let has_delimiter = result.pieces.iter().any(|piece| piece.kind == PieceKind::Delimiter);
    let is_nothing = |c: char| c.is_ascii_whitespace() || matches!(c, ';' | '\u{b}' | '\u{feff}');
    covered.push(TextRange::at(text.len() as u32));
    covered.sort();
    let mut at = 0;
    for range in covered {
        let between = text.get(at..range.start as usize).unwrap_or_default();
        assert!(has_delimiter || between.chars().all(is_nothing), "{between:?} is lost of {text:?}");
        at = at.max(range.end as usize);
    }
}
