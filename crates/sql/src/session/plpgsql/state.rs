//! The state that the language keeps for a session.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_types::Oid;
use parking_lot::Mutex;

use super::super::context::SessionState;
use super::program::Program;
use super::spare::SpareFrames;

/// By function and types of arguments and result; of a trigger function, by function and trigger.
type ProgramCache = Mutex<HashMap<(Oid, Box<[Oid]>, Oid), Arc<Program>>>;

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
