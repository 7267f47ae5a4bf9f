//! Statements, one after the other.

use melba_plpgsql::tree::{Expression, PlpgsqlStatement, ReturnExpression, StatementBlock, StatementKind, Target, VariableType};
use melba_types::{Datum, DbError, Result, err, limits, oids};

use super::expression::PieceUse;
use super::frame::{Frame, StatementFlow, Typed};
use super::program::{CatalogTypes, Program};
use super::{cursor, diagnostics, exception, expression, field, loops, raise, result, sql, value};

impl Frame<'_> {
    /// Runs the function to its end.
    pub fn run(&mut self) -> Result<()> {
        let program = self.program.clone();
        self.run_program(&program)
    }

    /// The same for callers that hold the frame's program.
    pub fn run_program(&mut self, program: &Program) -> Result<()> {
        limits::check_stack()?;
        run_statement(self, &program.tree.body).map(drop)
    }

    pub fn statements(&mut self, statements: &[PlpgsqlStatement]) -> Result<StatementFlow> {
        let outer = (self.line, self.statement);
        let mut flow = StatementFlow::Next;
        for statement in statements {
            flow = run_statement(self, statement)?;
            if !matches!(flow, StatementFlow::Next) {
                break;
            }
        }
        (self.line, self.statement) = outer;
        Ok(flow)
    }
}

fn run_statement(frame: &mut Frame<'_>, statement: &PlpgsqlStatement) -> Result<StatementFlow> {
    (frame.line, frame.statement) = (statement.line, statement.name);
    execute(frame, statement).map_err(|e| frame.locate(e, statement))
}

fn execute(frame: &mut Frame<'_>, statement: &PlpgsqlStatement) -> Result<StatementFlow> {
    match &statement.kind {
        StatementKind::Assign { target, value } => value::assign_expression(frame, target, value)?,
        StatementKind::If { branches, otherwise } => {
            for (condition, body) in branches {
                if value::holds(frame, condition)? {
                    return frame.statements(body);
                }
            }
            return frame.statements(otherwise);
        }
        StatementKind::Block(block) => return run_block(frame, block, statement),
        StatementKind::Case { operand, branches, otherwise } => {
            return case(frame, operand.as_ref(), branches, otherwise.as_deref());
        }
        StatementKind::Loop(body) => return loops::endless_loop(frame, body),
        StatementKind::While { condition, body } => return loops::while_loop(frame, condition, body),
        StatementKind::ForInteger { variable, lower, upper, step, reverse, body } => {
            return loops::integer_loop(frame, *variable, lower, upper, step.as_ref(), *reverse, body);
        }
        StatementKind::ForRows { target, source, body } => return loops::row_loop(frame, target, source, body),
        StatementKind::ForEach { target, slice, array, body } => return loops::array_loop(frame, target, *slice, array, body),
        StatementKind::Exit { is_continue, label, condition } => {
            if let Some(condition) = condition
                && !value::holds(frame, condition)?
            {
                return Ok(StatementFlow::Next);
            }
            frame.label.clone_from(label);
            return Ok(if *is_continue { StatementFlow::Continue } else { StatementFlow::Exit });
        }
        StatementKind::Return(given) => return return_value(frame, given),
        StatementKind::ReturnNext(given) => return_next(frame, given)?,
        StatementKind::ReturnQuery(source) => sql::return_query(frame, source)?,
        StatementKind::Raise(raise) => raise::raise(frame, raise)?,
        StatementKind::Assert { condition, message } => raise::assert(frame, condition, message.as_ref())?,
        StatementKind::Sql { query, into } => sql::run_static(frame, query, into.as_ref())?,
        StatementKind::Execute { query, into, using } => sql::execute(frame, query, into.as_ref(), using)?,
        StatementKind::Perform(query) => sql::perform(frame, query)?,
        StatementKind::Call { call, .. } => sql::call(frame, call)?,
        StatementKind::Commit { chain } => frame.end_transaction(true, *chain)?,
        StatementKind::Rollback { chain } => frame.end_transaction(false, *chain)?,
        StatementKind::GetDiagnostics { stacked, items } => diagnostics::get_diagnostics(frame, *stacked, items)?,
        StatementKind::Open { cursor, opened, scroll } => cursor::open(frame, *cursor, opened, *scroll)?,
        StatementKind::Fetch(fetch) => cursor::fetch(frame, fetch)?,
        StatementKind::Close(cursor) => cursor::close(frame, *cursor)?,
        StatementKind::Null => {}
    }
    Ok(StatementFlow::Next)
}

fn run_block(frame: &mut Frame<'_>, block: &StatementBlock, statement: &PlpgsqlStatement) -> Result<StatementFlow> {
    declare(frame, block, statement)?;
    let flow = match &block.exceptions {
        None => frame.statements(&block.body)?,
        Some(exceptions) => exception::guarded(frame, block, exceptions)?,
    };
    Ok(match flow {
        StatementFlow::Exit if block.label.is_some() && frame.label == block.label => StatementFlow::Next,
        flow => flow,
    })
}

/// The block's variables get their first values.
fn declare(frame: &mut Frame<'_>, block: &StatementBlock, statement: &PlpgsqlStatement) -> Result<()> {
    for variable in &block.declares {
        let program = frame.program.clone();
        let declared = &program.tree.variables[*variable];
        frame.types[*variable] = declared.ty;
        frame.values[*variable] = Datum::Null;
        let result = match &declared.default {
            Some(default) => assign_default(frame, *variable, default),
            // A domain may refuse NULL.
            None if frame.is_domain(declared.ty.oid) => {
                value::assign(frame, &Target::Variable(*variable), Typed { value: Datum::Null, ty: oids::UNKNOWN, typmod: -1 })
            }
            None => Ok(()),
        };
        result.map_err(|e| {
            if std::mem::replace(&mut frame.located, true) {
                return e;
            }
            let line = if declared.line > 0 { declared.line } else { statement.line };
            let place = format!("PL/pgSQL function {} line {line}", frame.program.name);
            e.within(format!("{place} during statement block local variable initialization"))
        })?;
    }
    Ok(())
}

fn assign_default(frame: &mut Frame<'_>, variable: usize, default: &Expression) -> Result<()> {
    value::assign_expression(frame, &Target::Variable(variable), default)
}

fn case(
    frame: &mut Frame<'_>,
    operand: Option<&(usize, Expression)>,
    branches: &[(u32, Expression, Vec<PlpgsqlStatement>)],
    otherwise: Option<&[PlpgsqlStatement]>,
) -> Result<StatementFlow> {
    if let Some((variable, value)) = operand {
        let value = expression::evaluate(frame, value, PieceUse::Any)?;
        let ty = frame.types[*variable];
        if ty.oid != value.ty || ty.typmod != value.typmod {
            let cx = melba_statement::planning::analysis(&frame.context);
            let types = CatalogTypes { cx, collation: frame.program.collation };
            frame.types[*variable] = VariableType { is_record: false, ..types.of(value.ty, value.typmod) };
            // The conditions compare with a value of another type now.
            for (_, condition, _) in branches {
                frame.forget(condition);
            }
        }
        frame.values[*variable] = value.value;
    }
    for (_, condition, body) in branches {
        if value::holds(frame, condition)? {
            if let Some((variable, _)) = operand {
                frame.values[*variable] = Datum::Null;
            }
            return frame.statements(body);
        }
    }
    if let Some((variable, _)) = operand {
        frame.values[*variable] = Datum::Null;
    }
    match otherwise {
        Some(body) => frame.statements(body),
        None => Err(err!(CASE_NOT_FOUND, "case not found").hint("CASE statement is missing ELSE part.")),
    }
}

fn return_value(frame: &mut Frame<'_>, given: &ReturnExpression) -> Result<StatementFlow> {
    let value = match given {
        ReturnExpression::Nothing => return Ok(StatementFlow::Return),
        ReturnExpression::Variable(variable) => {
            let ty = frame.types[*variable];
            Typed { value: frame.values[*variable].clone(), ty: ty.oid, typmod: ty.typmod }
        }
        ReturnExpression::Value(e) => expression::evaluate(frame, e, PieceUse::Any)?,
    };
    frame.returned.value = Some(value);
    Ok(StatementFlow::Return)
}

fn return_next(frame: &mut Frame<'_>, given: &ReturnExpression) -> Result<()> {
    let value = match given {
        ReturnExpression::Nothing => {
            let output = frame.program.output.clone().ok_or_else(|| DbError::internal("nothing to return"))?;
            result::output_value(frame, &output)?
        }
        ReturnExpression::Variable(variable) => {
            let ty = frame.types[*variable];
            let value = match &frame.values[*variable] {
                Datum::Null if ty.oid == oids::RECORD => {
                    field::fields_of(frame, *variable)?;
                    Datum::Null
                }
                // A row of NULLs.
                Datum::Null if ty.is_record => Datum::Record(value::record_of(frame, ty, &[], &[])?),
                value => value.clone(),
            };
            result::to_result(frame, Typed { value, ty: ty.oid, typmod: ty.typmod })?
        }
        ReturnExpression::Value(e) => {
            let ty = result::result_type(frame);
            let value = expression::evaluate(frame, e, PieceUse::Type(ty))?;
            result::to_result(frame, value)?
        }
    };
    frame.returned.push(value)
}
