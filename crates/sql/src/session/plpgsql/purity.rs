//! Trigger functions that neither read nor change the database, and tell the client nothing: they assign, branch, loop, and raise errors.
//! A table's writer runs them for many rows before it writes the first one.

use std::sync::Arc;

use melba_catalog::Function;
use melba_expression::{Expression as Compiled, Node};
use melba_fmgr::{PureTrigger, TriggerCall};
use melba_plpgsql::tree::{Expression, Level, Loop, PlpgsqlStatement, ReturnExpression, StatementBlock, StatementKind, Target};
use melba_types::{Datum, DbError, Oid, Result};

use super::super::context::{SessionState, StatementContext};
use super::super::control::Control;
use super::expression::{PieceUse, prepare, wanted_by};
use super::frame::{Frame, Typed};
use super::program::PieceKind;
use super::state::RoutineState;
use super::{field, program_cache, result, spare, trigger_values, value};

/// A frame that runs for row after row.
struct PureFrame {
    /// `None` after an error.
    frame: Option<Box<Frame<'static>>>,
    session: Arc<SessionState>,
    trigger: Oid,
    /// Of the table's rows.
    row_type: Oid,
}

/// The trigger's function, if it is pure. `None` also for one that does not compile: it is to fail when a row comes.
pub fn pure_trigger(
    caller: &StatementContext,
    function: &Arc<Function>,
    call: &TriggerCall<'_>,
) -> Result<Option<Box<dyn PureTrigger>>> {
    let has_own_surroundings = function.security_definer || !function.config.is_empty();
    if has_own_surroundings || call.trigger.old_table.is_some() || call.trigger.new_table.is_some() {
        return Ok(None);
    }
    let spare = RoutineState::of(&caller.session).spare_frames.take(call.trigger.oid);
    let mut frame = match spare.filter(|frame| spare::is_current(frame, caller) && frame.program.oid == function.oid) {
        Some(frame) => frame,
        None => {
            let context = caller.within_routine(function)?.context;
            let Ok(program) = program_cache::of_trigger(&context, function, call) else { return Ok(None) };
            Box::new(Frame::new(program, context, None, Control::NONE)?)
        }
    };
    let program = frame.program.clone();
    let is_pure = *program.is_pure.get_or_init(|| is_pure_statement(&mut frame, &program.tree.body));
    trigger_values::begin(&mut frame, call);
    let (session, trigger, row_type) = (caller.session.clone(), call.trigger.oid, call.table.row_type);
    let pure = PureFrame { frame: Some(frame), session, trigger, row_type };
    Ok(is_pure.then(|| Box::new(pure) as Box<dyn PureTrigger>))
}

impl PureTrigger for PureFrame {
    fn run(&mut self, new: Datum) -> Result<Datum> {
        let Some(mut frame) = self.frame.take() else { return Err(DbError::internal("a frame after its error")) };
        spare::restart_pure(&mut frame);
        trigger_values::begin_row(&mut frame, new);
        let row = result::run_row_trigger(&mut frame, self.row_type)?;
        trigger_values::forget_rows(&mut frame);
        self.frame = Some(frame);
        Ok(row)
    }
}

impl Drop for PureFrame {
    fn drop(&mut self) {
        if let Some(frame) = self.frame.take() {
            RoutineState::of(&self.session).spare_frames.give_back(self.trigger, frame);
        }
    }
}

fn are_pure(frame: &mut Frame<'_>, statements: &[PlpgsqlStatement]) -> bool {
    statements.iter().all(|statement| is_pure_statement(frame, statement))
}

fn is_pure_statement(frame: &mut Frame<'_>, statement: &PlpgsqlStatement) -> bool {
    match &statement.kind {
        StatementKind::Null => true,
        StatementKind::Assign { target, value } => is_pure_assignment(frame, target, value),
        StatementKind::If { branches, otherwise } => {
            branches.iter().all(|(condition, body)| is_pure(frame, condition) && are_pure(frame, body))
                && are_pure(frame, otherwise)
        }
        StatementKind::Block(block) => is_pure_block(frame, block),
        StatementKind::Loop(body) => is_pure_loop(frame, body),
        StatementKind::While { condition, body } => is_pure(frame, condition) && is_pure_loop(frame, body),
        StatementKind::ForInteger { lower, upper, step, body, .. } => {
            [Some(lower), Some(upper), step.as_ref()].into_iter().flatten().all(|bound| is_pure(frame, bound))
                && is_pure_loop(frame, body)
        }
        StatementKind::Exit { condition, .. } => condition.as_ref().is_none_or(|condition| is_pure(frame, condition)),
        StatementKind::Return(ReturnExpression::Nothing | ReturnExpression::Variable(_)) => true,
        StatementKind::Return(ReturnExpression::Value(value)) => is_pure(frame, value),
        StatementKind::Raise(raise) => {
            let options = raise.options.iter().map(|(_, value)| value);
            raise.level == Level::Exception && raise.parameters.iter().chain(options).all(|value| is_pure(frame, value))
        }
        _ => false,
    }
}

fn is_pure_loop(frame: &mut Frame<'_>, body: &Loop) -> bool {
    are_pure(frame, &body.body)
}

fn is_pure_block(frame: &mut Frame<'_>, block: &StatementBlock) -> bool {
    let program = frame.program.clone();
    let is_pure_variable = |variable: &usize| {
        let declared = &program.tree.variables[*variable];
        let is_plain = !declared.ty.is_record && !frame.is_domain(declared.ty.oid);
        let default = |value| is_pure_assignment(frame, &Target::Variable(*variable), value);
        is_plain && declared.default.as_ref().is_none_or(default)
    };
    block.exceptions.is_none() && block.declares.iter().all(is_pure_variable) && are_pure(frame, &block.body)
}

fn is_pure_assignment(frame: &mut Frame<'_>, target: &Target, value: &Expression) -> bool {
    let ty = match target {
        Target::Variable(variable) => {
            let ty = frame.types[*variable];
            if ty.is_record || frame.is_domain(ty.oid) {
                return false;
            }
            (ty.oid, ty.typmod)
        }
        Target::Field { record, name } => match field::field_to_assign(frame, *record, name) {
            Ok(place) if !place.is_of_domain && !frame.is_domain(place.ty.0) => place.ty,
            _ => return false,
        },
        Target::Part { .. } | Target::Row(_) => return false,
    };
    let Some(given) = pure_type(frame, value, wanted_by(frame, target)) else { return false };
    let given = Typed { value: Datum::Null, ty: given.0, typmod: given.1 };
    value::cast_of(frame, &given, ty).is_ok_and(|cast| cast.is_none_or(|cast| is_pure_expression(&cast)))
}

fn is_pure(frame: &mut Frame<'_>, piece: &Expression) -> bool {
    pure_type(frame, piece, PieceUse::Any).is_some()
}

/// The type of a pure piece, with its modifier.
fn pure_type(frame: &mut Frame<'_>, piece: &Expression, wanted: PieceUse<'_>) -> Option<(Oid, i32)> {
    let prepared = prepare(frame, piece, wanted).ok()?;
    match &prepared.kind {
        PieceKind::Simple(simple) if !simple.reads && is_pure_expression(&simple.expression) => {
            Some((simple.expression.ty, simple.typmod))
        }
        _ => None,
    }
}

/// A domain's constraints may call functions of users.
fn is_pure_expression(e: &Compiled) -> bool {
    e.is_parallel_safe() && !e.any(&mut |e| matches!(e.node, Node::Domain { .. }))
}
