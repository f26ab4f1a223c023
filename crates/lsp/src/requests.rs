//! Requests and notifications of the client.

use crate::server::Server;
use crate::{actions, completion, diagnostics, hover, inlay, symbols};
use lsp_server::{ErrorCode, Notification, Request, RequestId};
use lsp_types::{
    CodeActionOrCommand, CodeActionParams, CompletionParams, CompletionResponse, DidChangeConfigurationParams,
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, DocumentDiagnosticParams,
    DocumentDiagnosticReport, DocumentSymbolParams, DocumentSymbolResponse, FullDocumentDiagnosticReport, HoverParams,
    InlayHintParams, MessageType, RelatedFullDocumentDiagnosticReport, RelatedUnchangedDocumentDiagnosticReport,
    UnchangedDocumentDiagnosticReport, Uri,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

impl Server {
    pub(crate) fn answer(&mut self, request: Request) {
        let Request { id, method, params } = request;
        let answered = match method.as_str() {
            "textDocument/diagnostic" => read(params).map(|params| self.pull(&id, &params)),
            "textDocument/codeAction" => read(params).map(|params| self.code_actions(&id, &params)),
            "textDocument/hover" => read(params).map(|params| self.hover(&id, &params)),
            "textDocument/inlayHint" => read(params).map(|params| self.inlay_hints(&id, &params)),
            "textDocument/documentSymbol" => read(params).map(|params| self.symbols(&id, &params)),
            "textDocument/completion" => read(params).map(|params| self.completion(&id, &params)),
            _ => {
                let why = format!("pgvet does not answer `{method}`");
                return self.outbox.fail(Some(&id), ErrorCode::MethodNotFound, why);
            }
        };
        if let Err(why) = answered {
            self.outbox.fail(Some(&id), ErrorCode::InvalidParams, why);
        }
    }

    pub(crate) fn notification(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        let done = match method.as_str() {
            "initialized" => {
                self.watch_files();
                Ok(())
            }
            "textDocument/didOpen" => read(params).map(|params: DidOpenTextDocumentParams| {
                let document = params.text_document;
                self.open(document.uri, document.text, document.version);
            }),
            "textDocument/didChange" => read(params).map(|params| self.change(params)),
            "textDocument/didClose" => {
                read(params).map(|params: DidCloseTextDocumentParams| self.close(&params.text_document.uri))
            }
            "workspace/didChangeWatchedFiles" => {
                self.change_all_histories();
                Ok(())
            }
            "workspace/didChangeConfiguration" => {
                read(params).map(|params: DidChangeConfigurationParams| self.configure(&params.settings))
            }
            // Others are about what is not done here.
            _ => Ok(()),
        };
        if let Err(why) = done {
            self.log(MessageType::WARNING, format!("`{method}` was skipped: {why}"));
        }
    }

    fn change(&mut self, params: DidChangeTextDocumentParams) {
        let uri = params.text_document.uri;
        let Some(open) = self.documents.get_mut(&uri) else {
            return self.log(MessageType::WARNING, format!("{} is changed but not open", uri.as_str()));
        };
        for change in params.content_changes {
            open.document.change(change);
        }
        self.edited(&uri, params.text_document.version);
    }

    fn pull(&mut self, id: &RequestId, params: &DocumentDiagnosticParams) {
        let uri = &params.text_document.uri;
        if self.is_loading(uri) {
            self.wait_for_history(uri, id.clone());
        } else {
            self.answer_diagnostics(id, uri, params.previous_result_id.as_deref());
        }
    }

    pub(crate) fn answer_diagnostics(&mut self, id: &RequestId, uri: &Uri, previous: Option<&str>) {
        self.update(uri);
        let open = self.documents.get(uri);
        let known = open.and_then(|open| Some((open, open.analysis.as_ref()?)));
        let result_id = known.map(|(_, analysis)| analysis.number.to_string());
        if let Some(result_id) = result_id.clone().filter(|result_id| previous == Some(result_id.as_str())) {
            let report = UnchangedDocumentDiagnosticReport { result_id };
            let report = RelatedUnchangedDocumentDiagnosticReport {
                related_documents: None,
                unchanged_document_diagnostic_report: report,
            };
            return self.outbox.respond(id, DocumentDiagnosticReport::Unchanged(report));
        }
        let items = known.map(|(open, analysis)| diagnostics::all(analysis, &open.document, uri, self.client));
        let report = FullDocumentDiagnosticReport { result_id, items: items.unwrap_or_default() };
        let report =
            RelatedFullDocumentDiagnosticReport { related_documents: None, full_document_diagnostic_report: report };
        self.outbox.respond(id, DocumentDiagnosticReport::Full(report));
    }

    fn code_actions(&mut self, id: &RequestId, params: &CodeActionParams) {
        let uri = &params.text_document.uri;
        self.update(uri);
        let known = self.documents.get(uri).and_then(|open| Some((open, open.analysis.as_ref()?)));
        let found = known.map(|(open, analysis)| actions::actions(analysis, &open.document, uri, params));
        let found: Vec<_> = found.unwrap_or_default().into_iter().map(CodeActionOrCommand::CodeAction).collect();
        self.outbox.respond(id, found);
    }

    fn hover(&mut self, id: &RequestId, params: &HoverParams) {
        let at = &params.text_document_position_params;
        self.update(&at.text_document.uri);
        let open = self.documents.get(&at.text_document.uri);
        let is_markdown = self.client.hover_markdown;
        let hover = open.and_then(|open| {
            hover::at(open.analysis.as_ref(), &open.document, open.document.offset(at.position), is_markdown)
        });
        self.outbox.respond(id, hover);
    }

    fn inlay_hints(&mut self, id: &RequestId, params: &InlayHintParams) {
        let uri = &params.text_document.uri;
        self.update(uri);
        let is_on = self.options.inlay_hints;
        let known = self.documents.get(uri).and_then(|open| Some((open, open.analysis.as_ref()?)));
        let hints = known
            .filter(|_| is_on)
            .map(|(open, analysis)| inlay::hints(analysis, &open.document, open.document.text_range(params.range)));
        self.outbox.respond(id, hints.unwrap_or_default());
    }

    fn symbols(&mut self, id: &RequestId, params: &DocumentSymbolParams) {
        let uri = &params.text_document.uri;
        let is_tree = self.client.hierarchical_symbols;
        let symbols = self.documents.get(uri).map(|open| {
            if is_tree {
                DocumentSymbolResponse::Nested(symbols::tree(&open.document))
            } else {
                DocumentSymbolResponse::Flat(symbols::list(&open.document, uri))
            }
        });
        self.outbox.respond(id, symbols);
    }

    fn completion(&mut self, id: &RequestId, params: &CompletionParams) {
        let at = &params.text_document_position;
        let open = self.documents.get(&at.text_document.uri);
        let is_markdown = self.client.completion_markdown;
        let items = open.map(|open| completion::at(&open.document, open.document.offset(at.position), is_markdown));
        self.outbox.respond(id, CompletionResponse::Array(items.unwrap_or_default()));
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, String> {
    serde_json::from_value(params).map_err(|error| error.to_string())
}
