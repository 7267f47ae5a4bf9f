//! uuid-ossp: UUIDs of versions 1, 3, 4 and 5 (RFC 9562), and the namespaces for names.

use md5::Md5;
use melba_fmgr::{ScalarFn, Session};
use melba_types::Datum;
use melba_types::datetime::UNIX_EPOCH_MICROS;
use sha1::{Digest, Sha1};

use melba_functions::uuid::{random, with_version};

/// A namespace of the RFC: they differ in one byte.
const fn namespace(number: u8) -> [u8; 16] {
    [0x6b, 0xa7, 0xb8, number, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8]
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("uuid_nil", |_, _| Ok(Datum::Uuid([0; 16]))),
    ("uuid_ns_dns", |_, _| Ok(Datum::Uuid(namespace(0x10)))),
    ("uuid_ns_url", |_, _| Ok(Datum::Uuid(namespace(0x11)))),
    ("uuid_ns_oid", |_, _| Ok(Datum::Uuid(namespace(0x12)))),
    ("uuid_ns_x500", |_, _| Ok(Datum::Uuid(namespace(0x14)))),
    // The machine stays private: the node is random in both, and marked as such.
    ("uuid_generate_v1", |c, _| Ok(Datum::Uuid(version_1(c.session)?))),
    ("uuid_generate_v1mc", |c, _| Ok(Datum::Uuid(version_1(c.session)?))),
    ("uuid_generate_v3", |_, a| Ok(Datum::Uuid(of_name::<Md5>(&a[0], &a[1], 3)))),
    ("uuid_generate_v4", |c, _| Ok(Datum::Uuid(with_version(random(c.session)?, 4)))),
    ("uuid_generate_v5", |_, a| Ok(Datum::Uuid(of_name::<Sha1>(&a[0], &a[1], 5)))),
];

/// Tenths of microseconds since 1582-10-15, a random clock sequence and a random node with the multicast bit.
fn version_1(session: &dyn Session) -> melba_types::Result<[u8; 16]> {
    const GREGORIAN_TO_UNIX: u64 = 0x01b2_1dd2_1381_4000;
    let mut uuid = random(session)?;
    let micros = session.clock_timestamp().saturating_sub(UNIX_EPOCH_MICROS).max(0) as u64;
    // The clock counts microseconds: the last digit distinguishes two UUIDs of one microsecond.
    let ticks = GREGORIAN_TO_UNIX + 10 * micros + u64::from(uuid[0] % 10);
    uuid[..4].copy_from_slice(&(ticks as u32).to_be_bytes());
    uuid[4..6].copy_from_slice(&((ticks >> 32) as u16).to_be_bytes());
    uuid[6..8].copy_from_slice(&((ticks >> 48) as u16).to_be_bytes());
    uuid[10] |= 1;
    Ok(with_version(uuid, 1))
}

/// The digest of a namespace and a name.
fn of_name<D: Digest>(namespace: &Datum, name: &Datum, version: u8) -> [u8; 16] {
    let digest = D::new().chain_update(namespace.as_uuid()).chain_update(name.as_str()).finalize();
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&digest[..16]);
    with_version(uuid, version)
}
