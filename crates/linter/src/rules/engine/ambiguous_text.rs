//! Text that PostgreSQL may read differently from pgvet.

use crate::assumption::Assumption;
use crate::confidence::Confidence;
use crate::report::{Finding, Reporter};
use crate::rule::{MigrationContext, RuleContext, declare_rule};
use crate::severity::Severity;
use pgvet_model::session::CONFORMING_STRINGS;
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::{Doubt, DoubtKind, PlaceholderKind};

declare_rule! {
    /// Text that PostgreSQL or psql may split into statements differently than pgvet.
    ///
    /// ## Why it matters
    ///
    /// Settings decide where a string ends. With `standard_conforming_strings` off, a backslash escapes the quote after
    /// it. In some client encodings, the byte of a backslash can be the second byte of another character. If pgvet does
    /// not know one of these settings, it may treat a statement as part of a string, and then does not check the
    /// statement.
    ///
    /// The rule reports:
    ///
    /// - a string whose end depends on `standard_conforming_strings`, if an earlier file changed the setting, or a
    ///   function, a DO block or a conditional command may have changed it;
    /// - the same after a statement of the file that changes the setting, if the migration tool sends the file as one
    ///   string, or is not known: PostgreSQL then reads the whole file before the first statement runs;
    /// - non-ASCII characters after `client_encoding` was set to an encoding such as GBK, Big5 or Shift JIS;
    /// - a template tag (`{# ... #}`, `$name$_`) that PostgreSQL reads as SQL if no template engine replaces it;
    /// - a placeholder before a statement, such as `${guard}` in `${guard} DROP TABLE t`. A tool probably replaces the
    ///   placeholder with nothing, or with `--` to turn the statement off. The severity of this finding is `info`, and
    ///   pgvet checks the statement as if the placeholder were empty;
    /// - data of `COPY ... FROM stdin` that psql reads as statements if it does not run the COPY;
    /// - `\set SINGLELINE`, with which psql sends each line as a statement.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// DO $$ BEGIN SET standard_conforming_strings = off; END $$;
    /// SELECT 'C:\'; DROP TABLE orders; --';
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// DO $$ BEGIN SET standard_conforming_strings = off; END $$;
    /// SELECT E'C:\\', 'orders';
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a string that ends at the same place with either setting
    /// - a string after a plain `SET standard_conforming_strings` in the same file, if psql or a migration tool that
    ///   sends each statement separately runs the file. A psql command before the string, such as `\set`, shows that
    ///   psql does.
    "ambiguous-text", Engine, Error,
    { confidence: Confidence::Likely }
    statement = check_statement,
    migration = check_migration,
}

/// The file shows one value of the setting, and what was run before another one.
fn check_statement(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.code.is_none() {
        report_omitted(context, reporter);
    }
    let Some(quoting) = context.statement.quoting.filter(|quoting| !quoting.in_doubt) else { return };
    let settings = &context.session.settings;
    if let (Some(setting), Some(on)) = (settings.get(CONFORMING_STRINGS), settings.conforming_strings())
        && on != quoting.standard_conforming_strings
    {
        let (value, assumed) = if on { ("on", "off") } else { ("off", "on") };
        let message = format!(
            "PostgreSQL may run statements that pgvet did not check: `standard_conforming_strings` is {value} here, \
             but pgvet reads strings as if it were {assumed}, so for PostgreSQL this string ends at a different quote"
        );
        let place = setting.place;
        help(reporter.report(quoting.string, message).label_in(place.file, place.range, "set here")).emit();
    }
}

/// A placeholder with which the statement is one, and without which it is another.
fn report_omitted(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let omitted = context.statement.placeholders.iter().find(|one| one.kind == PlaceholderKind::Omitted);
    let Some(placeholder) = omitted else { return };
    let message = format!(
        "pgvet checks this statement as if `{}` were empty: with another value, PostgreSQL may run a different \
         statement or none",
        placeholder.text
    );
    let help = "set the value of the placeholder in pgvet.toml, or run pgvet on the rendered file";
    reporter.report(placeholder.range, message).severity(Severity::Info).help(help).emit();
}

fn check_migration(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let migration = context.migration;
    let is_run = |range: TextRange| migration.section.is_none_or(|section| section.contains(range));
    for doubt in context.doubts {
        if is_run(doubt.range) && !doubt.kind.is_unread() {
            report(*doubt, reporter);
        }
    }
}

fn report(doubt: Doubt, reporter: &mut Reporter<'_>) {
    let finding = match doubt.kind {
        DoubtKind::Quoting => help(reporter.report(
            doubt.range,
            "PostgreSQL may run statements that pgvet did not check: the end of this string depends on \
             `standard_conforming_strings`, and pgvet does not know its value here",
        )),
        DoubtKind::SentTogether { .. } => reporter
            .report(
                doubt.range,
                "PostgreSQL may run statements that pgvet did not check: if the migration tool sends the whole file at \
                 once, PostgreSQL reads it before `standard_conforming_strings` changes, and this string ends at a \
                 different quote",
            )
            .help("write `E'...'` with doubled backslashes, which does not depend on the setting"),
        DoubtKind::Encoding => reporter
            .report(
                doubt.range,
                "PostgreSQL may run statements that pgvet did not check: in a `client_encoding` such as SJIS or GBK, \
                 the quote or backslash after this character can become part of the character",
            )
            .help("leave `client_encoding` at UTF8, or write the file in ASCII with Unicode escapes"),
        DoubtKind::Template => reporter
            .report(
                doubt.range,
                "pgvet treats this as a template tag and does not check the text in it: if no tool replaces the tag, \
                 PostgreSQL runs that text as SQL",
            )
            .help(
                "run pgvet on the rendered file; or remove quotes and semicolons from the tag, so that the tag cannot \
                 hide a statement",
            ),
        DoubtKind::CopyData => reporter
            .report(doubt.range, "if psql does not run the COPY, it runs these lines of data as SQL statements")
            .assuming(Assumption::CopyNotRun)
            .help("end the data with a line `\\.` before the next statement, and run psql with `-v ON_ERROR_STOP=1`"),
        DoubtKind::SingleLine => reporter
            .report(
                doubt.range,
                "from here on psql sends each line as a statement, but pgvet splits the file at semicolons",
            )
            .help("remove this psql command, and end each statement with a semicolon"),
        _ => return,
    };
    match doubt.cause {
        Some(cause) if matches!(doubt.kind, DoubtKind::SentTogether { .. }) => {
            finding.label(cause, "this changes the setting")
        }
        Some(cause) => finding.label(cause, "this may change the setting"),
        None => finding,
    }
    .emit();
}

fn help<'r, 'a>(finding: Finding<'r, 'a>) -> Finding<'r, 'a> {
    finding.help(
        "write `E'...'` with doubled backslashes; or, if the migration tool sends each statement separately, add SET \
         standard_conforming_strings = on as an earlier statement",
    )
}

#[cfg(test)]
mod tests {
    use crate::check::check;
    use crate::settings::Settings;
    use pgvet_model::migration::{Direction, Migration};
    use pgvet_model::runner::{Runner, SessionScope};
    use pgvet_syntax::source::{SourceFile, TextRange};
    use pgvet_syntax::statement::parse_file;

    #[test]
    fn down_migrations_are_text_too() {
        let text = "DO $$ BEGIN SET standard_conforming_strings = off; END $$;\nSELECT 'C:\\'; DROP TABLE orders; --';\n\\i other.sql\n";
        let file = parse_file(SourceFile::new("1.down.sql".to_owned(), text.to_owned()));
        let migration = Migration { direction: Direction::Down, ..Migration::new(&file) };
        let found = check(&[migration], &Settings::default());
        let rules: Vec<&str> = found.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, ["ambiguous-text", "unchecked-psql-command"]);
        assert!(found.iter().all(|finding| !finding.pg_versions.is_empty()));
    }

    #[test]
    fn a_setting_is_not_in_effect_for_what_is_sent_with_it() {
        const LATER: &str = "SELECT 'a\\'; DROP TABLE t; --';\n";
        let off = "SET standard_conforming_strings = off;\n";
        let config = "SELECT set_config('standard_conforming_strings', 'off', false);\n";
        let found = |texts: &[&str], runner: Runner, strings: &[TextRange]| {
            let files: Vec<_> =
                texts.iter().map(|text| parse_file(SourceFile::new("1.sql".to_owned(), (*text).to_owned()))).collect();
            let migrations: Vec<_> =
                files.iter().map(|file| Migration { runner, strings, ..Migration::new(file) }).collect();
            let found = check(&migrations, &Settings::default());
            found.iter().filter(|found| found.rule == "ambiguous-text").count()
        };
        let unknown = Runner { session: SessionScope::Run, ..Runner::default() };
        let string = Runner { is_known: true, ..unknown };
        let alone = Runner { sends_statements: true, ..string };
        for (setter, runner, expected) in [
            (off, string, 1),
            (off, unknown, 1),
            (off, alone, 0),
            (config, string, 1),
            ("\\set a b\nSET standard_conforming_strings = off;\n", unknown, 0),
            ("\\set a b\nSET standard_conforming_strings = off;\n", string, 1),
            ("SET standard_conforming_strings = on;\n", string, 0),
        ] {
            assert_eq!(found(&[&format!("{setter}{LATER}")], runner, &[]), expected, "{setter} {runner:?}");
        }
        let both = format!("{off}{LATER}");
        let (end, all) = (off.len() as u32, both.len() as u32);
        assert_eq!(found(&[&both], string, &[TextRange::new(0, end), TextRange::new(end, all)]), 0);
        assert_eq!(found(&[&both], alone, &[TextRange::new(0, all)]), 1);
        // Read with the setting that the file before has left.
        let on = "SET standard_conforming_strings = on;\nSELECT '\\'; SELECT '; DROP TABLE t; --';\n";
        assert_eq!(found(&[off, on], string, &[]), 1);
    }
}
