//! crypt and gen_salt: passwords hashed slowly, in the forms of crypt(3) that begin with `$1$`, `$2a$`, `$5$` and `$6$`.

use base64::Engine;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use blowfish::Blowfish;
use md5::Md5;
use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::{Datum, DbError, Result, Severity, SqlState, bail, err};
use sha2::digest::Output;
use sha2::{Digest, Sha256, Sha512};

use super::random_bytes;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_crypt", |c, a| crypt(c, a[0].as_str(), a[1].as_str()).map(Datum::text)),
    ("pg_gen_salt", |c, a| gen_salt(c, a[0].as_str(), 0).map(Datum::text)),
    ("pg_gen_salt_rounds", |c, a| gen_salt(c, a[0].as_str(), a[1].as_i32()).map(Datum::text)),
];

const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const SHA_ROUNDS_MIN: i32 = 1000;
const SHA_ROUNDS_MAX: i32 = 999_999_999;
const SHA_SALT_CHARS_MAX: usize = 16;

/// Base64 of bcrypt: digits last, the bits that are left over ignored.
const BCRYPT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::BCRYPT,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

fn invalid_salt() -> DbError {
    err!(INVALID_PARAMETER_VALUE, "invalid salt")
}

fn crypt(c: &CallInfo<'_>, password: &str, setting: &str) -> Result<String> {
    // PostgreSQL's passwords are C strings, which have no zero bytes; neither have texts.
    let password = password.as_bytes();
    match setting {
        s if s.starts_with("$2a$") => bcrypt(c, password, s),
        s if s.starts_with("$2x$") => bail!(FEATURE_NOT_SUPPORTED, "salts of the form \"$2x$\" are not supported"),
        s if s.starts_with("$2$") => bail!(EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, "crypt(3) returned NULL"),
        s if s.starts_with("$1$") => md5_crypt(c, password, s),
        s if s.starts_with("$5$") || s.starts_with("$6$") => sha_crypt(c, password, s),
        s if s.len() < 2 => Err(invalid_salt()),
        _ => Err(DbError::unsupported("crypt by DES")),
    }
}

/// Appends `characters` characters of six bits each, the lowest first.
fn push_bits(mut value: u32, characters: usize, out: &mut String) {
    for _ in 0..characters {
        out.push(char::from(ALPHABET[(value & 63) as usize]));
        value >>= 6;
    }
}

fn push_bytes(bytes: [u8; 3], out: &mut String) {
    push_bits(u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]), 4, out);
}

/// Blowfish with a key schedule that is run 2 ** cost times (Provos and Mazières, 1999): `$2a$cost$`, 22 characters of salt.
fn bcrypt(c: &CallInfo<'_>, password: &[u8], setting: &str) -> Result<String> {
    let (cost, salt) = setting.get(4..6).zip(setting.get(7..29)).ok_or_else(invalid_salt)?;
    let cost = cost.parse::<u32>().ok().filter(|cost| (4..=31).contains(cost) && setting.as_bytes()[6] == b'$');
    let cost = cost.ok_or_else(invalid_salt)?;
    let salt = BCRYPT.decode(salt).map_err(|_| invalid_salt())?;
    let key: Vec<u8> = password.iter().copied().chain([0]).take(72).collect();
    let mut state: Blowfish = Blowfish::bc_init_state();
    state.salted_expand_key(&salt, &key);
    for _ in 0..1u64 << cost {
        c.session.check_interrupt()?;
        state.bc_expand_key(&key);
        state.bc_expand_key(&salt);
    }
    let mut output = Vec::with_capacity(24);
    for half in b"OrpheanBeholderScryDoubt".chunks(8) {
        let word = |at: usize| half[at..at + 4].iter().fold(0, |word, b| word << 8 | u32::from(*b));
        let mut words = [word(0), word(4)];
        for _ in 0..64 {
            words = state.bc_encrypt(words);
        }
        output.extend(words.iter().flat_map(|w| w.to_be_bytes()));
    }
    Ok(format!("$2a${cost:02}${}{}", BCRYPT.encode(salt), BCRYPT.encode(&output[..23])))
}

/// The hash of FreeBSD's crypt (P.-H. Kamp): a thousand rounds of MD5, a salt of up to 8 characters.
fn md5_crypt(c: &CallInfo<'_>, password: &[u8], setting: &str) -> Result<String> {
    let salt: Vec<u8> = setting[3..].bytes().take_while(|b| *b != b'$').take(8).collect();
    let inner = Md5::new().chain_update(password).chain_update(&salt).chain_update(password).finalize();
    let mut first = Md5::new().chain_update(password).chain_update("$1$").chain_update(&salt);
    first.update(inner.iter().copied().cycle().take(password.len()).collect::<Vec<u8>>());
    let mut bits = password.len();
    while bits > 0 {
        first.update(if bits & 1 == 1 { &[0][..] } else { &password[..1] });
        bits >>= 1;
    }
    let hash = mixed::<Md5>(c, first.finalize(), password, &salt, 1000)?;
    let mut out = format!("$1${}$", String::from_utf8_lossy(&salt));
    for (a, b, c) in [(0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5)] {
        push_bytes([hash[a], hash[b], hash[c]], &mut out);
    }
    push_bits(u32::from(hash[11]), 2, &mut out);
    Ok(out)
}

/// U. Drepper's crypt by SHA-256 (`$5$`) and SHA-512 (`$6$`): `rounds=N$` may come before the salt.
fn sha_crypt(c: &CallInfo<'_>, password: &[u8], setting: &str) -> Result<String> {
    let (kind, mut rest) = setting.split_at(3);
    let mut rounds = None;
    if let Some(given) = rest.strip_prefix("rounds=") {
        let (number, salt) = given.split_once('$').unwrap_or((given, ""));
        let number = number.parse::<i64>().map_err(|_| err!(SYNTAX_ERROR, "could not parse salt options"))?;
        rounds = Some(checked_rounds(c, number));
        rest = salt;
    }
    let salt = rest.split('$').next().unwrap_or_default();
    let salt: String = salt.chars().take(SHA_SALT_CHARS_MAX).collect();
    if let Some(other) = salt.chars().find(|c| !u8::try_from(*c).is_ok_and(|b| ALPHABET.contains(&b))) {
        bail!(INVALID_PARAMETER_VALUE, "invalid character in salt string: \"{other}\"");
    }
    let mut out = match rounds {
        Some(rounds) => format!("{kind}rounds={rounds}${salt}$"),
        None => format!("{kind}{salt}$"),
    };
    let rounds = rounds.unwrap_or(5000);
    if kind == "$5$" {
        let h = sha_rounds::<Sha256>(c, password, salt.as_bytes(), rounds)?;
        for i in 0..10 {
            let mut group = [h[i], h[i + 10], h[i + 20]];
            group.rotate_right(i % 3);
            push_bytes(group, &mut out);
        }
        push_bits(u32::from(h[31]) << 8 | u32::from(h[30]), 3, &mut out);
    } else {
        let h = sha_rounds::<Sha512>(c, password, salt.as_bytes(), rounds)?;
        for i in 0..21 {
            let mut group = [h[i], h[i + 21], h[i + 42]];
            group.rotate_left(i % 3);
            push_bytes(group, &mut out);
        }
        push_bits(u32::from(h[63]), 2, &mut out);
    }
    Ok(out)
}

/// The digest that crypt by SHA writes (U. Drepper, "Unix crypt using SHA-256 and SHA-512"). It can be cancelled, which the crates of
/// this algorithm cannot: PostgreSQL lets it have 999,999,999 rounds.
fn sha_rounds<D: Digest>(c: &CallInfo<'_>, password: &[u8], salt: &[u8], rounds: i64) -> Result<Vec<u8>> {
    let stretched = |digest: &[u8], length: usize| -> Vec<u8> { digest.iter().copied().cycle().take(length).collect() };
    let repeated = |bytes: &[u8], times: usize| -> Result<Vec<u8>> {
        let mut all = D::new();
        for _ in 0..times {
            c.session.check_interrupt()?;
            all.update(bytes);
        }
        Ok(stretched(&all.finalize(), bytes.len()))
    };
    let inner = D::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut first = D::new().chain_update(password).chain_update(salt).chain_update(stretched(&inner, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        first.update(if bits & 1 == 1 { &inner[..] } else { password });
        bits >>= 1;
    }
    let hash = first.finalize();
    let salt = repeated(salt, 16 + usize::from(hash[0]))?;
    let password = repeated(password, password.len())?;
    Ok(mixed::<D>(c, hash, &password, &salt, rounds)?.to_vec())
}

/// The rounds that crypt by MD5 and by SHA share.
fn mixed<D: Digest>(c: &CallInfo<'_>, mut hash: Output<D>, password: &[u8], salt: &[u8], rounds: i64) -> Result<Output<D>> {
    for round in 0..rounds {
        c.session.check_interrupt()?;
        let mut next = D::new();
        next.update(if round % 2 == 1 { password } else { &hash[..] });
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(if round % 2 == 1 { &hash[..] } else { password });
        hash = next.finalize();
    }
    Ok(hash)
}

/// The number of rounds within the limits, and a notice when others were requested.
fn checked_rounds(c: &CallInfo<'_>, rounds: i64) -> i64 {
    let (low, high) = (i64::from(SHA_ROUNDS_MIN), i64::from(SHA_ROUNDS_MAX));
    let message = match rounds {
        r if r < low => format!("rounds={r} is below supported value ({low}), using {low} instead"),
        r if r > high => format!("rounds={r} exceeds maximum supported value ({high}), using {high} instead"),
        _ => return rounds,
    };
    let notice = DbError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message);
    c.session.notice(notice.severity(Severity::Notice));
    rounds.clamp(low, high)
}

/// `rounds` 0: the method's default.
fn gen_salt(c: &CallInfo<'_>, method: &str, rounds: i32) -> Result<String> {
    let characters = |bytes: usize| -> Result<String> {
        Ok(random_bytes(c.session, bytes)?.iter().map(|b| char::from(ALPHABET[usize::from(b & 63)])).collect())
    };
    let within = |default: i32, low: i32, high: i32| match rounds {
        0 => Ok(default),
        r if (low..=high).contains(&r) => Ok(r),
        _ => Err(err!(INVALID_PARAMETER_VALUE, "gen_salt: Incorrect number of rounds")),
    };
    let salted = |prefix: &str, rounds: i32| Ok(format!("{prefix}rounds={rounds}${}", characters(SHA_SALT_CHARS_MAX)?));
    match method.to_ascii_lowercase().as_str() {
        "md5" => within(1000, 1000, 1000).and_then(|_| Ok(format!("$1${}", characters(8)?))),
        "bf" => within(6, 4, 31).and_then(|cost| Ok(format!("$2a${cost:02}${}", BCRYPT.encode(random_bytes(c.session, 16)?)))),
        "sha256crypt" => salted("$5$", within(5000, SHA_ROUNDS_MIN, SHA_ROUNDS_MAX)?),
        "sha512crypt" => salted("$6$", within(5000, SHA_ROUNDS_MIN, SHA_ROUNDS_MAX)?),
        "des" | "xdes" => Err(DbError::unsupported("crypt by DES")),
        _ => bail!(INVALID_PARAMETER_VALUE, "gen_salt: Unknown salt algorithm"),
    }
}
