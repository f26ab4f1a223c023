//! The SQL blocks of doc comments: each `reported` one makes exactly one finding of the rule, each `clean` one none.

use crate::scenario::Scenario;
use crate::{expect_none, findings, tested_rules};
use pgvet_linter::meta::RuleMeta;

/// A block of SQL in a doc comment.
pub(crate) struct Example {
    pub(crate) reported: bool,
    pub(crate) text: String,
}

pub(crate) fn check() {
    let mut problems = Vec::new();
    for meta in tested_rules() {
        let examples = of(meta);
        for reported in [true, false] {
            if !examples.iter().any(|example| example.reported == reported) {
                let tag = if reported { "reported" } else { "clean" };
                problems.push(format!("{}: the doc comment has no ```sql,{tag} block", meta.name));
            }
        }
        problems.extend(examples.iter().filter_map(|example| problem(meta, example)));
    }
    expect_none(&problems);
}

fn problem(meta: &RuleMeta, example: &Example) -> Option<String> {
    let scenario = Scenario::parse(&example.text);
    let outcome = scenario.run();
    let expected = usize::from(example.reported);
    if outcome.of_rule(meta.name).count() == expected {
        return None;
    }
    let found = findings::describe(&scenario, &outcome, meta.name);
    Some(format!("{}: expected {expected} findings in\n{}found\n{found}", meta.name, example.text))
}

/// The blocks of a rule's doc comment.
pub(crate) fn of(meta: &RuleMeta) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in meta.docs.lines() {
        // Doc comments keep the blank after their slashes.
        let line = line.strip_prefix(' ').unwrap_or(line);
        match line.strip_prefix("```") {
            Some(tag) => {
                inside = matches!(tag, "sql,reported" | "sql,clean");
                if inside {
                    examples.push(Example { reported: tag == "sql,reported", text: String::new() });
                }
            }
            None if inside => {
                if let Some(example) = examples.last_mut() {
                    example.text.push_str(line);
                    example.text.push('\n');
                }
            }
            None => {}
        }
    }
    examples
}
