//! The words of a command, as a shell splits them, with the values of variables that the script itself sets.

use rustc_hash::FxHashMap;

/// Stands for a part of a word that only run time tells.
pub(super) const UNKNOWN: char = '\u{0}';

/// Maximum length of a word whose variables are replaced: a value may name others.
const LONGEST: usize = 4 << 10;

/// Maximum length of all words of a line, beside that of the line itself.
const EXPANDED: usize = 16 << 10;

/// Maximum depth of commands in commands.
const DEPTH: usize = 4;

/// A part of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    /// `|`
    Pipe,
    /// `<`
    Input,
    /// `>` or `>>`
    Output,
    /// `;`, `&&`, `||` or a bracket.
    End,
}

/// The variables of a script.
pub(super) type Variables = FxHashMap<String, String>;

/// Splits a line. `in_code`: commas and brackets end words, as in lists of arguments.
pub(super) fn tokens(line: &str, variables: &Variables, in_code: bool) -> Vec<Token> {
    let left = line.len() + EXPANDED;
    let mut reader = Reader { rest: line, variables, in_code, left, word: None, found: Vec::new() };
    reader.read(0);
    reader.found
}

struct Reader<'t> {
    rest: &'t str,
    variables: &'t Variables,
    in_code: bool,
    /// How many bytes the words may still get.
    left: usize,
    word: Option<String>,
    found: Vec<Token>,
}

impl Reader<'_> {
    fn read(&mut self, depth: usize) {
        while let Some(first) = self.rest.chars().next() {
            let at_start = self.word.is_none();
            self.rest = &self.rest[first.len_utf8()..];
            match first {
                '#' if at_start && !self.in_code => break,
                '\'' | '"' => self.quoted(first, depth),
                '`' if self.in_code => self.quoted('`', depth),
                '`' => self.command('`', depth),
                '$' => self.dollar(depth, false),
                '\\' => {
                    if let Some(next) = self.rest.chars().next() {
                        self.rest = &self.rest[next.len_utf8()..];
                        // A command of psql keeps it.
                        let kept = if matches!(next, 'i' | '"' | '\'' | '\\' | ' ' | '$') { "" } else { "\\" };
                        self.push(if next == 'i' && at_start { "\\i" } else { kept });
                        if next != 'i' || !at_start {
                            self.push(next.encode_utf8(&mut [0; 4]));
                        }
                    }
                }
                '{' if self.rest.starts_with('{') => self.template(),
                '|' if self.rest.starts_with('|') => self.separate(Token::End),
                '|' => self.separate(Token::Pipe),
                '<' => self.separate(Token::Input),
                '>' => self.separate(Token::Output),
                ';' | '&' | '(' | ')' => self.separate(Token::End),
                ',' | '[' | ']' | '{' | '}' if self.in_code => self.end_word(),
                _ if first.is_whitespace() => self.end_word(),
                _ => self.push(first.encode_utf8(&mut [0; 4])),
            }
        }
        self.end_word();
    }

    fn push(&mut self, text: &str) {
        let word = self.word.get_or_insert_with(String::new);
        if word.len() + text.len() <= LONGEST && text.len() <= self.left {
            self.left -= text.len();
            word.push_str(text);
        }
    }

    /// Words cost a byte more than they have: a variable can hold very many short ones.
    fn end_word(&mut self) {
        let word = self.word.take().filter(|_| self.left > 0);
        self.left = self.left.saturating_sub(1);
        self.found.extend(word.map(Token::Word));
    }

    fn separate(&mut self, token: Token) {
        self.end_word();
        if self.found.last() != Some(&token) {
            self.found.push(token);
        }
    }

    fn quoted(&mut self, quote: char, depth: usize) {
        self.push("");
        while let Some(first) = self.rest.chars().next() {
            self.rest = &self.rest[first.len_utf8()..];
            match first {
                _ if first == quote => return,
                '$' if quote != '\'' => self.dollar(depth, true),
                '{' if self.in_code || self.rest.starts_with('{') => self.template(),
                '\\' if quote == '"' && self.rest.starts_with(['"', '\\', '$']) => {
                    self.push(&self.rest[..1]);
                    self.rest = &self.rest[1..];
                }
                _ => self.push(first.encode_utf8(&mut [0; 4])),
            }
        }
    }

    /// `{{ name }}` of a justfile or a workflow, `{name}` of a format string.
    fn template(&mut self) {
        let end = self.rest.find('}').map_or(self.rest.len(), |end| end + 1);
        self.rest = self.rest[end..].trim_start_matches('}');
        self.push(UNKNOWN.encode_utf8(&mut [0; 4]));
    }

    /// What follows `$`: a variable or a command.
    fn dollar(&mut self, depth: usize, quoted: bool) {
        // A Makefile doubles it.
        let rest = self.rest.strip_prefix('$').unwrap_or(self.rest);
        if rest.starts_with("{{") {
            return self.template();
        }
        if let Some(inside) = rest.strip_prefix('{') {
            let end = inside.find('}').unwrap_or(inside.len());
            self.rest = inside.get(end + 1..).unwrap_or_default();
            let name_end = inside[..end].find(|one: char| !is_of_name(one)).unwrap_or(end);
            let default = inside[name_end..end].trim_start_matches(':').strip_prefix(['-', '=']);
            return self.variable(&inside[..name_end], default, quoted);
        }
        if let Some(inside) = rest.strip_prefix('(') {
            self.rest = inside;
            return self.command(')', depth);
        }
        let end = match rest.chars().next() {
            Some(one) if one.is_ascii_alphabetic() || one == '_' => {
                rest.find(|one: char| !is_of_name(one)).unwrap_or(rest.len())
            }
            None | Some('"' | '\'' | ' ' | '/') => return self.push("$"),
            // `$1`, `$@` and `$?` have one letter.
            Some(one) => one.len_utf8(),
        };
        self.rest = &rest[end..];
        self.variable(&rest[..end], None, quoted);
    }

    fn variable(&mut self, name: &str, default: Option<&str>, quoted: bool) {
        let variables = self.variables;
        match variables.get(name).map(String::as_str).or(default.filter(|value| !value.contains('$'))) {
            Some(value) if !quoted && value.contains(' ') => {
                let mut parts = value.split_whitespace();
                self.push(parts.next().unwrap_or_default());
                for part in parts {
                    if self.left == 0 {
                        break;
                    }
                    self.end_word();
                    self.push(part);
                }
            }
            Some(value) => self.push(value),
            None => self.push(UNKNOWN.encode_utf8(&mut [0; 4])),
        }
    }

    /// A command whose output the shell reads. Those that list files are read as words, others give a value that is not
    /// known.
    fn command(&mut self, end: char, depth: usize) {
        let mut open = 0usize;
        let close = self.rest.char_indices().find(|(_, one)| match one {
            _ if *one == end && open == 0 => true,
            '(' => {
                open += 1;
                false
            }
            ')' => {
                open = open.saturating_sub(1);
                false
            }
            _ => false,
        });
        let close = close.map_or(self.rest.len(), |(at, _)| at);
        let inside = &self.rest[..close];
        self.rest = self.rest.get(close + 1..).unwrap_or_default();
        let first = inside.split_whitespace().next().unwrap_or_default();
        if matches!(first, "ls" | "find" | "echo" | "printf" | "wildcard" | "sort") && depth < DEPTH {
            let outer = std::mem::replace(&mut self.rest, inside);
            self.end_word();
            self.read(depth + 1);
            self.rest = outer;
        } else if !first.is_empty() && inside.chars().all(is_of_name) {
            // A variable of a Makefile.
            self.variable(inside, None, false);
        } else {
            self.push(UNKNOWN.encode_utf8(&mut [0; 4]));
        }
    }
}

fn is_of_name(one: char) -> bool {
    one.is_ascii_alphanumeric() || one == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        let variables = [("DIR", "db/migrations"), ("PSQL", "psql -1")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
        let is_code = line.contains("run([");
        let tokens = tokens(line, &variables, is_code).into_iter();
        tokens
            .map(|token| match token {
                Token::Word(word) => word.replace(UNKNOWN, "?"),
                Token::Pipe => "|".to_owned(),
                Token::Input => "<".to_owned(),
                Token::Output => ">".to_owned(),
                Token::End => ";".to_owned(),
            })
            .collect()
    }

    #[test]
    fn commands_are_split_into_words() {
        for (line, expected) in [
            ("psql \"$URL\" -f \"$DIR/1.sql\" # x", "psql ? -f db/migrations/1.sql"),
            ("$PSQL < ${DIR}/1.sql >> log", "psql -1 < db/migrations/1.sql > log"),
            ("for f in $(ls $DIR/*.sql | sort -V); do", "for f in ls db/migrations/*.sql | sort -V ; do"),
            ("D=\"$(cd \"$(dirname \"$0\")\" && pwd)/sql\"", "D=?/sql"),
            ("@psql -f $(DIR)/1.sql $$f $1x $@ ${X:-a.sql}", "@psql -f db/migrations/1.sql ? ?x ? a.sql"),
            ("run([\"psql\", \"-f\", f\"{root}/1.sql\"])", "run ; psql -f f?/1.sql ;"),
            ("psql -f {{dir}}/1.sql ${{ x }}/2.sql", "psql -f ?/1.sql ?/2.sql"),
            ("\\i a.sql", "\\i a.sql"),
            ("\\ir a.sql", "\\ir a.sql"),
            ("\"é$é\" `x`", "é? ?"),
        ] {
            assert_eq!(words(line).join(" "), expected, "{line}");
        }
    }
}
