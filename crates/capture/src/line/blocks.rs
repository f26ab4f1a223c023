//! The blocks of a source, by the indentation of the lines.

use super::{is_about_schema, words_of};
use std::collections::{BTreeSet, HashMap};

/// Words with which functions begin.
const FUNCTIONS: [&str; 5] = ["def", "fn", "func", "fun", "function"];

/// Blocks and argument lists, by the indentation of their lines.
#[derive(Default)]
pub(super) struct Blocks {
    /// Indentation and number of the lines that opened those around the next line.
    open: Vec<(usize, usize)>,
    pub(super) around: HashMap<usize, usize>,
    /// The lines with which functions begin.
    functions: BTreeSet<usize>,
    /// The lines that may change a schema.
    about_schema: BTreeSet<usize>,
}

impl Blocks {
    pub(super) fn line(&mut self, number: usize, line: &str, opens: bool) {
        let indentation = line.len() - line.trim_start().len();
        if indentation == line.len() {
            return;
        }
        while self.open.last().is_some_and(|(outer, _)| *outer >= indentation) {
            self.open.pop();
        }
        if let Some((_, outer)) = self.open.last() {
            self.around.insert(number, *outer);
        }
        if opens {
            self.open.push((indentation, number));
        }
        if opens && words_of(line).any(|word| FUNCTIONS.contains(&word)) {
            self.functions.insert(number);
        } else if words_of(line).any(is_about_schema) {
            self.about_schema.insert(number);
        }
    }

    /// The lines of the functions that never say that they change a schema: they read and write rows through models.
    pub(super) fn of_functions_without_schema(&self) -> Vec<usize> {
        let functions_of = |line: usize| outer_lines(&self.around, line).filter(|outer| self.functions.contains(outer));
        let with_schema: BTreeSet<usize> = self.about_schema.iter().flat_map(|line| functions_of(*line)).collect();
        let is_without = |line: &usize| functions_of(*line).next().is_some_and(|inner| !with_schema.contains(&inner));
        self.around.keys().copied().filter(is_without).collect()
    }
}

/// The lines that enclose a line, from the inside out.
pub(super) fn outer_lines(around: &HashMap<usize, usize>, line: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(around.get(&line), |line| around.get(line)).copied()
}
