//! The account of the process at the other end of a TCP connection within this machine, from the kernel's table of sockets.
//!
//! One socket is looked up by its two ends (`NETLINK_SOCK_DIAG`, see sock_diag(7)), at a cost independent of their number. A
//! kernel without that module still lists all of them in /proc/net/tcp and tcp6, which costs milliseconds.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

/// The account behind `client`, the far end of a connection to `server`, if the kernel knows it. Sockets without an owner (any
/// more) report root's account; they are recognised by their state or by having no inode.
pub(crate) fn local_account(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    let [client, server] = [client, server].map(canonical);
    match one_socket(client, server) {
        Ok(found) => found.account(),
        Err(_) => in_tables(client, server),
    }
}

fn canonical(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}

/// The kernel's information about a socket.
struct Socket {
    state: u8,
    account: u32,
    inode: u32,
}

impl Socket {
    fn account(&self) -> Option<u32> {
        const ESTABLISHED: u8 = 1;
        (self.state == ESTABLISHED && self.inode != 0).then_some(self.account)
    }
}

/// Of struct nlmsghdr; all numbers are in the machine's byte order, except ports and addresses, which are in the network's.
const HEADER_LEN: usize = 16;
/// Of struct inet_diag_req_v2, and of struct inet_diag_msg.
const REQUEST_LEN: usize = 56;
const ANSWER_LEN: usize = 72;
/// Offsets of the fields in struct inet_diag_msg.
const STATE_AT: usize = HEADER_LEN + 1;
const ACCOUNT_AT: usize = HEADER_LEN + 64;
const INODE_AT: usize = HEADER_LEN + 68;
const SOCK_DIAG_BY_FAMILY: u16 = 20;

/// Looks up the socket with these ends; an error where there is none, or where the kernel does not support the query.
fn one_socket(local: SocketAddr, remote: SocketAddr) -> std::io::Result<Socket> {
    let kernel = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    send(&kernel, &request(local, remote), SendFlags::empty())?;
    let mut answer = [0; 512];
    let (_, len) = recv(&kernel, &mut answer[..], RecvFlags::empty())?;
    let kind = u16::from_ne_bytes([answer[4], answer[5]]);
    if len < HEADER_LEN + ANSWER_LEN || kind != SOCK_DIAG_BY_FAMILY {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    let word = |at: usize| u32::from_ne_bytes([answer[at], answer[at + 1], answer[at + 2], answer[at + 3]]);
    Ok(Socket { state: answer[STATE_AT], account: word(ACCOUNT_AT), inode: word(INODE_AT) })
}

/// A request for one TCP socket, in any state. Sockets of IPv6 that talk IPv4 are found by their IPv4 addresses.
fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    const NLM_F_REQUEST: u16 = 1;
    const IPPROTO_TCP: u8 = 6;
    let mut out = Vec::with_capacity(HEADER_LEN + REQUEST_LEN);
    out.extend(((HEADER_LEN + REQUEST_LEN) as u32).to_ne_bytes());
    out.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out.extend(NLM_F_REQUEST.to_ne_bytes());
    out.extend([0; 8]); // sequence number, sender
    let family = if local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    out.extend([family.as_raw() as u8, IPPROTO_TCP, 0, 0]);
    out.extend(u32::MAX.to_ne_bytes()); // states
    out.extend(local.port().to_be_bytes());
    out.extend(remote.port().to_be_bytes());
    for end in [local, remote] {
        let mut address = [0; 16];
        match end.ip() {
            IpAddr::V4(ip) => address[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => address = ip.octets(),
        }
        out.extend(address);
    }
    out.extend(0u32.to_ne_bytes()); // interface: any
    out.extend([u8::MAX; 8]); // cookie: any
    out
}

/// The same from the lists of all sockets.
fn in_tables(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    let look = |file: &str, client, server| socket_in(&std::fs::read_to_string(file).ok()?, client, server)?.account();
    let (IpAddr::V4(from), IpAddr::V4(to)) = (client.ip(), server.ip()) else {
        return look("/proc/net/tcp6", client, server);
    };
    look("/proc/net/tcp", client, server).or_else(|| {
        // Some programs reach IPv4 by sockets of IPv6.
        let mapped = |ip: Ipv4Addr, port| (ip.to_ipv6_mapped(), port).into();
        look("/proc/net/tcp6", mapped(from, client.port()), mapped(to, server.port()))
    })
}

/// The socket with these ends in a table of the kernel's.
fn socket_in(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<Socket> {
    let (local, remote) = (hexadecimal(local), hexadecimal(remote));
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        if fields.next()? != local || fields.next()? != remote {
            return None;
        }
        let state = u8::from_str_radix(fields.next()?, 16).ok()?;
        let (account, inode) = (fields.nth(3)?, fields.nth(1)?);
        Some(Socket { state, account: account.parse().ok()?, inode: inode.parse().ok()? })
    })
}

/// An address as the kernel's tables have it: words of four bytes in the machine's order, and the port.
fn hexadecimal(address: SocketAddr) -> String {
    let bytes: Vec<u8> = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = bytes.as_chunks::<4>().0.iter().map(|word| format!("{:08X}", u32::from_ne_bytes(*word)));
    format!("{}:{:04X}", words.collect::<String>(), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, TcpListener, TcpStream};

    use super::*;
    use crate::hba::system::own_account;

    /// Looks up the account behind a connection to `listening`, in both ways, during the connection and after its end.
    fn both_ways(listening: SocketAddr, to: IpAddr) {
        let listener = TcpListener::bind(listening).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let client = TcpStream::connect((to, port)).expect("it listens");
        let (server, _) = listener.accept().expect("a client");
        let ends = (server.peer_addr().expect("connected"), server.local_addr().expect("connected"));
        let listed = || in_tables(canonical(ends.0), canonical(ends.1));
        assert_eq!((local_account(ends.0, ends.1), listed()), (Some(own_account()), Some(own_account())));
        drop(client);
        assert_eq!((local_account(ends.0, ends.1), listed()), (None, None), "what was closed belongs to nobody");
    }

    #[test]
    fn account_behind_a_connection_is_found() {
        both_ways((Ipv4Addr::LOCALHOST, 0).into(), Ipv4Addr::LOCALHOST.into());
        both_ways((Ipv6Addr::LOCALHOST, 0).into(), Ipv6Addr::LOCALHOST.into());
        // One end of IPv6, the other of IPv4.
        both_ways((Ipv6Addr::UNSPECIFIED, 0).into(), Ipv4Addr::LOCALHOST.into());
        both_ways((Ipv4Addr::LOCALHOST, 0).into(), Ipv4Addr::LOCALHOST.to_ipv6_mapped().into());
    }

    #[test]
    fn a_listening_socket_is_not_taken_for_a_connection() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let here = listener.local_addr().expect("it is bound");
        assert_eq!(local_account(here, (Ipv4Addr::LOCALHOST, 1).into()), None);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn sockets_without_a_process_are_nobody_s() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000   999        0 100 1 0 100 0 0 10 0\n\
             1: 0100007F:B001 0100007F:1538 01 00000000:00000000 02:00000000 00000000  1000        0 101 2 0 20 4 30 10 -1\n\
             2: 0100007F:B002 0100007F:1538 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0\n\
             3: 0100007F:B003 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0\n";
        let of = |port: u16| socket_in(table, (Ipv4Addr::LOCALHOST, port).into(), (Ipv4Addr::LOCALHOST, 0x1538).into());
        let account = |port| of(port).and_then(|socket| socket.account());
        assert_eq!((account(0xB001), account(0xB002), account(0xB003), account(0xB004)), (Some(1000), None, None, None));
    }
}
