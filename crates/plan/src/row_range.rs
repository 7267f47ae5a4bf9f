//! Ranges of row ids that a scan reads.

use melba_expression::Expression;

/// An end of a range of row ids.
#[derive(Debug)]
pub struct RowIdEnd {
    /// A ctid. No row is in a range with a null end.
    pub value: Expression,
    pub is_upper: bool,
    pub is_inclusive: bool,
}
