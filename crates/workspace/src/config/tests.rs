use super::*;
use pgvet_linter::rules;
use pgvet_linter::severity::Severity;
use pgvet_model::production::calls_per_hour;
use pgvet_model::version::{PgVersion, VersionRange};
use pgvet_syntax::ast::LockMode;
use std::fs;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn read(text: &str) -> Result<Config, ConfigError> {
    let root = folder(&[(FILE_NAME, text)]);
    Config::read(&root.path().join(FILE_NAME))
}

const FULL: &str = r#"
pg-version = "15-17"
preset = "strict"
fail-on = "warning"
level = "info"
lock-timeout = "runner"
require-reasons = true
baseline = "known.json"

[rules]
index-without-concurrently = "off"
many-tables-locked = { level = "error", max-tables = 5 }

[categories]
locking = "warning"

[tables]
orders = { rows = 50_000_000, hot = true, max-held = { access-exclusive = "200ms" } }
"audit.log" = { ignore = true }

[functions]
"app.place_order" = { calls-per-hour = 40_000 }

[placeholders]
schema = "app"

[releases]
deployed = "2.4"

[trace]
max-held = { share = "5s" }

[migrations]
paths = ["db/migrations"]
tool = "golang-migrate"
transaction = "autocommit"
start-after = "0041_x.sql"
exclude = ["seeds"]

[[overrides]]
paths = ["db/migrations/legacy/**", "old"]
rules = { table-rewrite = "info" }
categories = { locking = "off" }
"#;

#[test]
fn a_file_belongs_to_the_innermost_configured_folder() {
    let root = folder(&[(FILE_NAME, "[migrations]\npaths = [\"migrate\", \"migrate/auth\"]\n")]);
    let config = Config::read(&root.path().join(FILE_NAME)).unwrap();
    for (file, expected) in [("migrate/1.sql", "migrate"), ("migrate/auth/1.sql", "migrate/auth")] {
        assert_eq!(config.folder_of(&root.path().join(file)), Some(root.path().join(expected).as_path()));
    }
}

#[test]
fn every_key_is_read() {
    let root = folder(&[(FILE_NAME, FULL)]);
    let config = Config::read(&root.path().join(FILE_NAME)).unwrap();
    let settings = &config.settings;
    assert_eq!(settings.versions, VersionRange { from: PgVersion(15), to: PgVersion(17) });
    assert!(settings.strict && settings.require_reasons && settings.versions_configured);
    assert_eq!((settings.level, settings.max_locked_tables), (Severity::Info, 5));
    assert_eq!(calls_per_hour(&settings.functions, "app", "place_order"), Some(40_000));
    assert_eq!(settings.table("public", "orders").rows, Some(50_000_000));
    assert!(settings.table("audit", "log").ignore);
    let severity = |name: &str| settings.severity_of(&rules::find(name).unwrap().meta);
    assert_eq!(severity("index-without-concurrently"), None);
    assert_eq!(severity("many-tables-locked"), Some(Severity::Error));
    assert_eq!(severity("table-rewrite"), Some(Severity::Warning));
    let held = |table, mode| config.max_held.of("public", table, mode).map(|limit| limit.held.as_millis());
    assert_eq!(held("orders", LockMode::AccessExclusive), Some(200));
    assert_eq!((held("orders", LockMode::Share), held("users", LockMode::RowShare)), (Some(5000), None));
    assert_eq!(config.fail_on, Some(FailOn::Warning));
    assert_eq!(config.placeholders["schema"], "app");
    assert_eq!(settings.releases.deployed, ["2.4"]);
    let root = absolute(root.path());
    assert_eq!(config.baseline, Some(root.join("known.json")));
    assert_eq!(config.migrations.tool, Some(Tool::GolangMigrate));
    assert_eq!(config.migrations.transaction, Some(TransactionMode::Autocommit));
    assert_eq!(config.folder_of(&root.join("db/migrations/1.sql")), Some(root.join("db/migrations").as_path()));
    assert!(config.is_excluded(&root.join("seeds/a.sql")));
    assert!(!config.is_excluded(&root.join("db/seeds.sql")));
}

#[test]
fn overrides_hold_for_their_files_only() {
    let root = folder(&[(FILE_NAME, FULL)]);
    let config = Config::read(&root.path().join(FILE_NAME)).unwrap();
    assert_eq!(config.levels_of(&root.path().join("db/migrations/1.sql")), None);
    for path in ["db/migrations/legacy/a/1.sql", "old/1.sql"] {
        let levels = config.levels_of(&root.path().join(path)).unwrap();
        assert_eq!(levels.rules["table-rewrite"], Some(Severity::Info));
        assert_eq!(levels.categories[&pgvet_linter::meta::Category::Locking], None);
    }
}

#[test]
fn what_is_wrong_is_underlined() {
    for (text, wrong, message, help) in [
        ("pg-versoin = 16", "pg-versoin", "there is no key `pg-versoin`", Some("did you mean `pg-version`?")),
        ("pg-version = 9", "9", "PostgreSQL 9 is not known", None),
        ("pg-version = true", "true", "this is not a PostgreSQL version", Some("write 16, or \"14-18\" for a range")),
        (
            "[rules]\ntable-rewrit = \"off\"",
            "table-rewrit",
            "there is no rule `table-rewrit`",
            Some("did you mean `table-rewrite`?"),
        ),
        (
            "[rules]\nlocking = \"off\"",
            "locking",
            "there is no rule `locking`",
            Some("this is a category: its level belongs under `[categories]`"),
        ),
        (
            "[rules]\ntable-rewrite = \"warn\"",
            "\"warn\"",
            "there is no value `warn`",
            Some("known here: `off`, `info`, `warning`, `error`"),
        ),
        (
            "[rules]\ntable-rewrite = { max-tables = 3 }",
            "{ max-tables = 3 }",
            "`table-rewrite` has no option `max-tables`",
            None,
        ),
        (
            "[overrides]\npaths = ['a']",
            "[overrides]",
            "this is one table, but the key takes a list of tables",
            Some("write two brackets around the name, as in `[[overrides]]`"),
        ),
        ("[rules]\ntable-rewrite = 3", "3", "invalid type: integer `3`, expected a level", None),
        ("[categories]\nlokking = \"off\"", "lokking", "there is no value `lokking`", Some("did you mean `locking`?")),
        ("[tables]\nt = { row = 3 }", "row", "there is no key `row`", Some("did you mean `rows`?")),
        (
            "[trace]\nmax-held = { shared = \"1s\" }",
            "shared",
            "there is no value `shared`",
            Some("did you mean `share`?"),
        ),
        ("[tables]\nt.max-held.share = \"5\"", "\"5\"", "`5` is not a duration: expected a number and ms, s", None),
        ("[trace]\nmax-hold = {}", "max-hold", "there is no key `max-hold`", Some("did you mean `max-held`?")),
        ("[migrations]\ntool = \"flywai\"", "\"flywai\"", "there is no value `flywai`", Some("did you mean `flyway`?")),
        ("[[overrides]]\npaths = [\"a[\"]", "\"a[\"", "unclosed character class", None),
        ("extend = \"none.toml\"", "\"none.toml\"", "there is no file `none.toml`", None),
        ("extend = \"pgvet.toml\"", "\"pgvet.toml\"", "this file extends itself", None),
        ("level == 3", "=", "extra `=`, expected nothing", None),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(&text[error.span.clone().unwrap()], wrong, "{text}");
        assert!(error.message.contains(message), "{text}: {}", error.message);
        assert_eq!(error.help.as_deref(), help, "{text}");
    }
}

#[test]
fn a_file_refines_what_it_extends() {
    let root = folder(&[
        ("base.toml", "pg-version = 16\nfail-on = \"info\"\n[rules]\ntable-rewrite = \"off\"\n[tables]\na.rows = 5\n"),
        ("app/pgvet.toml", "extend = \"../base.toml\"\nfail-on = \"never\"\n[rules]\ntable-rewrite = \"info\"\n"),
    ]);
    let config = Config::read(&root.path().join("app/pgvet.toml")).unwrap();
    assert_eq!(config.settings.versions.from, PgVersion(16));
    assert_eq!(config.settings.levels.rules["table-rewrite"], Some(Severity::Info));
    assert_eq!(config.settings.table("public", "a").rows, Some(5));
    assert_eq!(config.fail_on, Some(FailOn::Never));
    assert_eq!(config.files.len(), 2);
}

#[test]
fn the_nearest_file_wins() {
    let root = folder(&[("pgvet.toml", "pg-version = 14"), ("a/pgvet.toml", "pg-version = 15"), ("a/b/1.sql", "")]);
    let configs = Configs::new(ConfigSource::Nearest);
    let version = |folder: &str| configs.of(&root.path().join(folder)).unwrap().settings.versions.from;
    assert_eq!(version("a/b"), PgVersion(15));
    assert_eq!(version(""), PgVersion(14));
    let none = Configs::new(ConfigSource::None);
    assert!(none.of(root.path()).unwrap().files.is_empty());
}

#[test]
fn the_examples_of_the_documentation_are_read() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut examples = 0;
    for entry in fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let page = fs::read_to_string(path).unwrap();
        for example in page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            // These name files, which would have to be there.
            let text = example.replace("extend = \"../pgvet-base.toml\"", "");
            let text = text.replace("statistics = \"ops/pgvet.stats.json\"", "");
            if let Err(error) = read(&text) {
                panic!("{}: {:?}\n{text}", error.message, error.span.map(|span| text[span].to_owned()));
            }
            examples += 1;
        }
    }
    assert!(examples >= 2, "no examples were found");
}

#[cfg(unix)]
#[test]
fn a_configuration_names_nothing_outside_of_its_repository() {
    let root = folder(&[
        ("outside.json", "{}"),
        ("outside.toml", ""),
        ("outside/1.sql", ""),
        ("checkout/.git/config", "token"),
        ("checkout/.env", "token"),
        ("checkout/base.toml", ""),
    ]);
    let at = |path: &str| root.path().join(path);
    std::os::unix::fs::symlink("../outside.json", at("checkout/link.json")).unwrap();
    std::os::unix::fs::symlink("../outside", at("checkout/folder")).unwrap();
    std::os::unix::fs::symlink(".git/config", at("checkout/link.toml")).unwrap();
    let absolute = at("outside.toml").display().to_string();
    for (text, said) in [
        ("extend = '../outside.toml'", "which is outside"),
        (&format!("extend = '{absolute}'"), "which is outside"),
        ("extend = '.git/config'", "a file in the .git folder"),
        ("extend = 'link.toml'", "a file in the .git folder"),
        ("extend = '.env'", "this is not a configuration file"),
        ("baseline = '../outside.json'", "which is outside"),
        ("baseline = 'link.json'", "which is outside"),
        ("baseline = '.env'", "this is not a `.json` file"),
        ("baseline = '.git/hooks/a.json'", "a file in the .git folder"),
        ("statistics = '../outside.json'", "which is outside"),
        ("[migrations]\npaths = ['../outside']", "which is outside"),
        ("[migrations]\npaths = ['folder']", "which is outside"),
        ("[migrations]\nschema = '../outside/1.sql'", "which is outside"),
        ("[migrations]\nschema = '.env'", "this is not a `.sql` file"),
        (&format!("[migrations]\nexclude = ['{}']", "{a,b}".repeat(10_000)), "longer than 1024 bytes"),
    ] {
        fs::write(at("checkout/pgvet.toml"), text).unwrap();
        let error = Config::read(&at("checkout/pgvet.toml")).unwrap_err();
        assert!(error.message.contains(said), "{text}: {}", error.message);
    }
    fs::write(at("checkout/pgvet.toml"), "extend = './base.toml'\nbaseline = 'new.json'").unwrap();
    Config::read(&at("checkout/pgvet.toml")).unwrap();
}

/// As in an archive that somebody has unpacked, and checks from another folder.
#[cfg(unix)]
#[test]
fn a_file_without_a_repository_names_nothing_outside_of_its_folder() {
    let root = folder(&[("outside.json", "{}"), ("checkout/1.sql", ""), ("checkout/own.json", "{}")]);
    let at = |path: &str| root.path().join(path);
    let read = |text: &str| {
        fs::write(at("checkout/pgvet.toml"), text).unwrap();
        Configs::new(ConfigSource::Nearest).of(&at("checkout"))
    };
    for text in ["baseline = '../outside.json'", "[migrations]\npaths = ['..']"] {
        assert!(read(text).unwrap_err().message.contains("which is outside"), "{text}");
    }
    assert!(read("baseline = 'own.json'").is_ok());
    for (link, target) in [("new.json", "../missing.json"), ("b.json", "../outside.json")] {
        std::os::unix::fs::symlink(target, at("checkout").join(link)).unwrap();
        let error = read(&format!("baseline = '{link}'")).unwrap_err();
        assert!(error.message.contains("which is outside"), "{link}");
    }
    fs::write(at("checkout/pgvet.toml"), "baseline = '../outside.json'").unwrap();
    let named = Configs::new(ConfigSource::File(at("checkout/pgvet.toml")));
    assert!(named.of(&at("checkout")).is_ok(), "the user has named it");
    fs::remove_file(at("checkout/pgvet.toml")).unwrap();
    fs::write(at("outside.toml"), "token = 'secret'").unwrap();
    std::os::unix::fs::symlink("../outside.toml", at("checkout/pgvet.toml")).unwrap();
    let error = Configs::new(ConfigSource::Nearest).of(&at("checkout")).unwrap_err();
    assert!(error.message.contains("which is outside"), "{}", error.message);
}

#[test]
fn long_chains_of_files_are_refused() {
    let files: Vec<_> = (0..40).map(|at| (format!("{at}.toml"), format!("extend = '{}.toml'", at + 1))).collect();
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let root = folder(&files);
    let error = Config::read(&root.path().join("0.toml")).unwrap_err();
    assert_eq!(error.message, "more than 16 files extend each other");
}
