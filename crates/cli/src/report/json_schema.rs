//! The JSON schema of what `pgvet check --format json` writes, generated from the types that are written.

use super::json::Document;
use crate::error::{ExitStatus, Failure};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use std::io::Write;

/// `pgvet json-schema`.
pub(crate) fn run(out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    // Fields that are not always written are not required.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Document<'_>>();
    schema.insert("title".to_owned(), "Findings of pgvet".into());
    let text = serde_json::to_string_pretty(&schema)
        .map_err(|error| Failure::new(format!("the schema cannot be written: {error}")))?;
    writeln!(out, "{text}")?;
    Ok(ExitStatus::Clean)
}

/// Declares an enum that only the schema has: the engine, whose values these are, knows nothing of schemas.
macro_rules! values {
    ($($(#[doc = $doc:literal])* $name:ident: $($value:ident),+;)+) => {
        $(
            $(#[doc = $doc])*
            #[derive(JsonSchema)]
            #[schemars(rename_all = "kebab-case")]
            #[expect(dead_code, reason = "only its schema is used")]
            pub(super) enum $name { $($value),+ }
        )+
    };
}

values! {
    /// How bad it is if it happens.
    Severity: Info, Warning, Error;
    /// How sure the finding is.
    Confidence: Possible, Likely, Certain;
    /// How far a fix can be trusted.
    Applicability: DisplayOnly, Unsafe, Safe;
    /// The evidence for the finding.
    Evidence: Predicted, Observed;
}

/// A place in a file. Lines and columns begin with 1, and columns count characters; the offset counts bytes from 0.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct Position {
    line: u32,
    column: u32,
    offset: u32,
}

/// An entry of a baseline.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct KnownFinding {
    fingerprint: String,
    rule: String,
    path: String,
    message: String,
}
