//! Objects as bytes: the rows of the engine's catalog tree, one per object.
//!
//! ```text
//! key    u32 database (0: shared), u8 0 object / 1 comment, u32 class, u32 object, i32 sub      (big-endian)
//! value  u8 version, u8 tag of the kind of object (255: a built-in object that was dropped), fields in order
//! field  integers: LEB128 (signed: zigzag); f32, f64: 4, 8 bytes; text and lists: length, then the elements;
//!        optional: u8 0, or 1 and the value; enum: u8; Datum: u8 kind (255 null), length, storage format
//! ```
//!
//! A version is read for as long as data directories with it may exist; a changed field list is a new version.

use std::sync::Arc;

use melba_types::bytes::{ByteReader, put_varint};
use melba_types::{Datum, Kind, Oid, TreeId};

use crate::builtin::BUILTINS;
use crate::classes;
use crate::objects::*;
use crate::partitioning::PartitionStrategy;
use crate::snapshot::ObjectChange;
use crate::triggers::FIRES_ON_ORIGIN;

const VERSION: u8 = 13;
/// There were no foreign data, and no plain objects: privileges on languages were `Granted`.
const VERSION_12: u8 = 12;
/// There were no publications, and no base types and shells of users.
const VERSION_11: u8 = 11;
/// There were no operator families and classes of users, and all indexes had trees: all other objects are still written so.
const VERSION_10: u8 = 10;
/// Collations had no version, and all orders were those of bytes.
const VERSION_9: u8 = 9;
/// Relations did not say whether their detach is pending.
const VERSION_8: u8 = 8;
/// Relations had no stated size at their end.
const VERSION_7: u8 = 7;
/// Casts did not say whether they are parts of types. Aggregates had no more than a transition and a final function: the row of an extension's ended there.
const VERSION_6: u8 = 6;
/// Constraints did not say whether they are suspended.
const VERSION_5: u8 = 5;
/// Types had no dependency list at their end.
const VERSION_4: u8 = 4;
const TAG_RELATION: u8 = 1;
const TAG_TYPE: u8 = 2;
const TAG_FUNCTION: u8 = 3;
/// The fields of `AggregateInfo` since version 7.
const LATER_OF_AGGREGATE: [u8; 6] = [0, b'r', 0, 0, 0, 0];
const TAG_CAST: u8 = 5;
const TAG_COLLATION: u8 = 8;
const TAG_CONSTRAINT: u8 = 6;
const TAG_DROPPED: u8 = 255;
const NULL_KIND: u8 = 255;
/// Bytes of a key.
pub const KEY_BYTES: usize = 17;

/// A change as the engine stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredChange {
    pub key: [u8; KEY_BYTES],
    /// The row's new value; `None`: the row is deleted.
    pub value: Option<Vec<u8>>,
}

/// The bytes to write for a change in a database.
pub fn encode_change(database: Oid, change: &ObjectChange) -> StoredChange {
    let database = if change.is_shared() { Oid::INVALID } else { database };
    let (is_description, address) = match change {
        ObjectChange::Put(Object::Description(d)) => (true, d.address),
        ObjectChange::Put(object) => (false, object.address()),
        ObjectChange::Remove(address) => (false, *address),
        ObjectChange::RemoveDescription(address) => (true, *address),
    };
    let value = match change {
        ObjectChange::Put(object) => Some(encode_object(object)),
        ObjectChange::Remove(address) if address.object.0 < classes::FIRST_USER_OID => Some(vec![VERSION_10, TAG_DROPPED]),
        ObjectChange::Remove(_) | ObjectChange::RemoveDescription(_) => None,
    };
    StoredChange { key: encode_key(database, is_description, address), value }
}

/// The change that a stored row stands for, with its database (0: shared). `None`: the row is corrupt.
pub fn decode_change(key: &[u8], value: &[u8]) -> Option<(Oid, ObjectChange)> {
    let key: &[u8; KEY_BYTES] = key.try_into().ok()?;
    let number = |at: usize| u32::from_be_bytes([key[at], key[at + 1], key[at + 2], key[at + 3]]);
    let database = Oid(number(0));
    if let [VERSION_4..=VERSION, TAG_DROPPED] = value {
        let address = ObjectAddress { class: Oid(number(5)), object: Oid(number(9)), sub: number(13) as i32 };
        return Some((database, ObjectChange::Remove(address)));
    }
    let object = decode_object(value)?;
    let is_description = matches!(object, Object::Description(_));
    (encode_key(database, is_description, object.address()) == *key).then_some((database, ObjectChange::Put(object)))
}

fn encode_key(database: Oid, is_description: bool, address: ObjectAddress) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..4].copy_from_slice(&database.0.to_be_bytes());
    key[4] = u8::from(is_description);
    key[5..9].copy_from_slice(&address.class.0.to_be_bytes());
    key[9..13].copy_from_slice(&address.object.0.to_be_bytes());
    key[13..].copy_from_slice(&address.sub.to_be_bytes());
    key
}

/// The version with which an object's row is written: that of the first build which can use it.
fn version_of(object: &Object) -> u8 {
    match object {
        Object::ForeignDataWrapper(_) | Object::ForeignServer(_) | Object::UserMapping(_) => VERSION,
        Object::Relation(o) if o.foreign.is_some() => VERSION,
        Object::Plain(_) => VERSION,
        Object::Type(o) if o.base.is_some() || !o.defined => VERSION_12,
        Object::Publication(_) | Object::PublicationMember(_) => VERSION_12,
        Object::OperatorFamily(_) | Object::OperatorClass(_) => VERSION_11,
        Object::Relation(o) if o.index.is_some() && o.access_method == classes::BRIN => VERSION_11,
        Object::Relation(o) if o.kind == RelationKind::Index && o.storage == Storage::None => VERSION_12,
        _ => VERSION_10,
    }
}

fn encode_object(object: &Object) -> Vec<u8> {
    let mut out = vec![version_of(object)];
    macro_rules! arms {
        ($($tag:literal $kind:ident)*) => {
            match object {$(Object::$kind(o) => { out.push($tag); o.write(&mut out); })*}
        };
    }
    arms! {
        0 Namespace 1 Relation 2 Type 3 Function 4 Operator 5 Cast 6 Constraint 7 Trigger 8 Collation 9 Description
        10 Role 11 Database 12 DefaultAcl 13 Extension 14 Policy 15 ExtendedStatistics
        16 EventTrigger 17 Rule 18 Granted 19 TextSearchDictionary 20 TextSearchConfig 21 OperatorFamily 22 OperatorClass
        23 Publication 24 PublicationMember 25 ForeignDataWrapper 26 ForeignServer 27 UserMapping 28 Plain
    }
    let ends_earlier = match object {
        // Before `base` and `foreign`, which they do not have.
        Object::Type(_) => out[0] < VERSION_12,
        Object::Relation(_) => out[0] < VERSION,
        _ => false,
    };
    if ends_earlier {
        out.pop();
    }
    out
}

fn decode_object(bytes: &[u8]) -> Option<Object> {
    let completed;
    let (tag, rest) = match bytes {
        [VERSION_4..=VERSION_9, TAG_COLLATION, rest @ ..] => {
            completed = [rest, &[0]].concat();
            (TAG_COLLATION, &completed[..])
        }
        [VERSION_9..=VERSION_12, TAG_RELATION, rest @ ..] => {
            completed = [rest, &[0]].concat();
            (TAG_RELATION, &completed[..])
        }
        [VERSION_8, TAG_RELATION, rest @ ..] => {
            completed = [rest, &[0, 0]].concat();
            (TAG_RELATION, &completed[..])
        }
        [VERSION_4..=VERSION_7, TAG_RELATION, rest @ ..] => {
            completed = [rest, &[0, 0, 0]].concat();
            (TAG_RELATION, &completed[..])
        }
        [VERSION_4, TAG_TYPE, rest @ ..] => {
            completed = [rest, &[0, 0]].concat();
            (TAG_TYPE, &completed[..])
        }
        [VERSION_5..=VERSION_11, TAG_TYPE, rest @ ..] => {
            completed = [rest, &[0]].concat();
            (TAG_TYPE, &completed[..])
        }
        [VERSION_6 | VERSION_5 | VERSION_4, TAG_CAST, rest @ ..] => {
            // There was no CREATE CAST: those that are no extension's were made with a range type.
            let oid = Oid::read(&mut ByteReader::new(rest))?;
            let is_part = (classes::FIRST_USER_OID..classes::FIRST_EXTENSION_OID).contains(&oid.0);
            completed = [rest, &[u8::from(is_part)]].concat();
            (TAG_CAST, &completed[..])
        }
        [VERSION_4 | VERSION_5, TAG_CONSTRAINT, rest @ ..] => {
            completed = [rest, &[FIRES_ON_ORIGIN; 2]].concat();
            (TAG_CONSTRAINT, &completed[..])
        }
        [VERSION_6 | VERSION_5 | VERSION_4, TAG_FUNCTION, rest @ ..]
            if !matches!(rest, [.., 0]) || read(TAG_FUNCTION, rest).is_none() =>
        {
            completed = [rest, &LATER_OF_AGGREGATE].concat();
            (TAG_FUNCTION, &completed[..])
        }
        [VERSION_4..=VERSION, tag, rest @ ..] => (*tag, rest),
        _ => return None,
    };
    let object = language_of_list(read(tag, rest)?);
    Some(if bytes[0] < VERSION_10 { ordered_by_bytes(object) } else { object })
}

/// A language, of which there was no more than its list of privileges.
fn language_of_list(object: Object) -> Object {
    let Object::Granted(list) = &object else { return object };
    match BUILTINS.plain_objects.get(list.oid).filter(|language| language.class == list.class) {
        Some(language) => Object::Plain(Arc::new(PlainObject { acl: list.acl.clone(), ..(**language).clone() })),
        None => object,
    }
}

/// An index, or a table partitioned by range, of a version that ordered by bytes whatever collation its keys have. By "C", equal texts are
/// the same as by all collations of that time.
fn ordered_by_bytes(mut object: Object) -> Object {
    let is_icu = |oid: Oid| BUILTINS.collations.get(oid).is_some_and(|c| c.provider == b'i');
    let Object::Relation(relation) = &mut object else { return object };
    if relation.index.is_none() && relation.partition_key.is_none() {
        return object;
    }
    let relation = Arc::make_mut(relation);
    if let Some(index) = &mut relation.index {
        for key in Arc::make_mut(index).keys.iter_mut().filter(|key| is_icu(key.collation)) {
            key.collation = classes::C_COLLATION;
        }
    }
    if let Some(key) = relation.partition_key.as_mut().filter(|key| key.strategy == PartitionStrategy::Range) {
        for column in Arc::make_mut(key).columns.iter_mut().filter(|column| is_icu(column.collation)) {
            column.collation = classes::C_COLLATION;
        }
    }
    object
}

fn read(tag: u8, rest: &[u8]) -> Option<Object> {
    let mut reader = ByteReader::new(rest);
    macro_rules! arms {
        ($($tag:literal $kind:ident)*) => {
            match tag {$($tag => Object::$kind(Code::read(&mut reader)?),)* _ => return None}
        };
    }
    let mut object = arms! {
        0 Namespace 1 Relation 2 Type 3 Function 4 Operator 5 Cast 6 Constraint 7 Trigger 8 Collation 9 Description
        10 Role 11 Database 12 DefaultAcl 13 Extension 14 Policy 15 ExtendedStatistics
        16 EventTrigger 17 Rule 18 Granted 19 TextSearchDictionary 20 TextSearchConfig 21 OperatorFamily 22 OperatorClass
        23 Publication 24 PublicationMember 25 ForeignDataWrapper 26 ForeignServer 27 UserMapping 28 Plain
    };
    // The name of a system relation's generator is not stored: it comes from the built-in relation.
    if let Object::Relation(relation) = &mut object
        && let Some(builtin) = BUILTINS.relations.get(relation.oid)
    {
        Arc::make_mut(relation).storage = builtin.storage.clone();
    }
    reader.is_empty().then_some(object)
}

/// The bytes of a pg_mcv_list.
pub fn encode_mcv_list(items: &[McvItem]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(items.len() as u64, &mut out);
    items.iter().for_each(|item| item.write(&mut out));
    out
}

/// The items of a pg_mcv_list; `None`: the bytes are none.
pub fn decode_mcv_list(bytes: &[u8]) -> Option<Vec<McvItem>> {
    let mut reader = ByteReader::new(bytes);
    let items = Code::read(&mut reader)?;
    reader.is_empty().then_some(items)
}

/// A length of items that take a byte at least, so that a corrupt one allocates nothing.
fn count(r: &mut ByteReader<'_>) -> Option<usize> {
    r.length().filter(|count| *count <= r.remaining())
}

/// A field that can be written and read back.
trait Code: Sized {
    fn write(&self, out: &mut Vec<u8>);
    fn read(r: &mut ByteReader<'_>) -> Option<Self>;
}

macro_rules! code_integers {
    ($($ty:ty: $to:expr, $from:expr;)*) => {$(
        impl Code for $ty {
            fn write(&self, out: &mut Vec<u8>) {
                put_varint($to(*self), out);
            }
            fn read(r: &mut ByteReader<'_>) -> Option<Self> {
                r.varint().and_then($from)
            }
        }
    )*};
}

fn zigzag(v: i64) -> u64 {
    (v << 1 ^ v >> 63) as u64
}

fn unzigzag(v: u64) -> i64 {
    (v >> 1) as i64 ^ -((v & 1) as i64)
}

code_integers! {
    u64: |v| v, Some;
    i64: zigzag, |v| Some(unzigzag(v));
    i32: |v| zigzag(i64::from(v)), |v| unzigzag(v).try_into().ok();
    i16: |v| zigzag(i64::from(v)), |v| unzigzag(v).try_into().ok();
    Oid: |v: Oid| u64::from(v.0), |v: u64| v.try_into().ok().map(Oid);
    TreeId: |v: TreeId| v.0, |v| Some(TreeId(v));
}

impl Code for u8 {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        r.u8()
    }
}

impl Code for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        Some(r.u8()? != 0)
    }
}

impl Code for f32 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        Some(f32::from_le_bytes(r.take(4)?.try_into().ok()?))
    }
}

impl Code for f64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        Some(f64::from_le_bytes(r.take(8)?.try_into().ok()?))
    }
}

impl Code for Arc<str> {
    fn write(&self, out: &mut Vec<u8>) {
        put_varint(self.len() as u64, out);
        out.extend_from_slice(self.as_bytes());
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        let length = count(r)?;
        Some(std::str::from_utf8(r.take(length)?).ok()?.into())
    }
}

impl<T: Code> Code for Arc<T> {
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        T::read(r).map(Arc::new)
    }
}

impl<T: Code> Code for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.write(out);
        }
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        match r.u8()? {
            0 => Some(None),
            _ => Some(Some(T::read(r)?)),
        }
    }
}

impl<T: Code> Code for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        put_varint(self.len() as u64, out);
        self.iter().for_each(|v| v.write(out));
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        let length = count(r)?;
        (0..length).map(|_| T::read(r)).collect()
    }
}

impl<T: Code> Code for Arc<[T]> {
    fn write(&self, out: &mut Vec<u8>) {
        put_varint(self.len() as u64, out);
        self.iter().for_each(|v| v.write(out));
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        Vec::read(r).map(Arc::from)
    }
}

impl<A: Code, B: Code> Code for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        Some((A::read(r)?, B::read(r)?))
    }
}

impl<A: Code, B: Code, C: Code> Code for (A, B, C) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
        self.2.write(out);
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        Some((A::read(r)?, B::read(r)?, C::read(r)?))
    }
}

impl Code for Kind {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        Kind::from_u8(r.u8()?)
    }
}

impl Code for Datum {
    fn write(&self, out: &mut Vec<u8>) {
        let Some(kind) = self.kind() else {
            out.push(NULL_KIND);
            return;
        };
        let mut bytes = Vec::new();
        melba_types::codec::encode(self, &mut bytes);
        out.push(kind as u8);
        put_varint(bytes.len() as u64, out);
        out.extend_from_slice(&bytes);
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        let tag = r.u8()?;
        if tag == NULL_KIND {
            return Some(Datum::Null);
        }
        let length = count(r)?;
        melba_types::codec::decode(Kind::from_u8(tag)?, r.take(length)?)
    }
}

impl Code for Storage {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            // A system relation's generator is known by its OID.
            Storage::None | Storage::System(_) | Storage::Toast(_) => out.push(0),
            Storage::Tree(tree) => {
                out.push(1);
                tree.write(out);
            }
            Storage::Sequence(tree) => {
                out.push(2);
                tree.write(out);
            }
        }
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        Some(match r.u8()? {
            0 => Storage::None,
            1 => Storage::Tree(TreeId::read(r)?),
            2 => Storage::Sequence(TreeId::read(r)?),
            _ => return None,
        })
    }
}

impl Code for PartitionValues {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            PartitionValues::Default => out.push(0),
            PartitionValues::List(values) => {
                out.push(1);
                values.write(out);
            }
            PartitionValues::Range(from, to) => {
                out.push(2);
                from.write(out);
                to.write(out);
            }
            PartitionValues::Hash { modulus, remainder } => {
                out.push(3);
                modulus.write(out);
                remainder.write(out);
            }
        }
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        Some(match r.u8()? {
            0 => PartitionValues::Default,
            1 => PartitionValues::List(Code::read(r)?),
            2 => PartitionValues::Range(Code::read(r)?, Code::read(r)?),
            3 => PartitionValues::Hash { modulus: Code::read(r)?, remainder: Code::read(r)? },
            _ => return None,
        })
    }
}

/// Made from the other fields when it is first needed.
impl Code for CollatorCell {
    fn write(&self, _: &mut Vec<u8>) {}
    fn read(_: &mut ByteReader<'_>) -> Option<Self> {
        Some(CollatorCell::default())
    }
}

impl Code for RangeDatum {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            RangeDatum::MinValue => out.push(0),
            RangeDatum::Value(value) => {
                out.push(1);
                value.write(out);
            }
            RangeDatum::MaxValue => out.push(2),
        }
    }
    fn read(r: &mut ByteReader<'_>) -> Option<Self> {
        Some(match r.u8()? {
            0 => RangeDatum::MinValue,
            1 => RangeDatum::Value(Code::read(r)?),
            2 => RangeDatum::MaxValue,
            _ => return None,
        })
    }
}

/// Enums by their place in the list, which is part of the format.
macro_rules! code_enum {
    ($($ty:ident { $($variant:ident)* })*) => {$(
        impl Code for $ty {
            fn write(&self, out: &mut Vec<u8>) {
                const ALL: &[$ty] = &[$($ty::$variant),*];
                out.push(ALL.iter().position(|v| v == self).map_or(u8::MAX, |i| i as u8));
            }
            fn read(r: &mut ByteReader<'_>) -> Option<Self> {
                const ALL: &[$ty] = &[$($ty::$variant),*];
                ALL.get(usize::from(r.u8()?)).copied()
            }
        }
    )*};
}

code_enum! {
    RelationKind { Table Index Sequence View MaterializedView Composite PartitionedTable PartitionedIndex Toast ForeignTable }
    Persistence { Permanent Unlogged Temporary Memory }
    TypeKind { Base Composite Domain Enum Pseudo Range Multirange }
    FunctionKind { Function Procedure Aggregate Window }
    PartitionStrategy { List Range Hash }
    ConstraintKind { Check ForeignKey NotNull PrimaryKey Unique Exclusion Trigger }
}

/// Structs by their fields in the order listed, which is part of the format. A field that is left out does not compile.
macro_rules! code_struct {
    ($($ty:ident { $($field:ident)* })*) => {$(
        impl Code for $ty {
            fn write(&self, out: &mut Vec<u8>) {
                $(self.$field.write(out);)*
            }
            fn read(r: &mut ByteReader<'_>) -> Option<Self> {
                Some($ty { $($field: Code::read(r)?),* })
            }
        }
    )*};
}

code_struct! {
    AclItem { grantee grantor privileges }
    ObjectAddress { class object sub }
    Namespace { oid name owner acl }
    DefaultAcl { oid role namespace letter acl }
    Relation {
        oid name namespace owner kind persistence row_type of_type columns storage file_node indexes constraints triggers
        options index sequence view_query rule populated access_method acl row_security force_row_security
        replica_identity parents partition_key partition_bound depends_on stated detach_pending foreign
    }
    StatedSize { pages rows }
    PartitionKey { strategy columns }
    PartitionColumn { column expression ty typmod collation natural_collation opclass }
    PartitionBound { values text }
    Column {
        name ty typmod collation not_null default default_oid default_depends_on generated identity dropped missing storage
        compression statistics_target options acl inherited local kind
    }
    IndexInfo {
        table keys include unique primary nulls_not_distinct valid clustered replica_identity predicate constraint deferrable
    }
    IndexKey { column expression ty collation natural_collation opclass descending nulls_first }
    SequenceInfo { ty start increment min max cache cycle owned_by identity }
    Type {
        oid name namespace owner type_kind category preferred length by_value align storage delimiter defined element array
        collation input output receive send typmod_in typmod_out subscript relation domain labels range acl kind
        depends_on base
    }
    BaseInfo { held_as input output receive send typmod_in typmod_out analyze default }
    DomainInfo { base typmod dimensions not_null default constraints }
    RangeInfo { range subtype multirange collation opclass canonical subtype_diff }
    Function {
        oid name namespace owner kind language cost rows strict returns_set volatility parallel security_definer leakproof
        arg_types all_arg_types arg_modes arg_names arg_defaults variadic return_type source sql_body config acl depends_on
        aggregate
    }
    AggregateInfo {
        kind direct_args transition final_function combine transition_type initial_value sort_operator final_extra final_modify
        space serial deserial moving
    }
    MovingAggregate {
        transition inverse final_function final_extra final_modify transition_type space initial_value
    }
    Operator {
        oid name namespace owner left right result function commutator negator can_merge can_hash restrict join
    }
    OperatorFamily { oid name namespace owner method operators functions }
    FamilyOperator { oid left right strategy operator ordering sort_family class }
    FamilyFunction { oid left right number function class }
    OperatorClass { oid name namespace owner method family input_type is_default key_type }
    Cast { oid source target function context method part_of_type }
    Constraint {
        oid name namespace kind deferrable initially_deferred enforced validated relation domain index columns foreign_key
        expression operators local inherited no_inherit parent depends_on check_enabled action_enabled
    }
    ForeignKeyInfo {
        referenced_table referenced_columns on_update on_delete match_type delete_set_columns operators
    }
    Trigger {
        oid name table function events enabled columns arguments when old_table new_table deferrable initially_deferred
        constraint constraint_table parent depends_on
    }
    Policy { oid name table permissive command roles using check depends_on }
    RewriteRule { oid name table event enabled instead condition actions depends_on }
    ExtendedStatistics { oid name namespace owner table columns expressions kinds target depends_on data }
    StatisticsData { inherited ndistinct dependencies mcv }
    McvItem { values frequency base_frequency }
    EventTrigger { oid name event owner function enabled tags }
    Publication { oid name owner all_tables operations via_root generated options }
    PublicationMember { oid publication class object }
    ForeignDataWrapper { oid name owner handler validator acl options }
    ForeignServer { oid name owner wrapper ty version acl options }
    UserMapping { oid user server options }
    ForeignTable { server options columns }
    ColumnOptions { column options }
    Collation { oid name namespace owner provider deterministic locale version collator }
    TextSearchDictionary { oid name namespace owner template options }
    TextSearchConfig { oid name namespace owner parser map }
    TextSearchMapping { token_type dictionaries }
    Extension { oid name owner namespace version members }
    PlainObject { oid class name namespace owner acl options fields depends_on }
    Granted { oid class name acl }
    Description { address text }
    Role {
        oid name superuser inherit create_role create_db can_login replication bypass_rls connection_limit password
        valid_until member_of settings
    }
    Membership { oid role grantor admin inherit set }
    Database { oid name owner is_template allow_connections connection_limit acl settings large_object_metadata large_object_data }
}

#[cfg(test)]
mod tests;
