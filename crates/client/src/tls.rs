//! The proof of identity that a server must give.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::Result;
use crate::target::{SslMode, Target};

/// Trust in the system's root certificates: the value of `sslrootcert` that names no file.
const SYSTEM: &str = "system";

pub fn configuration(target: &Target) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match target.ssl {
        SslMode::Disable | SslMode::Prefer | SslMode::Require => {
            Arc::new(Certificate { signed: None, provider: provider.clone() })
        }
        SslMode::VerifyCa => Arc::new(Certificate { signed: Some(verifier(target, &provider)?), provider: provider.clone() }),
        SslMode::VerifyFull => verifier(target, &provider)?,
    };
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|e| e.to_string())?.dangerous().with_custom_certificate_verifier(verifier);
    Ok(Arc::new(builder.with_no_client_auth()))
}

fn verifier(target: &Target, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>> {
    let default = || std::env::home_dir().unwrap_or_default().join(".postgresql/root.crt");
    let path = target.ssl_root.clone().unwrap_or_else(default);
    let roots = roots(&path)?;
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    builder.build().map_err(|e| format!("root certificate file \"{}\": {e}", path.display()))
}

fn roots(path: &PathBuf) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    if path.as_os_str() == SYSTEM {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    }
    let failed = |e: &dyn std::fmt::Display| format!("root certificate file \"{}\" cannot be used: {e}", path.display());
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| failed(&e))? {
        roots.add(certificate.map_err(|e| failed(&e))?).map_err(|e| failed(&e))?;
    }
    Ok(roots)
}

/// A certificate of any name: signed by a trusted authority, or by any.
#[derive(Debug)]
struct Certificate {
    signed: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Certificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, Error> {
        let Some(signed) = &self.signed else { return Ok(ServerCertVerified::assertion()) };
        match signed.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
