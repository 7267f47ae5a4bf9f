//! pgcrypto: digests, passwords, random bytes, block ciphers and ASCII armor. Its OpenPGP functions are missing.

mod armor;
mod cipher;
mod crypt;

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use md5::Md5;
use melba_fmgr::{ScalarFn, Session};
use melba_functions::text::encoding;
use melba_types::{Datum, DbError, Result, bail, err};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

pub use armor::{FUNCTIONS as ARMOR_FUNCTIONS, SETS as ARMOR_SETS};
pub use crypt::FUNCTIONS as CRYPT_FUNCTIONS;

/// The most bytes that one call of gen_random_bytes returns.
const RANDOM_BYTES_MAX: i32 = 1024;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_digest", |_, a| digest(octets(&a[0]), a[1].as_str()).map(bytea)),
    ("pg_hmac", |_, a| hmac(octets(&a[0]), octets(&a[1]), a[2].as_str()).map(bytea)),
    ("pg_random_bytes", |c, a| {
        let length = a[0].as_i32();
        if !(1..=RANDOM_BYTES_MAX).contains(&length) {
            bail!(EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, "Length not in range");
        }
        Ok(bytea(random_bytes(c.session, length as usize)?))
    }),
    ("pg_random_uuid", |c, _| Ok(Datum::Uuid(melba_functions::uuid::with_version(melba_functions::uuid::random(c.session)?, 4)))),
    ("pg_check_fipsmode", |_, _| Ok(Datum::Bool(false))),
    ("pg_encrypt", |_, a| cipher::encrypt(octets(&a[0]), octets(&a[1]), &[], a[2].as_str(), "encrypt").map(bytea)),
    ("pg_decrypt", |_, a| cipher::decrypt(octets(&a[0]), octets(&a[1]), &[], a[2].as_str(), "decrypt").map(bytea)),
    ("pg_encrypt_iv", |_, a| {
        cipher::encrypt(octets(&a[0]), octets(&a[1]), octets(&a[2]), a[3].as_str(), "encrypt_iv").map(bytea)
    }),
    ("pg_decrypt_iv", |_, a| {
        cipher::decrypt(octets(&a[0]), octets(&a[1]), octets(&a[2]), a[3].as_str(), "decrypt_iv").map(bytea)
    }),
];

/// The bytes of a text or a bytea.
fn octets(value: &Datum) -> &[u8] {
    match value {
        Datum::Text(text) => text.as_bytes(),
        other => other.as_bytes(),
    }
}

fn bytea(bytes: Vec<u8>) -> Datum {
    Datum::Bytes(bytes.into())
}

fn random_bytes(session: &dyn Session, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    session.fill_random(&mut bytes)?;
    Ok(bytes)
}

fn unusable(name: &str, why: &str) -> DbError {
    err!(INVALID_PARAMETER_VALUE, "Cannot use \"{name}\": {why}")
}

fn no_hash(name: &str) -> DbError {
    unusable(name, "No such hash algorithm")
}

fn digest(data: &[u8], name: &str) -> Result<Vec<u8>> {
    match name.to_ascii_lowercase().as_str() {
        "md5" => encoding::digest::<Md5>(data),
        "sha1" => encoding::digest::<Sha1>(data),
        "sha224" => encoding::digest::<Sha224>(data),
        "sha256" => encoding::digest::<Sha256>(data),
        "sha384" => encoding::digest::<Sha384>(data),
        "sha512" => encoding::digest::<Sha512>(data),
        _ => Err(no_hash(name)),
    }
}

fn hmac(data: &[u8], key: &[u8], name: &str) -> Result<Vec<u8>> {
    fn keyed<M: Mac + KeyInit>(data: &[u8], key: &[u8]) -> Result<Vec<u8>> {
        let mut mac = <M as KeyInit>::new_from_slice(key).map_err(|e| DbError::internal(e.to_string()))?;
        encoding::each_piece(data, |piece| mac.update(piece))?;
        Ok(mac.finalize().into_bytes().to_vec())
    }
    match name.to_ascii_lowercase().as_str() {
        "md5" => keyed::<Hmac<Md5>>(data, key),
        "sha1" => keyed::<Hmac<Sha1>>(data, key),
        "sha224" => keyed::<Hmac<Sha224>>(data, key),
        "sha256" => keyed::<Hmac<Sha256>>(data, key),
        "sha384" => keyed::<Hmac<Sha384>>(data, key),
        "sha512" => keyed::<Hmac<Sha512>>(data, key),
        _ => Err(no_hash(name)),
    }
}
