//! The progress of long statements, as the views pg_stat_progress_* show it.

/// A statement that has such a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongCommand {
    CreateIndex,
    Analyze,
    Vacuum,
}

/// A statement that others see as long as this lives.
pub trait ProgressReport {
    /// `number`: of the view's function, as its column `paramN`.
    fn set(&self, number: usize, value: i64);
}

/// Of a statement within another one, which is shown instead.
impl ProgressReport for () {
    fn set(&self, _: usize, _: i64) {}
}

/// Figures of pg_stat_progress_create_index.
pub mod create_index {
    pub const COMMAND: usize = 1;
    pub const CREATE: i64 = 1;
    pub const CREATE_CONCURRENTLY: i64 = 2;
    pub const INDEX: usize = 7;
    pub const ACCESS_METHOD: usize = 9;
    pub const PHASE: usize = 10;
    pub const BUILDING: i64 = 2;
    pub const VALIDATING: i64 = 6;
    pub const AWAITING_WRITERS: i64 = 3;
    pub const SUBPHASE: usize = 11;
    pub const SCANNING: i64 = 2;
    /// Of a B-tree, and of a GIN index.
    pub const SORTING: i64 = 3;
    pub const SORTING_KEYS: i64 = 5;
    pub const ROWS_TOTAL: usize = 12;
    pub const ROWS_DONE: usize = 13;
}

/// Figures of pg_stat_progress_analyze.
pub mod analyze {
    pub const PHASE: usize = 1;
    pub const COMPUTING_EXTENDED: i64 = 4;
    pub const EXTENDED_TOTAL: usize = 4;
    pub const EXTENDED_DONE: usize = 5;
}
