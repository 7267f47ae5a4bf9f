//! Variables of a procedural language: the meaning of names in its pieces of SQL that no column has.

use std::sync::Arc;

use melba_types::{Oid, Result};

/// A variable's value, or a field's: a parameter of the statement.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Of the parameter, counted from 1.
    pub number: usize,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
}

/// A field of a row with its name.
pub type VariableField = (Variable, Arc<str>);

/// The meaning of a name that a column has as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameConflict {
    Error,
    Variable,
    Column,
}

/// The variables that a piece of SQL sees. Each one that is found becomes a parameter.
pub trait Variables {
    fn find(&self, names: &[&str]) -> Result<Option<Variable>>;
    /// The fields of the row with these names.
    fn fields(&self, names: &[&str]) -> Result<Option<Vec<VariableField>>>;
    /// `$n`
    fn argument(&self, number: i32) -> Option<Variable>;
    fn conflict(&self) -> NameConflict;
}
