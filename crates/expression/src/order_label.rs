//! Labels of values that functions of users order (`ValueOrder`): strings of bytes in the order of the values, the same for equal
//! ones. So sorting, grouping and set operations, which compare keys of bytes, serve such types, too.
//!
//! A statement's values of one order are kept, in this order. A new value is searched among them, by the function, and gets a label
//! between those of its neighbours. A label never changes. Whatever the function answers, labels have one order: a function that
//! contradicts itself gives a wrong order, and nothing else. All values stay in memory, which is accounted.
//!
//! A label is a string of numbers, 8 bytes each with the highest first. Between two labels whose numbers leave no room it gets
//! longer. The last number is never zero, so that there is always room before it.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::sync::Arc;

use hashbrown::HashMap;
use melba_engine::Held;
use melba_fmgr::value_order::{Comparer, ValueOrder};
use melba_types::{Datum, DbError, Result, codec};

use super::Expression;
use crate::Evaluation;

/// The label of a value.
#[derive(Clone, Debug)]
pub struct OrderLabel {
    pub arg: Expression,
    pub order: Arc<ValueOrder>,
}

/// The labels that a statement has given.
#[derive(Default)]
pub(crate) struct OrderLabels(RefCell<Vec<(Arc<ValueOrder>, Known)>>);

/// The values of one order.
struct Known {
    values: Vec<(Datum, Arc<[u8]>)>,
    /// The places in `values`, in the order of the values, in pieces of at most `PIECE_MAX`, none of which is empty.
    sorted: Vec<Vec<u32>>,
    /// Of an equality without an order: the places by hash code.
    hashed: HashMap<i32, Vec<u32>>,
    /// By the bytes of the value, so that a function is called for each value once. Of values that are equal all are here.
    by_image: HashMap<Box<[u8]>, u32>,
    held: Held,
}

const PIECE_MAX: usize = 512;
/// The least number of bytes that an entry of the maps and lists takes beside values and labels.
const ENTRY_BYTES: usize = 96;

/// The first number of the first label.
const MIDDLE: u64 = 1 << 63;
/// The distance of a value before or behind all others.
const STRIDE: u64 = 1 << 32;

impl OrderLabel {
    pub(crate) fn eval(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        let value = self.arg.eval_row(ctx, row)?;
        if value.is_null() {
            return Ok(Datum::Null);
        }
        let label = match self.order.is_volatile() {
            true => ctx.nesting_changes(|| ctx.order_labels.label(ctx, &self.order, value))?,
            false => ctx.order_labels.label(ctx, &self.order, value)?,
        };
        Ok(Datum::Bytes(label))
    }
}

impl OrderLabels {
    fn label(&self, ctx: &Evaluation, order: &Arc<ValueOrder>, value: Datum) -> Result<Arc<[u8]>> {
        let mut image = Vec::new();
        codec::encode(&value, &mut image);
        let taken = {
            let mut all = self.0.borrow_mut();
            let at = all.iter().position(|(own, _)| Arc::ptr_eq(own, order) || own == order);
            if let Some(known) = at.map(|at| &all[at].1)
                && let Some(place) = known.by_image.get(&image[..])
            {
                return Ok(known.values[*place as usize].1.clone());
            }
            at.map(|at| all.swap_remove(at))
        };
        // Nothing is borrowed while the functions run.
        let (order, mut known) = taken.unwrap_or_else(|| (order.clone(), Known::new(ctx.resources().held())));
        let label = known.add(ctx, &order, value, image);
        self.0.borrow_mut().push((order, known));
        label
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.0.get_mut().clear();
    }
}

impl Known {
    fn new(held: Held) -> Known {
        Known { values: Vec::new(), sorted: Vec::new(), hashed: HashMap::new(), by_image: HashMap::new(), held }
    }

    /// The label of a value whose bytes are new.
    fn add(&mut self, ctx: &Evaluation, order: &ValueOrder, value: Datum, image: Vec<u8>) -> Result<Arc<[u8]>> {
        ctx.check_interrupt()?;
        let view = ctx.view();
        let by = Comparer { session: &*ctx.session, view: (view.csn, view.command) };
        let mut bytes = ENTRY_BYTES + image.len();
        let place = match order.is_equality() {
            true => self.hashed_place(by, order, &value)?,
            false => self.sorted_place(by, order, &value)?,
        };
        let place = match place {
            Found::Equal(place) => place,
            Found::New(label, at) => {
                let place = u32::try_from(self.values.len()).map_err(|_| DbError::internal("too many values to order"))?;
                bytes += value.heap_bytes() + size_of::<Datum>() + label.len();
                self.held.grow(bytes)?;
                self.values.push((value, label.into()));
                match at {
                    At::Hash(hash) => self.hashed.entry(hash).or_default().push(place),
                    At::Sorted(piece, at) => self.insert(piece, at, place),
                }
                self.by_image.insert(image.into(), place);
                return Ok(self.values[place as usize].1.clone());
            }
        };
        self.held.grow(bytes)?;
        self.by_image.insert(image.into(), place);
        Ok(self.values[place as usize].1.clone())
    }

    fn hashed_place(&self, by: Comparer<'_>, order: &ValueOrder, value: &Datum) -> Result<Found> {
        let hash = match order.hash(by, value)? {
            Datum::Int4(hash) => hash,
            _ => return Err(DbError::internal("a hash function returned NULL")),
        };
        for place in self.hashed.get(&hash).into_iter().flatten() {
            if order.compare(by, value, &self.values[*place as usize].0)?.is_eq() {
                return Ok(Found::Equal(*place));
            }
        }
        Ok(Found::New((self.values.len() as u64 + 1).to_be_bytes().to_vec(), At::Hash(hash)))
    }

    fn sorted_place(&self, by: Comparer<'_>, order: &ValueOrder, value: &Datum) -> Result<Found> {
        // How the value compares with one that is known.
        let compare = |place: u32| order.compare(by, value, &self.values[place as usize].0);
        let first_of = |piece: usize| self.sorted[piece][0];
        let (piece, equal) = search(self.sorted.len(), |piece| compare(first_of(piece)))?;
        if equal {
            return Ok(Found::Equal(first_of(piece)));
        }
        // Before all others, or within the piece that begins before it.
        let Some(piece) = piece.checked_sub(1) else {
            let next = self.sorted.first().map(|piece| self.label(piece[0]));
            return Ok(Found::New(between(None, next), At::Sorted(0, 0)));
        };
        let places = &self.sorted[piece];
        let (at, equal) = search(places.len() - 1, |at| compare(places[at + 1]))?;
        if equal {
            return Ok(Found::Equal(places[at + 1]));
        }
        let next = places.get(at + 1).or_else(|| self.sorted.get(piece + 1)?.first());
        let label = between(Some(self.label(places[at])), next.map(|place| self.label(*place)));
        Ok(Found::New(label, At::Sorted(piece, at + 1)))
    }

    fn label(&self, place: u32) -> &[u8] {
        &self.values[place as usize].1
    }

    fn insert(&mut self, piece: usize, at: usize, place: u32) {
        let Some(places) = self.sorted.get_mut(piece) else {
            self.sorted.push(vec![place]);
            return;
        };
        places.insert(at, place);
        if places.len() > PIECE_MAX {
            let rest = places.split_off(PIECE_MAX / 2);
            self.sorted.insert(piece + 1, rest);
        }
    }
}

enum Found {
    Equal(u32),
    New(Vec<u8>, At),
}

enum At {
    Hash(i32),
    /// A piece, and a place in it.
    Sorted(usize, usize),
}

/// Among `count` ascending values the first that is not less than one, and whether it is equal. `compare`: the one with them.
fn search(count: usize, compare: impl Fn(usize) -> Result<Ordering>) -> Result<(usize, bool)> {
    let (mut from, mut to) = (0, count);
    while from < to {
        let middle = from + (to - from) / 2;
        match compare(middle)? {
            Ordering::Equal => return Ok((middle, true)),
            Ordering::Greater => from = middle + 1,
            Ordering::Less => to = middle,
        }
    }
    Ok((from, false))
}

/// A label between two, of which the first is less.
fn between(before: Option<&[u8]>, after: Option<&[u8]>) -> Vec<u8> {
    let (low, high) = (numbers(before.unwrap_or_default()), numbers(after.unwrap_or_default()));
    let label = match (low.is_empty(), high.is_empty()) {
        (_, true) => above(&low),
        (true, false) => below(&high),
        (false, false) => {
            let same = low.iter().zip(&high).take_while(|(a, b)| a == b).count();
            let mut label = low[..same].to_vec();
            match (low.get(same), high.get(same)) {
                // The first is the beginning of the second.
                (None, _) => label.extend(below(&high[same..])),
                (Some(a), Some(b)) if b - a >= 2 => label.push(a + (b - a) / 2),
                (Some(a), _) => {
                    label.push(*a);
                    label.extend(above(&low[same + 1..]));
                }
            }
            label
        }
    };
    label.into_iter().flat_map(u64::to_be_bytes).collect()
}

fn numbers(label: &[u8]) -> Vec<u64> {
    label.as_chunks().0.iter().map(|bytes| u64::from_be_bytes(*bytes)).collect()
}

/// A label greater than one.
fn above(low: &[u64]) -> Vec<u64> {
    match low {
        [] => vec![MIDDLE],
        [u64::MAX, rest @ ..] => [vec![u64::MAX], above(rest)].concat(),
        [first, ..] => vec![first.saturating_add(STRIDE)],
    }
}

/// A label less than one, which has a number.
fn below(high: &[u64]) -> Vec<u64> {
    match high {
        [0, rest @ ..] => [vec![0], below(rest)].concat(),
        [1, ..] => vec![0, MIDDLE],
        [first, ..] => vec![first.checked_sub(STRIDE).filter(|n| *n > 0).unwrap_or(first / 2)],
        [] => vec![MIDDLE],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inserts values by their places and checks that labels are in the order of places.
    fn check(places: impl Iterator<Item = u64>) -> usize {
        let mut all: Vec<(u64, Vec<u8>)> = Vec::new();
        for place in places {
            let at = all.partition_point(|(other, _)| *other < place);
            let before = at.checked_sub(1).map(|at| &all[at].1[..]);
            let label = between(before, all.get(at).map(|(_, label)| &label[..]));
            assert!(before.is_none_or(|before| before < &label[..]), "{before:?} {label:?}");
            assert!(all.get(at).is_none_or(|(_, after)| label < *after), "{label:?}");
            assert_ne!(label[label.len() - 8..], [0; 8]);
            all.insert(at, (place, label));
        }
        all.iter().map(|(_, label)| label.len()).max().unwrap_or(0)
    }

    #[test]
    fn labels_have_the_order_of_their_values_and_stay_short() {
        assert_eq!(check(0..5000), 8);
        assert_eq!(check((0..5000).rev()), 8);
        let scattered = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        assert!(check((0..5000).map(scattered)) <= 16);
        // Ascending and descending between two others.
        assert!(check([0, 1 << 40].into_iter().chain(1..3000)) <= 24);
        assert!(check([0, 1 << 40].into_iter().chain((1..3000).rev())) <= 24);
    }

    #[test]
    fn there_is_always_room() {
        // From both ends to the middle.
        let longest = check((0..2000).map(|n| if n % 2 == 0 { n } else { 1 << 40 | (4000 - n) }));
        assert!(longest <= 2000, "{longest}");
        for (low, high) in [(vec![1], vec![2]), (vec![u64::MAX], vec![]), (vec![], vec![1]), (vec![5], vec![5, 0, 1])] {
            let bytes = |numbers: &[u64]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<u8>>();
            let (low, high) = (bytes(&low), bytes(&high));
            let label = between((!low.is_empty()).then_some(&low[..]), (!high.is_empty()).then_some(&high[..]));
            assert!(label > low && (high.is_empty() || label < high), "{low:?} {high:?} {label:?}");
        }
    }
}
