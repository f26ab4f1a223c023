use crate::ranges::assert_inside;
use pgvet_syntax::statement;

/// Statements are in order, and everything that they name is in the text.
pub fn convert(text: &str) {
    let statements = statement::parse(text);
    assert_inside(text, &statements);
    let ranges: Vec<_> = statements.iter().map(|statement| statement.range).collect();
    assert!(ranges.is_sorted_by(|one, next| one.end <= next.start), "{ranges:?} of {text:?}");
    for statement in &statements {
        assert!(!statement.range.is_empty(), "an empty statement of {text:?}");
        if let Err(error) = &statement.parsed {
            assert!(!error.message.is_empty(), "{statement:?} of {text:?}");
        }
    }
}
