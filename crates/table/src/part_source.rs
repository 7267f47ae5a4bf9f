//! Where a part of a key comes from.

use melba_expression::Expression;

/// A column of the row, or computed from it.
#[derive(Debug)]
pub enum PartSource {
    /// Position in the row.
    Column(usize),
    Expression(Expression),
}
