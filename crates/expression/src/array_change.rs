//! Arrays with an element more, or another one, that take the place of the old array: the element is put where the array is. So a
//! loop that builds an array takes time in proportion to its length, as with PostgreSQL's expanded arrays.
//!
//! 1. An array is changed only after everything that may fail: the old one stands after an error.
//! 2. An array that others hold, too, is copied first.

use std::sync::Arc;

use melba_types::array::grown_dimension;
use melba_types::{Datum, DbError, Result, limits};

use super::array::{assign_element, bounds, element, null_in_assignment};
use super::{Expression, Node, SubscriptScheme};
use crate::Evaluation;

/// What makes the new array of the old one.
pub enum ArrayChange {
    Append(Datum),
    Assign { subscripts: Vec<Option<i32>>, value: Datum },
}

impl Expression {
    /// The column whose array the value is, but for one element.
    pub fn changed_array(&self) -> Option<usize> {
        let array = match &self.node {
            Node::Call(call) if call.appends => call.args.first()?,
            Node::Subscript(s) if s.assign.is_some() && !s.slice && s.scheme == SubscriptScheme::Array => &s.container,
            _ => return None,
        };
        match array.node {
            Node::Column(column) => Some(column),
            _ => None,
        }
    }

    /// The change of that column's array on a row. `None`, before anything was evaluated, where only the value as a whole is known.
    pub fn array_change(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Option<ArrayChange>> {
        let Some(Datum::Array(array)) = self.changed_array().and_then(|column| row.get(column)) else { return Ok(None) };
        Ok(match &self.node {
            Node::Call(call) if array.dims.len() <= 1 => Some(ArrayChange::Append(call.args[1].eval_row(ctx, row)?)),
            Node::Subscript(s) => {
                let Some(value) = &s.assign else { return Ok(None) };
                let subscripts = bounds(&s.upper, ctx, row)?.ok_or_else(null_in_assignment)?;
                let old = element(array, &subscripts);
                let value = ctx.with_local(old, || value.eval_row(ctx, row))?;
                Some(ArrayChange::Assign { subscripts, value })
            }
            _ => None,
        })
    }
}

impl ArrayChange {
    /// Changes the array that it was made for.
    pub fn apply(self, array: &mut Datum) -> Result<()> {
        let Datum::Array(array) = array else { return Err(DbError::internal("a change of an array that is none")) };
        match self {
            ArrayChange::Assign { subscripts, value } => assign_element(Arc::make_mut(array), &subscripts, value),
            ArrayChange::Append(value) => {
                let length = array.elements.len();
                if length == array.elements.capacity() {
                    limits::check_memory(2 * length * size_of::<Datum>())?;
                }
                let lower_bound = array.dims.first().map_or(1, |dim| dim.lower_bound);
                let dim = grown_dimension(length + 1, lower_bound)?;
                let array = Arc::make_mut(array);
                array.elements.push(value);
                array.dims.clear();
                array.dims.push(dim);
                Ok(())
            }
        }
    }
}
