//! How much a transaction's commit would write to the log.

use melba_wal::RECORD_HEADER_BYTES;

use super::Transaction;
use crate::commit::encode;

/// Bytes of the log that a commit of the transaction now would write; 0: none.
pub fn log_bytes(txn: &Transaction) -> u64 {
    let mut payload = Vec::new();
    encode(&txn.state().writes, &mut payload);
    if payload.is_empty() { 0 } else { (RECORD_HEADER_BYTES + payload.len()) as u64 }
}
