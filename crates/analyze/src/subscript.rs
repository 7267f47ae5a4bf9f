//! `x.field`, `x[1]`, `x[1:2]`: indirection in expressions and in assignment targets.

use std::sync::Arc;

use melba_types::array::DIMENSIONS_MAX;
use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::coerce::{CoercionContext, How, int4};
use super::context::Context;
use super::field::field_select;
use super::field::unregistered;
use super::{coerce, field, nodes};
use melba_tree::*;

pub fn indirection<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::AIndirection) -> Result<Expr> {
    let mut result = analyzer.boxed(&n.arg)?;
    let location = result.location();
    let mut indices: Vec<&'p pb::AIndices> = Vec::new();
    for step in &n.indirection {
        match &step.node {
            Some(NodeEnum::AIndices(i)) => indices.push(i),
            Some(NodeEnum::AStar(_)) => {
                return Err(err!(FEATURE_NOT_SUPPORTED, "row expansion via \"*\" is not supported here").at(location));
            }
            Some(NodeEnum::String(s)) => {
                if !indices.is_empty() {
                    result = subscripts(analyzer, result, &std::mem::take(&mut indices), None)?;
                }
                result = field(analyzer, result, &s.sval, location)?;
            }
            _ => return Err(DbError::internal("unrecognized indirection")),
        }
    }
    if !indices.is_empty() {
        result = subscripts(analyzer, result, &indices, None)?;
    }
    Ok(result)
}

/// `value.name`: a field, or a function of the value.
fn field(analyzer: &mut Analyzer<'_, '_>, value: Expr, name: &str, location: i32) -> Result<Expr> {
    let ty = value.ty();
    if let Some(e) = analyzer.functional_notation(name, value, location)? {
        return Ok(e);
    }
    if ty == oids::RECORD {
        return Err(err!(UNDEFINED_COLUMN, "could not identify column \"{name}\" in record data type").at(location));
    }
    let shown = analyzer.cx().type_name(ty);
    if analyzer.cx().is_complex(ty) {
        return Err(err!(UNDEFINED_COLUMN, "column \"{name}\" not found in data type {shown}").at(location));
    }
    Err(err!(WRONG_OBJECT_TYPE, "column notation .{name} applied to type {shown}, which is not a composite type").at(location))
}

/// Applies subscripts; with `assign` the container with the part replaced.
pub fn subscripts<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    container: Expr,
    steps: &[&'p pb::AIndices],
    assign: Option<Expr>,
) -> Result<Expr> {
    let slice = steps.iter().any(|s| s.is_slice);
    let (base, typmod) = analyzer.cx().catalog.base_type_and_typmod(container.ty(), container.typmod());
    if base == oids::JSONB {
        return jsonb_subscripts(analyzer, container, steps, slice, assign);
    }
    if base == oids::HSTORE {
        return hstore_subscript(analyzer, container, steps, slice, assign);
    }
    let element = subscript_element(analyzer.cx(), &container, base)?;
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
                (Some(node), _) => Some(array_index(analyzer, node)?),
                // a[2] among slices is a[1:2].
                (None, false) => Some(int4(1)),
                (None, true) => None,
            });
        }
        upper.push(match &step.uidx {
            Some(node) => Some(array_index(analyzer, node)?),
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
    let result = SubscriptExpr {
        container,
        container_type: if container_type == base { base } else { analyzer.cx().base_type(container_type) },
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

fn array_index<'p>(analyzer: &mut Analyzer<'_, 'p>, node: &'p pb::Node) -> Result<Expr> {
    let e = analyzer.expr(node)?;
    let location = e.location();
    coerce::to_target(analyzer, e, oids::INT4, -1, How::assignment())?
        .ok_or_else(|| err!(DATATYPE_MISMATCH, "array subscript must have type integer").at(location))
}

fn jsonb_subscripts<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
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
        let e = analyzer.boxed(&step.uidx)?;
        let (from, location) = (e.ty(), e.location());
        let can = |a: &Analyzer<'_, 'p>, t| a.cx().can_coerce_one(from, t, CoercionContext::Implicit);
        let target = match (from, can(analyzer, oids::INT4), can(analyzer, oids::TEXT)) {
            (oids::UNKNOWN, _, _) => oids::TEXT,
            (_, true, true) => {
                return Err(err!(DATATYPE_MISMATCH, "subscript type {} is not supported", analyzer.cx().type_name(from))
                    .hint("jsonb subscript must be coercible to only one type, integer or text.")
                    .at(location));
            }
            (_, true, _) => oids::INT4,
            (_, _, true) => oids::TEXT,
            _ => {
                return Err(err!(DATATYPE_MISMATCH, "subscript type {} is not supported", analyzer.cx().type_name(from))
                    .hint("jsonb subscript must be coercible to either integer or text.")
                    .at(location));
            }
        };
        upper.push(Some(coerce::to_type(analyzer, e, target, -1, How::implicit())?));
    }
    Ok(Expr::Subscript(Box::new(SubscriptExpr {
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
fn subscript_element(cx: &Context<'_>, container: &Expr, base: Oid) -> Result<Oid> {
    if matches!(base, oids::INT2VECTOR | oids::OIDVECTOR) {
        return Ok(cx.ty(base)?.element);
    }
    if let Some(element) = cx.catalog.array_element(base) {
        return Ok(element);
    }
    match cx.catalog.type_(base) {
        Some(t) if t.element.is_valid() && &*t.subscript == "raw_array_subscript_handler" => Ok(t.element),
        _ => {
            let name = cx.type_name(container.ty());
            Err(err!(DATATYPE_MISMATCH, "cannot subscript type {name} because it does not support subscripting")
                .at(container.location()))
        }
    }
}

fn hstore_subscript<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    container: Expr,
    steps: &[&'p pb::AIndices],
    slice: bool,
    assign: Option<Expr>,
) -> Result<Expr> {
    let ([step], false) = (steps, slice) else {
        return Err(err!(DATATYPE_MISMATCH, "hstore allows only one subscript"));
    };
    let key = analyzer.boxed(&step.uidx)?;
    let location = key.location();
    let key = coerce::to_target(analyzer, key, oids::TEXT, -1, How::assignment())?;
    let key = key.ok_or_else(|| err!(DATATYPE_MISMATCH, "hstore subscript must have type text").at(location))?;
    let ty = if assign.is_some() { oids::HSTORE } else { oids::TEXT };
    Ok(Expr::Subscript(Box::new(SubscriptExpr {
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
pub fn expand_indirection_star<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::AIndirection) -> Result<Vec<(Expr, Arc<str>)>> {
    let value = if n.indirection.len() == 1 {
        analyzer.boxed(&n.arg)?
    } else {
        // Everything but the star.
        let mut value = analyzer.boxed(&n.arg)?;
        let location = value.location();
        for step in &n.indirection[..n.indirection.len() - 1] {
            value = match &step.node {
                Some(NodeEnum::AIndices(i)) => subscripts(analyzer, value, &[i], None)?,
                Some(NodeEnum::String(s)) => field(analyzer, value, &s.sval, location)?,
                _ => return Err(DbError::internal("unrecognized indirection")),
            };
        }
        value
    };
    expand_row(analyzer, value)
}

/// All fields of a composite value.
pub fn expand_row(analyzer: &mut Analyzer<'_, '_>, value: Expr) -> Result<Vec<(Expr, Arc<str>)>> {
    if let Expr::Var(v) = &value
        && v.column == 0
    {
        let row = field::expand_whole_row(analyzer, v)?;
        return Ok(row.fields.into_iter().zip(row.names).collect());
    }
    let Some(columns) = field::record_columns(analyzer, &value)? else {
        if value.ty() == oids::RECORD {
            return Err(unregistered());
        }
        let name = analyzer.cx().type_name(value.ty());
        return Err(err!(WRONG_OBJECT_TYPE, "type {name} is not composite"));
    };
    let fields = columns.iter().enumerate().filter(|(_, c)| c.ty.is_valid());
    Ok(fields.map(|(i, c)| (field_select(value.clone(), i, c), c.name.clone())).collect())
}
