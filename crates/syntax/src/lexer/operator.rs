//! Runs of operator characters, which can be many tokens.

/// The operator characters that follow each other at one place, up to the start of a comment. All tokens of a run ask
/// for the same facts; to look them up for each token would take quadratic time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OperatorRun {
    start: usize,
    end: usize,
    /// The last character that standard SQL does not use in operators.
    last_special: Option<usize>,
    /// The last character that is neither `+` nor `-`.
    last_unsigned: Option<usize>,
}

impl OperatorRun {
    /// Reads the run that begins at `start`.
    pub(super) fn read(text: &[u8], start: usize) -> Self {
        let mut run = Self { start, end: start, last_special: None, last_unsigned: None };
        while let Some(byte) = text.get(run.end).copied().filter(|byte| is_operator_byte(*byte)) {
            let starts_comment = matches!((byte, text.get(run.end + 1)), (b'-', Some(b'-')) | (b'/', Some(b'*')));
            if starts_comment && run.end > start {
                break;
            }
            if b"~!@#^&|`?%".contains(&byte) {
                run.last_special = Some(run.end);
            }
            if !matches!(byte, b'+' | b'-') {
                run.last_unsigned = Some(run.end);
            }
            run.end += 1;
            if starts_comment {
                break;
            }
        }
        run
    }

    pub(super) fn contains(&self, offset: usize) -> bool {
        (self.start..self.end).contains(&offset)
    }

    /// The end of the token that begins at `start` in the run: an operator of more than one character may end in `+` or
    /// `-` only if it holds one of the characters that standard SQL does not use.
    pub(super) fn token_end(&self, start: usize) -> usize {
        if self.last_special.is_some_and(|at| at >= start) {
            return self.end;
        }
        self.last_unsigned.map_or(start, |at| at.max(start)) + 1
    }
}

pub(super) fn is_operator_byte(byte: u8) -> bool {
    b"~!@#^&|`?+-*/%<>=".contains(&byte)
}
