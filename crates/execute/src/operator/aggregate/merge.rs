//! Merges the groups that the members of a team have collected: they are split into parts by their keys, and one thread merges
//! each part.

use parking_lot::Mutex;

use melba_engine::Held;
use melba_fmgr::GroupedAggregate;
use melba_plan::node::AggregateNode;
use melba_types::{Column, Kind, Result};

use super::groups::{Groups, TransitionState};
use super::pass::{Done, Partial};
use super::table::{GroupTable, Key, RangePart, Ranges, Splitter};
use crate::{ExecContext, parallel};

/// Fewer groups are put together by the statement's thread before others have begun.
const GROUPS_MIN: usize = 1 << 14;
/// Groups a part: they and their states fit a processor's cache.
const GROUPS_A_PART: usize = 1 << 13;
const PARTS_MIN: usize = 8;
const PARTS_MAX: usize = 1 << 10;

/// A member's groups, except the states that are not in columns: those move.
struct Member {
    keys: Vec<Column>,
    columns: Vec<Option<Box<dyn GroupedAggregate>>>,
    table: GroupTable,
    _held: Held,
}

/// A member's groups by parts.
struct Share<'a> {
    /// By number.
    keys: Vec<Key<&'a [u8]>>,
    /// Numbers of groups, those of the first part first, and where those of each part end.
    numbers: Vec<u32>,
    ends: Vec<u32>,
}

/// By member: the states of one part that move, those of a group together.
type States = Vec<Vec<TransitionState>>;

impl Share<'_> {
    fn of(&self, part: usize) -> &[u32] {
        let start = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.numbers[start as usize..self.ends[part] as usize]
    }
}

/// Merges groups of one grouping set, each of which then is in one of the parts; returns them when they are few, or do not fit
/// twice.
pub(super) fn merge(
    node: &AggregateNode,
    kinds: &[Kind],
    ctx: &ExecContext,
    partials: Vec<Partial>,
) -> Result<std::result::Result<Vec<Done>, Vec<Partial>>> {
    let total: usize = partials.iter().map(|partial| partial.groups.count).sum();
    let is_one_list = node.sorted || node.sets.iter().any(Vec::is_empty) || partials.iter().any(|p| !p.work.is_empty());
    let mut room = ctx.resources().held();
    if partials.len() < 2 || total < GROUPS_MIN || is_one_list || !room.try_set(partials.iter().map(|p| p.bytes).sum()) {
        return Ok(Err(partials));
    }
    let room = Mutex::new(room);
    let count = (total / GROUPS_A_PART).clamp(PARTS_MIN, PARTS_MAX);
    let (mut members, mut lists) = (Vec::with_capacity(partials.len()), Vec::with_capacity(partials.len()));
    for mut partial in partials {
        let Some(table) = partial.tables.pop() else { continue };
        let Groups { states, states_a_group, keys, columns, .. } = partial.groups;
        lists.push((members.len(), states, states_a_group));
        members.push(Member { keys, columns, table, _held: partial.held });
    }
    // States that move are split with the list of their groups.
    let moving = lists.iter().any(|(_, states, _)| !states.is_empty());
    let ranges = if moving { None } else { Ranges::new(members.iter().map(|member| &member.table), count) };
    let splitter = Splitter::new(count);
    let split = |_: &ExecContext, (member, states, states_a_group): (usize, Vec<TransitionState>, usize)| {
        Ok(share(&members[member].table, states, states_a_group, &splitter, count))
    };
    let shares = if ranges.is_some() { Vec::new() } else { parallel::each_of(ctx, node.workers, &node.input, lists, split)? };
    let mut states: Vec<States> = (0..count).map(|_| Vec::new()).collect();
    let mut by_member = Vec::with_capacity(shares.len());
    for (share, of_parts) in shares {
        by_member.push(share);
        states.iter_mut().zip(of_parts).for_each(|(all, own)| all.push(own));
    }
    // Results are read from the last on.
    let parts = states.into_iter().enumerate().rev().collect();
    let put_together = |ctx: &ExecContext, (part, states): (usize, States)| {
        let keys = match &ranges {
            Some(ranges) => PartKeys::Range(ranges.part(part)),
            None => PartKeys::List { shares: &by_member, part, table: Box::new(GroupTable::new(node, 0)) },
        };
        let (groups, bytes) = one_part(node, ctx, &members, keys, states)?;
        let mut held = ctx.resources().held();
        let mut room = room.lock();
        // No more than the budget allows: a part that takes a little more than it did in the members is no reason to fail.
        let counted = bytes.min(room.bytes());
        let left = room.bytes() - counted;
        room.set(left)?;
        held.set(counted)?;
        drop(room);
        Done { groups, rows: Vec::new(), left_out: 0, held, work: Vec::new(), memory: bytes, disk: 0 }.with_rows(node, kinds, ctx)
    };
    parallel::each_of(ctx, node.workers, &node.input, parts, put_together).map(Ok)
}

/// Splits a member's groups, and their states.
fn share<'a>(
    table: &'a GroupTable,
    moving: Vec<TransitionState>,
    states_a_group: usize,
    splitter: &Splitter,
    count: usize,
) -> (Share<'a>, States) {
    let keys = table.by_number();
    let parts: Vec<u32> = keys.iter().map(|key| splitter.part_of(key)).collect();
    let mut ends = vec![0u32; count];
    parts.iter().for_each(|part| ends[*part as usize] += 1);
    let mut states: States = ends.iter().map(|_| Vec::new()).collect();
    let mut at: Vec<u32> = Vec::with_capacity(count);
    let mut all = 0;
    for end in &mut ends {
        at.push(all);
        all += *end;
        *end = all;
    }
    let mut numbers = vec![0u32; keys.len()];
    for (number, part) in (0..).zip(&parts) {
        let at = &mut at[*part as usize];
        numbers[*at as usize] = number;
        *at += 1;
    }
    let mut moving = moving.into_iter();
    if states_a_group > 0 {
        parts.iter().for_each(|part| states[*part as usize].extend(moving.by_ref().take(states_a_group)));
    }
    (Share { keys, numbers, ends }, states)
}

/// The keys of one part's groups, to which those of each member are added.
enum PartKeys<'a> {
    Range(RangePart<'a>),
    List { shares: &'a [Share<'a>], part: usize, table: Box<GroupTable> },
}

impl PartKeys<'_> {
    /// Adds the groups of a member: their numbers there, and here, where `known` are those of the members before; and about how many
    /// bytes the new keys take.
    fn absorb(&mut self, member: usize, known: usize) -> (Vec<u32>, Vec<u32>, usize) {
        match self {
            PartKeys::Range(range) => {
                let (numbers, places) = range.absorb(member);
                (numbers, places, if member == 0 { range.bytes() } else { 0 })
            }
            PartKeys::List { shares, part, table } => {
                let share = &shares[member];
                let numbers = share.of(*part);
                let keys = numbers.iter().map(|number| share.keys[*number as usize]);
                let (places, bytes) = table.absorb(keys, known as u32);
                (numbers.to_vec(), places, bytes)
            }
        }
    }
}

/// The groups of one part, and about how many bytes they take.
fn one_part(
    node: &AggregateNode,
    ctx: &ExecContext,
    members: &[Member],
    mut keys: PartKeys<'_>,
    states: States,
) -> Result<(Groups, usize)> {
    let mut groups = Groups::new(node, ctx)?;
    let mut bytes = 0;
    let mut states = states.into_iter();
    for (at, member) in members.iter().enumerate() {
        ctx.check_interrupt()?;
        let known = groups.count;
        let (numbers, places, key_bytes) = keys.absorb(at, known);
        bytes += key_bytes;
        let new: Vec<u32> = numbers.iter().zip(&places).filter(|(_, place)| **place as usize >= known).map(|(n, _)| *n).collect();
        for (own, other) in groups.keys.iter_mut().zip(&member.keys) {
            let values = other.take(&new);
            bytes += values.memory_bytes();
            own.append(&values);
        }
        groups.take_states(states.next().unwrap_or_default(), &places, new.len())?;
        groups.resize();
        for (own, other) in groups.columns.iter_mut().flatten().zip(member.columns.iter().flatten()) {
            own.merge(&**other, &numbers, &places)?;
        }
    }
    bytes += groups.count * groups.bytes_a_group();
    bytes += groups.columns.iter().flatten().map(|column| column.other_bytes()).sum::<usize>();
    Ok((groups, bytes))
}
