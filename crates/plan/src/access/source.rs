//! The columns that a scan reads and returns.

use std::collections::BTreeSet;
use std::sync::Arc;

use melba_catalog::{Relation, Storage};
use melba_expression::{Compiler, Expression, Resolved, Scope};
use melba_table::TargetBuilder;
use melba_tree::{Expr, RangeKind, Var};
use melba_types::{Datum, DbError, Kind, Result};

use crate::layout::Layout;
use crate::needed;
use crate::node::*;
use crate::planner::Planner;
use crate::volatility;

/// xmin of rows that no transaction has written: it counts as the frozen one's.
pub const FROZEN_XMIN: u32 = 2;

/// The columns of a stored table that the query reads; `decided` as for `needed`.
pub fn table_source(
    planner: &mut Planner<'_>,
    entry: usize,
    relation: &Arc<Relation>,
    decided: &[Expr],
) -> Result<(TableSource, Layout)> {
    let Storage::Tree(tree) = relation.storage else {
        return Err(DbError::internal("relation has no table tree"));
    };
    let needed = needed::needed(planner, entry, decided);
    let alias = planner.level().entries[entry].name.clone();
    let ScanColumns { outputs, projection, virtuals, kinds, layout } = scan_outputs(planner, entry, relation, &needed)?;
    let in_order = outputs.iter().enumerate().all(|(i, o)| matches!(o, ScanOutput::Column(c) if *c == i));
    let plain = in_order && virtuals.is_empty();
    let source = TableSource {
        relation: relation.oid,
        name: relation.name.clone(),
        alias,
        tree,
        projection,
        missing: relation.columns.iter().map(|c| c.missing.clone()).collect(),
        outputs,
        kinds,
        virtuals,
        plain,
    };
    Ok((source, layout))
}

/// Puts the columns that nothing but a scan's filter reads behind the others, and takes them out of the outputs; returns the layout of
/// these. `all` becomes the layout that the filter is compiled for.
pub fn outputs_first(planner: &Planner<'_>, entry: usize, filter: &[Expr], source: &mut TableSource, all: &mut Layout) -> Layout {
    if !source.plain || filter.iter().any(|condition| volatility::has_volatile(planner, condition)) {
        return all.clone();
    }
    let needed = needed::needed(planner, entry, filter);
    let (mut order, behind): (Vec<usize>, Vec<usize>) = (0..all.0.len()).partition(|at| needed.contains(&all.0[*at].1));
    let outputs = order.len();
    order.extend(behind);
    source.projection = order.iter().map(|at| source.projection[*at]).collect();
    source.outputs.truncate(outputs);
    source.kinds = order[..outputs].iter().map(|at| source.kinds[*at]).collect();
    *all = Layout(order.iter().map(|at| all.0[*at]).collect());
    Layout(all.0[..outputs].to_vec())
}

pub fn scan_outputs(
    planner: &mut Planner<'_>,
    entry: usize,
    relation: &Arc<Relation>,
    needed: &BTreeSet<i16>,
) -> Result<ScanColumns> {
    let mut projection: Vec<usize> = needed.iter().filter(|c| **c > 0).map(|c| *c as usize - 1).collect();
    if needed.contains(&0) {
        projection = (0..relation.columns.len()).filter(|&c| !relation.columns[c].dropped).collect();
    }
    let (computed, virtuals) = virtual_columns(planner, relation, &mut projection)?;
    // The projection is sorted; columns that are computed follow it.
    let place = |column: usize| match projection.binary_search(&column) {
        Ok(at) => Some(at),
        Err(_) => computed.iter().position(|p| *p == column).map(|at| projection.len() + at),
    };
    let mut outputs = Vec::with_capacity(needed.len());
    let mut kinds = Vec::with_capacity(needed.len());
    let mut layout = Layout::default();
    for &column in needed {
        let (output, kind) = match column {
            -1 => (ScanOutput::RowId, Kind::Int8),
            -6 => (ScanOutput::Const(Datum::Oid(relation.oid.0)), Kind::Oid),
            -2 if matches!(relation.storage, Storage::Tree(_)) => (ScanOutput::Maker, Kind::Oid),
            -2 => (ScanOutput::Const(Datum::Oid(FROZEN_XMIN)), Kind::Oid),
            c if c < 0 => (ScanOutput::Const(Datum::Oid(0)), Kind::Oid),
            0 => {
                // A member's row is shown as one of its parent.
                let member = planner.level().member.clone();
                let shown = member.as_ref().map_or(relation, |m| &m.parent);
                let live = shown.columns.iter().filter(|c| !c.dropped);
                let columns = match &member {
                    Some(member) => member.live().map(place).collect(),
                    None => (0..relation.columns.len()).filter(|&c| !relation.columns[c].dropped).map(place).collect(),
                };
                let output = ScanOutput::WholeRow {
                    ty: shown.row_type,
                    columns,
                    types: live.clone().map(|c| c.ty).collect(),
                    names: live.map(|c| c.name.clone()).collect(),
                };
                (output, Kind::Record)
            }
            c => {
                let c = c as usize - 1;
                match (place(c), relation.columns.get(c)) {
                    (Some(at), Some(described)) => (ScanOutput::Column(at), described.kind),
                    _ => (ScanOutput::Const(Datum::Null), Kind::Text),
                }
            }
        };
        outputs.push(output);
        kinds.push(kind);
        layout.0.push((entry, column));
    }
    Ok(ScanColumns { outputs, projection, virtuals, kinds: kinds.into(), layout })
}

/// Takes the virtual columns out of a projection, and adds the columns from which they are computed; returns the virtual ones
/// and their expressions.
fn virtual_columns(
    planner: &mut Planner<'_>,
    relation: &Arc<Relation>,
    projection: &mut Vec<usize>,
) -> Result<(Vec<usize>, Vec<Expression>)> {
    let is_virtual = |column: &usize| relation.columns.get(*column).is_some_and(|c| c.generated == b'v');
    let computed: Vec<usize> = projection.iter().copied().filter(is_virtual).collect();
    if computed.is_empty() {
        return Ok((computed, Vec::new()));
    }
    let builder = TargetBuilder { catalog: planner.inputs.catalog, session: planner.inputs.session };
    let member = planner.level().member.clone();
    // A member is read by the expressions of the table that the query names.
    let expression = |column: &usize| match member.as_ref().and_then(|m| Some((m, m.virtual_parent(relation, *column)?))) {
        Some((member, above)) => {
            let mut expression = builder.generation(&member.parent, above, relation.oid)?;
            expression.visit_mut(0, &mut |e, _| {
                if let Expr::Var(v) = e {
                    v.column = member.number(v.column);
                }
                true
            });
            Ok(expression)
        }
        None => builder.generation(relation, *column, relation.oid),
    };
    let exprs = computed.iter().map(expression).collect::<Result<Vec<Expr>>>()?;
    projection.retain(|column| !is_virtual(column));
    for expr in &exprs {
        expr.visit_vars(&mut |v| projection.extend(usize::try_from(v.column - 1)));
    }
    projection.sort_unstable();
    projection.dedup();
    let mut scope = Projected(projection);
    let mut compiler = Compiler::new(planner.inputs.catalog, Some(planner.inputs.session), &mut scope);
    let virtuals = exprs.iter().map(|e| compiler.compile(e)).collect::<Result<_>>()?;
    Ok((computed, virtuals))
}

/// The columns that a scan reads and returns.
pub struct ScanColumns {
    pub outputs: Vec<ScanOutput>,
    pub projection: Vec<usize>,
    pub virtuals: Vec<Expression>,
    pub kinds: Arc<[Kind]>,
    pub layout: Layout,
}

/// The columns of a table that a scan reads, by position.
struct Projected<'a>(&'a [usize]);

impl Scope for Projected<'_> {
    fn var(&mut self, var: &Var) -> Result<Resolved> {
        let column = usize::try_from(var.column - 1).ok();
        let at = column.and_then(|column| self.0.iter().position(|p| *p == column));
        at.map(Resolved::Column).ok_or_else(|| DbError::internal("a virtual column of a column that is not read"))
    }
}

pub fn relation_of(planner: &Planner<'_>, entry: usize) -> Result<Arc<Relation>> {
    let RangeKind::Relation { oid, .. } = planner.level().entries[entry].kind else {
        return Err(DbError::internal("relation entry expected"));
    };
    planner.catalog().relation(oid).cloned().ok_or_else(|| DbError::internal(format!("relation {oid} does not exist")))
}
