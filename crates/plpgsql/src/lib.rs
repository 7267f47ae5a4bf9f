//! PL/pgSQL: parses the text of a function into a tree.
//!
//! Invariants:
//! 1. Names of variables are resolved where the grammar asks for a variable. Names in pieces of SQL are looked up with
//!    `tree::resolve` by the analysis of the piece, from the place where the piece stands.
//! 2. Positions of errors are bytes of the function's text.
//!
//! Types come from the catalog, through the trait `Types`.

pub mod conditions;
mod declare;
mod loops;
mod parser;
mod raise;
mod scan;
mod sql;
mod statement;
pub mod tree;

use melba_parse::Strings;
use melba_types::Result;
use std::sync::Arc;

use tree::{Function, VariableType};

/// Looks up the types of variables.
pub trait Types {
    /// A type by its name in SQL, pseudo-types too.
    fn named(&self, text: &str) -> Result<VariableType>;
    /// `table.column%TYPE`
    fn of_column(&self, names: &[&str]) -> Result<VariableType>;
    /// `table%ROWTYPE`
    fn of_row(&self, names: &[&str]) -> Result<VariableType>;
    /// The name of a pseudo-type, which variables cannot have.
    fn pseudo_type(&self, ty: VariableType) -> Option<String>;
    /// The type of arrays of these values.
    fn array_of(&self, ty: VariableType) -> Result<VariableType>;
    /// The element's type, where values are arrays.
    fn element_of(&self, ty: VariableType) -> Option<VariableType>;
    /// The type by OID.
    fn by_oid(&self, oid: melba_types::Oid, typmod: i32) -> VariableType;
    /// The collation by name.
    fn collation(&self, names: &[&str]) -> Result<melba_types::Oid>;
    /// The type of a composite type's field.
    fn of_field(&self, record: VariableType, field: &str) -> Option<VariableType>;
}

/// A parameter, or another variable that exists before the function begins.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// None or several: `$1` and its name.
    pub names: Vec<Arc<str>>,
    pub ty: VariableType,
    pub constant: bool,
}

/// The allowed forms of RETURN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// Nothing: void functions and procedures without output parameters.
    Void,
    /// One value, of a composite type where `record` is set.
    Value {
        record: bool,
    },
    /// Rows, by RETURN NEXT and RETURN QUERY.
    Set,
    Trigger,
}

/// A function's properties beside its text.
pub struct Signature<'a> {
    pub name: &'a str,
    pub parameters: &'a [Parameter],
    /// The variable that RETURN returns: output parameters are returned unchanged.
    pub output: Option<tree::Target>,
    pub returns: Returns,
    pub is_procedure: bool,
}

/// Parses a function. Parameters are its first variables, in their order.
///
/// # Errors
/// Those of PostgreSQL's parser for PL/pgSQL, with a position where they have one.
pub fn parse(text: &str, strings: Strings, signature: &Signature<'_>, types: &dyn Types) -> Result<Function> {
    let mut parser = parser::Parser::new(text, strings, signature, types)?;
    parser.function().map_err(|e| match e.fields().position {
        Some(_) => e,
        None => {
            let line = parser.line_of(parser.peek_back());
            e.within(format!("compilation of PL/pgSQL function \"{}\" near line {line}", signature.name))
        }
    })
}
