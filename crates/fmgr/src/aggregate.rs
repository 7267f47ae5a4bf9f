//! Aggregates: the state of one group, and of many groups together.

use std::sync::Arc;

use melba_types::{Column, Datum, Result};

use crate::CallInfo;

/// State of one aggregate in one group.
pub trait Aggregate: Send {
    /// Takes the direct arguments of an ordered-set aggregate, once, before any row.
    fn begin(&mut self, _call: &CallInfo<'_>, _direct: &[Datum]) -> Result<()> {
        Ok(())
    }
    /// Takes one row's arguments (nulls included unless the transition function is strict).
    fn add(&mut self, call: &CallInfo<'_>, args: &[Datum]) -> Result<()>;
    /// Takes rows `rows` of the argument columns; the default calls `add`.
    fn add_batch(&mut self, call: &CallInfo<'_>, args: &[&Column], rows: &[u32]) -> Result<()> {
        let mut datums = Vec::with_capacity(args.len());
        for &row in rows {
            datums.clear();
            datums.extend(args.iter().map(|c| c.get(row as usize)));
            self.add(call, &datums)?;
        }
        Ok(())
    }
    /// Undoes the earliest `add` (moving window frames); false when it cannot.
    fn remove(&mut self, _call: &CallInfo<'_>, _args: &[Datum]) -> Result<bool> {
        Ok(false)
    }
    /// Adds the state of another instance of the same aggregate.
    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()>;
    /// The result so far. May be called more than once (window frames).
    fn finish(&self, call: &CallInfo<'_>) -> Result<Datum>;
    fn as_any(self: Box<Self>) -> Box<dyn std::any::Any>;
    /// Whether its memory grows with its rows: then `memory` is called after every batch.
    fn grows(&self) -> bool {
        false
    }
    /// Bytes held, roughly. Costs little.
    fn memory(&self) -> usize {
        64
    }
    /// The same aggregate with the states of all groups together, for those that have that.
    fn grouped(&self) -> Option<Box<dyn GroupedAggregate>> {
        None
    }
    /// Whether states of parts of the rows, taken in any order and merged, result in exactly the state of all of them.
    fn combines(&self) -> bool {
        self.grouped().is_some()
    }
}

/// The rows of a batch that an aggregate takes.
#[derive(Clone, Copy)]
pub enum TakenRows<'a> {
    /// The first ones, as many as these.
    All(usize),
    These(&'a [u32]),
}

impl TakenRows<'_> {
    pub fn len(self) -> usize {
        match self {
            TakenRows::All(count) => count,
            TakenRows::These(rows) => rows.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn for_each(self, mut f: impl FnMut(usize)) {
        match self {
            TakenRows::All(count) => (0..count).for_each(f),
            TakenRows::These(rows) => rows.iter().for_each(|row| f(*row as usize)),
        }
    }
}

/// States of one aggregate in many groups, which are numbered from 0.
pub trait GroupedAggregate: Send + Sync {
    /// Makes room for `groups` groups.
    fn resize(&mut self, groups: usize);
    /// Takes rows of the argument columns, all of them if none are named; `places` has the group of each row of the columns. In
    /// each group the result equals that of `Aggregate::add_batch` with the same rows in their order.
    fn add(&mut self, call: &CallInfo<'_>, args: &[&Column], rows: Option<&[u32]>, places: &[u32]) -> Result<()>;
    /// The same of rows that are all of one group.
    fn add_to(&mut self, call: &CallInfo<'_>, args: &[&Column], group: usize, rows: TakenRows<'_>) -> Result<()>;
    /// Adds states of other rows, of the same aggregate: those of its group `groups[i]` to the group `places[i]`.
    fn merge(&mut self, other: &dyn GroupedAggregate, groups: &[u32], places: &[u32]) -> Result<()>;
    fn as_any(&self) -> &dyn std::any::Any;
    /// A group's result.
    fn finish(&self, call: &CallInfo<'_>, group: usize) -> Result<Datum>;
    /// Appends the results of some groups.
    fn finish_all(&self, call: &CallInfo<'_>, groups: &[u32], out: &mut Column) -> Result<()> {
        groups.iter().try_for_each(|&group| self.finish(call, group as usize).map(|result| out.push(result)))
    }
    /// Bytes that a group takes.
    fn group_bytes(&self) -> usize;
    /// Bytes of memory that differ between groups.
    fn other_bytes(&self) -> usize {
        0
    }
}

/// The same of any aggregate.
pub type MakeAggregate = Arc<dyn Fn(&CallInfo<'_>) -> Result<Box<dyn Aggregate>> + Send + Sync>;

/// Makes the state of a built-in aggregate for one group.
pub type AggregateFn = fn(&CallInfo<'_>) -> Result<Box<dyn Aggregate>>;
