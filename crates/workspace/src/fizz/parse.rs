//! The calls of a text in fizz.

/// A call, perhaps with calls in a block.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Vec<Value>,
    pub(super) block: Option<Vec<Self>>,
}

/// A constant argument.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    /// `true`, or a number.
    Word(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

impl Value {
    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The texts of a list, or a text alone.
    pub(super) fn texts(&self) -> Option<Vec<&str>> {
        match self {
            Self::Text(text) => Some(vec![text]),
            Self::List(list) => list.iter().map(Self::text).collect(),
            Self::Word(_) | Self::Map(_) => None,
        }
    }

    pub(super) fn is_true(&self) -> bool {
        *self == Self::Word("true".to_owned())
    }
}

/// How deep lists and maps may be nested.
const DEPTH: usize = 8;

/// Reads all calls of a text; `None` if it has anything else.
pub(super) fn parse(text: &str) -> Option<Vec<Call>> {
    let mut reader = Reader { rest: text };
    let calls = reader.calls(true)?;
    reader.rest.is_empty().then_some(calls)
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn skip_blanks(&mut self) {
        loop {
            self.rest =
                self.rest.trim_start_matches(|one: char| one.is_whitespace() || one == ';' || one == '\u{feff}');
            if !self.rest.starts_with("//") && !self.rest.starts_with('#') {
                return;
            }
            self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
        }
    }

    fn eat(&mut self, mark: char) -> Option<()> {
        self.skip_blanks();
        self.rest = self.rest.strip_prefix(mark)?;
        Some(())
    }

    fn word(&mut self) -> Option<&'t str> {
        self.skip_blanks();
        let is_word = |one: char| one.is_ascii_alphanumeric() || matches!(one, '_' | '.' | '-');
        let end = self.rest.find(|one: char| !is_word(one)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Calls up to the end of the text, or of a block.
    fn calls(&mut self, is_outside: bool) -> Option<Vec<Call>> {
        let mut calls = Vec::new();
        loop {
            self.skip_blanks();
            if self.rest.is_empty() || self.rest.starts_with('}') {
                return Some(calls);
            }
            let name = self.word()?.to_owned();
            self.eat('(')?;
            let arguments = self.values(')', DEPTH)?;
            let has_block = is_outside && self.eat('{').is_some();
            let block = if has_block { Some(self.calls(false)?) } else { None };
            if has_block {
                self.eat('}')?;
            }
            calls.push(Call { name, arguments, block });
        }
    }

    /// Values up to the closing mark.
    fn values(&mut self, end: char, depth: usize) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        while self.eat(end).is_none() {
            values.push(self.value(depth)?);
            // The last comma may be missing.
            let _ = self.eat(',');
        }
        Some(values)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        self.skip_blanks();
        match self.rest.chars().next()? {
            '"' | '`' => self.text().map(Value::Text),
            '[' => {
                self.eat('[')?;
                self.values(']', depth).map(Value::List)
            }
            '{' => {
                self.eat('{')?;
                self.map(depth)
            }
            _ => {
                let word = self.word()?;
                let is_number = word.starts_with(|first: char| first.is_ascii_digit() || first == '-');
                (is_number || matches!(word, "true" | "false")).then(|| Value::Word(word.to_owned()))
            }
        }
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        let mut entries = Vec::new();
        while self.eat('}').is_none() {
            self.skip_blanks();
            let key = if self.rest.starts_with('"') { self.text()? } else { self.word()?.to_owned() };
            self.eat(':')?;
            entries.push((key, self.value(depth)?));
            let _ = self.eat(',');
        }
        Some(Value::Map(entries))
    }

    /// A text in quotes, with backslashes, or one in backquotes as it is.
    fn text(&mut self) -> Option<String> {
        let quote = self.rest.chars().next()?;
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, one)) = characters.next() {
            match one {
                _ if one == quote => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                '\\' if quote == '"' => match characters.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    other => text.push(other),
                },
                other => text.push(other),
            }
        }
        None
    }
}
