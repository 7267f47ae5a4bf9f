//! Statements, one after the other.

use std::sync::Arc;

use melba_plpgsql::tree::{Block, Expression, Loop, Statement, StatementKind, VariableType};
use melba_plpgsql::tree::{Returned as Given, Target};
use melba_types::{Datum, DbError, Result, err, limits, oids};

use super::expression::Wanted;
use super::frame::{Flow, Frame, Typed};

impl Frame<'_> {
    /// Runs the function to its end.
    pub fn run(&mut self) -> Result<()> {
        limits::check_stack()?;
        let program = self.program.clone();
        self.statement(&program.tree.body).map(drop)
    }

    pub fn statements(&mut self, statements: &[Statement]) -> Result<Flow> {
        for statement in statements {
            match self.statement(statement)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &Statement) -> Result<Flow> {
        self.line = statement.line;
        self.one(statement).map_err(|e| self.locate(e, statement))
    }

    fn one(&mut self, statement: &Statement) -> Result<Flow> {
        match &statement.kind {
            StatementKind::Assign { target, value } => self.assign_expression(target, value)?,
            StatementKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.holds(condition)? {
                        return self.statements(body);
                    }
                }
                return self.statements(otherwise);
            }
            StatementKind::Block(block) => return self.block(block, statement),
            StatementKind::Case { operand, branches, otherwise } => {
                return self.case(operand.as_ref(), branches, otherwise.as_deref());
            }
            StatementKind::Loop(body) => return self.endless_loop(body),
            StatementKind::While { condition, body } => return self.while_loop(condition, body),
            StatementKind::ForInteger { variable, lower, upper, step, reverse, body } => {
                return self.integer_loop(*variable, lower, upper, step.as_ref(), *reverse, body);
            }
            StatementKind::ForRows { target, source, body } => return self.row_loop(target, source, body),
            StatementKind::ForEach { target, slice, array, body } => return self.array_loop(target, *slice, array, body),
            StatementKind::Exit { is_continue, label, condition } => {
                if let Some(condition) = condition
                    && !self.holds(condition)?
                {
                    return Ok(Flow::Next);
                }
                let label = label.clone();
                return Ok(if *is_continue { Flow::Continue(label) } else { Flow::Exit(label) });
            }
            StatementKind::Return(given) => return self.return_value(given),
            StatementKind::ReturnNext(given) => self.return_next(given)?,
            StatementKind::ReturnQuery(source) => self.return_query(source)?,
            StatementKind::Raise(raise) => self.raise(raise)?,
            StatementKind::Assert { condition, message } => self.assert(condition, message.as_ref())?,
            StatementKind::Sql { query, into } => self.sql(query, into.as_ref())?,
            StatementKind::Execute { query, into, using } => self.execute(query, into.as_ref(), using)?,
            StatementKind::Perform(query) => self.perform(query)?,
            StatementKind::Call { call, .. } => self.call(call)?,
            StatementKind::Commit { chain } => self.end_transaction(true, *chain)?,
            StatementKind::Rollback { chain } => self.end_transaction(false, *chain)?,
            StatementKind::GetDiagnostics { stacked, items } => self.diagnostics(*stacked, items)?,
            StatementKind::Open { cursor, opened, scroll } => self.open(*cursor, opened, *scroll)?,
            StatementKind::Fetch(fetch) => self.fetch(fetch)?,
            StatementKind::Close(cursor) => self.close(*cursor)?,
            StatementKind::Null => {}
        }
        Ok(Flow::Next)
    }

    /// Whether a condition is true.
    pub fn holds(&mut self, condition: &Expression) -> Result<bool> {
        let boolean = VariableType { oid: oids::BOOL, typmod: -1, collation: melba_types::Oid::INVALID, is_record: false };
        let value = self.value_as(condition, boolean)?;
        Ok(matches!(value, Datum::Bool(true)))
    }

    /// An expression's value as one of a type.
    pub fn value_as(&mut self, e: &Expression, ty: VariableType) -> Result<Datum> {
        let value = self.evaluate(e, Wanted::Type(ty))?;
        self.cast(value, ty.oid, ty.typmod)
    }

    fn block(&mut self, block: &Block, statement: &Statement) -> Result<Flow> {
        self.declare(block, statement)?;
        let flow = match &block.exceptions {
            None => self.statements(&block.body)?,
            Some(exceptions) => self.guarded(block, exceptions)?,
        };
        Ok(match flow {
            Flow::Exit(Some(label)) if block.label.as_ref() == Some(&label) => Flow::Next,
            flow => flow,
        })
    }

    /// The block's variables get their first values.
    fn declare(&mut self, block: &Block, statement: &Statement) -> Result<()> {
        for variable in &block.declares {
            let program = self.program.clone();
            let declared = &program.tree.variables[*variable];
            self.types[*variable] = declared.ty;
            self.values[*variable] = Datum::Null;
            let result = match &declared.default {
                Some(default) => self.assign_default(*variable, default),
                // A domain may refuse NULL.
                None if self.is_domain(declared.ty) => {
                    self.assign(&Target::Variable(*variable), Typed { value: Datum::Null, ty: oids::UNKNOWN, typmod: -1 })
                }
                None => Ok(()),
            };
            result.map_err(|e| {
                if std::mem::replace(&mut self.located, true) {
                    return e;
                }
                let line = if declared.line > 0 { declared.line } else { statement.line };
                let place = format!("PL/pgSQL function {} line {line}", self.program.name);
                e.within(format!("{place} during statement block local variable initialization"))
            })?;
        }
        Ok(())
    }

    fn assign_default(&mut self, variable: usize, default: &Expression) -> Result<()> {
        self.assign_expression(&Target::Variable(variable), default)
    }

    pub fn is_domain(&self, ty: VariableType) -> bool {
        self.context.catalog.base_type(ty.oid) != ty.oid
    }

    fn case(
        &mut self,
        operand: Option<&(usize, Expression)>,
        branches: &[(u32, Expression, Vec<Statement>)],
        otherwise: Option<&[Statement]>,
    ) -> Result<Flow> {
        if let Some((variable, value)) = operand {
            let value = self.evaluate(value, Wanted::Any)?;
            let ty = self.types[*variable];
            if ty.oid != value.ty || ty.typmod != value.typmod {
                let collation = super::super::planning::analysis(&self.context).collation_of_type(value.ty);
                self.types[*variable] = VariableType { oid: value.ty, typmod: value.typmod, collation, is_record: false };
                // The conditions compare with a value of another type now.
                for (_, condition, _) in branches {
                    self.forget(condition);
                }
            }
            self.values[*variable] = value.value;
        }
        for (_, condition, body) in branches {
            if self.holds(condition)? {
                if let Some((variable, _)) = operand {
                    self.values[*variable] = Datum::Null;
                }
                return self.statements(body);
            }
        }
        if let Some((variable, _)) = operand {
            self.values[*variable] = Datum::Null;
        }
        match otherwise {
            Some(body) => self.statements(body),
            None => Err(err!(CASE_NOT_FOUND, "case not found").hint("CASE statement is missing ELSE part.")),
        }
    }

    fn return_value(&mut self, given: &Given) -> Result<Flow> {
        let value = match given {
            Given::Nothing => return Ok(Flow::Return),
            Given::Variable(variable) => {
                let ty = self.types[*variable];
                Typed { value: self.values[*variable].clone(), ty: ty.oid, typmod: ty.typmod }
            }
            Given::Value(e) => self.evaluate(e, Wanted::Any)?,
        };
        self.returned.value = Some(value);
        Ok(Flow::Return)
    }

    fn return_next(&mut self, given: &Given) -> Result<()> {
        let value = match given {
            Given::Nothing => {
                let output = self.program.output.clone().ok_or_else(|| DbError::internal("nothing to return"))?;
                self.output_value(&output)?
            }
            Given::Variable(variable) => {
                let ty = self.types[*variable];
                let value = match &self.values[*variable] {
                    Datum::Null if ty.oid == oids::RECORD => {
                        self.fields_of(*variable)?;
                        Datum::Null
                    }
                    // A row of NULLs.
                    Datum::Null if ty.is_record => Datum::Record(self.record_of(ty, &[], &[])?),
                    value => value.clone(),
                };
                self.to_result(Typed { value, ty: ty.oid, typmod: ty.typmod })?
            }
            Given::Value(e) => {
                let value = self.evaluate(e, Wanted::Type(self.result_type()))?;
                self.to_result(value)?
            }
        };
        self.returned.push(value)
    }

    /// Where a loop continues whose body ended with `flow`: `None` for the next round.
    pub fn after_round(flow: Flow, body: &Loop) -> Option<Flow> {
        let is_own = |label: &Option<Arc<str>>| label.is_none() || *label == body.label;
        match flow {
            Flow::Next => None,
            Flow::Continue(label) if is_own(&label) => None,
            Flow::Exit(label) if is_own(&label) => Some(Flow::Next),
            other => Some(other),
        }
    }
}
