//! The server's TLS configuration, from the settings and the files that they name.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use melba_settings::Settings;
use melba_types::{DbError, Result, SqlState, err};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

use super::certificate::end_point_hash;
use super::ciphers;
use crate::hba::system::own_account;

/// A certificate with its key, the authorities for clients' certificates, and the protocol's parameters.
#[derive(Debug)]
pub(crate) struct TlsConfiguration {
    pub(super) config: Arc<ServerConfig>,
    /// The data that SCRAM binds to; `None` where the certificate's signature has no hash.
    pub end_point: Option<Vec<u8>>,
    /// ssl_ca_file is given, so that clients' certificates are requested and checked.
    pub has_authorities: bool,
}

/// The protocol that clients name by ALPN.
pub(super) const PROTOCOL: &[u8] = b"postgresql";

fn config_error(message: String) -> DbError {
    DbError::new(SqlState::CONFIG_FILE_ERROR, message)
}

impl TlsConfiguration {
    /// `None`: ssl is off.
    ///
    /// # Errors
    /// F0000 when a file cannot be used, 0A000 for features that this server does not support.
    pub fn load(settings: &Settings) -> Result<Option<TlsConfiguration>> {
        if !settings.get("ssl").as_bool() {
            return Ok(None);
        }
        for unsupported in ["ssl_crl_dir", "ssl_dh_params_file", "ssl_passphrase_command"] {
            if !settings.get(unsupported).as_text().is_empty() {
                return Err(DbError::unsupported(unsupported));
            }
        }
        let text = |name| settings.get(name).as_text();
        let provider = Arc::new(ciphers::provider(text("ssl_ciphers"), text("ssl_tls13_ciphers"), text("ssl_groups"))?);
        let chain = certificates(&path(settings, "ssl_cert_file"), "server certificate")?;
        let key = private_key(&path(settings, "ssl_key_file"))?;
        let unusable = |e: rustls::Error| config_error(format!("could not use the SSL certificate and its key: {e}"));
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(&versions(settings)?).map_err(unusable)?;
        let has_authorities = !text("ssl_ca_file").is_empty();
        let builder = match has_authorities {
            false if !text("ssl_crl_file").is_empty() => {
                return Err(config_error("\"ssl_crl_file\" needs \"ssl_ca_file\"".to_owned()));
            }
            false => builder.with_no_client_auth(),
            true => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities(settings)?), provider);
                let verifier = verifier.with_crls(revoked(settings)?).allow_unauthenticated().build();
                builder.with_client_cert_verifier(
                    verifier.map_err(|e| config_error(format!("could not check client certificates: {e}")))?,
                )
            }
        };
        let end_point = chain.first().and_then(|certificate| end_point_hash(certificate));
        let mut config = builder.with_single_cert(chain, key).map_err(unusable)?;
        config.ignore_client_order = settings.get("ssl_prefer_server_ciphers").as_bool();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // As in PostgreSQL, sessions are not resumed: each connection shows its certificate and proves its key.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Some(TlsConfiguration { config: Arc::new(config), end_point, has_authorities }))
    }
}

/// Names count from the data directory.
fn path(settings: &Settings, setting: &str) -> PathBuf {
    Path::new(settings.get("data_directory").as_text()).join(settings.get(setting).as_text())
}

/// # Errors
/// Fails if no version is left, or only an obsolete one.
fn versions(settings: &Settings) -> Result<Vec<&'static SupportedProtocolVersion>> {
    let (min, max) = (settings.get("ssl_min_protocol_version").as_text(), settings.get("ssl_max_protocol_version").as_text());
    if matches!(max, "TLSv1" | "TLSv1.1") {
        return Err(DbError::unsupported(format!("\"ssl_max_protocol_version\" setting \"{max}\"")));
    }
    if min == "TLSv1.3" && max == "TLSv1.2" {
        return Err(err!(CONFIG_FILE_ERROR, "could not set SSL protocol version range")
            .detail("\"ssl_min_protocol_version\" cannot be higher than \"ssl_max_protocol_version\""));
    }
    // Older ones may be permitted, but are not spoken.
    let tls12 = (min != "TLSv1.3").then_some(&TLS12);
    let tls13 = (max != "TLSv1.2").then_some(&TLS13);
    Ok(tls13.into_iter().chain(tls12).collect())
}

fn certificates(path: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>> {
    let failed = |reason: String| config_error(format!("could not load {what} file \"{}\": {reason}", path.display()));
    let read = CertificateDer::pem_file_iter(path).map_err(|e| failed(reason(&e)))?;
    let found: Vec<_> = read.collect::<std::result::Result<_, _>>().map_err(|e| failed(reason(&e)))?;
    if found.is_empty() { Err(failed("it has no certificate".to_owned())) } else { Ok(found) }
}

fn reason(error: &rustls::pki_types::pem::Error) -> String {
    match error {
        rustls::pki_types::pem::Error::Io(e) => e.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
        other => other.to_string(),
    }
}

fn authorities(settings: &Settings) -> Result<RootCertStore> {
    let path = path(settings, "ssl_ca_file");
    let mut store = RootCertStore::empty();
    for certificate in certificates(&path, "root certificate")? {
        store
            .add(certificate)
            .map_err(|e| config_error(format!("could not load root certificate file \"{}\": {e}", path.display())))?;
    }
    Ok(store)
}

fn revoked(settings: &Settings) -> Result<Vec<CertificateRevocationListDer<'static>>> {
    if settings.get("ssl_crl_file").as_text().is_empty() {
        return Ok(Vec::new());
    }
    let path = path(settings, "ssl_crl_file");
    let failed = |reason: String| {
        config_error(format!("could not load SSL certificate revocation list file \"{}\": {reason}", path.display()))
    };
    let read = CertificateRevocationListDer::pem_file_iter(&path).map_err(|e| failed(reason(&e)))?;
    let found: Vec<_> = read.collect::<std::result::Result<_, _>>().map_err(|e| failed(reason(&e)))?;
    if found.is_empty() { Err(failed("it has no list".to_owned())) } else { Ok(found) }
}

/// The server's key, from a file with restricted permissions.
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let shown = path.display();
    let system = |e: std::io::Error| {
        let text = e.to_string();
        let reason = text.split(" (os error").next().unwrap_or_default();
        config_error(format!("could not access private key file \"{shown}\": {reason}"))
    };
    let file = std::fs::metadata(path).map_err(system)?;
    if !file.is_file() {
        return Err(config_error(format!("private key file \"{shown}\" is not a regular file")));
    }
    check_key_file(file.uid(), file.mode(), own_account()).map_err(|(message, detail)| {
        let error = config_error(format!("private key file \"{shown}\" {message}"));
        detail.into_iter().fold(error, DbError::detail)
    })?;
    PrivateKeyDer::from_pem_file(path)
        .map_err(|e| config_error(format!("could not load private key file \"{shown}\": {}", reason(&e))))
}

/// Checks the owner and the permissions of a key file.
fn check_key_file(owner: u32, mode: u32, own: u32) -> std::result::Result<(), (&'static str, Option<&'static str>)> {
    const DETAIL: &str = "File must have permissions u=rw (0600) or less if owned by the database user, \
         or permissions u=rw,g=r (0640) or less if owned by root.";
    if owner != own && owner != 0 {
        return Err(("must be owned by the database user or root", None));
    }
    // Where the server is root's, the narrower rule holds, as in PostgreSQL.
    let forbidden = if owner == own { 0o077 } else { 0o037 };
    if mode & forbidden != 0 { Err(("has group or world access", Some(DETAIL))) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_files_that_are_nobody_else_s() {
        for (owner, mode, is_good) in [
            (1000, 0o600, true),
            (1000, 0o400, true),
            (1000, 0o640, false),
            (1000, 0o604, false),
            (0, 0o640, true),
            (0, 0o644, false),
            (0, 0o660, false),
            (1001, 0o600, false),
        ] {
            assert_eq!(check_key_file(owner, mode, 1000).is_ok(), is_good, "{owner} {mode:o}");
        }
        assert!(check_key_file(0, 0o640, 0).is_err());
    }

    #[test]
    fn versions_are_a_range() {
        let of = |min: &str, max: &str| {
            let settings = [("ssl_min_protocol_version", min), ("ssl_max_protocol_version", max)];
            let settings = Settings::server(&settings.map(|(n, v)| (n.to_owned(), v.to_owned()))).expect("settings");
            versions(&settings).map(|versions| versions.iter().map(|v| v.version).collect::<Vec<_>>())
        };
        use rustls::ProtocolVersion::{TLSv1_2, TLSv1_3};
        assert_eq!(of("TLSv1.2", "").expect("a range"), [TLSv1_3, TLSv1_2]);
        assert_eq!(of("TLSv1", "TLSv1.2").expect("a range"), [TLSv1_2]);
        assert_eq!(of("TLSv1.3", "TLSv1.3").expect("a range"), [TLSv1_3]);
        assert!(of("TLSv1.3", "TLSv1.2").is_err() && of("TLSv1", "TLSv1.1").is_err());
    }
}
