//! Which partition of a table a row belongs to.
//!
//! Values are compared by the bytes of their keys (`melba_expression::key`), as indexes compare them. A bound of a range is the key of its
//! values, and ends with a byte before or after those of all values where it is MINVALUE or MAXVALUE.

use std::collections::BTreeMap;
use std::ops;
use std::sync::Arc;

use hashbrown::HashSet;
use melba_catalog::derived::Derivation;
use melba_catalog::families::PartitionFamily;
use melba_catalog::{Catalog, PartitionBound, PartitionKey, PartitionStrategy, PartitionValues, RangeDatum, Relation};
use melba_fmgr::{CallInfo, ScalarFn, Session, registry};
use melba_types::{Datum, DbError, Oid, Result};
use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};

use super::part_source::PartSource;
use melba_expression::Evaluation;
use melba_expression::key::KeyPart;

/// The size of a bound beside its bytes, about.
const BOUND_BYTES: usize = 128;

/// PostgreSQL's seed for the hashes of partition keys.
const HASH_SEED: u64 = 0x7A5B_2236_7996_DCFD;

const BEFORE_VALUES: u8 = 0;
const AFTER_VALUES: u8 = u8::MAX;

/// The number of the support function that hashes with a seed, in a hash operator family.
const HASH_EXTENDED: i16 = 2;

/// A partitioned table's partitions by the values of their keys. Persistent: one with a partition more shares the rest.
#[derive(Clone, Debug)]
pub struct PartitionMap {
    key: Arc<PartitionKey>,
    parts: Vec<KeyPart>,
    hashes: Arc<[KeyHash]>,
    /// By the key of a value in a list, of a range's lower bound, or of modulus and remainder.
    bounds: RedBlackTreeMapSync<Vec<u8>, BoundKey>,
    members: RedBlackTreeMapSync<Oid, Arc<PartitionBound>>,
    /// How many hash partitions have a modulus.
    moduli: BTreeMap<i32, usize>,
    default: Option<Oid>,
    /// Partitions that are partitioned themselves.
    partitioned: RedBlackTreeSetSync<Oid>,
    memory_bytes: usize,
}

#[derive(Clone, Debug)]
struct BoundKey {
    /// Of a range.
    upper: Vec<u8>,
    partition: Oid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangePartition<'a> {
    pub lower: &'a [u8],
    pub upper: &'a [u8],
    pub partition: Oid,
}

#[derive(Clone, Copy, Debug)]
pub struct HashPartition {
    pub modulus: i32,
    pub remainder: i32,
    pub partition: Oid,
}

/// How a column of a key is hashed.
struct KeyHash {
    function: ScalarFn,
    types: [Oid; 2],
    collation: Oid,
}

impl std::fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHash")
    }
}

impl PartitionMap {
    /// Without partitions yet.
    ///
    /// # Errors
    /// 0A000 when the key is hashed by a function that does not exist.
    pub fn empty(catalog: &Catalog, key: &Arc<PartitionKey>) -> Result<PartitionMap> {
        let parts = key.columns.iter().map(|c| KeyPart::new(catalog, (c.ty, c.collation), false, false)).collect();
        let hashes = match key.strategy {
            PartitionStrategy::Hash => {
                key.columns.iter().map(|c| key_hash(catalog, c.ty, c.opclass, c.collation)).collect::<Result<_>>()?
            }
            _ => Arc::default(),
        };
        Ok(PartitionMap {
            key: key.clone(),
            parts,
            hashes,
            bounds: RedBlackTreeMapSync::new_sync(),
            members: RedBlackTreeMapSync::new_sync(),
            moduli: BTreeMap::new(),
            default: None,
            partitioned: RedBlackTreeSetSync::new_sync(),
            memory_bytes: 0,
        })
    }

    /// With all partitions of a table.
    pub fn new(catalog: &Catalog, table: &Relation) -> Result<Arc<PartitionMap>> {
        let key = table.partition_key.as_ref();
        let key = key.ok_or_else(|| DbError::internal(format!("table \"{}\" is not partitioned", table.name)))?;
        let is_fixed = key.columns.iter().all(|c| KeyPart::new(catalog, (c.ty, c.collation), false, false).is_fixed());
        // Knowledge of other snapshots is usable where keys are the same in all.
        let family = catalog.family(table.oid).filter(|_| is_fixed);
        let derived = family.map_or_else(|| catalog.derived().clone(), |family| catalog.derived().at(family.number()));
        if let Some(map) = derived.get(table.oid, Derivation::Partitions) {
            return Ok(map);
        }
        let map = match family.and_then(|family| PartitionMap::from_before(catalog, table.oid, family)) {
            Some(map) => map,
            None => PartitionMap::build(catalog, key, table.oid)?,
        };
        let map = Arc::new(map);
        derived.put(table.oid, Derivation::Partitions, map.clone(), map.memory_bytes);
        Ok(map)
    }

    /// Made from that of the last state that is known.
    fn from_before(catalog: &Catalog, table: Oid, family: &PartitionFamily) -> Option<PartitionMap> {
        let known = |number| catalog.derived().at(number).get::<PartitionMap>(table, Derivation::Partitions);
        let (map, changed) = family.before().find_map(|(number, changed)| Some((known(number)?, changed)))?;
        let mut map = (*map).clone();
        let changed: HashSet<Oid> = changed.collect();
        changed.iter().for_each(|partition| map.remove(*partition));
        for relation in changed.iter().filter_map(|partition| catalog.relation(*partition)) {
            if relation.parents.contains(&table) && !relation.detach_pending {
                map.add_relation(relation);
            }
        }
        Some(map)
    }

    fn build(catalog: &Catalog, key: &Arc<PartitionKey>, table: Oid) -> Result<PartitionMap> {
        let mut map = PartitionMap::empty(catalog, key)?;
        catalog.children(table).into_iter().filter_map(|p| catalog.relation(p)).for_each(|r| map.add_relation(r));
        Ok(map)
    }

    /// With the partitions given.
    #[cfg(test)]
    pub fn of(catalog: &Catalog, key: &Arc<PartitionKey>, partitions: &[(Oid, PartitionValues)]) -> Result<PartitionMap> {
        let mut map = PartitionMap::empty(catalog, key)?;
        for (partition, values) in partitions {
            map.add(*partition, &Arc::new(PartitionBound { values: values.clone(), text: "".into() }));
        }
        Ok(map)
    }

    fn add_relation(&mut self, relation: &Relation) {
        let Some(bound) = &relation.partition_bound else { return };
        self.add(relation.oid, bound);
        if relation.is_partitioned() {
            self.partitioned.insert_mut(relation.oid);
        }
    }

    fn add(&mut self, partition: Oid, bound: &Arc<PartitionBound>) {
        self.members.insert_mut(partition, bound.clone());
        self.memory_bytes += BOUND_BYTES;
        match &bound.values {
            PartitionValues::Default => self.default = Some(partition),
            PartitionValues::Hash { modulus, .. } => *self.moduli.entry(*modulus).or_default() += 1,
            PartitionValues::List(_) | PartitionValues::Range(..) => {}
        }
        for (key, upper) in self.keys_of(&bound.values) {
            self.memory_bytes += key.len() + upper.len() + BOUND_BYTES;
            self.bounds.insert_mut(key, BoundKey { upper, partition });
        }
    }

    fn remove(&mut self, partition: Oid) {
        let Some(bound) = self.members.get(&partition).cloned() else { return };
        self.members.remove_mut(&partition);
        self.partitioned.remove_mut(&partition);
        self.memory_bytes -= BOUND_BYTES;
        match &bound.values {
            PartitionValues::Default => self.default = None,
            PartitionValues::Hash { modulus, .. } => {
                if let Some(left) = self.moduli.get_mut(modulus) {
                    *left -= 1;
                }
                self.moduli.retain(|_, left| *left > 0);
            }
            PartitionValues::List(_) | PartitionValues::Range(..) => {}
        }
        for (key, upper) in self.keys_of(&bound.values) {
            self.memory_bytes -= key.len() + upper.len() + BOUND_BYTES;
            self.bounds.remove_mut(&key);
        }
    }

    /// The keys of a bound, and the upper ends.
    fn keys_of(&self, values: &PartitionValues) -> Vec<(Vec<u8>, Vec<u8>)> {
        match values {
            PartitionValues::Default => vec![],
            PartitionValues::List(values) => values.iter().map(|value| (self.value_key(value), vec![])).collect(),
            PartitionValues::Range(from, to) => vec![(self.bound_key(from), self.bound_key(to))],
            PartitionValues::Hash { modulus, remainder } => vec![(hash_key(*modulus, *remainder), vec![])],
        }
    }

    pub fn key(&self) -> &Arc<PartitionKey> {
        &self.key
    }

    /// Partitions that are partitioned themselves.
    pub fn partitioned(&self) -> impl Iterator<Item = Oid> {
        self.partitioned.iter().copied()
    }

    pub fn default(&self) -> Option<Oid> {
        self.default
    }

    /// In the order of their lower bounds.
    pub fn ranges(&self) -> impl Iterator<Item = RangePartition<'_>> {
        let is_range = self.key.strategy == PartitionStrategy::Range;
        self.bounds.iter().filter(move |_| is_range).map(range_partition)
    }

    /// Those that have a key from `low` on and below `high`, in the order of their lower bounds.
    pub fn ranges_between<'m>(&'m self, low: &'m [u8], high: &'m [u8]) -> impl Iterator<Item = RangePartition<'m>> {
        let is_range = self.key.strategy == PartitionStrategy::Range;
        let first = is_range.then(|| self.last_from(low)).flatten().filter(|r| r.upper > low && r.lower < high);
        let after: (ops::Bound<&[u8]>, ops::Bound<&[u8]>) = (ops::Bound::Excluded(low), ops::Bound::Unbounded);
        let others = self.bounds.range::<[u8], _>(after).filter(move |_| is_range).map(range_partition);
        first.into_iter().chain(others.take_while(move |r| r.lower < high))
    }

    /// The range that begins last among those that begin at `key` or before.
    fn last_from(&self, key: &[u8]) -> Option<RangePartition<'_>> {
        let until: (ops::Bound<&[u8]>, ops::Bound<&[u8]>) = (ops::Bound::Unbounded, ops::Bound::Included(key));
        self.bounds.range::<[u8], _>(until).next_back().map(range_partition)
    }

    /// In the order of modulus and remainder.
    pub fn hash_partitions(&self) -> impl Iterator<Item = HashPartition> {
        let is_hash = self.key.strategy == PartitionStrategy::Hash;
        self.bounds.iter().filter(move |_| is_hash).filter_map(hash_partition)
    }

    /// The hash partitions last and first in their order, up to a modulus and remainder, and after them.
    pub fn hash_neighbours(&self, modulus: i32, remainder: i32) -> (Option<HashPartition>, Option<HashPartition>) {
        let key = hash_key(modulus, remainder);
        let until: (ops::Bound<&[u8]>, ops::Bound<&[u8]>) = (ops::Bound::Unbounded, ops::Bound::Included(&key));
        let after: (ops::Bound<&[u8]>, ops::Bound<&[u8]>) = (ops::Bound::Excluded(&key), ops::Bound::Unbounded);
        let before = self.bounds.range::<[u8], _>(until).next_back().and_then(hash_partition);
        (before, self.bounds.range::<[u8], _>(after).next().and_then(hash_partition))
    }

    /// A hash partition that has rows of those with a modulus and remainder. Of any two moduli, one divides the other.
    pub fn overlapping_hash(&self, modulus: i32, remainder: i32) -> Option<Oid> {
        self.moduli.iter().find_map(|(&other, &count)| {
            if other <= modulus {
                return self.hash_bound(other, remainder % other);
            }
            if (other / modulus) as usize <= count {
                return (remainder..other).step_by(modulus as usize).find_map(|r| self.hash_bound(other, r));
            }
            let own: (ops::Bound<&[u8]>, ops::Bound<&[u8]>) =
                (ops::Bound::Included(&hash_key(other, 0)), ops::Bound::Included(&hash_key(other, other)));
            let mut own = self.bounds.range::<[u8], _>(own).filter_map(hash_partition);
            own.find(|h| h.remainder % modulus == remainder).map(|h| h.partition)
        })
    }

    fn hash_bound(&self, modulus: i32, remainder: i32) -> Option<Oid> {
        self.bounds.get(&hash_key(modulus, remainder)[..]).map(|bound| bound.partition)
    }

    /// The partitions in the order of their bounds, the default one last.
    pub fn in_order(&self) -> Vec<Oid> {
        let mut known = HashSet::new();
        let all = self.bounds.values().map(|bound| bound.partition).chain(self.default);
        all.filter(|partition| known.insert(*partition)).collect()
    }

    /// The key of a value of a list.
    pub fn value_key(&self, value: &Datum) -> Vec<u8> {
        let mut out = Vec::new();
        self.parts[0].encode(value, &mut out);
        out
    }

    /// The order of two values of a column of the key.
    pub fn compare(&self, column: usize, a: &Datum, b: &Datum) -> std::cmp::Ordering {
        let key = |value: &Datum| {
            let mut out = Vec::new();
            self.parts[column].encode(value, &mut out);
            out
        };
        key(a).cmp(&key(b))
    }

    /// The key of values of the key's first columns.
    pub fn prefix_key(&self, values: &[Datum]) -> Vec<u8> {
        let mut out = Vec::new();
        values.iter().zip(&self.parts).for_each(|(value, part)| part.encode(value, &mut out));
        out
    }

    /// The key of a range's bound.
    pub fn bound_key(&self, bound: &[RangeDatum]) -> Vec<u8> {
        let mut out = Vec::new();
        for (datum, part) in bound.iter().zip(&self.parts) {
            match datum {
                RangeDatum::Value(value) => part.encode(value, &mut out),
                RangeDatum::MinValue => {
                    out.push(BEFORE_VALUES);
                    break;
                }
                RangeDatum::MaxValue => {
                    out.push(AFTER_VALUES);
                    break;
                }
            }
        }
        out
    }

    /// The partition that has a value of a list, apart from the default one.
    pub fn list_partition(&self, value: &Datum) -> Option<Oid> {
        self.bounds.get(&self.value_key(value)).map(|bound| bound.partition)
    }

    /// Partitions with their own values in a list.
    pub fn list_partitions(&self) -> impl Iterator<Item = (&[u8], Oid)> {
        let is_list = self.key.strategy == PartitionStrategy::List;
        self.bounds.iter().filter(move |_| is_list).map(|(key, bound)| (&key[..], bound.partition))
    }

    /// The partition that a row with these values in the key's columns belongs to.
    pub fn find(&self, session: &dyn Session, values: &[Datum]) -> Result<Option<Oid>> {
        let found = match self.key.strategy {
            PartitionStrategy::List => self.list_partition(&values[0]),
            PartitionStrategy::Range if values.iter().any(Datum::is_null) => None,
            PartitionStrategy::Range => {
                let key = self.prefix_key(values);
                self.last_from(&key).filter(|r| key[..] < *r.upper).map(|r| r.partition)
            }
            PartitionStrategy::Hash => {
                let hash = self.hash(session, values)?;
                let of = |modulus: &i32| self.hash_bound(*modulus, (hash % (*modulus).max(1) as u64) as i32);
                self.moduli.keys().find_map(of)
            }
        };
        Ok(found.or(self.default))
    }

    /// The hash of a row's key, as PostgreSQL combines it.
    fn hash(&self, session: &dyn Session, values: &[Datum]) -> Result<u64> {
        let mut all: u64 = 0;
        for (value, how) in values.iter().zip(&*self.hashes).filter(|(value, _)| !value.is_null()) {
            let context = CallInfo {
                session,
                arg_types: &how.types,
                return_type: melba_types::oids::INT8,
                collation: how.collation,
                variadic: false,
                columns: None,
                view: CallInfo::NO_VIEW,
            };
            let hash = (how.function)(&context, &[value.clone(), Datum::Int8(HASH_SEED as i64)])?.as_i64() as u64;
            all ^= hash.wrapping_add(0x49a0_f4dd_15e5_a8e3).wrapping_add(all << 54).wrapping_add(all >> 7);
        }
        Ok(all)
    }
}

/// Of the same order as modulus, then remainder.
fn hash_key(modulus: i32, remainder: i32) -> Vec<u8> {
    [modulus.to_be_bytes(), remainder.to_be_bytes()].concat()
}

fn hash_partition((key, bound): (&Vec<u8>, &BoundKey)) -> Option<HashPartition> {
    let (modulus, remainder) = key.split_at_checked(size_of::<i32>())?;
    let number = |bytes: &[u8]| bytes.try_into().ok().map(i32::from_be_bytes);
    Some(HashPartition { modulus: number(modulus)?, remainder: number(remainder)?, partition: bound.partition })
}

fn range_partition<'m>((lower, bound): (&'m Vec<u8>, &'m BoundKey)) -> RangePartition<'m> {
    RangePartition { lower, upper: &bound.upper, partition: bound.partition }
}

fn key_hash(catalog: &Catalog, ty: Oid, opclass: Oid, collation: Oid) -> Result<KeyHash> {
    let access = catalog.access_methods();
    let class = access.class(opclass);
    let found = class.and_then(|c| access.function(c.family, c.input_type, c.input_type, HASH_EXTENDED));
    let function = found.and_then(|f| registry::scalar(&catalog.function(f)?.source));
    let function = function
        .ok_or_else(|| DbError::unsupported(format!("partitioning by hash of type {}", catalog.format_type(ty, None, &[]))))?;
    Ok(KeyHash { function, types: [ty, melba_types::oids::INT8], collation })
}

/// The condition that a partition's rows satisfy.
#[derive(Debug)]
pub struct PartitionCheck {
    /// The key of the partitioned table, in terms of the columns of the table that rows are written to.
    pub key: Vec<PartSource>,
    /// Only the partition's own bound, or the bounds of all if it is the default one.
    pub map: Arc<PartitionMap>,
    pub partition: Oid,
}

impl PartitionCheck {
    pub fn new(catalog: &Catalog, parent: &Relation, partition: &Relation, key: Vec<PartSource>) -> Result<PartitionCheck> {
        let bound = partition.partition_bound.as_ref().filter(|b| !matches!(b.values, PartitionValues::Default));
        let map = match (bound, &parent.partition_key) {
            (Some(bound), Some(parent_key)) => {
                let mut map = PartitionMap::empty(catalog, parent_key)?;
                map.add(partition.oid, bound);
                Arc::new(map)
            }
            _ => PartitionMap::new(catalog, parent)?,
        };
        Ok(PartitionCheck { key, map, partition: partition.oid })
    }

    pub fn holds(&self, ctx: &Evaluation, row: &[Datum]) -> Result<bool> {
        let values = key_values(ctx, &self.key, &self.map, row)?;
        Ok(self.map.find(&*ctx.session, &values)? == Some(self.partition))
    }
}

/// The values of a partition key for a row.
pub fn key_values(ctx: &Evaluation, key: &[PartSource], map: &PartitionMap, row: &[Datum]) -> Result<Vec<Datum>> {
    let one = |(source, column): (&PartSource, &melba_catalog::PartitionColumn)| match source {
        PartSource::Column(at) => {
            let kind = ctx.catalog().kind_of(column.ty).unwrap_or(melba_types::Kind::Text);
            ctx.expand(row[*at].clone(), kind)
        }
        PartSource::Expression(expression) => expression.eval_row(ctx, row),
    };
    key.iter().zip(&map.key.columns).map(one).collect()
}

#[cfg(test)]
mod tests;
