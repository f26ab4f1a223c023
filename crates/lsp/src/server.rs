//! The main loop: one event after the other. Edits come before the questions that follow them; diagnostics are made
//! when no message is waiting.

use crate::actions;
use crate::analysis::{self, Analysis, Check};
use crate::client::{Client, Options};
use crate::completion;
use crate::diagnostics;
use crate::document::Document;
use crate::loader::{Job, LoadError, Loaded, Loader};
use crate::transport::{Incoming, Outbox};
use crate::uri;
use crossbeam_channel::{Receiver, after, never, select};
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId};
use lsp_types::notification::{LogMessage, PublishDiagnostics, ShowMessage};
use lsp_types::request::{InlayHintRefreshRequest, RegisterCapability, WorkspaceDiagnosticRefresh};
use lsp_types::{
    CodeActionOptions, CodeActionProviderCapability, CompletionOptions, DiagnosticOptions,
    DiagnosticServerCapabilities, DidChangeWatchedFilesRegistrationOptions, FileSystemWatcher, GlobPattern,
    HoverProviderCapability, InitializeParams, InitializeResult, LogMessageParams, MessageType, OneOf,
    PublishDiagnosticsParams, Registration, RegistrationParams, ServerCapabilities, ServerInfo, ShowMessageParams,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, Uri,
};
use pgvet_workspace::{OpenFile, inert};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long nothing must have changed before other documents use it as their history.
const QUIET: Duration = Duration::from_millis(150);

/// Something that makes the server do something.
enum Event {
    Incoming(Incoming),
    Loaded(Loaded),
    /// Nothing has changed for a while.
    Quiet,
    /// The client is gone.
    Closed,
}

/// A document that a client has open.
pub(crate) struct Open {
    pub(crate) document: Document,
    /// `None` for a document that is in no file.
    path: Option<PathBuf>,
    version: Option<i32>,
    /// `None` until its history is there.
    pub(crate) analysis: Option<Analysis>,
    /// The number of the job that loads its history now.
    loading: Option<u64>,
    /// Its history may have changed.
    must_load: bool,
    /// Requests for its diagnostics, which wait for the history.
    waiting: Vec<RequestId>,
    /// The number of the check that the client has seen.
    published: u64,
}

pub(crate) struct Server {
    pub(crate) outbox: Outbox,
    pub(crate) client: Client,
    pub(crate) options: Options,
    pub(crate) documents: BTreeMap<Uri, Open>,
    loader: Loader,
    loaded: Receiver<Loaded>,
    check: Check,
    queue: VecDeque<Message>,
    /// When documents whose history may have changed are loaded.
    load_at: Option<Instant>,
    /// The last number of a job, a check or a request.
    last_number: u64,
    /// The configuration files with a mistake, by the documents that they keep from being checked.
    wrong_configs: BTreeMap<Uri, Uri>,
    is_initialized: bool,
    shut_down: bool,
}

impl Server {
    pub(crate) fn new(outbox: Outbox) -> Self {
        let (loader, loaded) = Loader::start();
        Self {
            outbox,
            client: Client::default(),
            options: Options::default(),
            documents: BTreeMap::new(),
            loader,
            loaded,
            check: OpenFile::check,
            queue: VecDeque::new(),
            load_at: None,
            last_number: 0,
            wrong_configs: BTreeMap::new(),
            is_initialized: false,
            shut_down: false,
        }
    }

    #[cfg(test)]
    pub(crate) fn with_check(outbox: Outbox, check: Check) -> Self {
        Self { check, ..Self::new(outbox) }
    }

    /// Serves until the client says `exit` or disconnects. Returns whether it was told to shut down first.
    pub(crate) fn run(mut self, inbox: &Receiver<Incoming>) -> bool {
        loop {
            self.drain(inbox);
            while let Some(message) = self.queue.pop_front() {
                if matches!(&message, Message::Notification(notification) if notification.method == "exit") {
                    return self.shut_down;
                }
                self.guarded(message);
                self.drain(inbox);
            }
            self.publish();
            match self.wait(inbox) {
                Event::Incoming(incoming) => self.receive(incoming),
                Event::Loaded(loaded) => self.take_history(loaded),
                Event::Quiet => self.load_histories(),
                Event::Closed => return self.shut_down,
            }
        }
    }

    fn wait(&self, inbox: &Receiver<Incoming>) -> Event {
        let quiet = self.load_at.map_or_else(never, |at| after(at.saturating_duration_since(Instant::now())));
        select! {
            recv(inbox) -> incoming => incoming.map_or(Event::Closed, Event::Incoming),
            // The loader ends only with the program.
            recv(self.loaded) -> loaded => loaded.map_or(Event::Closed, Event::Loaded),
            recv(quiet) -> _ => Event::Quiet,
        }
    }

    /// Receives the messages that have arrived, without waiting, so that cancelled requests are not begun and edits are
    /// merged.
    fn drain(&mut self, inbox: &Receiver<Incoming>) {
        while let Ok(incoming) = inbox.try_recv() {
            self.receive(incoming);
        }
    }

    fn receive(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Malformed(why) => {
                self.log(MessageType::WARNING, format!("a message was skipped: {why}"));
                self.outbox.fail(None, ErrorCode::ParseError, why);
            }
            Incoming::Message(message) => match *message {
                Message::Notification(notification) if notification.method == "$/cancelRequest" => {
                    self.cancel(&notification);
                }
                message => self.queue.push_back(message),
            },
        }
    }

    fn cancel(&mut self, notification: &Notification) {
        let Some(id) = notification.params.get("id").and_then(|id| serde_json::from_value(id.clone()).ok()) else {
            return;
        };
        let waiting = self.queue.len();
        self.queue.retain(|message| !matches!(message, Message::Request(request) if request.id == id));
        let mut is_known = self.queue.len() < waiting;
        for open in self.documents.values_mut() {
            let waiting = open.waiting.len();
            open.waiting.retain(|other| *other != id);
            is_known |= open.waiting.len() < waiting;
        }
        if is_known {
            self.outbox.fail(Some(&id), ErrorCode::RequestCanceled, "the client cancelled it".to_owned());
        }
    }

    /// A defect costs the answer to one message, not the session.
    fn guarded(&mut self, message: Message) {
        let id = if let Message::Request(request) = &message { Some(request.id.clone()) } else { None };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.message(message))) {
            let why = analysis::message(&*panic);
            self.defect(&why);
            if let Some(id) = id {
                self.outbox.fail(Some(&id), ErrorCode::InternalError, why);
            }
        }
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Request(request) => self.request(request),
            Message::Notification(notification) => self.notification(notification),
            // Nothing depends on what the client answers.
            Message::Response(_) => {}
        }
    }

    fn request(&mut self, request: Request) {
        match request.method.as_str() {
            "initialize" if !self.is_initialized => self.initialize(&request),
            "initialize" => {
                let why = "`initialize` comes once".to_owned();
                self.outbox.fail(Some(&request.id), ErrorCode::InvalidRequest, why);
            }
            _ if !self.is_initialized => {
                let why = "`initialize` must come first".to_owned();
                self.outbox.fail(Some(&request.id), ErrorCode::ServerNotInitialized, why);
            }
            _ if self.shut_down => {
                let why = "the server was told to shut down".to_owned();
                self.outbox.fail(Some(&request.id), ErrorCode::InvalidRequest, why);
            }
            "shutdown" => {
                self.shut_down = true;
                self.outbox.respond(&request.id, Value::Null);
            }
            _ => self.answer(request),
        }
    }

    fn initialize(&mut self, request: &Request) {
        let params = match serde_json::from_value::<InitializeParams>(request.params.clone()) {
            Ok(params) => params,
            Err(error) => {
                return self.outbox.fail(Some(&request.id), ErrorCode::InvalidParams, error.to_string());
            }
        };
        self.is_initialized = true;
        self.client = Client::new(&params);
        self.configure(params.initialization_options.as_ref().unwrap_or(&Value::Null));
        let server_info = ServerInfo { name: "pgvet".to_owned(), version: Some(env!("CARGO_PKG_VERSION").to_owned()) };
        let capabilities = capabilities(self.client);
        self.outbox.respond(&request.id, InitializeResult { capabilities, server_info: Some(server_info) });
    }

    /// Takes the options of the user, if `options` holds those of this server.
    pub(crate) fn configure(&mut self, options: &Value) {
        match Options::read(options) {
            Ok(None) => {}
            Ok(Some(options)) => {
                let changed = options != self.options;
                self.options = options;
                if changed {
                    self.refresh_hints();
                }
            }
            Err(error) => self.show(MessageType::WARNING, error),
        }
    }

    /// Asks to be told when migrations and configuration change on disk.
    pub(crate) fn watch_files(&mut self) {
        if !self.client.watches_files {
            return;
        }
        let watched = ["**/*.sql", "**/pgvet.toml", "**/pgvet-baseline.json", "**/sqitch.plan", "**/*.conf"];
        let watchers =
            watched.map(|glob| FileSystemWatcher { glob_pattern: GlobPattern::String(glob.to_owned()), kind: None });
        let options = DidChangeWatchedFilesRegistrationOptions { watchers: watchers.into() };
        let registration = Registration {
            id: "pgvet-files".to_owned(),
            method: "workspace/didChangeWatchedFiles".to_owned(),
            register_options: serde_json::to_value(options).ok(),
        };
        let id = self.next_id();
        self.outbox.request::<RegisterCapability>(&id, RegistrationParams { registrations: vec![registration] });
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn next_id(&mut self) -> RequestId {
        RequestId::from(format!("pgvet-{}", self.next_number()))
    }

    pub(crate) fn open(&mut self, uri: Uri, text: String, version: i32) {
        let open = Open {
            document: Document::new(text, self.client.encoding),
            path: uri::to_path(&uri),
            version: Some(version),
            analysis: None,
            loading: None,
            must_load: false,
            waiting: Vec::new(),
            published: 0,
        };
        self.documents.insert(uri.clone(), open);
        self.load(&uri);
        self.change_history_of_others(&uri);
    }

    pub(crate) fn close(&mut self, uri: &Uri) {
        let Some(open) = self.documents.remove(uri) else { return };
        for id in open.waiting {
            self.outbox.fail(Some(&id), ErrorCode::ContentModified, "the document was closed".to_owned());
        }
        self.show_nothing(uri);
        self.forget_wrong_config(uri);
        self.follow(uri, open.path.as_deref());
    }

    pub(crate) fn edited(&mut self, uri: &Uri, version: i32) {
        if let Some(open) = self.documents.get_mut(uri) {
            open.version = Some(version);
            match &mut open.analysis {
                Some(analysis) => analysis.set_stale(),
                // Its history is not there yet, or a defect took it away.
                None if open.loading.is_none() => open.must_load = true,
                None => {}
            }
        }
        self.change_history_of_others(uri);
    }

    /// Every document may look different.
    pub(crate) fn change_all_histories(&mut self) {
        self.documents.values_mut().for_each(|open| open.must_load = true);
        self.load_at = Some(Instant::now() + QUIET);
    }

    /// The text of a document is part of the history of others.
    fn change_history_of_others(&mut self, uri: &Uri) {
        let path = self.documents.get(uri).and_then(|open| open.path.clone());
        self.follow(uri, path.as_deref());
    }

    fn follow(&mut self, uri: &Uri, path: Option<&Path>) {
        let Some(path) = path else { return };
        for (_, open) in self.documents.iter_mut().filter(|(other, _)| *other != uri) {
            open.must_load |= open.analysis.as_ref().is_none_or(|analysis| analysis.follows(path));
        }
        if self.documents.values().any(|open| open.must_load) {
            self.load_at = Some(Instant::now() + QUIET);
        }
    }

    fn load_histories(&mut self) {
        self.load_at = None;
        let wanted: Vec<Uri> =
            self.documents.iter().filter(|(_, open)| open.must_load).map(|(uri, _)| uri.clone()).collect();
        wanted.iter().for_each(|uri| self.load(uri));
    }

    fn load(&mut self, uri: &Uri) {
        let number = self.next_number();
        let others = self.documents.iter().filter(|(other, _)| *other != uri);
        let others =
            others.filter_map(|(_, open)| Some((open.path.clone()?, open.document.text().to_owned()))).collect();
        let Some(open) = self.documents.get_mut(uri) else { return };
        open.must_load = false;
        open.loading = Some(number);
        let (path, text) = (open.path.clone(), open.document.text().to_owned());
        self.loader.load(Job { uri: uri.clone(), number, path, text, others });
    }

    fn take_history(&mut self, loaded: Loaded) {
        let Some(open) = self.documents.get_mut(&loaded.uri).filter(|open| open.loading == Some(loaded.number)) else {
            return;
        };
        open.loading = None;
        match loaded.result {
            Ok(history) => {
                let problems = history.project().problems.iter();
                let said: Vec<_> = problems.map(|one| format!("{} {}", one.path, one.message)).collect();
                open.analysis = Some(Analysis::new(*history));
                self.forget_wrong_config(&loaded.uri);
                self.update(&loaded.uri);
                self.answer_waiting(&loaded.uri);
                self.refresh();
                said.into_iter().for_each(|problem| self.log(MessageType::WARNING, problem));
            }
            Err(LoadError::Config(error)) => {
                open.analysis = None;
                let config = uri::from_path(error.path.as_ref());
                let is_shown =
                    config.as_ref().is_some_and(|config| self.wrong_configs.values().any(|one| one == config));
                if let Some(config) = config {
                    let diagnostic = diagnostics::of_config(&error, self.client);
                    let params = PublishDiagnosticsParams::new(config.clone(), vec![diagnostic], None);
                    self.outbox.notify::<PublishDiagnostics>(params);
                    self.wrong_configs.insert(loaded.uri.clone(), config);
                }
                if !is_shown {
                    self.show(MessageType::ERROR, format!("{}: {}", error.path, error.message));
                }
                self.lost(&loaded.uri);
            }
            Err(LoadError::Defect(why)) => {
                open.analysis = None;
                self.defect(&why);
                self.lost(&loaded.uri);
            }
        }
    }

    /// A document cannot be checked any more: what the client shows is about another text.
    fn lost(&mut self, uri: &Uri) {
        self.show_nothing(uri);
        self.answer_waiting(uri);
        self.refresh();
    }

    /// Withdraws the findings of a client that does not pull them.
    fn show_nothing(&self, uri: &Uri) {
        if !self.client.pulls {
            let params = PublishDiagnosticsParams::new(uri.clone(), Vec::new(), None);
            self.outbox.notify::<PublishDiagnostics>(params);
        }
    }

    /// The configuration of a document can be read, or the document is closed.
    fn forget_wrong_config(&mut self, document: &Uri) {
        let Some(config) = self.wrong_configs.remove(document) else { return };
        if !self.wrong_configs.values().any(|other| *other == config) {
            self.outbox.notify::<PublishDiagnostics>(PublishDiagnosticsParams::new(config, Vec::new(), None));
        }
    }

    /// Checks a document whose text has changed since the last time.
    pub(crate) fn update(&mut self, uri: &Uri) {
        let (number, check) = (self.next_number(), self.check);
        let Some(open) = self.documents.get_mut(uri) else { return };
        let Some(analysis) = &mut open.analysis else { return };
        if let Err(why) = analysis.update(&open.document, number, check) {
            // What it holds may be half done; the next edit starts over.
            open.analysis = None;
            self.defect(&why);
            self.show_nothing(uri);
        }
    }

    /// Sends diagnostics that have changed to a client that does not ask for them.
    fn publish(&mut self) {
        let uris: Vec<Uri> = self.documents.keys().cloned().collect();
        for uri in uris {
            self.update(&uri);
            let Some(open) = self.documents.get_mut(&uri) else { continue };
            let Some(analysis) = &open.analysis else { continue };
            if self.client.pulls || open.published == analysis.number {
                continue;
            }
            open.published = analysis.number;
            let found = diagnostics::all(analysis, &open.document, &uri, self.client);
            let params = PublishDiagnosticsParams::new(uri.clone(), found, open.version);
            self.outbox.notify::<PublishDiagnostics>(params);
        }
    }

    /// Lets a client that asks for diagnostics wait until the history is there.
    pub(crate) fn wait_for_history(&mut self, uri: &Uri, id: RequestId) {
        if let Some(open) = self.documents.get_mut(uri) {
            open.waiting.push(id);
        }
    }

    pub(crate) fn is_loading(&self, uri: &Uri) -> bool {
        self.documents.get(uri).is_some_and(|open| open.loading.is_some() && open.analysis.is_none())
    }

    fn answer_waiting(&mut self, uri: &Uri) {
        let waiting = self.documents.get_mut(uri).map(|open| std::mem::take(&mut open.waiting)).unwrap_or_default();
        for id in waiting {
            self.answer_diagnostics(&id, uri, None);
        }
    }

    /// Asks the client to refresh what it shows, which may be outdated.
    fn refresh(&mut self) {
        if self.client.pulls && self.client.refreshes_diagnostics {
            let id = self.next_id();
            self.outbox.request::<WorkspaceDiagnosticRefresh>(&id, ());
        }
        if self.options.inlay_hints {
            self.refresh_hints();
        }
    }

    fn refresh_hints(&mut self) {
        if self.client.refreshes_hints {
            let id = self.next_id();
            self.outbox.request::<InlayHintRefreshRequest>(&id, ());
        }
    }

    fn defect(&self, why: &str) {
        let text = format!("this is a defect of pgvet, please report it with the file that you edit: {why}");
        self.show(MessageType::ERROR, text);
    }

    fn show(&self, typ: MessageType, message: String) {
        self.outbox.notify::<ShowMessage>(ShowMessageParams { typ, message: inert::lines(&message) });
    }

    pub(crate) fn log(&self, typ: MessageType, message: String) {
        self.outbox.notify::<LogMessage>(LogMessageParams { typ, message: inert::lines(&message) });
    }
}

fn capabilities(client: Client) -> ServerCapabilities {
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::INCREMENTAL),
        ..TextDocumentSyncOptions::default()
    };
    let code_actions = CodeActionOptions { code_action_kinds: Some(actions::kinds()), ..CodeActionOptions::default() };
    let completion = CompletionOptions {
        trigger_characters: Some(completion::TRIGGERS.map(str::to_owned).into()),
        ..CompletionOptions::default()
    };
    let diagnostics = DiagnosticOptions {
        identifier: Some(diagnostics::SOURCE.to_owned()),
        inter_file_dependencies: true,
        ..DiagnosticOptions::default()
    };
    ServerCapabilities {
        position_encoding: Some(client.encoding.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Options(sync)),
        code_action_provider: Some(CodeActionProviderCapability::Options(code_actions)),
        completion_provider: Some(completion),
        diagnostic_provider: client.pulls.then_some(DiagnosticServerCapabilities::Options(diagnostics)),
        document_symbol_provider: Some(OneOf::Left(true)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        inlay_hint_provider: Some(OneOf::Left(true)),
        ..ServerCapabilities::default()
    }
}

#[cfg(test)]
mod tests;
