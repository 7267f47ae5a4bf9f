//! Groups in vectors by their numbers.

use std::ops::Range;

use melba_expression::filter;
use melba_fmgr::{Aggregate, GroupedAggregate};
use melba_plan::node::{AggregateNode, AggregateSpec};
use melba_types::{Batch, Column, ColumnData, DbError, Kind, Result};

use crate::ExecContext;

/// State of one aggregate in one group.
pub(super) struct TransitionState {
    pub aggregate: Box<dyn Aggregate>,
    /// The memory at the last check, if it grows.
    pub memory: usize,
}

impl TransitionState {
    /// The growth in bytes since the last call.
    pub fn grown(&mut self) -> usize {
        if !self.aggregate.grows() {
            return 0;
        }
        let memory = self.aggregate.memory();
        let grown = memory.saturating_sub(self.memory);
        self.memory = memory;
        grown
    }
}

/// Groups, numbered from 0 on, in vectors by their numbers.
#[derive(Default)]
pub(super) struct Groups {
    pub count: usize,
    /// The grouping set of each; empty where there is one set.
    sets: Vec<u32>,
    /// Their numbers in order of output; empty where that is the order of the numbers.
    pub order: Vec<u32>,
    /// By grouping expression: its values; NULL for those not in the group's set.
    pub keys: Vec<Column>,
    /// By aggregate, if it has states in columns.
    pub columns: Vec<Option<Box<dyn GroupedAggregate>>>,
    /// By aggregate: the place of its state among those of a group, if it has none in columns.
    boxed: Vec<usize>,
    /// The states of the aggregates that have none in columns, those of a group together.
    pub states: Vec<TransitionState>,
    /// How many of them a group has.
    pub states_a_group: usize,
}

impl Groups {
    pub fn new(node: &AggregateNode, ctx: &ExecContext) -> Result<Groups> {
        let column = |spec: &AggregateSpec| -> Result<Option<Box<dyn GroupedAggregate>>> {
            // Those that wait for the end take the rows of one group after the other.
            Ok(if sorts(spec) { None } else { (spec.make)(&spec.call.info(ctx))?.grouped() })
        };
        let columns = node.aggregates.iter().map(column).collect::<Result<Vec<_>>>()?;
        let mut states_a_group = 0;
        let mut boxed = Vec::with_capacity(columns.len());
        for column in &columns {
            boxed.push(states_a_group);
            states_a_group += usize::from(column.is_none());
        }
        let keys = node.groups.iter().map(|group| Column::with_capacity(group.kind, 0)).collect();
        Ok(Groups { states_a_group, keys, columns, boxed, ..Groups::default() })
    }

    /// About the size of a new group beside its key and its values.
    pub fn bytes_a_group(&self) -> usize {
        state_bytes(self.states_a_group) + self.columns.iter().flatten().map(|column| column.group_bytes()).sum::<usize>()
    }

    /// Makes room for the states of all groups.
    pub fn resize(&mut self) {
        let groups = self.count;
        self.columns.iter_mut().flatten().for_each(|column| column.resize(groups));
    }

    /// Adds a group of a set, whose values and states are already in place.
    pub fn push(&mut self, node: &AggregateNode, set: usize) {
        if node.sets.len() > 1 {
            self.sets.push(set as u32);
        }
        self.count += 1;
    }

    pub fn set_of(&self, number: u32) -> usize {
        self.sets.get(number as usize).map_or(0, |set| *set as usize)
    }

    fn place_of_state(&self, number: u32, aggregate: usize) -> usize {
        number as usize * self.states_a_group + self.boxed[aggregate]
    }

    /// The state of an aggregate that has none in columns.
    pub fn state_mut(&mut self, number: u32, aggregate: usize) -> &mut TransitionState {
        let place = self.place_of_state(number, aggregate);
        &mut self.states[place]
    }

    /// Takes the groups of another, of the node's one set: `places` has their numbers here, `new` of which are behind all present
    /// ones. Keys and states in columns are taken separately.
    pub fn take_states(&mut self, others: Vec<TransitionState>, places: &[u32], new: usize) -> Result<()> {
        let mut others = others.into_iter();
        for place in places.iter().filter(|_| self.states_a_group > 0) {
            let own = *place as usize * self.states_a_group;
            for at in own..own + self.states_a_group {
                let Some(other) = others.next() else { return Err(DbError::internal("a group without its states")) };
                match self.states.get_mut(at) {
                    Some(state) => state.aggregate.merge(other.aggregate)?,
                    None => self.states.push(other),
                }
            }
        }
        self.count += new;
        Ok(())
    }

    /// The output rows of some groups, without those that HAVING excludes.
    pub fn results(&self, node: &AggregateNode, kinds: &[Kind], ctx: &ExecContext, some: Range<usize>) -> Result<Batch> {
        let numbers: Vec<u32> = match &self.order[..] {
            [] => some.map(|number| number as u32).collect(),
            order => order[some].to_vec(),
        };
        let mut columns: Vec<Column> = self.keys.iter().map(|key| key.take(&numbers)).collect();
        for (i, spec) in node.aggregates.iter().enumerate() {
            let call = spec.call.info(ctx);
            let mut column = Column::with_capacity(kinds[columns.len()], numbers.len());
            match &self.columns[i] {
                Some(states) => states.finish_all(&call, &numbers, &mut column)?,
                None => {
                    for number in &numbers {
                        column.push(self.states[self.place_of_state(*number, i)].aggregate.finish(&call)?);
                    }
                }
            }
            columns.push(column);
        }
        for grouping in &node.groupings {
            let mask = |set: &Vec<usize>| grouping.iter().fold(0i32, |mask, g| mask << 1 | i32::from(!set.contains(g)));
            let masks = numbers.iter().map(|number| mask(&node.sets[self.set_of(*number)])).collect();
            columns.push(Column::new(ColumnData::Int4(masks)));
        }
        let batch = Batch { columns, rows: numbers.len() };
        Ok(match filter(&node.having, ctx, &batch)? {
            None => batch,
            Some(rows) => batch.take(&rows),
        })
    }
}

/// Whether an aggregate waits for the end, and takes its rows in order.
pub(super) fn sorts(spec: &AggregateSpec) -> bool {
    spec.distinct.is_some() || !spec.order.is_empty()
}

/// About the size of `boxed` states that are not in columns.
fn state_bytes(boxed: usize) -> usize {
    boxed * (size_of::<TransitionState>() + 96)
}
