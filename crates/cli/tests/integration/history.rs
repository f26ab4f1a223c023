//! Findings about applied migrations, in real repositories. What the tools do was seen or read:
//! `crates/workspace/src/layout/reaction.rs`.

use crate::support::Folder;
use crate::support::repository;
use crate::support::repository::{commit, git, write};

/// A repository whose branch `main` has these files; the branch `work` that leaves it is checked out.
fn repository(files: &[(&str, &str)]) -> Folder {
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    let folder = Folder::new(&files);
    repository::init(&folder);
    git(&folder, &["checkout", "-q", "-b", "work"]);
    folder
}

/// The findings about history.
fn found(folder: &Folder, args: &[&str]) -> Vec<String> {
    let output = folder.run(&[&["check", "--format", "concise"], args].concat());
    assert!(output.starts_with("exit 0") || output.starts_with("exit 1"), "{args:?}: {output}");
    let rules = ["[applied-migration-", "[duplicate-migration-version]", "[migration-"];
    let is_finding = |line: &&str| rules.iter().any(|rule| line.contains(rule));
    output.lines().filter(is_finding).map(str::to_owned).collect()
}

fn since_main(folder: &Folder) -> Vec<String> {
    found(folder, &["--since", "main", "."])
}

#[test]
fn a_contract_migration_does_not_come_with_its_expansion() {
    let folder = repository(&[("m/V1__users.sql", "CREATE TABLE users (id bigint PRIMARY KEY, name text);\n")]);
    let expand =
        "-- pgvet: phase expand\nSET LOCAL lock_timeout = '2s';\nALTER TABLE users ADD COLUMN full_name text;\n";
    let contract = |after: &str| {
        format!(
            "-- pgvet: phase contract{after}\nSET LOCAL lock_timeout = '2s';\nALTER TABLE users DROP COLUMN name;\n"
        )
    };
    let check = || folder.run(&["check", "--format", "concise", "--since", "main", "."]);
    write(&folder, "m/V2__expand.sql", expand);
    write(&folder, "m/V3__contract.sql", contract(""));
    let together = check();
    assert!(together.starts_with("exit 1") && together.contains("V3__contract.sql:1:1"), "{together}");
    assert!(together.contains("in the same deployment that adds its replacement"), "{together}");
    assert!(!together.contains("[drop-column]"), "{together}");
    std::fs::remove_file(folder.path().join("m/V3__contract.sql")).unwrap();
    commit(&folder);
    git(&folder, &["branch", "-f", "main", "HEAD"]);
    write(&folder, "m/V3__contract.sql", contract(" after 2.4"));
    for (deployed, expected) in [("2.3", "[contract-before-release]"), ("2.4", "exit 0")] {
        write(&folder, "pgvet.toml", format!("[releases]\ndeployed = \"{deployed}\"\n"));
        let said = check();
        assert!(said.contains(expected) && !said.contains("[drop-column]"), "{deployed}: {said}");
    }
}

/// A migration of a tool that creates one table.
fn migration(tool: &str, table: &str) -> String {
    let sql = format!("CREATE TABLE {table} (id bigint PRIMARY KEY);\n");
    match tool {
        "goose" => format!("-- +goose Up\n{sql}-- +goose Down\nDROP TABLE {table};\n"),
        "dbmate" => format!("-- migrate:up\n{sql}-- migrate:down\nDROP TABLE {table};\n"),
        _ => sql,
    }
}

/// The name of a migration of a tool.
fn name(tool: &str, version: u32, title: &str) -> String {
    match tool {
        "golang-migrate" => format!("m/{version}_{title}.up.sql"),
        "flyway" => format!("m/V{version}__{title}.sql"),
        "postgrator" => format!("m/{version}.do.{title}.sql"),
        _ => format!("m/{version}_{title}.sql"),
    }
}

/// The repository of a tool with the versions 1 and 3.
fn project(tool: &str) -> Folder {
    let configuration = format!("[migrations]\ntool = \"{tool}\"\n");
    repository(&[
        ("pgvet.toml", &configuration),
        (&name(tool, 1, "a"), &migration(tool, "a")),
        (&name(tool, 3, "c"), &migration(tool, "c")),
    ])
}

/// Asserts that there is one finding about a file, with this text; none if the text is empty.
fn expect(found: &[String], start: &str, said: &str, case: &str) {
    let is_right = match found {
        [] => said.is_empty(),
        [one] => !said.is_empty() && one.starts_with(start) && one.contains(said),
        _ => false,
    };
    assert!(is_right, "{case}: {found:#?}");
}

#[test]
fn an_edit_of_an_applied_migration_is_judged_as_the_tool_judges_it() {
    for (tool, edit, comment) in [
        ("goose", "goose does not run it again", ""),
        ("golang-migrate", "golang-migrate does not run it again", ""),
        ("dbmate", "dbmate does not run it again", ""),
        ("flyway", "Flyway refuses to run", "Flyway refuses to run"),
        ("postgrator", "(\"MD5 checksum failed", "(\"MD5 checksum failed"),
        ("sqlx", "has been modified", "has been modified"),
        ("plain", "some migration tools refuse to run", ""),
    ] {
        let folder = project(tool);
        let first = name(tool, 1, "a");
        let text = migration(tool, "a");
        write(&folder, &first, text.replace("PRIMARY KEY", "PRIMARY KEY, note text"));
        expect(&since_main(&folder), &first, edit, tool);
        write(&folder, &first, text.replace("CREATE TABLE", "-- why\nCREATE   TABLE"));
        expect(&since_main(&folder), &first, comment, tool);
        write(&folder, &first, text.replace("CREATE TABLE", "create table if not exists"));
        expect(&since_main(&folder), &first, comment, tool);
        // The rollback part runs nowhere on the way forward.
        if text.contains("Down") || text.contains("down") {
            write(&folder, &first, text.replace("DROP TABLE a", "DROP TABLE IF EXISTS a"));
            expect(&since_main(&folder), &first, "", tool);
        }
        write(&folder, &first, text.replace('\n', "\r\n"));
        expect(&since_main(&folder), &first, "", tool);
    }
}

#[test]
fn what_is_committed_on_a_branch_alone_may_not_be_applied() {
    let folder = project("flyway");
    write(&folder, "m/V4__d.sql", migration("flyway", "d"));
    commit(&folder);
    write(&folder, "m/V4__d.sql", "CREATE TABLE d (id int);\n");
    write(&folder, "m/V3.5__late.sql", migration("flyway", "late"));
    for selection in ["--changed", "--staged"] {
        git(&folder, &["add", "-A"]);
        assert!(found(&folder, &[selection, "."]).is_empty());
        let possible = found(&folder, &[selection, "--confidence", "possible", "."]);
        assert!(possible.len() == 2 && possible[1].contains("this edits an applied migration"), "{possible:?}");
    }
    assert!(found(&folder, &["."]).is_empty(), "nothing is applied without a base revision");
    // Without a base branch, any migration may be only on this branch.
    write(&folder, "m/V1__a.sql", "CREATE TABLE a (id int);\n");
    let edited = || found(&folder, &["--changed", "."]);
    expect(&edited(), "m/V1__a.sql", "Flyway refuses", "main");
    git(&folder, &["branch", "-q", "-m", "main", "other"]);
    assert!(edited().is_empty());
    git(&folder, &["update-ref", "refs/remotes/origin/trunk", "other"]);
    git(&folder, &["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk"]);
    expect(&edited(), "m/V1__a.sql", "Flyway refuses", "remote");
}

/// A change of a file, and what is said about it with `--staged`, `--changed` and `--since main`.
type Case = (&'static str, &'static [&'static [&'static str]], [&'static str; 3]);

#[test]
fn changes_of_committed_migrations_are_reported_with_every_selection() {
    const EDITED: &str = "this edits an applied migration";
    const REMOVED: &str = "this applied migration was deleted";
    const RENAMED: &str = "this applied migration was renamed";
    let cases: [Case; 11] = [
        ("edit", &[], ["", EDITED, EDITED]),
        ("edit", &[&["add", "-A"]], [EDITED; 3]),
        ("edit", &[&["commit", "-qam", "x"]], ["", "", EDITED]),
        ("edit again", &[&["commit", "-qam", "x"], &["add", "-A"]], [EDITED; 3]),
        // What the base branch has is no edit.
        ("restore", &[&["commit", "-qam", "x"], &["add", "-A"]], [""; 3]),
        ("restore", &[&["rm", "-qf", "m/V1__a.sql"], &["commit", "-qm", "x"], &["add", "-A"]], [""; 3]),
        ("delete", &[], ["", REMOVED, REMOVED]),
        ("delete", &[&["add", "-A"]], [REMOVED; 3]),
        ("nothing", &[&["rm", "-q", "--cached", "m/V1__a.sql"]], [REMOVED; 3]),
        ("nothing", &[&["mv", "m/V1__a.sql", "m/V1__b.sql"]], [RENAMED; 3]),
        ("replace", &[&["add", "-A"]], [EDITED; 3]),
    ];
    // On a branch, and on the base branch itself, where `--since` compares with the last commit.
    for branch in ["work", "main"] {
        for (change, commands, said) in cases {
            let folder = project("flyway");
            git(&folder, &["checkout", "-q", branch]);
            let first = "m/V1__a.sql";
            let write = |text: &str| write(&folder, first, text);
            if !matches!(change, "nothing" | "delete") {
                write("CREATE TABLE a (id int);\n");
            }
            if change == "replace" {
                write("CREATE VIEW v AS SELECT 1;\n");
            }
            let (last, before) = commands.split_last().map_or((None, commands), |(last, before)| (Some(last), before));
            before.iter().for_each(|command| git(&folder, command));
            match change {
                "edit again" => write("CREATE TABLE a (id bigint);\n"),
                "restore" => write(&migration("flyway", "a")),
                "delete" => std::fs::remove_file(folder.path().join(first)).unwrap(),
                _ => {}
            }
            last.iter().for_each(|command| git(&folder, command));
            for (selection, said) in [&["--staged"][..], &["--changed"], &["--since", "main"]].into_iter().zip(said) {
                let is_committed = commands.iter().any(|command| command[0] == "commit");
                if branch == "main" && is_committed {
                    continue;
                }
                let case = format!("{branch}: {change} {commands:?} {selection:?}");
                expect(&found(&folder, &[selection, &["."]].concat()), first, said, &case);
            }
        }
    }
}

#[test]
fn a_migration_that_sorts_before_applied_ones_is_judged_as_the_tool_judges_it() {
    for (tool, said) in [
        ("goose", "goose refuses to run (\"found 1 missing migrations\")"),
        ("golang-migrate", "golang-migrate never runs it on existing databases"),
        ("postgrator", "Postgrator never runs it on existing databases"),
        ("flyway", "Flyway refuses to run"),
        ("node-pg-migrate", "node-pg-migrate refuses to run"),
        // They run it late, which matters only sometimes.
        ("dbmate", ""),
        ("plain", ""),
    ] {
        let folder = project(tool);
        let (late, next) = (name(tool, 2, "b"), name(tool, 4, "d"));
        write(&folder, &late, migration(tool, "b"));
        write(&folder, &next, migration(tool, "d"));
        expect(&since_main(&folder), &late, said, tool);
        // A file that is named by itself is judged among all of its folder.
        expect(&found(&folder, &["--since", "main", &late]), &late, said, tool);
        expect(&found(&folder, &["--since", "main", &next]), &next, "", tool);
        let possible = found(&folder, &["--since", "main", "--confidence", "possible", "."]);
        assert!(
            possible.iter().any(|line| line.starts_with(&late) && line.contains("sorts before `3")
                || line.contains("sorts before `V3__c.sql`")),
            "{tool}: {possible:#?}"
        );
    }
}

/// The branch left `main` before the later migration was merged there.
#[test]
fn migrations_that_only_the_base_branch_has_are_applied() {
    let folder = project("goose");
    git(&folder, &["checkout", "-q", "main"]);
    write(&folder, "m/5_e.sql", migration("goose", "e"));
    commit(&folder);
    git(&folder, &["checkout", "-q", "work"]);
    write(&folder, "m/4_d.sql", migration("goose", "d"));
    commit(&folder);
    expect(&since_main(&folder), "m/4_d.sql", "sorts before `5_e.sql`", "late");
    git(&folder, &["mv", "m/4_d.sql", "m/5_d.sql"]);
    expect(&since_main(&folder), "m/5_d.sql", "this migration and `5_e.sql` have the same version 5", "same version");
}

#[test]
fn a_rollback_script_of_the_same_version_is_not_to_get_another_version() {
    let folder = project("goose");
    write(&folder, "m/5_e.sql", migration("goose", "e"));
    write(&folder, "m/5_rollback_changes.sql", migration("goose", "f"));
    commit(&folder);
    let output = folder.run(&["check", "--format", "json", "."]);
    assert!(output.contains("move the rollback script out of this folder"), "{output}");
    assert!(!output.contains("next free version"), "{output}");
}

#[test]
fn a_deleted_migration_is_judged_as_the_tool_judges_it() {
    for (tool, said) in [
        ("goose", "new databases never get them"),
        ("golang-migrate", "new databases never get them"),
        ("flyway", "Flyway refuses to run"),
        ("sql-migrate", "unknown migration in database"),
        ("sqlx", "missing in the resolved migrations"),
        ("plain", "some migration tools refuse to run"),
    ] {
        let folder = project(tool);
        let first = name(tool, 1, "a");
        git(&folder, &["rm", "-q", &first]);
        expect(&since_main(&folder), &first, said, tool);
    }
    // Only comments in the file show the tool.
    let folder = repository(&[("m/1_a.sql", &migration("dbmate", "a")), ("m/2_b.sql", &migration("dbmate", "b"))]);
    git(&folder, &["mv", "m/1_a.sql", "m/4_a.sql"]);
    expect(&since_main(&folder), "m/1_a.sql", "dbmate treats it as new and runs it again", "comments");
    let folder = project("golang-migrate");
    git(&folder, &["rm", "-q", "m/3_c.up.sql"]);
    expect(&since_main(&folder), "m/3_c.up.sql", "golang-migrate refuses to run", "newest");
}

#[test]
fn many_deleted_migrations_are_one_finding() {
    let folder = project("flyway");
    write(&folder, "m/V4__d.sql", migration("flyway", "d"));
    write(&folder, "m/V5__e.sql", migration("flyway", "e"));
    commit(&folder);
    git(&folder, &["branch", "-f", "main"]);
    git(&folder, &["rm", "-q", "m/V1__a.sql", "m/V3__c.sql", "m/V4__d.sql"]);
    expect(&since_main(&folder), "m/V1__a.sql", "this and 2 other applied migrations were deleted", "three");
    // Somebody else runs the migrations from now on.
    write(&folder, "other/1_x.sql", "SELECT 1;\n");
    git(&folder, &["rm", "-q", "-r", "m"]);
    assert!(since_main(&folder).is_empty());
}

#[test]
fn a_renamed_migration_is_judged_as_the_tool_judges_it() {
    for (tool, retitled, renumbered) in [
        ("goose", "", "goose treats it as new and runs it again"),
        ("dbmate", "", "dbmate treats it as new and runs it again"),
        ("flyway", "Migration description mismatch", "Flyway refuses to run"),
        ("sql-migrate", "unknown migration in database", "unknown migration in database"),
        ("postgrator", "", "Postgrator treats it as new and runs it again"),
    ] {
        let folder = project(tool);
        let (first, other, newer) = (name(tool, 1, "a"), name(tool, 1, "better"), name(tool, 4, "a"));
        git(&folder, &["mv", &first, &other]);
        expect(&since_main(&folder), &first, retitled, tool);
        git(&folder, &["mv", &other, &newer]);
        expect(&since_main(&folder), &first, renumbered, tool);
        git(&folder, &["mv", "m", "migrations"]);
        git(&folder, &["mv", &newer.replace("m/", "migrations/"), &first.replace("m/", "migrations/")]);
        expect(&since_main(&folder), &first, "", tool);
    }
}

#[test]
fn two_migrations_with_one_version_are_reported_without_a_base_revision() {
    for (tool, said) in [
        ("goose", "goose fails (\"panic: goose: duplicate version"),
        ("golang-migrate", "golang-migrate fails (\"duplicate migration file\")"),
        ("postgrator", "Postgrator fails"),
        ("dbmate", "dbmate fails (\"duplicate key value"),
        ("node-pg-migrate", ""),
        ("sql-migrate", ""),
        ("plain", ""),
    ] {
        let folder = project(tool);
        let same = name(tool, 3, "d");
        write(&folder, &same, migration(tool, "d"));
        expect(&found(&folder, &["."]), &same, said, tool);
    }
    let folder = project("dbmate");
    write(&folder, "m/3_b.sql", migration("dbmate", "b"));
    expect(
        &since_main(&folder),
        "m/3_b.sql",
        "dbmate runs only one of the two migrations, and reports no error",
        "applied",
    );
}

#[test]
fn findings_about_history_are_configured_and_suppressed_like_others() {
    let folder = project("flyway");
    let edited =
        "-- pgvet: ignore[applied-migration-edited] reformatted before the release\nCREATE TABLE a (id int);\n";
    write(&folder, "m/V1__a.sql", edited);
    assert!(since_main(&folder).is_empty());
    write(&folder, "m/V1__a.sql", "CREATE TABLE a (id int);\n");
    assert_eq!(since_main(&folder).len(), 1);
    let configuration = "[migrations]\ntool = \"flyway\"\n[rules]\napplied-migration-edited = \"off\"\n";
    write(&folder, "pgvet.toml", configuration);
    assert!(since_main(&folder).is_empty());
}

fn journal(entries: &[(&str, u64)]) -> String {
    let entry = |(tag, when): &(&str, u64)| format!("{{\"idx\": 0, \"when\": {when}, \"tag\": \"{tag}\"}}");
    let entries: Vec<String> = entries.iter().map(entry).collect();
    format!("{{\"version\": \"7\", \"dialect\": \"postgresql\", \"entries\": [{}]}}", entries.join(", "))
}

#[test]
fn drizzle_depends_on_its_journal() {
    let applied = [("0000_a", 1000), ("0001_b", 3000)];
    let folder = repository(&[
        ("drizzle/0000_a.sql", &migration("drizzle", "a")),
        ("drizzle/0001_b.sql", &migration("drizzle", "b")),
        ("drizzle/meta/_journal.json", &journal(&applied)),
    ]);
    write(&folder, "drizzle/0002_c.sql", migration("drizzle", "c"));
    expect(
        &since_main(&folder),
        "drizzle/0002_c.sql",
        "not in `meta/_journal.json`: Drizzle never runs it",
        "unlisted",
    );
    for (when, said) in
        [(2000, "is not later than that of `0001_b`"), (3000, "is not later than that of `0001_b`"), (3001, "")]
    {
        let entries = [&applied[..], &[("0002_c", when)]].concat();
        write(&folder, "drizzle/meta/_journal.json", journal(&entries));
        expect(&since_main(&folder), "drizzle/0002_c.sql", said, &when.to_string());
    }
}

#[test]
fn new_migrations_are_in_the_list_of_the_tool() {
    let folder = repository(&[("m/20240101_a.sql", &migration("atlas", "a")), ("m/atlas.sum", SUM_OF_ONE)]);
    write(&folder, "m/20240102_b.sql", migration("atlas", "b"));
    expect(&since_main(&folder), "m/20240102_b.sql", "Atlas refuses to run (\"checksum mismatch\")", "atlas");
    write(&folder, "m/20240102_b.sql", format!("-- atlas:sum ignore\n{}", migration("atlas", "b")));
    assert!(since_main(&folder).is_empty(), "opts out");
    write(&folder, "m/20240102_b.sql", migration("atlas", "b"));
    write(&folder, "m/atlas.sum", SUM_OF_TWO);
    assert!(since_main(&folder).is_empty());
    let folder = repository(&[
        ("sqitch.plan", "%project=x\n\na 2024-01-01T00:00:00Z a <a@b.c>\n"),
        ("sqitch.conf", "[core]\n"),
        ("deploy/a.sql", &migration("sqitch", "a")),
    ]);
    write(&folder, "deploy/b.sql", migration("sqitch", "b"));
    expect(&since_main(&folder), "deploy/b.sql", "not in `sqitch.plan`: Sqitch never runs it", "sqitch");
}

/// Written by `sql/migrate` of ariga.io/atlas 0.32.1, for `20240101_a.sql`, `20240102_b.sql` and `20240103_c.sql`.
const SUM_OF_ONE: &str = "h1:CQGyFyfZmz3OOzMY5wN5YM4HrzaLNkNrj1COla2F9Bs=
20240101_a.sql h1:AGER7gljewOOMsV8aHzY8EAzuidbTXYXv11NE+UisSw=
";
const SUM_OF_TWO: &str = "h1:Nux4ynB5CSlXij155Xc3fs3JzN39qB8Y8hv5ltB5f/Y=
20240101_a.sql h1:AGER7gljewOOMsV8aHzY8EAzuidbTXYXv11NE+UisSw=
20240102_b.sql h1:AZB+RagDRcy9oCjMBvgpQqjXIoSEwgii/S7rhX3K/7s=
";
const SUM_OF_THREE: &str = "h1:M/DNj4fC+UJ37OCX+NRlHNxiY0GLlbmCD3tQ8YLHGFQ=
20240101_a.sql h1:AGER7gljewOOMsV8aHzY8EAzuidbTXYXv11NE+UisSw=
20240102_b.sql h1:AZB+RagDRcy9oCjMBvgpQqjXIoSEwgii/S7rhX3K/7s=
20240103_c.sql h1:/gskUiHNkTip6z9ky0ejJDjUBoFxFRSeAu11/Fu3STc=
";

#[test]
fn migrations_of_atlas_match_their_hashes() {
    let texts = ["a", "b", "c"].map(|table| migration("atlas", table));
    let names = ["m/20240101_a.sql", "m/20240102_b.sql", "m/20240103_c.sql"];
    let files: Vec<(&str, &str)> = names.into_iter().zip(texts.iter().map(String::as_str)).collect();
    let folder = repository(&[&files[..], &[("m/atlas.sum", SUM_OF_THREE)]].concat());
    let check = |said: &str, case: &str| {
        for args in [&["."][..], &["--since", "main", "."]] {
            let expected = if args == ["."] || said.is_empty() { names[1] } else { "m/" };
            expect(&found(&folder, args), expected, said, case);
        }
    };
    check("", "as it was");
    let differs = "this migration does not match its hash in `atlas.sum`: Atlas refuses to run (\"checksum mismatch\")";
    write(&folder, names[1], texts[1].replace("PRIMARY KEY", "PRIMARY KEY, note text"));
    check(differs, "edited");
    // All later hashes include that of the edited file.
    write(&folder, names[2], format!("-- why\n{}", texts[2]));
    check(differs, "both");
    write(&folder, names[2], &texts[2]);
    write(&folder, names[1], texts[1].replace('\n', "\r\n"));
    check("does not match its hash in `atlas.sum`, because it has other line endings", "line endings");
    write(&folder, names[1], &texts[1]);
    write(&folder, "m/atlas.sum", SUM_OF_THREE.replacen("h1:M", "h1:N", 1));
    expect(&found(&folder, &["."]), names[2], "the first line of `atlas.sum` does not match", "total");
    // What is checked is what will be committed.
    write(&folder, "m/atlas.sum", SUM_OF_TWO);
    write(&folder, names[1], &texts[1]);
    git(&folder, &["rm", "-q", "--cached", names[2]]);
    git(&folder, &["add", "m/atlas.sum"]);
    write(&folder, "m/atlas.sum", "h1:\n20240101_a.sql h1:\n");
    assert!(found(&folder, &["--staged", "--confidence", "possible", "."]).len() == 1, "only the deleted one");
}

#[test]
fn a_deleted_migration_that_atlas_still_lists_is_refused() {
    let files = [("m/20240101_a.sql", migration("atlas", "a")), ("m/20240102_b.sql", migration("atlas", "b"))];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let folder = repository(&[&files[..], &[("m/atlas.sum", SUM_OF_TWO)]].concat());
    git(&folder, &["rm", "-q", "m/20240102_b.sql"]);
    expect(&since_main(&folder), "m/20240102_b.sql", "(\"checksum mismatch\")", "listed");
    write(&folder, "m/atlas.sum", SUM_OF_ONE);
    expect(&since_main(&folder), "m/20240102_b.sql", "new databases never get them", "updated");
}
