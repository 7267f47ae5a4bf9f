//! The TCP listeners: one address, or listen_addresses and port.

use std::io::{Error, Result as IoResult};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::FromRawFd;

use melba_settings::Settings;
use melba_types::{DbError, Result, err};

use crate::stream::Listener;

/// Connections that wait to be accepted, as std has it.
const BACKLOG: i32 = 4096;

pub(crate) struct Tcp {
    pub listeners: Vec<Listener>,
    /// The first one; with no listener, where clients of sockets find the port.
    pub address: SocketAddr,
    /// Addresses that could not be listened on.
    pub warnings: Vec<DbError>,
}

/// On one address, HOST:PORT; port 0 is any that is free.
pub(crate) fn listen_on(address: &str) -> Result<Tcp> {
    let failed = |e: Error| err!(IO_ERROR, "could not listen on {address}: {e}");
    let listener = TcpListener::bind(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let listeners = vec![Listener::tcp(listener).map_err(failed)?];
    Ok(Tcp { listeners, address: bound, warnings: Vec::new() })
}

/// On all of listen_addresses; `*` is every address of this machine, nothing is none.
///
/// # Errors
/// None of them could be listened on.
pub(crate) fn listen(settings: &Settings) -> Result<Tcp> {
    let port = u16::try_from(settings.get("port").as_integer()).unwrap_or_default();
    let hosts = settings.get("listen_addresses").as_text();
    let hosts: Vec<&str> = hosts.split(',').map(|host| host.trim().trim_matches('"')).filter(|host| !host.is_empty()).collect();
    let (mut listeners, mut warnings, mut first) = (Vec::new(), Vec::new(), None);
    for host in &hosts {
        let addresses = addresses_of(host, port);
        let failures: Vec<String> = match addresses {
            Ok(addresses) => addresses
                .into_iter()
                .filter_map(|address| match bind(address).and_then(Listener::tcp) {
                    Ok(listener) => {
                        first.get_or_insert(address);
                        listeners.push(listener);
                        None
                    }
                    Err(e) => Some(format!("could not bind {address}: {e}")),
                })
                .collect(),
            Err(e) => vec![format!("could not translate host name \"{host}\" to address: {e}")],
        };
        if !failures.is_empty() {
            warnings.push(err!(WARNING, "could not create listen socket for \"{host}\"").detail(failures.join("\n")));
        }
    }
    match warnings.first() {
        Some(warning) if listeners.is_empty() => {
            let detail = warning.fields().detail.clone().unwrap_or_default();
            Err(err!(IO_ERROR, "could not create any TCP/IP sockets").detail(detail))
        }
        _ => {
            let address = first.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
            Ok(Tcp { listeners, address, warnings })
        }
    }
}

fn addresses_of(host: &str, port: u16) -> IoResult<Vec<SocketAddr>> {
    let all = |ip: IpAddr| SocketAddr::new(ip, port);
    match host {
        "*" => Ok(vec![all(Ipv4Addr::UNSPECIFIED.into()), all(Ipv6Addr::UNSPECIFIED.into())]),
        host => Ok((host, port).to_socket_addrs()?.collect()),
    }
}

/// An IPv6 listener takes no clients of IPv4, which have a separate listener.
fn bind(address: SocketAddr) -> IoResult<TcpListener> {
    let SocketAddr::V6(v6) = address else { return TcpListener::bind(address) };
    // SAFETY: the call takes numbers only.
    let socket = unsafe { libc::socket(libc::AF_INET6, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nothing else owns it; from here on it is closed when the listener is dropped.
    let listener = unsafe { TcpListener::from_raw_fd(socket) };
    for (level, option) in [(libc::SOL_SOCKET, libc::SO_REUSEADDR), (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY)] {
        let on: libc::c_int = 1;
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: `on` lives through the call and has the length that is given.
        if unsafe { libc::setsockopt(socket, level, option, (&raw const on).cast(), length) } != 0 {
            return Err(Error::last_os_error());
        }
    }
    // SAFETY: all zeros are a value of this type.
    let mut raw: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
    raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
    raw.sin6_port = v6.port().to_be();
    raw.sin6_addr.s6_addr = v6.ip().octets();
    raw.sin6_scope_id = v6.scope_id();
    let length = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
    // SAFETY: the address lives through the call and has the length that is given.
    if unsafe { libc::bind(socket, (&raw const raw).cast(), length) } != 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the call takes numbers only.
    if unsafe { libc::listen(socket, BACKLOG) } != 0 {
        return Err(Error::last_os_error());
    }
    Ok(listener)
}
