//! Changes of the settings on which reading depends, from the tokens of a statement.

use crate::lexer::{Token, TokenKind};

/// A change by a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change<'a> {
    Set {
        value: Value,
        scope: Scope,
    },
    /// It may have changed them.
    Doubt {
        strings: bool,
        encoding: bool,
    },
    /// It defines code that may change them whenever it runs, or what later sessions begin with.
    LastingDoubt {
        strings: bool,
        encoding: bool,
    },
    Begin,
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(&'a str),
    Release(&'a str),
    RollbackTo(&'a str),
}

/// A setting with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    StandardConformingStrings(bool),
    EncodingIsSafe(bool),
    DefaultStrings,
    DefaultEncoding,
    Defaults,
}

impl Value {
    pub(super) fn is_about_strings(self) -> bool {
        matches!(self, Self::StandardConformingStrings(_) | Self::DefaultStrings | Self::Defaults)
    }
}

/// For how long a setting holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Session,
    /// Until the transaction ends.
    Local,
}

const STRINGS: &str = "standard_conforming_strings";
const ENCODING: &str = "client_encoding";

/// Encodings in which a byte of an ASCII character can be a part of another one: only for clients.
///
/// Source: PostgreSQL 18, `src/common/encnames.c`, names without other characters than letters and digits.
const UNSAFE_ENCODINGS: [&str; 17] = [
    "big5",
    "gb18030",
    "gbk",
    "johab",
    "mskanji",
    "shiftjis",
    "shiftjis2004",
    "sjis",
    "uhc",
    "win932",
    "win936",
    "win949",
    "win950",
    "windows932",
    "windows936",
    "windows949",
    "windows950",
];

pub(super) fn is_safe_encoding(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    !UNSAFE_ENCODINGS.contains(&plain.as_str())
}

/// A boolean as PostgreSQL reads it; words may be abbreviated.
///
/// Source: PostgreSQL 18, `src/backend/utils/adt/bool.c`, `parse_bool_with_len`.
pub fn boolean(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let abbreviates = |word: &str, least: usize| text.len() >= least && word.starts_with(text.as_str());
    if text == "1" || abbreviates("true", 1) || abbreviates("yes", 1) || abbreviates("on", 2) {
        return Some(true);
    }
    let is_false = text == "0" || abbreviates("false", 1) || abbreviates("no", 1) || abbreviates("off", 2);
    is_false.then_some(false)
}

impl<'a> Change<'a> {
    /// `None` where the statement leaves them alone.
    pub(super) fn read(text: &'a str, tokens: &[Token]) -> Option<Self> {
        let mut words = Words { text, tokens };
        let verb = words.keyword();
        let plain = match verb.as_str() {
            "SET" => words.set(),
            "RESET" => words.reset(),
            "DISCARD" if words.take("ALL") => Some(Self::Set { value: Value::Defaults, scope: Scope::Session }),
            "SELECT" => words.set_config(),
            "BEGIN" => return Some(Self::Begin),
            "START" => return words.take("TRANSACTION").then_some(Self::Begin),
            "COMMIT" if words.take("PREPARED") => return None,
            "COMMIT" | "END" => return Some(Self::Commit { chain: words.chains() }),
            "PREPARE" if words.take("TRANSACTION") => return Some(Self::Commit { chain: false }),
            "ROLLBACK" if words.take("PREPARED") => return None,
            "ROLLBACK" | "ABORT" => return Some(words.rollback()),
            "SAVEPOINT" => return words.next().map(|token| Self::Savepoint(token.text(text))),
            "RELEASE" => {
                words.take("SAVEPOINT");
                return words.next().map(|token| Self::Release(token.text(text)));
            }
            _ => None,
        };
        plain.or_else(|| Self::doubt(text, &verb, tokens))
    }

    /// The settings that a statement that is not understood names, in quotes or outside of them.
    fn doubt(text: &str, verb: &str, tokens: &[Token]) -> Option<Self> {
        let statement = tokens.first().zip(tokens.last()).map(|(first, last)| first.range.cover(last.range))?;
        let statement = &text[statement.as_usize()];
        let computed = occurrences(statement, "set_config").any(|at| !names_other_setting(&statement[at..]));
        let says = |word: &'static str| occurrences(statement, word).next().is_some();
        let strings = computed || says("conforming");
        let encoding = computed || says(ENCODING);
        if !strings && !encoding {
            return None;
        }
        match verb {
            "CREATE" | "ALTER" | "PREPARE" => Some(Self::LastingDoubt { strings, encoding }),
            "COMMENT" | "SHOW" => None,
            _ => Some(Self::Doubt { strings, encoding }),
        }
    }
}

/// Where a text holds a word, given in lower case. It begins with a letter.
pub(super) fn occurrences(text: &str, word: &'static str) -> impl Iterator<Item = usize> {
    let (text, word) = (text.as_bytes(), word.as_bytes());
    // One comparison excludes most places, and the whole text is searched.
    let first = word.first().copied().unwrap_or_default();
    let starts = text[..(text.len() + 1).saturating_sub(word.len())].iter().enumerate();
    let begins = starts.filter(move |(_, byte)| **byte | 0x20 == first).map(|(at, _)| at);
    begins.filter(move |at| text[*at..*at + word.len()].eq_ignore_ascii_case(word))
}

/// Whether a call that begins here is one of `set_config` with the name of another setting as a constant, in code or in
/// the text of code.
fn names_other_setting(call: &str) -> bool {
    let arguments = || call["set_config".len()..].trim_start().strip_prefix('(')?.trim_start().strip_prefix('\'');
    let Some(arguments) = arguments() else { return false };
    let name = arguments.trim_start_matches('\'');
    let (name, rest) = name.split_at(name.find('\'').unwrap_or(name.len()));
    let is_setting = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
    let is_whole = rest.trim_start_matches('\'').trim_start().starts_with(',');
    is_setting && is_whole && ![STRINGS, ENCODING].contains(&name.to_ascii_lowercase().as_str())
}

/// The tokens that are left of a statement.
struct Words<'a, 't> {
    text: &'a str,
    tokens: &'t [Token],
}

impl<'a> Words<'a, '_> {
    fn next(&mut self) -> Option<Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(*first)
    }

    /// The next word in upper case; empty where none follows.
    fn keyword(&mut self) -> String {
        let word = self.next().filter(|token| token.kind == TokenKind::Word);
        word.map_or_else(String::new, |word| word.text(self.text).to_ascii_uppercase())
    }

    fn take(&mut self, keyword: &str) -> bool {
        let found = self.tokens.first().is_some_and(|token| token.is_keyword(self.text, keyword));
        self.tokens = &self.tokens[usize::from(found)..];
        found
    }

    fn take_punctuation(&mut self, character: u8) -> bool {
        let found = self.tokens.first().is_some_and(|token| token.is_punctuation(character));
        self.tokens = &self.tokens[usize::from(found)..];
        found
    }

    fn chains(&self) -> bool {
        let is =
            |at: usize, keyword: &str| self.tokens.get(at).is_some_and(|token| token.is_keyword(self.text, keyword));
        (0..2).any(|at| is(at, "AND") && is(at + 1, "CHAIN"))
    }

    fn rollback(&mut self) -> Change<'a> {
        let _ = self.take("WORK") || self.take("TRANSACTION");
        if !self.take("TO") {
            return Change::Rollback { chain: self.chains() };
        }
        self.take("SAVEPOINT");
        self.next().map_or(Change::Rollback { chain: false }, |token| Change::RollbackTo(token.text(self.text)))
    }

    /// `[SESSION | LOCAL] name {= | TO} value`, `NAMES value`.
    fn set(&mut self) -> Option<Change<'a>> {
        let scope = if self.take("LOCAL") { Scope::Local } else { Scope::Session };
        self.take("SESSION");
        let name = self.next()?;
        if name.is_keyword(self.text, "NAMES") {
            let value = match self.next() {
                Some(token) if !token.is_keyword(self.text, "DEFAULT") => self.encoding(token)?,
                _ => Value::DefaultEncoding,
            };
            return Some(Change::Set { value, scope });
        }
        let name = name_of(name, self.text);
        let is_default = |token: Token| token.is_keyword(self.text, "DEFAULT");
        let value = self.tokens.get(1).copied()?;
        let value = match name.as_str() {
            STRINGS if is_default(value) => Value::DefaultStrings,
            ENCODING if is_default(value) => Value::DefaultEncoding,
            STRINGS => Value::StandardConformingStrings(boolean(&content(value, self.text)?)?),
            ENCODING => self.encoding(value)?,
            _ => return None,
        };
        (self.tokens.len() == 2).then_some(Change::Set { value, scope })
    }

    fn encoding(&self, token: Token) -> Option<Value> {
        Some(Value::EncodingIsSafe(is_safe_encoding(&content(token, self.text)?)))
    }

    fn reset(&mut self) -> Option<Change<'a>> {
        let value = if self.take("ALL") {
            Value::Defaults
        } else {
            match name_of(self.next()?, self.text).as_str() {
                STRINGS => Value::DefaultStrings,
                ENCODING => Value::DefaultEncoding,
                _ => return None,
            }
        };
        Some(Change::Set { value, scope: Scope::Session })
    }

    /// A whole statement `SELECT set_config('name', 'value', false)`.
    fn set_config(&mut self) -> Option<Change<'a>> {
        if self.take("PG_CATALOG") {
            self.take_punctuation(b'.').then_some(())?;
        }
        let (name, value, local) = self.call()?;
        if self.take("AS") {
            self.next();
        }
        if !self.tokens.is_empty() {
            return None;
        }
        let value = match name.to_ascii_lowercase().as_str() {
            STRINGS => Value::StandardConformingStrings(boolean(&value)?),
            ENCODING => Value::EncodingIsSafe(is_safe_encoding(&value)),
            _ => return None,
        };
        let scope = if boolean(&local)? { Scope::Local } else { Scope::Session };
        Some(Change::Set { value, scope })
    }

    /// The constants of a call of `set_config`.
    fn call(&mut self) -> Option<(String, String, String)> {
        let text = self.text;
        let function = self.next().filter(|token| name_of(*token, text) == "set_config");
        function.filter(|_| self.take_punctuation(b'('))?;
        let name = content(self.next()?, text)?;
        self.take_punctuation(b',').then_some(())?;
        let value = content(self.next()?, text)?;
        self.take_punctuation(b',').then_some(())?;
        let local = content(self.next()?, text)?;
        self.take_punctuation(b')').then_some((name, value, local))
    }
}

/// The name of a setting or function, in lower case.
fn name_of(token: Token, text: &str) -> String {
    token.text(text).trim_matches('"').to_ascii_lowercase()
}

/// The value of a constant, or the word itself; `None` where it has escapes.
fn content(token: Token, text: &str) -> Option<String> {
    let written = token.text(text);
    match token.kind {
        TokenKind::Word | TokenKind::Number => Some(written.to_owned()),
        TokenKind::QuotedIdentifier => Some(written.trim_matches('"').to_owned()),
        TokenKind::String if !written.contains('\\') => {
            let inside = written.trim_start_matches(['e', 'E']).strip_prefix('\'')?.strip_suffix('\'')?;
            (!inside.contains('\'')).then(|| inside.to_owned())
        }
        TokenKind::DollarString => {
            let tag = written[1..].find('$')? + 2;
            written.get(tag..written.len() - tag).map(str::to_owned)
        }
        _ => None,
    }
}
