//! The additional properties of a function that is an aggregate.

use std::sync::Arc;

use melba_types::Oid;

/// pg_aggregate.
#[derive(Clone, Debug)]
pub struct AggregateInfo {
    /// 'n' normal, 'o' ordered-set, 'h' hypothetical-set.
    pub kind: u8,
    pub direct_args: i16,
    pub transition: Oid,
    pub final_function: Oid,
    pub combine: Oid,
    pub transition_type: Oid,
    pub initial_value: Option<Arc<str>>,
    pub sort_operator: Oid,
    /// The final function is given the arguments' types, too, as NULLs.
    pub final_extra: bool,
    /// 'r' read only, 's' shareable, 'w' the final function changes the state.
    pub final_modify: u8,
    pub space: i32,
    pub serial: Oid,
    pub deserial: Oid,
    pub moving: Option<Arc<MovingAggregate>>,
}

/// How an aggregate is computed over frames that move.
#[derive(Clone, Debug)]
pub struct MovingAggregate {
    pub transition: Oid,
    pub inverse: Oid,
    pub final_function: Oid,
    pub final_extra: bool,
    pub final_modify: u8,
    pub transition_type: Oid,
    pub space: i32,
    pub initial_value: Option<Arc<str>>,
}
