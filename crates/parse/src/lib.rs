//! Turns text into raw statements, by PostgreSQL's own grammar.
//!
//! The C entry point is called directly rather than through `pg_query::parse`, because that drops the position of a syntax
//! error. Locations in the tree, and in errors of this module, are byte offsets into the whole text.

pub mod command;
mod escapes;
pub mod fingerprint;
pub mod lexer;
pub mod literals;
pub mod nodes;
pub mod notices;
mod text;

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::{Arc, OnceLock};

use literals::Literal;
use melba_fmgr::Session;
use melba_types::{DbError, Result, SqlState, err, limits};
use pg_query::NodeEnum;
use pg_query::protobuf::ParseResult;
use prost::Message;

pub use text::{body_statements, parse_expression, parse_sql_body, parse_type_name, place_of_body, string_constant};

/// A query string, parsed.
#[derive(Debug)]
pub struct Parsed {
    pub text: Arc<str>,
    pub statements: Vec<Arc<Statement>>,
}

/// One statement of a query string.
#[derive(Clone, Debug)]
pub struct Statement {
    pub node: NodeEnum,
    /// The whole query string: locations in `node` count from its start.
    pub source: Arc<str>,
    /// Where the statement stands in `source`, without the semicolon.
    pub start: usize,
    pub end: usize,
    /// Literals of the text that become parameters `$1`, ... when the statement is analyzed.
    pub literals: Vec<Literal>,
    /// Literals of each row of a VALUES list whose second row stands for any number of further ones; 0: there is no such list.
    pub row_literals: usize,
    /// `fingerprint`, once it was computed.
    pub fingerprint: OnceLock<u64>,
}

impl Statement {
    /// The statement's own text.
    pub fn text(&self) -> &str {
        self.source.get(self.start..self.end).unwrap_or(&self.source).trim()
    }

    /// A hash of the words of a statement that is no query, without its constants; never 0.
    pub fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| fingerprint::of(self))
    }
}

#[repr(C)]
struct RawProtobuf {
    len: usize,
    data: *mut c_char,
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
struct RawResult {
    parse_tree: RawProtobuf,
    stderr_buffer: *mut c_char,
    error: *mut RawError,
}

unsafe extern "C" {
    fn pg_query_parse_protobuf_opts(input: *const c_char, parser_options: c_int) -> RawResult;
    fn pg_query_free_protobuf_parse_result(result: RawResult);
}

/// Stack that a thread needs which parses and analyzes any statement that `parse` lets through.
pub const STACK_BYTES: usize = melba_types::limits::SESSION_STACK_BYTES;

/// The settings for backslashes in `'...'`; stored texts are written for the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strings {
    /// standard_conforming_strings: they are nothing special.
    pub conforming: bool,
    /// escape_string_warning
    pub warn: bool,
    /// backslash_quote: a backslash before a quote, where it escapes, is no error.
    pub backslash_quote: bool,
}

impl Default for Strings {
    fn default() -> Strings {
        Strings { conforming: true, warn: true, backslash_quote: true }
    }
}

impl Strings {
    /// For texts whose meaning depends on the session that runs them: bodies of functions.
    pub fn of(session: &dyn Session) -> Strings {
        let is_off = |name| session.setting(name).is_some_and(|value| value == "off");
        Strings {
            conforming: !is_off("standard_conforming_strings"),
            warn: !is_off("escape_string_warning"),
            backslash_quote: !is_off("backslash_quote"),
        }
    }

    /// For the parser, which would write its warnings to the process's standard error: `escapes` makes them.
    fn options(self) -> c_int {
        const DISABLE_BACKSLASH_QUOTE: c_int = 16;
        const DISABLE_STANDARD_CONFORMING_STRINGS: c_int = 32;
        const DISABLE_ESCAPE_STRING_WARNING: c_int = 64;
        let flag = |set: bool, flag: c_int| if set { flag } else { 0 };
        DISABLE_ESCAPE_STRING_WARNING
            | flag(!self.backslash_quote, DISABLE_BACKSLASH_QUOTE)
            | flag(!self.conforming, DISABLE_STANDARD_CONFORMING_STRINGS)
    }
}

/// Parses a query string into its statements; an empty one has none.
///
/// Trees of deeply nested text are deep, and everything that walks them recurses: callers run on threads with
/// `STACK_BYTES` of stack. The grammar's own checks (2 MB of stack, ten thousand messages in each other) refuse deeper ones (54001).
pub fn parse(text: &str) -> Result<Parsed> {
    parse_as(text, Strings::default())
}

/// `parse`, for a text that a client wrote under its own settings.
pub fn parse_as(text: &str, strings: Strings) -> Result<Parsed> {
    let tree = parse_tree(text, strings)?;
    let source: Arc<str> = text.into();
    let mut statements = Vec::with_capacity(tree.stmts.len());
    for raw in tree.stmts {
        let Some(node) = raw.stmt.and_then(|s| s.node) else { continue };
        let start = raw.stmt_location.max(0) as usize;
        let end = if raw.stmt_len > 0 { start + raw.stmt_len as usize } else { source.len() };
        statements.push(Arc::new(Statement {
            node,
            source: source.clone(),
            start,
            end,
            literals: Vec::new(),
            row_literals: 0,
            fingerprint: OnceLock::new(),
        }));
    }
    Ok(Parsed { text: source, statements })
}

fn parse_tree(text: &str, strings: Strings) -> Result<ParseResult> {
    let input = CString::new(text).map_err(|_| err!(SYNTAX_ERROR, "query text holds a zero byte"))?;
    // SAFETY: `input` is zero-terminated and outlives the call; the options are flags that the library knows.
    let result = unsafe { pg_query_parse_protobuf_opts(input.as_ptr(), strings.options()) };
    // SAFETY: a non-null error points to a structure that lives until the result is freed below.
    let parsed = match unsafe { result.error.as_ref() } {
        Some(error) => Err(convert_error(error, text)),
        None => {
            // SAFETY: without an error, `parse_tree` is a buffer of `len` bytes that lives until the result is freed.
            let bytes = unsafe { std::slice::from_raw_parts(result.parse_tree.data.cast::<u8>(), result.parse_tree.len) };
            ParseResult::decode(bytes).map_err(|e| DbError::internal(format!("could not decode the parse tree: {e}")))
        }
    };
    // SAFETY: `result` came from the parser and is freed once; nothing borrowed from it is left.
    unsafe { pg_query_free_protobuf_parse_result(result) };
    parsed
}

fn convert_error(error: &RawError, text: &str) -> DbError {
    let message = if error.message.is_null() {
        "syntax error".to_owned()
    } else {
        // SAFETY: the parser's message is a zero-terminated string.
        unsafe { CStr::from_ptr(error.message) }.to_string_lossy().into_owned()
    };
    if message.contains("nested too deeply") || message.contains("stack depth limit exceeded") {
        return limits::stack_error();
    }
    let location = match error.cursorpos {
        // The parser counts characters from 1.
        position if position > 0 => byte_offset(text, position as usize - 1) as i32,
        _ => -1,
    };
    let rest = text.get(location.max(0) as usize..).unwrap_or_default();
    // The parser does not hand on details and hints.
    let error = DbError::new(state_of(&message), message.as_str()).at(location);
    match message.as_str() {
        "invalid Unicode escape" if rest.starts_with("\\u") || rest.starts_with("\\U") => {
            error.hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX.")
        }
        "invalid Unicode escape" => error.hint("Unicode escapes must be \\XXXX or \\+XXXXXX."),
        "unsafe use of \\' in a string literal" => {
            error.hint("Use '' to write quotes in strings. \\' is insecure in client-only encodings.")
        }
        "unsafe use of string constant with Unicode escapes" => {
            error.detail("String constants with Unicode escapes cannot be used when \"standard_conforming_strings\" is off.")
        }
        _ => error,
    }
}

fn byte_offset(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}

/// The grammar reports no SQLSTATE. Almost all of its errors are 42601; these are the others.
fn state_of(message: &str) -> SqlState {
    const OTHERS: &[(&str, SqlState)] = &[
        ("invalid byte sequence", SqlState::CHARACTER_NOT_IN_REPERTOIRE),
        ("invalid Unicode escape", SqlState::SYNTAX_ERROR),
        ("unsafe use of \\'", SqlState::NONSTANDARD_USE_OF_ESCAPE_CHARACTER),
        ("unsafe use of string constant", SqlState::FEATURE_NOT_SUPPORTED),
        ("frame start", SqlState::WINDOWING_ERROR),
        ("frame end", SqlState::WINDOWING_ERROR),
        ("frame starting from", SqlState::WINDOWING_ERROR),
        ("is not yet implemented", SqlState::FEATURE_NOT_SUPPORTED),
        ("not implemented", SqlState::FEATURE_NOT_SUPPORTED),
        ("not supported", SqlState::FEATURE_NOT_SUPPORTED),
        ("cannot be marked", SqlState::FEATURE_NOT_SUPPORTED),
    ];
    match OTHERS.iter().find(|(part, _)| message.contains(part)) {
        // LIMIT #,# is a syntax error although its message says "not supported".
        Some((_, state)) if !message.starts_with("LIMIT #,#") => *state,
        _ => SqlState::SYNTAX_ERROR,
    }
}

/// Turns the byte position of an error about `text` into the character position that clients are sent.
pub fn position_in_characters(mut error: DbError, text: &str) -> DbError {
    if let Some(position) = error.fields().position {
        let byte = (position as usize - 1).min(text.len());
        let characters = text.as_bytes()[..byte].iter().filter(|b| (**b & 0xc0) != 0x80).count();
        error.fields_mut().position = Some(characters as u32 + 1);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_trees_are_decoded_or_refused() {
        let parse_chain = |n: usize| parse(&format!("select {}1", "1+".repeat(n))).map(|_| ());
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let handle = thread.spawn(move || (parse_chain(2000), parse_chain(50_000))).expect("spawns");
        let (short, long) = handle.join().expect("does not overflow");
        assert!(short.is_ok());
        assert_eq!(long.expect_err("refused").sqlstate().as_str(), "54001");
    }

    #[test]
    fn statements_know_their_text() {
        let parsed = parse(" select 1 ; ; select 'ä'").unwrap();
        let texts: Vec<&str> = parsed.statements.iter().map(|s| s.text()).collect();
        assert_eq!(texts, ["select 1", "select 'ä'"]);
        assert!(parse("  -- nothing").unwrap().statements.is_empty());
    }

    #[test]
    fn syntax_errors_have_a_position() {
        let error = parse("select 'ä', from from").unwrap_err();
        assert_eq!((error.sqlstate(), error.message()), (SqlState::SYNTAX_ERROR, "syntax error at or near \"from\""));
        let error = position_in_characters(error, "select 'ä', from from");
        assert_eq!(error.fields().position, Some(13));
    }

    /// The grammar's own depth check bounds the tree; a session's stack must hold the deepest one that passes.
    #[test]
    fn deep_nesting_does_not_overflow() {
        let parse_on_session_stack = |terms: usize| {
            let text = format!("select 1{}", "+1".repeat(terms));
            let thread = std::thread::Builder::new().stack_size(limits::SESSION_STACK_BYTES);
            thread.spawn(move || parse(&text).map(drop)).expect("thread").join().expect("no overflow")
        };
        assert!(parse_on_session_stack(1000).is_ok());
        for terms in (1200..4000).step_by(50).chain([100_000]) {
            if let Err(e) = parse_on_session_stack(terms) {
                assert_eq!(e.sqlstate(), SqlState::STATEMENT_TOO_COMPLEX);
            }
        }
    }
}
