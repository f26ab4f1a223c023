//! The statements of a document.

use crate::document::Document;
use lsp_types::{DocumentSymbol, Location, SymbolInformation, SymbolKind, Uri};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::{Piece, split};
use pgvet_workspace::inert;

/// A statement of a document.
#[derive(Debug)]
struct Symbol {
    name: String,
    kind: SymbolKind,
    range: TextRange,
    /// Its first words.
    head: TextRange,
}

/// Maximum number of words that describe a statement.
const WORDS: usize = 8;

fn symbols(document: &Document) -> Vec<Symbol> {
    let text = document.text();
    let pieces = split(text).pieces;
    pieces.iter().filter(|piece| piece.kind.is_statement()).filter_map(|piece| symbol(piece, text)).collect()
}

fn symbol(piece: &Piece, text: &str) -> Option<Symbol> {
    // A list of columns or a body says nothing about what the statement is.
    let is_head = |at: usize| {
        at < WORDS && !piece.tokens[at].is_punctuation(b'(') && !piece.tokens[at].text(text).starts_with('$')
    };
    let length = (0..piece.tokens.len()).take_while(|at| is_head(*at)).count().max(1);
    let head = TextRange::new(piece.tokens.first()?.range.start, piece.tokens.get(length - 1)?.range.end);
    let words = text.get(head.as_usize())?.split_whitespace().collect::<Vec<_>>();
    let kind = kind(&words);
    Some(Symbol { name: inert::line(&words.join(" ")).into_owned(), kind, range: piece.range, head })
}

fn kind(words: &[&str]) -> SymbolKind {
    let has = |word: &str| words.iter().take(5).any(|other| other.eq_ignore_ascii_case(word));
    let kinds = [
        ("FUNCTION", SymbolKind::FUNCTION),
        ("PROCEDURE", SymbolKind::FUNCTION),
        ("TRIGGER", SymbolKind::EVENT),
        ("INDEX", SymbolKind::KEY),
        ("TYPE", SymbolKind::ENUM),
        ("SCHEMA", SymbolKind::NAMESPACE),
        ("VIEW", SymbolKind::INTERFACE),
        ("TABLE", SymbolKind::STRUCT),
        ("DO", SymbolKind::FUNCTION),
    ];
    kinds.into_iter().find(|(word, _)| has(word)).map_or(SymbolKind::OBJECT, |(_, kind)| kind)
}

pub(crate) fn tree(document: &Document) -> Vec<DocumentSymbol> {
    let tree = symbols(document).into_iter().map(|symbol| {
        #[expect(deprecated, reason = "the field must be given")]
        DocumentSymbol {
            name: symbol.name,
            detail: None,
            kind: symbol.kind,
            tags: None,
            deprecated: None,
            range: document.range(symbol.range),
            selection_range: document.range(symbol.head),
            children: None,
        }
    });
    tree.collect()
}

/// For clients that know no tree.
pub(crate) fn list(document: &Document, uri: &Uri) -> Vec<SymbolInformation> {
    let list = symbols(document).into_iter().map(|symbol| {
        #[expect(deprecated, reason = "the field must be given")]
        SymbolInformation {
            name: symbol.name,
            kind: symbol.kind,
            tags: None,
            deprecated: None,
            location: Location::new(uri.clone(), document.range(symbol.range)),
            container_name: None,
        }
    });
    list.collect()
}
