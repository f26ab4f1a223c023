//! psql's variables, as far as the script sets them.

use std::collections::HashMap;

/// Maximum length of the values of a script, and of those in one command, in bytes. A value that would make them longer is
/// treated as unknown: each may hold another one twice.
pub(in crate::statement) const LONGEST_VALUES: usize = 1 << 20;

/// Values by name: `None` where one is set that is not known.
#[derive(Debug, Clone, Default)]
pub(in crate::statement) struct Variables {
    known: HashMap<String, Option<String>>,
    /// A query may have set any of the others.
    any: bool,
    /// The length of all values.
    size: usize,
}

impl Variables {
    /// Sets a variable; to an unknown value where the script does not say it.
    pub(in crate::statement) fn set(&mut self, name: &str, value: Option<String>) {
        self.unset(name);
        let value = value.filter(|value| self.size + value.len() <= LONGEST_VALUES);
        self.size += value.as_ref().map_or(0, String::len);
        self.known.insert(name.to_owned(), value);
    }

    /// `\gset` sets variables with the names of the columns of a result.
    pub(in crate::statement) fn set_any(&mut self) {
        self.known.clear();
        self.size = 0;
        self.any = true;
    }

    /// Removes a variable. psql's own ones keep a value, so it is unknown whether one is set.
    pub(in crate::statement) fn unset(&mut self, name: &str) {
        let value = self.known.remove(name).flatten();
        self.size -= value.map_or(0, |value| value.len());
    }

    /// Returns the value where the script says it.
    pub(in crate::statement) fn value(&self, name: &str) -> Option<&str> {
        self.known.get(name)?.as_deref()
    }

    /// Whether the script has set it. Otherwise the command line may have.
    pub(in crate::statement) fn is_set(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// Whether the script gives it a value that can be more than a part of an expression: psql reads the value as it reads
    /// the script.
    pub(in crate::statement) fn holds_sql(&self, name: &str) -> bool {
        let is_plain =
            |character: char| character.is_alphanumeric() || matches!(character, '_' | '.' | ' ' | ',' | '+');
        let Some(value) = self.known.get(name) else { return self.any };
        !value.as_ref().is_some_and(|value| value.chars().all(is_plain))
    }
}

/// Whether a byte can be in the name of a variable.
pub(in crate::statement) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
