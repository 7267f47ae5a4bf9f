//! Frames of functions that have returned, kept for the statement's next call of the same function:
//! 1. A spare frame runs again only in the context it was made in: the same catalog, user, search path, settings and transaction.
//! 2. Frames are dropped when their statement ends.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_engine::ReadView;
use melba_fmgr::RoutineCall;
use melba_statement::context::StatementContext;
use melba_types::{Datum, Oid, RarelyUsed};

use super::frame::Frame;

/// Frames kept per function: enough for most recursions.
const SPARE_MAX: usize = 50;

#[derive(Default)]
#[expect(clippy::vec_box, reason = "each call moves a frame twice")]
pub(super) struct SpareFrames(RarelyUsed<HashMap<Oid, Vec<Box<Frame<'static>>>>>);

impl SpareFrames {
    /// The statement has ended.
    pub fn clear(&self) {
        self.0.take();
    }

    pub fn take(&self, function: Oid) -> Option<Box<Frame<'static>>> {
        self.0.used()?.get_mut(&function)?.pop()
    }

    /// Keeps a frame whose run has succeeded. Its values are the caller's alone.
    pub fn give_back(&self, function: Oid, mut frame: Box<Frame<'static>>) {
        for value in frame.values.iter_mut().filter(|value| !value.is_null()) {
            *value = Datum::Null;
        }
        let mut frames = self.0.lock();
        let spare = frames.entry(function).or_default();
        if spare.len() < SPARE_MAX {
            spare.push(frame);
        }
    }
}

pub fn fits(frame: &Frame<'_>, caller: &StatementContext, call: &RoutineCall<'_>) -> bool {
    call.columns.is_none()
        && is_current(frame, caller)
        && *frame.program.arg_types == *call.arg_types
        && frame.program.return_type == call.return_type
        && frame.program.collation == call.collation
}

/// Its surroundings are the caller's still.
pub fn is_current(frame: &Frame<'_>, caller: &StatementContext) -> bool {
    let own = &frame.context;
    Arc::ptr_eq(&own.path, &caller.path)
        && Arc::ptr_eq(&own.user, &caller.user)
        && Arc::ptr_eq(&own.format, &caller.format)
        && caller.tx.as_ref().is_some_and(|tx| Arc::ptr_eq(tx, &frame.tx))
        && frame.tx.sees_catalog_version(own.catalog_version)
        && (own.transaction_start, own.statement_start) == (caller.transaction_start, caller.statement_start)
        && frame.settings_version == caller.session.settings_version()
}

pub fn begin_again(frame: &mut Frame<'_>, call: &RoutineCall<'_>) {
    restart(frame, ReadView { csn: call.view.0, command: call.view.1 });
    set_inputs(frame, call.args);
}

pub fn set_inputs(frame: &mut Frame<'_>, args: &[Datum]) {
    for (variable, value) in frame.program.inputs.iter().zip(args) {
        frame.values[*variable] = value.clone();
    }
}

/// Everything is as before the first statement, for a pure function, which reads nothing by a view. Its variables are declared anew.
pub fn restart_pure(frame: &mut Frame<'_>) {
    frame.set_found(false);
    frame.returned.value = None;
    frame.located = false;
}

/// Everything is as before the first statement. `view`: the calling statement's.
pub fn restart(frame: &mut Frame<'_>, view: ReadView) {
    let variables = &frame.program.tree.variables;
    for (ty, variable) in frame.types.iter_mut().zip(variables) {
        *ty = variable.ty;
    }
    frame.record_collations.clear();
    frame.set_found(false);
    frame.view = frame.program.shares_view.then_some(view);
    frame.evaluation.release_view();
    frame.evaluation.set_view(view);
    frame.returned.value = None;
    frame.row_count = 0;
    frame.handled = None;
    frame.located = false;
}
