//! Backslash commands: where they end, and what they do with the statement that is being read.
//!
//! Source: PostgreSQL 18, `src/bin/psql/psqlscanslash.l` and `command.c`.

use super::branch::{Certainty, condition};
use super::variables::{LONGEST_VALUES, Variables, is_name_byte};
use crate::source::TextRange;

/// A backslash command.
#[derive(Debug, Clone)]
pub(in crate::statement) struct Command<'a> {
    pub(in crate::statement) name: &'a str,
    pub(in crate::statement) action: Action,
    /// With the backslash and a `\\` that ends it.
    pub(in crate::statement) range: TextRange,
    /// Arguments after the name.
    pub(in crate::statement) arguments: TextRange,
    /// The arguments without quotes; `None` where one is not known before it runs.
    values: Vec<Option<String>>,
    runs_program: bool,
}

/// The effect of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::statement) enum Action {
    /// Nothing with the statement.
    None,
    /// Sends the statement; without one, the last one again.
    Send,
    /// Sends the statement, and runs the rows of its result as statements.
    SendAndRun,
    /// Forgets the statement.
    Reset,
    If,
    Elif,
    Else,
    EndIf,
    /// Ends the script.
    Quit,
    Connect,
    Set,
    Unset,
    /// Sets a variable to what comes from elsewhere: `\getenv`, `\prompt`.
    Receive,
    Encoding,
    Copy,
    /// Runs a file of SQL.
    Include,
    /// Runs a program, or changes what is not a statement: `\!`, `\lo_unlink`.
    Program,
    /// psql does not know it, and drops the rest of the line.
    Unknown,
}

/// How the arguments of a command are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Words,
    /// An argument that begins with `|` is the rest of the line.
    FileOrPipe,
    WholeLine,
}

impl<'a> Command<'a> {
    /// Reads the command whose backslash is at `start`.
    pub(in crate::statement) fn read(text: &'a str, start: usize, variables: &Variables) -> Self {
        let line_end = start + text[start..].find('\n').unwrap_or(text.len() - start);
        let line = &text[start + 1..line_end];
        let name = &line[..line.find(|c: char| is_space(c) || c == '\\').unwrap_or(line.len())];
        let action = action(name);
        let (line, at) = (&text[..line_end], start + 1 + name.len());
        let mut reader = Arguments { line, at, variables, room: LONGEST_VALUES, runs_program: false };
        let arguments_start = reader.at;
        let mut values = Vec::new();
        match form(name) {
            _ if action == Action::Unknown => reader.at = line_end,
            Form::WholeLine => reader.at = line_end,
            form => {
                while let Some(argument) = reader.next(form) {
                    values.push(argument.value);
                }
            }
        }
        let arguments = TextRange::new(arguments_start as u32, reader.at as u32);
        let mut end = start + text[start..reader.at].trim_end().len();
        if text[reader.at..line_end].starts_with("\\\\") {
            end = reader.at + 2;
        }
        let range = TextRange::new(start as u32, end as u32);
        Self { name, action, range, arguments, values, runs_program: reader.runs_program }
    }

    /// The argument at an index, where there is one and it is known.
    pub(in crate::statement) fn argument(&self, at: usize) -> Option<&str> {
        self.values.get(at)?.as_deref()
    }

    /// The variable that `\getenv` and `\prompt` set.
    pub(in crate::statement) fn received(&self) -> &str {
        let at = if self.name == "getenv" { 0 } else { self.values.len().saturating_sub(1) };
        self.argument(at).unwrap_or_default()
    }

    /// All arguments from an index on without blanks between them, as `\set` puts them together.
    pub(in crate::statement) fn joined(&self, from: usize) -> Option<String> {
        self.values.get(from..).unwrap_or_default().iter().cloned().collect()
    }

    /// Whether the condition of `\if` or `\elif` holds.
    pub(in crate::statement) fn condition(&self) -> Certainty {
        let words: Option<Vec<String>> = self.values.iter().cloned().collect();
        condition(words.map(|words| words.join(" ")).as_deref())
    }

    /// Whether it runs a program: `\!`, `|program`, backquotes.
    pub(in crate::statement) fn runs_program(&self, text: &str) -> bool {
        let copies_program = || {
            let arguments = text[self.arguments.as_usize()].to_ascii_lowercase();
            arguments.split_ascii_whitespace().any(|word| word == "program")
        };
        self.runs_program || self.action == Action::Program || self.action == Action::Copy && copies_program()
    }
}

/// An argument without quotes; its value is `None` where it is not known before the command runs.
struct Argument {
    value: Option<String>,
}

/// Reads the arguments of a command.
struct Arguments<'a> {
    /// The text up to the end of the line.
    line: &'a str,
    at: usize,
    variables: &'a Variables,
    /// How many bytes of values may still be put in.
    room: usize,
    runs_program: bool,
}

impl Arguments<'_> {
    fn peek(&self) -> Option<char> {
        self.line[self.at..].chars().next()
    }

    /// The next argument.
    fn next(&mut self, form: Form) -> Option<Argument> {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
        let first = self.peek().filter(|first| *first != '\\')?;
        if form == Form::FileOrPipe && first == '|' {
            self.at = self.line.len();
            self.runs_program = true;
            return Some(Argument { value: None });
        }
        let mut value = Some(String::new());
        while let Some(next) = self.peek().filter(|next| !is_space(*next) && *next != '\\') {
            let part = match next {
                '\'' => self.quoted(),
                '"' => self.run_to('"', 1),
                '`' => {
                    self.runs_program = true;
                    self.run_to('`', 1).and(None)
                }
                ':' => self.variable(),
                other => {
                    self.at += other.len_utf8();
                    Some(other.to_string())
                }
            };
            value = value.zip(part).map(|(value, part)| value + &part);
        }
        Some(Argument { value })
    }

    /// A quoted part up to its end, with the quotes. Without an end it takes the line, and psql drops the argument.
    fn run_to(&mut self, quote: char, from: usize) -> Option<String> {
        let start = self.at;
        let Some(length) = self.line[start + from..].find(quote) else {
            self.at = self.line.len();
            return None;
        };
        self.at = start + from + length + 1;
        Some(self.line[start..self.at].to_owned())
    }

    /// `'...'` with doubled quotes and escapes of C.
    fn quoted(&mut self) -> Option<String> {
        let mut value = String::new();
        let inside = self.at + 1;
        self.at = self.line.len();
        let mut characters = self.line[inside..].char_indices().peekable();
        while let Some((at, next)) = characters.next() {
            match next {
                '\'' if characters.next_if(|(_, next)| *next == '\'').is_some() => value.push('\''),
                '\'' => {
                    self.at = inside + at + 1;
                    return Some(value);
                }
                '\\' => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    // Octal and hexadecimal escapes can be any character: a quote is the worst.
                    '0'..='9' | 'x' => '\'',
                    other => other,
                }),
                other => value.push(other),
            }
        }
        None
    }

    /// `:name`, `:'name'`, `:"name"`, `:{?name}`, or just a colon.
    fn variable(&mut self) -> Option<String> {
        let rest = &self.line[self.at + 1..];
        let (before, after) = match rest.as_bytes().first() {
            Some(b'\'') => (1, "'"),
            Some(b'"') => (1, "\""),
            Some(b'{') if rest.starts_with("{?") => (2, "}"),
            _ => (0, ""),
        };
        let name = &rest[before..];
        let name = &name[..name.bytes().position(|byte| !is_name_byte(byte)).unwrap_or(name.len())];
        if name.is_empty() || !rest[before + name.len()..].starts_with(after) {
            self.at += 1;
            return Some(":".to_owned());
        }
        self.at += 1 + before + name.len() + after.len();
        if before == 2 {
            return self.variables.is_set(name).then(|| "TRUE".to_owned());
        }
        let value = self.variables.value(name)?;
        self.room = self.room.checked_sub(value.len())?;
        Some(value.to_owned())
    }
}

/// psql's own idea of white space on a line.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\u{b}' | '\u{c}')
}

fn form(name: &str) -> Form {
    match name {
        "!" | "copy" | "ef" | "ev" | "sf" | "sf+" | "sv" | "sv+" | "h" | "help" => Form::WholeLine,
        "g" | "gx" | "o" | "out" | "w" | "write" => Form::FileOrPipe,
        _ => Form::Words,
    }
}

fn action(name: &str) -> Action {
    match name {
        "g" | "gx" | "gset" | "gdesc" | "crosstabview" | "watch" | "parse" | "sendpipeline" => Action::Send,
        "gexec" => Action::SendAndRun,
        "r" | "reset" => Action::Reset,
        "if" => Action::If,
        "elif" => Action::Elif,
        "else" => Action::Else,
        "endif" => Action::EndIf,
        "q" | "quit" => Action::Quit,
        "c" | "connect" => Action::Connect,
        "set" => Action::Set,
        "unset" => Action::Unset,
        "getenv" | "prompt" => Action::Receive,
        "encoding" => Action::Encoding,
        "copy" => Action::Copy,
        "i" | "include" | "ir" | "include_relative" | "e" | "edit" | "ef" | "ev" => Action::Include,
        "!" | "lo_export" | "lo_import" | "lo_unlink" => Action::Program,
        "a" | "bind" | "bind_named" | "C" | "cd" | "close_prepared" | "conninfo" | "copyright" | "echo"
        | "endpipeline" | "errverbose" | "f" | "flush" | "flushrequest" | "getresults" | "h" | "help" | "H"
        | "html" | "lo_list" | "lo_list+" | "o" | "out" | "p" | "print" | "password" | "pset" | "qecho"
        | "restrict" | "s" | "setenv" | "sf" | "sf+" | "startpipeline" | "sv" | "sv+" | "syncpipeline" | "t" | "T"
        | "timing" | "unrestrict" | "w" | "write" | "warn" | "x" | "?" => Action::None,
        _ if ["d", "l", "list", "z"].iter().any(|first| is_list(name, first)) => Action::None,
        _ => Action::Unknown,
    }
}

/// `\dt+`, `\dnS`, `\l+`, `\zS`: commands that show what there is.
fn is_list(name: &str, first: &str) -> bool {
    let Some(rest) = name.strip_prefix(first) else { return false };
    let letters = rest.trim_end_matches(['S', 'x', '+']);
    letters.is_empty() || first == "d" && letters.len() <= 4 && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
}
