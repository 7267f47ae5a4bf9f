//! The nodes that find rows by indexes.

use std::sync::Arc;

use melba_fmgr::GinColumn;
use melba_types::{Kind, Oid, TreeId};

use crate::node::TableSource;
use melba_expression::Expression;
use melba_expression::key::KeyPart;

/// Value of one leading column of an index.
#[derive(Clone, Debug)]
pub enum KeyMatch {
    Equal(Expression),
    /// Any element of an array.
    AnyOf(Expression),
    IsNull,
}

/// A bound of the columns after the matched ones, which descend all or none. Several values are compared like a row.
#[derive(Clone, Debug)]
pub struct KeyBound {
    /// Of the first of these columns, the second, and so on; at least one.
    pub values: Vec<Expression>,
    pub inclusive: bool,
}

/// What an index scan may assume about the columns after the matched ones.
#[derive(Clone, Debug)]
pub enum KeyRange {
    /// Bounds in the order of values.
    Between {
        lower: Option<KeyBound>,
        upper: Option<KeyBound>,
    },
    /// Text that starts as a LIKE pattern (`regex`: a regular expression) does.
    Prefix {
        pattern: Expression,
        case_regex: bool,
    },
    NotNull,
}

/// One range (or, with lists, set of ranges) of an index.
#[derive(Clone, Debug)]
pub struct IndexArm {
    pub index: Oid,
    pub name: Arc<str>,
    pub tree: TreeId,
    pub parts: Vec<KeyPart>,
    /// Matches of the leading columns.
    pub matches: Vec<KeyMatch>,
    pub range: Option<KeyRange>,
    /// They are equalities with all columns of an index of which no statement sees two entries with one key.
    pub unique: bool,
}

#[derive(Debug)]
pub struct IndexScanNode {
    pub source: TableSource,
    /// One: rows come in index order. Several: their union, in row order or, of one index that covers, in no order.
    pub arms: Vec<IndexArm>,
    pub reverse: bool,
    pub filter: Vec<Expression>,
    /// The keys of the arms, which are of one index, have all columns of the projection: rows are not fetched.
    pub covered: Option<Covered>,
}

impl IndexScanNode {
    /// Its ranges are of one index, which is scanned from one to the next.
    pub fn is_one_scan(&self) -> bool {
        self.arms.len() == 1 || self.covered.is_some()
    }
}

/// Rows by the entries of a GIN index, in the order of their ids.
#[derive(Debug)]
pub struct BitmapScanNode {
    pub source: TableSource,
    /// The index's.
    pub name: Arc<str>,
    pub tree: TreeId,
    /// All of them must be met.
    pub conditions: Vec<BitmapCondition>,
    /// The same conditions, which entries do not decide, and others.
    pub filter: Vec<Expression>,
}

#[derive(Debug)]
pub struct BitmapCondition {
    pub column: GinColumn,
    /// The operator's number in the operator class.
    pub strategy: i16,
    /// Its right operand.
    pub value: Expression,
}

/// How an index's keys supply the columns of a projection.
#[derive(Clone, Debug)]
pub struct Covered {
    /// By key column, the column of the projection that it is, up to the last one needed.
    pub places: Vec<Option<usize>>,
    /// By column of the projection.
    pub kinds: Vec<Kind>,
}
