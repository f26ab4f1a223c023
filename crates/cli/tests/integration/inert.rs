//! Names and SQL that a stranger has chosen, in every format: they are shown, and nothing obeys them.

#![cfg(target_os = "linux")]
use crate::support::Folder;
use pulldown_cmark::{Event, Options, Parser, Tag};
use std::fmt::Write as _;

/// Texts that try to make a terminal, a CI service, a page or a parser do something.
const HOSTILE: [&str; 33] = [
    "\x1b[31mred",
    "\x1b]52;c;cHduZWQ=\x07",
    "\x1b]8;;https://evil.example\x07link\x1b]8;;\x07",
    "\x1b[2J\x1b[H",
    "\u{9b}2J",
    "\u{90}q\u{9c}",
    "\u{202e}lqs",
    "a\u{2066}b\u{2069}",
    "\u{200b}\u{feff}zero",
    "\u{e0041}tag",
    "\u{2028}separator",
    "back\x08\x08\x7f",
    "x\n::stop-commands::token",
    "x\n\t ::add-mask::x",
    "x\r\n::error::forged",
    "##[add-mask]x",
    "##vso[task.setvariable variable=x]y",
    "##teamcity[buildStop]",
    "`a` <img src=https://evil.example/x>",
    "``` \n# heading\n",
    "` <img src=https://evil.example/x>",
    "` [text](https://evil.example) ![i](https://evil.example/i)",
    "````\n<script>alert(1)</script>\n````",
    "x\n````\n<script>alert(1)</script>\ny",
    "[text](https://evil.example)",
    "![image](https://evil.example/i.png)",
    "@octocat #1 https://evil.example www.evil.example",
    "a|b\\|c\\",
    "</summary></details><h1>x</h1>",
    "</code>]]>&amp;<!--",
    "%0A::error::x",
    "a',line=1::b",
    "$(touch pwned) `touch pwned`",
];

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn folder() -> Folder {
    folder_of(&HOSTILE)
}

/// Migrations with these names in statements, constraints, literals, comments, code and file names.
fn folder_of(names: &[&str]) -> Folder {
    let mut files = vec![("db/000.sql".to_owned(), String::from("CREATE TABLE t (a int);\n"))];
    for (at, name) in names.iter().enumerate() {
        let (quoted, literal) = (identifier(name), name.replace('\'', "''"));
        writeln!(files[0].1, "CREATE TABLE {quoted} (id int, {quoted} text);").unwrap();
        let sql = format!(
            "ALTER TABLE {quoted} ADD CONSTRAINT {quoted} CHECK ({quoted} <> '{literal}');\n\
             CREATE INDEX {quoted} ON {quoted} ({quoted});\n\
             ALTER TABLE {quoted} ALTER COLUMN {quoted} TYPE varchar(3);\n\
             UPDATE {quoted} SET {quoted} = '{literal}' WHERE true;\n\
             DROP TABLE missing, {quoted};\n\
             -- pgvet: ignore[drop-table] {}\n\
             SELEC '{literal}';\n",
            name.replace(['\n', '\r'], " ")
        );
        files.push((format!("db/{:03}_{}.sql", at + 1, name.replace('/', "_")), sql));
    }
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    Folder::new(&files)
}

fn shown(folder: &Folder, format: &str, color: &str) -> (String, String) {
    let args = ["check", "db", "db/\u{1b}[2J\n::error::missing", "--level", "info", "--report-suppressed"];
    let output = folder.output(&[&args[..], &["--format", format, "--color", color]].concat(), b"", &[]);
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Fails where a terminal or a CI service would do something.
fn assert_inert(text: &str, what: &str) {
    for (number, line) in text.lines().enumerate() {
        let acts = |c: char| {
            (c.is_control() && c != '\t')
                || matches!(u32::from(c), 0x61c | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xe0000..=0xe0fff)
        };
        assert!(!line.contains(acts), "{what}, line {}: {line:?}", number + 1);
        assert!(!line.trim_start().starts_with("::"), "{what}, line {}: {line:?}", number + 1);
        for sign in ["##[", "##vso[", "##teamcity["] {
            assert!(!line.contains(sign), "{what}, line {}: {line:?}", number + 1);
        }
    }
}

/// The text without colours as they are used here, and no others.
fn without_colours(text: &str) -> String {
    let mut plain = String::new();
    let mut parts = text.split("\x1b[");
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (codes, rest) = part.split_once('m').unwrap();
        assert!(codes.chars().all(|c| c.is_ascii_digit() || c == ';'), "{codes:?}");
        plain.push_str(rest);
    }
    plain
}

#[test]
fn text_does_nothing_to_a_terminal_or_a_ci_service() {
    let folder = folder();
    for format in ["full", "concise", "markdown"] {
        let (out, err) = shown(&folder, format, "never");
        assert!(out.len() > 10_000, "{out}");
        assert_inert(&out, format);
        assert_inert(&err, "standard error");
    }
    for format in ["full", "concise"] {
        let (out, _) = shown(&folder, format, "always");
        assert_inert(&without_colours(&out), format);
        // What a name colours would be seen as one of ours.
        assert!(!out.contains("\x1b[31mred"), "{out}");
    }
    for args in
        [&["effects", "db"][..], &["effects", "db", "--format", "concise"], &["config", "db"], &["init", "--print"]]
    {
        assert_inert(&folder.run(args), args[0]);
    }
    let output = folder.output(&["check", "db", "--unsafe-fixes", "--diff"], b"", &[("CI", "true")]);
    assert_inert(&String::from_utf8(output.stdout).unwrap(), "--diff");
}

/// Notes, schemas, and scripts that a CI service shows.
#[test]
fn other_commands_are_inert_for_a_ci_service() {
    let folder = folder_of(&["##vso[task.setvariable variable=x]y", "##[add-mask]x", "x\n::add-mask::x"]);
    for args in
        [&["squash", "db"][..], &["schema", "db"], &["schema", "db", "--format", "mermaid"], &["diff", "db", "db"]]
    {
        let output = folder.output(args, b"", &[("CI", "true")]);
        for shown in [output.stdout, output.stderr] {
            assert_inert(&String::from_utf8(shown).unwrap(), args[0]);
        }
    }
    let folder = Folder::new(&[("db/##[1]/001_a.sql", b"CREATE INDEX i ON t (a);\nDROP TABLE t;\n")]);
    let output = folder.output(&["rewrite", "db/##[1]/001_a.sql", "--in-place"], b"", &[("CI", "true")]);
    assert_inert(&String::from_utf8(output.stderr).unwrap(), "rewrite");
}

/// A line that only a name contains would be treated as one of the report.
#[test]
fn line_breaks_of_names_are_shown() {
    let folder = folder();
    for args in [
        &["effects", "db"][..],
        &["effects", "db", "--format", "concise"],
        &["schema", "db"],
        &["config", "db"],
        &["config", "--files", "db"],
        &["check", "db", "--format", "concise"],
        &["check", "db", "--format", "concise", "--verbose"],
    ] {
        let output = folder.output(args, b"", &[]);
        for text in [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()) {
            // Some names go on with `::` behind a line break, and it is escaped where it begins a line.
            assert!(!text.lines().any(|line| line.trim_start().starts_with("\\u{3a}:")), "{args:?}: {text}");
        }
    }
}

#[test]
fn annotations_are_those_of_findings() {
    let (out, err) = shown(&folder(), "github", "never");
    for line in out.lines() {
        let is_ours = ["::error ", "::warning ", "::notice "].iter().any(|start| line.starts_with(start));
        assert!(is_ours, "{line:?}");
        assert_inert(&line[2..], "github");
    }
    assert_inert(&err, "standard error");
}

#[test]
fn documents_are_read_as_they_were_meant() {
    let folder = folder();
    for format in ["json", "sarif", "gitlab", "sonarqube"] {
        let (out, _) = shown(&folder, format, "never");
        assert_inert(&out, format);
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        if format == "json" {
            let messages: Vec<&str> =
                document["diagnostics"].as_array().unwrap().iter().filter_map(|one| one["message"].as_str()).collect();
            for name in HOSTILE {
                assert!(messages.iter().any(|message| message.contains(name)), "{name:?}");
            }
        }
    }
    for format in ["junit", "checkstyle"] {
        let (out, _) = shown(&folder, format, "never");
        assert_inert(&out, format);
        let document = roxmltree::Document::parse(&out).unwrap();
        let known = ["testsuites", "testsuite", "testcase", "failure", "system-out", "error", "checkstyle", "file"];
        for node in document.descendants().filter(roxmltree::Node::is_element) {
            assert!(known.contains(&node.tag_name().name()), "{format}: {:?}", node.tag_name());
        }
    }
    for args in [["effects", "db", "--format", "json"], ["config", "db", "--format", "json"]] {
        let output = folder.output(&args, b"", &[]);
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();
    }
}

/// The findings of many names are more than a summary shows.
#[test]
fn markdown_has_no_links_images_or_elements_of_strangers() {
    assert_plain_markdown(&folder());
    for name in HOSTILE {
        assert_plain_markdown(&folder_of(&[name]));
    }
}

fn assert_plain_markdown(folder: &Folder) {
    let (out, _) = shown(folder, "markdown", "never");
    let options = Options::ENABLE_TABLES | Options::ENABLE_GFM | Options::ENABLE_STRIKETHROUGH;
    let mut in_code = false;
    for event in Parser::new_ext(&out, options) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(pulldown_cmark::TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::Image { dest_url, .. }) => panic!("an image: {dest_url}"),
            Event::Start(Tag::Link { dest_url, .. }) => {
                assert!(dest_url.starts_with("https://github.com/pgvet/pgvet/"), "a link: {dest_url}");
            }
            Event::Start(Tag::Heading { level, .. }) => assert_eq!(level, pulldown_cmark::HeadingLevel::H2),
            Event::Html(html) | Event::InlineHtml(html) => {
                let mut rest = html.to_string();
                for own in ["<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>"] {
                    rest = rest.replace(own, "");
                }
                assert!(!rest.contains('<'), "an element: {html}");
            }
            Event::Text(text) if !in_code => {
                for link in ["https://", "www.", "@octocat"] {
                    assert!(!text.contains(link) || !out.contains(&format!(" {link}")), "{text}");
                }
            }
            _ => {}
        }
    }
}

#[test]
fn a_configuration_error_is_inert() {
    for name in HOSTILE {
        let text = format!("\"{}\" = 1\n", name.escape_default());
        let comment = format!("# {}\nnonsense = 1\n", name.replace(['\n', '\r'], " "));
        for config in [text, comment] {
            let folder = Folder::new(&[("pgvet.toml", config.as_bytes()), ("1.sql", b"SELECT 1;\n")]);
            for color in ["never", "always"] {
                let output = folder.output(&["check", "--color", color], b"", &[]);
                assert_inert(&without_colours(&String::from_utf8(output.stderr).unwrap()), &config);
            }
        }
    }
}
