//! Finds the partitions that can have a row which satisfies tests of the partition key.

use melba_catalog::PartitionStrategy;
use melba_fmgr::Session;
use melba_types::{Datum, Oid, Result};

use super::partition::PartitionMap;

/// Combinations of values that are tried one by one.
const COMBINATIONS_MAX: usize = 1000;

/// Byte after those of all keys with the same beginning.
const AFTER: u8 = u8::MAX;

/// A test of one column of the key. `V` is a value, or stands for one.
#[derive(Clone, Debug)]
pub struct KeyTest<V> {
    pub column: usize,
    pub kind: TestKind,
    pub value: Option<V>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestKind {
    Equal,
    Less {
        inclusive: bool,
    },
    Greater {
        inclusive: bool,
    },
    /// The value is an array.
    AnyOf,
    IsNull,
    NotNull,
}

/// Tests that hold together, or of which one holds. All of none says nothing.
#[derive(Clone, Debug)]
pub enum Tests<V> {
    One(KeyTest<V>),
    All(Vec<Tests<V>>),
    Any(Vec<Tests<V>>),
}

impl<V> Tests<V> {
    pub fn is_empty(&self) -> bool {
        match self {
            Tests::One(_) => false,
            Tests::All(parts) => parts.iter().all(Tests::is_empty),
            Tests::Any(parts) => parts.iter().any(Tests::is_empty),
        }
    }

    /// With the values that are known; tests of others say nothing.
    pub fn with(&self, value: &dyn Fn(&V) -> Option<Datum>) -> Tests<Datum> {
        match self {
            Tests::One(test) => match &test.value {
                None => Tests::One(KeyTest { column: test.column, kind: test.kind, value: None }),
                Some(v) => match value(v) {
                    Some(v) => Tests::One(KeyTest { column: test.column, kind: test.kind, value: Some(v) }),
                    None => Tests::All(vec![]),
                },
            },
            Tests::All(parts) => Tests::All(parts.iter().map(|p| p.with(value)).collect()),
            Tests::Any(parts) => Tests::Any(parts.iter().map(|p| p.with(value)).collect()),
        }
    }
}

/// Knowledge about one column: an equality wins over bounds.
#[derive(Clone, Default)]
struct Known {
    equal: Option<Datum>,
    is_null: bool,
    not_null: bool,
    /// Value, inclusive.
    lower: Option<(Datum, bool)>,
    upper: Option<(Datum, bool)>,
}

/// The partitions that may have rows.
pub fn matching(session: &dyn Session, map: &PartitionMap, tests: &Tests<Datum>) -> Result<Vec<Oid>> {
    match tests {
        Tests::Any(parts) if !tests.is_empty() => {
            let mut all = Vec::new();
            for part in parts {
                for partition in matching(session, map, part)? {
                    if !all.contains(&partition) {
                        all.push(partition);
                    }
                }
            }
            Ok(all)
        }
        Tests::Any(_) => Ok(everything(map)),
        Tests::One(test) => joint(session, map, &[test], &[]),
        Tests::All(parts) => {
            let (mut direct, mut others) = (Vec::new(), Vec::new());
            flatten(parts, &mut direct, &mut others);
            joint(session, map, &direct, &others)
        }
    }
}

fn flatten<'t>(parts: &'t [Tests<Datum>], direct: &mut Vec<&'t KeyTest<Datum>>, others: &mut Vec<&'t Tests<Datum>>) {
    for part in parts {
        match part {
            Tests::One(test) => direct.push(test),
            Tests::All(inner) => flatten(inner, direct, others),
            Tests::Any(_) => others.push(part),
        }
    }
}

fn everything(map: &PartitionMap) -> Vec<Oid> {
    let mut all = map.in_order();
    all.sort_unstable();
    all
}

/// Tests that hold together; `others` are evaluated separately.
fn joint(session: &dyn Session, map: &PartitionMap, direct: &[&KeyTest<Datum>], others: &[&Tests<Datum>]) -> Result<Vec<Oid>> {
    let width = map.key().columns.len();
    let mut known = vec![Known::default(); width];
    let mut lists: Vec<(usize, Vec<Datum>)> = Vec::new();
    for test in direct {
        let column = &mut known[test.column];
        match (&test.value, test.kind) {
            (_, TestKind::IsNull) => column.is_null = true,
            (_, TestKind::NotNull) => column.not_null = true,
            // Nothing compares with null.
            (None | Some(Datum::Null), _) => return Ok(vec![]),
            (Some(Datum::Array(array)), TestKind::AnyOf) => {
                lists.push((test.column, array.elements.iter().filter(|e| !e.is_null()).cloned().collect()));
            }
            (Some(_), TestKind::AnyOf) => {}
            (Some(value), TestKind::Equal) => {
                if column.equal.as_ref().is_some_and(|e| map.compare(test.column, e, value).is_ne()) {
                    return Ok(vec![]);
                }
                column.equal = Some(value.clone());
            }
            (Some(value), TestKind::Less { inclusive }) => {
                let tighter = |(old, _): &(Datum, bool)| map.compare(test.column, value, old).is_le();
                if column.upper.as_ref().is_none_or(tighter) {
                    column.upper = Some((value.clone(), inclusive));
                }
            }
            (Some(value), TestKind::Greater { inclusive }) => {
                let tighter = |(old, _): &(Datum, bool)| map.compare(test.column, value, old).is_ge();
                if column.lower.as_ref().is_none_or(tighter) {
                    column.lower = Some((value.clone(), inclusive));
                }
            }
        }
    }
    if known.iter().any(|k| k.is_null && (k.not_null || k.equal.is_some() || k.lower.is_some() || k.upper.is_some())) {
        return Ok(vec![]);
    }
    let mut found = Vec::new();
    for combination in combinations(&known, &lists, map) {
        for partition in of_known(session, map, &combination)? {
            if !found.contains(&partition) {
                found.push(partition);
            }
        }
    }
    for other in others {
        let with = matching(session, map, other)?;
        found.retain(|p| with.contains(p));
    }
    Ok(found)
}

/// One set of facts for each way to take a value from every list.
fn combinations(known: &[Known], lists: &[(usize, Vec<Datum>)], map: &PartitionMap) -> Vec<Vec<Known>> {
    let mut all = vec![known.to_vec()];
    for (column, values) in lists {
        if all.len() * values.len() > COMBINATIONS_MAX {
            continue;
        }
        let mut next = Vec::with_capacity(all.len() * values.len());
        for facts in &all {
            for value in values {
                if facts[*column].equal.as_ref().is_some_and(|e| map.compare(*column, e, value).is_ne()) {
                    continue;
                }
                let mut facts = facts.clone();
                facts[*column].equal = Some(value.clone());
                next.push(facts);
            }
        }
        all = next;
    }
    all
}

fn of_known(session: &dyn Session, map: &PartitionMap, known: &[Known]) -> Result<Vec<Oid>> {
    let exact: Option<Vec<Datum>> = known
        .iter()
        .map(|k| match (&k.equal, k.is_null) {
            (Some(value), _) => Some(value.clone()),
            (None, true) => Some(Datum::Null),
            _ => None,
        })
        .collect();
    if let Some(values) = exact {
        return Ok(map.find(session, &values)?.into_iter().collect());
    }
    match map.key().strategy {
        PartitionStrategy::Hash => Ok(everything(map)),
        PartitionStrategy::List => Ok(of_list(map, &known[0])),
        PartitionStrategy::Range => Ok(of_range(map, known)),
    }
}

fn of_list(map: &PartitionMap, known: &Known) -> Vec<Oid> {
    let null = map.value_key(&Datum::Null);
    let bounded = known.lower.is_some() || known.upper.is_some() || known.not_null;
    let fits = |key: &[u8]| {
        if key == null {
            return !bounded;
        }
        let above = known.lower.as_ref().is_none_or(|(value, inclusive)| {
            let bound = map.value_key(value);
            key > &bound[..] || (*inclusive && key == bound)
        });
        let below = known.upper.as_ref().is_none_or(|(value, inclusive)| {
            let bound = map.value_key(value);
            key < &bound[..] || (*inclusive && key == bound)
        });
        above && below
    };
    let mut all: Vec<Oid> = map.list_partitions().filter(|(key, _)| fits(key)).map(|(_, p)| p).collect();
    all.extend(map.default());
    all.sort_unstable();
    all.dedup();
    all
}

fn of_range(map: &PartitionMap, known: &[Known]) -> Vec<Oid> {
    // A null in any column leads to the default partition.
    if known.iter().any(|k| k.is_null) {
        return map.default().into_iter().collect();
    }
    let mut prefix = Vec::new();
    let mut at = 0;
    while let Some(value) = known.get(at).and_then(|k| k.equal.clone()) {
        prefix.push(value);
        at += 1;
    }
    let bound = |value: &Datum| {
        let mut values = prefix.clone();
        values.push(value.clone());
        map.prefix_key(&values)
    };
    let start = map.prefix_key(&prefix);
    let (mut low, mut high) = (start.clone(), start);
    high.push(AFTER);
    if let Some((value, inclusive)) = known.get(at).and_then(|k| k.lower.as_ref()) {
        low = bound(value);
        if !inclusive {
            low.push(AFTER);
        }
    }
    if let Some((value, inclusive)) = known.get(at).and_then(|k| k.upper.as_ref()) {
        high = bound(value);
        if *inclusive {
            high.push(AFTER);
        }
    }
    let mut all: Vec<Oid> = map.ranges_between(&low, &high).map(|r| r.partition).collect();
    let first = known.first().is_some_and(|k| k.lower.is_some() && k.upper.is_some());
    if known.len() > 1 || !first || !is_covered(map, &low, &high) {
        all.extend(map.default());
    }
    all
}

/// Whether the ranges leave no gap between two keys.
fn is_covered(map: &PartitionMap, low: &[u8], high: &[u8]) -> bool {
    let mut at = low.to_vec();
    for range in map.ranges_between(low, high) {
        if *range.lower > at[..] {
            return false;
        }
        range.upper.clone_into(&mut at);
        if at[..] >= *high {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
