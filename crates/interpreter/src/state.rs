//! The state that the language keeps for a session.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_statement::context::SessionState;
use melba_types::Oid;
use parking_lot::Mutex;

use super::program::Program;
use super::spare::SpareFrames;

/// Function, types of arguments and result, and collation of the call; of a trigger function, function and trigger.
pub(super) type ProgramKey = (Oid, Box<[Oid]>, Oid, Oid);
type ProgramCache = Mutex<HashMap<ProgramKey, Arc<Program>>>;

#[derive(Default)]
pub(super) struct RoutineState {
    pub programs: ProgramCache,
    pub spare_frames: SpareFrames,
}

impl RoutineState {
    pub fn of(session: &SessionState) -> &RoutineState {
        session.language_plpgsql.get()
    }
}

/// A statement of the session has ended.
pub fn end_statement(session: &SessionState) {
    if let Some(state) = session.language_plpgsql.used::<RoutineState>() {
        state.spare_frames.clear();
    }
}
