//! The search for a smaller document of which something still holds.
//!
//! Hierarchical delta debugging: files, then statements, then the parts of each statement from the outside to the inside,
//! then what is not SQL, and all of it again until nothing more can be removed. The same document and the same answers
//! lead to the same result. Source: Misherghi and Su, "HDD: Hierarchical Delta Debugging", ICSE 2006.

mod columns;
mod detour;
mod merge;
mod statement;

use crate::document::Document;
use crate::minimize::minimize;
use crate::oracle::Oracle;
use crate::size::Size;
use crate::tree::Parts;
use pgvet_trace::Error;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// How often the oracle is asked about the document itself.
const FIRST_TRIES: usize = 3;

/// When to stop, and whom to tell.
pub struct Control<'c> {
    /// The search ends at this time with what it has.
    pub deadline: Option<Instant>,
    /// Set when the user interrupts the search.
    pub interrupted: &'c AtomicBool,
    /// Called before each try.
    pub progress: &'c mut dyn FnMut(&Progress),
}

impl Control<'_> {
    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// How far a search has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Documents about which the oracle was asked.
    pub tries: usize,
    /// Those of which it held, each smaller than the one before.
    pub accepted: usize,
    /// The size of the last of them.
    pub size: Size,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Reduction {
    pub document: Document,
    /// The size of the original.
    pub before: Size,
    pub progress: Progress,
    pub end: End,
    /// Whether the oracle has confirmed the document, which it cannot do after the time limit.
    pub is_confirmed: bool,
}

/// Why a search ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Nothing more can be removed.
    Complete,
    TimeLimit,
    Interrupted,
    /// The oracle gave no answer.
    Failed(Error),
}

/// Why there is nothing to reduce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoReduction {
    /// It does not hold of the document itself.
    DoesNotHold,
    /// The predicate held in `held` of `tries` tries of the original.
    Flaky { held: usize, tries: usize },
    /// The oracle gave no answer about the document itself.
    Failed(Error),
}

/// Makes a document as small as it can while the oracle says that it holds.
pub fn reduce<'s>(
    document: Document,
    oracle: &'s mut dyn Oracle,
    control: Control<'s>,
) -> Result<Reduction, NoReduction> {
    let before = document.size();
    let mut held = 0;
    for _ in 0..FIRST_TRIES {
        held += usize::from(oracle.holds(&document).map_err(NoReduction::Failed)?);
    }
    match held {
        0 => return Err(NoReduction::DoesNotHold),
        FIRST_TRIES => {}
        held => return Err(NoReduction::Flaky { held, tries: FIRST_TRIES }),
    }
    let progress = Progress { tries: FIRST_TRIES, accepted: 0, size: before };
    let original = document.clone();
    let mut search = Search { document, oracle, control, progress, refused: BTreeSet::new(), parts: Parts::new() };
    loop {
        let end = match search.run() {
            Ok(()) => End::Complete,
            Err(end) => end,
        };
        let confirmed = search.oracle.confirms(&search.document);
        let is_confirmed = confirmed.is_ok();
        let end = match (confirmed, end) {
            (Ok(true), end) => end,
            (Ok(false), _) => {
                search.begin_again(original.clone());
                continue;
            }
            (Err(error), End::Complete) => End::Failed(error),
            (Err(_), end) => end,
        };
        let Search { document, progress, .. } = search;
        return Ok(Reduction { document, before, progress, end, is_confirmed });
    }
}

struct Search<'s> {
    /// The smallest document so far.
    document: Document,
    oracle: &'s mut dyn Oracle,
    control: Control<'s>,
    progress: Progress,
    /// Digests of the documents of which it does not hold.
    refused: BTreeSet<u64>,
    parts: Parts,
}

impl Search<'_> {
    fn begin_again(&mut self, original: Document) {
        self.progress.size = original.size();
        self.document = original;
        self.refused.clear();
    }

    fn run(&mut self) -> Result<(), End> {
        loop {
            let accepted = self.progress.accepted;
            self.files()?;
            self.statements()?;
            // A later statement depends on earlier ones.
            let ids: Vec<usize> = self.document.statements().map(|statement| statement.id).collect();
            for id in ids.into_iter().rev() {
                self.statement(id)?;
            }
            self.columns()?;
            self.merges()?;
            self.others()?;
            if self.progress.accepted == accepted && !self.detours()? {
                return Ok(());
            }
        }
    }

    fn files(&mut self) -> Result<(), End> {
        let used: Vec<usize> =
            (0..self.document.files.len()).filter(|at| !self.document.files[*at].parts.is_empty()).collect();
        self.subset(&used, Document::with_files)
    }

    fn statements(&mut self) -> Result<(), End> {
        let ids: Vec<usize> = self.document.statements().map(|statement| statement.id).collect();
        self.subset(&ids, Document::with_statements)
    }

    fn others(&mut self) -> Result<(), End> {
        let numbers = self.document.others();
        self.subset(&numbers, Document::with_others)
    }

    /// Removes elements of the document, each of which has a number.
    fn subset(&mut self, numbers: &[usize], with: impl Fn(&Document, &BTreeSet<usize>) -> Document) -> Result<(), End> {
        let original = self.document.clone();
        minimize(numbers.len(), 0, &mut |kept| {
            let kept = kept.iter().map(|at| numbers[*at]).collect();
            self.accepts(with(&original, &kept))
        })?;
        Ok(())
    }

    /// Whether the oracle was asked about a document, and it did not hold.
    fn is_refused(&self, document: &Document) -> bool {
        self.refused.contains(&document.digest())
    }

    /// Asks the oracle about a smaller document, which is the smallest from now on if it holds.
    fn accepts(&mut self, document: Document) -> Result<bool, End> {
        if self.control.interrupted.load(Ordering::Relaxed) {
            return Err(End::Interrupted);
        }
        if self.control.is_over() {
            return Err(End::TimeLimit);
        }
        if self.is_refused(&document) {
            return Ok(false);
        }
        (self.control.progress)(&self.progress);
        self.progress.tries += 1;
        let holds = self.oracle.holds(&document).map_err(|error| {
            // An oracle may end a try at the same time.
            if self.control.is_over() { End::TimeLimit } else { End::Failed(error) }
        })?;
        if holds {
            self.progress.accepted += 1;
            self.progress.size = document.size();
            self.document = document;
        } else {
            self.refused.insert(document.digest());
        }
        Ok(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An oracle that looks at the text.
    struct Text<F>(F);

    impl<F: FnMut(&str) -> Result<bool, Error>> Oracle for Text<F> {
        fn holds(&mut self, document: &Document) -> Result<bool, Error> {
            (self.0)(&document.texts().map(|(_, text)| text).collect::<String>())
        }
    }

    fn reduced(
        files: &[(&str, &str)],
        holds: impl FnMut(&str) -> Result<bool, Error>,
        deadline: Option<Instant>,
    ) -> Result<Reduction, NoReduction> {
        let control = Control { deadline, interrupted: &AtomicBool::new(false), progress: &mut |_| {} };
        reduce(Document::new(files.iter().copied()), &mut Text(holds), control)
    }

    fn text(reduction: &Reduction) -> String {
        reduction.document.texts().map(|(_, text)| text).collect()
    }

    const FILES: [(&str, &str); 3] = [
        ("1.sql", "CREATE TABLE a (b int);\n-- why\nCREATE TABLE c (d int, e text NOT NULL);\n"),
        ("2.sql", "INSERT INTO c (d, e) VALUES (1, 'needle');\n"),
        ("3.sql", "SELECT 1;\n"),
    ];

    #[test]
    fn files_statements_and_their_parts_are_removed() {
        let reduction = reduced(&FILES, |text| Ok(text.contains("needle")), None).unwrap();
        assert_eq!(text(&reduction), "SELECT 'needle';\n");
        assert_eq!(
            (reduction.end.clone(), reduction.progress.size),
            (End::Complete, Size { files: 1, statements: 1, tokens: 2 })
        );
        assert_eq!(reduction, reduced(&FILES, |text| Ok(text.contains("needle")), None).unwrap(), "the same again");
    }

    #[test]
    fn what_no_step_changes_stays_as_it_was_written() {
        let reduction = reduced(&[("1.sql", "select  1 ;\n-- kept\nselect 2")], |text| Ok(text.contains("kept")), None);
        assert_eq!(text(&reduction.unwrap()), "-- kept\n");
        let both = |text: &str| Ok(text.contains("CREATE   TABLE") && text.contains("needle"));
        let reduction = reduced(&[("1.sql", "CREATE   TABLE t ();\nSELECT 'needle', 1;")], both, None).unwrap();
        assert_eq!(text(&reduction), "CREATE   TABLE t ();\nSELECT 'needle';");
    }

    #[test]
    fn what_alter_table_adds_moves_into_the_table() {
        let sql = "CREATE TABLE t (); CREATE TABLE u (); ALTER TABLE t ADD CHECK (a), ADD COLUMN a bool;";
        let both =
            |text: &str| Ok(text.contains("CHECK (a)") && text.contains("a bool") && text.contains("CREATE TABLE t"));
        assert_eq!(text(&reduced(&[("1.sql", sql)], both, None).unwrap()), "CREATE TABLE t (CHECK (a), a bool); ");
    }

    #[test]
    fn a_statement_that_would_be_written_as_another_one_keeps_its_text() {
        let sql = "select 1, 2;\nCREATE TABLE t (a int, b int, LIKE u INCLUDING ALL EXCLUDING IDENTITY);\n";
        let reduction = reduced(&[("1.sql", sql)], |text| Ok(text.contains("LIKE u")), None).unwrap();
        assert_eq!(text(&reduction), "CREATE TABLE t (a int, b int, LIKE u INCLUDING ALL EXCLUDING IDENTITY);\n");
    }

    #[test]
    fn what_does_not_hold_is_no_reduction() {
        assert_eq!(reduced(&FILES, |_| Ok(false), None), Err(NoReduction::DoesNotHold));
    }

    #[test]
    fn an_oracle_that_changes_its_mind_is_reported_before_anything_is_removed() {
        let mut tries = 0;
        let flaky = |_: &str| {
            tries += 1;
            Ok(tries != 2)
        };
        assert_eq!(reduced(&FILES, flaky, None), Err(NoReduction::Flaky { held: 2, tries: 3 }));
        assert_eq!(tries, 3);
    }

    #[test]
    fn a_result_that_is_not_confirmed_is_searched_for_again() {
        /// Before it is asked to confirm, it accepts too much.
        struct Hasty {
            is_exact: bool,
        }
        impl Oracle for Hasty {
            fn holds(&mut self, document: &Document) -> Result<bool, Error> {
                let text = document.texts().map(|(_, text)| text).collect::<String>();
                Ok(text.contains("needle") && (!self.is_exact || text.contains("CREATE TABLE a")))
            }
            fn confirms(&mut self, document: &Document) -> Result<bool, Error> {
                self.is_exact = true;
                self.holds(document)
            }
        }
        let control = Control { deadline: None, interrupted: &AtomicBool::new(false), progress: &mut |_| {} };
        let reduction = reduce(Document::new(FILES), &mut Hasty { is_exact: false }, control).unwrap();
        assert_eq!(text(&reduction), "CREATE TABLE a ();\nSELECT 'needle';\n");
    }

    #[test]
    fn what_cannot_be_confirmed_after_the_end_is_kept() {
        struct Late;
        impl Oracle for Late {
            fn holds(&mut self, _: &Document) -> Result<bool, Error> {
                Ok(true)
            }
            fn confirms(&mut self, _: &Document) -> Result<bool, Error> {
                Err(Error::new("the time is over"))
            }
        }
        let ended = |deadline| {
            let control = Control { deadline, interrupted: &AtomicBool::new(false), progress: &mut |_| {} };
            let reduction = reduce(Document::new(FILES), &mut Late, control).unwrap();
            (reduction.end, reduction.is_confirmed)
        };
        assert_eq!(ended(Some(Instant::now())), (End::TimeLimit, false));
        assert_eq!(ended(None), (End::Failed(Error::new("the time is over")), false));
    }

    #[test]
    fn the_smallest_so_far_is_kept_when_the_search_ends_early() {
        let late = reduced(&FILES, |_| Ok(true), Some(Instant::now())).unwrap();
        assert_eq!((late.end.clone(), late.progress.accepted, late.before), (End::TimeLimit, 0, late.progress.size));
        let mut tries = 0;
        let gone = |text: &str| {
            tries += 1;
            if tries > 5 { Err(Error::new("the server is gone")) } else { Ok(text.contains("needle")) }
        };
        let gone = reduced(&FILES, gone, None).unwrap();
        assert_eq!(gone.end, End::Failed(Error::new("the server is gone")));
        assert!(gone.progress.accepted > 0 && text(&gone).contains("needle"));
    }
}
