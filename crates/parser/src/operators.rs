//! Runs of operator characters that PostgreSQL's scanner reads in quadratic time.
//!
//! Source: PostgreSQL 18, `src/backend/parser/scan.l`, rules `operator` and `xcstart`: each takes all operator characters
//! that follow, and gives back those behind a `+`, a `-` or the start of a comment.

/// Maximum number of characters that may be read again, which takes a few hundredths of a second.
const MOST_STEPS: usize = 20_000_000;

/// Where a run begins that takes too long to read. In a string it would not, but nobody writes such strings.
pub(crate) fn endless_run(sql: &str) -> Option<usize> {
    let bytes = sql.as_bytes();
    let mut at = 0;
    let mut steps = 0usize;
    while at < bytes.len() {
        let length = bytes[at..].iter().position(|byte| !is_operator(*byte)).unwrap_or(bytes.len() - at);
        if length < 2 {
            at += 1;
            continue;
        }
        let run = &bytes[at..at + length];
        // Behind two dashes there are only comments.
        let operators = run.windows(2).position(|pair| pair == b"--").unwrap_or(length);
        let signs = run[..operators].iter().filter(|byte| matches!(byte, b'+' | b'-')).count();
        let comments = run.windows(2).filter(|pair| pair == b"/*").count();
        steps = steps.saturating_add((signs + comments).saturating_mul(length));
        if steps > MOST_STEPS {
            return Some(at);
        }
        at += length;
    }
    None
}

fn is_operator(byte: u8) -> bool {
    OPERATORS[usize::from(byte)]
}

/// Which bytes are characters of operators. Every byte of a file is looked up.
const OPERATORS: [bool; 256] = {
    let mut operators = [false; 256];
    let mut rest: &[u8] = b"~!@#^&|`?+-*/%<>=";
    while let [first, others @ ..] = rest {
        operators[*first as usize] = true;
        rest = others;
    }
    operators
};
