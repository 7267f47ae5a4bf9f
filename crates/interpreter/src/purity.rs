//! Functions that neither read nor change the database, and tell the client nothing: they assign, branch, loop, and raise errors.
//! So a statement may run one for many rows in turn, and a table's writer a trigger's for many rows before it writes the first one.

use std::sync::Arc;

use melba_catalog::{Catalog, Function, TypeKind, classes};
use melba_expression::{Expression as Compiled, Node};
use melba_fmgr::{PureRoutine, PureTrigger, RoutineCall, TriggerCall};
use melba_plpgsql::Returns;
use melba_plpgsql::tree::{
    Expression, Level, Loop, PlpgsqlStatement, ReturnExpression, StatementBlock, StatementKind, Target, VariableType,
};
use melba_statement::context::{SessionState, StatementContext};
use melba_statement::control::Control;
use melba_types::{Datum, DbError, Oid, Result};

use super::expression::{PieceUse, prepare_now, wanted_by};
use super::frame::{Frame, Typed};
use super::program::{PieceKind, Program};
use super::state::RoutineState;
use super::value::{BOOLEAN, INTEGER};
use super::{field, program_cache, result, spare, trigger_values, value};

/// A frame that runs again and again.
struct PureFrame {
    /// `None` after an error.
    frame: Option<Box<Frame<'static>>>,
    /// The frame's.
    program: Arc<Program>,
    session: Arc<SessionState>,
    /// The key of its spare frames: the function, or the trigger.
    key: Oid,
}

impl PureFrame {
    /// For a function in the surroundings of the statement, if it is pure. A function that does not compile fails when it is called.
    fn new(
        caller: &StatementContext,
        function: &Arc<Function>,
        key: Oid,
        fits: impl FnOnce(&Frame<'_>) -> bool,
        program: impl FnOnce(&StatementContext) -> Result<Arc<Program>>,
    ) -> Result<Option<PureFrame>> {
        if function.security_definer || !function.config.is_empty() || function.returns_set {
            return Ok(None);
        }
        let spare = RoutineState::of(&caller.session).spare_frames.take(key);
        let mut frame = match spare.filter(|frame| spare::is_current(frame, caller) && fits(frame)) {
            Some(frame) => frame,
            None => {
                let context = caller.within_routine(function)?.context;
                let Ok(program) = program(&context) else { return Ok(None) };
                Box::new(Frame::new(program, context, None, Control::NONE)?)
            }
        };
        let program = frame.program.clone();
        let is_pure = *program.is_pure.get_or_init(|| is_pure_function(&mut frame));
        let pure = PureFrame { frame: Some(frame), program, session: caller.session.clone(), key };
        Ok(is_pure.then_some(pure))
    }

    fn run(&mut self, run: impl FnOnce(&mut Frame<'_>, &Program) -> Result<Datum>) -> Result<Datum> {
        let Some(mut frame) = self.frame.take() else { return Err(DbError::internal("a function runs again after its error")) };
        spare::restart_pure(&mut frame);
        let value = run(&mut frame, &self.program)?;
        self.frame = Some(frame);
        Ok(value)
    }
}

impl Drop for PureFrame {
    fn drop(&mut self) {
        if let Some(frame) = self.frame.take() {
            RoutineState::of(&self.session).spare_frames.give_back(self.key, frame);
        }
    }
}

impl PureRoutine for PureFrame {
    fn run(&mut self, args: &[Datum]) -> Result<Datum> {
        PureFrame::run(self, |frame, program| {
            spare::set_inputs(frame, args);
            frame.run_program(program)?;
            result::result(frame)
        })
    }
}

/// The function of a call, if it is pure.
pub fn pure_routine(
    caller: &StatementContext,
    function: &Arc<Function>,
    call: &RoutineCall<'_>,
) -> Result<Option<Box<dyn PureRoutine>>> {
    if call.columns.is_some() {
        return Ok(None);
    }
    let fits = |frame: &Frame<'_>| spare::fits(frame, caller, call);
    let program = |context: &StatementContext| program_cache::of_call(context, function, call);
    let pure = PureFrame::new(caller, function, call.function, fits, program)?;
    Ok(pure.map(|pure| Box::new(pure) as Box<dyn PureRoutine>))
}

struct PureRows {
    pure: PureFrame,
    /// Of the table's rows.
    row_type: Oid,
}

impl PureTrigger for PureRows {
    fn run(&mut self, new: Datum) -> Result<Datum> {
        self.pure.run(|frame, _| {
            trigger_values::begin_row(frame, new);
            let row = result::run_row_trigger(frame, self.row_type)?;
            trigger_values::forget_rows(frame);
            Ok(row)
        })
    }
}

/// A trigger's function, if it is pure.
pub fn pure_trigger(
    caller: &StatementContext,
    function: &Arc<Function>,
    call: &TriggerCall<'_>,
) -> Result<Option<Box<dyn PureTrigger>>> {
    if call.trigger.old_table.is_some() || call.trigger.new_table.is_some() {
        return Ok(None);
    }
    let fits = |frame: &Frame<'_>| frame.program.oid == function.oid;
    let program = |context: &StatementContext| program_cache::of_trigger(context, function, call);
    let Some(mut pure) = PureFrame::new(caller, function, call.trigger.oid, fits, program)? else { return Ok(None) };
    if let Some(frame) = &mut pure.frame {
        trigger_values::begin(frame, call);
    }
    Ok(Some(Box::new(PureRows { pure, row_type: call.table.row_type })))
}

fn is_pure_function(frame: &mut Frame<'_>) -> bool {
    let program = frame.program.clone();
    let is_plain = match program.returns {
        Returns::Value { record } => {
            !record && program.output.is_none() && !has_domain(&frame.context.catalog, program.result.ty)
        }
        Returns::Void | Returns::Trigger => program.output.is_none(),
        _ => false,
    };
    is_plain && is_pure_statement(frame, &program.tree.body)
}

fn are_pure(frame: &mut Frame<'_>, statements: &[PlpgsqlStatement]) -> bool {
    statements.iter().all(|statement| is_pure_statement(frame, statement))
}

fn is_pure_statement(frame: &mut Frame<'_>, statement: &PlpgsqlStatement) -> bool {
    match &statement.kind {
        StatementKind::Null => true,
        StatementKind::Assign { target, value } => is_pure_assignment(frame, target, value),
        StatementKind::If { branches, otherwise } => {
            branches.iter().all(|(condition, body)| is_pure_as(frame, condition, BOOLEAN) && are_pure(frame, body))
                && are_pure(frame, otherwise)
        }
        StatementKind::Block(block) => is_pure_block(frame, block),
        StatementKind::Loop(body) => is_pure_loop(frame, body),
        StatementKind::While { condition, body } => is_pure_as(frame, condition, BOOLEAN) && is_pure_loop(frame, body),
        StatementKind::ForInteger { lower, upper, step, body, .. } => {
            [Some(lower), Some(upper), step.as_ref()].into_iter().flatten().all(|bound| is_pure_as(frame, bound, INTEGER))
                && is_pure_loop(frame, body)
        }
        StatementKind::Exit { condition, .. } => condition.as_ref().is_none_or(|condition| is_pure_as(frame, condition, BOOLEAN)),
        StatementKind::Return(given) => is_pure_return(frame, given),
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
        let is_plain = !declared.ty.is_record && !has_domain(&frame.context.catalog, declared.ty.oid);
        let default = |value| is_pure_assignment(frame, &Target::Variable(*variable), value);
        is_plain && declared.default.as_ref().is_none_or(default)
    };
    block.exceptions.is_none() && block.declares.iter().all(is_pure_variable) && are_pure(frame, &block.body)
}

fn is_pure_return(frame: &mut Frame<'_>, given: &ReturnExpression) -> bool {
    let given = match given {
        ReturnExpression::Nothing => return true,
        ReturnExpression::Variable(variable) => Some((frame.types[*variable].oid, frame.types[*variable].typmod)),
        ReturnExpression::Value(value) => pure_type(frame, value, PieceUse::Any),
    };
    match (given, frame.program.returns) {
        (Some(given), Returns::Value { .. }) => is_pure_cast(frame, given, (frame.program.result.ty, -1)),
        (given, _) => given.is_some(),
    }
}

fn is_pure_assignment(frame: &mut Frame<'_>, target: &Target, value: &Expression) -> bool {
    let ty = match target {
        Target::Variable(variable) => {
            let ty = frame.types[*variable];
            if ty.is_record || has_domain(&frame.context.catalog, ty.oid) {
                return false;
            }
            (ty.oid, ty.typmod)
        }
        Target::Field { record, name } => match field::field_to_assign(frame, *record, name) {
            Ok(place) if !place.is_of_domain && !has_domain(&frame.context.catalog, place.ty.0) => place.ty,
            _ => return false,
        },
        Target::Part { .. } | Target::Row(_) => return false,
    };
    pure_type(frame, value, wanted_by(frame, target)).is_some_and(|given| is_pure_cast(frame, given, ty))
}

fn is_pure_cast(frame: &Frame<'_>, from: (Oid, i32), to: (Oid, i32)) -> bool {
    let from = Typed { value: Datum::Null, ty: from.0, typmod: from.1 };
    value::cast_of(frame, &from, to).is_ok_and(|cast| cast.is_none_or(|cast| is_pure_expression(frame, &cast)))
}

/// Whether a piece is pure whose value is converted to a type.
fn is_pure_as(frame: &mut Frame<'_>, piece: &Expression, ty: VariableType) -> bool {
    pure_type(frame, piece, PieceUse::Type(ty)).is_some_and(|given| is_pure_cast(frame, given, (ty.oid, ty.typmod)))
}

fn is_pure(frame: &mut Frame<'_>, piece: &Expression) -> bool {
    pure_type(frame, piece, PieceUse::Any).is_some()
}

/// The type of a pure piece, with its modifier.
fn pure_type(frame: &mut Frame<'_>, piece: &Expression, wanted: PieceUse<'_>) -> Option<(Oid, i32)> {
    let prepared = prepare_now(frame, piece, wanted).ok()?;
    match &prepared.kind {
        PieceKind::Simple(simple) if !simple.reads && is_pure_expression(frame, &simple.expression) => {
            Some((simple.expression.ty, simple.typmod))
        }
        _ => None,
    }
}

fn is_pure_expression(frame: &Frame<'_>, e: &Compiled) -> bool {
    let catalog = &frame.context.catalog;
    e.is_parallel_safe() && !e.any(&mut |e| matches!(e.node, Node::Domain { .. }) || has_domain(catalog, e.ty))
}

/// Whether values of a type have a domain in them: its constraints may call functions of users.
fn has_domain(catalog: &Catalog, ty: Oid) -> bool {
    let Some(found) = catalog.type_(ty) else { return false };
    match found.type_kind {
        TypeKind::Domain => true,
        TypeKind::Composite => {
            let of_column = |c: &melba_catalog::Column| !c.dropped && has_domain(catalog, c.ty);
            catalog.relation(found.relation).is_some_and(|relation| relation.columns.iter().any(of_column))
        }
        _ if found.element.is_valid() => has_domain(catalog, found.element),
        // They may be ranges of domains.
        TypeKind::Range | TypeKind::Multirange => found.oid.0 >= classes::FIRST_USER_OID,
        _ => false,
    }
}
