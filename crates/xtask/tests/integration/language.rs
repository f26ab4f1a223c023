//! The project's glossary: words that readers stumble over, and what to write instead. Every sentence counts, in
//! messages, pages, comments, names and tests.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Phrases that must not appear, in lower case, and what to write instead.
const GLOSSARY: &[(&str, &str)] = &[
    ("for any time", "indefinitely"),
    ("do the like", "N similar statements"),
    ("does the like", "N similar statements"),
    ("and the like", "name the things, or `and so on`"),
    ("and its like", "name the things, or `and so on`"),
    ("and their like", "name the things, or `and so on`"),
    ("every later query of it", "later queries on it queue behind it"),
    ("when it strikes", "when it expires"),
    ("those of later", "current and future"),
    ("later ones too", "current and future"),
    ("whoever", "who, or the person"),
    ("the way back", "rollback migration, down migration"),
    ("ways back", "rollback migrations, down migrations"),
    ("way back", "rollback migration, down migration"),
    ("leads back", "is a rollback migration"),
    ("lead back", "are rollback migrations"),
    ("leads forward", "is a forward migration"),
    ("lead forward", "are forward migrations"),
    ("what comes after it", "later statements"),
    ("what takes the place of", "the object that replaces"),
    ("what takes its place", "what replaces it"),
    ("what stands", "the text, the statement, the file"),
    ("stands there", "is there"),
    ("stands here", "is here"),
    ("is none of the", "no ... matches"),
    ("as that makes", "severity follows"),
    ("does other than", "behaves differently from"),
    ("something else than", "something other than, or name it"),
    ("so long must", "name the duration"),
    ("so long may", "name the duration"),
    ("so long do", "name the duration"),
    ("taken for a", "treated as a"),
    ("taken for the", "treated as the"),
    ("takes for", "treats as"),
    ("counts as", "is treated as"),
    ("count as", "are treated as"),
    ("least severity", "lowest severity"),
    ("so often", "N times"),
    ("beforehand", "before"),
    ("doomed", "name the state: failing, aborted"),
    ("aside", "unmanaged, separate"),
    ("spared", "skipped, excluded"),
    ("spares", "skips, excludes"),
    ("left out", "skipped, excluded, omitted"),
    ("leave out", "skip, exclude, omit"),
    ("leaves out", "skips, excludes, omits"),
    ("leaving out", "skipping, excluding, omitting"),
    ("is silent", "is not reported, reports nothing"),
    ("are silent", "are not reported, report nothing"),
    ("stays silent", "reports nothing"),
    ("stay silent", "report nothing"),
    ("is told", "is reported, is named"),
    ("are told", "are reported, are named"),
    ("tells of", "names, reports"),
    ("tell of", "name, report"),
    ("tells what", "says what"),
    ("tells which", "says which"),
    ("tells whether", "says whether"),
    ("holds against", "compares with"),
    ("held against", "compared with"),
    ("anew", "again"),
    ("goes along", "is dropped as well"),
    ("go along", "are dropped as well"),
    ("no text file", "not a text file"),
    ("that is no text", "that is not text"),
    ("is no migration", "is not a migration"),
    ("are no migrations", "are not migrations"),
    ("of deployed code into", "INSERTs into `t` by deployed code"),
    ("has other parameters", "the parameters differ from those of ..."),
    ("returns another type", "returns a different type"),
    ("also those of", "including those of"),
    ("in another order than", "in a different order from"),
    ("locked access exclusive", "locked in ACCESS EXCLUSIVE mode"),
    ("from this one on by hand", "run this statement and all later ones by hand"),
    ("some day", "name the condition"),
    ("hard to change", "name what the change does"),
    ("protects nothing", "does not restrict the command"),
    ("fails where it needs", "breaks code that needs it"),
    ("with all indexes", "including all indexes"),
    ("batches that commit", "batches, each in its own transaction"),
    ("of which the migrations show nothing", "and no migration shows"),
    ("what it does is not checked", "its effects are not checked"),
    ("outside of a transaction", "outside a transaction"),
    ("on this branch alone", "only on this branch"),
    ("until all of them are done", "until the last ... is done"),
    ("reads the file by", "splits the file at"),
    ("satisfies it first", "first deploy code that satisfies ..."),
    ("then add the rest", "name the steps"),
    ("exchange the names", "swap the names"),
    ("recognise", "recognize"),
    ("recognised", "recognized"),
    ("has otherwise", "differs"),
    ("have otherwise", "differ"),
    ("otherwise than", "differently from, in another form than"),
    ("speaks for", "is evidence for"),
    ("speaks against", "is evidence against"),
    ("over and over", "repeatedly"),
    ("handler of exceptions", "exception handler"),
    ("only run time knows", "is known only at run time"),
    ("took back", "undid"),
    ("taken back", "undone"),
    ("goes by", "uses, depends on"),
    ("looked for", "searched for"),
    ("keep it from", "prevent that"),
    ("concerns many rows", "affects many rows"),
    ("for so long", "for this time"),
    ("stands for everything", "matches everything"),
    ("serves the same queries", "every query that can use it can also use ..."),
    ("mended", "fixed, corrected"),
    ("recognises", "recognizes"),
    ("another schema than", "a different schema"),
    ("leaves another schema", "results in a different schema"),
    ("leave another schema", "do not restore the schema"),
    ("takes nothing back", "undoes nothing"),
    ("take nothing back", "undo nothing"),
    ("nothing of what", "none of its ..."),
    ("bounded rows", "a limited number of rows"),
    ("that nothing limits", "if no condition limits ..."),
    ("evidence against many rows", "something suggests that only a few rows ..."),
    ("breaks nothing", "deployed code continues to work"),
    ("or goes whole", "or is removed as a whole"),
    ("stay those of", "stay the same as in"),
    ("the one of `", "the ... that `--option` gives"),
    ("or that of `", "or the ... that `--option` gives"),
    ("only severity `", "the severity is `info`"),
    ("prediction and observation", "what pgvet predicts and what the server does"),
    ("replayed but not checked", "which pgvet reads only to know the schema"),
    ("copy every write", "keep it up to date with a trigger"),
    ("copy every later write", "apply each INSERT, UPDATE and DELETE to ... as well"),
    ("the programs of postgresql", "name them, or: PostgreSQL must be installed"),
    ("no database of yours", "your own databases are not used"),
    ("do not trust only", "if you do not trust ..., run only in ..."),
    ("at another quote", "at a different quote"),
    ("does not check again", "name when it checks"),
    ("from which severity on", "lowest severity at which"),
    ("if it is there", "if it exists"),
    ("number second", "the later of the two"),
    ("as small as they can be", "as far as possible"),
    ("rename one of the two", "name the object to rename"),
    ("other objects along", "also drops other objects"),
    ("safe sequence", "safer migrations, safer steps"),
    ("treats it separately", "name what differs"),
    ("treated separately", "name what differs"),
    ("does the same to", "repeat the verb"),
    ("nothing of the repository", "nothing from the repository"),
    ("with the next release", "in the next release"),
    ("such a lock", "name the lock, or what it blocks"),
    ("at run time only", "only at run time"),
    ("at the other end", "the other table of the foreign key"),
    ("is no ordinary", "is not an ordinary"),
    ("is no plain", "is not a plain"),
    ("in another one", "repeat the noun"),
    ("stay so until", "repeat the adjective"),
    ("warnings do not fail", "the command does not fail because of warnings"),
    ("what is read of", "what pgvet reads from"),
    ("duplicate or not", "whether or not there is a duplicate"),
    ("the two can deadlock", "name both"),
    ("reads and writes the wrong type", "still expects ..."),
    ("fails here when it is called", "fails when it reaches this statement"),
    ("reported itself", "itself reported"),
    ("by their place", "by position, by location"),
    ("if these are all", "if there are no others"),
    ("until its query is done", "until the transaction ends"),
    ("known linter reports it", "name what is reported"),
    ("finding with several places", "finding with several locations"),
    ("with its places", "with several locations"),
    ("is led to", "goes to"),
    ("are led to", "go to"),
    ("or select or", "list the commands with commas"),
    ("or insert or", "list the commands with commas"),
    ("or update or", "list the commands with commas"),
    ("reported is a", "the rule reports ..."),
    ("not reported are", "the rule does not report ..."),
    ("stay unfrozen", "VACUUM freezes ... only when ..."),
    ("code that still runs", "code that is still running"),
    ("keeps the rows", "does not rewrite the rows"),
    ("all future objects", "name their kind and who creates them"),
];

/// Folders and files of data, other people's words, or this list.
const EXCLUDED: &[&str] = &[
    "target",
    ".git",
    "fixtures",
    "node_modules",
    "fuzz/corpus",
    "fuzz/artifacts",
    "builtin/data",
    "tests/integration/language.rs",
    "rules/messages.md",
];

/// Extensions of files with sentences; scripts have none.
const EXTENSIONS: &[&str] = &["rs", "md", "toml", "yml", "yaml", "py", "ts", "js", "sh", "template"];

#[test]
fn sentences_follow_the_glossary() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut report = String::new();
    let mut found = 0;
    for path in files(root) {
        let name = path.strip_prefix(root).unwrap_or(&path);
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let name = name.display();
        for (line, phrase, instead) in hits(&text) {
            found += 1;
            let _ = writeln!(report, "{name}:{line}: write `{instead}`, not `{phrase}`");
        }
    }
    assert_eq!(found, 0, "\n{report}");
}

#[test]
fn phrases_are_found_over_lines_and_in_names() {
    let text = "/// Takes what the\n/// way back says.\nfn way_back() {}\nlet a = \"laid aside\";\n// besides, the wayback machine\n";
    let found: Vec<(usize, &str)> = hits(text).into_iter().map(|(line, phrase, _)| (line, phrase)).collect();
    assert_eq!(found, [(1, "the way back"), (3, "way back"), (4, "aside")]);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if EXCLUDED.iter().any(|excluded| path.ends_with(excluded)) {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_none_or(|own| EXTENSIONS.iter().any(|extension| own == *extension)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the line, the phrase and its replacement of every hit. Of overlapping phrases the one that begins first
/// counts.
fn hits(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let (words, starts) = plain(text);
    let mut hits: Vec<(usize, &str, &str)> = Vec::new();
    for (phrase, instead) in GLOSSARY {
        for (at, _) in words.match_indices(phrase) {
            let before = words[..at].chars().next_back();
            let after = words[at + phrase.len()..].chars().next();
            if ![before, after].iter().flatten().any(|c| c.is_alphanumeric()) {
                hits.push((at, phrase, instead));
            }
        }
    }
    hits.sort_by_key(|(at, phrase, _)| (*at, std::cmp::Reverse(phrase.len())));
    let mut end = 0;
    hits.retain(|(at, phrase, _)| {
        let first = *at >= end;
        if first {
            end = at + phrase.len();
        }
        first
    });
    hits.iter().map(|(at, phrase, instead)| (starts.partition_point(|start| start <= at), *phrase, *instead)).collect()
}

/// Returns the text in lower case as one line, without marks of comments and with spaces in names, and where each line
/// starts.
fn plain(text: &str) -> (String, Vec<usize>) {
    let mut words = String::new();
    let mut starts = Vec::new();
    for line in text.lines() {
        let line = line.trim().trim_start_matches(['/', '!', '#', '*', '-', '>']).trim().trim_end_matches('\\').trim();
        starts.push(words.len());
        words.extend(line.chars().flat_map(char::to_lowercase).map(|c| if c == '_' { ' ' } else { c }));
        words.push(' ');
    }
    (words, starts)
}
