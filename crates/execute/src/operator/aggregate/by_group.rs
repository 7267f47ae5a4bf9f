//! The rows of a batch, group by group: found once, and used by every aggregate.

/// Below this number of groups per row, rows are counted by group instead of sorted.
const COUNTED_GROUPS_A_ROW: usize = 2;
/// Stretches of the rows that are counted side by side.
const STRETCHES: usize = 4;

/// Rows in the order of their groups; within a group in the order of the input.
pub(super) struct ByGroup {
    rows: Vec<u32>,
    /// Each group that has rows, and where its rows end.
    ends: Vec<(u32, usize)>,
}

impl ByGroup {
    /// `places`: the group of each row, below `groups`.
    pub fn new(places: &[u32], groups: usize) -> ByGroup {
        let Some(&first) = places.first() else { return ByGroup { rows: vec![], ends: vec![] } };
        let all = places.len();
        if places.iter().all(|place| *place == first) {
            return ByGroup { rows: (0..all as u32).collect(), ends: vec![(first, all)] };
        }
        if groups <= all * COUNTED_GROUPS_A_ROW {
            return ByGroup::counted(places, groups);
        }
        let mut order: Vec<u64> = places.iter().enumerate().map(|(row, place)| u64::from(*place) << 32 | row as u64).collect();
        order.sort_unstable();
        let mut ends: Vec<(u32, usize)> = Vec::new();
        for (at, row) in order.iter().enumerate() {
            let place = (row >> 32) as u32;
            match ends.last_mut() {
                Some((last, end)) if *last == place => *end = at + 1,
                _ => ends.push((place, at + 1)),
            }
        }
        ByGroup { rows: order.into_iter().map(|row| row as u32).collect(), ends }
    }

    fn counted(places: &[u32], groups: usize) -> ByGroup {
        // Stretches of the rows have counters of their own: rows that follow each other are often of one group, and would wait for its
        // counter to be written.
        let stretch = places.len().div_ceil(STRETCHES);
        let mut next = vec![[0u32; STRETCHES]; groups];
        for_stretches(stretch, places.len(), |row, stretch| next[places[row] as usize][stretch] += 1);
        let (mut ends, mut end) = (Vec::new(), 0);
        for (place, slots) in next.iter_mut().enumerate() {
            let before = end;
            for slot in slots {
                end += std::mem::replace(slot, end);
            }
            if end > before {
                ends.push((place as u32, end as usize));
            }
        }
        let mut rows = vec![0; places.len()];
        for_stretches(stretch, places.len(), |row, stretch| {
            let at = &mut next[places[row] as usize][stretch];
            rows[*at as usize] = row as u32;
            *at += 1;
        });
        ByGroup { rows, ends }
    }

    /// Each group with its rows.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        let mut start = 0;
        self.ends.iter().map(move |&(group, end)| (group, &self.rows[std::mem::replace(&mut start, end)..end]))
    }
}

/// Calls `f` with each row and the number of its stretch, a row of each stretch in turn.
#[inline]
fn for_stretches(stretch: usize, rows: usize, mut f: impl FnMut(usize, usize)) {
    for at in 0..stretch {
        for number in 0..STRETCHES {
            let row = number * stretch + at;
            if row < rows {
                f(row, number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(places: &[u32], groups: usize) -> Vec<(u32, Vec<u32>)> {
        ByGroup::new(places, groups).iter().map(|(group, rows)| (group, rows.to_vec())).collect()
    }

    #[test]
    fn rows_stay_in_order_within_their_group() {
        let wanted = vec![(0, vec![1, 4]), (2, vec![0, 3]), (5, vec![2])];
        // Counted, and sorted.
        for all in [6, 1_000_000] {
            assert_eq!(groups(&[2, 0, 5, 2, 0], all), wanted);
        }
        assert_eq!(groups(&[3, 3, 3], 1_000_000), [(3, vec![0, 1, 2])]);
        for rows in 1..40u32 {
            let places: Vec<u32> = (0..rows).map(|row| row * 7 % 5 % 3).collect();
            let of = |group: u32| (0..rows).filter(|row| places[*row as usize] == group).collect::<Vec<u32>>();
            let wanted: Vec<_> = (0..3).map(|group| (group, of(group))).filter(|(_, rows)| !rows.is_empty()).collect();
            assert_eq!((groups(&places, 3), groups(&places, 1_000_000)), (wanted.clone(), wanted));
        }
        assert_eq!(groups(&[], 7), []);
    }
}
