//! Statistics of the elements of arrays: the most common ones, and how many different ones an array has. As PostgreSQL's ANALYZE gives
//! them for few elements (array_typanalyze); all elements are counted here.

use std::collections::BTreeMap;
use std::sync::Arc;

use melba_expression::key::KeyPart;
use melba_types::{Array, Datum};

/// The most elements of a list, by unit of the statistics target.
const LISTED_PER_TARGET: usize = 10;

/// What is found in some arrays.
#[derive(Default)]
pub struct Elements {
    /// In their order.
    pub common: Vec<Datum>,
    /// The share of arrays with each of them; then the least and the greatest of these, and the share of arrays with a NULL.
    pub shares: Vec<f32>,
    /// Counts of different elements that divide the arrays into parts, and the average.
    pub counts: Vec<f32>,
}

pub fn count(arrays: &[&Arc<Array>], key: &KeyPart, target: usize) -> Elements {
    if arrays.is_empty() {
        return Elements::default();
    }
    // By key: the first such element and the number of arrays with it.
    let mut elements: BTreeMap<Vec<u8>, (&Datum, usize)> = BTreeMap::new();
    let (mut with_null, mut counts) = (0, Vec::with_capacity(arrays.len()));
    for array in arrays {
        let mut own: BTreeMap<Vec<u8>, &Datum> = BTreeMap::new();
        for element in array.elements.iter().filter(|element| !element.is_null()) {
            let mut bytes = Vec::new();
            key.encode(element, &mut bytes);
            own.entry(bytes).or_insert(element);
        }
        with_null += usize::from(array.elements.iter().any(Datum::is_null));
        counts.push(own.len());
        own.into_iter().for_each(|(key, element)| elements.entry(key).or_insert((element, 0)).1 += 1);
    }
    let of_arrays = |count: usize| (count as f64 / arrays.len() as f64) as f32;
    let average = counts.iter().sum::<usize>() as f64 / arrays.len() as f64;
    counts.sort_unstable();
    let parts = target.max(2);
    let bounds = (0..parts).map(|part| counts[part * (counts.len() - 1) / (parts - 1)] as f32);
    let mut listed: Vec<(&Vec<u8>, &Datum, usize)> =
        elements.iter().map(|(key, (element, count))| (key, *element, *count)).collect();
    listed.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
    listed.truncate(target * LISTED_PER_TARGET);
    let ends = listed.first().zip(listed.last()).map(|(first, last)| [last.2, first.2]);
    listed.sort_unstable_by(|a, b| a.0.cmp(b.0));
    let mut shares: Vec<f32> = listed.iter().map(|(_, _, count)| of_arrays(*count)).collect();
    shares.extend(ends.iter().flatten().chain(ends.as_ref().map(|_| &with_null)).map(|count| of_arrays(*count)));
    Elements {
        common: listed.into_iter().map(|(_, element, _)| element.clone()).collect(),
        shares,
        counts: bounds.chain([average as f32]).collect(),
    }
}
