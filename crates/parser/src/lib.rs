//! PostgreSQL's own grammar, called so that an error keeps its position.
//!
//! `pg_query::parse` drops the cursor of a syntax error and walks every tree once more to collect table names.
//! This crate calls the same C function and returns the decoded tree or PostgreSQL's message with its byte offset.

#![expect(unsafe_code, reason = "the one place that talks to the C library")]

use std::ffi::{CStr, CString, c_char, c_int};

pub use pg_query::protobuf;
use prost::Message;

/// The result of a refused statement: PostgreSQL's message and where it points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// PostgreSQL's message, for example `syntax error at or near "FORM"`.
    pub message: String,
    /// Byte offset into the parsed text that the message is about.
    pub offset: usize,
}

#[repr(C)]
struct RawError {
    message: *mut c_char,
    funcname: *mut c_char,
    filename: *mut c_char,
    lineno: c_int,
    cursorpos: c_int,
    context: *mut c_char,
}

#[repr(C)]
struct RawProtobuf {
    len: usize,
    data: *mut c_char,
}

#[repr(C)]
struct RawParseResult {
    parse_tree: RawProtobuf,
    stderr_buffer: *mut c_char,
    error: *mut RawError,
}

unsafe extern "C" {
    fn pg_query_parse_protobuf_opts(input: *const c_char, parser_options: c_int) -> RawParseResult;
    fn pg_query_free_protobuf_parse_result(result: RawParseResult);
}

/// Parses one or more SQL statements with the grammar of PostgreSQL 18.
///
/// # Errors
/// PostgreSQL's own message and position when it refuses the text, and a message of ours for a NUL byte,
/// which PostgreSQL cannot receive.
pub fn parse(sql: &str) -> Result<protobuf::ParseResult, ParseError> {
    let input = CString::new(sql).map_err(|nul| ParseError {
        message: "invalid byte sequence for encoding \"UTF8\": 0x00".to_owned(),
        offset: nul.nul_position(),
    })?;
    // SAFETY: `input` is NUL-terminated and outlives the call; the result is freed exactly once, after its last use.
    unsafe {
        let result = pg_query_parse_protobuf_opts(input.as_ptr(), 0);
        let parsed = if result.error.is_null() {
            let data = std::slice::from_raw_parts(result.parse_tree.data.cast::<u8>(), result.parse_tree.len);
            protobuf::ParseResult::decode(data).map_err(|error| ParseError { message: error.to_string(), offset: 0 })
        } else {
            let error = &*result.error;
            let message = CStr::from_ptr(error.message).to_string_lossy().into_owned();
            Err(ParseError { message, offset: byte_offset(sql, error.cursorpos) })
        };
        pg_query_free_protobuf_parse_result(result);
        parsed
    }
}

/// PostgreSQL counts characters from 1; 0 means that the error has no position.
fn byte_offset(sql: &str, cursor: c_int) -> usize {
    let characters = usize::try_from(cursor).unwrap_or(0).saturating_sub(1);
    sql.char_indices().nth(characters).map_or(sql.len(), |(offset, _)| offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_carries_the_position() {
        let error = parse("SELECT 'ä' FORM t").unwrap_err();
        assert_eq!(error.message, "syntax error at or near \"t\"");
        assert_eq!(&"SELECT 'ä' FORM t"[error.offset..], "t");
    }

    #[test]
    fn long_operator_chains_decode() {
        let sql = format!("SELECT {}", vec!["'x'"; 500].join(" || "));
        // An unoptimised decoder needs about 40 kB of stack for each level.
        let parsed = std::thread::Builder::new().stack_size(64 << 20).spawn(move || parse(&sql).unwrap().stmts.len());
        assert_eq!(parsed.unwrap().join().unwrap(), 1);
    }

    #[test]
    fn nul_byte_is_an_error() {
        assert_eq!(parse("SELECT 1\0").unwrap_err().offset, 8);
    }
}
