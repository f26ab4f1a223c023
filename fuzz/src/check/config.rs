use pgvet_linter::settings::Settings;
use pgvet_model::statistics::Statistics;
use pgvet_workspace::config::{Config, FILE_NAME};

/// A text is a configuration, or an error that points into it; the same for statistics.
pub fn config(text: &str) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join(FILE_NAME);
    std::fs::write(&path, text).expect("the configuration can be written");
    match Config::read(&path) {
        Ok(config) => {
            assert_eq!(config.files.first().map(|file| file.as_path()), Some(path.as_path()));
            let file = folder.path().join("services/a/legacy/1.sql");
            assert_eq!(config.levels_of(&file), config.levels_of(&file), "{text}");
            assert_eq!(config.is_excluded(&file), config.is_excluded(&file), "{text}");
            assert!(config.settings.versions.from <= config.settings.versions.to, "{text}");
        }
        Err(error) => {
            assert!(!error.message.is_empty(), "{error:?}");
            if let Some(span) = &error.span {
                assert!(error.text.get(span.clone()).is_some(), "{error:?}");
            }
        }
    }
    if let Ok(statistics) = Statistics::parse(text) {
        Settings::default().add_statistics(&statistics);
    }
}
