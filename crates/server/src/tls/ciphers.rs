//! OpenSSL's names, which PostgreSQL's settings and views use, for the ciphers of rustls.

use melba_types::{DbError, Result, err};
use rustls::CipherSuite;
use rustls::crypto::ring::kx_group::{SECP256R1, SECP384R1, X25519};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};

/// Suite, OpenSSL's name, bits of its key.
const SUITES: [(CipherSuite, &str, i32); 9] = [
    (CipherSuite::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384", 256),
    (CipherSuite::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256", 128),
    (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256", 256),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "ECDHE-ECDSA-AES256-GCM-SHA384", 256),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "ECDHE-ECDSA-AES128-GCM-SHA256", 128),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-ECDSA-CHACHA20-POLY1305", 256),
    (CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, "ECDHE-RSA-AES256-GCM-SHA384", 256),
    (CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "ECDHE-RSA-AES128-GCM-SHA256", 128),
    (CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-RSA-CHACHA20-POLY1305", 256),
];

/// The default of ssl_ciphers: all strong ciphers.
const ALL: &str = "HIGH:MEDIUM:+3DES:!aNULL";

/// OpenSSL's name of a suite and the bits of its key.
pub(super) fn name(suite: CipherSuite) -> (&'static str, i32) {
    SUITES.iter().find(|(known, ..)| *known == suite).map_or(("unknown", 0), |(_, name, bits)| (name, *bits))
}

fn is_tls13(suite: CipherSuite) -> bool {
    name(suite).0.starts_with("TLS_")
}

/// Suites and groups of ssl_ciphers (names of suites, or the default), ssl_tls13_ciphers and ssl_groups.
///
/// # Errors
/// 0A000 for names that OpenSSL may know, but not rustls.
pub(super) fn provider(ciphers: &str, tls13_ciphers: &str, groups: &str) -> Result<CryptoProvider> {
    let mut provider = ring::default_provider();
    let offered = std::mem::take(&mut provider.cipher_suites);
    let mut choose = |setting: &str, names: &str, all: bool, tls13: bool| -> Result<()> {
        if all {
            provider.cipher_suites.extend(offered.iter().copied().filter(|s| is_tls13(s.suite()) == tls13));
            return Ok(());
        }
        for wanted in names.split(':').map(str::trim).filter(|name| !name.is_empty()) {
            let suite = offered.iter().find(|s| is_tls13(s.suite()) == tls13 && name(s.suite()).0 == wanted);
            let suite = suite.ok_or_else(|| {
                let known = SUITES.iter().filter(|(suite, ..)| is_tls13(*suite) == tls13).map(|(_, name, _)| *name);
                DbError::unsupported(format!("\"{wanted}\" in {setting}"))
                    .hint(format!("Supported are: {}.", known.collect::<Vec<_>>().join(":")))
            })?;
            provider.cipher_suites.push(*suite);
        }
        Ok(())
    };
    choose("ssl_tls13_ciphers", tls13_ciphers, tls13_ciphers.trim().is_empty(), true)?;
    choose("ssl_ciphers", ciphers, ciphers == ALL, false)?;
    provider.kx_groups = groups.split(':').map(|name| group(name.trim())).collect::<Result<_>>()?;
    Ok(provider)
}

fn group(name: &str) -> Result<&'static dyn SupportedKxGroup> {
    match name.to_ascii_lowercase().as_str() {
        "x25519" => Ok(X25519),
        "prime256v1" | "secp256r1" | "p-256" => Ok(SECP256R1),
        "secp384r1" | "p-384" => Ok(SECP384R1),
        "" => Err(err!(CONFIG_FILE_ERROR, "could not set group names specified in ssl_groups: No valid groups in '{name}'")),
        _ => Err(DbError::unsupported(format!("\"{name}\" in ssl_groups")).hint("Supported are: X25519:prime256v1:secp384r1.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(ciphers: &str, tls13: &str) -> Vec<&'static str> {
        let provider = provider(ciphers, tls13, "X25519").expect("they are known");
        provider.cipher_suites.iter().map(|suite| name(suite.suite()).0).collect()
    }

    #[test]
    fn every_suite_has_a_name_and_can_be_chosen() {
        assert_eq!(chosen(ALL, "").len(), SUITES.len());
        assert!(!chosen(ALL, "").contains(&"unknown"));
        let some = chosen("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384", "TLS_AES_128_GCM_SHA256");
        assert_eq!(some, ["TLS_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"]);
    }

    #[test]
    fn ciphers_that_are_not_offered_are_refused() {
        for (ciphers, tls13, groups) in [
            ("HIGH", "", "X25519"),
            ("TLS_AES_128_GCM_SHA256", "", "X25519"),
            (ALL, "TLS_AES_128_CCM_SHA256", "X25519"),
            (ALL, "", "ffdhe2048"),
        ] {
            let error = provider(ciphers, tls13, groups).expect_err("it is not offered");
            assert_eq!(error.sqlstate().as_str(), "0A000", "{ciphers} {tls13} {groups}");
        }
        assert!(provider(ALL, "", "").is_err());
        assert_eq!(provider(ALL, "", "X25519:prime256v1:secp384r1").expect("known").kx_groups.len(), 3);
    }
}
