//! The effects of statements, prepared for the formats of `pgvet effects`.

use pgvet_model::predict::StatementEffects;
use pgvet_model::version::PgVersion;
use pgvet_syntax::source::SourceFile;
use pgvet_workspace::{Project, Role};

/// The effects of every reported file.
#[derive(Debug)]
pub(crate) struct EffectsReport<'a> {
    pub(crate) version: PgVersion,
    pub(crate) files: Vec<FileEffects<'a>>,
}

/// The effects of the statements of one file, over all its sections.
#[derive(Debug)]
pub(crate) struct FileEffects<'a> {
    pub(crate) file: &'a SourceFile,
    pub(crate) statements: Vec<&'a StatementEffects>,
}

impl<'a> EffectsReport<'a> {
    /// `effects` runs parallel to [`Project::migrations`].
    pub(crate) fn new(project: &'a Project, effects: &'a [Vec<StatementEffects>], version: PgVersion) -> Self {
        let mut rest = effects.iter();
        let mut files = Vec::new();
        for file in &project.files {
            let statements = rest.by_ref().take(file.layout.sections.len()).flatten().collect();
            if file.role == Role::Reported {
                files.push(FileEffects { file: file.shown(), statements });
            }
        }
        Self { version, files }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use pgvet_model::catalog::{Oid, RelationKind};
    use pgvet_model::effect::{Branches, Effects, Lock, LockCause, RelationName, Visibility};
    use pgvet_syntax::ast::LockMode;
    use pgvet_syntax::source::TextRange;

    pub(crate) fn relation(oid: u32, name: &str) -> RelationName {
        RelationName {
            oid: Oid(oid),
            schema: "public".into(),
            name: name.into(),
            kind: RelationKind::Table,
            visibility: Visibility::Existing,
            few: None,
            unseen_part: None,
        }
    }

    pub(crate) fn lock(relation: RelationName, mode: LockMode) -> Lock {
        Lock {
            relation,
            mode,
            cause: LockCause::Target,
            range: TextRange::default(),
            patience: None,
            branches: Branches::default(),
        }
    }

    #[test]
    fn only_the_strongest_lock_on_what_existed_counts() {
        let locks = vec![
            lock(relation(1, "a"), LockMode::AccessShare),
            lock(relation(2, "new"), LockMode::AccessExclusive),
            lock(relation(3, "b"), LockMode::ShareRowExclusive),
            lock(relation(1, "a"), LockMode::Share),
        ];
        let effects =
            Effects { locks: locks.into_iter().collect(), creates: vec![relation(2, "new")], ..Effects::default() };
        let shown: Vec<_> = effects.strongest_locks().iter().map(|(name, mode)| (name.name.as_str(), *mode)).collect();
        assert_eq!(shown, [("b", LockMode::ShareRowExclusive), ("a", LockMode::Share)]);
    }
}
