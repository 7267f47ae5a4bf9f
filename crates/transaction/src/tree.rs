//! The tree of the engine that holds the catalogs of all databases, and the prepared transactions.

use melba_types::{Kind, TreeId};

pub(crate) const CATALOG_TREE: TreeId = TreeId(1);

/// Key and value.
pub(crate) const CATALOG_KINDS: [Kind; 2] = [Kind::Bytes, Kind::Bytes];
