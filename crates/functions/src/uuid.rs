//! uuid: input and output, comparison, generation.

use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicI64, Ordering};

use melba_fmgr::{ScalarFn, Session, TypeIo, comparison_table, type_io};
use melba_types::datetime::UNIX_EPOCH_MICROS;
use melba_types::{Datum, Oid, err, oids};

use crate::datetime::add_interval_to_instant;
use crate::hash::{hash_bytes, hash_bytes_extended};

pub const TYPES: &[(Oid, TypeIo)] = &[(
    oids::UUID,
    TypeIo {
        input: |_, s| parse(s).map(Datum::Uuid).ok_or_else(|| type_io::invalid_text("uuid", s)),
        output: |_, v, out| {
            write(&v.as_uuid(), out);
            Ok(())
        },
        receive: |_, b| type_io::fixed(b).map(Datum::Uuid),
        send: |_, v, out| {
            out.extend_from_slice(&v.as_uuid());
            Ok(())
        },
    },
)];

fn compare(a: &Datum, b: &Datum) -> Order {
    a.as_uuid().cmp(&b.as_uuid())
}

comparison_table! {
    COMPARISONS:
    compare => "uuid_eq", "uuid_ne", "uuid_lt", "uuid_le", "uuid_gt", "uuid_ge", "uuid_cmp";
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("uuid_hash", |_, a| Ok(Datum::Int4(hash_bytes(&a[0].as_uuid()) as i32))),
    ("uuid_hash_extended", |_, a| Ok(Datum::Int8(hash_bytes_extended(&a[0].as_uuid(), a[1].as_i64() as u64) as i64))),
    ("gen_random_uuid", |c, _| Ok(Datum::Uuid(with_version(random(c.session)?, 4)))),
    ("uuidv7", |c, _| Ok(Datum::Uuid(version_7(c.session, ascending_nanos(c.session).into())?))),
    ("uuidv7_interval", |c, a| {
        let nanos = ascending_nanos(c.session);
        if !a[0].as_interval().is_finite() {
            return Err(err!(DATETIME_FIELD_OVERFLOW, "interval out of range for UUID version 7")
                .detail("UUID version 7 does not support infinite intervals."));
        }
        let at = add_interval_to_instant(c.session, nanos.div_euclid(1000) + UNIX_EPOCH_MICROS, &a[0].as_interval())?;
        let shifted = (i128::from(at) - i128::from(UNIX_EPOCH_MICROS)) * 1000 + i128::from(nanos.rem_euclid(1000));
        if !(0..MILLISECONDS_END * 1_000_000).contains(&shifted) {
            return Err(err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range for UUID version 7")
                .detail("UUID version 7 supports timestamps from 1970-01-01 to approximately year 10889."));
        }
        Ok(Datum::Uuid(version_7(c.session, shifted)?))
    }),
    ("uuid_extract_timestamp", |_, a| Ok(timestamp(a[0].as_uuid()).map_or(Datum::Null, Datum::Int8))),
    ("uuid_extract_version", |_, a| {
        let uuid = a[0].as_uuid();
        Ok(if is_rfc(&uuid) { Datum::Int2(i16::from(uuid[6] >> 4)) } else { Datum::Null })
    }),
];

/// 32 hexadecimal digits, a hyphen allowed after every fourth, braces allowed around.
fn parse(text: &str) -> Option<[u8; 16]> {
    let inner = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let mut bytes = inner.bytes().peekable();
    let mut uuid = [0; 16];
    for (i, slot) in uuid.iter_mut().enumerate() {
        let mut digit = || bytes.next().and_then(|c| char::from(c).to_digit(16));
        *slot = (digit()? << 4 | digit()?) as u8;
        if i % 2 == 1 && i < 15 {
            bytes.next_if_eq(&b'-');
        }
    }
    bytes.next().is_none().then_some(uuid)
}

fn write(uuid: &[u8; 16], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Bits of a UUID, before its version is in it.
///
/// # Errors
/// Those of `Session::fill_random`.
pub fn random(session: &dyn Session) -> melba_types::Result<[u8; 16]> {
    let mut uuid = [0; 16];
    session.fill_random(&mut uuid)?;
    Ok(uuid)
}

/// Marks a UUID of the RFC as one of a version.
pub fn with_version(mut uuid: [u8; 16], version: u8) -> [u8; 16] {
    uuid[6] = version << 4 | uuid[6] & 0x0f;
    uuid[8] = 0x80 | uuid[8] & 0x3f;
    uuid
}

/// A step of the time in version 7, which distinguishes 4096 parts of a millisecond.
const STEP_NANOS: i64 = 1_000_000 / 4096 + 1;

/// Nanoseconds of Unix time, at least a step after those of the call before: UUIDs of version 7 ascend in the order in which a
/// server has made them. Keys of rows are to have the order of their insertion, and clients rely on that.
fn ascending_nanos(session: &dyn Session) -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let now = session.clock_timestamp().saturating_sub(UNIX_EPOCH_MICROS).saturating_mul(1000);
    let after = |last: i64| now.max(last.saturating_add(STEP_NANOS));
    after(LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last))).unwrap_or_else(|last| last))
}

/// Version 7 has 48 bits for the milliseconds of its time.
const MILLISECONDS_END: i128 = 1 << 48;

/// Milliseconds of Unix time, twelve bits of the millisecond's fraction, random bits.
fn version_7(session: &dyn Session, nanos: i128) -> melba_types::Result<[u8; 16]> {
    let mut uuid = random(session)?;
    uuid[..6].copy_from_slice(&(nanos.div_euclid(1_000_000) as i64).to_be_bytes()[2..]);
    let fraction = (nanos.rem_euclid(1_000_000) * 4096 / 1_000_000) as u16;
    uuid[6..8].copy_from_slice(&fraction.to_be_bytes());
    Ok(with_version(uuid, 7))
}

fn is_rfc(uuid: &[u8; 16]) -> bool {
    uuid[8] & 0xc0 == 0x80
}

/// The creation time of a version 1 or 7 UUID.
fn timestamp(uuid: [u8; 16]) -> Option<i64> {
    if !is_rfc(&uuid) {
        return None;
    }
    let number = |range: std::ops::Range<usize>| uuid[range].iter().fold(0i64, |n, b| n << 8 | i64::from(*b));
    match uuid[6] >> 4 {
        1 => {
            let ticks = number(0..4) | number(4..6) << 32 | (number(6..8) & 0x0fff) << 48;
            // Tenths of microseconds since 1582-10-15.
            const GREGORIAN_TO_2000: i64 = 13_165_977_600 * 10_000_000;
            Some((ticks - GREGORIAN_TO_2000).div_euclid(10))
        }
        7 => Some(number(0..6) * 1000 + UNIX_EPOCH_MICROS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_in_all_spellings() {
        let plain = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for text in [plain, "A0EEBC999C0B4EF8BB6D6BB9BD380A11", "{a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11}"] {
            let mut out = Vec::new();
            write(&parse(text).expect("valid"), &mut out);
            assert_eq!(out, plain.as_bytes());
        }
        assert!(parse("a0eebc99-9c0b4ef8-bb6d-6bb9bd380a1").is_none());
        assert!(parse("{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11").is_none());
        assert!(parse("a0eeb-c999c0b-4ef8-bb6d-6bb9bd380a11").is_none());
    }

    #[test]
    fn version_7_ascends_within_a_tick_of_the_clock() {
        let session = crate::testing::session();
        let made = (0..5000).map(|_| version_7(&session, ascending_nanos(&session).into()).expect("random bits"));
        assert!(made.collect::<Vec<_>>().is_sorted_by(|a, b| a[..8] < b[..8]));
    }

    #[test]
    fn version_7_refuses_times_that_it_cannot_have() {
        let session = crate::testing::session();
        let made = |interval| {
            let function = melba_fmgr::registry::scalar("uuidv7_interval").expect("a function");
            function(&session.call(&[], oids::UUID), &[Datum::Interval(interval)])
        };
        let years = |years: i32| melba_types::Interval { months: years * 12, ..melba_types::Interval::ZERO };
        for interval in [years(-100), years(9000), melba_types::Interval::INFINITY, melba_types::Interval::NEGATIVE_INFINITY] {
            assert!(made(interval).is_err_and(|e| e.sqlstate().as_str() == "22008"), "{interval:?}");
        }
        assert!(made(years(8000)).is_ok());
    }

    #[test]
    fn times_are_extracted() {
        // 2024-03-05 and so on, from RFC 9562's examples.
        let at = |text: &str| timestamp(parse(text).expect("valid"));
        assert_eq!(at("C232AB00-9414-11EC-B3C8-9F6BDECED846"), Some(698_872_942_000_000));
        assert_eq!(at("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"), Some(698_872_942_000_000));
        assert_eq!(at("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), None);
    }
}
