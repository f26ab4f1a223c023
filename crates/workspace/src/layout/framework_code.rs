//! Migrations of a framework, in its own language, that send SQL files: which files, in which transaction.
//!
//! Seen in November 2026: Knex 3.3.0, `TypeORM` 1.1.1 and Alembic 1.20.1 run all pending migrations in one transaction,
//! Django 5.2.19 each in its own; all of them in one session.

use super::model::of_framework;
use super::{Layout, Sign};
use crate::nearby::{Nearby, sql_names};
use pgvet_model::migration::TransactionMode::{self, Autocommit, SingleString, Transaction};
use pgvet_model::runner::KnownTransaction;
use rustc_hash::FxHashMap;
use std::path::Path;

/// A file that a migration of a framework sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) transaction: TransactionMode,
    /// Whether one transaction holds all pending migrations.
    pub(super) one_transaction: bool,
}

impl Sent {
    pub(super) fn apply(self, layout: &mut Layout) {
        layout.sign = Sign::RunnerCode;
        layout.known_transaction = KnownTransaction::Recognized;
        layout.runner_of_code = Some(of_framework(self.one_transaction));
        layout.sections.iter_mut().for_each(|section| section.transaction = self.transaction);
    }
}

/// How migrations of a framework are recognized.
struct Form {
    extensions: &'static [&'static str],
    /// Each of them is in the text.
    marks: &'static [&'static str],
    one_transaction: bool,
    /// Takes a migration out of the transaction.
    opt_out: &'static str,
    /// How a migration outside a transaction sends a file.
    outside: TransactionMode,
}

const SCRIPTS: &[&str] = &["ts", "mts", "cts", "js", "mjs", "cjs"];

const FORMS: [Form; 4] = [
    Form {
        extensions: SCRIPTS,
        marks: &["queryRunner", "up(", "down("],
        one_transaction: true,
        opt_out: "transaction = false",
        outside: SingleString,
    },
    Form {
        extensions: SCRIPTS,
        marks: &["knex", "up", "down", "exports."],
        one_transaction: true,
        opt_out: "transaction: false",
        outside: SingleString,
    },
    Form {
        extensions: &["py"],
        marks: &["from alembic import", "down_revision", "def upgrade("],
        one_transaction: true,
        opt_out: "autocommit_block(",
        outside: SingleString,
    },
    Form {
        extensions: &["py"],
        marks: &["migrations.Migration", "RunSQL("],
        one_transaction: false,
        opt_out: "atomic = False",
        outside: Autocommit,
    },
];

/// Maximum number of levels above the files at which the migrations are searched.
const LEVELS: usize = 4;

/// Folders of migrations, in a folder around the files.
const FOLDERS: [&str; 7] =
    ["", "migrations", "versions", "alembic/versions", "migrations/versions", "db/migrations", "src/migrations"];

/// Maximum number of files of code that are read for one folder.
const FILES: usize = 500;

/// Finds the SQL files that migrations around a folder name, by file name.
pub(super) fn find(folder: &Path, top: &Path, nearby: &Nearby) -> FxHashMap<String, Sent> {
    let around = folder.ancestors().take(LEVELS).take_while(|above| above.starts_with(top));
    let code = around.flat_map(|above| FOLDERS.iter().flat_map(move |below| nearby.code(&above.join(below))));
    let mut sent = FxHashMap::default();
    for path in code.take(FILES) {
        let Some(text) = nearby.text(&path).filter(|text| text.contains(".sql")) else { continue };
        let Some(form) = FORMS.iter().find(|form| form.is_of(&path, &text)) else { continue };
        let transaction = if text.contains(form.opt_out) { form.outside } else { Transaction };
        let one = Sent { transaction, one_transaction: form.one_transaction };
        sent.extend(sql_names(&text).map(|name| (name.to_owned(), one)));
    }
    sent
}

impl Form {
    fn is_of(&self, path: &Path, text: &str) -> bool {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        self.extensions.contains(&extension) && self.marks.iter().all(|mark| text.contains(mark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn migrations_name_the_files_that_they_send() {
        let knex = "exports.up = (knex) => knex.raw(read('../sql/1_a.sql'));\nexports.down = () => {};\n";
        let alembic = "from alembic import op\ndown_revision = None\ndef upgrade():\n    op.execute(read('1_a.sql'))\n";
        let typeorm =
            "export class A { up(queryRunner) { return queryRunner.query(read(`sql/1_a.sql`)) } down() {} }\n";
        let django = "class Migration(migrations.Migration):\n    operations = [migrations.RunSQL(read('1_a.sql'))]\n";
        for (file, text, expected) in [
            ("migrations/1_a.js", knex, Some((Transaction, true))),
            (
                "migrations/1_a.js",
                &format!("{knex}exports.config = {{ transaction: false }};"),
                Some((SingleString, true)),
            ),
            ("alembic/versions/1_a.py", alembic, Some((Transaction, true))),
            ("src/migrations/1_a.ts", typeorm, Some((Transaction, true))),
            ("migrations/0001_a.py", django, Some((Transaction, false))),
            ("migrations/0001_a.py", &format!("{django}    atomic = False\n"), Some((Autocommit, false))),
            ("migrations/1_b.js", &knex.replace("1_a", "11_a"), None),
            ("migrations/1_a.py", knex, None),
            ("migrate.js", "for (const file of files('sql/1_a.sql')) await query(file);", None),
        ] {
            let root = tempfile::tempdir().unwrap();
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::create_dir_all(root.path().join("sql")).unwrap();
            fs::write(path, text).unwrap();
            let sent = find(&root.path().join("sql"), root.path(), &Nearby::default()).get("1_a.sql").copied();
            assert_eq!(sent.map(|sent| (sent.transaction, sent.one_transaction)), expected, "{file}: {text}");
        }
    }
}
