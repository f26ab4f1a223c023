//! The line of a source that sends a statement.

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
    /// The lines that change or read rows and no schema.
    about_rows: BTreeSet<usize>,
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

/// What a line ends with that continues on the next ones: an argument list, a block, an XML element.
const CONTINUES: &[char] = &['(', '[', '{', ',', ':', '|', '>', '=', '+', '\\'];

/// How much a word counts that says what is done, and not with what.
const VERB: f64 = 0.05;

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

/// First words of statements that change a schema.
const SCHEMA_STATEMENTS: [&str; 4] = ["alter", "comment", "create", "drop"];

/// Names of functions that take a migration back; what follows them was not sent.
const BACK: [&str; 3] = ["down", "downgrade", "rollback"];

impl SourceText {
    pub(crate) fn new(text: &str) -> Self {
        let mut found: HashMap<String, Vec<usize>> = HashMap::new();
        let (mut open, mut about_rows) = (BTreeSet::new(), BTreeSet::new());
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
            if line.trim_end().ends_with(CONTINUES) {
                open.insert(at + 1);
            }
            if is_about_rows(line) {
                about_rows.insert(at + 1);
            }
            for word in words_of(line).map(str::to_ascii_lowercase).chain(words_of(line).flat_map(parts_of)) {
                let lines = found.entry(word).or_default();
                if lines.last() != Some(&(at + 1)) {
                    lines.push(at + 1);
                }
            }
        }
        Self { text: text.to_owned(), words: found, open, about_rows }
    }

    /// How many names of statements stand in the source.
    pub(crate) fn names_of(&self, sql: &[&str]) -> usize {
        let all: BTreeSet<String> = sql.iter().flat_map(|sql| Names::of(sql).names).collect();
        all.iter().filter(|name| self.words.contains_key(*name)).count()
    }

    pub(crate) fn lines(&self) -> Lines<'_> {
        Lines { source: self, last: 1, end: 0 }
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
    let is_one_of = |word: &str, verbs: &[&str]| verbs.iter().any(|verb| word.eq_ignore_ascii_case(verb));
    let is_of_schema = |word: &str| is_one_of(word, VERBS) && !is_one_of(word, &VERBS_OF_ROWS);
    let is_of_schema = |word: &str| is_of_schema(word) && !is_one_of(word, &VERBS_OF_BOTH);
    words_of(line).any(|word| is_one_of(word, &VERBS_OF_ROWS))
        && !words_of(line).any(|word| is_of_schema(word) || parts_of(word).iter().any(|part| is_of_schema(part)))
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
        let Names { names, verbs } = Names::of(sql);
        let first = sql.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        let excluded = if SCHEMA_STATEMENTS.contains(&first.as_str()) { Some(&self.source.about_rows) } else { None };
        let words = words_of_names(&names);
        let candidates = [(&names, excluded), (&words, excluded), (&names, None)];
        candidates.into_iter().find_map(|(names, excluded)| self.best(names, &verbs, excluded))
    }

    fn best(
        &mut self,
        names: &BTreeSet<String>,
        verbs: &BTreeSet<String>,
        excluded: Option<&BTreeSet<usize>>,
    ) -> Option<usize> {
        let weighed = |words: &BTreeSet<String>, weight: f64| -> Vec<(&[usize], f64)> {
            words.iter().filter_map(|word| self.source.weighed(word, weight)).collect()
        };
        let (names, verbs) = (weighed(names, 1.0), weighed(verbs, VERB));
        let share = |lines: &[usize], line: usize| {
            let continues = |before: usize| self.source.open.contains(&before) && lines.contains(&before);
            let before = BEFORE.iter().enumerate().find(|(at, _)| continues(line.wrapping_sub(at + 1)));
            if lines.contains(&line) { 1.0 } else { before.map_or(0.0, |(_, share)| *share) }
        };
        let score = |line: usize| {
            let of_names: f64 = names.iter().map(|(lines, weight)| weight * share(lines, line)).sum();
            let of_verbs: f64 = verbs.iter().filter(|(lines, _)| lines.contains(&line)).map(|(_, weight)| weight).sum();
            of_names + of_verbs
        };
        let last = self.last;
        let order = |line: usize| if line > last { line - last } else { usize::MAX / 2 + (last - line) };
        let is_candidate = |line: &usize| excluded.is_none_or(|excluded| !excluded.contains(line));
        let candidates = names.iter().flat_map(|(lines, _)| lines.iter().copied()).filter(is_candidate);
        let candidates: BTreeSet<usize> = candidates.collect();
        let scored = candidates.into_iter().map(|line| (score(line), line));
        let (_, line) = scored.min_by(|(score, line), (other_score, other)| {
            other_score.total_cmp(score).then_with(|| order(*line).cmp(&order(*other)))
        })?;
        self.last = line;
        Some(line)
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

/// The words of names that a framework has made up, such as `api_check_user_id_06aa` of an index of `Check.user`.
fn words_of_names(names: &BTreeSet<String>) -> BTreeSet<String> {
    let words = names.iter().flat_map(|name| name.split('_'));
    words.filter(|word| word.len() > 2 && !COMMON.contains(word)).map(str::to_owned).collect()
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|one: char| !(one.is_alphanumeric() || one == '_')).filter(|word| !word.is_empty())
}

/// The words that a name is made of, as far as they are verbs: `AddField`, `alterTable` and `create_index`.
fn parts_of(word: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for one in word.chars() {
        if one == '_' || one.is_uppercase() {
            parts.push(String::new());
        }
        if one != '_' {
            parts.last_mut().expect("there is always a part").push(one.to_ascii_lowercase());
        }
    }
    parts.retain(|part| VERBS.contains(&part.as_str()));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_found_where_their_names_come_together() {
        let source = SourceText::new(
            "class Migration(migrations.Migration):\n    operations = [\n        \
             migrations.AddField('order', 'note', models.TextField(null=True)),\n        \
             migrations.AddField('order', 'rank', models.IntegerField(default=0)),\n        \
             migrations.AddIndex('order', models.Index(fields=['rank'], name='order_rank_idx')),\n    ]\n",
        );
        let mut lines = source.lines();
        assert_eq!(lines.of("ALTER TABLE \"shop_order\" ADD COLUMN \"note\" text NULL"), Some(3));
        assert_eq!(lines.of("ALTER TABLE \"shop_order\" ADD COLUMN \"rank\" integer DEFAULT 0 NOT NULL"), Some(4));
        assert_eq!(lines.of("CREATE INDEX \"order_rank_idx\" ON \"shop_order\" (\"rank\")"), Some(5));
        assert_eq!(lines.of("VACUUM"), None);
    }

    #[test]
    fn arguments_may_stand_on_lines_of_their_own() {
        let source = SourceText::new(
            "exports.up = (knex) =>\n  knex.schema.alterTable('users', (table) => {\n    \
             table.text('state').notNullable().alter();\n    table.integer('logins');\n  });\n\n\
             exports.down = (knex) =>\n  knex.schema.alterTable('users', (table) => {\n    table.dropColumn('logins');\n  });\n",
        );
        let mut lines = source.lines();
        assert_eq!(lines.of("alter table \"users\" alter column \"state\" set not null"), Some(3));
        assert_eq!(lines.of("alter table \"users\" add column \"logins\" integer"), Some(4));
    }

    #[test]
    fn statements_are_found_word_for_word() {
        let source = SourceText::new(
            "run(\"ALTER TABLE room ADD COLUMN a integer\")\nrun(\"ALTER TABLE room ADD COLUMN a int\")\n\
             DO $$\nBEGIN\n  DROP TABLE room;\nEND $$;\nrun(\"ALTER TABLE room ADD COLUMN a int\")\n",
        );
        let mut lines = source.lines();
        assert_eq!(lines.of("ALTER TABLE room ADD COLUMN a int"), Some(2));
        assert_eq!(lines.of("DO $$\nBEGIN\n  DROP TABLE room;\nEND $$"), Some(3));
        assert_eq!(lines.of("ALTER TABLE room ADD COLUMN a int"), Some(7));
    }

    #[test]
    fn names_of_a_statement_before_do_not_matter() {
        let source = SourceText::new(
            "def up\n  add_foreign_key :plants, :beds\n  change_column_null :plants, :bed_id, false\nend\n",
        );
        let mut lines = source.lines();
        let foreign_key =
            "ALTER TABLE \"plants\" ADD CONSTRAINT \"fk\" FOREIGN KEY (\"bed_id\") REFERENCES \"beds\" (\"id\")";
        assert_eq!(lines.of(foreign_key), Some(2));
        assert_eq!(lines.of("ALTER TABLE \"plants\" ALTER COLUMN \"bed_id\" SET NOT NULL"), Some(3));
    }

    #[test]
    fn descriptions_and_comments_send_nothing() {
        let source = SourceText::new(
            "\"\"\"convert quantity of items to float\n\nRevision ID: 26\n\"\"\"\n\n# quantity of items\ndef upgrade():\n    \
             op.alter_column(\n        'items',\n        'quantity',\n        type_=sa.Float(),\n    )\n",
        );
        let mut lines = source.lines();
        assert_eq!(lines.of("DROP INDEX \"shop_items_quantity_06aa\"").map(|line| line > 7), Some(true));
        assert!(lines.of("ALTER TABLE items ALTER COLUMN quantity TYPE FLOAT").unwrap() > 7);
    }

    #[test]
    fn verbs_tell_equal_names_apart() {
        let source = SourceText::new(
            "query('SELECT id FROM project WHERE owner IS NULL')\nfor project in projects:\n    \
             query('UPDATE project SET owner = ?')\n",
        );
        let mut lines = source.lines();
        assert_eq!(lines.of("SELECT id FROM project WHERE owner IS NULL"), Some(1));
        assert_eq!(lines.of("UPDATE project SET owner = $1 WHERE id = $2"), Some(3));
    }

    #[test]
    fn a_schema_is_not_changed_where_rows_are_nor_where_names_are_imported() {
        let source = SourceText::new(
            "from uuid import UUID\n\ndef fill(only: UUID):\n    Order.objects.update(parcel_id=1)\n    \
             execute('UPDATE orders SET weight = 0')\n\ndef upgrade():\n    with op.batch_alter_table('orders') as op:\n        \
             op.add_column(sa.Column('parcel', Uuid()))\n        op.alter_column('weight', nullable=False)\n",
        );
        let mut lines = source.lines();
        assert_eq!(lines.of("ALTER TABLE shop_order ADD COLUMN parcel_id UUID"), Some(9));
        assert_eq!(lines.of("ALTER TABLE orders ALTER COLUMN weight SET NOT NULL"), Some(10));
        assert_eq!(lines.of("UPDATE orders SET weight = 0"), Some(5));
    }
}
