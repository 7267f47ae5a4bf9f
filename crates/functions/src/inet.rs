//! inet and cidr: input and output, parts, comparison, containment, arithmetic.

use std::cmp::Ordering;

use melba_fmgr::type_io::{data_behind, no_data};
use melba_fmgr::{ScalarFn, TypeContext, TypeIo, comparison_table, type_io};
use melba_types::inet::{Inet, sort_key};
use melba_types::{Datum, Oid, Result, err, oids};

use crate::hash::{hash_bytes, hash_bytes_extended};

pub const TYPES: &[(Oid, TypeIo)] = &[
    (
        oids::INET,
        TypeIo {
            input: |_, s| Inet::parse(s, false).map(datum).ok_or_else(|| type_io::invalid_text("inet", s)),
            output: |_, v, out| {
                load(v).write(false, out);
                Ok(())
            },
            receive: |c, b| receive(c, b, false),
            send: |_, v, out| send(v, false, out),
        },
    ),
    (
        oids::CIDR,
        TypeIo {
            input: |_, s| {
                let value = Inet::parse(s, true).ok_or_else(|| type_io::invalid_text("cidr", s))?;
                if value.network() != value {
                    return Err(err!(INVALID_TEXT_REPRESENTATION, "invalid cidr value: \"{s}\"")
                        .detail("Value has bits set to right of mask."));
                }
                Ok(datum(value))
            },
            output: |_, v, out| {
                load(v).write(true, out);
                Ok(())
            },
            receive: |c, b| receive(c, b, true),
            send: |_, v, out| send(v, true, out),
        },
    ),
];

fn datum(value: Inet) -> Datum {
    Datum::bytes(value.store())
}

fn load(value: &Datum) -> Inet {
    Inet::load(value.as_bytes())
}

fn receive(_: &TypeContext<'_>, bytes: &[u8], network: bool) -> Result<Datum> {
    let name = if network { "cidr" } else { "inet" };
    let invalid = |what: &str| err!(INVALID_BINARY_REPRESENTATION, "invalid {what} in external \"{name}\" value");
    let [family, bits, _, size, address @ ..] = bytes else {
        return Err(no_data());
    };
    let length = match family {
        2 => 4,
        3 => 16,
        _ => return Err(invalid("address family")),
    };
    if *bits > length * 8 {
        return Err(invalid("bits"));
    }
    if *size != length {
        return Err(invalid("length"));
    }
    match address.len().cmp(&usize::from(length)) {
        Ordering::Less => return Err(no_data()),
        Ordering::Greater => return Err(data_behind()),
        Ordering::Equal => {}
    }
    let mut stored = vec![*family, *bits];
    stored.extend_from_slice(address);
    let value = Inet::load(&stored);
    if network && value.network() != value {
        return Err(
            err!(INVALID_BINARY_REPRESENTATION, "invalid external \"cidr\" value").detail("Value has bits set to right of mask.")
        );
    }
    Ok(datum(value))
}

fn send(value: &Datum, network: bool, out: &mut Vec<u8>) -> Result<()> {
    let value = load(value);
    out.extend_from_slice(&[if value.v6 { 3 } else { 2 }, value.bits, u8::from(network), value.size() as u8]);
    out.extend_from_slice(&value.address[..value.size()]);
    Ok(())
}

fn key(value: &Datum) -> Vec<u8> {
    let mut out = Vec::new();
    sort_key(value.as_bytes(), &mut out);
    out
}

fn compare(a: &Datum, b: &Datum) -> Ordering {
    key(a).cmp(&key(b))
}

comparison_table! {
    COMPARISONS:
    compare => "network_eq", "network_ne", "network_lt", "network_le", "network_gt", "network_ge", "network_cmp";
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("network_larger", |_, a| Ok(if compare(&a[0], &a[1]).is_gt() { a[0].clone() } else { a[1].clone() })),
    ("network_smaller", |_, a| Ok(if compare(&a[0], &a[1]).is_lt() { a[0].clone() } else { a[1].clone() })),
    ("hashinet", |_, a| Ok(Datum::Int4(hash_bytes(a[0].as_bytes()) as i32))),
    ("hashinetextended", |_, a| Ok(Datum::Int8(hash_bytes_extended(a[0].as_bytes(), a[1].as_i64() as u64) as i64))),
    ("network_family", |_, a| Ok(Datum::Int4(if load(&a[0]).v6 { 6 } else { 4 }))),
    ("network_masklen", |_, a| Ok(Datum::Int4(i32::from(load(&a[0]).bits)))),
    ("network_host", |_, a| Ok(text(|out| load(&a[0]).write_address(out)))),
    ("network_show", |_, a| Ok(text(|out| load(&a[0]).write(true, out)))),
    ("inet_abbrev", |_, a| Ok(text(|out| load(&a[0]).write(false, out)))),
    ("cidr_abbrev", |_, a| Ok(text(|out| abbreviate(&load(&a[0]), out)))),
    ("network_network", |_, a| Ok(datum(load(&a[0]).network()))),
    ("inet_to_cidr", |_, a| Ok(datum(load(&a[0]).network()))),
    ("network_netmask", |_, a| {
        let value = load(&a[0]);
        number(Inet { bits: value.bits_max(), ..value }, Some(value.mask()))
    }),
    ("network_hostmask", |_, a| {
        let value = load(&a[0]);
        number(Inet { bits: value.bits_max(), ..value }, Some(all_ones(&value) & !value.mask()))
    }),
    ("network_broadcast", |_, a| {
        let value = load(&a[0]);
        number(value, Some(value.number() | all_ones(&value) & !value.mask()))
    }),
    ("inet_set_masklen", |_, a| set_bits(load(&a[0]), a[1].as_i32()).map(datum)),
    ("cidr_set_masklen", |_, a| set_bits(load(&a[0]), a[1].as_i32()).map(|value| datum(value.network()))),
    ("inet_same_family", |_, a| Ok(Datum::Bool(load(&a[0]).v6 == load(&a[1]).v6))),
    ("inet_merge", |_, a| {
        let (x, y) = (load(&a[0]), load(&a[1]));
        if x.v6 != y.v6 {
            return Err(err!(INVALID_PARAMETER_VALUE, "cannot merge addresses from different families"));
        }
        let unused = 128 - u32::from(x.bits_max());
        let common = (x.number() ^ y.number()).leading_zeros() - unused;
        let bits = common.min(u32::from(x.bits)).min(u32::from(y.bits)) as u8;
        Ok(datum(Inet { bits, ..x }.network()))
    }),
    ("network_sub", |_, a| contained(&a[1], &a[0], true)),
    ("network_subeq", |_, a| contained(&a[1], &a[0], false)),
    ("network_sup", |_, a| contained(&a[0], &a[1], true)),
    ("network_supeq", |_, a| contained(&a[0], &a[1], false)),
    ("network_overlap", |_, a| {
        let (x, y) = (load(&a[0]), load(&a[1]));
        Ok(Datum::Bool(x.contains(&y) || y.contains(&x)))
    }),
    ("inetnot", |_, a| {
        let value = load(&a[0]);
        number(value, Some(!value.number() & all_ones(&value)))
    }),
    ("inetand", |_, a| bitwise(a, "AND", |x, y| x & y)),
    ("inetor", |_, a| bitwise(a, "OR", |x, y| x | y)),
    ("inetpl", |_, a| shifted(load(&a[0]), i128::from(a[1].as_i64()))),
    ("int8pl_inet_2631", |_, a| shifted(load(&a[1]), i128::from(a[0].as_i64()))),
    ("inetmi_int8", |_, a| shifted(load(&a[0]), i128::from(a[1].as_i64().wrapping_neg()))),
    ("inetmi", |_, a| {
        let (x, y) = (load(&a[0]), load(&a[1]));
        if x.v6 != y.v6 {
            return Err(err!(INVALID_PARAMETER_VALUE, "cannot subtract inet values of different sizes"));
        }
        let (x, y) = (x.number(), y.number());
        let distance = i64::try_from(x.abs_diff(y)).map_err(|_| out_of_range())?;
        Ok(Datum::Int8(if x >= y { distance } else { -distance }))
    }),
];

fn text(write: impl FnOnce(&mut Vec<u8>)) -> Datum {
    let mut out = Vec::new();
    write(&mut out);
    Datum::text(String::from_utf8_lossy(&out).into_owned())
}

fn abbreviate(value: &Inet, out: &mut Vec<u8>) {
    if value.v6 {
        return value.write(true, out);
    }
    let octets = usize::from(value.bits.div_ceil(8).max(1));
    let shown: Vec<String> = value.address[..octets].iter().map(u8::to_string).collect();
    out.extend_from_slice(format!("{}/{}", shown.join("."), value.bits).as_bytes());
}

fn all_ones(value: &Inet) -> u128 {
    if value.v6 { u128::MAX } else { u128::from(u32::MAX) }
}

fn out_of_range() -> melba_types::DbError {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range")
}

fn number(like: Inet, number: Option<u128>) -> Result<Datum> {
    number.and_then(|n| like.with_number(n)).map(datum).ok_or_else(out_of_range)
}

fn shifted(value: Inet, by: i128) -> Result<Datum> {
    let sum = match u128::try_from(by) {
        Ok(by) => value.number().checked_add(by),
        Err(_) => value.number().checked_sub(by.unsigned_abs()),
    };
    number(value, sum)
}

fn set_bits(value: Inet, bits: i32) -> Result<Inet> {
    let max = value.bits_max();
    match bits {
        -1 => Ok(Inet { bits: max, ..value }),
        bits => match u8::try_from(bits) {
            Ok(bits) if bits <= max => Ok(Inet { bits, ..value }),
            _ => Err(err!(INVALID_PARAMETER_VALUE, "invalid mask length: {bits}")),
        },
    }
}

fn contained(outer: &Datum, inner: &Datum, strictly: bool) -> Result<Datum> {
    let (outer, inner) = (load(outer), load(inner));
    Ok(Datum::Bool(outer.contains(&inner) && !(strictly && outer.bits == inner.bits)))
}

fn bitwise(a: &[Datum], name: &str, combine: fn(u128, u128) -> u128) -> Result<Datum> {
    let (x, y) = (load(&a[0]), load(&a[1]));
    if x.v6 != y.v6 {
        return Err(err!(INVALID_PARAMETER_VALUE, "cannot {name} inet values of different sizes"));
    }
    number(Inet { bits: x.bits.max(y.bits), ..x }, Some(combine(x.number(), y.number())))
}
