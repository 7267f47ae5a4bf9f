//! The source of a part of a key.

use melba_expression::Expression;

/// A column of the row, or computed from it.
#[derive(Debug)]
pub enum PartSource {
    /// Position in the row.
    Column(usize),
    Expression(Expression),
}
