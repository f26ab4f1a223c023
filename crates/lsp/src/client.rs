//! Capabilities of the client, and options of its user.

use crate::position::Encoding;
use lsp_types::{ClientCapabilities, InitializeParams, MarkupKind};
use serde::Deserialize;
use serde_json::Value;

/// Capabilities of the client.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Client {
    pub(crate) encoding: Encoding,
    /// It asks for diagnostics; otherwise they are sent whenever they change.
    pub(crate) pulls: bool,
    pub(crate) related_information: bool,
    pub(crate) code_description: bool,
    /// It can be told to ask again.
    pub(crate) refreshes_diagnostics: bool,
    pub(crate) refreshes_hints: bool,
    pub(crate) watches_files: bool,
    pub(crate) hierarchical_symbols: bool,
    pub(crate) hover_markdown: bool,
    pub(crate) completion_markdown: bool,
}

/// Options of the user: `initializationOptions`, or the section `pgvet` of the settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Options {
    /// The strongest lock at the end of each statement.
    pub(crate) inlay_hints: bool,
}

impl Client {
    pub(crate) fn new(params: &InitializeParams) -> Self {
        let ClientCapabilities { general, workspace, text_document, .. } = &params.capabilities;
        let encodings = general.as_ref().and_then(|general| general.position_encodings.as_deref());
        let text = text_document.as_ref();
        let publish = text.and_then(|text| text.publish_diagnostics.as_ref());
        let workspace = workspace.as_ref();
        let watching = workspace.and_then(|workspace| workspace.did_change_watched_files.as_ref());
        let symbols = text.and_then(|text| text.document_symbol.as_ref());
        let hover = text.and_then(|text| text.hover.as_ref()).and_then(|hover| hover.content_format.as_deref());
        let completion = text.and_then(|text| text.completion.as_ref());
        let item = completion.and_then(|completion| completion.completion_item.as_ref());
        let documentation = item.and_then(|item| item.documentation_format.as_deref());
        Self {
            encoding: Encoding::choose(encodings.unwrap_or_default()),
            pulls: text.is_some_and(|text| text.diagnostic.is_some()),
            related_information: publish.and_then(|publish| publish.related_information) == Some(true),
            code_description: publish.and_then(|publish| publish.code_description_support) == Some(true),
            refreshes_diagnostics: workspace
                .and_then(|workspace| workspace.diagnostic.as_ref())
                .and_then(|diagnostic| diagnostic.refresh_support)
                == Some(true),
            refreshes_hints: workspace
                .and_then(|workspace| workspace.inlay_hint.as_ref())
                .and_then(|hint| hint.refresh_support)
                == Some(true),
            watches_files: watching.and_then(|watching| watching.dynamic_registration) == Some(true),
            hierarchical_symbols: symbols.and_then(|symbols| symbols.hierarchical_document_symbol_support)
                == Some(true),
            hover_markdown: shows_markdown(hover),
            completion_markdown: shows_markdown(documentation),
        }
    }
}

/// A client that names no formats, as older ones do, gets markdown.
fn shows_markdown(formats: Option<&[MarkupKind]>) -> bool {
    formats.is_none_or(|formats| formats.contains(&MarkupKind::Markdown))
}

impl Options {
    /// Reads options, or says what is wrong with them. `None`: these are the settings of other programs.
    pub(crate) fn read(value: &Value) -> Result<Option<Self>, String> {
        let section = value.get("pgvet").or_else(|| value.get("inlayHints").map(|_| value));
        let Some(section) = section.filter(|section| !section.is_null()) else { return Ok(None) };
        Self::deserialize(section).map(Some).map_err(|error| format!("the options of pgvet are wrong: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_may_stand_alone_or_in_their_section() {
        let on = Options { inlay_hints: true };
        assert_eq!(Options::read(&json!({"inlayHints": true})), Ok(Some(on)));
        assert_eq!(Options::read(&json!({"pgvet": {"inlayHints": true}, "other": 1})), Ok(Some(on)));
        assert_eq!(Options::read(&json!({"pgvet": {}})), Ok(Some(Options::default())));
        for other in [Value::Null, json!({}), json!({"other": {"inlayHints": true}}), json!({"pgvet": null})] {
            assert_eq!(Options::read(&other), Ok(None), "{other}");
        }
        assert!(Options::read(&json!({"inlayHints": "yes"})).is_err());
    }
}
