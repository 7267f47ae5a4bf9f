//! Turns leaf paths into plan nodes.

use std::sync::Arc;

use melba_catalog::Relation;
use melba_fmgr::{RowColumn, registry};
use melba_types::{DbError, Kind, Result};

use super::ctid::WantedRow;
use super::gin::create_bitmap_scan;
use super::source::ScanColumns;
use super::{ctid, files, foreign, json_table, members, source, zone};
use crate::Synthesized;
use crate::explain_output;
use crate::failure::may_fail;
use crate::index_path::{ArmChoice, BoundChoice, IndexChoice, Match, RangeChoice};
use crate::layout::{Layout, column};
use crate::node::*;
use crate::path::{Access, LeafPath};
use crate::planner::{Planner, Stage};
use crate::row_range::RowIdEnd;
use crate::zone_filter::ZoneForm;
use crate::{needed, stage};
use melba_analyze::function_columns;
use melba_expression::Expression;
use melba_expression::key::KeyPart;
use melba_expression::{Call, Node, Routine, compile};
use melba_tree::{Expr, OutputColumn, RangeFunction, RangeKind, RowExpr};

/// What EXPLAIN calls a list of rows.
const VALUES_NAME: &str = "*VALUES*";

/// Values by the columns that they are compared with.
type ByColumn = [(usize, Expr)];

pub fn create_leaf(planner: &mut Planner<'_>, leaf: &LeafPath, estimate: Estimate) -> Result<Stage> {
    let entry = leaf.entry;
    match &leaf.access {
        Access::Table => {
            let relation = source::relation_of(planner, entry)?;
            create_table_scan(planner, entry, &relation, &leaf.filter, estimate)
        }
        Access::Index(choice) => create_index_scan(planner, entry, choice, &leaf.filter, estimate),
        Access::Bitmap(choice) => create_bitmap_scan(planner, entry, choice, &leaf.filter, estimate),
        Access::System { equal, any_of } => create_system_scan(planner, entry, (equal, any_of), &leaf.filter, estimate),
        Access::Family(family) => {
            let stage = members::create_family(planner, entry, family, estimate)?;
            stage::filtered(planner, stage, &leaf.filter)
        }
        Access::Foreign => create_foreign_leaf(planner, entry, &leaf.filter, estimate),
        Access::Function if files::reads_files(planner, entry) => {
            let stage = files::create_file_scan(planner, entry, &leaf.filter, estimate)?;
            finish_leaf(planner, entry, stage, &leaf.filter)
        }
        Access::Function => {
            let stage = create_function_scan(planner, entry, estimate)?;
            finish_leaf(planner, entry, stage, &leaf.filter)
        }
        Access::JsonTable => {
            let stage = json_table::create_json_table(planner, entry, estimate)?;
            finish_leaf(planner, entry, stage, &leaf.filter)
        }
        Access::Transition => {
            let stage = create_transition_scan(planner, entry, estimate)?;
            finish_leaf(planner, entry, stage, &leaf.filter)
        }
        Access::Values => {
            let stage = create_values(planner, entry, estimate)?;
            finish_leaf(planner, entry, stage, &leaf.filter)
        }
        Access::Cte => {
            let RangeKind::Cte { name, levels, .. } = planner.level().entries[entry].kind.clone() else {
                return Err(DbError::internal("WITH entry expected"));
            };
            let binding = planner.cte_binding(&name, levels)?;
            let op = match binding.work_table {
                Some((table, parameter)) => {
                    planner.used.insert(parameter);
                    Op::WorkTableScan { table }
                }
                None => Op::CteScan { cte: binding.index },
            };
            let layout = Layout::of(entry, binding.kinds.len());
            let mut node = planner.node(op, binding.kinds, estimate);
            let alias = planner.level().entries[entry].name.clone();
            explain_output::scanned(planner, &mut node, None, Some(&name), &alias);
            let stage = explain_output::scan_stage(planner, node, layout);
            finish_leaf(planner, entry, stage, &leaf.filter)
        }
        Access::Result => {
            let op = Op::Result(Arc::new(ResultNode { input: None, conditions: vec![] }));
            let node = planner.node(op, Arc::from([]), estimate);
            finish_leaf(planner, entry, Stage { node, layout: Layout::default() }, &leaf.filter)
        }
        Access::Subquery(slot) => {
            let Some((stage, used)) = slot.borrow_mut().take() else {
                return Err(DbError::internal("a subquery was placed twice"));
            };
            planner.used.extend(used);
            let layout = Layout::of(entry, stage.node.kinds.len());
            finish_leaf(planner, entry, Stage { node: stage.node, layout }, &leaf.filter)
        }
    }
}

fn create_foreign_leaf(planner: &mut Planner<'_>, entry: usize, filter: &[Expr], estimate: Estimate) -> Result<Stage> {
    let stage = foreign::create_foreign_scan(planner, entry, filter, estimate)?;
    let mut stage = finish_leaf(planner, entry, stage, filter)?;
    if !filter.is_empty() {
        foreign::show_file(planner, &*source::relation_of(planner, entry)?, &mut stage.node);
    }
    Ok(stage)
}

/// The whole row, where it is read, and the filter.
fn finish_leaf(planner: &mut Planner<'_>, entry: usize, stage: Stage, filter: &[Expr]) -> Result<Stage> {
    let stage = if planner.level().needed[entry].contains_key(&0) && stage.layout.position(entry, 0).is_none() {
        let columns = planner.level().entries[entry].columns.clone();
        let mut fields = Vec::new();
        let mut names = Vec::new();
        for (i, c) in columns.iter().enumerate().filter(|(_, c)| c.ty.is_valid()) {
            fields.push(column(entry, i as i16 + 1, c.ty, c.typmod, c.collation));
            names.push(c.name.clone());
        }
        let row = Expr::Row(Box::new(RowExpr { fields, names, ty: melba_types::oids::RECORD, location: -1, explicit: false }));
        let mut all: Vec<Expr> = (0..columns.len())
            .map(|i| column(entry, i as i16 + 1, columns[i].ty, columns[i].typmod, columns[i].collation))
            .collect();
        all.push(row);
        let mut stage = stage::projected(planner, stage, &all, entry)?;
        if let Some(last) = stage.layout.0.last_mut() {
            last.1 = 0;
        }
        stage
    } else {
        stage
    };
    stage::filtered(planner, stage, filter)
}

fn create_table_scan(
    planner: &mut Planner<'_>,
    entry: usize,
    relation: &Arc<Relation>,
    filter: &[Expr],
    estimate: Estimate,
) -> Result<Stage> {
    let wanted = filter.iter().find_map(|condition| ctid::wanted_row(planner, entry, condition));
    let ScannedRange { ends, decided, rest } = row_range(planner, entry, filter, wanted.is_some())?;
    let (mut source, mut all) = source::table_source(planner, entry, relation, &decided)?;
    let layout = source::outputs_first(planner, entry, filter, &mut source, &mut all);
    let filter = &rest[..];
    let zones = zone::zones(planner, entry, relation, filter)?;
    let row = match wanted {
        Some(WantedRow::Cursor(cursor)) => {
            let cursor = Box::new(planner.compile(&cursor, &Layout::default())?);
            let node = Node::CursorRow { cursor, table: relation.oid };
            Some(Expression::new(node, melba_types::oids::TID, Kind::Int8))
        }
        Some(WantedRow::Value(value)) => Some(planner.compile(&value, &Layout::default())?),
        None => None,
    };
    let compiled = planner.compile_all(filter, &all)?;
    let kinds = source.kinds.clone();
    let alias = source.alias.clone();
    let mut node = planner.node(
        Op::TableScan(Arc::new(TableScanNode {
            source,
            zones,
            filter: compiled,
            never_fails: !filter.iter().any(|condition| may_fail(planner, condition)),
            row,
            ends,
            join_filters: vec![],
            top_filter: None,
            extremes: false,
            coded: vec![],
        })),
        kinds,
        estimate,
    );
    explain_output::scanned(planner, &mut node, Some(relation.namespace), Some(&relation.name), &alias);
    if !decided.is_empty() {
        planner.detail(&mut node, "TID Cond", || planner.show_all(&decided));
    }
    if !filter.is_empty() {
        planner.detail(&mut node, "Filter", || planner.show_all(filter));
    }
    Ok(explain_output::scan_stage(planner, node, layout))
}

/// The range of rows that a scan reads.
struct ScannedRange {
    ends: Vec<RowIdEnd>,
    /// The conditions that the ends make sure of.
    decided: Vec<Expr>,
    rest: Vec<Expr>,
}

fn row_range(planner: &mut Planner<'_>, entry: usize, filter: &[Expr], is_one_row: bool) -> Result<ScannedRange> {
    let mut range = ScannedRange { ends: vec![], decided: vec![], rest: vec![] };
    for condition in filter {
        let end = if is_one_row { None } else { ctid::row_end(planner, entry, condition)? };
        let Some(end) = end else {
            range.rest.push(condition.clone());
            continue;
        };
        let value = planner.compile(&end.value, &Layout::default())?;
        range.ends.push(RowIdEnd { value, is_upper: end.is_upper, is_inclusive: end.is_inclusive });
        range.decided.push(condition.clone());
    }
    Ok(range)
}

fn create_index_scan(
    planner: &mut Planner<'_>,
    entry: usize,
    choice: &IndexChoice,
    filter: &[Expr],
    estimate: Estimate,
) -> Result<Stage> {
    let relation = source::relation_of(planner, entry)?;
    let (source, layout) = source::table_source(planner, entry, &relation, &choice.decided)?;
    let mut arms = Vec::with_capacity(choice.arms.len());
    for arm in &choice.arms {
        arms.push(compile_arm(planner, arm)?);
    }
    let compiled = planner.compile_all(filter, &layout)?;
    let kinds = source.kinds.clone();
    let alias = source.alias.clone();
    let covered = covered(planner, &source, choice);
    let op = Op::IndexScan(Arc::new(IndexScanNode { source, arms, reverse: choice.reverse, filter: compiled, covered }));
    let mut node = planner.node(op, kinds, estimate);
    explain_output::scanned(planner, &mut node, Some(relation.namespace), Some(&relation.name), &alias);
    if choice.arms.len() > 1 && !choice.decided.is_empty() {
        planner.detail(&mut node, "Index Cond", || planner.show_all(&choice.decided));
    } else {
        for arm in choice.arms.iter().filter(|arm| !arm.shown.is_empty()) {
            planner.detail(&mut node, "Index Cond", || planner.show_all(&arm.shown));
        }
    }
    if !filter.is_empty() {
        planner.detail(&mut node, "Filter", || planner.show_all(filter));
    }
    Ok(explain_output::scan_stage(planner, node, layout))
}

/// How the keys of the chosen index supply the source's columns, if they supply all of them.
fn covered(planner: &Planner<'_>, source: &TableSource, choice: &IndexChoice) -> Option<Covered> {
    let (arm, others) = choice.arms.split_first()?;
    if planner.level().rechecks || others.iter().any(|other| other.index != arm.index) {
        return None;
    }
    let index = planner.catalog().relation(arm.index)?;
    let relation = planner.catalog().relation(source.relation)?;
    let keys = &index.index.as_ref()?.keys;
    let mut places = vec![None; keys.len()];
    for (at, column) in source.projection.iter().enumerate() {
        let key = keys.iter().position(|key| usize::try_from(key.column).is_ok_and(|c| c == column + 1))?;
        places[key] = Some(at);
    }
    let used = places.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    places.truncate(used);
    let gives_values = arm.parts[..used].iter().all(KeyPart::gives_values);
    let kinds = source.projection.iter().map(|c| relation.columns[*c].kind).collect();
    gives_values.then_some(Covered { places, kinds })
}

/// Bounds see no row: columns of other relations are passed as parameters.
fn compile_arm(planner: &mut Planner<'_>, arm: &ArmChoice) -> Result<IndexArm> {
    let none = Layout::default();
    let mut matches = Vec::with_capacity(arm.matches.len());
    for m in &arm.matches {
        matches.push(match m {
            Match::Equal(e) => KeyMatch::Equal(planner.compile(e, &none)?),
            Match::AnyOf(e) => KeyMatch::AnyOf(planner.compile(e, &none)?),
            Match::IsNull => KeyMatch::IsNull,
        });
    }
    let range = match &arm.range {
        None => None,
        Some(RangeChoice::NotNull) => Some(KeyRange::NotNull),
        Some(RangeChoice::Prefix { pattern, regex }) => {
            Some(KeyRange::Prefix { pattern: planner.compile(pattern, &none)?, case_regex: *regex })
        }
        Some(RangeChoice::Between { lower, upper }) => {
            let mut bound = |b: &Option<BoundChoice>| -> Result<_> {
                let Some(BoundChoice { values, inclusive }) = b else { return Ok(None) };
                Ok(Some(KeyBound { values: planner.compile_all(values, &none)?, inclusive: *inclusive }))
            };
            Some(KeyRange::Between { lower: bound(lower)?, upper: bound(upper)? })
        }
    };
    let (name, parts) = (arm.name.clone(), arm.parts.clone());
    Ok(IndexArm { index: arm.index, name, tree: arm.tree, parts, matches, range, unique: arm.unique })
}

fn create_system_scan(
    planner: &mut Planner<'_>,
    entry: usize,
    (equal, any_of): (&ByColumn, &ByColumn),
    filter: &[Expr],
    estimate: Estimate,
) -> Result<Stage> {
    let relation = source::relation_of(planner, entry)?;
    let needed = needed::needed(planner, entry, &[]);
    let ScanColumns { mut outputs, projection, kinds, layout, .. } = source::scan_outputs(planner, entry, &relation, &needed)?;
    // Rows come with all columns.
    for output in &mut outputs {
        match output {
            ScanOutput::Column(c) => *c = projection[*c],
            ScanOutput::WholeRow { columns, .. } => {
                columns.iter_mut().flatten().for_each(|c| *c = projection[*c]);
            }
            _ => {}
        }
    }
    let compiled = planner.compile_all(filter, &layout)?;
    let none = Layout::default();
    let mut compile_values = |values: &ByColumn| {
        let compiled = values.iter().map(|(column, value)| Ok((*column, planner.compile(value, &none)?)));
        compiled.collect::<Result<Vec<_>>>()
    };
    let (equal, any_of) = (compile_values(equal)?, compile_values(any_of)?);
    let ranges = match Synthesized::of(relation.oid) {
        Some(_) => {
            let zones = zone::zones(planner, entry, &relation, filter)?.into_iter();
            zones.filter(|zone| zone.column == 0 && zone.form == ZoneForm::Value).map(|zone| (zone.op, zone.value)).collect()
        }
        None => Vec::new(),
    };
    let alias = planner.level().entries[entry].name.clone();
    let shown = alias.clone();
    let node = SystemScanNode {
        relation: relation.oid,
        name: relation.name.clone(),
        alias,
        outputs,
        column_kinds: relation.columns.iter().map(|c| c.kind).collect(),
        equal,
        any_of,
        join_filters: vec![],
        ranges,
        filter: compiled,
    };
    let mut node = planner.node(Op::SystemScan(Arc::new(node)), kinds, estimate);
    explain_output::scanned(planner, &mut node, Some(relation.namespace), Some(&relation.name), &shown);
    if !filter.is_empty() {
        planner.detail(&mut node, "Filter", || planner.show_all(filter));
    }
    Ok(explain_output::scan_stage(planner, node, layout))
}

fn create_values(planner: &mut Planner<'_>, entry: usize, estimate: Estimate) -> Result<Stage> {
    let RangeKind::Values { rows } = planner.level().entries[entry].kind.clone() else {
        return Err(DbError::internal("VALUES entry expected"));
    };
    let layout = Layout::default();
    let mut compiled = Vec::with_capacity(rows.len());
    for row in &rows {
        compiled.push(planner.compile_all(row, &layout)?);
    }
    let columns = planner.level().entries[entry].columns.clone();
    let kinds = planner.kinds_of(&columns);
    let mut node = planner.node(Op::Values(Arc::new(compiled)), kinds, estimate);
    explain_output::scanned(planner, &mut node, None, None, VALUES_NAME);
    Ok(explain_output::scan_stage(planner, node, Layout::of(entry, columns.len())))
}

fn create_function_scan(planner: &mut Planner<'_>, entry: usize, estimate: Estimate) -> Result<Stage> {
    let described = planner.level().entries[entry].clone();
    let RangeKind::Function { functions, ordinality } = described.kind else {
        return Err(DbError::internal("function entry expected"));
    };
    let none = Layout::default();
    let mut calls = Vec::with_capacity(functions.len());
    for function in &functions {
        calls.push(set_call(planner, function, &none)?);
    }
    let mut kinds: Vec<Kind> = calls.iter().flat_map(|c| c.kinds.iter().copied()).collect();
    if ordinality {
        kinds.push(Kind::Int8);
    }
    let function = match functions.first().map(|f| &f.expr) {
        Some(Expr::Function(f)) => planner.catalog().function(f.function).cloned(),
        _ => None,
    };
    let name = function.as_ref().map_or_else(|| described.name.to_string(), |f| f.name.to_string());
    let width = kinds.len();
    let alias = described.name.clone();
    let node = FunctionScanNode {
        name,
        alias: described.name,
        functions: calls,
        ordinality,
        filter: vec![],
        outputs: (0..width).collect(),
    };
    let mut node = planner.node(Op::FunctionScan(Arc::new(node)), kinds.into(), estimate);
    // PostgreSQL names no function where there are several.
    let function = function.filter(|_| functions.len() == 1);
    explain_output::scanned(
        planner,
        &mut node,
        function.as_ref().map(|f| f.namespace),
        function.as_ref().map(|f| &*f.name),
        &alias,
    );
    explain_output::function_calls(planner, &mut node, &functions);
    Ok(explain_output::scan_stage(planner, node, Layout::of(entry, width)))
}

/// The rows that a trigger's statement has changed are returned like those of a function.
fn create_transition_scan(planner: &mut Planner<'_>, entry: usize, estimate: Estimate) -> Result<Stage> {
    let described = planner.level().entries[entry].clone();
    let RangeKind::Transition { name, .. } = described.kind else {
        return Err(DbError::internal("an entry of changed rows expected"));
    };
    let kinds = planner.kinds_of(&described.columns);
    let types = described.columns.iter().map(|c| c.ty).collect();
    let source = SetSource::Transition(name.clone());
    let call = SetCall { source, kinds: kinds.to_vec(), types, spread: true, row: None };
    let width = kinds.len();
    let alias = described.name.clone();
    let node = FunctionScanNode {
        name: name.to_string(),
        alias: described.name,
        functions: vec![call],
        ordinality: false,
        filter: vec![],
        outputs: (0..width).collect(),
    };
    let mut node = planner.node(Op::FunctionScan(Arc::new(node)), kinds, estimate);
    explain_output::scanned(planner, &mut node, None, Some(&name), &alias);
    Ok(explain_output::scan_stage(planner, node, Layout::of(entry, width)))
}

fn set_call(planner: &mut Planner<'_>, function: &RangeFunction, layout: &Layout) -> Result<SetCall> {
    let kinds: Vec<Kind> = planner.kinds_of(&function.columns).to_vec();
    let spread = planner.kind(function.expr.ty()) == Kind::Record;
    let definitions = function.column_definitions.then_some(&function.columns[..]);
    let types = function.columns.iter().map(|c| c.ty).collect();
    Ok(SetCall { source: set_source(planner, &function.expr, definitions, layout)?, kinds, types, spread, row: None })
}

/// The row type of a record-returning function's results as one value, by its OUT arguments.
pub fn row_shape(planner: &Planner<'_>, expr: &Expr) -> Result<Option<RowShape>> {
    let Expr::Function(call) = expr else { return Ok(None) };
    if planner.kind(call.ty) != Kind::Record {
        return Ok(None);
    }
    let columns = function_columns(planner.catalog(), planner.inputs.session, call)?;
    Ok(columns.map(|columns| RowShape {
        type_oid: call.ty,
        types: columns.iter().map(|c| c.ty).collect(),
        names: columns.iter().map(|c| c.name.clone()).collect(),
    }))
}

/// The call of a set-returning function; any other expression returns one row. `definitions`: its column definition list.
pub fn set_source(
    planner: &mut Planner<'_>,
    expr: &Expr,
    definitions: Option<&[OutputColumn]>,
    layout: &Layout,
) -> Result<SetSource> {
    let Expr::Function(call) = expr else { return Ok(SetSource::Scalar(planner.compile(expr, layout)?)) };
    if !call.returns_set && definitions.is_none() {
        return Ok(SetSource::Scalar(planner.compile(expr, layout)?));
    }
    let args = planner.compile_all(&call.args, layout)?;
    let columns = definitions.map(|columns| {
        let described = columns.iter().map(|c| RowColumn { name: c.name.clone(), ty: c.ty, typmod: c.typmod });
        described.collect()
    });
    if let Some(function) = Routine::find(planner.catalog(), call.function) {
        let routine = Box::new(Routine::new(function, args, call.ty, call.input_collation, columns));
        return Ok(match call.returns_set {
            true => SetSource::Routine(routine),
            false => SetSource::Scalar(Expression::new(Node::Routine(routine), call.ty, planner.kind(call.ty))),
        });
    }
    let mut compiled: Call =
        compile::call_of(planner.catalog(), call.function, args, call.ty, call.input_collation, call.variadic, call.location)?;
    compiled.columns = columns;
    let source = planner.catalog().function(call.function).map(|f| f.source.clone()).unwrap_or_default();
    Ok(match registry::set_returning(&source) {
        Some(function) => SetSource::Set { function, call: compiled },
        None => SetSource::System { call: compiled },
    })
}
