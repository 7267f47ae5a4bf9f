//! Rows of many groups: a team splits them by their keys first, and then each part is aggregated by one member. If each member
//! collected groups from its own rows, a single thread would have to merge them one by one.

use melba_expression::Vector;
use melba_plan::node::AggregateNode;
use melba_spill::{Partitions, Run};
use melba_types::Result;

use super::pass::Work;
use super::table::GroupTable;
use crate::ExecContext;
use crate::parallel::{self, Workers};
use crate::team::Team;

/// Splits the rows of the input by the keys of its one grouping set; the parts, and the bytes they take on disk.
pub(super) fn scatter(node: &AggregateNode, ctx: &ExecContext, team: Team, workers: &Workers) -> Result<(Vec<Work>, u64)> {
    let split = |ctx: &ExecContext| -> Result<(Vec<Run>, u64)> {
        let resources = ctx.resources();
        let mut parts = Partitions::in_memory(resources, resources.hash_bytes, node.scatters)?;
        let table = GroupTable::new(node, 0);
        parallel::each_batch(ctx, &node.input, |batch| {
            let keys = node.groups.iter().map(|g| g.eval_vector(ctx, &batch)).collect::<Result<Vec<Vector<'_>>>>()?;
            let mut of_rows = table.keys(node, 0, &keys, batch.rows, false);
            let to: Vec<u32> = (0..batch.rows).map(|row| of_rows.with_bytes(row, |key| parts.part_of(key))).collect();
            drop(of_rows);
            drop(keys);
            parts.push(batch, &to)
        })?;
        let disk = parts.bytes();
        Ok((parts.finish()?, disk))
    };
    let (mut work, mut disk) = (Vec::<Work>::new(), 0);
    for (runs, bytes) in parallel::run(ctx, team, workers, split)? {
        disk += bytes;
        work.resize_with(runs.len(), || Work { set: 0, runs: Vec::new(), level: 1 });
        work.iter_mut().zip(runs).for_each(|(work, run)| work.runs.push(run));
    }
    work.retain(|work| work.runs.iter().any(|run| run.rows > 0));
    Ok((work, disk))
}
