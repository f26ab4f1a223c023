use crate::mutate::changed;
use crate::scenario::Scenario;
use fastrand::Rng;
use pgvet_linter::check::check;
use pgvet_linter::resume::check_from;
use pgvet_model::checkpoint::Checkpoint;
use pgvet_model::memory::Memory;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file_again};

/// Checks that parsing again after an edit gives the same as parsing from scratch.
pub fn edits(text: &str) {
    let Ok(mut scenario) = Scenario::read(text) else { return };
    scenario.sections.retain(|section| !section.text.is_empty());
    let Some(last) = scenario.sections.len().checked_sub(1) else { return };
    let mut files = scenario.files();
    let mut memory = Memory::default();
    let mut random = Rng::with_seed(text.bytes().fold(0, |sum, byte| sum * 31 % 0xff_ffff + u64::from(byte)));
    for _ in 0..4 {
        let mut state = Checkpoint::default();
        let migrations: Vec<_> = scenario.migrations(&files).into_iter().enumerate().collect();
        let migrations: Vec<_> = migrations
            .into_iter()
            .map(|(at, migration)| pgvet_model::migration::Migration { report: at == last, ..migration })
            .collect();
        state.advance(&migrations, last, scenario.settings.versions, &());
        let outcome = check_from(&state, &migrations, &scenario.settings, &mut memory);
        assert_eq!(outcome.found, check(&migrations, &scenario.settings), "{}", files[last].source.text);

        let Some(previous) = files.pop() else { return };
        let text = changed(&previous.source.text, &mut random);
        let before = previous.source.text.clone();
        let (parsed, first_change) = parse_file_again(SourceFile::new(previous.source.path.clone(), text), previous);
        let from_scratch = pgvet_syntax::statement::parse_file(parsed.source.clone());
        assert_eq!(shown(&parsed), shown(&from_scratch), "from {before:?} to {:?}", parsed.source.text);
        if let Some(first_change) = first_change {
            drop(memory.forget(|statement| statement.start >= first_change));
        }
        files.push(parsed);
    }
}

fn shown(file: &ParsedFile) -> String {
    format!("{:?}", file.statements)
}
