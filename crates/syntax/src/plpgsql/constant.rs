//! Dynamic SQL whose text is known, wholly or in part, before it runs.

use super::{BodyText, SqlText};
use crate::lexer::{Token, TokenKind, tokenize};
use crate::source::TextRange;

/// The text in [`ConstantSql::text`] for a part known only at run time. It parses as a name or in quotes.
pub const HOLE: &str = "pgvet_unknown";

/// The text that an expression makes, as far as it is constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstantSql {
    /// With [`HOLE`] for every unknown part.
    pub text: String,
    pub holes: Vec<Hole>,
    pieces: Vec<Piece>,
}

/// A part known only at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// Where [`HOLE`] is in the text.
    pub range: TextRange,
    /// The expression that fills it, in the source.
    pub expression: TextRange,
    pub kind: HoleKind,
}

/// How the unknown part is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoleKind {
    /// `%I`, `quote_ident(x)`.
    Identifier,
    /// `%L`, `quote_literal(x)`, `quote_nullable(x)`.
    Literal,
    /// Anything.
    Raw,
}

/// Text from `text` on is at `source`, byte for byte if `verbatim`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    text: TextRange,
    source: TextRange,
    verbatim: bool,
}

impl ConstantSql {
    /// Whether the whole text is known.
    pub fn is_complete(&self) -> bool {
        self.holes.is_empty()
    }

    /// Where a part of the text comes from; the whole literal or expression where it does not stand there verbatim.
    pub fn to_source(&self, range: TextRange) -> TextRange {
        let mut found = TextRange::default();
        for piece in &self.pieces {
            let (start, end) = (piece.text.start.max(range.start), piece.text.end.min(range.end));
            if start < end {
                let exact = TextRange::new(start, end).shifted(piece.source.start);
                let exact = TextRange::new(exact.start - piece.text.start, exact.end - piece.text.start);
                found = found.cover(if piece.verbatim { exact } else { piece.source });
            }
        }
        found
    }

    fn push(&mut self, text: &str, source: TextRange, verbatim: bool) {
        let start = self.text.len() as u32;
        self.text.push_str(text);
        let text = TextRange::new(start, self.text.len() as u32);
        self.pieces.push(Piece { text, source, verbatim });
    }

    fn hole(&mut self, expression: TextRange, kind: HoleKind) {
        let quote = if kind == HoleKind::Literal { "'" } else { "" };
        let start = (self.text.len() + quote.len()) as u32;
        self.push(&format!("{quote}{HOLE}{quote}"), expression, false);
        self.holes.push(Hole { range: TextRange::new(start, start + HOLE.len() as u32), expression, kind });
    }
}

impl SqlText {
    /// [`constant_sql`] of this expression. Ranges are offsets in the source of the body.
    pub fn constant(&self, source: &str) -> Option<ConstantSql> {
        constant_sql(source, self.place)
    }
}

/// The text that the expression at `range` of `source` makes: literals, `||`, `format(...)`, `quote_ident(...)`,
/// `quote_literal(...)` and casts to text; everything else is a hole. `None` where nothing is known.
pub fn constant_sql(source: &str, range: TextRange) -> Option<ConstantSql> {
    let tokens = tokenize(source, range);
    let mut folded = ConstantSql { text: String::new(), holes: Vec::new(), pieces: Vec::new() };
    Folder { source }.concatenation(&tokens, &mut folded, MAX_DEPTH);
    (folded.pieces.len() > folded.holes.len()).then_some(folded)
}

/// Parentheses and calls are followed this deep.
const MAX_DEPTH: usize = 32;

struct Folder<'a> {
    source: &'a str,
}

impl Folder<'_> {
    fn concatenation(&self, tokens: &[Token], out: &mut ConstantSql, depth: usize) {
        for operand in self.split(tokens, |token| token.text(self.source) == "||") {
            self.operand(operand, out, depth);
        }
    }

    /// Cuts at the separators outside parentheses and CASE.
    fn split<'t>(&self, tokens: &'t [Token], separates: impl Fn(&Token) -> bool) -> Vec<&'t [Token]> {
        let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0usize);
        for (at, token) in tokens.iter().enumerate() {
            if matches!(token.kind, TokenKind::Punctuation(b'(' | b'[')) || token.is_keyword(self.source, "CASE") {
                depth += 1;
            } else if matches!(token.kind, TokenKind::Punctuation(b')' | b']')) || token.is_keyword(self.source, "END")
            {
                depth = depth.saturating_sub(1);
            } else if depth == 0 && separates(token) {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
        }
        parts.push(&tokens[start..]);
        parts
    }

    fn operand(&self, tokens: &[Token], out: &mut ConstantSql, depth: usize) {
        let tokens = self.without_text_cast(tokens);
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return };
        let whole = first.range.cover(last.range);
        if let Some(literal) = literal_token(tokens) {
            let body = BodyText::from_literal(self.source, literal.range);
            let verbatim = body.is_verbatim();
            out.push(body.text(), if verbatim { body.range() } else { literal.range }, verbatim);
        } else if let Some(inside) = depth.checked_sub(1).and_then(|_| self.enclosed(tokens)) {
            self.concatenation(inside, out, depth - 1);
        } else if depth == 0 || !self.call(tokens, out, depth - 1) {
            out.hole(whole, HoleKind::Raw);
        }
    }

    /// Without `::text` or `::varchar` at the end.
    fn without_text_cast<'t>(&self, tokens: &'t [Token]) -> &'t [Token] {
        match tokens {
            [rest @ .., colons, name]
                if colons.text(self.source) == "::"
                    && ["text", "varchar"].iter().any(|text| name.text(self.source).eq_ignore_ascii_case(text)) =>
            {
                rest
            }
            _ => tokens,
        }
    }

    /// The tokens inside, if one pair of parentheses encloses everything.
    fn enclosed<'t>(&self, tokens: &'t [Token]) -> Option<&'t [Token]> {
        let [open, inside @ .., close] = tokens else { return None };
        if !open.is_punctuation(b'(') || !close.is_punctuation(b')') {
            return None;
        }
        let mut depth = 0usize;
        for token in inside {
            match token.kind {
                TokenKind::Punctuation(b'(') => depth += 1,
                TokenKind::Punctuation(b')') => depth = depth.checked_sub(1)?,
                // Neither a row nor a subquery.
                TokenKind::Punctuation(b',') if depth == 0 => return None,
                TokenKind::Word if depth == 0 && token.is_keyword(self.source, "SELECT") => return None,
                _ => {}
            }
        }
        Some(inside)
    }

    /// `format(...)` and the quoting functions. False if it is anything else.
    fn call(&self, tokens: &[Token], out: &mut ConstantSql, depth: usize) -> bool {
        let tokens = match tokens {
            [schema, point, rest @ ..]
                if schema.is_keyword(self.source, "PG_CATALOG") && point.is_punctuation(b'.') =>
            {
                rest
            }
            _ => tokens,
        };
        let [name, open, arguments @ .., close] = tokens else { return false };
        if name.kind != TokenKind::Word || !open.is_punctuation(b'(') || !close.is_punctuation(b')') {
            return false;
        }
        let arguments = self.split(arguments, |token| token.is_punctuation(b','));
        let kind = match name.text(self.source).to_ascii_lowercase().as_str() {
            "format" => return self.format(&arguments, out, depth),
            "quote_ident" => HoleKind::Identifier,
            "quote_literal" | "quote_nullable" => HoleKind::Literal,
            _ => return false,
        };
        let [argument] = arguments.as_slice() else { return false };
        self.quoted(argument, kind, out, depth);
        true
    }

    fn quoted(&self, argument: &[Token], kind: HoleKind, out: &mut ConstantSql, depth: usize) {
        let (Some(first), Some(last)) = (argument.first(), argument.last()) else { return };
        let whole = first.range.cover(last.range);
        let mut value = ConstantSql { text: String::new(), holes: Vec::new(), pieces: Vec::new() };
        self.concatenation(argument, &mut value, depth);
        match kind {
            _ if !value.is_complete() && kind != HoleKind::Raw => out.hole(whole, kind),
            HoleKind::Raw => out.append(value),
            HoleKind::Identifier => out.push(&format!("\"{}\"", value.text.replace('"', "\"\"")), whole, false),
            HoleKind::Literal => out.push(&format!("'{}'", value.text.replace('\'', "''")), whole, false),
        }
    }

    /// `format(template, ...)` as PostgreSQL 18 `text_format` in `src/backend/utils/adt/varlena.c` reads the template.
    fn format(&self, arguments: &[&[Token]], out: &mut ConstantSql, depth: usize) -> bool {
        let Some((template, values)) = arguments.split_first() else { return false };
        if values.iter().any(|value| value.first().is_some_and(|token| token.is_keyword(self.source, "VARIADIC"))) {
            return false;
        }
        let mut text = ConstantSql { text: String::new(), holes: Vec::new(), pieces: Vec::new() };
        self.concatenation(template, &mut text, depth);
        if !text.is_complete() {
            return false;
        }
        let mut rest = text.text.as_str();
        let (mut offset, mut next) = (0, 0);
        while let Some(percent) = rest.find('%') {
            out.copy(&text, offset, percent);
            let Some(specifier) = Specifier::read(&rest[percent + 1..]) else { return true };
            let at = TextRange::new((offset + percent) as u32, (offset + percent + 1 + specifier.length) as u32);
            if specifier.kind == '%' {
                out.push("%", text.to_source(at), false);
            } else {
                next = specifier.argument.unwrap_or(next);
                let kind = match specifier.kind {
                    'I' => HoleKind::Identifier,
                    'L' => HoleKind::Literal,
                    _ => HoleKind::Raw,
                };
                match values.get(next).filter(|_| !specifier.padded) {
                    Some(value) => self.quoted(value, kind, out, depth),
                    // Padded to a width, or too few arguments, which PostgreSQL refuses.
                    None => out.hole(text.to_source(at), kind),
                }
                next += 1;
            }
            offset = at.end as usize;
            rest = &text.text[offset..];
        }
        out.copy(&text, offset, rest.len());
        true
    }
}

impl ConstantSql {
    fn append(&mut self, other: Self) {
        let by = self.text.len() as u32;
        self.text.push_str(&other.text);
        self.holes.extend(other.holes.into_iter().map(|hole| Hole { range: hole.range.shifted(by), ..hole }));
        self.pieces.extend(other.pieces.into_iter().map(|piece| Piece { text: piece.text.shifted(by), ..piece }));
    }

    /// Appends a part of a complete text.
    fn copy(&mut self, from: &Self, start: usize, length: usize) {
        if length == 0 {
            return;
        }
        let range = TextRange::new(start as u32, (start + length) as u32);
        let source = from.to_source(range);
        let verbatim = (source.end - source.start) as usize == length && from.pieces.iter().all(|piece| piece.verbatim);
        self.push(&from.text[start..start + length], source, verbatim);
    }
}

/// `%[position$][flags][width]type`, without the percent sign.
pub struct Specifier {
    /// From 0.
    pub argument: Option<usize>,
    pub kind: char,
    /// Has flags or a width.
    pub padded: bool,
    pub length: usize,
}

impl Specifier {
    /// `None` where PostgreSQL would refuse the template.
    pub fn read(text: &str) -> Option<Self> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (argument, start) = match text.as_bytes().get(digits) {
            Some(b'$') if digits > 0 => (Some(text[..digits].parse::<usize>().ok()?.checked_sub(1)?), digits + 1),
            _ => (None, 0),
        };
        let flags = text[start..].bytes().take_while(|byte| *byte == b'-' || byte.is_ascii_digit()).count();
        let kind = text[start + flags..].chars().next().filter(|kind| matches!(kind, 's' | 'I' | 'L' | '%'))?;
        Some(Self { argument, kind, padded: flags > 0, length: start + flags + 1 })
    }
}

fn literal_token(tokens: &[Token]) -> Option<&Token> {
    match tokens {
        [token] if matches!(token.kind, TokenKind::String | TokenKind::DollarString) => Some(token),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(expression: &str) -> Option<ConstantSql> {
        constant_sql(expression, TextRange::new(0, expression.len() as u32))
    }

    fn text(expression: &str) -> String {
        fold(expression).map_or_else(|| "-".to_owned(), |folded| folded.text)
    }

    #[test]
    fn constants_fold_completely() {
        for (expression, expected) in [
            ("'DROP TABLE a'", "DROP TABLE a"),
            ("$q$SELECT 'x'$q$", "SELECT 'x'"),
            ("'DROP ' || ('TABLE' || E'\\ta')::text", "DROP TABLE\ta"),
            ("format('DROP TABLE %I.%I', 'public', 'a b')", "DROP TABLE \"public\".\"a b\""),
            ("format('SELECT %L, 100%%', 'it''s')", "SELECT 'it''s', 100%"),
            ("pg_catalog.format('%2$s %1$s', 'b', 'a')", "a b"),
            ("format('a' || ' %s', 'b')", "a b"),
            ("'ALTER TABLE ' || quote_ident('T')", "ALTER TABLE \"T\""),
        ] {
            let folded = fold(expression).unwrap();
            assert!(folded.is_complete(), "{expression}");
            assert_eq!(folded.text, expected, "{expression}");
        }
    }

    #[test]
    fn unknown_parts_are_holes() {
        let folded = fold("format('DROP TABLE %I CASCADE', tbl)").unwrap();
        assert_eq!(folded.text, "DROP TABLE pgvet_unknown CASCADE");
        assert_eq!(folded.holes[0].kind, HoleKind::Identifier);
        let source = "'DELETE FROM ' || t || ' WHERE x = ' || quote_literal(v)";
        let folded = fold(source).unwrap();
        assert_eq!(folded.text, "DELETE FROM pgvet_unknown WHERE x = 'pgvet_unknown'");
        let expressions: Vec<_> = folded.holes.iter().map(|hole| &source[hole.expression.as_usize()]).collect();
        assert_eq!(expressions, ["t", "v"]);
        for hole in &folded.holes {
            assert_eq!(&folded.text[hole.range.as_usize()], HOLE);
        }
        assert_eq!(text("'a ' || CASE WHEN b THEN 'c' || 'd' ELSE '' END || ' e'"), "a pgvet_unknown e");
        assert_eq!(text("format('x %s', 'a' || b)"), "x apgvet_unknown");
        assert_eq!(text("format('x %9s', 'a')"), "x pgvet_unknown");
        assert_eq!(text("'x' || (SELECT 'y')"), "xpgvet_unknown");
        assert_eq!(text("sql"), "-");
        assert_eq!(text("format(template, 'a')"), "-");
        assert_eq!(text("replace('DROP TABLE x', 'x', y)"), "-");
    }

    #[test]
    fn offsets_of_the_text_map_to_the_source() {
        for (source, part, expected) in [
            ("'DROP TABLE a'", "TABLE", "TABLE"),
            ("'DROP ' || $$TABLE a$$", "TABLE a", "TABLE a"),
            ("format('DROP TABLE %I; x', 'a')", "TABLE", "TABLE"),
            ("format('DROP TABLE %I; xyz', 'a')", "xyz", "xyz"),
            ("format('DROP TABLE %I; xyz', 'a')", "\"a\"", "'a'"),
            ("'it''s'", "s", "'it''s'"),
        ] {
            let folded = fold(source).unwrap();
            let at = folded.text.rfind(part).unwrap() as u32;
            let range = folded.to_source(TextRange::new(at, at + part.len() as u32));
            assert_eq!(&source[range.as_usize()], expected, "{source}");
        }
    }

    #[test]
    fn bad_templates_and_deep_nesting_do_no_harm() {
        for expression in
            ["format('%')", "format('%9999999999999999999999$s')", "format('%0$s', a)", "format()", "||", ""]
        {
            let _ = fold(expression);
        }
        let deep = format!("{}'a'{}", "(".repeat(5000), ")".repeat(5000));
        assert_eq!(text(&deep), "-");
    }
}
