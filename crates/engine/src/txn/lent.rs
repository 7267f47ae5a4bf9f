//! What a transaction lends: itself with one index, table or toast tree, for the operations on that.

use std::sync::Arc;

use melba_types::TreeId;

use super::Transaction;

/// An index as the transaction reads and changes it. The tree must be an index tree.
#[derive(Clone, Copy)]
pub struct IndexAccess<'a> {
    pub(crate) txn: &'a Arc<Transaction>,
    pub(crate) tree: TreeId,
}

/// The frames of large values: rows of a toast tree.
#[derive(Clone, Copy)]
pub struct ToastFrames<'a> {
    pub(super) txn: &'a Transaction,
    pub(super) tree: TreeId,
}

/// Rows that a statement adds to a table in batches.
#[derive(Clone, Copy)]
pub struct BulkRows<'a> {
    pub(super) txn: &'a Transaction,
    pub(super) tree: TreeId,
}

/// The claims of an exclusion constraint, by its index.
#[derive(Clone, Copy)]
pub struct ClaimedValues<'a> {
    pub(super) txn: &'a Transaction,
    pub(super) tree: TreeId,
}

/// The transaction as PREPARE TRANSACTION keeps it.
#[derive(Clone, Copy)]
pub struct TwoPhase<'a> {
    pub(super) txn: &'a Transaction,
}
