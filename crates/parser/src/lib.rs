//! PostgreSQL's own grammar, called so that an error keeps its position.
//!
//! `pg_query::parse` packs every tree into a message and unpacks it again, which takes several times as long as the
//! grammar itself, and drops the cursor of a syntax error. This crate reads the tree where the C parser left it, and
//! returns PostgreSQL's message with its byte offset.

#![expect(unsafe_code, reason = "the one place that talks to the C library")]

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;

mod layout;
mod nodes;
mod operators;
pub mod tree;

use tree::{List, Node};

// Only for its C library, which it builds and links.
use pg_query as _;

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

/// The parser's tree in the present memory context, or its error.
#[repr(C)]
struct RawTree {
    tree: List<'static>,
    stderr_buffer: *mut c_char,
    error: *mut RawError,
}

/// The result that `pg_query_free_protobuf_parse_result` frees: a packed tree, always empty here, and the parts of a
/// [`RawTree`].
#[repr(C)]
struct RawResult {
    packed_length: usize,
    packed: *mut c_char,
    stderr_buffer: *mut c_char,
    error: *mut RawError,
}

/// The code as JSON, which nobody reads, or its error.
#[repr(C)]
struct RawCode {
    functions: *mut c_char,
    error: *mut RawError,
}

unsafe extern "C" {
    fn pg_query_parse_plpgsql(input: *const c_char) -> RawCode;
    fn pg_query_free_plpgsql_parse_result(result: RawCode);
    fn pg_query_enter_memory_context() -> *mut c_void;
    fn pg_query_exit_memory_context(context: *mut c_void);
    fn pg_query_raw_parse(input: *const c_char, parser_options: c_int) -> RawTree;
    fn pg_query_free_protobuf_parse_result(result: RawResult);
}

thread_local! {
    /// Whether a memory context of this thread is entered.
    static IS_PARSING: Cell<bool> = const { Cell::new(false) };
}

/// The memory of one parse; everything in it is freed at its end, also in a panic.
///
/// The C library keeps the present context in a variable of the thread, so a context is left on the thread that entered
/// it (a pointer is not `Send`), and contexts do not nest.
struct MemoryContext(*mut c_void, PhantomData<*mut c_void>);

impl MemoryContext {
    fn enter() -> Self {
        assert!(!IS_PARSING.replace(true), "a tree must be left before the same thread parses again");
        // SAFETY: no other context of this thread is entered; it initialises the thread's memory contexts on first use.
        Self(unsafe { pg_query_enter_memory_context() }, PhantomData)
    }
}

impl Drop for MemoryContext {
    fn drop(&mut self) {
        // SAFETY: this is the context that was entered, and it is left once.
        unsafe { pg_query_exit_memory_context(self.0) }
        IS_PARSING.set(false);
    }
}

/// Parses one or more SQL statements with the grammar of PostgreSQL 18 and lends their tree to `read`.
///
/// # Panics
/// `read` must not parse: the C library has one memory context for each thread.
///
/// Nothing of the tree leaves `read`, whose argument lives for any lifetime that the caller cannot name:
///
/// ```compile_fail
/// let mut kept = None;
/// pgvet_parser::parse("SELECT 1", |statements| kept = statements.first().copied());
/// ```
///
/// Nodes are not copied or moved out of the tree, because lists and constants point to their own memory:
///
/// ```compile_fail
/// pgvet_parser::parse("SELECT 1", |statements| { let moved: pgvet_parser::tree::RawStmt<'_> = *statements[0]; });
/// ```
///
/// No other thread sees them, because the memory belongs to this one:
///
/// ```compile_fail
/// pgvet_parser::parse("SELECT 1", |statements| {
///     std::thread::scope(|scope| { scope.spawn(|| statements.len()); });
/// });
/// ```
///
/// # Errors
/// PostgreSQL's own message and position when it refuses the text, and a message of ours for a NUL byte,
/// which PostgreSQL cannot receive.
pub fn parse<T>(sql: &str, read: impl for<'t> FnOnce(&[&'t tree::RawStmt<'t>]) -> T) -> Result<T, ParseError> {
    let input = CString::new(sql).map_err(|nul| ParseError {
        message: "invalid byte sequence for encoding \"UTF8\": 0x00".to_owned(),
        offset: nul.nul_position(),
    })?;
    if let Some(offset) = operators::endless_run(sql) {
        let message = "too many operator characters follow each other to be read".to_owned();
        return Err(ParseError { message, offset });
    }
    let _context = MemoryContext::enter();
    // SAFETY: `input` is NUL-terminated and outlives the call, and a memory context is entered.
    let parsed = unsafe { pg_query_raw_parse(input.as_ptr(), 0) };
    let result = if parsed.error.is_null() {
        let statement = |node: tree::NodeRef<'static>| match node.node() {
            Node::RawStmt(statement) => Some(statement),
            _ => None,
        };
        // `read` takes any lifetime, so nothing of the tree can leave it.
        Ok(read(&parsed.tree.iter().filter_map(statement).collect::<Vec<_>>()))
    } else {
        // SAFETY: an error has a message that ends with NUL.
        let (message, cursor) = unsafe { (CStr::from_ptr((*parsed.error).message), (*parsed.error).cursorpos) };
        Err(ParseError { message: message.to_string_lossy().into_owned(), offset: byte_offset(sql, cursor) })
    };
    let RawTree { stderr_buffer, error, .. } = parsed;
    let result_of_c = RawResult { packed_length: 0, packed: std::ptr::null_mut(), stderr_buffer, error };
    // SAFETY: the C library allocated both, and they are freed exactly once, after their last use.
    unsafe { pg_query_free_protobuf_parse_result(result_of_c) };
    result
}

/// Returns the message with which the parser of PL/pgSQL refuses the body of a CREATE FUNCTION or DO statement. It has no
/// catalog, so messages about names and types mean nothing.
pub fn plpgsql_error(statement: &str) -> Option<String> {
    let input = CString::new(statement).ok()?;
    assert!(!IS_PARSING.get(), "a tree must be left before the same thread parses again");
    // SAFETY: `input` is NUL-terminated and outlives the call, which enters and leaves a memory context of its own.
    let parsed = unsafe { pg_query_parse_plpgsql(input.as_ptr()) };
    // SAFETY: an error has a message that ends with NUL.
    let message = (!parsed.error.is_null()).then(|| unsafe { CStr::from_ptr((*parsed.error).message) });
    let message = message.map(|message| message.to_string_lossy().into_owned());
    // SAFETY: the C library allocated it, and it is freed exactly once, after its last use.
    unsafe { pg_query_free_plpgsql_parse_result(parsed) };
    message
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
        let error = parse("SELECT 'ä' FORM t", |_| ()).unwrap_err();
        assert_eq!(error.message, "syntax error at or near \"t\"");
        assert_eq!(&"SELECT 'ä' FORM t"[error.offset..], "t");
    }

    /// The expressions of `SELECT ...`.
    fn with_targets<T>(sql: &str, read: impl Fn(Node<'_>) -> T) -> Vec<T> {
        let targets = |statements: &[&tree::RawStmt<'_>]| {
            let Some(Node::SelectStmt(select)) = statements[0].stmt.map(tree::NodeRef::node) else { panic!() };
            let value = |target: tree::NodeRef<'_>| match target.node() {
                Node::ResTarget(target) => read(target.val.unwrap().node()),
                other => panic!("{other:?}"),
            };
            select.target_list.iter().map(value).collect()
        };
        parse(sql, targets).unwrap()
    }

    #[test]
    fn constants_are_read_in_place() {
        let constant = |node: Node<'_>| match node {
            Node::AConst(constant) => match constant.value() {
                Some(Node::Integer(number)) => number.ival.to_string(),
                Some(Node::Float(number)) => number.fval.to_string(),
                Some(Node::Boolean(truth)) => truth.boolval.to_string(),
                Some(Node::String(text)) => text.sval.to_string(),
                Some(Node::BitString(bits)) => bits.bsval.to_string(),
                other => format!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        let read = with_targets("SELECT 7, 12345678901, 1.5, true, 'ä', b'01', NULL", constant);
        assert_eq!(read, ["7", "12345678901", "1.5", "true", "ä", "b01", "None"]);
    }

    #[test]
    fn an_escape_that_makes_no_utf8_is_refused() {
        let text = |node: Node<'_>| match node {
            Node::AConst(constant) => match constant.value() {
                Some(Node::String(text)) => text.sval.to_string(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        assert_eq!(parse("SELECT E'a\\xff'", |_| ()).err().map(|error| error.message.contains("UTF8")), Some(true));
        assert_eq!(with_targets("SELECT E'a\\x41'", text), ["aA"]);
    }

    #[test]
    fn lists_omit_missing_nodes() {
        let lists = |statements: &[&tree::RawStmt<'_>]| match statements[0].stmt.map(tree::NodeRef::node) {
            Some(Node::SelectStmt(select)) => {
                (select.distinct_clause.len(), select.distinct_clause.iter().count(), select.from_clause.is_empty())
            }
            other => panic!("{other:?}"),
        };
        // Plain DISTINCT is a list of one null pointer.
        assert_eq!(parse("SELECT DISTINCT 1", lists), Ok((1, 0, true)));
    }

    #[test]
    fn letters_and_statements_that_are_not_read() {
        let table = |statements: &[&tree::RawStmt<'_>]| match statements[0].stmt.map(tree::NodeRef::node) {
            Some(Node::CreateStmt(create)) => create.relation.unwrap().relpersistence.to_string(),
            Some(Node::Other(tag)) => tag.statement().unwrap_or_default().to_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(parse("CREATE UNLOGGED TABLE t ()", table).unwrap(), "u");
        assert_eq!(parse("LISTEN t", table).unwrap(), "ListenStmt");
    }

    #[test]
    fn long_operator_chains_parse() {
        let sql = format!("SELECT {}", vec!["'x'"; 5000].join(" || "));
        assert_eq!(parse(&sql, |statements| statements.len()), Ok(1));
    }

    #[test]
    fn endless_operators_are_refused_at_once() {
        let started = std::time::Instant::now();
        for run in ["+", "/*", "-+", "*/*"] {
            let sql = format!("SELECT 1 {} 2", run.repeat(100_000));
            assert_eq!(parse(&sql, |_| ()).unwrap_err().offset, 9, "{run}");
        }
        assert!(started.elapsed().as_secs() < 2, "{:?}", started.elapsed());
        for harmless in ["/".to_owned() + &"*".repeat(100_000) + "/", "-".repeat(100_000), "+".repeat(1000)] {
            assert_eq!(parse(&format!("SELECT 1 {harmless}\n + 2"), |_| ()), Ok(()), "{}", &harmless[..3]);
        }
    }

    #[test]
    fn parsing_while_a_tree_is_read_is_refused() {
        let nested = std::panic::catch_unwind(|| parse("SELECT 1", |_| parse("SELECT 2", |_| ())));
        assert!(nested.is_err());
        assert_eq!(parse("SELECT 3", |statements| statements.len()), Ok(1), "the context was left");
    }

    #[test]
    fn a_panic_of_the_reader_leaves_the_context() {
        assert!(std::panic::catch_unwind(|| parse("SELECT 1", |_| panic!("reader"))).is_err());
        assert_eq!(parse("SELECT 2", |statements| statements.len()), Ok(1));
    }

    #[test]
    fn the_whole_tree_can_be_printed() {
        let print = |statements: &[&tree::RawStmt<'_>]| format!("{statements:?}");
        let text = parse("CREATE TABLE t (a int DEFAULT 7, b text[] CHECK (b <> '{x}'))", print).unwrap();
        for part in ["CreateStmt", "ColumnDef", "\"a\"", "AConst", "ival: 7", "\"<>\"", "\"{x}\""] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn code_is_refused_by_its_own_grammar() {
        assert_eq!(plpgsql_error("DO $$ BEGIN NULL; END $$"), None);
        let refused = plpgsql_error("DO $$ BEGIN IF true NULL; END IF; END $$").unwrap();
        assert!(refused.starts_with("missing \"THEN\"") || refused.starts_with("syntax error"), "{refused}");
        assert_eq!(parse("SELECT 1", |statements| statements.len()), Ok(1), "the context was left");
    }

    #[test]
    fn nul_byte_is_an_error() {
        assert_eq!(parse("SELECT 1\0", |_| ()).unwrap_err().offset, 8);
    }
}
