//! goose and sql-migrate cut a file into statements themselves: after each line that ends with a semicolon.

use super::annotations::{comment, lines};
use pgvet_model::runner::{Refusal, RefusalKind};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement;

/// Statements that the tool would cut apart, or finds unfinished, in one of its sections. `strings`, in order and without
/// overlap, are not cut.
///
/// Source: goose, `internal/sqlparser/parser.go`; sql-migrate, `sqlparse/sqlparse.go`.
pub(super) fn refusals(
    tool: &str,
    prefix: &str,
    text: &str,
    section: TextRange,
    strings: &[TextRange],
) -> Vec<Refusal> {
    let part = &text[section.as_usize()];
    let is_string = |at: u32| {
        let before = strings.partition_point(|string| string.start <= at);
        strings[..before].last().is_some_and(|string| at < string.end)
    };
    // Only a statement that PostgreSQL treats as one can be cut apart.
    let pieces = if part.contains('$') || part.to_ascii_uppercase().contains("ATOMIC") {
        statement::split(part).pieces
    } else {
        Vec::new()
    };
    let whole = |at: u32| {
        let before = pieces.partition_point(|piece| piece.range.start < at);
        let statement = pieces[..before].iter().rev().find(|piece| piece.kind.is_statement())?;
        (at < statement.range.end).then(|| statement.range.shifted(section.start))
    };
    let mut refusals: Vec<Refusal> = Vec::new();
    let mut last = None;
    for (start, line) in lines(part) {
        let at = section.start + start;
        if line.trim().is_empty() || comment(line).is_some() || is_string(at) {
            if is_string(at) {
                last = None;
            }
            continue;
        }
        let ends = ends_with_semicolon(line);
        last = (!ends).then(|| TextRange::new(at, at + line.trim_end().len() as u32));
        let end = start + line.trim_end().len() as u32;
        if let Some(range) =
            whole(end).filter(|range| ends && refusals.last().is_none_or(|known| known.range.end <= range.start))
        {
            refusals.push(Refusal {
                kind: RefusalKind::Fails,
                range: TextRange::new(range.start, range.start + first_line(&text[range.as_usize()]).len() as u32),
                message: format!(
                    "{tool} splits this statement into several, because it ends a statement at each line that ends with a \
                     semicolon"
                ),
                help: format!(
                    "write `-- {prefix} StatementBegin` before this statement and `-- {prefix} StatementEnd` after it"
                ),
                by_default: false,
                unproven: None,
            });
        }
    }
    refusals.extend(last.map(|range| Refusal {
        kind: RefusalKind::Fails,
        range,
        message: format!("{tool} refuses this file, because its last statement has no semicolon at the end of a line"),
        help: "end the statement with a semicolon".to_owned(),
        by_default: false,
        unproven: None,
    }));
    refusals
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end()
}

/// Behind it there may be a comment.
pub(super) fn ends_with_semicolon(line: &str) -> bool {
    let words = line.split_whitespace().take_while(|word| !word.starts_with("--"));
    words.last().is_some_and(|word| word.ends_with(';'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_need_marks_and_statements_an_end() {
        let refused = |text: &str, strings: &[TextRange]| {
            let section = TextRange::new(0, text.len() as u32);
            refusals("goose", "+goose", text, section, strings)
                .iter()
                .map(|refusal| text[refusal.range.as_usize()].to_owned())
                .collect::<Vec<_>>()
        };
        let function = "CREATE FUNCTION f() RETURNS void AS $$\nBEGIN\n  PERFORM 1;\nEND;\n$$ LANGUAGE plpgsql;\n";
        assert_eq!(refused(function, &[]), ["CREATE FUNCTION f() RETURNS void AS $$"]);
        assert!(refused(function, &[TextRange::new(0, function.len() as u32)]).is_empty());
        assert_eq!(refused("SELECT 1;\nSELECT 2\n-- end\n", &[]), ["SELECT 2"]);
        assert!(refused("SELECT 1; -- one\nSELECT\n  '$';\n", &[]).is_empty());
        assert!(refused("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; $$;\n", &[]).is_empty());
    }
}
