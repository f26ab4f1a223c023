//! Comments that suppress findings, as they are written into a file.

use pgvet_linter::fix::Edit;
use pgvet_syntax::source::TextRange;

/// Returns the edit that puts a comment before the statement that begins at `start`, so that findings of these rules are
/// suppressed there. The reason may be empty.
pub fn suppression(text: &str, start: u32, rules: &[&str], reason: &str) -> Edit {
    let line = text[..start as usize].rfind('\n').map_or(0, |at| at + 1);
    let before = &text[line..start as usize];
    let comment = format!("pgvet: ignore[{}] {reason}", rules.join(", "));
    let comment = comment.trim_end();
    let inserted = if before.trim().is_empty() {
        format!("-- {comment}\n{before}")
    } else {
        // Behind other code the rest of the line must stay what it is.
        format!("/* {comment} */ ")
    };
    Edit { range: TextRange::at(start), text: inserted }
}

#[cfg(test)]
mod tests {
    use super::*;

    use pgvet_linter::fix::{Applicability, Fix, apply};

    fn applied(text: &str, start: u32) -> String {
        let edits = vec![suppression(text, start, &["a", "b"], "why")];
        apply(text, &[Fix { title: String::new(), applicability: Applicability::Safe, edits }]).text
    }

    #[test]
    fn a_comment_has_a_line_of_its_own_unless_something_is_before_it() {
        assert_eq!(applied("SELECT 1;", 0), "-- pgvet: ignore[a, b] why\nSELECT 1;");
        assert_eq!(applied("\r\n  SELECT 1;", 4), "\r\n  -- pgvet: ignore[a, b] why\r\n  SELECT 1;");
        assert_eq!(applied("SELECT 1; SELECT 2;", 10), "SELECT 1; /* pgvet: ignore[a, b] why */ SELECT 2;");
    }
}
