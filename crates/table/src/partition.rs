//! Which partition of a table a row belongs to.
//!
//! Values are compared by the bytes of their keys (`melba_expression::key`), as indexes compare them. A bound of a range is the key of its
//! values, and ends with a byte before or after those of all values where it is MINVALUE or MAXVALUE.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use melba_catalog::derived::Derivation;
use melba_catalog::{Catalog, PartitionKey, PartitionStrategy, PartitionValues, RangeDatum, Relation};
use melba_fmgr::{CallContext, ScalarFn, Session, registry};
use melba_types::{Datum, DbError, Oid, Result};

use super::target::PartSource;
use melba_expression::Evaluation;
use melba_expression::key::KeyPart;

/// What PostgreSQL seeds the hashes of partition keys with.
const HASH_SEED: u64 = 0x7A5B_2236_7996_DCFD;

const BEFORE_VALUES: u8 = 0;
const AFTER_VALUES: u8 = u8::MAX;

/// The number of the support function that hashes with a seed, in a hash operator family.
const HASH_EXTENDED: i16 = 2;

/// A partitioned table's partitions by the values of their keys.
#[derive(Debug)]
pub struct PartitionMap {
    key: Arc<PartitionKey>,
    parts: Vec<KeyPart>,
    hashes: Vec<KeyHash>,
    list: HashMap<Vec<u8>, Oid>,
    /// By their lower bounds.
    ranges: Vec<RangePartition>,
    hash: Vec<HashPartition>,
    default: Option<Oid>,
    /// Partitions that are partitioned themselves.
    partitioned: Vec<Oid>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RangePartition {
    pub lower: Vec<u8>,
    pub upper: Vec<u8>,
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
    /// 0A000 when the key is hashed by a function that is not there.
    pub fn empty(catalog: &Catalog, key: &Arc<PartitionKey>) -> Result<PartitionMap> {
        let parts = key.columns.iter().map(|c| KeyPart::new(catalog, c.ty, false, false)).collect();
        let hashes = match key.strategy {
            PartitionStrategy::Hash => {
                key.columns.iter().map(|c| key_hash(catalog, c.ty, c.opclass, c.collation)).collect::<Result<_>>()?
            }
            _ => vec![],
        };
        Ok(PartitionMap {
            key: key.clone(),
            parts,
            hashes,
            list: HashMap::new(),
            ranges: vec![],
            hash: vec![],
            default: None,
            partitioned: vec![],
        })
    }

    /// With all partitions of a table.
    pub fn new(catalog: &Catalog, table: &Relation) -> Result<Arc<PartitionMap>> {
        if let Some(map) = catalog.derived().get(table.oid, Derivation::Partitions) {
            return Ok(map);
        }
        let map = Arc::new(PartitionMap::build(catalog, table)?);
        catalog.derived().put(table.oid, Derivation::Partitions, map.clone(), map.memory_bytes());
        Ok(map)
    }

    fn build(catalog: &Catalog, table: &Relation) -> Result<PartitionMap> {
        let key = table.partition_key.as_ref();
        let key = key.ok_or_else(|| DbError::internal(format!("table \"{}\" is not partitioned", table.name)))?;
        let mut map = PartitionMap::empty(catalog, key)?;
        for partition in catalog.children(table.oid) {
            let Some(relation) = catalog.relation(partition) else { continue };
            if let Some(bound) = &relation.partition_bound {
                map.add(partition, &bound.values);
            }
            if relation.is_partitioned() {
                map.partitioned.push(partition);
            }
        }
        map.ranges.sort_unstable();
        Ok(map)
    }

    /// With the partitions given.
    #[cfg(test)]
    pub fn of(catalog: &Catalog, key: &Arc<PartitionKey>, partitions: &[(Oid, PartitionValues)]) -> Result<PartitionMap> {
        let mut map = PartitionMap::empty(catalog, key)?;
        partitions.iter().for_each(|(partition, values)| map.add(*partition, values));
        map.ranges.sort_unstable();
        Ok(map)
    }

    fn add(&mut self, partition: Oid, values: &PartitionValues) {
        match values {
            PartitionValues::Default => self.default = Some(partition),
            PartitionValues::List(values) => {
                for value in values {
                    self.list.insert(self.value_key(value), partition);
                }
            }
            PartitionValues::Range(from, to) => {
                self.ranges.push(RangePartition { lower: self.bound_key(from), upper: self.bound_key(to), partition });
            }
            PartitionValues::Hash { modulus, remainder } => {
                self.hash.push(HashPartition { modulus: *modulus, remainder: *remainder, partition });
            }
        }
    }

    pub fn key(&self) -> &Arc<PartitionKey> {
        &self.key
    }

    /// Memory in use, about, in bytes.
    fn memory_bytes(&self) -> usize {
        let list: usize = self.list.keys().map(|key| key.len() + 64).sum();
        let ranges: usize = self.ranges.iter().map(|r| r.lower.len() + r.upper.len() + 96).sum();
        list + ranges + self.hash.len() * size_of::<HashPartition>()
    }

    /// Partitions that are partitioned themselves.
    pub fn partitioned(&self) -> &[Oid] {
        &self.partitioned
    }

    pub fn default(&self) -> Option<Oid> {
        self.default
    }

    /// In the order of their lower bounds.
    pub fn ranges(&self) -> &[RangePartition] {
        &self.ranges
    }

    pub fn hash_partitions(&self) -> &[HashPartition] {
        &self.hash
    }

    /// The partitions in the order of their bounds, the default one last.
    pub fn in_order(&self) -> Vec<Oid> {
        let mut hash = self.hash.clone();
        hash.sort_unstable_by_key(|h| (h.modulus, h.remainder));
        let mut list: Vec<(&Vec<u8>, Oid)> = self.list.iter().map(|(key, partition)| (key, *partition)).collect();
        list.sort_unstable();
        let ranges = self.ranges.iter().map(|r| r.partition);
        let others = list.into_iter().map(|(_, p)| p).chain(hash.into_iter().map(|h| h.partition)).chain(self.default);
        let mut known = HashSet::new();
        ranges.chain(others).filter(|partition| known.insert(*partition)).collect()
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
        self.list.get(&self.value_key(value)).copied()
    }

    /// Partitions that have values of their own in a list.
    pub fn list_partitions(&self) -> impl Iterator<Item = (&[u8], Oid)> {
        self.list.iter().map(|(key, partition)| (&key[..], *partition))
    }

    /// The partition that a row with these values in the key's columns belongs to.
    pub fn find(&self, session: &dyn Session, values: &[Datum]) -> Result<Option<Oid>> {
        let found = match self.key.strategy {
            PartitionStrategy::List => self.list_partition(&values[0]),
            PartitionStrategy::Range if values.iter().any(Datum::is_null) => None,
            PartitionStrategy::Range => {
                let key = self.prefix_key(values);
                let after = self.ranges.partition_point(|r| r.lower <= key);
                self.ranges[..after].last().filter(|r| key < r.upper).map(|r| r.partition)
            }
            PartitionStrategy::Hash => {
                let hash = self.hash(session, values)?;
                let is_in = |p: &&HashPartition| hash % p.modulus.max(1) as u64 == p.remainder as u64;
                self.hash.iter().find(is_in).map(|p| p.partition)
            }
        };
        Ok(found.or(self.default))
    }

    /// The hash of a row's key, as PostgreSQL combines it.
    fn hash(&self, session: &dyn Session, values: &[Datum]) -> Result<u64> {
        let mut all: u64 = 0;
        for (value, how) in values.iter().zip(&self.hashes).filter(|(value, _)| !value.is_null()) {
            let context = CallContext {
                session,
                arg_types: &how.types,
                return_type: melba_types::oids::INT8,
                collation: how.collation,
                variadic: false,
                columns: None,
            };
            let hash = (how.function)(&context, &[value.clone(), Datum::Int8(HASH_SEED as i64)])?.as_i64() as u64;
            all ^= hash.wrapping_add(0x49a0_f4dd_15e5_a8e3).wrapping_add(all << 54).wrapping_add(all >> 7);
        }
        Ok(all)
    }
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
                map.add(partition.oid, &bound.values);
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
