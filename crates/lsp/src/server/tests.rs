mod edits;

use super::*;
use crossbeam_channel::{Sender, unbounded};
use pgvet_linter::check::Outcome;
use pgvet_workspace::inert;
use serde_json::json;
use std::fs;
use std::thread::{self, JoinHandle};

/// A client in the same process, in a folder of migrations of its own.
struct TestClient {
    inbox: Sender<Incoming>,
    outbox: Receiver<String>,
    server: JoinHandle<bool>,
    root: tempfile::TempDir,
    id: i32,
    /// Messages that arrived while another one was awaited.
    kept: Vec<Value>,
}

const PATIENCE: Duration = Duration::from_secs(30);

impl TestClient {
    fn start(files: &[(&str, &str)], capabilities: Value) -> Self {
        Self::start_with(files, capabilities, OpenFile::check)
    }

    fn start_with(files: &[(&str, &str)], capabilities: Value, check: Check) -> Self {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let (inbox, receiver) = unbounded();
        let (sender, outbox) = unbounded();
        let serve = move || Server::with_check(Outbox::to(sender), check).run(&receiver);
        let server = thread::Builder::new().stack_size(pgvet_workspace::STACK_SIZE).spawn(serve).unwrap();
        let mut client = Self { inbox, outbox, server, root, id: 0, kept: Vec::new() };
        let options = json!({"inlayHints": true});
        client.ask("initialize", json!({"capabilities": capabilities, "initializationOptions": options}));
        client.tell("initialized", json!({}));
        client
    }

    fn uri(&self, name: &str) -> Value {
        json!(uri::from_path(&self.root.path().join(name)).unwrap())
    }

    fn send(&self, message: Value) {
        let message = serde_json::from_value(message).unwrap();
        self.inbox.send(Incoming::Message(Box::new(message))).unwrap();
    }

    fn tell(&self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn begin(&mut self, method: &str, params: Value) -> i32 {
        self.id += 1;
        self.send(json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}));
        self.id
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.response(id)["result"].take()
    }

    fn response(&mut self, id: i32) -> Value {
        self.until(|message| message["id"] == json!(id) && message.get("method").is_none())
    }

    fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&is_wanted) {
            return self.kept.remove(at);
        }
        loop {
            let text = self.outbox.recv_timeout(PATIENCE).expect("the server says something in time");
            let message: Value = serde_json::from_str(&text).unwrap();
            if is_wanted(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }

    fn open(&mut self, name: &str, text: &str) {
        let document = json!({"uri": self.uri(name), "languageId": "sql", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
    }

    fn change(&mut self, name: &str, version: i32, changes: Value) {
        let document = json!({"uri": self.uri(name), "version": version});
        self.tell("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
    }

    /// The rules that report, once they are those of this version of the text.
    fn published(&mut self, name: &str, version: i32) -> Vec<String> {
        let uri = self.uri(name);
        let is_wanted = |message: &Value| {
            message["method"] == "textDocument/publishDiagnostics"
                && message["params"]["uri"] == uri
                && message["params"]["version"] == json!(version)
        };
        let message = self.until(is_wanted);
        message["params"]["diagnostics"].as_array().unwrap().iter().map(code).collect()
    }

    fn end(mut self) -> bool {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        self.server.join().unwrap()
    }
}

fn code(diagnostic: &Value) -> String {
    diagnostic["code"].as_str().unwrap().to_owned()
}

const TABLE: (&str, &str) = ("migrations/1.sql", "CREATE TABLE a (v varchar(9));");
const NARROW: &str = "SET lock_timeout = '1s';\nALTER TABLE a ALTER v TYPE varchar(5);\n";

#[test]
fn the_history_before_a_file_counts() {
    let mut client = TestClient::start(&[TABLE], json!({}));
    client.open("migrations/2.sql", NARROW);
    assert_eq!(client.published("migrations/2.sql", 1), ["type-change-rewrites-table", "type-narrowing"]);
    let end = json!({"line": 1, "character": 36});
    client.change(
        "migrations/2.sql",
        2,
        json!([{"range": {"start": {"line": 1, "character": 35}, "end": end}, "text": "15"}]),
    );
    assert_eq!(client.published("migrations/2.sql", 2), Vec::<String>::new());
    assert!(client.end());
}

#[test]
fn hover_has_the_form_that_the_client_shows() {
    for (formats, kind, row) in [
        (json!(["plaintext"]), "plaintext", "public.a, ACCESS EXCLUSIVE, reads and writes"),
        (json!(["plaintext", "markdown"]), "markdown", "| public.a | ACCESS EXCLUSIVE | reads and writes |"),
    ] {
        let capabilities = json!({"textDocument": {"hover": {"contentFormat": formats}}});
        let mut client = TestClient::start(&[TABLE], capabilities);
        client.open("migrations/2.sql", NARROW);
        client.published("migrations/2.sql", 1);
        let document = json!({"uri": client.uri("migrations/2.sql")});
        let position = json!({"line": 1, "character": 3});
        let hover = client.ask("textDocument/hover", json!({"textDocument": document, "position": position}));
        let contents = &hover["contents"];
        assert_eq!(contents["kind"], kind, "{hover}");
        assert!(contents["value"].as_str().unwrap().lines().any(|line| line == row), "{hover}");
        assert!(client.end());
    }
}

/// Texts of a checkout that may try to make an editor show or do something.
const HOSTILE: [&str; 6] = [
    "</td><img src=https://evil.example/x>",
    "[text](command:evil) ![image](https://evil.example/i.png)",
    "a|b` **c** \\",
    "``` \n# heading",
    "\u{202e}lqs\u{1b}[2J\u{2028}",
    "https://evil.example www.evil.example @octocat",
];

#[test]
fn names_do_nothing_in_an_editor() {
    for formats in [json!(["plaintext"]), json!(["markdown"])] {
        let is_markdown = formats == json!(["markdown"]);
        let capabilities = json!({"textDocument": {"hover": {"contentFormat": formats}}});
        for name in HOSTILE {
            let mut client = TestClient::start(&[TABLE], capabilities.clone());
            let text = format!("DROP TABLE a, \"{name}\"; ALTER TABLE \"{name}\" ADD COLUMN b serial;\n");
            client.open("migrations/2.sql", &text);
            let uri = client.uri("migrations/2.sql");
            let published = client
                .until(|message| message["params"]["uri"] == json!(uri) && message["params"]["version"] == json!(1));
            let document = json!({"uri": client.uri("migrations/2.sql")});
            let end = json!({"line": 9, "character": 0});
            let range = json!({"start": {"line": 0, "character": 0}, "end": end});
            let mut said = texts(&published["params"]["diagnostics"]);
            for (method, params) in [
                ("textDocument/hover", json!({"textDocument": document, "position": {"line": 0, "character": 3}})),
                ("textDocument/inlayHint", json!({"textDocument": document, "range": range})),
                ("textDocument/documentSymbol", json!({"textDocument": document})),
            ] {
                said.extend(texts(&client.ask(method, params)));
            }
            assert!(said.iter().any(|text| text.contains("public.")), "{said:?}");
            for text in &said {
                let acts = text.chars().find(|character| inert::acts(*character));
                assert_eq!(acts, None, "{text}");
            }
            let hover = said.iter().find(|text| text.contains("Predicted for")).unwrap();
            if is_markdown {
                for sign in ["<img", "](", "![", "https://", "www.", "**c**", "\n#"] {
                    assert!(!outside_of_code(hover).contains(sign), "{hover}");
                }
            }
            assert!(client.end());
        }
    }
}

/// Every text of an answer.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Markdown without the text between backticks, and without escaped characters.
fn outside_of_code(markdown: &str) -> String {
    let text: String = markdown.split('`').step_by(2).collect();
    ["\\[", "\\]", "\\!", "\\*"].iter().fold(text, |text, escaped| text.replace(escaped, ""))
}

#[test]
fn a_text_that_is_not_saved_is_history_of_others() {
    let mut client = TestClient::start(&[TABLE], json!({}));
    client.open("migrations/2.sql", NARROW);
    assert_eq!(client.published("migrations/2.sql", 1).len(), 2);
    client.open("migrations/1.sql", TABLE.1);
    assert!(!client.published("migrations/1.sql", 1).contains(&"syntax-error".to_owned()));
    client.change("migrations/1.sql", 2, json!([{"text": "CREATE TABLE a (v varchar(3));"}]));
    assert_eq!(client.published("migrations/2.sql", 1), Vec::<String>::new());
    assert!(client.end());
}

#[test]
fn a_file_that_changes_on_disk_is_read_again() {
    let mut client = TestClient::start(&[TABLE], json!({}));
    client.open("migrations/2.sql", NARROW);
    assert_eq!(client.published("migrations/2.sql", 1).len(), 2);
    fs::write(client.root.path().join("migrations/1.sql"), "CREATE TABLE a (v varchar(2));").unwrap();
    let changes = json!([{"uri": client.uri("migrations/1.sql"), "type": 2}]);
    client.tell("workspace/didChangeWatchedFiles", json!({"changes": changes}));
    assert_eq!(client.published("migrations/2.sql", 1), Vec::<String>::new());
    assert!(client.end());
}

#[test]
fn a_mistake_in_the_configuration_is_shown_there_and_goes_away() {
    let mut client = TestClient::start(&[TABLE, ("pgvet.toml", "levl = \"info\"\n")], json!({}));
    client.open("migrations/2.sql", NARROW);
    let uri = client.uri("pgvet.toml");
    let of_config = |message: &Value| message["params"]["uri"] == uri;
    let shown = client.until(of_config);
    let wrong = &shown["params"]["diagnostics"][0];
    assert_eq!(wrong["message"], "there is no key `levl`\n\nhelp: did you mean `level`?");
    assert_eq!(wrong["range"]["end"], json!({"line": 0, "character": 4}));
    fs::write(client.root.path().join("pgvet.toml"), "level = \"warning\"\n").unwrap();
    client.tell("workspace/didChangeWatchedFiles", json!({"changes": []}));
    assert_eq!(client.until(of_config)["params"]["diagnostics"], json!([]));
    assert_eq!(client.published("migrations/2.sql", 1), ["type-change-rewrites-table", "type-narrowing"]);
    assert!(client.end());
}

#[test]
fn a_file_that_configuration_excludes_has_no_findings() {
    let config = ("pgvet.toml", "[migrations]\nexclude = [\"migrations/2.sql\"]\n");
    let mut client = TestClient::start(&[TABLE, config], json!({}));
    client.open("migrations/2.sql", NARROW);
    assert_eq!(client.published("migrations/2.sql", 1), Vec::<String>::new());
    assert!(client.end());
}

#[test]
fn a_thousand_rapid_edits_end_with_the_last_text() {
    let mut client = TestClient::start(&[TABLE], json!({}));
    client.open("migrations/2.sql", "");
    for ((at, character), version) in NARROW.char_indices().zip(2..) {
        let place =
            NARROW[..at].rsplit_once('\n').map_or((0, at), |(before, line)| (before.lines().count(), line.len()));
        let place = json!({"line": place.0, "character": place.1});
        let change = json!([{"range": {"start": place, "end": place}, "text": character.to_string()}]);
        client.change("migrations/2.sql", version, change);
    }
    for version in 0..1000 {
        client.change("migrations/2.sql", 1000 + version, json!([{"text": NARROW}]));
    }
    assert_eq!(client.published("migrations/2.sql", 1999), ["type-change-rewrites-table", "type-narrowing"]);
    assert!(client.end());
}

#[test]
fn a_panic_is_reported_and_the_server_goes_on() {
    fn check(file: &mut OpenFile) -> Outcome {
        assert!(!file.file().unwrap().shown().text.contains("boom"), "a rule fell over");
        file.check()
    }
    let mut client = TestClient::start_with(&[TABLE], json!({}), check);
    client.open("migrations/2.sql", NARROW);
    assert_eq!(client.published("migrations/2.sql", 1).len(), 2);
    client.change("migrations/2.sql", 2, json!([{"text": "-- boom"}]));
    let shown = client.until(|message| message["method"] == "window/showMessage");
    assert!(shown["params"]["message"].as_str().unwrap().contains("a rule fell over"));
    client.change("migrations/2.sql", 3, json!([{"text": NARROW}]));
    assert_eq!(client.published("migrations/2.sql", 3).len(), 2);
    assert!(client.end());
}

#[test]
fn what_makes_no_sense_is_answered_and_skipped() {
    let mut client = TestClient::start(&[TABLE], json!({}));
    client.inbox.send(Incoming::Malformed("no JSON".to_owned())).unwrap();
    assert_eq!(client.until(|message| message["error"]["code"] == -32700)["id"], Value::Null);
    client.tell("textDocument/didChange", json!({"nonsense": true}));
    client.tell("textDocument/didOpen", Value::Null);
    client.tell("unknown/notification", json!([1]));
    for (method, params, error) in
        [("textDocument/hover", json!({"textDocument": 1}), -32602), ("unknown/request", Value::Null, -32601)]
    {
        let id = client.begin(method, params);
        assert_eq!(client.response(id)["error"]["code"], error);
    }
    let closed = json!({"textDocument": {"uri": client.uri("no.sql")}, "position": {"line": 9, "character": 9}});
    assert_eq!(client.ask("textDocument/hover", closed), Value::Null);
    client.open("migrations/2.sql", NARROW);
    assert_eq!(client.published("migrations/2.sql", 1).len(), 2);
    assert!(client.end());
}

/// The answers of a server to messages that are all sent before it starts: identifiers and codes of errors.
fn answers(messages: &[Value]) -> Vec<(Value, Value)> {
    let (inbox, receiver) = unbounded();
    let (sender, outbox) = unbounded();
    for message in messages {
        let message = serde_json::from_value(message.clone()).unwrap();
        inbox.send(Incoming::Message(Box::new(message))).unwrap();
    }
    drop(inbox);
    thread::spawn(move || Server::new(Outbox::to(sender)).run(&receiver)).join().unwrap();
    let said = outbox.iter().map(|text| serde_json::from_str::<Value>(&text).unwrap());
    let answers = said.filter(|message| message.get("method").is_none());
    answers.map(|answer| (answer["id"].clone(), answer["error"]["code"].clone())).collect()
}

fn request(id: i32, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[test]
fn nothing_is_answered_before_initialize_and_after_shutdown() {
    let nothing = json!({"capabilities": {}});
    let methods =
        [(1, "textDocument/hover"), (2, "initialize"), (3, "initialize"), (4, "shutdown"), (5, "textDocument/hover")];
    let codes: Vec<Value> =
        answers(&methods.map(|(id, method)| request(id, method, &nothing))).into_iter().map(|(_, code)| code).collect();
    assert_eq!(codes, [json!(-32002), Value::Null, json!(-32600), Value::Null, json!(-32600)]);
}

#[test]
fn what_is_cancelled_before_it_is_begun_is_not_done() {
    let uri = "file:///migrations/2.sql";
    let document = json!({"uri": uri, "languageId": "sql", "version": 1, "text": NARROW});
    let messages = [
        request(1, "initialize", &json!({"capabilities": {"textDocument": {"diagnostic": {}}}})),
        notification("textDocument/didOpen", &json!({"textDocument": document})),
        request(2, "textDocument/diagnostic", &json!({"textDocument": {"uri": uri}})),
        notification("$/cancelRequest", &json!({"id": 2})),
        notification("$/cancelRequest", &json!({"id": "unknown"})),
        notification("$/cancelRequest", &Value::Null),
    ];
    assert_eq!(answers(&messages), [(json!(2), json!(-32800)), (json!(1), Value::Null)]);
}

#[test]
fn letters_beyond_ascii_do_no_harm_where_rules_are_named() {
    let mut client = TestClient::start(&[TABLE], json!({}));
    let text = "SELECT 1; -- pgvet: ignore[table-rewrite] größer, wie übel";
    client.open("migrations/2.sql", text);
    for character in 0..=text.chars().count() {
        let position = json!({"line": 0, "character": character});
        let params = json!({"textDocument": {"uri": client.uri("migrations/2.sql")}, "position": position});
        let page = client.ask("textDocument/hover", params)["contents"]["value"].to_string();
        assert_eq!(page.contains("**table-rewrite**"), (27..=40).contains(&character), "{character}: {page}");
    }
    assert!(client.end());
}

#[test]
fn findings_are_withdrawn_when_the_configuration_breaks() {
    let mut client = TestClient::start(&[TABLE, ("pgvet.toml", "")], json!({}));
    for name in ["migrations/2.sql", "migrations/3.sql"] {
        client.open(name, NARROW);
        client.published(name, 1);
    }
    fs::write(client.root.path().join("pgvet.toml"), "levl = 1\n").unwrap();
    client.tell("workspace/didChangeWatchedFiles", json!({"changes": []}));
    let withdrawn = |uri: Value| {
        move |message: &Value| message["params"]["uri"] == uri && message["params"]["diagnostics"] == json!([])
    };
    client.until(withdrawn(client.uri("migrations/2.sql")));
    client.until(withdrawn(client.uri("migrations/3.sql")));
    let is_shown = |message: &&Value| message["method"] == "window/showMessage";
    assert_eq!(client.kept.iter().filter(is_shown).count(), 1, "one mistake is shown once");
    // The mistake stays at its place until no document needs the file.
    let document = json!({"textDocument": {"uri": client.uri("migrations/2.sql")}});
    client.tell("textDocument/didClose", document);
    client.until(withdrawn(client.uri("migrations/2.sql")));
    assert!(!client.kept.iter().any(withdrawn(client.uri("pgvet.toml"))));
    let document = json!({"textDocument": {"uri": client.uri("migrations/3.sql")}});
    client.tell("textDocument/didClose", document);
    client.until(withdrawn(client.uri("pgvet.toml")));
    assert!(client.end());
}

#[test]
fn a_client_may_leave_at_any_moment() {
    for messages in 0..4 {
        let mut client = TestClient::start(&[TABLE], json!({}));
        if messages > 0 {
            client.open("migrations/2.sql", NARROW);
        }
        if messages > 1 {
            client.change("migrations/2.sql", 2, json!([{"text": "SELECT"}]));
        }
        if messages > 2 {
            client.begin("textDocument/hover", Value::Null);
        }
        let TestClient { inbox, server, outbox, .. } = client;
        drop(outbox);
        drop(inbox);
        assert!(!server.join().unwrap());
    }
}

#[test]
fn documents_without_a_file_are_migrations_alone() {
    let mut client = TestClient::start(&[TABLE], json!({}));
    let document = json!({"uri": "untitled:Untitled-1", "languageId": "sql", "version": 7, "text": "SELEC 1;"});
    client.tell("textDocument/didOpen", json!({"textDocument": document}));
    let shown = client.until(|message| message["params"]["uri"] == "untitled:Untitled-1");
    assert_eq!(shown["params"]["diagnostics"][0]["code"], "syntax-error");
    assert!(client.end());
}
