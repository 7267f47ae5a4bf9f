//! The stored form of a role's password: a SCRAM-SHA-256 verifier, or an MD5 hash as in PostgreSQL before version 10.
//!
//! Invariants:
//! 1. A password given as a verifier or hash is stored unchanged, so that dumps of roles can be restored.
//! 2. A client's answer to an MD5 challenge is checked with the stored hash, not with the password.
//! 3. An empty password is never stored, in any form: clients treat it as none.

use md5::Md5;
use sha2::Digest;

use crate::scram::Verifier;

/// How a password that is given as text is stored (the setting password_encryption).
#[derive(Clone, Debug)]
pub enum PasswordEncryption {
    ScramSha256 { salt: [u8; 16], iterations: u32 },
    Md5,
}

/// Whether a stored password is an MD5 hash: `md5` and 32 hexadecimal digits.
pub fn is_md5(stored: &str) -> bool {
    stored.len() == 35 && stored.strip_prefix("md5").is_some_and(|d| d.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

/// The MD5 hash of a password, salted with the name of its role.
pub fn md5_hash(role: &str, password: &str) -> String {
    let digest = Md5::new().chain_update(password).chain_update(role).finalize();
    digest.iter().fold(String::from("md5"), |hex, byte| hex + &format!("{byte:02x}"))
}

/// The answer to an MD5 challenge, from the hash that the role stores.
pub fn md5_answer(stored: &str, salt: &[u8; 4]) -> String {
    let digest = Md5::new().chain_update(stored.strip_prefix("md5").unwrap_or(stored)).chain_update(salt).finalize();
    digest.iter().fold(String::from("md5"), |hex, byte| hex + &format!("{byte:02x}"))
}

/// Whether a password matches the one that a role stores, in either form.
pub fn is_stored(role: &str, password: &str, stored: &str) -> bool {
    if is_md5(stored) {
        return are_equal(md5_hash(role, password).as_bytes(), stored.as_bytes());
    }
    Verifier::parse(stored).is_some_and(|verifier| verifier.is_of(password))
}

/// Compares without telling by its time where they differ.
pub fn are_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// The stored form of a role's password; `None` for an empty one.
pub fn stored(role: &str, password: &str, encryption: &PasswordEncryption) -> Option<String> {
    if is_md5(password) {
        return (password != md5_hash(role, "")).then(|| password.to_owned());
    }
    if let Some(verifier) = Verifier::parse(password) {
        return (!verifier.is_of("")).then(|| password.to_owned());
    }
    if password.is_empty() {
        return None;
    }
    Some(match encryption {
        PasswordEncryption::Md5 => md5_hash(role, password),
        PasswordEncryption::ScramSha256 { salt, iterations } => Verifier::from_password(password, salt, *iterations).to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRAM: PasswordEncryption = PasswordEncryption::ScramSha256 { salt: [7; 16], iterations: 4096 };

    #[test]
    fn verifiers_and_hashes_are_stored_as_they_are() {
        let scram = stored("ann", "secret", &SCRAM).expect("it is not empty");
        assert!(scram.starts_with("SCRAM-SHA-256$4096:"));
        assert_eq!(stored("bob", &scram, &PasswordEncryption::Md5), Some(scram));
        // echo -n secretann | md5sum
        let md5 = stored("ann", "secret", &PasswordEncryption::Md5).expect("it is not empty");
        assert_eq!(md5, "md59d792a3a8853c2411afb9163d088c036");
        assert!(is_md5(&md5));
        assert_eq!(stored("bob", &md5, &SCRAM), Some(md5));
        assert!(!is_md5("md5 is a hash"));
    }

    #[test]
    fn passwords_are_found_in_both_forms() {
        for stored in [stored("ann", "secret", &SCRAM), stored("ann", "secret", &PasswordEncryption::Md5)] {
            let stored = stored.expect("it is not empty");
            assert!(is_stored("ann", "secret", &stored) && !is_stored("ann", "Secret", &stored), "{stored}");
        }
        assert!(!is_stored("bob", "secret", &md5_hash("ann", "secret")), "the role's name is part of it");
        // printf '9d792a3a8853c2411afb9163d088c036\1\2\3\4' | md5sum
        assert_eq!(md5_answer("md59d792a3a8853c2411afb9163d088c036", &[1, 2, 3, 4]), "md59009ce60b9ca97f1e752376843d1309e");
    }

    #[test]
    fn an_empty_password_is_none_in_every_form() {
        let scram = Verifier::from_password("", &[1; 16], 4096).to_string();
        for password in ["", &md5_hash("ann", ""), &scram] {
            assert_eq!(stored("ann", password, &SCRAM), None, "{password}");
        }
    }
}
