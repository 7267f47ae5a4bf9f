//! Functions in FROM that read files: the columns that the query reads, and conditions that files may answer by their statistics.

use std::sync::Arc;

use melba_fmgr::{RowColumn, files};
use melba_tree::{Expr, RangeKind};
use melba_types::{DbError, Kind, Result};

use super::zone;
use crate::explain_output;
use crate::file_scan::{FileScanNode, LastColumn, ScannedFiles};
use crate::layout::Layout;
use crate::node::{Estimate, Op};
use crate::planner::{Planner, Stage};
use crate::zone_filter::ZoneForm;

/// Whether an entry is one function that reads files, with all its columns known.
pub fn reads_files(planner: &Planner<'_>, entry: usize) -> bool {
    let RangeKind::Function { functions, .. } = &planner.level().entries[entry].kind else { return false };
    let [function] = &functions[..] else { return false };
    let Expr::Function(call) = &function.expr else { return false };
    function.column_definitions && planner.catalog().function(call.function).is_some_and(|f| files::reads_files(f))
}

/// A scan of an entry of which `reads_files` holds.
pub fn create_file_scan(planner: &mut Planner<'_>, entry: usize, filter: &[Expr], estimate: Estimate) -> Result<Stage> {
    let described = planner.level().entries[entry].clone();
    let RangeKind::Function { functions, ordinality } = described.kind else {
        return Err(DbError::internal("function entry expected"));
    };
    let Some(function) = functions.into_iter().next() else { return Err(DbError::internal("an entry without a function")) };
    let Expr::Function(call) = &function.expr else { return Err(DbError::internal("function expected")) };
    let args = planner.compile_all(&call.args, &Layout::default())?;
    let called = planner.catalog().function(call.function).cloned();
    let called = called.ok_or_else(|| DbError::internal("the function of files is gone"))?;
    // Rows that are left out have numbers, too.
    let filter = if ordinality { &[] } else { filter };
    let zones = zone::zones_of(planner, entry, &|column| function.columns.get(column).map(|c| c.ty), filter)?;
    let conditions =
        zones.into_iter().filter(|zone| zone.form == ZoneForm::Value).map(|zone| (zone.column, zone.op, zone.value)).collect();
    let wanted = &planner.level().needed[entry];
    // The whole row, which is put together above, has all of them.
    let needed: Vec<usize> = (0..function.columns.len())
        .filter(|column| wanted.contains_key(&0) || wanted.contains_key(&(*column as i16 + 1)))
        .collect();
    let kinds: Vec<Kind> = planner.kinds_of(&function.columns).to_vec();
    let number = ordinality.then_some(function.columns.len());
    let kinds: Vec<Kind> = needed.iter().map(|column| kinds[*column]).chain(number.map(|_| Kind::Int8)).collect();
    let layout = Layout(needed.iter().copied().chain(number).map(|column| (entry, column as i16 + 1)).collect());
    let columns = function.columns.iter().map(|c| RowColumn { name: c.name.clone(), ty: c.ty, typmod: c.typmod }).collect();
    let last = ordinality.then_some(LastColumn::Number);
    let node =
        FileScanNode { files: ScannedFiles::Function { source: called.source.clone(), args }, columns, needed, last, conditions };
    let mut node = planner.node(Op::FileScan(Arc::new(node)), kinds.into(), estimate);
    explain_output::scanned(planner, &mut node, Some(called.namespace), Some(&called.name), &described.name);
    explain_output::function_calls(planner, &mut node, std::slice::from_ref(&function));
    Ok(explain_output::scan_stage(planner, node, layout))
}
