//! The store: holds the committed versions of tables and indexes, in memory and in segment files, and the manifest that names
//! those files.
//!
//! A tree's newest versions are in memory tables, all others in segments (`levels`). The writers of versions (commits, flushes,
//! merges, recovery) are in the engine; they write to the structures of this crate, and readers search them. The engine's error
//! type and the memory and temporary files of queries are also here, because all of the engine is built upon them.
//!
//! Invariants:
//! 1. Levels are replaced as a whole: a reader keeps the levels that it found.
//! 2. A file is removed only when no reader uses it, the manifest does not name it, and replay would not link it.

mod chain;
mod cold;
mod dense_work;
mod density;
mod entry_merge;
mod entry_sort;
mod error;
mod files;
mod give_way;
mod ids;
mod interrupt;
mod key;
mod levels;
mod load;
mod manifest;
mod memory;
mod memory_table;
mod output;
mod persistence;
mod records;
mod reserve;
mod sequence;
mod store;
mod swap;
mod temp;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tree;
mod trees;
mod versions;

use std::sync::Arc;

pub use chain::{Chain, Payload, steps};
pub use cold::{Asking, ColdCounts, ColdDirectory, ColdFailure, ColdPlace, ColdRequest, ColdSource};
pub use dense_work::DenseWork;
pub use density::DenseStatistics;
pub use entry_merge::EntryMerge;
pub use entry_sort::{EntryPiece, PiecePart};
pub use error::{EngineError, InterruptReason, Result};
pub use files::{Files, IndexRun, Run, SegmentFile, Sizes, TableRun};
pub use give_way::{Hurry, giving_way};
pub use ids::{SequenceId, segment_name, segment_number};
pub use interrupt::{Interrupt, NEVER};
pub use key::{KeyBytes, split_entry};
pub use levels::{
    Found, IndexLevels, Levels, Place, RunRef, TableLevels, empty_columns, find_row, may_have_key, may_have_row, place_in_runs,
    push_row, push_stored, see_in_own, see_row, view_of,
};
pub use manifest::{Edit, FORMAT_VERSION, Manifest, ManifestState, SequenceRecord, TreeRecord};
pub use memory::{Held, MemoryBudget, QueryMemory};
pub use memory_table::{MemTable, entry_bytes};
pub use output::{DensePolicy, IndexOutput, TableOutput};
pub use persistence::{Persistence, put_kinds, read_kinds};
pub use reserve::{Reserve, with_space_of};
pub use sequence::{Sequence, SequenceDefinition, SequenceState};
pub use store::{Folders, Store};
pub use swap::{Reading, Swap};
pub use temp::{TempBlock, TempFile, TempFiles, TempUsage, TempWatch};
pub use tree::{Bulk, IndexTree, RowCounts, TableTree, Tree, TreeData};
pub use trees::TreeRef;
pub use versions::Keep;

/// An encoded row (`melba_types::row`). Cloning shares the bytes.
pub type RowBytes = Arc<[u8]>;
