//! Members of arrays as keys of equality.

use std::cell::RefCell;
use std::sync::Arc;

use hashbrown::HashSet;
use melba_types::Datum;

use super::key;

/// Members of a list that does not change, for hashed lookup.
#[derive(Debug, Default)]
pub struct Members {
    keys: HashSet<Vec<u8>>,
    has_null: bool,
}

impl Members {
    pub fn new(values: &[Datum]) -> Members {
        let mut members = Members::default();
        for value in values {
            if value.is_null() {
                members.has_null = true;
                continue;
            }
            let mut bytes = Vec::new();
            key::equality_key(value, &mut bytes);
            members.keys.insert(bytes);
        }
        members
    }

    /// The result of `= ANY` (`<> ALL` when not `any`); members are made for no other comparison.
    pub fn test_value(&self, value: &Datum, any: bool) -> Datum {
        if self.is_empty() {
            return Datum::Bool(!any);
        }
        if value.is_null() {
            return Datum::Null;
        }
        let mut bytes = Vec::with_capacity(16);
        key::equality_key(value, &mut bytes);
        self.test(&bytes, any).map_or(Datum::Null, Datum::Bool)
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && !self.has_null
    }

    /// The same for a value with a key.
    pub fn test(&self, key: &[u8], any: bool) -> Option<bool> {
        match (self.keys.contains(key), self.has_null) {
            (true, _) => Some(any),
            (false, true) => None,
            (false, false) => Some(!any),
        }
    }
}

/// Stands for an array in the list of those whose keys a statement has made.
#[derive(Debug, Default)]
pub struct FixedArray;

/// An array, and the keys of its members if it has any.
type Noted = (Arc<FixedArray>, Option<Arc<Members>>);

/// The arrays that are known when the statement begins.
#[derive(Default)]
pub(crate) struct FixedArrays(RefCell<Vec<Noted>>);

impl FixedArrays {
    /// `None`: it is not known yet.
    pub fn known(&self, array: &Arc<FixedArray>) -> Option<Option<Arc<Members>>> {
        let arrays = self.0.borrow();
        arrays.iter().find(|(of, _)| Arc::ptr_eq(of, array)).map(|(_, members)| members.clone())
    }

    pub fn note(&self, array: &Arc<FixedArray>, members: Option<Arc<Members>>) {
        self.0.borrow_mut().push((array.clone(), members));
    }
}
