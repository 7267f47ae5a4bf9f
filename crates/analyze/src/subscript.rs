//! `x.field`, `x[1]`, `x[1:2]`: indirection in expressions and in assignment targets.

use std::sync::Arc;

use melba_types::array::DIMENSIONS_MAX;
use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::coerce::{CoercionContext, How, int4};
use super::record::{Names, Origin, is_record_reference, origin};
use super::{Analyzer, nodes};
use melba_tree::*;

impl<'p> Analyzer<'_, 'p> {
    pub fn indirection(&mut self, n: &'p pb::AIndirection) -> Result<Expr> {
        let mut result = self.boxed(&n.arg)?;
        let location = result.location();
        let mut subscripts: Vec<&'p pb::AIndices> = Vec::new();
        for step in &n.indirection {
            match &step.node {
                Some(NodeEnum::AIndices(i)) => subscripts.push(i),
                Some(NodeEnum::AStar(_)) => {
                    return Err(err!(FEATURE_NOT_SUPPORTED, "row expansion via \"*\" is not supported here").at(location));
                }
                Some(NodeEnum::String(s)) => {
                    if !subscripts.is_empty() {
                        result = self.subscripts(result, &std::mem::take(&mut subscripts), None)?;
                    }
                    result = self.field(result, &s.sval, location)?;
                }
                _ => return Err(DbError::internal("unrecognized indirection")),
            }
        }
        if !subscripts.is_empty() {
            result = self.subscripts(result, &subscripts, None)?;
        }
        Ok(result)
    }

    /// `value.name`: a field, or a function of the value.
    fn field(&mut self, value: Expr, name: &str, location: i32) -> Result<Expr> {
        let ty = value.ty();
        if let Some(e) = self.functional_notation(name, value, location)? {
            return Ok(e);
        }
        if ty == oids::RECORD {
            return Err(err!(UNDEFINED_COLUMN, "could not identify column \"{name}\" in record data type").at(location));
        }
        let shown = self.cx.type_name(ty);
        if self.cx.is_complex(ty) {
            return Err(err!(UNDEFINED_COLUMN, "column \"{name}\" not found in data type {shown}").at(location));
        }
        Err(err!(WRONG_OBJECT_TYPE, "column notation .{name} applied to type {shown}, which is not a composite type")
            .at(location))
    }

    /// The field `name` of a composite value, if it has one.
    pub fn project_field(&mut self, value: &Expr, name: &str) -> Result<Option<Expr>> {
        // A field of a whole row is simply the column.
        if let Expr::Var(v) = value
            && v.column == 0
        {
            let level = self.level_up(v.levels_up);
            let entry = &mut level.range_table[v.entry];
            let found = entry.columns.iter().position(|c| c.ty.is_valid() && &*c.name == name);
            let Some(i) = found else { return Ok(None) };
            super::columns::note_selected(entry, i as i16 + 1);
            let c = &entry.columns[i];
            return Ok(Some(Expr::Var(Var {
                column: i as i16 + 1,
                ty: c.ty,
                typmod: c.typmod,
                collation: c.collation,
                ..v.clone()
            })));
        }
        let Some(columns) = self.record_columns(value)? else {
            return if is_record_reference(value) { Err(unregistered()) } else { Ok(None) };
        };
        let Some(i) = columns.iter().position(|c| c.ty.is_valid() && &*c.name == name) else { return Ok(None) };
        Ok(Some(field_select(value.clone(), i, &columns[i])))
    }

    /// The columns of a composite value: by its type, or for records by their origin.
    pub fn record_columns(&mut self, value: &Expr) -> Result<Option<Vec<OutputColumn>>> {
        let ty = value.ty();
        if let Some(relation) = self.cx.row_relation(ty) {
            let column = |c: &melba_catalog::Column| OutputColumn {
                name: c.name.clone(),
                ty: if c.dropped { Oid::INVALID } else { c.ty },
                typmod: c.typmod,
                collation: c.collation,
            };
            return Ok(Some(relation.columns.iter().map(column).collect()));
        }
        if ty != oids::RECORD {
            return Ok(None);
        }
        let scopes = self.levels.iter().map(|level| Names { entries: &level.range_table, ctes: &level.ctes }).collect();
        match origin(scopes, value) {
            Some(Origin::Row(columns)) => Ok(Some(columns)),
            Some(Origin::Expr(Expr::Row(row))) => Ok(Some(
                row.fields
                    .iter()
                    .zip(&row.names)
                    .map(|(f, n)| OutputColumn { name: n.clone(), ty: f.ty(), typmod: f.typmod(), collation: f.collation() })
                    .collect(),
            )),
            Some(Origin::Expr(Expr::Function(call))) => self.cx.function_columns(&call),
            _ => Ok(None),
        }
    }

    /// Applies subscripts; with `assign` the container with the part replaced.
    pub fn subscripts(&mut self, container: Expr, steps: &[&'p pb::AIndices], assign: Option<Expr>) -> Result<Expr> {
        let slice = steps.iter().any(|s| s.is_slice);
        let (base, typmod) = self.cx.catalog.base_type_and_typmod(container.ty(), container.typmod());
        if base == oids::JSONB {
            return self.jsonb_subscripts(container, steps, slice, assign);
        }
        if base == oids::HSTORE {
            return self.hstore_subscript(container, steps, slice, assign);
        }
        let element = self.subscript_element(&container, base)?;
        if steps.len() > DIMENSIONS_MAX {
            return Err(err!(
                PROGRAM_LIMIT_EXCEEDED,
                "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})",
                steps.len()
            ));
        }
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        for step in steps {
            if slice {
                lower.push(match (&step.lidx, step.is_slice) {
                    (Some(node), _) => Some(self.array_index(node)?),
                    // a[2] among slices is a[1:2].
                    (None, false) => Some(int4(1)),
                    (None, true) => None,
                });
            }
            upper.push(match &step.uidx {
                Some(node) => Some(self.array_index(node)?),
                None => None,
            });
        }
        // A domain over an array is subscripted as the array.
        let container_type = if slice || assign.is_some() { base } else { container.ty() };
        let container = if container.ty() == base {
            container
        } else {
            super::coerce::relabel(container, base, typmod, CoercionForm::ImplicitCast)
        };
        let ty = if slice || assign.is_some() { base } else { element };
        let result = Subscript {
            container,
            container_type: if container_type == base { base } else { self.cx.base_type(container_type) },
            ty,
            typmod,
            collation: Oid::INVALID,
            slice,
            lower,
            upper,
            assign,
        };
        Ok(Expr::Subscript(Box::new(result)))
    }

    fn array_index(&mut self, node: &'p pb::Node) -> Result<Expr> {
        let e = self.expr(node)?;
        let location = e.location();
        self.coerce_to_target(e, oids::INT4, -1, How::assignment())?
            .ok_or_else(|| err!(DATATYPE_MISMATCH, "array subscript must have type integer").at(location))
    }

    fn jsonb_subscripts(
        &mut self,
        container: Expr,
        steps: &[&'p pb::AIndices],
        slice: bool,
        assign: Option<Expr>,
    ) -> Result<Expr> {
        if slice {
            let first = steps.iter().find_map(|s| s.uidx.as_deref().or(s.lidx.as_deref()));
            return Err(err!(DATATYPE_MISMATCH, "jsonb subscript does not support slices").at(first.map_or(-1, nodes::location)));
        }
        let mut upper = Vec::with_capacity(steps.len());
        for step in steps {
            let e = self.boxed(&step.uidx)?;
            let (from, location) = (e.ty(), e.location());
            let can = |a: &Self, t| a.cx.can_coerce_one(from, t, CoercionContext::Implicit);
            let target = match (from, can(self, oids::INT4), can(self, oids::TEXT)) {
                (oids::UNKNOWN, _, _) => oids::TEXT,
                (_, true, true) => {
                    return Err(err!(DATATYPE_MISMATCH, "subscript type {} is not supported", self.cx.type_name(from))
                        .hint("jsonb subscript must be coercible to only one type, integer or text.")
                        .at(location));
                }
                (_, true, _) => oids::INT4,
                (_, _, true) => oids::TEXT,
                _ => {
                    return Err(err!(DATATYPE_MISMATCH, "subscript type {} is not supported", self.cx.type_name(from))
                        .hint("jsonb subscript must be coercible to either integer or text.")
                        .at(location));
                }
            };
            upper.push(Some(self.coerce_type(e, target, -1, How::implicit())?));
        }
        Ok(Expr::Subscript(Box::new(Subscript {
            container,
            container_type: oids::JSONB,
            ty: oids::JSONB,
            typmod: -1,
            collation: Oid::INVALID,
            slice: false,
            lower: Vec::new(),
            upper,
            assign,
        })))
    }

    /// The element type of a subscript of an array, or of a similar type.
    fn subscript_element(&self, container: &Expr, base: Oid) -> Result<Oid> {
        if matches!(base, oids::INT2VECTOR | oids::OIDVECTOR) {
            return Ok(self.cx.ty(base)?.element);
        }
        if let Some(element) = self.cx.catalog.array_element(base) {
            return Ok(element);
        }
        match self.cx.catalog.type_(base) {
            Some(t) if t.element.is_valid() && &*t.subscript == "raw_array_subscript_handler" => Ok(t.element),
            _ => {
                let name = self.cx.type_name(container.ty());
                Err(err!(DATATYPE_MISMATCH, "cannot subscript type {name} because it does not support subscripting")
                    .at(container.location()))
            }
        }
    }

    fn hstore_subscript(
        &mut self,
        container: Expr,
        steps: &[&'p pb::AIndices],
        slice: bool,
        assign: Option<Expr>,
    ) -> Result<Expr> {
        let ([step], false) = (steps, slice) else {
            return Err(err!(DATATYPE_MISMATCH, "hstore allows only one subscript"));
        };
        let key = self.boxed(&step.uidx)?;
        let location = key.location();
        let key = self.coerce_to_target(key, oids::TEXT, -1, How::assignment())?;
        let key = key.ok_or_else(|| err!(DATATYPE_MISMATCH, "hstore subscript must have type text").at(location))?;
        let ty = if assign.is_some() { oids::HSTORE } else { oids::TEXT };
        Ok(Expr::Subscript(Box::new(Subscript {
            container,
            container_type: oids::HSTORE,
            ty,
            typmod: -1,
            collation: Oid::INVALID,
            slice: false,
            lower: Vec::new(),
            upper: vec![Some(key)],
            assign,
        })))
    }

    /// `(expr).*`: all fields of a composite expression.
    pub fn expand_indirection_star(&mut self, n: &'p pb::AIndirection) -> Result<Vec<(Expr, Arc<str>)>> {
        let value = if n.indirection.len() == 1 {
            self.boxed(&n.arg)?
        } else {
            // Everything but the star.
            let mut value = self.boxed(&n.arg)?;
            let location = value.location();
            for step in &n.indirection[..n.indirection.len() - 1] {
                value = match &step.node {
                    Some(NodeEnum::AIndices(i)) => self.subscripts(value, &[i], None)?,
                    Some(NodeEnum::String(s)) => self.field(value, &s.sval, location)?,
                    _ => return Err(DbError::internal("unrecognized indirection")),
                };
            }
            value
        };
        self.expand_row(value)
    }

    /// All fields of a composite value.
    pub fn expand_row(&mut self, value: Expr) -> Result<Vec<(Expr, Arc<str>)>> {
        if let Expr::Var(v) = &value
            && v.column == 0
        {
            let row = self.expand_whole_row(v)?;
            return Ok(row.fields.into_iter().zip(row.names).collect());
        }
        let Some(columns) = self.record_columns(&value)? else {
            if value.ty() == oids::RECORD {
                return Err(unregistered());
            }
            let name = self.cx.type_name(value.ty());
            return Err(err!(WRONG_OBJECT_TYPE, "type {name} is not composite"));
        };
        let fields = columns.iter().enumerate().filter(|(_, c)| c.ty.is_valid());
        Ok(fields.map(|(i, c)| (field_select(value.clone(), i, c), c.name.clone())).collect())
    }
}

/// The fields of a record are needed, but their types are unknown.
fn unregistered() -> DbError {
    err!(WRONG_OBJECT_TYPE, "record type has not been registered")
}

pub fn field_select(value: Expr, i: usize, column: &OutputColumn) -> Expr {
    // A field of ROW(...) is the field itself only when the row has no side effects; keep the selection.
    Expr::FieldSelect {
        arg: Box::new(value),
        field: i as i16 + 1,
        ty: column.ty,
        typmod: column.typmod,
        collation: column.collation,
    }
}
