//! From a parsed statement to its rows: the one door between the session and the stages analyze, plan, execute and ddl.

use melba_functions::{FormatSettings, Session as _, io};
use melba_types::{Batch, Column, Datum, DbError, Kind, Oid, Result};
use pg_query::Node;
use pg_query::protobuf::DiscardMode;

use crate::parse::Statement;

use super::context::StatementContext;
use super::portal::{Outcome, ResultColumn};

/// A statement after analysis, as the session keeps it for later executions.
#[derive(Debug, Default)]
pub struct Compiled {}

impl Compiled {
    /// Nothing it was analyzed against has changed.
    pub fn is_current(&self, _context: &StatementContext) -> bool {
        true
    }

    /// Worth keeping for the next time the same text comes.
    pub fn is_reusable(&self) -> bool {
        false
    }
}

/// What analysis says about a statement.
#[derive(Debug)]
pub struct Analyzed {
    pub parameter_types: Vec<Oid>,
    pub columns: Option<Vec<ResultColumn>>,
    pub compiled: Compiled,
}

/// Analyzes a statement that the session does not run itself. `parameter_types`: as the client declared them, 0 for "find out".
pub fn analyze(_context: &StatementContext, statement: &Statement, _parameter_types: &[Oid]) -> Result<Analyzed> {
    Err(DbError::unsupported(format!("the statement \"{}\"", statement.text())))
}

/// Runs an analyzed statement.
pub fn execute(
    _context: &StatementContext,
    statement: &Statement,
    _compiled: &Compiled,
    _parameters: &[Datum],
) -> Result<Outcome> {
    Err(DbError::unsupported(format!("the statement \"{}\"", statement.text())))
}

/// Input and output of values for the wire.
pub struct ValueIo<'a> {
    context: &'a StatementContext,
}

impl<'a> ValueIo<'a> {
    pub fn new(context: &'a StatementContext) -> ValueIo<'a> {
        ValueIo { context }
    }

    pub fn format(&self) -> &FormatSettings {
        self.context.format()
    }

    /// Appends the text form.
    pub fn output(&self, ty: Oid, datum: &Datum, out: &mut Vec<u8>) -> Result<()> {
        io::text_out(self.context, ty, datum, out)
    }

    /// Appends the binary form.
    pub fn send(&self, ty: Oid, datum: &Datum, out: &mut Vec<u8>) -> Result<()> {
        io::binary_out(self.context, ty, datum, out)
    }

    /// Reads the text form.
    pub fn input(&self, ty: Oid, text: &str) -> Result<Datum> {
        io::text_in(self.context, ty, -1, text)
    }

    /// Reads the binary form.
    pub fn receive(&self, ty: Oid, bytes: &[u8]) -> Result<Datum> {
        io::binary_in(self.context, ty, -1, bytes)
    }
}

/// A batch of text columns of equal length.
pub fn text_rows(table: Vec<Vec<String>>) -> Batch {
    let rows = table.first().map_or(0, Vec::len);
    let columns = table.into_iter().map(|values| {
        let mut column = Column::with_capacity(Kind::Text, rows);
        values.into_iter().for_each(|v| column.push(Datum::text(v)));
        column
    });
    Batch::new(columns.collect(), rows)
}

/// The type that PREPARE names for a parameter.
pub fn resolve_type(_context: &StatementContext, _name: &Node) -> Result<Oid> {
    Err(DbError::unsupported("PREPARE with parameter types"))
}

/// The values of EXECUTE's arguments, as the parameters' types.
pub fn evaluate(_context: &StatementContext, _statement: &Statement, args: &[Node], _types: &[Oid]) -> Result<Vec<Datum>> {
    if args.is_empty() { Ok(Vec::new()) } else { Err(DbError::unsupported("EXECUTE with arguments")) }
}

/// DISCARD: drops temporary tables, forgets cached sequence values.
pub fn discard(_context: &StatementContext, _mode: DiscardMode) -> Result<()> {
    // Neither exists yet: CREATE TEMPORARY TABLE is refused, and sequences cache nothing in sessions.
    Ok(())
}
