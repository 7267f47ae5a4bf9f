//! A certificate that this server signs itself, for first steps: it encrypts, and a client with a copy of it can verify the server.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rcgen::{CertificateParams, DnType, KeyPair};

/// Names of the files in the data directory: the defaults of ssl_cert_file and ssl_key_file.
const CERTIFICATE: &str = "server.crt";
const KEY: &str = "server.key";

/// Creates certificate and key unless both exist.
///
/// # Errors
/// Only one of them exists, or they cannot be written.
pub fn make(data: &Path) -> Result<(), String> {
    let (certificate, key) = (data.join(CERTIFICATE), data.join(KEY));
    match (certificate.exists(), key.exists()) {
        (true, true) => return Ok(()),
        (false, false) => {}
        (true, false) => return Err(format!("{} is there without {KEY}", certificate.display())),
        (false, true) => return Err(format!("{} is there without {CERTIFICATE}", key.display())),
    }
    let failed = |e: rcgen::Error| format!("could not make a certificate: {e}");
    let mut params = CertificateParams::new(names()).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "melba");
    let pair = KeyPair::generate().map_err(failed)?;
    let signed = params.self_signed(&pair).map_err(failed)?;
    // The certificate last: with it there is a key.
    write(&key, &pair.serialize_pem())?;
    write(&certificate, &signed.pem())
}

/// The names by which clients of this machine call it, and its own name.
fn names() -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let is_name = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    if is_name && !names.iter().any(|name| name == host) {
        names.push(host.to_owned());
    }
    names
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("could not write {}: {e}", path.display());
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = match file {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(format!("{} has appeared meanwhile", path.display())),
        file => file.map_err(failed)?,
    };
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    // Names last in no order but that of their syncs.
    std::fs::File::open(path.parent().unwrap_or(path)).and_then(|folder| folder.sync_all()).map_err(failed)
}
