//! `start-after`: the migrations after which findings count.

use super::Source;
use crate::order;
use crate::problem::Problem;
use crate::project::{Request, Role};
use std::collections::BTreeSet;
use std::path::Path;

/// Looks for the migrations after which findings count.
#[derive(Default)]
pub(super) struct StartAfter {
    found: BTreeSet<String>,
    /// Names that were searched for in vain in some folder.
    missed: BTreeSet<String>,
    /// How many files would be reported otherwise.
    hidden: usize,
}

impl StartAfter {
    /// Turns everything up to the last of the wanted migrations into history.
    pub(super) fn apply(&mut self, wanted: &[String], sources: &mut [Source], is_complete: bool) {
        for name in wanted {
            match sources.iter().rposition(|source| order::is_called(&source.path, name)) {
                Some(at) => {
                    self.found.insert(name.clone());
                    for source in sources[..=at].iter_mut().filter(|source| source.role == Role::Reported) {
                        source.role = Role::History;
                        self.hidden += 1;
                    }
                }
                None if is_complete => drop(self.missed.insert(name.clone())),
                None => {}
            }
        }
    }

    /// How many files are history because of the names.
    pub(super) fn hidden(&self) -> usize {
        self.hidden
    }

    /// Where several folders were read, each name is that of a migration in one of them.
    pub(super) fn problems(self, request: &Request) -> impl Iterator<Item = Problem> {
        let origin = if request.start_after.is_empty() { "start-after in pgvet.toml" } else { "--start-after" };
        let help = "write the file name, the path or the version of a migration, as in `0041_add_users.sql` or `0041`";
        let missed: Vec<String> = self.missed.difference(&self.found).cloned().collect();
        let message = format!("({origin}) matches no migration");
        missed.into_iter().map(move |name| Problem::new(Path::new(&name), message.clone(), Some(help)))
    }
}
