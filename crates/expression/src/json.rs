//! JSON_EXISTS, JSON_QUERY and JSON_VALUE: their results for the items that a path selects, for none, and for errors.

use std::sync::Arc;

use melba_fmgr::{CallInfo, ScalarFn, io};
use melba_types::{Datum, DbError, Oid, Result, SqlState, err, oids};

use super::Expression;
use crate::Evaluation;
use melba_tree::{JsonBehaviorKind, JsonCoercion, JsonOperation, JsonWrapper};

/// A path over a document with the values that it mentions.
#[derive(Clone)]
pub struct JsonPath {
    /// The path function: `sqljson_exists` or a similar one.
    pub function: ScalarFn,
    pub item: Expression,
    pub path: Expression,
    pub passing: Vec<(Arc<str>, Expression)>,
    /// The column of JSON_TABLE, for messages.
    pub column: Option<Arc<str>>,
    pub wrapper: JsonWrapper,
    /// JSON_VALUE returns jsonb rather than text.
    pub stays_json: bool,
    /// Of the function's arguments.
    pub arg_types: Arc<[Oid]>,
    pub return_type: Oid,
}

#[derive(Clone, Debug)]
pub struct JsonQuery {
    pub operation: JsonOperation,
    pub path: JsonPath,
    pub coercion: JsonCoercion,
    pub typmod: i32,
    pub omit_quotes: bool,
    /// The RETURNING type is integer, or a domain over it.
    pub exists_as_integer: bool,
    pub populate: ScalarFn,
    pub on_empty: Option<Behavior>,
    pub on_error: Behavior,
}

#[derive(Clone, Debug)]
pub struct Behavior {
    pub kind: JsonBehaviorKind,
    /// `None`: the error is raised.
    pub value: Option<Expression>,
    pub populate: bool,
    /// The value is a cast whose failure is reported as that of the behavior.
    pub is_cast: bool,
}

impl std::fmt::Debug for JsonPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JsonPath").field("item", &self.item).field("path", &self.path).finish_non_exhaustive()
    }
}

/// Errors of a conversion, which ON ERROR replaces: errors about the value itself.
fn is_soft(e: &DbError) -> bool {
    !matches!(e.sqlstate().class(), "0A" | "53" | "54" | "57" | "XX")
}

impl JsonPath {
    /// The function's result for the items; NULL without a document or a path.
    pub fn eval(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        let (item, path) = (self.item.eval_row(ctx, row)?, self.path.eval_row(ctx, row)?);
        if item.is_null() || path.is_null() {
            return Ok(Datum::Null);
        }
        let passing = self.passing.iter().map(|(_, value)| value.eval_row(ctx, row)).collect::<Result<Vec<_>>>()?;
        self.select(ctx, item, path, &passing)
    }

    /// The same over a document that is known.
    pub fn select(&self, ctx: &Evaluation, item: Datum, path: Datum, passing: &[Datum]) -> Result<Datum> {
        let wrapper = match self.wrapper {
            JsonWrapper::None => 0,
            JsonWrapper::Conditional => 1,
            JsonWrapper::Unconditional => 2,
        };
        let column = self.column.clone().map_or(Datum::Null, Datum::Text);
        let mut args = vec![item, path, column, Datum::Int4(wrapper), Datum::Bool(self.stays_json)];
        for ((name, _), value) in self.passing.iter().zip(passing) {
            args.extend([Datum::Text(name.clone()), value.clone()]);
        }
        let context = CallInfo {
            session: &*ctx.session,
            arg_types: &self.arg_types,
            return_type: self.return_type,
            collation: Oid::INVALID,
            variadic: false,
            columns: None,
            view: CallInfo::NO_VIEW,
        };
        (self.function)(&context, &args)
    }

    pub fn for_each_child(&self, f: &mut dyn FnMut(&Expression)) {
        f(&self.item);
        f(&self.path);
        self.passing.iter().for_each(|(_, value)| f(value));
    }
}

impl JsonQuery {
    pub(super) fn eval(&self, ty: Oid, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        let found = match self.path.eval(ctx, row) {
            Err(e) if e.sqlstate() == SqlState::NO_SQL_JSON_ITEM => match &self.on_empty {
                Some(on_empty) => return self.otherwise(on_empty, "ON EMPTY", e, ty, ctx, row),
                None => Err(e),
            },
            Err(e) if e.sqlstate().class() == "22" => Err(e),
            found => Ok(found?),
        };
        match found.and_then(|value| self.coerce(value, ty, ctx)) {
            Err(e) if is_soft(&e) => self.otherwise(&self.on_error, "ON ERROR", e, ty, ctx, row),
            result => result,
        }
    }

    /// The value found as one of the RETURNING type.
    fn coerce(&self, value: Datum, ty: Oid, ctx: &Evaluation) -> Result<Datum> {
        match (self.coercion, self.operation) {
            (JsonCoercion::None, _) => Ok(value),
            (JsonCoercion::Populate, JsonOperation::Exists) => match value {
                Datum::Bool(found) if self.exists_as_integer => {
                    io::check_domain(&*ctx.session, ty, Datum::Int4(i32::from(found)))
                }
                Datum::Bool(found) => {
                    let text = if found { "true" } else { "false" };
                    self.populate(io::text_in(&*ctx.session, oids::JSONB, -1, text)?, ty, ctx)
                }
                other => self.populate(other, ty, ctx),
            },
            (JsonCoercion::Populate, _) => self.populate(value, ty, ctx),
            (JsonCoercion::ByText, _) => match value {
                Datum::Null => Ok(Datum::Null),
                value if ty == oids::JSONB => Ok(value),
                value => {
                    let from = if self.path.stays_json { oids::JSONB } else { oids::TEXT };
                    io::text_in(&*ctx.session, ty, self.typmod, &io::text_of(&*ctx.session, from, &value)?)
                }
            },
        }
    }

    fn populate(&self, value: Datum, ty: Oid, ctx: &Evaluation) -> Result<Datum> {
        let context = CallInfo {
            session: &*ctx.session,
            arg_types: &[oids::JSONB, oids::INT4, oids::BOOL],
            return_type: ty,
            collation: Oid::INVALID,
            variadic: false,
            columns: None,
            view: CallInfo::NO_VIEW,
        };
        (self.populate)(&context, &[value, Datum::Int4(self.typmod), Datum::Bool(self.omit_quotes)])
    }

    /// A behavior's result in place of a value: its own value, or the error.
    fn otherwise(
        &self,
        behavior: &Behavior,
        clause: &str,
        error: DbError,
        ty: Oid,
        ctx: &Evaluation,
        row: &[Datum],
    ) -> Result<Datum> {
        let Some(value) = &behavior.value else { return Err(error) };
        let told = |e: DbError| match self.on_error.value.is_some() && is_soft(&e) {
            true => {
                let name = behavior.kind.name();
                err!(DATATYPE_MISMATCH, "could not coerce {clause} expression ({name}) to the RETURNING type")
                    .detail(e.message().to_owned())
            }
            false => e,
        };
        let value = match value.eval_row(ctx, row) {
            Err(e) if behavior.is_cast => return Err(told(e)),
            value => value?,
        };
        if behavior.populate { self.populate(value, ty, ctx).map_err(told) } else { Ok(value) }
    }

    pub(super) fn for_each_child(&self, f: &mut dyn FnMut(&Expression)) {
        self.path.for_each_child(f);
        for behavior in self.on_empty.iter().chain([&self.on_error]) {
            behavior.value.iter().for_each(&mut *f);
        }
    }
}
