//! PostgreSQL's hash functions, bit for bit: users partition by `hashtext(key) % n` and expect the same partition.
//!
//! Bob Jenkins' lookup3, seeded as PostgreSQL seeds it (src/common/hashfn.c). The executor's own hash tables use
//! `melba_types::key::hash`.

use melba_catalog::classes::HASH;
use melba_fmgr::{CallInfo, ScalarFn, registry};
use melba_types::collate::Collate;
use melba_types::{Datum, Numeric, Oid, Result, err, oids};

use crate::text::collation::nondeterministic;
use crate::text::io::unpadded;

const INITIAL: u32 = 0x9e37_79b9;
const EXTRA: u32 = 3_923_095;

type State = [u32; 3];

fn mix([mut a, mut b, mut c]: State) -> State {
    macro_rules! step {
        ($x:ident, $y:ident, $z:ident, $r:literal) => {
            $x = $x.wrapping_sub($z) ^ $z.rotate_left($r);
            $z = $z.wrapping_add($y);
        };
    }
    step!(a, b, c, 4);
    step!(b, c, a, 6);
    step!(c, a, b, 8);
    step!(a, b, c, 16);
    step!(b, c, a, 19);
    step!(c, a, b, 4);
    [a, b, c]
}

fn finish([mut a, mut b, mut c]: State) -> State {
    macro_rules! step {
        ($x:ident, $y:ident, $r:literal) => {
            $x = ($x ^ $y).wrapping_sub($y.rotate_left($r));
        };
    }
    step!(c, b, 14);
    step!(a, c, 11);
    step!(b, a, 25);
    step!(c, b, 16);
    step!(a, c, 4);
    step!(b, a, 14);
    step!(c, b, 24);
    [a, b, c]
}

fn start(length: usize, seed: u64) -> State {
    let initial = INITIAL.wrapping_add(length as u32).wrapping_add(EXTRA);
    let state = [initial; 3];
    if seed == 0 {
        return state;
    }
    mix([state[0].wrapping_add((seed >> 32) as u32), state[1].wrapping_add(seed as u32), state[2]])
}

fn hash_state(bytes: &[u8], seed: u64) -> State {
    let mut state = start(bytes.len(), seed);
    let mut chunks = bytes.chunks_exact(12);
    for chunk in &mut chunks {
        for (word, bytes) in state.iter_mut().zip(chunk.chunks_exact(4)) {
            *word = word.wrapping_add(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        }
        state = mix(state);
    }
    for (i, &b) in chunks.remainder().iter().enumerate() {
        // The lowest byte of the last word belongs to the length.
        let shift = if i < 8 { 8 * (i % 4) } else { 8 * (i - 8 + 1) };
        state[i / 4] = state[i / 4].wrapping_add(u32::from(b) << shift);
    }
    finish(state)
}

fn hash_word_state(word: u32, seed: u64) -> State {
    let mut state = start(4, seed);
    state[0] = state[0].wrapping_add(word);
    finish(state)
}

/// The 32-bit hash of bytes.
pub fn hash_bytes(bytes: &[u8]) -> u32 {
    hash_state(bytes, 0)[2]
}

/// The 64-bit hash of bytes with a seed.
pub fn hash_bytes_extended(bytes: &[u8], seed: u64) -> u64 {
    let [_, b, c] = hash_state(bytes, seed);
    u64::from(b) << 32 | u64::from(c)
}

/// The 32-bit hash of a 32-bit word.
pub fn hash_word(word: u32) -> u32 {
    hash_word_state(word, 0)[2]
}

/// The 64-bit hash of a 32-bit word with a seed.
pub fn hash_word_extended(word: u32, seed: u64) -> u64 {
    let [_, b, c] = hash_word_state(word, seed);
    u64::from(b) << 32 | u64::from(c)
}

/// The input that a type's hash functions pass to the hash.
enum Input {
    Word(u32),
    Bytes(Vec<u8>),
    /// The hash itself (and that of the extended function is the seed plus this).
    Constant(u32),
    /// Numeric: the digits' hash combined with the weight.
    Weighted(Vec<u8>, i32),
}

fn input(v: &Datum) -> Input {
    match v {
        Datum::Bool(v) => Input::Word(u32::from(*v)),
        Datum::Char(v) => Input::Word(i32::from(*v as i8) as u32),
        Datum::Int2(v) => Input::Word(i32::from(*v) as u32),
        Datum::Int4(v) => Input::Word(*v as u32),
        Datum::Int8(v) => {
            // So that equal smallints, integers and bigints have equal hashes.
            let high = (*v >> 32) as u32;
            Input::Word(*v as u32 ^ if *v >= 0 { high } else { !high })
        }
        Datum::Oid(v) => Input::Word(*v),
        Datum::Float4(v) => float_input(f64::from(*v)),
        Datum::Float8(v) => float_input(*v),
        Datum::Text(v) => Input::Bytes(v.as_bytes().to_vec()),
        Datum::Bytes(v) => Input::Bytes(v.to_vec()),
        Datum::Numeric(v) => numeric_input(v),
        Datum::Array(v) => Input::Bytes(v.elements.iter().flat_map(|e| e.as_oid().to_le_bytes()).collect()),
        Datum::Uuid(v) => Input::Bytes(v.to_vec()),
        other => panic!("no hash of {other:?}"),
    }
}

fn float_input(v: f64) -> Input {
    if v == 0.0 {
        return Input::Constant(0);
    }
    Input::Bytes(if v.is_nan() { f64::NAN } else { v }.to_le_bytes().to_vec())
}

fn numeric_input(v: &Numeric) -> Input {
    if !v.is_finite() {
        return Input::Constant(0);
    }
    let mut wire = Vec::new();
    v.write_wire(&mut wire);
    if wire.len() == 8 {
        return Input::Constant(u32::MAX);
    }
    let weight = i32::from(i16::from_be_bytes([wire[2], wire[3]]));
    Input::Weighted(wire[8..].chunks_exact(2).flat_map(|d| [d[1], d[0]]).collect(), weight)
}

/// The 32-bit hash function of most types.
pub fn hash(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    hash_input(collated(call, &a[0]).unwrap_or_else(|| input(&a[0])))
}

fn hash_input(input: Input) -> Result<Datum> {
    Ok(Datum::Int4(match input {
        Input::Word(word) => hash_word(word),
        Input::Bytes(bytes) => hash_bytes(&bytes),
        Input::Constant(hash) => hash,
        Input::Weighted(bytes, weight) => hash_bytes(&bytes) ^ weight as u32,
    } as i32))
}

/// The 64-bit hash function of most types, with a seed.
pub fn extended(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    extended_input(collated(call, &a[0]).unwrap_or_else(|| input(&a[0])), a[1].as_i64() as u64)
}

fn extended_input(input: Input, seed: u64) -> Result<Datum> {
    Ok(Datum::Int8(match input {
        Input::Word(word) => hash_word_extended(word, seed),
        Input::Bytes(bytes) => hash_bytes_extended(&bytes, seed),
        Input::Constant(0) => seed,
        Input::Constant(_) => seed.wrapping_sub(1),
        Input::Weighted(bytes, weight) => hash_bytes_extended(&bytes, seed) ^ weight as u64,
    } as i64))
}

/// A text by a collation that has others equal to it.
fn collated(call: &CallInfo<'_>, v: &Datum) -> Option<Input> {
    let Datum::Text(text) = v else { return None };
    let mut key = Vec::new();
    nondeterministic(call)?.sort_key(text, &mut key);
    Some(Input::Bytes(key))
}

fn padded(call: &CallInfo<'_>, v: &Datum) -> Input {
    if let Some(collation) = nondeterministic(call) {
        let mut key = Vec::new();
        collation.sort_key(unpadded(v.as_str()), &mut key);
        return Input::Bytes(key);
    }
    Input::Bytes(unpadded(v.as_str()).as_bytes().to_vec())
}

/// A tid's six bytes: the halves of the block number, and the offset.
fn tid(v: &Datum) -> Input {
    let (block, offset) = ((v.as_i64() >> 16) as u32, v.as_i64() as u16);
    let halves = [(block >> 16) as u16, block as u16, offset];
    Input::Bytes(halves.iter().flat_map(|h| h.to_le_bytes()).collect())
}

/// The hash of a value that has one by itself, whatever its type. Without a seed it is the plain hash, in the low 32 bits.
pub fn value_hash(v: &Datum, seed: Option<u64>) -> Result<u64> {
    let hash = match seed {
        None => hash_input(input(v))?,
        Some(seed) => extended_input(input(v), seed)?,
    };
    Ok(hash_number(&hash))
}

fn hash_number(hash: &Datum) -> u64 {
    match hash {
        Datum::Int4(hash) => u64::from(*hash as u32),
        hash => hash.as_i64() as u64,
    }
}

/// The hash of an element, field or bound by the hash function of its type; nulls hash to 0. Without a seed it is the plain hash, in
/// the low 32 bits.
///
/// # Errors
/// 42883 for a type without a hash function.
pub fn part_hash(call: &CallInfo<'_>, ty: Oid, v: &Datum, seed: Option<u64>) -> Result<u64> {
    if v.is_null() {
        return Ok(0);
    }
    let catalog = call.session.catalog();
    let class = catalog.default_operator_class(HASH, ty);
    let number = if seed.is_some() { 2 } else { 1 };
    let function = class.and_then(|c| catalog.access_methods().function(c.family, c.input_type, c.input_type, number));
    let function = function.and_then(|f| registry::scalar(&catalog.function(f)?.source)).ok_or_else(|| {
        let (extended, name) = (if seed.is_some() { "n extended" } else { "" }, catalog.format_type(ty, None, &[]));
        err!(UNDEFINED_FUNCTION, "could not identify a{extended} hash function for type {name}")
    })?;
    let return_type = if seed.is_some() { oids::INT8 } else { oids::INT4 };
    let types = [ty, oids::INT8];
    let own = CallInfo { arg_types: &types[..number as usize], return_type, variadic: false, columns: None, ..*call };
    let args = [v.clone(), Datum::Int8(seed.unwrap_or_default() as i64)];
    function(&own, &args[..number as usize]).map(|hash| hash_number(&hash))
}

/// The hashes of a container's parts after each other: of arrays, records and multiranges.
pub fn combine(hashes: impl Iterator<Item = Result<u64>>, start: u64) -> Result<u64> {
    hashes.into_iter().try_fold(start, |all, h| Ok(all.wrapping_mul(31).wrapping_add(h?)))
}

/// Both halves of a hash, each rotated by one bit, so that the order of what follows matters.
pub fn rotate_halves(hash: u64) -> u64 {
    u64::from(((hash >> 32) as u32).rotate_left(1)) << 32 | u64::from((hash as u32).rotate_left(1))
}

macro_rules! hashes {
    ($($name:literal),+) => {
        pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
            $((concat!("hash", $name), hash), (concat!("hash", $name, "extended"), extended),)+
            ("hash_numeric", hash),
            ("hash_numeric_extended", extended),
            ("hashbpchar", |c, a| hash_input(padded(c, &a[0]))),
            ("hashbpcharextended", |c, a| extended_input(padded(c, &a[0]), a[1].as_i64() as u64)),
            ("hashtid", |_, a| hash_input(tid(&a[0]))),
            ("hashtidextended", |_, a| extended_input(tid(&a[0]), a[1].as_i64() as u64)),
            ("pg_lsn_hash", hash),
            ("pg_lsn_hash_extended", extended),
            ("hash_array", |c, a| {
                let array = a[0].as_array();
                let hashes = array.elements.iter().map(|e| part_hash(c, array.element_type, e, None));
                combine(hashes, 1).map(|h| Datum::Int4(h as i32))
            }),
            ("hash_array_extended", |c, a| {
                let array = a[0].as_array();
                let hashes = array.elements.iter().map(|e| part_hash(c, array.element_type, e, Some(a[1].as_i64() as u64)));
                combine(hashes, 1).map(|h| Datum::Int8(h as i64))
            }),
            ("hash_record", |c, a| {
                let record = a[0].as_record();
                let hashes = record.fields.iter().zip(record.field_types.iter()).map(|(f, ty)| part_hash(c, *ty, f, None));
                combine(hashes, 0).map(|h| Datum::Int4(h as i32))
            }),
            ("hash_record_extended", |c, a| {
                let (record, seed) = (a[0].as_record(), a[1].as_i64() as u64);
                let hashes = record.fields.iter().zip(record.field_types.iter()).map(|(f, ty)| part_hash(c, *ty, f, Some(seed)));
                combine(hashes, 0).map(|h| Datum::Int8(h as i64))
            }),
        ];
    };
}
hashes!(
    "bool",
    "char",
    "int2",
    "int4",
    "int8",
    "oid",
    "xid",
    "xid8",
    "cid",
    "enum",
    "float4",
    "float8",
    "text",
    "name",
    "bytea",
    "oidvector"
);

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from PostgreSQL.
    #[test]
    fn hashes_are_postgresqls() {
        let value = |v: Datum| match hash_input(input(&v)).expect("hash") {
            Datum::Int4(v) => v,
            other => panic!("{other:?}"),
        };
        assert_eq!(value(Datum::Int4(42)), 1509752520);
        assert_eq!(value(Datum::Int8(42)), 1509752520);
        assert_eq!(value(Datum::text("abc")), -785388649);
        assert_eq!(value(Datum::text("hello world, longer")), 2136374831);
    }
}
