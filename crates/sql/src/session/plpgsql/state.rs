//! The state that the language keeps for a session.

use super::super::context::SessionState;
use super::program::ProgramCache;
use super::result::SpareFrames;

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
