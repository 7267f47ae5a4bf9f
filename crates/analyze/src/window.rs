//! Window function calls, WINDOW and OVER.

use std::sync::Arc;

use melba_catalog::{Function, FunctionKind};
use melba_types::{Oid, Result, err, oids};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::call_syntax::CallSyntax;
use super::context::Context;
use super::scope::{ExprKind, WindowSource};
use super::{clauses, coerce};
use melba_tree::*;

/// Bits of `WindowDef::frame_options`.
mod frame {
    pub const NONDEFAULT: i32 = 0x00001;
    pub const RANGE: i32 = 0x00002;
    pub const ROWS: i32 = 0x00004;
    pub const GROUPS: i32 = 0x00008;
    pub const START_UNBOUNDED_PRECEDING: i32 = 0x00020;
    pub const END_UNBOUNDED_FOLLOWING: i32 = 0x00100;
    pub const START_CURRENT_ROW: i32 = 0x00200;
    pub const END_CURRENT_ROW: i32 = 0x00400;
    pub const START_OFFSET_PRECEDING: i32 = 0x00800;
    pub const END_OFFSET_PRECEDING: i32 = 0x01000;
    pub const START_OFFSET_FOLLOWING: i32 = 0x02000;
    pub const END_OFFSET_FOLLOWING: i32 = 0x04000;
    pub const EXCLUDE_CURRENT_ROW: i32 = 0x08000;
    pub const EXCLUDE_GROUP: i32 = 0x10000;
    pub const EXCLUDE_TIES: i32 = 0x20000;
}

/// Builds a window function call from a resolved call.
pub fn window_call<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    syntax: &CallSyntax<'p>,
    function: &Arc<Function>,
    call: FunctionCall,
    shown: &str,
    srf_before: i32,
) -> Result<Expr> {
    let n = syntax.node;
    let location = n.location;
    let aggregate = function.kind == FunctionKind::Aggregate;
    if n.agg_distinct {
        return Err(err!(FEATURE_NOT_SUPPORTED, "DISTINCT is not implemented for window functions").at(location));
    }
    if aggregate && n.args.is_empty() && !n.agg_star {
        return Err(err!(WRONG_OBJECT_TYPE, "{shown}(*) must be used to call a parameterless aggregate function").at(location));
    }
    if !n.agg_order.is_empty() {
        return Err(err!(FEATURE_NOT_SUPPORTED, "aggregate ORDER BY is not implemented for window functions").at(location));
    }
    if !aggregate && syntax.filter.is_some() {
        return Err(err!(FEATURE_NOT_SUPPORTED, "FILTER is not implemented for non-aggregate window functions").at(location));
    }
    if analyzer.level().last_srf != srf_before {
        return Err(err!(FEATURE_NOT_SUPPORTED, "window function calls cannot contain set-returning function calls")
            .hint("You might be able to move the set-returning function into a LATERAL FROM item.")
            .at(analyzer.level().last_srf));
    }
    if call.returns_set {
        return Err(err!(INVALID_FUNCTION_DEFINITION, "window functions cannot return sets").at(location));
    }
    let over = n.over.as_deref();
    let over = over.ok_or_else(|| err!(WRONG_OBJECT_TYPE, "window function {shown} requires an OVER clause").at(location))?;
    let call = WindowCall {
        function: function.oid,
        args: call.args,
        star: n.agg_star,
        filter: syntax.filter.clone(),
        window: 0,
        aggregate,
        ignore_nulls: false,
        ty: call.ty,
        collation: Oid::INVALID,
        input_collation: Oid::INVALID,
        location,
    };
    finish(analyzer, call, over)
}

/// Finds the window of a call whose arguments are known, and whether it is allowed there.
pub fn finish<'p>(analyzer: &mut Analyzer<'_, 'p>, mut call: WindowCall, over: &'p pb::WindowDef) -> Result<Expr> {
    for e in call.args.iter().chain(&call.filter) {
        let mut nested = None;
        e.visit(0, &mut |e, level| {
            if let Expr::Window(w) = e
                && level == 0
            {
                nested = Some(w.location);
            }
            level == 0
        });
        if let Some(at) = nested {
            return Err(err!(WINDOWING_ERROR, "window function calls cannot be nested").at(at));
        }
    }
    check_place(analyzer, call.location)?;
    call.window = window_of(analyzer, over)?;
    analyzer.level_mut().has_windows = true;
    Ok(Expr::Window(Box::new(call)))
}

/// The index of the window of an OVER clause.
fn window_of<'p>(analyzer: &mut Analyzer<'_, 'p>, over: &'p pb::WindowDef) -> Result<usize> {
    let level = analyzer.level_mut();
    if !over.name.is_empty() {
        let found = level.window_definitions.iter().position(|w| !w.anonymous && w.definition.name == over.name);
        let name = &over.name;
        return found.ok_or_else(|| err!(UNDEFINED_OBJECT, "window \"{name}\" does not exist").at(over.location));
    }
    let same = |w: &WindowSource<'p>| {
        let d = w.definition;
        let refers = d.refname == over.refname && !d.refname.is_empty() && d.name == over.refname;
        w.anonymous && !refers && same_definition(d, over)
    };
    if let Some(found) = level.window_definitions.iter().position(same) {
        return Ok(found);
    }
    level.window_definitions.push(WindowSource { definition: over, anonymous: true });
    Ok(level.window_definitions.len() - 1)
}

/// Analyzes all windows of the level, named and anonymous, once the select list is known.
pub fn window_clause(analyzer: &mut Analyzer<'_, '_>, targets: &mut Vec<Target>) -> Result<Vec<Window>> {
    let sources = analyzer.level().window_definitions.clone();
    let mut windows: Vec<Window> = Vec::with_capacity(sources.len());
    for source in sources {
        let d = source.definition;
        let name: Option<Arc<str>> = (!source.anonymous && !d.name.is_empty()).then(|| d.name.as_str().into());
        if let Some(name) = &name
            && windows.iter().any(|w| w.name.as_ref() == Some(name))
        {
            return Err(err!(WINDOWING_ERROR, "window \"{name}\" is already defined").at(d.location));
        }
        let base = if d.refname.is_empty() {
            None
        } else {
            let found = windows.iter().find(|w| w.name.as_deref() == Some(&d.refname));
            let missing = || err!(UNDEFINED_OBJECT, "window \"{}\" does not exist", d.refname).at(d.location);
            Some(found.cloned().ok_or_else(missing)?)
        };
        let window = window(analyzer, d, name, base, targets)?;
        windows.push(window);
    }
    Ok(windows)
}

fn window<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    d: &'p pb::WindowDef,
    name: Option<Arc<str>>,
    base: Option<Window>,
    targets: &mut Vec<Target>,
) -> Result<Window> {
    let partition = clauses::group_list(analyzer, &d.partition_clause, targets, ExprKind::WindowPartition)?;
    let order = clauses::sort_list(analyzer, &d.order_clause, targets, ExprKind::WindowOrder)?;
    let (partition_by, order_by) = match base {
        None => (partition, order),
        Some(base) => {
            let base_name = &d.refname;
            if !d.partition_clause.is_empty() {
                return Err(err!(WINDOWING_ERROR, "cannot override PARTITION BY clause of window \"{base_name}\"").at(d.location));
            }
            if !d.order_clause.is_empty() && !base.order_by.is_empty() {
                return Err(err!(WINDOWING_ERROR, "cannot override ORDER BY clause of window \"{base_name}\"").at(d.location));
            }
            if base.frame.explicit {
                let e = err!(WINDOWING_ERROR, "cannot copy window \"{base_name}\" because it has a frame clause").at(d.location);
                let plain = name.is_none() && d.order_clause.is_empty() && d.frame_options & frame::NONDEFAULT == 0;
                return Err(if plain { e.hint("Omit the parentheses in this OVER clause.") } else { e });
            }
            (base.partition_by, if d.order_clause.is_empty() { base.order_by } else { order })
        }
    };
    let frame = frame(analyzer, d, &order_by, targets)?;
    Ok(Window { name, references: (!d.refname.is_empty()).then(|| d.refname.as_str().into()), partition_by, order_by, frame })
}

fn frame<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    d: &'p pb::WindowDef,
    order_by: &[SortGroup],
    targets: &[Target],
) -> Result<WindowFrame> {
    let has = |bit: i32| d.frame_options & bit != 0;
    let mode = if has(frame::ROWS) {
        FrameMode::Rows
    } else if has(frame::GROUPS) {
        FrameMode::Groups
    } else {
        FrameMode::Range
    };
    let offsets =
        frame::START_OFFSET_PRECEDING | frame::END_OFFSET_PRECEDING | frame::START_OFFSET_FOLLOWING | frame::END_OFFSET_FOLLOWING;
    let mut range = None;
    if has(frame::RANGE) && has(offsets) {
        let [key] = order_by else {
            return Err(err!(WINDOWING_ERROR, "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column")
                .at(d.location));
        };
        let target = targets.iter().find(|t| t.reference == key.reference);
        range = target.map(|t| (t.expr.ty(), key.sort));
    }
    if mode == FrameMode::Groups && order_by.is_empty() {
        return Err(err!(WINDOWING_ERROR, "GROUPS mode requires an ORDER BY clause").at(d.location));
    }
    let mut in_range = (Oid::INVALID, Oid::INVALID);
    let start = if has(frame::START_UNBOUNDED_PRECEDING) {
        FrameBound::UnboundedPreceding
    } else if has(frame::START_CURRENT_ROW) {
        FrameBound::CurrentRow
    } else if has(frame::START_OFFSET_PRECEDING | frame::START_OFFSET_FOLLOWING) {
        let (e, function) = frame_offset(analyzer, &d.start_offset, mode, range, d.location)?;
        in_range.0 = function;
        if has(frame::START_OFFSET_PRECEDING) { FrameBound::Preceding(e) } else { FrameBound::Following(e) }
    } else {
        FrameBound::UnboundedFollowing
    };
    let end = if has(frame::END_UNBOUNDED_FOLLOWING) {
        FrameBound::UnboundedFollowing
    } else if has(frame::END_CURRENT_ROW) {
        FrameBound::CurrentRow
    } else if has(frame::END_OFFSET_PRECEDING | frame::END_OFFSET_FOLLOWING) {
        let (e, function) = frame_offset(analyzer, &d.end_offset, mode, range, d.location)?;
        in_range.1 = function;
        if has(frame::END_OFFSET_PRECEDING) { FrameBound::Preceding(e) } else { FrameBound::Following(e) }
    } else {
        FrameBound::UnboundedPreceding
    };
    let exclude = if has(frame::EXCLUDE_CURRENT_ROW) {
        FrameExclusion::CurrentRow
    } else if has(frame::EXCLUDE_GROUP) {
        FrameExclusion::Group
    } else if has(frame::EXCLUDE_TIES) {
        FrameExclusion::Ties
    } else {
        FrameExclusion::None
    };
    Ok(WindowFrame { mode, start, end, exclude, explicit: has(frame::NONDEFAULT), in_range })
}

/// An offset and, for RANGE, the in_range function that adds it.
fn frame_offset<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    node: &'p Option<Box<pb::Node>>,
    mode: FrameMode,
    range: Option<(Oid, Oid)>,
    location: i32,
) -> Result<(Box<Expr>, Oid)> {
    let node = node.as_deref().ok_or_else(|| err!(INTERNAL_ERROR, "frame without an offset"))?;
    let (kind, name) = match mode {
        FrameMode::Rows => (ExprKind::WindowFrameRows, "ROWS"),
        FrameMode::Groups => (ExprKind::WindowFrameGroups, "GROUPS"),
        FrameMode::Range => (ExprKind::WindowFrameRange, "RANGE"),
    };
    let e = analyzer.expression(node, kind)?;
    let mut function = Oid::INVALID;
    let e = match (mode, range) {
        (FrameMode::Range, Some((ty, sort))) => {
            let at = e.location();
            let (offset, found) = in_range_function(analyzer.cx(), (ty, sort), e.ty(), if at >= 0 { at } else { location })?;
            function = found;
            let e = coerce::to_specific(analyzer, e, offset, name)?;
            refuse_frame_vars(e, name)?
        }
        _ => {
            let e = coerce::to_specific(analyzer, e, oids::INT8, name)?;
            refuse_frame_vars(e, name)?
        }
    };
    Ok((Box::new(e), function))
}

fn refuse_frame_vars(e: Expr, name: &str) -> Result<Expr> {
    if e.has_vars() {
        return Err(err!(INVALID_COLUMN_REFERENCE, "argument of {name} must not contain variables").at(e.location()));
    }
    Ok(e)
}

/// The offset type and in_range function for ordering a type by an operator.
fn in_range_function(cx: &Context<'_>, (ty, sort): (Oid, Oid), offset: Oid, location: i32) -> Result<(Oid, Oid)> {
    const IN_RANGE: i16 = 3;
    let catalog = cx.catalog;
    let operators = catalog.type_operators(ty);
    let access = catalog.access_methods();
    let (family, input) = match catalog.function_ordering(sort) {
        Some(member) => (member.family, member.left),
        None => (operators.btree_family, operators.input_type),
    };
    let candidates = [oids::INT2, oids::INT4, oids::INT8, oids::FLOAT8, oids::NUMERIC, oids::INTERVAL];
    let found: Vec<(Oid, Oid)> =
        candidates.iter().filter_map(|t| access.function(family, input, *t, IN_RANGE).map(|f| (*t, f))).collect();
    let (ty_name, offset_name) = (cx.type_name(ty), cx.type_name(offset));
    let unsupported = |detail: bool| {
        let e = if detail {
            err!(
                FEATURE_NOT_SUPPORTED,
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {ty_name} and offset type {offset_name}"
            )
        } else {
            err!(FEATURE_NOT_SUPPORTED, "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {ty_name}")
        };
        e.at(location)
    };
    if found.is_empty() {
        return Err(unsupported(false));
    }
    if offset == oids::UNKNOWN {
        let preferred = found.iter().find(|(t, _)| *t == input).or_else(|| if found.len() == 1 { found.first() } else { None });
        return match preferred {
                Some(f) => Ok(*f),
                None => Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "RANGE with offset PRECEDING/FOLLOWING has multiple interpretations for column type {ty_name} and offset type {offset_name}"
                )
                .hint("Cast the offset value to the exact intended type.")
                .at(location)),
            };
    }
    if let Some(exact) = found.iter().find(|(t, _)| *t == offset) {
        return Ok(*exact);
    }
    let mut fitting = found.iter().filter(|(t, _)| cx.can_coerce_one(offset, *t, super::CoercionContext::Implicit));
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Ok(*one),
        (Some(one), Some(_)) => Ok(*one),
        _ => Err(unsupported(true).hint("Cast the offset value to an appropriate type.")),
    }
}

/// Whether two OVER clauses say the same, their places in the text apart.
fn same_definition(a: &pb::WindowDef, b: &pb::WindowDef) -> bool {
    if a.frame_options != b.frame_options
        || a.refname != b.refname
        || a.partition_clause.len() != b.partition_clause.len()
        || a.order_clause.len() != b.order_clause.len()
    {
        return false;
    }
    let strip = |d: &pb::WindowDef| {
        let text = format!("{:?}{:?}{:?}{:?}", d.partition_clause, d.order_clause, d.start_offset, d.end_offset);
        strip_locations(&text)
    };
    strip(a) == strip(b)
}

/// Debug text of parse nodes without their locations.
pub fn strip_locations(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("location: ") {
        out.push_str(&rest[..at]);
        let after = &rest[at + "location: ".len()..];
        let end = after.find(|c: char| !(c.is_ascii_digit() || c == '-')).unwrap_or(after.len());
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

/// 42P20 where window functions are not allowed.
pub fn check_place(analyzer: &mut Analyzer<'_, '_>, location: i32) -> Result<()> {
    let kind = analyzer.level().kind.0;
    let allowed =
        matches!(kind, ExprKind::None | ExprKind::Other | ExprKind::SelectTarget | ExprKind::OrderBy | ExprKind::DistinctOn);
    if allowed {
        return Ok(());
    }
    let place = match kind {
        ExprKind::WindowPartition
        | ExprKind::WindowOrder
        | ExprKind::WindowFrameRange
        | ExprKind::WindowFrameRows
        | ExprKind::WindowFrameGroups => "window definitions",
        ExprKind::FromSubselect => "sub-SELECT in FROM",
        other => other.noun(),
    };
    Err(err!(WINDOWING_ERROR, "window functions are not allowed in {place}").at(location))
}
