//! Loops.

use melba_plpgsql::tree::{Expression, Loop, RowSource, Scroll, Target, VariableType};
use melba_types::{Array, Datum, DbError, Oid, Result, bail, err, oids};

use super::super::planning::analysis;
use super::expression::Wanted;
use super::frame::{Flow, Frame, Typed};
use super::value::RowShape;

/// Rows that a loop over a query reads ahead.
const ROWS_AHEAD: u64 = 64;

impl Frame<'_> {
    pub fn endless_loop(&mut self, body: &Loop) -> Result<Flow> {
        loop {
            self.context.session.interrupt.check()?;
            let flow = self.statements(&body.body)?;
            if let Some(flow) = Frame::after_round(flow, body) {
                return Ok(flow);
            }
        }
    }

    pub fn while_loop(&mut self, condition: &Expression, body: &Loop) -> Result<Flow> {
        while self.holds(condition)? {
            self.context.session.interrupt.check()?;
            let flow = self.statements(&body.body)?;
            if let Some(flow) = Frame::after_round(flow, body) {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// The value as an integer, `None` for NULL.
    pub fn integer(&mut self, e: &Expression) -> Result<Option<i32>> {
        let integer = VariableType { oid: oids::INT4, typmod: -1, collation: Oid::INVALID, is_record: false };
        Ok(match self.value_as(e, integer)? {
            Datum::Int4(value) => Some(value),
            _ => None,
        })
    }

    fn bound(&mut self, e: &Expression, what: &str) -> Result<i32> {
        self.integer(e)?.ok_or_else(|| err!(NULL_VALUE_NOT_ALLOWED, "{what} of FOR loop cannot be null"))
    }

    pub fn integer_loop(
        &mut self,
        variable: usize,
        lower: &Expression,
        upper: &Expression,
        step: Option<&Expression>,
        reverse: bool,
        body: &Loop,
    ) -> Result<Flow> {
        let mut at = self.bound(lower, "lower bound")?;
        let end = self.bound(upper, "upper bound")?;
        let step = step.map_or(Ok(1), |step| self.bound(step, "BY value"))?;
        if step <= 0 {
            bail!(INVALID_PARAMETER_VALUE, "BY value of FOR loop must be greater than zero");
        }
        let mut found = false;
        let mut last = Flow::Next;
        while if reverse { at >= end } else { at <= end } {
            found = true;
            self.context.session.interrupt.check()?;
            self.values[variable] = Datum::Int4(at);
            let flow = self.statements(&body.body)?;
            if let Some(flow) = Frame::after_round(flow, body) {
                last = flow;
                break;
            }
            match if reverse { at.checked_sub(step) } else { at.checked_add(step) } {
                Some(next) => at = next,
                None => break,
            }
        }
        self.set_found(found);
        Ok(last)
    }

    pub fn row_loop(&mut self, target: &Target, source: &RowSource, body: &Loop) -> Result<Flow> {
        if let RowSource::Cursor { cursor, arguments } = source {
            return self.cursor_loop(target, *cursor, arguments.as_ref(), body);
        }
        let begun = self.begin_rows(source)?;
        let (shape, origin) = (RowShape::of_result(&begun.columns), begun.origin.clone());
        let name = self.add_portal(None, begun, Scroll::No, true);
        self.portal_loop(&name, (target, &shape, &origin), ROWS_AHEAD, body)
    }

    pub fn array_loop(&mut self, target: &Target, slice: i32, array: &Expression, body: &Loop) -> Result<Flow> {
        let value = self.evaluate(array, Wanted::Any)?;
        if value.value.is_null() {
            bail!(NULL_VALUE_NOT_ALLOWED, "FOREACH expression must not be null");
        }
        let Datum::Array(array) = &value.value else {
            let shown = self.context.catalog.type_name(value.ty, &self.context.path.path);
            bail!(DATATYPE_MISMATCH, "FOREACH expression must yield an array, not type {shown}");
        };
        let dimensions = array.dims.len();
        if slice < 0 || slice as usize > dimensions {
            let message = format!("slice dimension ({slice}) is out of the valid range 0..{dimensions}");
            return Err(err!(ARRAY_SUBSCRIPT_ERROR, "{message}"));
        }
        let is_array = self.is_array_target(target);
        if slice > 0 && !is_array {
            bail!(DATATYPE_MISMATCH, "FOREACH ... SLICE loop variable must be of an array type");
        }
        if slice == 0 && is_array {
            bail!(DATATYPE_MISMATCH, "FOREACH loop variable must not be of an array type");
        }
        let element = self.context.catalog.type_(self.context.catalog.base_type(value.ty)).map_or(Oid::INVALID, |t| t.element);
        let per_round: usize = array.dims[dimensions - slice as usize..].iter().map(|d| d.length as usize).product();
        let mut found = false;
        let mut last = Flow::Next;
        for chunk in array.elements.chunks(per_round.max(1)) {
            self.context.session.interrupt.check()?;
            found = true;
            let item = match slice {
                0 => Typed { value: chunk[0].clone(), ty: element, typmod: value.typmod },
                _ => {
                    let dims = array.dims[dimensions - slice as usize..].to_vec();
                    let part = Array { dims, elements: chunk.to_vec(), ..Array::clone(array) };
                    Typed { value: Datum::Array(std::sync::Arc::new(part)), ty: value.ty, typmod: value.typmod }
                }
            };
            self.assign(target, item)?;
            let flow = self.statements(&body.body)?;
            if let Some(flow) = Frame::after_round(flow, body) {
                last = flow;
                break;
            }
        }
        self.set_found(found);
        Ok(last)
    }

    fn is_array_target(&self, target: &Target) -> bool {
        let Target::Variable(variable) = target else { return false };
        let cx = analysis(&self.context);
        let base = cx.catalog.base_type(self.types[*variable].oid);
        cx.catalog.type_(base).is_some_and(|t| t.element.is_valid() && t.kind == melba_types::Kind::Array)
    }

    pub fn internal(message: &str) -> DbError {
        DbError::internal(message)
    }
}
