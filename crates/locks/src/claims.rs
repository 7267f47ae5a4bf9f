//! Claims: values that transactions have written to the indexes of exclusion constraints, which others do not see yet.
//!
//! A value of a unique key is locked by its hash. Values that exclude each other by another operator than equality cannot be found
//! that way. Each transaction lists its values here instead; the caller compares them, and waits for their owner's end.
//!
//! Invariants:
//! 1. A transaction claims a value first and looks at the claims of others then. Claims are numbered in order. Of two transactions
//!    whose values exclude each other, the one whose claim has the higher number sees the other's claim, and waits.
//! 2. A transaction holds a lock for its claims (`engine::txn::unique`) as long as its claims are listed. They are no longer listed when its
//!    changes are visible, or undone: then the index answers.
//! 3. The list is bounded: a transaction with very many claims claims all values of an index.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_threads::Mutex;
use melba_threads::atomic::{AtomicBool, Ordering};
use melba_types::{Datum, RowId, TreeId};

use crate::SLOTS;

/// Claims of a transaction from which on it claims all values of the indexes that it writes to.
const CLAIMS_MAX: usize = melba_threads::sized(4096, 4);

/// A claim's place in the order of all claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimNumber(u64);

impl ClaimNumber {
    /// After all claims.
    pub const LAST: ClaimNumber = ClaimNumber(u64::MAX);
}

/// A claim of another transaction.
#[derive(Clone, Debug)]
pub struct Claim {
    pub owner: u32,
    /// The values of the index's key; `None`: all values.
    pub values: Option<Arc<[Datum]>>,
}

/// Rows of an index whose values can exclude each other: those with the same first columns.
type Group = (TreeId, Box<[u8]>);

struct Entry {
    number: ClaimNumber,
    owner: u32,
    row: Option<RowId>,
    values: Arc<[Datum]>,
}

enum Listed {
    Value(Group, ClaimNumber),
    All(TreeId),
}

#[derive(Default)]
struct State {
    last: u64,
    groups: HashMap<Group, Vec<Entry>>,
    /// Who claims all values.
    all: HashMap<TreeId, Vec<u32>>,
    of: HashMap<u32, Vec<Listed>>,
}

/// The claims of all sessions.
pub struct Claims {
    state: Mutex<State>,
    /// By session: it may have some.
    claiming: Box<[AtomicBool]>,
}

impl Default for Claims {
    fn default() -> Claims {
        Claims { state: Mutex::default(), claiming: (0..SLOTS).map(|_| AtomicBool::new(false)).collect() }
    }
}

impl State {
    fn forget(&mut self, owner: u32, listed: &Listed) {
        match listed {
            Listed::Value(group, number) => {
                let Some(entries) = self.groups.get_mut(group) else { return };
                entries.retain(|entry| entry.number != *number);
                if entries.is_empty() {
                    self.groups.remove(group);
                }
            }
            Listed::All(tree) => {
                let Some(owners) = self.all.get_mut(tree) else { return };
                owners.retain(|other| *other != owner);
                if owners.is_empty() {
                    self.all.remove(tree);
                }
            }
        }
    }

    fn forget_since(&mut self, owner: u32, mark: usize) {
        let Some(mut listed) = self.of.remove(&owner) else { return };
        let gone = listed.split_off(mark.min(listed.len()));
        gone.iter().for_each(|one| self.forget(owner, one));
        if !listed.is_empty() {
            self.of.insert(owner, listed);
        }
    }
}

impl Claims {
    /// Lists a value of a row. `group`: the bytes of the columns that are compared by equality. The session holds its lock for that.
    pub fn claim(&self, owner: u32, tree: TreeId, group: &[u8], values: Arc<[Datum]>, row: Option<RowId>) -> ClaimNumber {
        self.claiming[owner as usize].store(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        if state.of.get(&owner).is_some_and(|listed| listed.len() >= CLAIMS_MAX) {
            let owners = state.all.entry(tree).or_default();
            if !owners.contains(&owner) {
                owners.push(owner);
                state.of.entry(owner).or_default().push(Listed::All(tree));
            }
            return ClaimNumber::LAST;
        }
        state.last += 1;
        let number = ClaimNumber(state.last);
        let group: Group = (tree, group.into());
        state.groups.entry(group.clone()).or_default().push(Entry { number, owner, row, values });
        state.of.entry(owner).or_default().push(Listed::Value(group, number));
        number
    }

    /// Takes back the session's newest claim, if it has this number.
    pub fn unclaim(&self, owner: u32, number: ClaimNumber) {
        let mut state = self.state.lock();
        let Some(listed) = state.of.get_mut(&owner) else { return };
        if let Some(last) = listed.pop_if(|last| matches!(last, Listed::Value(_, of) if *of == number)) {
            state.forget(owner, &last);
        }
    }

    /// The claims of other sessions in a group that come before one.
    pub fn before(&self, owner: u32, tree: TreeId, group: &[u8], number: ClaimNumber) -> Vec<Claim> {
        let state = self.state.lock();
        let all = state.all.get(&tree).into_iter().flatten().map(|owner| Claim { owner: *owner, values: None });
        let group = state.groups.get(&(tree, group.into())).into_iter().flatten().filter(|entry| entry.number < number);
        let values = group.map(|entry| Claim { owner: entry.owner, values: Some(entry.values.clone()) });
        all.chain(values).filter(|claim| claim.owner != owner).collect()
    }

    /// The number of the session's newest claim for a row.
    pub fn of_row(&self, owner: u32, tree: TreeId, group: &[u8], row: RowId) -> Option<ClaimNumber> {
        let state = self.state.lock();
        let entries = state.groups.get(&(tree, group.into()))?;
        entries.iter().rev().find(|entry| entry.owner == owner && entry.row == Some(row)).map(|entry| entry.number)
    }

    pub fn has_any(&self, owner: u32) -> bool {
        self.held(owner) > 0
    }

    /// Claims so far, for `forget`.
    pub fn held(&self, owner: u32) -> usize {
        if !self.claiming[owner as usize].load(Ordering::Relaxed) {
            return 0;
        }
        self.state.lock().of.get(&owner).map_or(0, Vec::len)
    }

    /// Forgets the claims since `held` answered `mark`.
    pub fn forget(&self, owner: u32, mark: usize) {
        let claiming = &self.claiming[owner as usize];
        if !claiming.load(Ordering::Relaxed) {
            return;
        }
        self.state.lock().forget_since(owner, mark);
        if mark == 0 {
            claiming.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: TreeId = TreeId(7);

    fn claim(claims: &Claims, owner: u32, value: i32) -> ClaimNumber {
        claims.claim(owner, TREE, b"group", Arc::from([Datum::Int4(value)]), Some(RowId(value as u64)))
    }

    fn seen(claims: &Claims, owner: u32, number: ClaimNumber) -> Vec<u32> {
        claims.before(owner, TREE, b"group", number).iter().map(|claim| claim.owner).collect()
    }

    #[test]
    fn the_later_of_two_claims_sees_the_earlier() {
        let claims = Claims::default();
        let (first, second) = (claim(&claims, 0, 1), claim(&claims, 1, 2));
        assert_eq!((seen(&claims, 0, first), seen(&claims, 1, second)), (vec![], vec![0]));
        assert_eq!(claims.before(1, TREE, b"other", second).len(), 0, "another group");
        assert_eq!(claims.of_row(1, TREE, b"group", RowId(2)), Some(second));
        claims.unclaim(0, first);
        assert!(seen(&claims, 1, second).is_empty() && !claims.has_any(0));
    }

    #[test]
    fn claims_since_a_mark_are_forgotten() {
        let claims = Claims::default();
        claim(&claims, 0, 1);
        let mark = claims.held(0);
        claim(&claims, 0, 2);
        assert_eq!(seen(&claims, 1, ClaimNumber::LAST), [0, 0]);
        claims.forget(0, mark);
        assert_eq!(seen(&claims, 1, ClaimNumber::LAST), [0]);
        claims.forget(0, 0);
        assert!(seen(&claims, 1, ClaimNumber::LAST).is_empty() && !claims.has_any(0));
    }

    #[test]
    fn very_many_claims_are_one_for_all_values() {
        let claims = Claims::default();
        for value in 0..CLAIMS_MAX as i32 {
            claim(&claims, 0, value);
        }
        assert_eq!(claim(&claims, 0, -1), ClaimNumber::LAST);
        claim(&claims, 0, -2);
        assert_eq!(claims.held(0), CLAIMS_MAX + 1);
        let others = claims.before(1, TREE, b"other", ClaimNumber(0));
        assert!(matches!(&others[..], [Claim { owner: 0, values: None }]));
        claims.forget(0, 0);
        assert!(claims.before(1, TREE, b"other", ClaimNumber::LAST).is_empty());
    }
}
