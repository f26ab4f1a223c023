//! The settings on which the reading of a text depends, followed through the statements of a script:
//! `standard_conforming_strings` says what a backslash in quotes is, `client_encoding` which bytes are quotes at all.
//!
//! Only the text is known here, not the database. What a script may have done to these settings without saying it
//! plainly makes them unknown, and the places that depend on them are reported.

mod change;

pub use change::boolean;

use crate::lexer::{Token, identifier};
use crate::source::TextRange;
use change::{Change, Scope, Value};
use smol_str::SmolStr;

/// A value that a script may leave unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known<T> {
    /// The value, or that one which is assumed.
    pub(super) value: T,
    /// The text that has made it unknown.
    pub(super) doubt: Option<TextRange>,
}

impl<T> Known<T> {
    fn certain(value: T) -> Self {
        Self { value, doubt: None }
    }
}

/// Both settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) standard_conforming_strings: Known<bool>,
    /// Whether each byte below 128 is the ASCII character of that number, as in all encodings that a server can have.
    pub(super) encoding_is_safe: Known<bool>,
}

impl Default for Values {
    /// PostgreSQL's defaults.
    fn default() -> Self {
        Self { standard_conforming_strings: Known::certain(true), encoding_is_safe: Known::certain(true) }
    }
}

impl Values {
    fn set(&mut self, value: Value) {
        match value {
            Value::StandardConformingStrings(on) => self.standard_conforming_strings = Known::certain(on),
            Value::EncodingIsSafe(safe) => self.encoding_is_safe = Known::certain(safe),
            Value::DefaultStrings => self.standard_conforming_strings = Self::default().standard_conforming_strings,
            Value::DefaultEncoding => self.encoding_is_safe = Self::default().encoding_is_safe,
            Value::Defaults => *self = Self::default(),
        }
    }

    fn doubt(&mut self, strings: bool, encoding: bool, cause: TextRange) {
        if strings {
            self.standard_conforming_strings.doubt = Some(cause);
        }
        if encoding {
            self.encoding_is_safe.doubt = Some(cause);
        }
    }
}

/// The settings now, and what SET LOCAL hides until the transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct State {
    present: Values,
    session: Values,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    before: State,
    savepoints: Vec<(SmolStr, State)>,
}

/// Follows the settings. Statements are assumed to succeed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Settings {
    state: State,
    block: Option<Block>,
    /// The text that makes them unknown at any time: code that may change them has been defined, or later sessions
    /// begin with other values.
    lasting_strings: Option<TextRange>,
    lasting_encoding: Option<TextRange>,
    /// The last statement that has set `standard_conforming_strings`.
    setter_of_strings: Option<TextRange>,
}

impl Settings {
    /// Whether a text may change them.
    pub(super) fn concern(text: &str) -> bool {
        const WORDS: [&[u8]; 4] = [b"conforming", b"encoding", b"names", b"set_config"];
        let bytes = text.as_bytes();
        let begins =
            |at: usize, word: &[u8]| bytes.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word));
        bytes.iter().enumerate().any(|(at, byte)| match byte | 0x20 {
            // Few words have the letter that the place of the others is found by.
            b'f' => at >= 3 && begins(at - 3, WORDS[0]),
            b'g' => at >= 7 && begins(at - 7, WORDS[1]) || at >= 9 && begins(at - 9, WORDS[3]),
            b'm' => at >= 2 && begins(at - 2, WORDS[2]),
            _ => false,
        })
    }

    /// The settings that the next statement is read with.
    pub(super) fn present(&self) -> Values {
        let mut values = self.state.present;
        if let Some(cause) = self.lasting_strings {
            values.doubt(true, false, cause);
        }
        if let Some(cause) = self.lasting_encoding {
            values.doubt(false, true, cause);
        }
        values
    }

    /// The statement that has set `standard_conforming_strings`: what is sent together with it is read before it runs.
    pub(super) fn setter_of_strings(&self) -> Option<TextRange> {
        self.setter_of_strings
    }

    /// A new connection: `\connect`.
    pub(super) fn connect(&mut self) {
        (self.state, self.block) = (State::default(), None);
    }

    /// `\encoding`.
    pub(super) fn set_encoding(&mut self, name: Option<&str>, range: TextRange) {
        match name {
            Some(name) => self.set(Value::EncodingIsSafe(change::is_safe_encoding(name)), Scope::Session, range),
            None => self.both(|values| values.doubt(false, true, range)),
        }
    }

    /// Follows a statement that may not run at all: what it changes is unknown afterwards.
    pub(super) fn may_run(&mut self, text: &str, tokens: &[Token]) {
        let before = self.clone();
        self.run(text, tokens);
        self.differs_maybe(&before, Self::range(tokens));
    }

    /// Marks the settings that differ from those before as unknown.
    pub(super) fn differs_maybe(&mut self, before: &Self, cause: TextRange) {
        let (old, new) = (before.state.present, self.state.present);
        if self != before {
            let strings = old.standard_conforming_strings != new.standard_conforming_strings;
            let encoding = old.encoding_is_safe != new.encoding_is_safe;
            *self = before.clone();
            self.both(|values| values.doubt(strings, encoding, cause));
        }
    }

    /// Follows a statement.
    pub(super) fn run(&mut self, text: &str, tokens: &[Token]) {
        let range = Self::range(tokens);
        match Change::read(text, tokens) {
            None => {}
            Some(Change::Set { value, scope }) => {
                if value.is_about_strings() {
                    self.setter_of_strings = Some(range);
                }
                self.set(value, scope, range);
            }
            Some(Change::Doubt { strings, encoding }) => self.both(|values| values.doubt(strings, encoding, range)),
            Some(Change::LastingDoubt { strings, encoding }) => {
                self.lasting_strings = strings.then_some(range).or(self.lasting_strings);
                self.lasting_encoding = encoding.then_some(range).or(self.lasting_encoding);
            }
            Some(Change::Begin) => {
                self.block.get_or_insert(Block { before: self.state, savepoints: Vec::new() });
            }
            Some(Change::Commit { chain }) => {
                let session = self.state.session;
                self.end(State { present: session, session }, chain);
            }
            Some(Change::Rollback { chain }) => {
                let before = self.block.as_ref().map_or(self.state, |block| block.before);
                self.end(before, chain);
            }
            Some(Change::Savepoint(name)) => {
                if let Some(block) = &mut self.block {
                    block.savepoints.push((identifier(name), self.state));
                }
            }
            Some(Change::Release(name)) => {
                if let Some((block, at)) = self.savepoint(name) {
                    block.savepoints.truncate(at);
                }
            }
            Some(Change::RollbackTo(name)) => {
                if let Some((block, at)) = self.savepoint(name) {
                    block.savepoints.truncate(at + 1);
                    let state = block.savepoints[at].1;
                    self.state = state;
                }
            }
        }
    }

    fn range(tokens: &[Token]) -> TextRange {
        match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => first.range.cover(last.range),
            _ => TextRange::default(),
        }
    }

    fn savepoint(&mut self, name: &str) -> Option<(&mut Block, usize)> {
        let block = self.block.as_mut()?;
        let name = identifier(name);
        let at = block.savepoints.iter().rposition(|(other, _)| *other == name)?;
        Some((block, at))
    }

    fn end(&mut self, state: State, chain: bool) {
        let was_open = self.block.take().is_some();
        self.state = state;
        self.block = (was_open && chain).then(|| Block { before: state, savepoints: Vec::new() });
    }

    fn set(&mut self, value: Value, scope: Scope, range: TextRange) {
        match scope {
            Scope::Session => self.both(|values| values.set(value)),
            Scope::Local if self.block.is_some() => self.state.present.set(value),
            // Nothing, unless the caller of the script has opened a transaction around it.
            Scope::Local => {
                let mut local = self.state.present;
                local.set(value);
                let strings = local.standard_conforming_strings != self.state.present.standard_conforming_strings;
                let encoding = local.encoding_is_safe != self.state.present.encoding_is_safe;
                self.both(|values| values.doubt(strings, encoding, range));
            }
        }
    }

    fn both(&mut self, change: impl Fn(&mut Values)) {
        change(&mut self.state.present);
        change(&mut self.state.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokenize;

    /// The setting after a script: on, off, or `None` where it is in doubt.
    fn strings(script: &str) -> Option<bool> {
        let mut settings = Settings::default();
        for statement in script.split(';') {
            let tokens = tokenize(statement, TextRange::new(0, statement.len() as u32));
            settings.run(statement, &tokens);
        }
        let known = settings.present().standard_conforming_strings;
        known.doubt.is_none().then_some(known.value)
    }

    #[test]
    fn every_spelling_of_set_is_read() {
        for script in [
            "SET standard_conforming_strings = off",
            "set session STANDARD_conforming_strings to 'OF'",
            "SET \"standard_conforming_strings\" = 0",
            "SET standard_conforming_strings = $$fals$$",
            "SET standard_conforming_strings TO E'n'",
            "SELECT set_config('standard_conforming_strings', 'no', false)",
            "SELECT pg_catalog.set_config('standard_conforming_strings', 'off', 'f') AS x",
        ] {
            assert_eq!(strings(script), Some(false), "{script}");
        }
        for script in [
            "SET standard_conforming_strings = off; RESET \"standard_conforming_strings\"",
            "SET standard_conforming_strings = off; RESET ALL",
            "SET standard_conforming_strings = off; DISCARD ALL",
            "SET standard_conforming_strings = off; SET standard_conforming_strings TO DEFAULT",
            "SET standard_conforming_strings = off; SET standard_conforming_strings = tru",
            "SET other = off",
        ] {
            assert_eq!(strings(script), Some(true), "{script}");
        }
    }

    #[test]
    fn transactions_take_settings_back() {
        const OFF: &str = "SET standard_conforming_strings = off";
        const LOCAL: &str = "SET LOCAL standard_conforming_strings = off";
        for (script, expected) in [
            (format!("BEGIN; {OFF}; ROLLBACK"), Some(true)),
            (format!("BEGIN; {OFF}; COMMIT"), Some(false)),
            (format!("BEGIN; {LOCAL}"), Some(false)),
            (format!("START TRANSACTION; {LOCAL}; END"), Some(true)),
            (format!("BEGIN; {LOCAL}; COMMIT AND CHAIN"), Some(true)),
            (format!("BEGIN; SAVEPOINT a; {OFF}; ROLLBACK TO SAVEPOINT A"), Some(true)),
            (format!("BEGIN; SAVEPOINT a; {OFF}; RELEASE a; COMMIT"), Some(false)),
            (format!("BEGIN; {OFF}; SAVEPOINT a; RESET ALL; ROLLBACK WORK TO a; COMMIT"), Some(false)),
            (LOCAL.to_owned(), None),
            (format!("{OFF}; SET LOCAL standard_conforming_strings = off"), Some(false)),
        ] {
            assert_eq!(strings(&script), expected, "{script}");
        }
    }

    #[test]
    fn later_sessions_may_begin_with_another_encoding() {
        for script in ["ALTER DATABASE d SET client_encoding = gbk", "ALTER ROLE a SET client_encoding TO 'SJIS'"] {
            let mut settings = Settings::default();
            let tokens = tokenize(script, TextRange::new(0, script.len() as u32));
            settings.run(script, &tokens);
            settings.connect();
            let values = settings.present();
            assert!(values.encoding_is_safe.doubt.is_some() && values.standard_conforming_strings.doubt.is_none());
        }
    }

    #[test]
    fn what_is_not_said_plainly_is_in_doubt() {
        for script in [
            "DO $$ BEGIN SET standard_conforming_strings = off END $$",
            "SELECT set_config('standard_conforming_strings', x, false) FROM t",
            "SELECT set_config('standard_' || 'conforming_strings', 'off', false)",
            "UPDATE pg_settings SET setting = 'off' WHERE name = 'standard_conforming_strings'",
            "SET standard_conforming_strings = wrong",
            "CREATE FUNCTION f() RETURNS text LANGUAGE sql AS 'SELECT set_config(''standard_conforming_strings'', ''off'', false)'; SET standard_conforming_strings = on",
        ] {
            assert_eq!(strings(script), None, "{script}");
        }
        assert_eq!(strings("SELECT set_config('search_path', '', false)"), Some(true));
    }
}
