//! The console beside a server of this process.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use melba_console::{Bound, IsOwnAccount, Target};

/// By the rule of the server's method `owner`.
pub fn is_own_account() -> IsOwnAccount {
    Box::new(|stream| match (stream.peer_addr(), stream.local_addr()) {
        (Ok(client), Ok(here)) => melba_server::is_own_account(client, here),
        _ => false,
    })
}

/// Serves a console for the server that listens on `address`, on a thread of its own, until the process ends.
pub fn serve(console: Bound, address: SocketAddr) -> Result<(), String> {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let target = Target::parse(&format!("host={ip} port={} user=postgres dbname=postgres", address.port()))?;
    let run = move || {
        // It ends with the process only.
        let _ = console.serve(target, is_own_account());
    };
    let thread = std::thread::Builder::new().name("console".into());
    thread.spawn(run).map(drop).map_err(|e| format!("could not start a thread: {e}"))
}
