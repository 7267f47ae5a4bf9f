//! A socket to a server, with TLS where both sides want it.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::BytesMut;
use postgres::config::Host;
use postgres_protocol::message::frontend;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::report::Failure;
use crate::stream::Socket;
use crate::target::{SslMode, Target};
use crate::tls;

type Result<T> = std::result::Result<T, Failure>;

fn connected(host: &Host, port: u16, timeout: Duration) -> std::io::Result<Socket> {
    let name = match host {
        Host::Unix(path) => return UnixStream::connect(path.join(format!(".s.PGSQL.{port}"))).map(Socket::Unix),
        Host::Tcp(name) => name,
    };
    let mut failure = std::io::Error::other("the name has no address");
    for address in (name.as_str(), port).to_socket_addrs()? {
        let connected =
            if timeout.is_zero() { TcpStream::connect(address) } else { TcpStream::connect_timeout(&address, timeout) };
        match connected {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(Socket::Tcp(stream));
            }
            Err(e) => failure = e,
        }
    }
    Err(failure)
}

/// A socket, with TLS where both sides want it.
pub fn encrypted(host: &Host, port: u16, target: &Target) -> Result<Socket> {
    let stream = connected(host, port, target.timeout).map_err(|e| Failure::Other(e.to_string()))?;
    let (mut tcp, name) = match (stream, host) {
        (Socket::Tcp(tcp), Host::Tcp(name)) => (tcp, name),
        (stream, _) => return Ok(stream),
    };
    if target.ssl == SslMode::Disable {
        return Ok(Socket::Tcp(tcp));
    }
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    let mut answer = [0];
    tcp.write_all(&request)?;
    tcp.read_exact(&mut answer)?;
    match (answer[0], target.ssl) {
        (b'S', _) => {}
        // It may be refusing everybody, which it says after the startup packet.
        (b'N' | b'E', SslMode::Prefer) => {
            return if answer[0] == b'N' { Ok(Socket::Tcp(tcp)) } else { Ok(connected(host, port, target.timeout)?) };
        }
        _ => return Err("server does not support SSL, but SSL was required".to_owned().into()),
    }
    let failed = |e: &dyn std::fmt::Display| Failure::Other(format!("SSL error: {e}"));
    let server = ServerName::try_from(name.clone()).map_err(|e| failed(&e))?;
    let mut session = ClientConnection::new(tls::configuration(target)?, server).map_err(|e| failed(&e))?;
    while session.is_handshaking() {
        session.complete_io(&mut tcp).map_err(|e| failed(&e))?;
    }
    Ok(Socket::Tls(Box::new(StreamOwned::new(session, tcp))))
}
