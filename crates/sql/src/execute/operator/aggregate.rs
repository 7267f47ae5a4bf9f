//! Hash aggregation, with grouping sets, DISTINCT and ordered aggregates.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_functions::Aggregate;
use melba_types::{Batch, Column, Datum, Kind, Result};

use super::build;
use super::pending::Pending;
use super::quicksort::quicksort;
use crate::execute::expression::{Vector, filter};
use crate::execute::{BATCH_ROWS, ExecContext, Operator};
use crate::plan::node::{AggregateNode, AggregateSpec};

/// Sort key, equality key and arguments of a row.
type Row = (Vec<u8>, Vec<u8>, Vec<Datum>);

/// State of one aggregate in one group.
struct State {
    aggregate: Box<dyn Aggregate>,
    /// DISTINCT and ordered aggregates: sort key, equality key, arguments.
    rows: Vec<Row>,
}

struct Group {
    /// Values of all grouping expressions; NULL for those not in the group's set.
    values: Vec<Datum>,
    set: usize,
    states: Vec<State>,
}

pub(super) struct AggregateOp {
    node: Arc<AggregateNode>,
    kinds: Arc<[Kind]>,
    input: Box<dyn Operator>,
    /// Results still to compute.
    groups: Option<std::vec::IntoIter<Group>>,
    pending: Pending,
}

/// The columns an aggregate reads from a batch.
struct Arguments {
    columns: Vec<Column>,
    keep: Option<Vec<bool>>,
    order: Vec<Column>,
}

impl AggregateOp {
    pub fn new(node: Arc<AggregateNode>, kinds: Arc<[Kind]>, ctx: &ExecContext) -> Result<AggregateOp> {
        let input = build(&node.input, ctx)?;
        Ok(AggregateOp { node, kinds, input, groups: None, pending: Pending::default() })
    }

    fn new_group(&self, ctx: &ExecContext, values: Vec<Datum>, set: usize) -> Result<Group> {
        let make = |spec: &AggregateSpec| -> Result<State> {
            Ok(State { aggregate: (spec.make)(&spec.call.context(ctx))?, rows: vec![] })
        };
        let states = self.node.aggregates.iter().map(make).collect::<Result<_>>()?;
        Ok(Group { values, set, states })
    }

    fn consume(&mut self, ctx: &ExecContext) -> Result<Vec<Group>> {
        let node = self.node.clone();
        let mut groups: Vec<Group> = Vec::new();
        let mut tables: Vec<HashMap<Box<[u8]>, u32>> = node.sets.iter().map(|_| HashMap::new()).collect();
        for (set, columns) in node.sets.iter().enumerate() {
            if columns.is_empty() {
                tables[set].insert(Box::default(), groups.len() as u32);
                groups.push(self.new_group(ctx, vec![Datum::Null; node.groups.len()], set)?);
            }
        }
        while let Some(batch) = self.input.next(ctx, BATCH_ROWS)? {
            ctx.check_interrupt()?;
            let keys = node.groups.iter().map(|g| g.eval_vector(ctx, &batch)).collect::<Result<Vec<_>>>()?;
            let arguments = node.aggregates.iter().map(|spec| arguments(spec, ctx, &batch)).collect::<Result<Vec<_>>>()?;
            for (set, table) in tables.iter_mut().enumerate() {
                let places = self.place(ctx, set, &keys, batch.rows, table, &mut groups)?;
                for (i, spec) in node.aggregates.iter().enumerate() {
                    feed(spec, i, ctx, &arguments[i], &places, &mut groups)?;
                }
            }
        }
        self.order(&mut groups);
        Ok(groups)
    }

    /// Groups come in key order where PostgreSQL would sort to aggregate (DISTINCT or ordered aggregates, ROLLUP): nothing in
    /// SQL says so, but people see it. A subtotal follows what it sums up.
    fn order(&self, groups: &mut [Group]) {
        let node = &self.node;
        let sorting = node.aggregates.iter().any(|a| a.distinct.is_some() || !a.order.is_empty());
        let mut sets: Vec<&Vec<usize>> = node.sets.iter().collect();
        sets.sort_by_key(|s| s.len());
        let rollup = sets.len() > 1 && sets.windows(2).all(|w| w[0].iter().all(|c| w[1].contains(c)));
        if !(rollup || sorting && node.sets.len() == 1) {
            return;
        }
        groups.sort_by_cached_key(|group| {
            let mut key = Vec::new();
            for (i, part) in node.parts.iter().enumerate() {
                if node.sets[group.set].contains(&i) {
                    part.encode(&group.values[i], &mut key);
                } else {
                    key.push(u8::MAX);
                }
            }
            key
        });
    }

    /// The group of each row of a batch in one grouping set.
    fn place(
        &self,
        ctx: &ExecContext,
        set: usize,
        keys: &[Vector<'_>],
        rows: usize,
        table: &mut HashMap<Box<[u8]>, u32>,
        groups: &mut Vec<Group>,
    ) -> Result<Vec<u32>> {
        let columns = &self.node.sets[set];
        if columns.is_empty() {
            return Ok(vec![table.get(&[][..]).copied().unwrap_or(0); rows]);
        }
        let mut places = Vec::with_capacity(rows);
        let mut key = Vec::new();
        for i in 0..rows {
            key.clear();
            for &c in columns {
                self.node.parts[c].encode(&keys[c].get(i), &mut key);
            }
            let place = match table.get(&key[..]) {
                Some(place) => *place,
                None => {
                    let place = groups.len() as u32;
                    let mut values = vec![Datum::Null; keys.len()];
                    for &c in columns {
                        values[c] = keys[c].get(i);
                    }
                    groups.push(self.new_group(ctx, values, set)?);
                    table.insert(key.as_slice().into(), place);
                    place
                }
            };
            places.push(place);
        }
        Ok(places)
    }

    /// The output row of a group.
    fn result(&self, ctx: &ExecContext, group: &mut Group, columns: &mut [Column]) -> Result<()> {
        let node = &self.node;
        let mut at = 0;
        for value in std::mem::take(&mut group.values) {
            columns[at].push(value);
            at += 1;
        }
        for (spec, state) in node.aggregates.iter().zip(&mut group.states) {
            let call = spec.call.context(ctx);
            if !state.rows.is_empty() {
                quicksort(&mut state.rows, &|a: &Row, b: &Row| a.0.cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
                let mut last: Option<Vec<u8>> = None;
                for (_, key, args) in std::mem::take(&mut state.rows) {
                    if spec.distinct.is_some() {
                        if last.as_ref() == Some(&key) {
                            continue;
                        }
                        last = Some(key);
                    }
                    state.aggregate.add(&call, &args)?;
                }
            }
            columns[at].push(state.aggregate.finish(&call)?);
            at += 1;
        }
        for grouping in &node.groupings {
            let set = &node.sets[group.set];
            let mask = grouping.iter().fold(0i32, |mask, g| mask << 1 | i32::from(!set.contains(g)));
            columns[at].push(Datum::Int4(mask));
            at += 1;
        }
        Ok(())
    }
}

fn arguments(spec: &AggregateSpec, ctx: &ExecContext, batch: &Batch) -> Result<Arguments> {
    let keep = match &spec.filter {
        None => None,
        Some(condition) => {
            let mut keep = vec![false; batch.rows];
            match filter(std::slice::from_ref(condition), ctx, batch)? {
                None => keep.fill(true),
                Some(rows) => rows.iter().for_each(|&r| keep[r as usize] = true),
            }
            Some(keep)
        }
    };
    // FILTER comes first: arguments of rows it leaves out are not evaluated.
    let input;
    let rows: Option<Vec<u32>> =
        keep.as_ref().map(|k| k.iter().enumerate().filter(|(_, k)| **k).map(|(i, _)| i as u32).collect());
    let source = match &rows {
        Some(rows) if rows.len() < batch.rows => {
            input = batch.take(rows);
            &input
        }
        _ => batch,
    };
    let spread = |column: Column| -> Column {
        match &rows {
            Some(rows) if rows.len() < batch.rows => {
                let mut at = vec![u32::MAX; batch.rows];
                rows.iter().enumerate().for_each(|(i, &r)| at[r as usize] = i as u32);
                // Rows left out may hold anything; the first value will do.
                let fill: Vec<u32> = at.iter().map(|&a| if a == u32::MAX { 0 } else { a }).collect();
                if column.is_empty() { column } else { column.take(&fill) }
            }
            _ => column,
        }
    };
    let columns = spec.call.args.iter().map(|a| Ok(spread(a.eval_batch(ctx, source)?))).collect::<Result<_>>()?;
    let order = spec.order.iter().map(|(e, _)| Ok(spread(e.eval_batch(ctx, source)?))).collect::<Result<_>>()?;
    Ok(Arguments { columns, keep, order })
}

/// Hands a batch's rows to the states of one aggregate.
fn feed(
    spec: &AggregateSpec,
    index: usize,
    ctx: &ExecContext,
    arguments: &Arguments,
    places: &[u32],
    groups: &mut [Group],
) -> Result<()> {
    let call = spec.call.context(ctx);
    let mut rows: Vec<u32> = Vec::with_capacity(places.len());
    for row in 0..places.len() {
        if arguments.keep.as_ref().is_some_and(|k| !k[row]) {
            continue;
        }
        if spec.strict && arguments.columns.iter().any(|c| c.is_null(row)) {
            continue;
        }
        rows.push(row as u32);
    }
    if spec.distinct.is_some() || !spec.order.is_empty() {
        for row in rows {
            let at = row as usize;
            let mut args: Vec<Datum> = arguments.columns.iter().map(|c| c.get(at)).collect();
            let mut sort = Vec::new();
            for (column, (_, part)) in arguments.order.iter().zip(&spec.order) {
                part.encode(&column.get(at), &mut sort);
            }
            if let Some(direct) = spec.hypothetical {
                let mut own = Vec::new();
                for (arg, (_, part)) in args[..direct.min(args.len())].iter().zip(&spec.order) {
                    part.encode(arg, &mut own);
                }
                args.push(Datum::Int4(sort.cmp(&own) as i32));
            }
            let mut key = Vec::new();
            for (part, arg) in spec.distinct.iter().flatten().zip(&args) {
                part.encode(arg, &mut key);
            }
            groups[places[at] as usize].states[index].rows.push((sort, key, args));
        }
        return Ok(());
    }
    let columns: Vec<&Column> = arguments.columns.iter().collect();
    let first = rows.first().map_or(0, |&r| places[r as usize]);
    if rows.iter().all(|&r| places[r as usize] == first) {
        if !rows.is_empty() {
            groups[first as usize].states[index].aggregate.add_batch(&call, &columns, &rows)?;
        }
        return Ok(());
    }
    // Stable: a group's rows stay in input order.
    rows.sort_by_key(|&r| places[r as usize]);
    for run in rows.chunk_by(|&a, &b| places[a as usize] == places[b as usize]) {
        let group = places[run[0] as usize] as usize;
        groups[group].states[index].aggregate.add_batch(&call, &columns, run)?;
    }
    Ok(())
}

impl Operator for AggregateOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if self.groups.is_none() {
            let groups = self.consume(ctx)?;
            self.groups = Some(groups.into_iter());
        }
        loop {
            if let Some(batch) = self.pending.take(limit) {
                return Ok(Some(batch));
            }
            let Some(groups) = &mut self.groups else { return Ok(None) };
            let mut some: Vec<Group> = groups.by_ref().take(BATCH_ROWS).collect();
            if some.is_empty() {
                return Ok(None);
            }
            let mut columns: Vec<Column> = self.kinds.iter().map(|k| Column::with_capacity(*k, some.len())).collect();
            for group in &mut some {
                self.result(ctx, group, &mut columns)?;
            }
            let batch = Batch { columns, rows: some.len() };
            match filter(&self.node.having, ctx, &batch)? {
                None => self.pending.put(batch),
                Some(rows) => self.pending.put(batch.take(&rows)),
            }
        }
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.groups = None;
        self.pending.clear();
        self.input.rescan(ctx)
    }
}
