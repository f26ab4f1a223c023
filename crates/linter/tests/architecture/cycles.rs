//! The modules of a crate depend on each other in one direction: no cycle, but for those that are known.

use super::{code, crates, program_files, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Crate, module, what it uses, and why that is still there. Without these edges there is no cycle; one that is in no
/// cycle any more must go from the list.
const KNOWN: &[(&str, &str, &str, &str)] = &[
    ("parser", "nodes", "tree", "the generated nodes hold lists and values that `tree` reads"),
    ("workspace", "config", "roots", "errors show paths from the top of the repository"),
    ("workspace", "config", "layout", "the configuration names a tool"),
    ("workspace", "config", "read", "the configuration is read within the bounds of a checkout"),
    ("workspace", "config", "boundary", "the configuration is read within the bounds of a checkout"),
    ("workspace", "order", "layout", "a tool decides the order of its folder"),
    ("workspace", "roots", "git", "the folder of migrations is searched for in the repository"),
    ("workspace", "roots", "layout", "the folder of migrations is known by its tool"),
    ("workspace", "roots", "skipped", "folders without migrations are known by what is skipped"),
    ("workspace", "layout", "project", "sequences are written for files of the run"),
    ("workspace", "purpose", "project", "a file is judged among the others of the run"),
    ("workspace", "known_order", "plan", "a file is judged among the others of the run"),
    ("workspace", "known_order", "project", "a file is judged among the others of the run"),
    ("workspace", "project", "plan", "the run reads what the plan names"),
    ("workspace", "rollback_name", "order", "names that Postgrator understands have a direction"),
    ("workspace", "rollback_name", "skipped", "down migrations are searched for among SQL files"),
    ("workspace", "named", "project", "a file is judged among the others of the run"),
    ("workspace", "history", "plan", "a file is judged among the others of the run"),
    ("workspace", "history", "project", "a file is judged among the others of the run"),
    ("cli", "error", "report", "an error of the configuration is shown as findings are"),
    ("cli", "baseline", "report", "the baseline keeps the findings of a report"),
    ("cli", "args", "rule_names", "arguments name rules and categories"),
    ("cli", "trace_args", "args", "the trace takes the arguments of a check"),
];

/// The top-level modules that each top-level module uses, by `use crate::...` and paths in the code.
fn graph(name: &str) -> Graph {
    let source = sources(name);
    let files: Vec<_> = program_files(name).into_iter().map(|path| (module_of(&source, &path), code(&path))).collect();
    let modules: BTreeSet<String> = files.iter().map(|(module, _)| module.clone()).collect();
    let mut graph: Graph = modules.iter().map(|module| (module.clone(), BTreeSet::new())).collect();
    for (module, code) in &files {
        let used = used(code).into_iter().filter(|other| other != module && modules.contains(other));
        graph.entry(module.clone()).or_default().extend(used);
    }
    // These bring the others together.
    graph.remove("lib");
    graph.remove("main");
    graph
}

fn module_of(source: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(source).expect("it stands in the folder");
    let first = inside.components().next().expect("it has a name").as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// The first names after `crate::`, those in braces included.
fn used(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, word) in code.match_indices("crate::") {
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_') {
            continue;
        }
        let rest = &code[at + word.len()..];
        match rest.strip_prefix('{') {
            Some(list) => found.extend(first_names(list)),
            None => found.extend(name_at(rest)),
        }
    }
    found
}

/// The name that a path begins with.
fn name_at(text: &str) -> Option<String> {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

/// The names that the paths of a list in braces begin with.
fn first_names(list: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut depth, mut is_start) = (0, true);
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_start = true,
            _ if is_start && !letter.is_whitespace() => {
                found.extend(name_at(&list[at..]));
                is_start = false;
            }
            _ => {}
        }
    }
    found
}

/// The modules that can be reached from `from`, which is among them only if it is in a cycle.
fn reachable(graph: &Graph, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(module) = open.pop() {
        for next in graph.get(&module).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}

/// The modules that are in cycles, each with the modules of the same cycles that it uses.
fn cycles(graph: &Graph) -> Graph {
    let reached: Graph = graph.keys().map(|module| (module.clone(), reachable(graph, module))).collect();
    let mut found = Graph::new();
    for (module, used) in graph {
        let back = used.iter().filter(|other| reached.get(*other).is_some_and(|reached| reached.contains(module)));
        let back: BTreeSet<String> = back.cloned().collect();
        if !back.is_empty() {
            found.insert(module.clone(), back);
        }
    }
    found
}

#[test]
fn no_modules_form_a_cycle() {
    for name in crates() {
        let mut graph = graph(&name);
        let known = KNOWN.iter().filter(|(of, ..)| *of == name);
        for (_, module, other, _) in known {
            let is_cyclic = reachable(&graph, other).contains(*module);
            let was_there = graph.get_mut(*module).is_some_and(|used| used.remove(*other));
            assert!(
                was_there && is_cyclic,
                "{name}: {module} -> {other} is in no cycle any more: take it off the list"
            );
        }
        let cycles = cycles(&graph);
        assert!(cycles.is_empty(), "modules of {name} form a cycle: {cycles:#?}");
    }
}

#[test]
fn the_modules_of_the_engine_are_found_and_have_no_known_cycle() {
    for (name, modules, lowest) in [("syntax", 4, "source"), ("model", 15, "catalog"), ("linter", 12, "rule")] {
        let graph = graph(name);
        assert!(graph.len() > modules, "{name}: {graph:?}");
        let users = graph.values().filter(|used| used.contains(lowest)).count();
        assert!(users > 1, "{name}: nothing uses {lowest}: {graph:?}");
        assert!(KNOWN.iter().all(|(of, ..)| *of != name), "{name} has no cycle, and gets none");
    }
}

#[test]
fn a_cycle_is_found_however_paths_are_written() {
    let used: Vec<String> =
        used("use crate::{a::{B, C}, d};\nfn f() { crate::e::g(); other_crate::h(); }").into_iter().collect();
    assert_eq!(used, ["a", "d", "e"]);
    let edges = [("a", &["b"][..]), ("b", &["c"]), ("c", &["a", "d"]), ("d", &[])];
    let graph: Graph = edges
        .map(|(module, used)| (module.to_owned(), used.iter().map(|other| (*other).to_owned()).collect()))
        .into_iter()
        .collect();
    let found: Vec<(String, BTreeSet<String>)> = cycles(&graph).into_iter().collect();
    let expected = [("a", "b"), ("b", "c"), ("c", "a")];
    assert_eq!(found, expected.map(|(module, other)| (module.to_owned(), BTreeSet::from([other.to_owned()]))));
}
