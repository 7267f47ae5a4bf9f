//! The server's certificate: made, named, checked, and changed while it serves.

#[path = "../../../server/tests/server/encrypted/mod.rs"]
mod encrypted;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::serving::{Serving, refused};
use encrypted::{Authority, Credentials, write};

fn data() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().expect("a folder")
}

/// Whether a client that trusts this certificate, or its signer, agrees with the server.
fn is_trusted(server: &Serving, certificate: &str) -> bool {
    Credentials::of(certificate).connect(([127, 0, 0, 1], server.port).into()).is_ok()
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).expect("the file is there")
}

#[test]
fn a_server_makes_its_own_certificate_and_keeps_it() {
    let data = data();
    let server = Serving::start(data.path(), &["--tls-self-signed"]);
    let certificate = read(data.path(), "server.crt");
    assert!(is_trusted(&server, &certificate));
    assert!(!is_trusted(&server, &Authority::new("another").certificate));
    let mode = std::fs::metadata(data.path().join("server.key")).expect("the key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.stop();
    let server = Serving::start(data.path(), &["-c", "ssl=on"]);
    assert!(is_trusted(&server, &certificate), "it is the same");
    server.stop();
    std::fs::remove_file(data.path().join("server.key")).expect("it is there");
    let said = refused(data.path(), &["--tls-self-signed"]);
    assert!(said.contains("server.crt is there without server.key"), "{said}");
}

#[test]
fn a_server_that_is_to_encrypt_and_cannot_does_not_start() {
    let data = data();
    let said = refused(data.path(), &["-c", "ssl=on"]);
    assert!(said.contains("could not load server certificate file") && said.contains("No such file or directory"), "{said}");
    let signed = Authority::new("authority").sign("localhost", 1);
    write(data.path(), "server.crt", &signed.certificate);
    let said = refused(data.path(), &["-c", "ssl=on"]);
    assert!(said.contains("could not access private key file"), "{said}");
    let key = write(data.path(), "server.key", &signed.key);
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).expect("it is ours");
    let said = refused(data.path(), &["-c", "ssl=on"]);
    assert!(said.contains("has group or world access") && said.contains("u=rw (0600)"), "{said}");
    write(data.path(), "server.key", &Authority::new("another").sign("localhost", 1).key);
    let said = refused(data.path(), &["-c", "ssl=on"]);
    assert!(said.contains("could not use the SSL certificate and its key"), "{said}");
    write(data.path(), "server.key", &signed.key);
    for (setting, expected) in [
        ("ssl_ciphers=HIGH", "\"HIGH\" in ssl_ciphers is not supported"),
        ("ssl_crl_dir=crls", "parameter \"ssl_crl_dir\" cannot be set to \"crls\""),
        ("ssl_max_protocol_version=TLSv1.1", "\"ssl_max_protocol_version\" setting \"TLSv1.1\" is not supported"),
        ("ssl_ca_file=none.crt", "could not load root certificate file"),
    ] {
        let said = refused(data.path(), &["-c", "ssl=on", "-c", setting]);
        assert!(said.contains(expected), "{said}");
    }
    Serving::start(data.path(), &["-c", "ssl=on", "-c", "ssl_max_protocol_version=TLSv1.2"]).stop();
}

#[test]
fn certificates_change_while_the_server_serves() {
    let data = data();
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let put = |authority: &Authority| {
        let signed = authority.sign("localhost", 1);
        write(data.path(), "server.crt", &signed.certificate);
        write(data.path(), "server.key", &signed.key);
    };
    put(&old);
    let server = Serving::start(data.path(), &["-c", "ssl=on"]);
    assert!(is_trusted(&server, &old.certificate));
    put(&new);
    assert!(is_trusted(&server, &old.certificate), "nobody has said so yet");
    let mut client = server.connect("postgres", None).expect("the owner");
    client.batch_execute("select pg_reload_conf()").expect("runs");
    assert!(is_trusted(&server, &new.certificate) && !is_trusted(&server, &old.certificate));
    write(data.path(), "server.key", "nonsense");
    server.signal("-HUP");
    server.hear("could not load private key file");
    server.hear("SSL configuration was not reloaded");
    assert!(is_trusted(&server, &new.certificate));
    client.batch_execute("select 1").expect("who is there stays");
    drop(client);
    server.stop();
}
