//! Placeholders of template engines, psql and PostgreSQL's extension scripts, and the fillers that replace them so that
//! the rest of the statement can be parsed.

use crate::lexer::{Lexer, Token, TokenKind};
use crate::source::TextRange;

/// A placeholder that was replaced before parsing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// In the file, with its delimiters.
    pub range: TextRange,
    pub kind: PlaceholderKind,
    /// As written.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceholderKind {
    /// `{{ ... }}`, `${name}`, `$%NAME%$`, `$name$`, `{name}`.
    Template,
    /// The same where PostgreSQL refuses the statement with a value in its place, and accepts it without one.
    Omitted,
    /// `{{ if ... }}`, `{{ end }}`, `{% ... %}`: no value.
    Control,
    /// psql's `:name`, `:'name'` and `:"name"`.
    PsqlVariable,
    /// `@extschema@` and other placeholders in the script of an extension.
    Extension,
    /// `/* SCHEMA */` directly before a dot, where no name stands: a program replaces the comment.
    Comment,
    /// `$1`.
    Parameter,
    /// A psql command inside a statement.
    MetaCommand,
    /// `\:\:`: the colons of a cast, which psql or a program would read as the beginning of a variable.
    EscapedCast,
}

/// `::` where a single colon begins a variable.
///
/// Source: PostgreSQL 18, `src/fe_utils/psqlscan.l`: `"\\"[;:]` puts the character after the backslash into the query.
pub(super) const ESCAPED_CAST: &str = r"\:\:";

impl Placeholder {
    /// The identifier that stands in for it in the catalog, where it stands for one.
    pub fn identifier(&self) -> String {
        let mut text = self.text.to_ascii_lowercase().into_bytes();
        Filler::Identifier.apply(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// The text that replaces a placeholder; always as long as the placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filler {
    Blank,
    /// The characters of the placeholder that an identifier may hold, `_` for the others: always the same identifier
    /// for the same placeholder.
    Identifier,
    String,
    Number,
    /// psql's `:'name'` and `:"name"` are a string and an identifier already.
    Quoted,
    /// `::`.
    Cast,
}

impl Filler {
    pub(super) fn apply(self, text: &mut [u8]) {
        let sanitize = |bytes: &mut [u8]| {
            for byte in bytes.iter_mut().filter(|byte| !byte.is_ascii_alphanumeric() && byte.is_ascii()) {
                *byte = b'_';
            }
        };
        match (self, text) {
            (Self::Identifier, text) => {
                sanitize(text);
                text[0] = b'_';
            }
            (Self::String, [first, middle @ .., last]) => {
                sanitize(middle);
                (*first, *last) = (b'\'', b'\'');
            }
            (Self::Number, [first, rest @ ..]) => {
                *first = b'1';
                rest.fill(b' ');
            }
            (Self::Quoted, [colon, ..]) => *colon = b' ',
            (Self::Cast, text) => text.copy_from_slice(b"::  "),
            // Line breaks stay, because a comment may precede them.
            (_, text) => text.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' '),
        }
    }
}

/// A placeholder, what it is replaced by, and the range that is replaced.
#[derive(Debug, Clone)]
pub(super) struct Hole {
    pub(super) placeholder: Placeholder,
    pub(super) filler: Filler,
    /// The placeholder, or the placeholder and the dot after it.
    pub(super) filled: TextRange,
}

impl Hole {
    /// Changes the filler to the one to try if PostgreSQL refuses this one. Returns whether there is one.
    pub(super) fn refill(&mut self) -> bool {
        self.filler = match self.filler {
            Filler::Identifier => Filler::String,
            Filler::String => Filler::Number,
            Filler::Number if self.placeholder.kind == PlaceholderKind::Template => {
                self.placeholder.kind = PlaceholderKind::Omitted;
                Filler::Blank
            }
            Filler::Blank | Filler::Number | Filler::Quoted | Filler::Cast => return false,
        };
        true
    }

    /// The placeholder of a statement that PostgreSQL refuses with any filler.
    pub(super) fn unknown(self) -> Placeholder {
        match self.placeholder.kind {
            PlaceholderKind::Omitted => Placeholder { kind: PlaceholderKind::Template, ..self.placeholder },
            _ => self.placeholder,
        }
    }
}

/// Whether this tag is not a value, but a condition, a loop or a comment.
pub(super) fn is_control(tag: &str) -> bool {
    if tag.starts_with("{%") || tag.starts_with("{#") {
        return true;
    }
    let Some(inner) = tag.strip_prefix("{{") else { return false };
    let inner = inner.trim_start_matches(['-', '~', ' ', '\t', '\n', '\r']);
    let word = inner.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let words = ["if", "else", "end", "range", "with", "define", "block", "template", "break", "continue"];
    words.contains(&word)
        || inner.starts_with("/*")
        || inner.starts_with(['#', '^', '/', '!'])
        || (inner.starts_with('$') && inner.contains(":="))
}

/// The placeholders of a statement that can be nothing else; with `loose`, also those that are SQL in another place:
/// `:name`, `@name@`, `$1`.
pub(super) fn find(text: &str, tokens: &[Token], loose: bool) -> Vec<Hole> {
    let mut holes = Vec::new();
    let mut brackets = 0u32;
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].kind {
            TokenKind::Punctuation(b'[') => brackets += 1,
            TokenKind::Punctuation(b']') => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        let Some((kind, count)) = recognize(text, &tokens[at..], loose, brackets > 0) else {
            if tokens[at].is_punctuation(b'.') {
                holes.extend(comment_for_name(text, at.checked_sub(1).map(|before| tokens[before]), tokens[at]));
            }
            at += 1;
            continue;
        };
        let range = tokens[at].range.cover(tokens[at + count - 1].range);
        let before = at.checked_sub(1).map(|before| tokens[before]);
        holes.push(hole(text, kind, range, before, tokens.get(at + count)));
        at += count;
    }
    holes
}

/// Words after which a name stands.
const BEFORE_NAMES: [&str; 22] = [
    "CALL",
    "CASCADE",
    "COLUMN",
    "CONSTRAINT",
    "DOMAIN",
    "EXISTS",
    "FROM",
    "FUNCTION",
    "INDEX",
    "INTO",
    "JOIN",
    "ON",
    "ONLY",
    "POLICY",
    "PROCEDURE",
    "REFERENCES",
    "SEQUENCE",
    "TABLE",
    "TRUNCATE",
    "TYPE",
    "UPDATE",
    "VIEW",
];

/// A comment of one word that is glued to a dot, where a name must stand: `ON /* SCHEMA */."users"`.
fn comment_for_name(text: &str, before: Option<Token>, dot: Token) -> Option<Hole> {
    let before = before?;
    let needs_name = match before.kind {
        TokenKind::Word => BEFORE_NAMES.iter().any(|word| before.is_keyword(text, word)),
        TokenKind::Punctuation(b'(' | b',' | b'=') => true,
        _ => false,
    };
    let between = &text[before.range.end as usize..dot.range.start as usize];
    let start = between.rfind("/*").filter(|_| needs_name && between.ends_with("*/"))?;
    let word = between.get(start + 2..between.len() - 2)?.trim();
    let is_word = !word.is_empty() && word.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    let range = TextRange::new(before.range.end + start as u32, dot.range.start);
    let placeholder = Placeholder { range, kind: PlaceholderKind::Comment, text: text[range.as_usize()].to_owned() };
    is_word.then(|| Hole { placeholder, filler: Filler::Blank, filled: range.cover(dot.range) })
}

/// The kind of the placeholder that `tokens` begin with, and the number of its tokens.
fn recognize(text: &str, tokens: &[Token], loose: bool, in_brackets: bool) -> Option<(PlaceholderKind, usize)> {
    let token = tokens[0];
    if token.kind == TokenKind::Placeholder {
        let control = is_control(token.text(text));
        return Some((if control { PlaceholderKind::Control } else { PlaceholderKind::Template }, 1));
    }
    if !loose && !is_extension_macro(text, tokens) {
        return None;
    }
    let glued = |at: usize| {
        let next = tokens.get(at)?;
        (tokens[at - 1].range.end == next.range.start).then_some(*next)
    };
    match token.kind {
        TokenKind::Parameter => Some((PlaceholderKind::Parameter, 1)),
        TokenKind::Punctuation(b':') => match glued(1)?.kind {
            TokenKind::String | TokenKind::QuotedIdentifier => Some((PlaceholderKind::PsqlVariable, 2)),
            TokenKind::Word if !in_brackets => Some((PlaceholderKind::PsqlVariable, 2)),
            _ => None,
        },
        TokenKind::Operator if token.text(text) == "@" && glued(1)?.kind == TokenKind::Word => {
            // `@extschema:name@` names the schema of another extension.
            let end = if glued(2)?.is_punctuation(b':') { 4 } else { 2 };
            (glued(end)?.text(text) == "@").then_some((PlaceholderKind::Extension, end + 1))
        }
        _ => None,
    }
}

/// `@extschema` and `@extowner`, which are SQL nowhere.
fn is_extension_macro(text: &str, tokens: &[Token]) -> bool {
    let words = ["extschema", "extowner"];
    matches!(tokens, [mark, word, ..] if mark.kind == TokenKind::Operator && words.contains(&word.text(text)))
}

fn hole(text: &str, kind: PlaceholderKind, range: TextRange, before: Option<Token>, after: Option<&Token>) -> Hole {
    let placeholder = Placeholder { range, kind, text: text[range.as_usize()].to_owned() };
    let glued_before = before.is_some_and(|before| before.range.end == range.start && is_word(before));
    let after_dot = before.is_some_and(|before| before.is_punctuation(b'.'));
    let dot = after.filter(|after| after.is_punctuation(b'.') && after.range.start == range.end);
    let filler = match kind {
        PlaceholderKind::Control | PlaceholderKind::MetaCommand => Filler::Blank,
        PlaceholderKind::EscapedCast => Filler::Cast,
        PlaceholderKind::PsqlVariable if text[range.as_usize()].ends_with(['\'', '"']) => Filler::Quoted,
        _ => Filler::Identifier,
    };
    match dot {
        // A schema that only the program knows: without it the name is found along the search path.
        Some(dot) if filler != Filler::Blank && !glued_before && !after_dot => {
            Hole { placeholder, filler: Filler::Blank, filled: range.cover(dot.range) }
        }
        _ => Hole { placeholder, filler, filled: range },
    }
}

fn is_word(token: Token) -> bool {
    matches!(token.kind, TokenKind::Word | TokenKind::Placeholder | TokenKind::QuotedIdentifier)
}

/// `text` with every placeholder that can be nothing else replaced, at the same length; for bodies of functions.
pub fn fill_text(text: &str) -> String {
    let mut lexer = Lexer::new(text, TextRange::new(0, text.len() as u32));
    lexer.templates = true;
    let tokens: Vec<_> = lexer.collect();
    let holes = find(text, &tokens, false);
    filled(text, TextRange::new(0, text.len() as u32), &holes)
}

/// Whether a text that PostgreSQL refuses as it is will be replaced in part: `@extschema@` in the script of an
/// extension, `{{ name }}`, `${name}` and `:NAME` of template engines, and marks of unknown programs: `%%FIELDS%%`.
pub fn is_template(text: &str) -> bool {
    let marks = ["%%", "{{", "<%", "@ext"];
    marks.iter().any(|mark| text.contains(mark)) || has_colon_name(text) || fill_text(text) != text
}

/// `:NAME`, and not the cast `::name`.
fn has_colon_name(text: &str) -> bool {
    let names = |after: &str| after.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    text.match_indices(':').any(|(at, _)| !text[..at].ends_with(':') && names(&text[at + 1..]))
}

/// Whether a comment stands in place of a name, so that a program must replace it: `ON /* SCHEMA */."users"`.
pub fn has_comment_for_name(text: &str) -> bool {
    if !text.contains("*/.") {
        return false;
    }
    let tokens: Vec<_> = Lexer::new(text, TextRange::new(0, text.len() as u32)).collect();
    tokens
        .windows(2)
        .any(|pair| pair[1].is_punctuation(b'.') && comment_for_name(text, Some(pair[0]), pair[1]).is_some())
}

/// The text of `range` with `holes` filled.
pub(super) fn filled(text: &str, range: TextRange, holes: &[Hole]) -> String {
    let mut bytes = text.as_bytes()[range.as_usize()].to_vec();
    for hole in holes {
        let at = TextRange::new(hole.filled.start - range.start, hole.filled.end - range.start);
        hole.filler.apply(&mut bytes[at.as_usize()]);
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text[range.as_usize()].to_owned())
}
