//! One pass over rows: the groups that fit, and files with the rows of all others.

use std::ops::Range;

use melba_engine::Held;
use melba_fmgr::TakenRows;
use melba_types::{Batch, ByteStrings, Column, ColumnData, Datum, Kind, Result};

use super::by_group::ByGroup;
use super::groups::{Groups, TransitionState, sorts};
use super::input::{Arguments, value_bytes};
use super::table::GroupTable;
use super::word_map::NONE;
use crate::{ExecContext, Operator, parallel};
use melba_expression::{Expression, Node, Pieces, Vector};
use melba_plan::node::{AggregateNode, AggregateSpec};
use melba_spill::{Partitions, Run, Sorter};
use melba_types::BATCH_ROWS;

/// The place of a row whose group another pass will have.
const ELSEWHERE: u32 = u32::MAX;

/// Rows of a batch a group, on average, from which the rows of each group are found first and then taken together.
const ROWS_A_GROUP_APART: usize = 32;

/// Room made at once for the groups of a later pass, most of whose rows may be of few groups.
const RESERVED_GROUPS_MAX: u64 = 1 << 17;

/// Rows of one grouping set for a later pass.
pub(super) struct Work {
    pub set: usize,
    pub runs: Vec<Run>,
    pub level: u32,
}

impl Work {
    /// Hands all rows to `take`.
    fn each_batch(self, ctx: &ExecContext, mut take: impl FnMut(&Batch) -> Result<()>) -> Result<()> {
        self.runs.into_iter().try_for_each(|run| {
            run.each_batch(|batch| {
                ctx.check_interrupt()?;
                take(batch)
            })
        })
    }

    /// The pass over these rows.
    pub fn pass(self, node: &AggregateNode, ctx: &ExecContext) -> Result<Done> {
        let mut pass = Pass::new(node, ctx, self.set..self.set + 1, self.level)?;
        let rows: u64 = self.runs.iter().map(|run| run.rows).sum();
        pass.tables[self.set].reserve(rows.min(RESERVED_GROUPS_MAX) as usize);
        self.each_batch(ctx, |batch| pass.take(batch))?;
        pass.finish()
    }
}

pub(super) struct Pass<'a> {
    node: &'a AggregateNode,
    ctx: &'a ExecContext<'a>,
    sets: Range<usize>,
    level: u32,
    groups: Groups,
    /// By grouping set: the groups by key.
    tables: Vec<GroupTable>,
    /// By grouping set.
    elsewhere: Vec<Option<Partitions>>,
    /// By aggregate: DISTINCT and ordered ones wait for the end.
    sorters: Vec<Option<Sorter>>,
    held: Held,
    /// The estimated size of groups, plus the growth of states.
    bytes: usize,
    /// Part of it that the budget did not have when the pass became full.
    unaccounted: usize,
    /// No new groups are taken.
    full: bool,
    /// Keys or arguments are computed and may be long.
    makes_values: bool,
    pieces: Pieces,
    /// Their growth by the last rows.
    piece_bytes: usize,
    /// Keys that may be another value when evaluated again cannot be split.
    fixed: bool,
}

/// The groups that a member of a team has collected.
pub(super) struct Partial {
    pub groups: Groups,
    pub tables: Vec<GroupTable>,
    pub held: Held,
    pub bytes: usize,
    pub work: Vec<Work>,
}

/// The result of a pass.
pub(super) struct Done {
    pub groups: Groups,
    /// Results that were already computed, the next ones last; then there are no groups.
    pub rows: Vec<Batch>,
    /// Of these, the groups that HAVING has excluded.
    pub left_out: usize,
    pub held: Held,
    pub work: Vec<Work>,
    pub memory: usize,
    pub disk: u64,
}

impl Done {
    /// Computes the results, which is the statement's thread's work otherwise, where HAVING may leave out most of them.
    pub fn with_rows(mut self, node: &AggregateNode, kinds: &[Kind], ctx: &ExecContext) -> Result<Done> {
        if node.having.is_empty() || ctx.team().is_none() || !node.having.iter().all(Expression::is_parallel_safe) {
            return Ok(self);
        }
        let groups = std::mem::take(&mut self.groups);
        self.left_out = groups.count;
        for from in (0..groups.count).step_by(BATCH_ROWS).rev() {
            let batch = groups.results(node, kinds, ctx, from..(from + BATCH_ROWS).min(groups.count))?;
            self.left_out -= batch.rows;
            if batch.rows > 0 {
                self.rows.push(batch);
            }
        }
        Ok(self)
    }
}

impl<'a> Pass<'a> {
    pub fn new(node: &'a AggregateNode, ctx: &'a ExecContext<'a>, sets: Range<usize>, level: u32) -> Result<Pass<'a>> {
        let sorter = |spec: &AggregateSpec| sorts(spec).then(|| Sorter::new(ctx.resources(), None, true));
        let mut pass = Pass {
            node,
            ctx,
            level,
            groups: Groups::new(node, ctx)?,
            tables: (0..node.sets.len()).map(|set| GroupTable::new(node, set)).collect(),
            elsewhere: node.sets.iter().map(|_| None).collect(),
            sorters: node.aggregates.iter().map(sorter).collect(),
            held: ctx.resources().held(),
            bytes: 0,
            unaccounted: 0,
            full: false,
            makes_values: node.groups.iter().chain(node.aggregates.iter().flat_map(|a| &a.call.args)).any(|e| e.makes_values()),
            pieces: Pieces::default(),
            piece_bytes: 0,
            fixed: !node.groups.iter().any(|g| g.is_volatile()),
            sets: sets.clone(),
        };
        for set in sets.filter(|_| level == 0) {
            if node.sets[set].is_empty() {
                pass.tables[set].insert_only(pass.groups.count as u32);
                pass.groups.keys.iter_mut().for_each(|key| key.push(Datum::Null));
                pass.new_group(set)?;
            }
        }
        Ok(pass)
    }

    /// Adds a group, whose values are already in place.
    fn new_group(&mut self, set: usize) -> Result<()> {
        if self.groups.states_a_group > 0 {
            for (spec, column) in self.node.aggregates.iter().zip(&self.groups.columns) {
                if column.is_none() {
                    let aggregate = (spec.make)(&spec.call.info(self.ctx))?;
                    self.groups.states.push(TransitionState { aggregate, memory: 0 });
                }
            }
        }
        self.bytes += self.groups.bytes_a_group();
        self.groups.push(self.node, set);
        Ok(())
    }

    /// Takes all rows of an input.
    pub fn take_all(&mut self, ctx: &ExecContext, input: &mut dyn Operator) -> Result<()> {
        while let Some(batch) = input.next(ctx, parallel::rows_at_once(&self.node.input))? {
            ctx.check_interrupt()?;
            self.take(&batch)?;
        }
        Ok(())
    }

    /// Takes some rows, in pieces when the values computed from them may be long.
    pub fn take(&mut self, batch: &Batch) -> Result<()> {
        let mut at = 0;
        while at < batch.rows {
            let rows = if self.makes_values { self.pieces.next(batch.rows - at) } else { batch.rows };
            self.piece_bytes = 0;
            match rows == batch.rows {
                true => self.take_piece(batch)?,
                false => self.take_piece(&batch.slice(at..at + rows, None))?,
            }
            self.pieces.note_output(rows, self.piece_bytes);
            at += rows;
        }
        Ok(())
    }

    fn take_piece(&mut self, batch: &Batch) -> Result<()> {
        let (node, ctx) = (self.node, self.ctx);
        let keys = node.groups.iter().map(|g| g.eval_vector(ctx, batch)).collect::<Result<Vec<_>>>()?;
        let mut shared: Option<Vec<Arguments>> = None;
        self.piece_bytes += keys.iter().map(Vector::owned_bytes).sum::<usize>();
        for set in self.sets.clone() {
            if node.sets[set].is_empty() {
                let arguments = match &shared {
                    Some(arguments) => arguments,
                    None => shared.insert(evaluate(node, ctx, batch)?),
                };
                if self.makes_values {
                    self.piece_bytes += owned_bytes(arguments);
                }
                self.take_as_one_group(set, arguments, batch.rows)?;
                continue;
            }
            let mut places = self.place(set, &keys, batch)?;
            let (part, own);
            let arguments = if places.contains(&ELSEWHERE) {
                // Rows of later passes are evaluated there.
                let kept: Vec<u32> = (0..batch.rows as u32).filter(|r| places[*r as usize] != ELSEWHERE).collect();
                places = kept.iter().map(|r| places[*r as usize]).collect();
                part = batch.take(&kept);
                own = evaluate(node, ctx, &part)?;
                &own
            } else {
                match &shared {
                    Some(arguments) => arguments,
                    None => shared.insert(evaluate(node, ctx, batch)?),
                }
            };
            if self.makes_values {
                self.piece_bytes += owned_bytes(arguments);
            }
            self.groups.resize();
            let mut by_group = None;
            for (i, arguments) in arguments.iter().enumerate() {
                self.feed(i, arguments, &places, &mut by_group)?;
            }
        }
        self.account()
    }

    /// Takes the rows of a batch in a grouping set without columns.
    fn take_as_one_group(&mut self, set: usize, arguments: &[Arguments], rows: usize) -> Result<()> {
        let only = self.tables[set].only();
        self.groups.resize();
        let (mut places, mut by_group) = (Vec::new(), None);
        for (i, of_aggregate) in arguments.iter().enumerate() {
            let spec = &self.node.aggregates[i];
            match &mut self.groups.columns[i] {
                Some(states) if self.sorters[i].is_none() && of_aggregate.takes_all(spec) => {
                    let columns: Vec<&Column> = of_aggregate.columns.iter().map(|c| &**c).collect();
                    states.add_to(&spec.call.info(self.ctx), &columns, only as usize, TakenRows::All(rows))?;
                }
                _ => {
                    places.resize(rows, only);
                    self.feed(i, of_aggregate, &places, &mut by_group)?;
                }
            }
        }
        Ok(())
    }

    /// The group of each row of a batch in one grouping set, which has columns.
    fn place(&mut self, set: usize, keys: &[Vector<'_>], batch: &Batch) -> Result<Vec<u32>> {
        let node = self.node;
        let of_set: Vec<&Vector<'_>> = node.keys[set].iter().map(|c| &keys[*c]).collect();
        let coded = self.tables[set].by_codes.places(&of_set, batch.rows);
        if let Some(places) = coded.as_ref().and_then(|coded| self.tables[set].by_codes.known(coded)) {
            return Ok(places);
        }
        let mut places = Vec::with_capacity(batch.rows);
        let (mut out, mut parts): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut new = Vec::new();
        let mut of_rows = self.tables[set].keys(node, set, keys, batch.rows, coded.is_some());
        let known = self.tables[set].get_all(&of_rows, batch.rows);
        for (i, group) in known.into_iter().enumerate() {
            if group != NONE {
                places.push(group);
                continue;
            }
            let code = coded.as_ref().map(|coded| coded[i]);
            if let Some(place) = code.and_then(|code| self.tables[set].by_codes.get(code)) {
                places.push(place);
                continue;
            }
            if let Some(place) = self.tables[set].get(&mut of_rows, i) {
                places.push(place);
                code.into_iter().for_each(|code| self.tables[set].by_codes.set(code, place));
                continue;
            }
            if self.full {
                let elsewhere = self.elsewhere_of(set)?;
                out.push(i as u32);
                parts.push(elsewhere.part_of(of_rows.encode(i)));
                places.push(ELSEWHERE);
                continue;
            }
            let place = self.groups.count as u32;
            new.push(i as u32);
            self.bytes += self.tables[set].insert(&mut of_rows, i, place);
            self.new_group(set)?;
            places.push(place);
        }
        if !new.is_empty() {
            self.append_keys(set, keys, batch, &new);
        }
        if !out.is_empty() {
            self.elsewhere_of(set)?.push(batch.take(&out), &parts)?;
        }
        Ok(places)
    }

    /// Adds the grouping expressions' values of groups that begin with some rows, as columns hold them.
    fn append_keys(&mut self, set: usize, keys: &[Vector<'_>], batch: &Batch, rows: &[u32]) {
        for (c, key) in self.groups.keys.iter_mut().enumerate() {
            let group = &self.node.groups[c];
            let values = match (&group.node, &keys[c]) {
                _ if !self.node.sets[set].contains(&c) => Err(&Datum::Null),
                (Node::Column(column), _) => Ok(&batch.columns[*column]),
                (_, Vector::Borrowed(column)) => Ok(*column),
                (_, Vector::Owned(column)) => Ok(column),
                (_, Vector::Scalar(value)) => Err(value),
            };
            match values {
                Ok(column) => {
                    let values = column.take(rows);
                    self.bytes += values.memory_bytes();
                    key.append(&values);
                }
                Err(value) => {
                    self.bytes += rows.len() * value_bytes(group.kind, value);
                    rows.iter().for_each(|_| key.push(value.clone()));
                }
            }
        }
    }

    fn elsewhere_of(&mut self, set: usize) -> Result<&mut Partitions> {
        let slot = &mut self.elsewhere[set];
        match slot {
            Some(partitions) => Ok(partitions),
            None => {
                let resources = self.ctx.resources();
                Ok(slot.insert(Partitions::new(resources, resources.hash_bytes, self.level)?))
            }
        }
    }

    /// Hands rows to the states of one aggregate, or to its sorter.
    fn feed(&mut self, index: usize, arguments: &Arguments, places: &[u32], by_group: &mut Option<ByGroup>) -> Result<()> {
        let spec = &self.node.aggregates[index];
        let taken = || (0..places.len() as u32).filter(|row| arguments.takes(spec, *row)).collect::<Vec<u32>>();
        if let Some(sorter) = &mut self.sorters[index] {
            let (batch, keys) = arguments.to_sort(spec, &taken(), places);
            return sorter.push(batch, keys);
        }
        let columns: Vec<&Column> = arguments.columns.iter().map(|c| &**c).collect();
        let takes_all = arguments.takes_all(spec);
        // States lie in columns: a row's is found by its place, unless the rows of a batch are of so few groups that each is better taken
        // alone.
        let is_apart = self.groups.count <= places.len() / ROWS_A_GROUP_APART;
        if let Some(states) = self.groups.columns[index].as_mut().filter(|_| !is_apart) {
            let rows = if takes_all { None } else { Some(taken()) };
            return states.add(&spec.call.info(self.ctx), &columns, rows.as_deref(), places);
        }
        let mut taken = Vec::new();
        for (group, rows) in by_group.get_or_insert_with(|| ByGroup::new(places, self.groups.count)).iter() {
            let rows = if takes_all {
                rows
            } else {
                taken.clear();
                taken.extend(rows.iter().copied().filter(|row| arguments.takes(spec, *row)));
                &taken
            };
            if !rows.is_empty() {
                self.add(index, group, &columns, rows)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, index: usize, group: u32, columns: &[&Column], rows: &[u32]) -> Result<()> {
        let call = self.node.aggregates[index].call.info(self.ctx);
        if let Some(states) = &mut self.groups.columns[index] {
            return states.add_to(&call, columns, group as usize, TakenRows::These(rows));
        }
        let state = self.groups.state_mut(group, index);
        state.aggregate.add_batch(&call, columns, rows)?;
        self.bytes += state.grown();
        Ok(())
    }

    /// Compares the memory held with the limit.
    fn account(&mut self) -> Result<()> {
        let bytes = self.bytes + self.groups.columns.iter().flatten().map(|column| column.other_bytes()).sum::<usize>();
        if self.full || !self.fixed || self.groups.count <= self.sets.len() {
            return Ok(self.held.set(bytes - self.unaccounted)?);
        }
        let resources = self.ctx.resources();
        if !resources.holds(&mut self.held, bytes, resources.hash_bytes) {
            self.full = true;
            if !self.held.try_set(bytes) {
                self.unaccounted = bytes - self.held.bytes();
            }
        }
        Ok(())
    }

    /// The member's rows have ended. No aggregate waits for the end with them.
    pub fn into_partial(mut self) -> Result<Partial> {
        let (work, _) = self.work()?;
        self.groups.resize();
        Ok(Partial { groups: self.groups, tables: self.tables, held: self.held, bytes: self.bytes, work })
    }

    /// Takes the members' groups of one grouping set.
    pub fn take_partials(&mut self, partials: Vec<Partial>) -> Result<()> {
        let mut work = Vec::new();
        for (i, partial) in partials.into_iter().enumerate() {
            work.extend(self.take_partial(partial, i == 0)?);
            self.ctx.check_interrupt()?;
        }
        // Rows that did not fit in members' memory: some are of groups that another one has.
        let ctx = self.ctx;
        work.into_iter().try_for_each(|part| part.each_batch(ctx, |batch| self.take(batch)))
    }

    /// Adds the groups of a member; returns the rows that did not fit in its memory.
    fn take_partial(&mut self, partial: Partial, is_first: bool) -> Result<Vec<Work>> {
        let Partial { mut groups, mut tables, held, bytes, work } = partial;
        if is_first {
            (self.groups, self.tables, self.held, self.bytes) = (groups, tables, held, bytes);
            return Ok(work);
        }
        drop(held);
        let known = self.groups.count;
        let Some(table) = tables.pop() else { return Ok(work) };
        let (places, key_bytes) = self.tables[0].absorb(table.by_number().into_iter(), known as u32);
        drop(table);
        self.bytes += key_bytes;
        let is_new = |place: u32| place as usize >= known;
        let new: Vec<u32> = (0..).zip(&places).filter(|(_, place)| is_new(**place)).map(|(number, _)| number).collect();
        for (own, other) in self.groups.keys.iter_mut().zip(&groups.keys) {
            let values = other.take(&new);
            self.bytes += values.memory_bytes();
            own.append(&values);
        }
        self.bytes += new.len() * self.groups.bytes_a_group();
        let states = std::mem::take(&mut groups.states);
        self.groups.take_states(states, &places, new.len())?;
        self.groups.resize();
        let all: Vec<u32> = (0..places.len() as u32).collect();
        for (own, other) in self.groups.columns.iter_mut().flatten().zip(groups.columns.iter().flatten()) {
            own.merge(&**other, &all, &places)?;
        }
        self.account()?;
        Ok(work)
    }

    /// The rows left for later passes, and the bytes they take on disk.
    fn work(&mut self) -> Result<(Vec<Work>, u64)> {
        let (mut work, mut disk) = (Vec::new(), 0);
        for (set, elsewhere) in std::mem::take(&mut self.elsewhere).into_iter().enumerate() {
            let Some(elsewhere) = elsewhere else { continue };
            disk += elsewhere.bytes();
            let runs = elsewhere.finish()?.into_iter().filter(|r| r.rows > 0);
            work.extend(runs.map(|run| Work { set, runs: vec![run], level: self.level + 1 }));
        }
        Ok((work, disk))
    }

    /// The input has ended.
    pub fn finish(mut self) -> Result<Done> {
        for index in 0..self.sorters.len() {
            if let Some(sorter) = self.sorters[index].take() {
                let hypothetical = self.take_direct(index)?;
                self.feed_sorted(index, sorter, &hypothetical)?;
            }
        }
        let (work, disk) = self.work()?;
        self.groups.resize();
        order(self.node, self.ctx, &mut self.groups)?;
        Ok(Done { groups: self.groups, rows: Vec::new(), left_out: 0, held: self.held, work, memory: self.bytes, disk })
    }

    /// Hands an aggregate's direct arguments to its states, group by group. Hypothetical-set aggregates: the sort key of each
    /// group's hypothetical row.
    fn take_direct(&mut self, index: usize) -> Result<ByteStrings> {
        let (node, ctx) = (self.node, self.ctx);
        let spec = &node.aggregates[index];
        let mut hypothetical = ByteStrings::default();
        if spec.direct.is_empty() {
            return Ok(hypothetical);
        }
        let call = spec.call.info(ctx);
        for number in 0..self.groups.count as u32 {
            ctx.check_interrupt()?;
            let columns = self.groups.keys.iter().map(|key| key.take(&[number])).collect();
            let of_group = Batch { columns, rows: 1 };
            let direct = spec.direct.iter().map(|e| e.eval_batch(ctx, &of_group)).collect::<Result<Vec<_>>>()?;
            if spec.hypothetical {
                direct.iter().zip(&spec.order).for_each(|(arg, (_, part))| part.encode_at(arg, 0, &mut hypothetical.bytes));
                hypothetical.ends.push(hypothetical.bytes.len() as u32);
            }
            let state = self.groups.state_mut(number, index);
            state.aggregate.begin(&call, &direct.iter().map(|arg| arg.get(0)).collect::<Vec<_>>())?;
            self.bytes += state.grown();
        }
        self.account()?;
        Ok(hypothetical)
    }

    /// Hands an aggregate's rows to its states, group by group in the wanted order, each once if DISTINCT.
    fn feed_sorted(&mut self, index: usize, sorter: Sorter, hypothetical: &ByteStrings) -> Result<()> {
        let spec = &self.node.aggregates[index];
        let distinct = spec.distinct.is_some();
        let mut sorted = sorter.finish()?;
        let mut last: Option<Vec<u8>> = None;
        while let Some((batch, keys)) = sorted.next_with_keys(BATCH_ROWS)? {
            self.ctx.check_interrupt()?;
            let mut rows: Vec<u32> = Vec::with_capacity(batch.rows);
            for i in 0..batch.rows {
                let before = if i == 0 { last.as_deref() } else { Some(keys.get(i - 1)) };
                if !distinct || before != Some(keys.get(i)) {
                    rows.push(i as u32);
                }
            }
            last = batch.rows.checked_sub(1).map(|i| keys.get(i).to_vec());
            let mut columns: Vec<&Column> = batch.columns.iter().collect();
            let ranks;
            if spec.hypothetical {
                ranks = Column::new(ColumnData::Int4(ranks_of(&keys, batch.rows, hypothetical)));
                columns.push(&ranks);
            }
            for run in rows.chunk_by(|&a, &b| group_of(&keys, a) == group_of(&keys, b)) {
                self.add(index, group_of(&keys, run[0]), &columns, run)?;
            }
            self.account()?;
        }
        Ok(())
    }
}

fn evaluate<'b>(node: &AggregateNode, ctx: &ExecContext, batch: &'b Batch) -> Result<Vec<Arguments<'b>>> {
    node.aggregates.iter().map(|spec| Arguments::new(spec, ctx, batch)).collect()
}

fn owned_bytes(arguments: &[Arguments]) -> usize {
    arguments.iter().flat_map(|a| &a.columns).map(|c| c.memory_bytes()).sum()
}

/// The group that a sorter's key begins with.
fn group_of(keys: &ByteStrings, row: u32) -> u32 {
    keys.get(row as usize).first_chunk().map_or(0, |c| u32::from_be_bytes(*c))
}

/// How each row compares with the hypothetical row of its group: below 0, 0, above 0.
fn ranks_of(keys: &ByteStrings, rows: usize, hypothetical: &ByteStrings) -> Vec<i32> {
    let rank = |row| keys.get(row)[size_of::<u32>()..].cmp(hypothetical.get(group_of(keys, row as u32) as usize));
    (0..rows).map(|row| rank(row) as i32).collect()
}

/// Groups come in key order where PostgreSQL would sort to aggregate (DISTINCT or ordered aggregates, ROLLUP): SQL does not
/// demand it, but users see it. A subtotal follows the groups that it sums up.
fn order(node: &AggregateNode, ctx: &ExecContext, groups: &mut Groups) -> Result<()> {
    let mut sets: Vec<&Vec<usize>> = node.sets.iter().collect();
    sets.sort_by_key(|s| s.len());
    let rollup = sets.len() > 1 && sets.windows(2).all(|w| w[0].iter().all(|c| w[1].contains(c)));
    if !(rollup || node.sorted && node.sets.len() == 1) {
        return Ok(());
    }
    let key_of = |number: u32| -> Result<Vec<u8>> {
        let mut key = Vec::new();
        for i in 0..node.groups.len() - node.labels.len() {
            // Values that functions order have a label instead.
            let i = node.labels.iter().find(|(of, _)| *of == i).map_or(i, |(_, label)| *label);
            if node.sets[groups.set_of(number)].contains(&i) {
                node.parts[i].encode(&ctx.expand(groups.keys[i].get(number as usize), node.groups[i].kind)?, &mut key);
            } else {
                key.push(u8::MAX);
            }
        }
        Ok(key)
    };
    let mut keyed = (0..groups.count as u32).map(|number| Ok((key_of(number)?, number))).collect::<Result<Vec<_>>>()?;
    keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
    groups.order = keyed.into_iter().map(|(_, number)| number).collect();
    Ok(())
}
