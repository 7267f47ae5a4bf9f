//! Groups by the codes of dictionary-encoded strings: a string is read only for the first row of a group.

use std::sync::Arc;

use melba_expression::Vector;
use melba_types::{Bitmap, CodedStrings, Column, ColumnData};

/// More places are not made for the keys of a set together.
const PLACES_MAX: usize = 1 << 14;

/// The groups of one set found with the dictionaries of the last batch.
#[derive(Default)]
pub(super) struct ByCodes {
    /// By key.
    dictionaries: Vec<Arc<Column>>,
    /// By the codes of a row together: the number of its group and 1; 0: not known.
    groups: Vec<u32>,
}

impl ByCodes {
    /// The place of each row, if all keys are coded and have few entries.
    pub fn places(&mut self, keys: &[&Vector<'_>], rows: usize) -> Option<Vec<u32>> {
        let coded = keys.iter().map(|key| coded(key)).collect::<Option<Vec<_>>>()?;
        // Behind a key's entries is a place for NULL.
        let width = |strings: &CodedStrings| strings.entries().len() + 1;
        let places = coded.iter().try_fold(1usize, |all, (strings, _)| all.checked_mul(width(strings)));
        let places = places.filter(|places| *places <= PLACES_MAX)?;
        let same = |(known, (strings, _)): (&Arc<Column>, &(&CodedStrings, _))| Arc::ptr_eq(known, strings.entries());
        if self.dictionaries.len() != coded.len() || !self.dictionaries.iter().zip(&coded).all(same) {
            self.dictionaries = coded.iter().map(|(strings, _)| Arc::clone(strings.entries())).collect();
            self.groups.clear();
            self.groups.resize(places, 0);
        }
        let mut out = vec![0u32; rows];
        for (strings, validity) in coded {
            let width = width(strings) as u32;
            let all = out.iter_mut().zip(strings.codes());
            match validity {
                None => all.for_each(|(place, code)| *place = *place * width + code),
                Some(valid) => all.enumerate().for_each(|(row, (place, code))| {
                    *place = *place * width + if valid.get(row) { *code } else { width - 1 };
                }),
            }
        }
        Some(out)
    }

    /// The group of the rows at a place.
    #[inline]
    pub fn get(&self, place: u32) -> Option<u32> {
        self.groups[place as usize].checked_sub(1)
    }

    /// The groups of all rows by their places; `None` when one of them is not known.
    pub fn known(&self, places: &[u32]) -> Option<Vec<u32>> {
        let mut groups = vec![0; places.len()];
        let mut is_missing = false;
        for (group, place) in groups.iter_mut().zip(places) {
            let known = self.groups[*place as usize];
            is_missing |= known == 0;
            *group = known.wrapping_sub(1);
        }
        (!is_missing).then_some(groups)
    }

    pub fn set(&mut self, place: u32, group: u32) {
        self.groups[place as usize] = group + 1;
    }
}

fn coded<'a>(key: &'a Vector<'_>) -> Option<(&'a CodedStrings, Option<&'a Bitmap>)> {
    let column = match key {
        Vector::Borrowed(column) => column,
        Vector::Owned(column) => column,
        Vector::Scalar(_) => return None,
    };
    match &column.data {
        ColumnData::Coded(strings) => Some((strings, column.validity.as_ref())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use melba_types::{Datum, Kind};

    use super::*;

    fn dictionary(entries: &[&str]) -> Arc<Column> {
        let mut column = Column::with_capacity(Kind::Text, entries.len());
        entries.iter().for_each(|entry| column.push(Datum::text(*entry)));
        Arc::new(column)
    }

    fn key(entries: &Arc<Column>, codes: &[u32], validity: Option<Bitmap>) -> Vector<'static> {
        let strings = CodedStrings::new(Arc::clone(entries), codes.to_vec()).unwrap();
        Vector::Owned(Column { data: ColumnData::Coded(strings), validity })
    }

    #[test]
    fn rows_of_equal_keys_have_one_place() {
        let (first, second) = (dictionary(&["A", "N", "R"]), dictionary(&["F", "O"]));
        let mut valid = Bitmap::filled(4, true);
        valid.set(3, false);
        let keys = [key(&first, &[0, 2, 0, 2], None), key(&second, &[1, 0, 1, 0], Some(valid))];
        let mut groups = ByCodes::default();
        let places = groups.places(&[&keys[0], &keys[1]], 4).unwrap();
        assert_eq!(places[0], places[2]);
        assert!(places[1] != places[0] && places[3] != places[1], "NULL is no entry");
        groups.set(places[1], 0);
        assert_eq!(groups.get(places[1]), Some(0));
        assert_eq!(groups.get(places[3]), None);
        assert_eq!((groups.known(&[places[1], places[1]]), groups.known(&places[1..])), (Some(vec![0, 0]), None));
        // The same codes have other values in another dictionary.
        let other = [key(&dictionary(&["x", "y", "z"]), &[2], None), key(&second, &[0], None)];
        let places = groups.places(&[&other[0], &other[1]], 1).unwrap();
        assert_eq!(groups.get(places[0]), None);
        let plain = Vector::Scalar(Datum::text("A"));
        assert!(groups.places(&[&keys[0], &plain], 4).is_none());
    }
}
