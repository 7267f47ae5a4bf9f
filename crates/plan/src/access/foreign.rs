//! Foreign tables: scans of the files that they name.

use std::sync::Arc;

use melba_catalog::Relation;
use melba_catalog::foreign::{option, require_handler};
use melba_fmgr::{FileTable, RowColumn};
use melba_tree::Expr;
use melba_types::{DbError, Kind, Result};

use super::{source, zone};
use crate::explain_output;
use crate::file_scan::{FileScanNode, LastColumn, ScannedFiles};
use crate::layout::Layout;
use crate::node::{Estimate, Op, PlanNode};
use crate::planner::{Planner, Stage};
use crate::zone_filter::ZoneForm;

/// The column number of tableoid.
const TABLE_OID: i16 = -6;

/// A scan of a foreign table.
///
/// # Errors
/// 55000 when nothing can read the tables of its wrapper, 0A000 for system columns that its rows do not have.
pub fn create_foreign_scan(planner: &mut Planner<'_>, entry: usize, filter: &[Expr], estimate: Estimate) -> Result<Stage> {
    let relation = source::relation_of(planner, entry)?;
    let Some(table) = &relation.foreign else { return Err(DbError::internal("a foreign scan of another relation")) };
    require_handler(planner.catalog(), table.server)?;
    let wanted = planner.level().needed[entry].clone();
    if wanted.keys().any(|column| *column < 0 && *column != TABLE_OID) {
        return Err(DbError::unsupported("a system column other than tableoid of a foreign table"));
    }
    // Dropped columns are in no file.
    let live: Vec<usize> = (0..relation.columns.len()).filter(|at| !relation.columns[*at].dropped).collect();
    let place = |column: usize| live.binary_search(&column).ok();
    let ty = |column: usize| relation.columns.get(column).filter(|c| !c.dropped).map(|c| c.ty);
    let zones = zone::zones_of(planner, entry, &ty, filter)?.into_iter().filter(|zone| zone.form == ZoneForm::Value);
    let conditions = zones.filter_map(|zone| Some((place(zone.column)?, zone.op, zone.value))).collect();
    // The whole row, which is put together above, has all of them.
    let is_needed = |at: &usize| wanted.contains_key(&0) || wanted.contains_key(&(*at as i16 + 1));
    let needed: Vec<usize> = live.iter().copied().filter(is_needed).collect();
    let last = wanted.contains_key(&TABLE_OID).then_some(LastColumn::TableOid(relation.oid));
    let kinds: Vec<Kind> = needed.iter().map(|at| relation.columns[*at].kind).chain(last.map(|_| Kind::Oid)).collect();
    let numbers = needed.iter().map(|at| *at as i16 + 1).chain(last.map(|_| TABLE_OID));
    let layout = Layout(numbers.map(|number| (entry, number)).collect());
    let described = |at: &usize| {
        let column = &relation.columns[*at];
        RowColumn { name: column.name.clone(), ty: column.ty, typmod: column.typmod }
    };
    let files = FileTable {
        name: relation.name.clone(),
        options: table.options.clone(),
        column_options: live.iter().map(|at| table.column_options(*at as i16 + 1).to_vec()).collect(),
    };
    let node = FileScanNode {
        files: ScannedFiles::Table(Arc::new(files)),
        columns: live.iter().map(described).collect(),
        needed: needed.iter().filter_map(|at| place(*at)).collect(),
        last,
        conditions,
    };
    let mut node = planner.node(Op::FileScan(Arc::new(node)), kinds.into(), estimate);
    let alias = planner.level().entries[entry].name.clone();
    explain_output::scanned(planner, &mut node, Some(relation.namespace), Some(&relation.name), &alias);
    if filter.is_empty() {
        show_file(planner, &relation, &mut node);
    }
    Ok(explain_output::scan_stage(planner, node, layout))
}

/// Shows the file or the program: behind the filter, if there is one.
pub fn show_file(planner: &Planner<'_>, relation: &Relation, node: &mut PlanNode) {
    let options = relation.foreign.as_ref().map_or(&[][..], |table| &table.options);
    match option(options, "program") {
        Some(command) => planner.detail(node, "Foreign Program", || command.to_owned()),
        None => planner.detail(node, "Foreign File", || option(options, "filename").unwrap_or_default().to_owned()),
    }
}
