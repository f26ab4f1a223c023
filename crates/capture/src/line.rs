//! The line of a source that sends a statement.

mod blocks;

use blocks::{Blocks, outer_lines};
use pgvet_model::builtin;
use pgvet_syntax::lexer::{TokenKind, identifier, quote_identifier, tokenize};
use pgvet_syntax::source::TextRange;
use std::collections::{BTreeSet, HashMap};

/// The text of a source, and the words that stand in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceText {
    text: String,
    /// The lines on which each word stands, from 1.
    words: HashMap<String, Vec<usize>>,
    /// The lines whose end shows that they continue.
    open: BTreeSet<usize>,
    /// The line that opens the block or the argument list in which a line stands.
    around: HashMap<usize, usize>,
    /// The lines that change or read rows and no schema.
    about_rows: BTreeSet<usize>,
    /// The lines that change a schema and no rows.
    about_schema: BTreeSet<usize>,
    /// The lines that drop or remove something and create nothing.
    drops: BTreeSet<usize>,
}

/// Finds lines for statements in their order.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    source: &'a SourceText,
    /// The line that was last found.
    last: usize,
    /// The end of the statement that was last found word for word.
    end: usize,
}

/// How much names on the lines before count, if these continue: arguments of a call often stand on lines of their own.
const BEFORE: [f64; 2] = [0.5, 0.25];

/// How much names on a line count for those that it encloses: more than all others of these, and less than their own.
const AROUND: f64 = 0.95;

/// How much the name of an index counts: the columns are named elsewhere, too.
const OWN_NAME: f64 = 2.0;

/// What a line ends with that continues on the next ones: an argument list, a block, an XML element.
const CONTINUES: &[char] = &['(', '[', '{', ',', ':', '|', '>', '=', '+', '\\'];

/// How much a word counts that says what is done, and not with what.
const VERB: f64 = 0.05;

/// How much the first word of an UPDATE or DELETE counts: a model says it, too.
const VERB_OF_ROWS: f64 = 1.0;

/// Words that say what is done. They stand in the names of functions, too: `alter_column`, `AddField`.
const VERBS: &[&str] = &[
    "add",
    "alter",
    "check",
    "column",
    "constraint",
    "create",
    "default",
    "delete",
    "drop",
    "foreign",
    "index",
    "insert",
    "null",
    "rename",
    "select",
    "set",
    "table",
    "unique",
    "update",
];

/// Those of statements about rows.
const VERBS_OF_ROWS: [&str; 4] = ["delete", "insert", "select", "update"];

/// Those that say nothing about what else a line does.
const VERBS_OF_BOTH: [&str; 4] = ["default", "null", "set", "table"];

/// Words of calls that send SQL, or that build what changes a schema.
const SENDERS: [&str; 6] = ["exec", "execute", "op", "query", "raw", "schema"];

/// First words of statements that change a schema.
const SCHEMA_STATEMENTS: [&str; 4] = ["alter", "comment", "create", "drop"];

/// What is created, and the words that a call which creates it has.
const CALLS: [(&str, &[&[&str]]); 2] =
    [("table", &[&["create", "table"], &["createmodel"]]), ("index", &[&["create", "index"], &["add", "index"]])];

/// Names of functions that take a migration back; what follows them was not sent.
const BACK: [&str; 3] = ["down", "downgrade", "rollback"];

impl SourceText {
    pub(crate) fn new(text: &str) -> Self {
        let mut found: HashMap<String, Vec<usize>> = HashMap::new();
        let (mut open, mut about_rows, mut blocks) = (BTreeSet::new(), BTreeSet::new(), Blocks::default());
        let (mut about_schema, mut drops) = (BTreeSet::new(), BTreeSet::new());
        let is_back = |line: &str| {
            let has =
                |words: &[&str]| words_of(line).any(|word| words.iter().any(|one| word.eq_ignore_ascii_case(one)));
            has(&BACK) && !has(&["up"])
        };
        let introduction = introduction(text);
        for (at, line) in text.lines().take_while(|line| !is_back(line)).enumerate() {
            if at < introduction || is_comment(line) || is_import(line) {
                continue;
            }
            let is_open = line.trim_end().ends_with(CONTINUES);
            if is_open {
                open.insert(at + 1);
            }
            blocks.line(at + 1, line, is_open);
            if is_about_rows(line) {
                about_rows.insert(at + 1);
            } else if !words_of(line).any(|word| is_one_of(word, &VERBS_OF_ROWS)) && has_schema_verb(line) {
                about_schema.insert(at + 1);
            }
            if has_part(line, &["drop", "remove"]) && !has_part(line, &["add", "create"]) {
                drops.insert(at + 1);
            }
            let words = words_of(line).map(str::to_ascii_lowercase).chain(words_of(line).flat_map(parts_of));
            for word in words.chain(quoted_words(line)) {
                let lines = found.entry(word).or_default();
                if lines.last() != Some(&(at + 1)) {
                    lines.push(at + 1);
                }
            }
        }
        about_rows.extend(blocks.of_functions_without_schema());
        Self { text: text.to_owned(), words: found, open, around: blocks.around, about_rows, about_schema, drops }
    }

    /// How many names of statements stand in the source.
    pub(crate) fn names_of(&self, sql: &[&str]) -> usize {
        let all: BTreeSet<String> = sql.iter().flat_map(|sql| Names::of(sql).names).collect();
        all.iter().filter(|name| self.words.contains_key(*name)).count()
    }

    pub(crate) fn lines(&self) -> Lines<'_> {
        Lines { source: self, last: 1, end: 0 }
    }

    /// The lines around a line, from the inside out.
    fn around(&self, line: usize) -> impl Iterator<Item = usize> {
        outer_lines(&self.around, line)
    }

    /// Whether a word stands on a line that may change a schema.
    fn is_named(&self, word: &str) -> bool {
        self.words.get(word).is_some_and(|lines| lines.iter().any(|line| !self.about_rows.contains(line)))
    }

    /// The line with the call that creates a table or an index, for a line with one of its arguments.
    fn call_around(&self, line: usize, created: &str) -> usize {
        let has = |word: &str, line: usize| self.words.get(word).is_some_and(|lines| lines.contains(&line));
        let calls = CALLS.iter().filter(|(what, _)| *what == created).flat_map(|(_, calls)| *calls);
        let is_call = |line: &usize| calls.clone().any(|words| words.iter().all(|word| has(word, *line)));
        std::iter::once(line).chain(self.around(line)).find(is_call).unwrap_or(line)
    }

    /// The lines of a word, and what it counts for: one that stands everywhere says little.
    fn weighed(&self, word: &str, weight: f64) -> Option<(&[usize], f64)> {
        let lines = self.words.get(word)?;
        let count = u32::try_from(lines.len()).map_or(f64::INFINITY, f64::from);
        Some((lines, weight / count))
    }
}

/// The number of lines at the start that describe a module of Python, as generators of migrations write them.
fn introduction(text: &str) -> usize {
    const QUOTES: [&str; 2] = ["\"\"\"", "'''"];
    let Some(quote) = QUOTES.into_iter().find(|quote| text.trim_start().starts_with(quote)) else { return 0 };
    let begin = text.find(quote).map_or(0, |at| at + quote.len());
    let end = text[begin..].find(quote).map_or(begin, |at| begin + at);
    text[..end].lines().count()
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('#') || line.starts_with("//")
}

/// Whether a word says that a schema is changed, or that SQL is sent as it is.
fn is_about_schema(word: &str) -> bool {
    let says = |word: &str| is_one_of(word, &SENDERS) || is_schema_verb(word);
    word.split('_').any(says) || parts_of(word).iter().any(|part| says(part))
}

/// Whether a line only names what the file uses.
fn is_import(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("import" | "use" | "using") => true,
        Some("from") => words.nth(1) == Some("import"),
        _ => false,
    }
}

fn is_about_rows(line: &str) -> bool {
    words_of(line).any(|word| is_one_of(word, &VERBS_OF_ROWS)) && !has_schema_verb(line)
}

fn has_schema_verb(line: &str) -> bool {
    words_of(line).any(|word| is_schema_verb(word) || parts_of(word).iter().any(|part| is_schema_verb(part)))
}

/// Whether one of these words is a part of a name on a line.
fn has_part(line: &str, words: &[&str]) -> bool {
    words_of(line).any(|word| all_parts_of(word).iter().any(|part| is_one_of(part, words)))
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|one| word.eq_ignore_ascii_case(one))
}

fn is_schema_verb(word: &str) -> bool {
    is_one_of(word, VERBS) && !is_one_of(word, &VERBS_OF_ROWS) && !is_one_of(word, &VERBS_OF_BOTH)
}

impl Lines<'_> {
    /// Returns the line on which a statement begins or, if the source does not have it word for word, the line on which
    /// most of its names come together or, of equal ones, the next in order. `None` if the source has none of its names.
    pub(crate) fn of(&mut self, sql: &str) -> Option<usize> {
        if let Some(at) = self.literal(sql.trim()) {
            self.end = at + sql.trim().len();
            self.last = 1 + self.source.text[..at].matches('\n').count();
            return Some(self.last);
        }
        if let Some(line) = self.template(sql) {
            self.last = line;
            return Some(line);
        }
        let Names { mut names, verbs } = Names::of(sql);
        let first: Vec<String> = sql.split_whitespace().take(3).map(str::to_ascii_lowercase).collect();
        let is_about_schema = first.first().is_some_and(|first| SCHEMA_STATEMENTS.contains(&first.as_str()));
        let created = first.iter().find(|word| first[0] == "create" && CALLS.iter().any(|(what, _)| what == word));
        if created.is_some_and(|created| created == "table") {
            // Many tables have a column of this name.
            names.retain(|name| !COMMON.iter().any(|common| quoted(common) == *name));
        }
        if is_about_schema {
            // The column of a foreign key, which the source does not name, is named after the field.
            let unknown = names.iter().filter(|name| !self.source.is_named(name));
            let fields: Vec<_> = unknown.filter_map(|name| Some(name.strip_suffix("_id")?.to_owned())).collect();
            names.extend(fields);
        }
        let excluded = is_about_schema.then_some(&self.source.about_rows);
        let words = words_of_names(&names);
        let is_about_rows = first.first().is_some_and(|first| VERBS_OF_ROWS.contains(&first.as_str()));
        let excluded = if is_about_rows { Some(&self.source.about_schema) } else { excluded };
        let wanted = Wanted {
            own: name_of_index(sql).unwrap_or_default(),
            verbs,
            verb_of_rows: first.first().filter(|first| matches!(first.as_str(), "update" | "delete")).cloned(),
            creates: first.first().is_some_and(|first| first == "create"),
        };
        let candidates = [(&names, excluded), (&words, excluded), (&names, None)];
        let line = candidates.into_iter().find_map(|(names, excluded)| self.best(names, &wanted, excluded))?;
        self.last = created.map_or(line, |created| self.source.call_around(line, created));
        Some(self.last)
    }

    fn best(&self, names: &BTreeSet<String>, wanted: &Wanted, excluded: Option<&BTreeSet<usize>>) -> Option<usize> {
        let weighed = |words: &BTreeSet<String>, weight: f64| -> Vec<(&[usize], f64)> {
            let weight = |word: &str| match &wanted.verb_of_rows {
                _ if word == wanted.own => OWN_NAME,
                Some(verb) if word == verb => VERB_OF_ROWS,
                _ => weight,
            };
            words.iter().filter_map(|word| self.source.weighed(word, weight(word))).collect()
        };
        let (names, verbs) = (weighed(names, 1.0), weighed(&wanted.verbs, VERB));
        let share = |lines: &[usize], line: usize| {
            let continues = |before: usize| self.source.open.contains(&before) && lines.contains(&before);
            let before = BEFORE.iter().enumerate().find(|(at, _)| continues(line.wrapping_sub(at + 1)));
            if lines.contains(&line) {
                1.0
            } else if self.source.around(line).any(|outer| lines.contains(&outer)) {
                AROUND
            } else {
                before.map_or(0.0, |(_, share)| *share)
            }
        };
        let score = |line: usize| {
            let of_names: f64 = names.iter().map(|(lines, weight)| weight * share(lines, line)).sum();
            let of_verbs: f64 = verbs.iter().filter(|(lines, _)| lines.contains(&line)).map(|(_, weight)| weight).sum();
            of_names + of_verbs
        };
        let last = self.last;
        let order = |line: usize| if line > last { line - last } else { usize::MAX / 2 + (last - line) };
        let drops = |line: usize| {
            std::iter::once(line).chain(self.source.around(line)).any(|line| self.source.drops.contains(&line))
        };
        let is_candidate =
            |line: &usize| excluded.is_none_or(|excluded| !(excluded.contains(line) || wanted.creates && drops(*line)));
        let candidates = names.iter().flat_map(|(lines, _)| lines.iter().copied()).filter(is_candidate);
        let candidates: BTreeSet<usize> = candidates.collect();
        let scored = candidates.into_iter().map(|line| (score(line), line));
        let (_, line) = scored.min_by(|(score, line), (other_score, other)| {
            other_score.total_cmp(score).then_with(|| order(*line).cmp(&order(*other)))
        })?;
        Some(line)
    }

    /// The line on which the SQL of a statement about rows begins, if the source computes a part of it, as in
    /// `f"DELETE FROM {table}"`: the one that has most of it and, of equal ones, the next in order.
    fn template(&self, sql: &str) -> Option<usize> {
        let sql = normalized(sql);
        let verb = VERBS_OF_ROWS.into_iter().find(|verb| sql.starts_with(verb))?;
        let shared = |line: &str| {
            let line = line.to_ascii_lowercase();
            let known = known_parts(&line[line.find(verb)?..]);
            let is_beginning = known.first().is_some_and(|first| first.contains(' ') && sql.starts_with(first));
            let end = known.iter().try_fold(0, |at, part| Some(at + sql[at..].find(part)? + part.len()));
            end.filter(|_| is_beginning).map(|_| known.iter().map(String::len).sum::<usize>())
        };
        let lines = self.source.text.lines().enumerate().map(|(at, line)| (at + 1, line));
        let found = lines.filter_map(|(at, line)| Some((shared(line)?, at)));
        let best = found.min_by_key(|(length, at)| (std::cmp::Reverse(*length), *at <= self.last, *at));
        best.map(|(_, line)| line)
    }

    /// The offset at which the source has a statement word for word, after the one that was found last or before it.
    fn literal(&self, sql: &str) -> Option<usize> {
        let text = &self.source.text;
        let is_whole =
            |at: usize| !text[at + sql.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_');
        let mut found = text.match_indices(sql).map(|(at, _)| at).filter(|at| is_whole(*at)).peekable();
        let first = *found.peek()?;
        Some(found.find(|at| *at >= self.end).unwrap_or(first))
    }
}

/// Names that stand everywhere, and words of SQL that are not reserved.
const COMMON: &[&str] =
    &["by", "cascade", "concurrently", "exists", "id", "if", "key", "name", "of", "public", "restrict"];

/// What a statement does, as far as it says where it may stand.
struct Wanted {
    /// The name of the index that it creates, or nothing.
    own: String,
    verbs: BTreeSet<String>,
    /// The first word of an UPDATE or DELETE.
    verb_of_rows: Option<String>,
    /// Whether it creates something.
    creates: bool,
}

/// The words of a statement.
struct Names {
    /// Names, words of strings, and the ends of names after an underscore: Django's table `shop_order` is `order` of the
    /// app `shop` in the source.
    names: BTreeSet<String>,
    verbs: BTreeSet<String>,
}

impl Names {
    fn of(sql: &str) -> Self {
        let whole = TextRange::new(0, u32::try_from(sql.len()).unwrap_or(u32::MAX));
        let (mut names, mut verbs) = (BTreeSet::new(), BTreeSet::new());
        for token in tokenize(sql, whole) {
            let text = token.text(sql);
            match token.kind {
                TokenKind::QuotedIdentifier => {
                    let name = identifier(text).to_ascii_lowercase();
                    names.extend(name.split_once('_').map(|(_, end)| end.to_owned()));
                    if is_common(&name) {
                        names.insert(quoted(&name));
                    }
                    names.insert(name);
                }
                TokenKind::Word => {
                    let word = text.to_ascii_lowercase();
                    // A type stands everywhere, too: the helpers of a migration use it as well.
                    if VERBS.contains(&word.as_str()) || builtin::type_by_name(&word).is_some() {
                        verbs.insert(word);
                    } else if quote_identifier(&word) == word {
                        names.insert(word);
                    }
                }
                TokenKind::String | TokenKind::DollarString => {
                    names.extend(words_of(text).map(str::to_ascii_lowercase));
                }
                _ => {}
            }
        }
        names.retain(|name| name.len() > 1 && !COMMON.contains(&name.as_str()));
        Self { names, verbs }
    }
}

/// Whether a name is one only where it is quoted. A key called `id` is in every table, and often not in the source.
fn is_common(name: &str) -> bool {
    COMMON.contains(&name) && name != "id"
}

/// How the source names something whose name stands everywhere: as a string or as a symbol.
fn quoted(name: &str) -> String {
    format!("'{name}'")
}

/// The strings and symbols of a line that are a common word: `'name'` and `:name`, and not `name=`.
fn quoted_words(line: &str) -> impl Iterator<Item = String> {
    let is_mark = |at: Option<char>| at.is_some_and(|mark| matches!(mark, '\'' | '"' | '`'));
    words_of(line).filter_map(move |word| {
        let start = word.as_ptr() as usize - line.as_ptr() as usize;
        let before = line[..start].chars().next_back();
        let is_string = is_mark(before) && is_mark(line[start + word.len()..].chars().next());
        let name = word.to_ascii_lowercase();
        (is_common(&name) && (is_string || before == Some(':'))).then(|| quoted(&name))
    })
}

/// The words of names that a framework has made up, such as `api_check_user_id_06aa` of an index of `Check.user`.
fn words_of_names(names: &BTreeSet<String>) -> BTreeSet<String> {
    let words = names.iter().flat_map(|name| name.split('_'));
    words.filter(|word| word.len() > 2 && !COMMON.contains(word)).map(str::to_owned).collect()
}

/// The text in small letters, with one blank between its words.
fn normalized(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase()
}

/// The parts of SQL in a line, up to the end of its text, that are not computed: `{name}`, `%s`, `$1`, `:name`, `?`.
fn known_parts(line: &str) -> Vec<String> {
    let text = line.split(['"', '\'', '`', ';', '+']).next().unwrap_or_default();
    let mut parts = Vec::new();
    for (at, part) in text.split(['{', '%', '$', ':', '?', '#']).enumerate() {
        let is_name = |one: char| one.is_alphanumeric() || one == '_';
        let after_name = || part.trim_start_matches(is_name);
        let known = if at == 0 { part } else { part.split_once('}').map_or_else(after_name, |(_, known)| known) };
        parts.push(normalized(known));
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The name of the index that a statement creates.
fn name_of_index(sql: &str) -> Option<String> {
    let words: Vec<&str> = sql.split_whitespace().take(8).collect();
    let at = words.iter().position(|word| word.eq_ignore_ascii_case("index"))?;
    let is_option =
        |word: &&&str| ["concurrently", "if", "not", "exists"].iter().any(|one| word.eq_ignore_ascii_case(one));
    let name = words[at + 1..].iter().find(|word| !is_option(word))?;
    Some(name.trim_matches('"').to_ascii_lowercase())
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|one: char| !(one.is_alphanumeric() || one == '_')).filter(|word| !word.is_empty())
}

/// The words that a name is made of, as far as they are verbs: `AddField`, `alterTable` and `create_index`.
fn parts_of(word: &str) -> Vec<String> {
    let mut parts = all_parts_of(word);
    parts.retain(|part| VERBS.contains(&part.as_str()));
    parts
}

fn all_parts_of(word: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for one in word.chars() {
        if one == '_' || one.is_uppercase() {
            parts.push(String::new());
        }
        if one != '_' {
            parts.last_mut().expect("there is always a part").push(one.to_ascii_lowercase());
        }
    }
    parts
}

#[cfg(test)]
mod tests;
