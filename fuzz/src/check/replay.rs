use crate::ranges::assert_inside;
use crate::scenario::Scenario;
use pgvet_linter::check::check;
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::resume::check_from;
use pgvet_model::checkpoint::Checkpoint;
use pgvet_model::effect::Effects;
use pgvet_model::memory::Memory;
use pgvet_model::predict;
use pgvet_syntax::statement::ParsedFile;

/// A run says the same every time, also when it begins after the history, and points into its files.
pub fn replay(text: &str) {
    let Ok(scenario) = Scenario::read(text) else { return };
    let files = scenario.files();
    let migrations = scenario.migrations(&files);
    let found = check(&migrations, &scenario.settings);
    found.iter().for_each(|found| assert_points_into(&files, found));

    let mut state = Checkpoint::default();
    let history = migrations.iter().take_while(|migration| !migration.report).count();
    state.advance(&migrations, history, scenario.settings.versions, &());
    let behind_history = check_from(&state, &migrations, &scenario.settings, &mut Memory::default());
    assert_eq!(found, behind_history.found, "{text}");

    let predicted = || predict::effects(&migrations, scenario.settings.versions.to, &scenario.settings.functions);
    let effects = predicted();
    for (file, effects) in files.iter().zip(&effects) {
        for statement in effects {
            // A function may be defined in another file.
            for (defined, range) in statement.effects.calls.iter().filter_map(|call| call.defined_at) {
                assert_inside(&files[defined as usize].source.text, &range);
            }
            let own = Effects { calls: Vec::new(), ..statement.effects.clone() };
            assert_inside(&file.source.text, &(statement.statement, own));
        }
    }
    let again = predicted();
    assert_eq!(format!("{effects:?}"), format!("{again:?}"), "{text}");
}

fn assert_points_into(files: &[ParsedFile], found: &Diagnostic) {
    let text = |file: u32| files[file as usize].source.text.as_str();
    assert_inside(text(found.file), &(found.range, found.statement, &found.fixes));
    assert!(!found.message.is_empty() && !found.pg_versions.is_empty(), "{found:?}");
    for label in &found.labels {
        assert_inside(text(label.file), label);
    }
}
