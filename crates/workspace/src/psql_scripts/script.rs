//! Reads a script: which files it gives psql, in which transaction and order.

use super::place::Places;
use super::words::{Token, UNKNOWN, Variables, tokens};
use super::{Files, GlobOrder, Run};
use crate::skipped::is_sql;
use smol_str::{SmolStr, format_smolstr};
use std::path::PathBuf;

/// Maximum number of lines that are read.
const LINES: usize = 5_000;

/// Maximum number of runs of one script.
pub(super) const RUNS: usize = 300;

/// Maximum number of variables that are kept.
const VARIABLES: usize = 200;

/// Words of programs that give psql a file.
const GIVES_FILE: [&str; 6] = ["\"-f\"", "'-f'", " -f ", "--file", "stdin", "input"];

/// Between the files of a loop in the value of its variable.
const BETWEEN: char = '\u{1}';

/// The kind of a script, by which its lines are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Commands of a shell, perhaps in the steps of a workflow or a Makefile.
    Shell,
    /// JSON, whose strings are commands.
    Json,
    /// A program that starts psql. `sorted`: whether its language lists files by name.
    Code { sorted: bool },
}

/// A word of a script that may name files.
struct Mention {
    word: String,
    line: usize,
    order: GlobOrder,
    /// Whether it is an argument of psql, and its input in a transaction.
    by_psql: Option<bool>,
}

/// What is known at a line of a script.
struct Reader {
    variables: Variables,
    mentions: Vec<Mention>,
    /// The folder to which the script has gone.
    folder: Option<String>,
    /// The line of the first psql whose file only run time names, and whether it opens a transaction.
    unresolved: Option<(usize, bool)>,
}

/// Returns the runs of files below a folder, in the order of the script.
pub(super) fn runs(text: &str, kind: Kind, shown: &str, places: &Places<'_>) -> Vec<Run> {
    let (variables, sorted_by_name) = (Variables::default(), text.contains("sort"));
    let mut reader = Reader { variables, mentions: Vec::new(), folder: None, unresolved: None };
    if matches!(kind, Kind::Code { .. }) && !GIVES_FILE.iter().any(|word| text.contains(word)) {
        return Vec::new();
    }
    for (line, number) in logical_lines(text) {
        match kind {
            Kind::Shell => reader.line(&line, number),
            Kind::Json => reader.line(&of_json(&line), number),
            Kind::Code { sorted } => reader.line_of_code(&line, number, sorted || sorted_by_name, places.name()),
        }
    }
    reader.runs(shown, places, matches!(kind, Kind::Code { .. }))
}

/// What code calls that sends a text to a database.
const SENDS: [&str; 14] = [
    "Exec(",
    "ExecContext(",
    ".query(",
    ".execute(",
    "executescript(",
    "execute_script(",
    "batch_execute(",
    "simple_query(",
    "raw_sql(",
    ".unsafe(",
    "sql.raw(",
    "executeRaw",
    ".exec(",
    "exec_batch(",
];

/// The folder from which the image of PostgreSQL fills a new database.
const INIT: &str = "docker-entrypoint-initdb.d";

/// Returns the files elsewhere that a program reads and sends, or that fill the database of a container.
pub(super) fn others(text: &str, kind: Kind, shown: &str, places: &Places<'_>) -> Vec<Run> {
    let is_code = matches!(kind, Kind::Code { .. });
    let is_wanted = if is_code { SENDS.iter().any(|word| text.contains(word)) } else { text.contains(INIT) };
    let mut found = Vec::new();
    let mut looked_up = 0;
    for (line, number) in text.lines().zip(1..=LINES).filter(|(line, _)| is_wanted && line.contains(".sql")) {
        let is_comment = ["//", "*", "#", "--"].iter().any(|mark| line.trim_start().starts_with(mark));
        let is_embed = line.trim_start().starts_with("//go:embed ");
        if (is_comment && !is_embed) || !(is_code || line.contains(INIT)) {
            continue;
        }
        let is_edge =
            |one: char| one.is_whitespace() || matches!(one, '"' | '\'' | '`' | '(' | ')' | ',' | ':' | '[' | ']');
        for word in line.split(is_edge).filter(|word| is_sql(word) && !word.contains(['*', '$', '{', '%'])) {
            looked_up += 1;
            if looked_up > RUNS {
                return found;
            }
            let other = |files: &Files| matches!(files, Files::Other(_));
            let files = places.files(word, GlobOrder::Name, false).into_iter().filter(other);
            let run = |files| Run { place: format_smolstr!("{shown}:{number}"), in_transaction: false, files };
            found.extend(files.map(run).take(RUNS - found.len().min(RUNS)));
        }
    }
    found
}

/// Lines with those that continue them, each with the number of its first.
fn logical_lines(text: &str) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut continues = false;
    for (line, number) in text.lines().zip(1..=LINES) {
        let (part, goes_on) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        match found.last_mut().filter(|_| continues) {
            Some((whole, _)) => {
                whole.push(' ');
                whole.push_str(part);
            }
            None => found.push((part.to_owned(), number)),
        }
        continues = goes_on;
    }
    found
}

/// The command of a line such as `"migrate": "psql -f a.sql",`.
fn of_json(line: &str) -> String {
    let value = line.split_once("\": \"").map_or(line, |(_, value)| value);
    value.trim().trim_end_matches(',').trim_end_matches('"').replace("\\\"", "\"")
}

impl Reader {
    fn line(&mut self, line: &str, number: usize) {
        let trimmed = line.trim_start().trim_start_matches(['@', '-']).trim_start();
        let is_include =
            ["\\i ", "\\ir ", "\\include ", "\\include_relative "].iter().any(|it| trimmed.starts_with(it));
        if is_include {
            let word = trimmed.split_whitespace().nth(1).unwrap_or_default().trim_matches('\'').to_owned();
            self.mention(word, number, GlobOrder::Name, Some(false));
            return;
        }
        let tokens = tokens(trimmed, &self.variables, trimmed.contains("[\""));
        for command in tokens.split(|token| *token == Token::End) {
            self.command(command, number);
        }
    }

    /// A pipeline.
    fn command(&mut self, mut command: &[Token], number: usize) {
        if let [Token::Word(name), Token::Word(sign), values @ ..] = command
            && matches!(sign.as_str(), ":=" | "=" | "?=")
        {
            let words = words(values).map(|(_, word)| word).collect::<Vec<_>>().join(" ");
            self.set(name, words);
            return;
        }
        while let [Token::Word(first), rest @ ..] = command {
            match first.split_once('=') {
                Some((name, value)) if is_name(name) => self.set(name, value.to_owned()),
                _ if matches!(first.as_str(), "export" | "local" | "readonly" | "declare" | "then" | "do" | "else") => {
                }
                _ => break,
            }
            command = rest;
        }
        match command {
            [Token::Word(first), Token::Word(name), Token::Word(of), values @ ..] if first == "for" && of == "in" => {
                return self.repeat(name, values, number);
            }
            [Token::Word(first), Token::Word(folder)] if matches!(first.as_str(), "cd" | "pushd") => {
                self.folder = Some(folder.clone()).filter(|folder| folder.chars().any(char::is_alphanumeric));
            }
            [Token::Word(first), ..] if matches!(first.as_str(), "while" | "read") => {
                let names: Vec<&str> = words(command).map(|(_, word)| word).collect();
                names.into_iter().for_each(|name| drop(self.variables.remove(name)));
            }
            _ => {}
        }
        let files = listed(command);
        let order = order_of(command);
        match words(command).find(|(_, word)| is_psql(word)) {
            Some((at, _)) => {
                let opens = opens_transaction(command);
                self.arguments(command, at, number, order, opens);
            }
            None => files.into_iter().for_each(|word| self.mention(word, number, order, None)),
        }
    }

    /// The files that a pipeline with psql gives it.
    fn arguments(&mut self, command: &[Token], psql: usize, number: usize, order: GlobOrder, opens: bool) {
        let mut found = false;
        let mut names_file = false;
        let mut before = "";
        for (at, word) in words(command) {
            let is_input = at > 0 && command[at - 1] == Token::Input;
            let is_output = at > 0 && command[at - 1] == Token::Output;
            let is_option = matches!(before, "-f" | "--file");
            let given =
                word.strip_prefix("--file=").or_else(|| word.strip_prefix("-f").filter(|rest| !rest.is_empty()));
            let value = given.unwrap_or(word);
            let is_value = matches!(before, "-o" | "-L" | "-d" | "-U" | "-h" | "-p" | "-v" | "--output" | "--log-file");
            before = word;
            if is_output || is_value || is_psql(word) {
                continue;
            }
            if let Some(included) = value.split_once("\\i").map(|(_, rest)| rest.trim_start_matches('r').trim()) {
                self.mention(included.to_owned(), number, order, Some(opens));
                found = true;
            } else if names_sql(value) {
                self.mention(value.to_owned(), number, order, Some(opens));
                found = true;
            } else if is_option || is_input || given.is_some() {
                names_file |= value != "-" && value != "/dev/stdin";
            }
        }
        let is_piped = command[..psql].contains(&Token::Pipe);
        if is_piped {
            for word in listed(&command[..psql]) {
                found |= names_sql(&word) || word.contains('/');
                self.mention(word, number, order, Some(opens));
            }
        }
        if !found && (names_file || is_piped) {
            self.unresolved.get_or_insert((number, opens));
        }
    }

    fn repeat(&mut self, name: &str, values: &[Token], number: usize) {
        let files = listed(values);
        let order = order_of(values);
        for word in &files {
            self.mention(word.clone(), number, order, None);
        }
        let mut list = files.join(&BETWEEN.to_string());
        // A mark that the files are not in the order of their names.
        list.insert(0, BETWEEN);
        list.insert(1, order.letter());
        self.set(name, list);
    }

    fn set(&mut self, name: &str, value: String) {
        if value.trim_matches([UNKNOWN, '/', '.']).is_empty() {
            self.variables.remove(name);
        } else if self.variables.len() < VARIABLES || self.variables.contains_key(name) {
            self.variables.insert(name.to_owned(), value);
        }
    }

    fn mention(&mut self, word: String, line: usize, order: GlobOrder, by_psql: Option<bool>) {
        if self.mentions.len() >= RUNS {
            return;
        }
        let Some((before, list)) = word.split_once(BETWEEN) else {
            self.push(word, line, order, by_psql);
            return;
        };
        let order = list.chars().next().map_or(order, GlobOrder::of_letter);
        for file in list.get(1..).unwrap_or_default().split(BETWEEN).filter(|file| !file.is_empty()) {
            let word = if file.contains('/') { file.to_owned() } else { format!("{before}{file}") };
            self.push(word, line, order, by_psql);
        }
    }

    fn push(&mut self, word: String, line: usize, order: GlobOrder, by_psql: Option<bool>) {
        let word = match &self.folder {
            Some(folder) if !word.starts_with('/') => format!("{folder}/{word}"),
            _ => word,
        };
        self.mentions.push(Mention { word, line, order, by_psql });
    }

    /// A line of a program, whose strings may name files.
    fn line_of_code(&mut self, line: &str, number: usize, sorted: bool, folder: &str) {
        let order = if sorted { GlobOrder::Name } else { GlobOrder::Unknown };
        let tokens = tokens(line.trim_start(), &self.variables, true);
        let is_comment = ["//", "#", "*"].iter().any(|mark| line.trim_start().starts_with(mark));
        for (_, word) in words(&tokens).filter(|_| !is_comment) {
            let command = word.split_once(' ').map_or(word, |(first, _)| first);
            if self.unresolved.is_none() && is_psql(command) {
                let opens = ["single-transaction", "\"-1\"", "'-1'", " -1 "].iter().any(|flag| line.contains(flag));
                self.unresolved.get_or_insert((number, opens));
            }
            let parts = word.split_whitespace().filter(|part| names_sql(part) || part.ends_with(folder));
            parts.for_each(|part| self.mention(part.to_owned(), number, order, None));
        }
    }

    fn runs(self, shown: &str, places: &Places<'_>, is_code: bool) -> Vec<Run> {
        let place = |line: usize| -> SmolStr { format_smolstr!("{shown}:{line}") };
        let resolve = |mention: &Mention| -> Vec<Files> { places.files(&mention.word, mention.order, is_code) };
        let mut found = Vec::new();
        for mention in &self.mentions {
            let (line, opens) = match (mention.by_psql, self.unresolved) {
                (Some(opens), _) => (mention.line, opens),
                (None, Some((line, opens))) => (line, opens),
                (None, None) => continue,
            };
            for files in resolve(mention) {
                let is_known = found.iter().any(|known: &Run| known.files == files);
                if !is_known && found.len() < RUNS {
                    found.push(Run { place: place(line), in_transaction: opens, files });
                }
            }
        }
        found
    }
}

/// Each word with its position.
fn words(command: &[Token]) -> impl Iterator<Item = (usize, &str)> {
    command.iter().enumerate().filter_map(|(at, token)| match token {
        Token::Word(word) => Some((at, word.as_str())),
        _ => None,
    })
}

fn is_psql(word: &str) -> bool {
    word == "psql" || word.ends_with("/psql")
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
}

fn names_sql(word: &str) -> bool {
    is_sql(word.trim_end_matches(['"', '\'', ')'])) || word.contains(BETWEEN)
}

/// Whether psql runs its input in one transaction, or gets a BEGIN before it.
fn opens_transaction(command: &[Token]) -> bool {
    let is_flag = |word: &str| {
        let short = word.strip_prefix('-').filter(|flags| !flags.starts_with('-') && flags.len() <= 4);
        let short =
            short.is_some_and(|flags| flags.contains('1') && flags.chars().all(|one| one.is_ascii_alphanumeric()));
        short || word == "--single-transaction" || word.trim_end_matches(';').eq_ignore_ascii_case("begin")
    };
    words(command).any(|(_, word)| is_flag(word))
}

/// The words that can name files: those of `ls` and `find` are folders, too.
fn listed(command: &[Token]) -> Vec<String> {
    let all: Vec<&str> = words(command).map(|(_, word)| word).collect();
    let lists = all.iter().any(|word| matches!(*word, "ls" | "find"));
    let pattern = all.windows(2).find(|two| two[0] == "-name" && is_sql(two[1])).map(|two| two[1]);
    let is_wanted = |word: &&&str| {
        let is_folder = lists || word.contains('/');
        !word.starts_with('-') && Some(**word) != pattern && (names_sql(word) || is_folder)
    };
    let whole = |word: &&str| match pattern {
        Some(pattern) if !names_sql(word) => format!("{}/{pattern}", word.trim_end_matches('/')),
        _ => (*word).to_owned(),
    };
    all.iter().filter(is_wanted).map(whole).collect()
}

/// The order of the files that a command lists.
fn order_of(command: &[Token]) -> GlobOrder {
    let has = |wanted: &str| words(command).any(|(_, word)| word == wanted);
    let is_number = |word: &str| {
        let flags = word.strip_prefix('-').unwrap_or_default();
        word == "--version-sort" || (!flags.starts_with('-') && flags.contains(['V', 'n', 'g']) && flags.len() <= 3)
    };
    let by_number = words(command).skip_while(|(_, word)| *word != "sort").any(|(_, word)| is_number(word));
    match () {
        () if has("sort") && by_number => GlobOrder::Number,
        () if has("find") && !has("sort") => GlobOrder::Unknown,
        () => GlobOrder::Name,
    }
}

/// The paths in commands of psql that run other files.
pub(super) fn included(text: &str) -> Vec<PathBuf> {
    const INCLUDE: [&str; 4] = ["\\i", "\\ir", "\\include", "\\include_relative"];
    let path = |line: &str| {
        let (command, path) = line.trim().split_once(char::is_whitespace)?;
        INCLUDE.contains(&command).then(|| PathBuf::from(path.trim().trim_end_matches(';').trim_matches(['\'', '"'])))
    };
    text.lines().filter_map(path).take(RUNS).collect()
}
