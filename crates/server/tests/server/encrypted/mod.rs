//! Certificates, and clients that speak TLS.

#![allow(clippy::disallowed_methods, reason = "a test by real time and files")]
// Each test file uses a part of it.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};

pub type Encrypted = StreamOwned<ClientConnection, TcpStream>;

/// Somebody who signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub certificate: String,
}

/// A certificate and its key, in PEM.
pub struct Signed {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        Authority { issuer: Issuer::new(params, key), certificate }
    }

    /// For a server of this machine, or for a client of that name.
    pub fn sign(&self, name: &str, serial: u8) -> Signed {
        let names = if name == "localhost" { vec!["localhost".to_owned(), "127.0.0.1".to_owned()] } else { Vec::new() };
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.serial_number = Some(SerialNumber::from_slice(&[serial]));
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        Signed { certificate, key: key.serialize_pem() }
    }

    /// A list with these serial numbers.
    pub fn revoke(&self, serials: &[u8]) -> String {
        let revoked = |serial: &u8| RevokedCertParams {
            serial_number: SerialNumber::from_slice(&[*serial]),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(4000, 1, 1),
            crl_number: SerialNumber::from_slice(&[1]),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).expect("a list").pem().expect("text")
    }
}

/// Writes a file that only its owner may read.
pub fn write(folder: &Path, name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    std::fs::write(&path, text).expect("the folder can be written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    path.display().to_string()
}

/// What a client trusts and shows.
pub struct Credentials<'a> {
    /// Whose signatures count, in PEM.
    pub authority: &'a str,
    pub certificate: Option<&'a Signed>,
    pub protocols: &'a [&'a str],
    pub versions: Vec<&'static SupportedProtocolVersion>,
}

impl Credentials<'_> {
    pub fn of(authority: &str) -> Credentials<'_> {
        Credentials { authority, certificate: None, protocols: &["postgresql"], versions: rustls::ALL_VERSIONS.to_vec() }
    }

    fn config(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let pem = CertificateDer::from_pem_slice(self.authority.as_bytes()).expect("a certificate");
        roots.add(pem).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&self.versions).expect("versions");
        let builder = builder.with_root_certificates(roots);
        let mut config = match self.certificate {
            None => builder.with_no_client_auth(),
            Some(signed) => {
                let chain = vec![CertificateDer::from_pem_slice(signed.certificate.as_bytes()).expect("a certificate")];
                let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).expect("a key");
                builder.with_client_auth_cert(chain, key).expect("they belong together")
            }
        };
        config.alpn_protocols = self.protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
        config
    }

    fn agree(&self, mut socket: TcpStream) -> std::io::Result<Encrypted> {
        let name = "localhost".try_into().expect("a name");
        let mut connection = ClientConnection::new(Arc::new(self.config()), name).expect("a connection");
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        Ok(StreamOwned::new(connection, socket))
    }

    /// TLS from the first byte.
    pub fn connect_directly(&self, address: SocketAddr) -> std::io::Result<Encrypted> {
        self.agree(TcpStream::connect(address).expect("the server listens"))
    }

    /// TLS as PostgreSQL's clients ask for it.
    pub fn connect(&self, address: SocketAddr) -> std::io::Result<Encrypted> {
        let mut socket = TcpStream::connect(address).expect("the server listens");
        socket.write_all(&SSL_REQUEST)?;
        let mut answer = [0];
        socket.read_exact(&mut answer)?;
        assert_eq!(answer, *b"S");
        self.agree(socket)
    }
}

pub const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
