//! Finds the members of a family that a scan reads: by constants when it is planned, and by other values when it begins.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use melba_catalog::Relation;
use melba_fmgr::Session;
use melba_types::{Datum, Oid, Result};

use melba_expression::{Evaluation, Expression};
use melba_table::PartitionMap;
use melba_table::matching::{Tests, matching};
use melba_tree::Expr;

/// The partitioned tables of a family with the tests of their keys.
pub(super) struct Pruner {
    /// The root first.
    pub tables: Vec<PrunedTable>,
    /// By the position of a value in the tests.
    pub values: Vec<Expr>,
    pub constants: Vec<Option<Datum>>,
}

/// A partitioned table, and the tests that conditions give for its key.
pub(super) struct PrunedTable {
    pub relation: Arc<Relation>,
    pub map: Arc<PartitionMap>,
    pub tests: Tests<usize>,
}

impl Pruner {
    /// The tables and partitions that may have rows according to constants.
    pub fn constant(&self, session: &dyn Session) -> Result<HashSet<Oid>> {
        let tables: HashMap<Oid, (Arc<PartitionMap>, Tests<usize>)> =
            self.tables.iter().map(|t| (t.relation.oid, (t.map.clone(), t.tests.clone()))).collect();
        survivors(session, self.tables[0].relation.oid, &tables, &self.constants)
    }

    /// Some of the values are known only when the plan runs.
    pub fn is_variable(&self) -> bool {
        self.constants.iter().any(Option::is_none)
    }
}

/// The tests of a family whose values are known when the plan runs.
#[derive(Debug)]
pub struct Pruning {
    pub(super) root: Oid,
    pub(super) tables: HashMap<Oid, (Arc<PartitionMap>, Tests<usize>)>,
    pub(super) values: Vec<Expression>,
    pub(super) members: Vec<Oid>,
}

impl Pruning {
    /// Which members may have rows now.
    pub fn members(&self, ctx: &Evaluation) -> Result<Vec<bool>> {
        let values = self.values.iter().map(|e| e.eval_row(ctx, &[]).map(Some)).collect::<Result<Vec<_>>>()?;
        let kept = survivors(&*ctx.session, self.root, &self.tables, &values)?;
        Ok(self.members.iter().map(|m| kept.contains(m)).collect())
    }
}

/// A table's partitions that may have rows, and theirs.
fn survivors(
    session: &dyn Session,
    root: Oid,
    tables: &HashMap<Oid, (Arc<PartitionMap>, Tests<usize>)>,
    values: &[Option<Datum>],
) -> Result<HashSet<Oid>> {
    let mut all = vec![root];
    let mut at = 0;
    while at < all.len() {
        if let Some((map, tests)) = tables.get(&all[at]) {
            let known = tests.with(&|i: &usize| values[*i].clone());
            all.extend(matching(session, map, &known)?);
        }
        at += 1;
    }
    Ok(all.into_iter().collect())
}
