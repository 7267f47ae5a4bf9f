//! Comparisons by which a scan leaves out row groups and rows.

use melba_engine::ZoneOp;
use melba_expression::Expression;

/// A comparison of a column with a value known before the scan begins, by which a scan leaves out row groups and rows.
#[derive(Debug)]
pub struct ZoneFilter {
    /// Of the table.
    pub column: usize,
    pub op: ZoneOp,
    pub value: Expression,
    pub form: ZoneForm,
    /// The condition of the filter that this is: a row whose value satisfies the comparison passes it, and no other row does. Patterns
    /// may also leave out rows that have their prefix.
    pub condition: usize,
}

/// What is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneForm {
    Value,
    /// Any element of an array will do.
    Array,
    /// Text that starts as a LIKE pattern (or, `regex`, a regular expression) does.
    Pattern {
        regex: bool,
    },
}
