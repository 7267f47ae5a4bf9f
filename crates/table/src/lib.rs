//! Writes rows to tables: checks constraints, maintains indexes, follows foreign keys.
//!
//! A `TableTarget` is compiled once from the catalog and shared by the executions of a plan; a `TableWriter` is one
//! statement's use of it.
//!
//! Invariants:
//! 1. A row is in the table's tree exactly when it has one entry in every index tree whose predicate it satisfies: of a GIN index,
//!    one for each key of its values (`gin`).
//! 2. A unique key is locked (`IndexAccess::claim_key`; many at once: `IndexLoad`) before it is searched for, and stays locked to
//!    the end of the transaction, so two transactions can never both find it free.
//!    What an exclusion constraint excludes is claimed likewise (`excluding`).
//! 3. Foreign keys are checked against the newest committed state, under row locks, after the statement's own changes.
//! 4. Pending checks take memory that is counted, or little memory: rows are recorded as ranges of ids.

mod batch;
mod changes;
pub mod error;
mod events;
mod excluding;
mod exclusion;
mod foreign_key;
mod gin;
pub mod matching;
mod part_source;
mod partition;
mod period;
mod reference;
mod referenced_key;
mod referencing;
mod removal;
mod router;
mod routing;
mod row_check;
mod row_triggers;
mod steps;
mod target;
mod toast;
mod transition;
mod trigger;
mod writer;

pub use batch::RowError;
pub use changes::StatementChanges;
pub use events::{DeferredEvents, DeferredPosition, Events, check_existing};
pub use excluding::check as check_exclusion;
pub use gin::gin_entries;
pub use part_source::PartSource;
pub use partition::{HashPartition, PartitionMap, RangePartition};
pub use removal::check_removal;
pub use router::Routed;
pub use routing::ColumnMap;
pub use row_check::{RowCheckTarget, RowChecks};
pub use target::plain_parts;
pub use target::{IndexPart, IndexTarget, TableTarget, TargetBuilder};
pub use toast::{ChunkScan, RowCopier, forget_value};
pub use trigger::{Change, Moment, Triggers};
pub use writer::{Above, Conflict, TableWriter};
