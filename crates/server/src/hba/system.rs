//! What the system knows of clients: the account of a process behind a socket, names of hosts and accounts, networks.

use std::ffi::{CStr, CString};
use std::mem::{MaybeUninit, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::RawFd;

use super::matching::Network;

/// This machine's.
pub(crate) struct System;

impl Network for System {
    fn name_of(&self, address: IpAddr) -> Option<String> {
        let mut name = [0; libc::NI_MAXHOST as usize];
        let (v4, v6);
        let (pointer, length) = match address {
            IpAddr::V4(ip) => {
                v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: 0,
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) },
                    sin_zero: [0; 8],
                };
                ((&raw const v4).cast::<libc::sockaddr>(), size_of::<libc::sockaddr_in>())
            }
            IpAddr::V6(ip) => {
                v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: 0,
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr { s6_addr: ip.octets() },
                    sin6_scope_id: 0,
                };
                ((&raw const v6).cast::<libc::sockaddr>(), size_of::<libc::sockaddr_in6>())
            }
        };
        // SAFETY: the address lives through the call and has the length of its family; `name` has the room that is said.
        let result = unsafe {
            let length = length as libc::socklen_t;
            let room = name.len() as libc::socklen_t;
            libc::getnameinfo(pointer, length, name.as_mut_ptr(), room, std::ptr::null_mut(), 0, libc::NI_NAMEREQD)
        };
        if result != 0 {
            return None;
        }
        // SAFETY: after success it ends with a zero byte.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) };
        Some(name.to_str().ok()?.to_owned())
    }

    fn addresses_of(&self, name: &str) -> Vec<IpAddr> {
        (name, 0).to_socket_addrs().map_or_else(|_| Vec::new(), |found| found.map(|a| a.ip().to_canonical()).collect())
    }

    fn interfaces(&self) -> Vec<(IpAddr, IpAddr)> {
        let mut first = std::ptr::null_mut();
        // SAFETY: the call writes a list's beginning, or fails.
        if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
            return Vec::new();
        }
        let mut out = Vec::new();
        let mut at = first;
        // SAFETY: the list is as getifaddrs has made it, and freed after the last look at it.
        unsafe {
            while let Some(interface) = at.as_ref() {
                out.extend(ip(interface.ifa_addr).zip(ip(interface.ifa_netmask)));
                at = interface.ifa_next;
            }
            libc::freeifaddrs(first);
        }
        out
    }
}

/// The address in a socket address of the families that have one.
///
/// # Safety
/// The pointer is null or points to a whole socket address of the family that it names.
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: by the caller's promise.
    unsafe {
        match i32::from(address.as_ref()?.sa_family) {
            libc::AF_INET => {
                let v4 = &*address.cast::<libc::sockaddr_in>();
                Some(IpAddr::V4(Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes())))
            }
            libc::AF_INET6 => {
                let v6 = &*address.cast::<libc::sockaddr_in6>();
                Some(IpAddr::V6(Ipv6Addr::from(v6.sin6_addr.s6_addr)))
            }
            _ => None,
        }
    }
}

/// The account of the process that has connected to a Unix-domain socket.
pub(crate) fn peer_account(socket: RawFd) -> Option<u32> {
    let mut peer = MaybeUninit::<libc::ucred>::zeroed();
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: there is room for what the option is; numbers of zeros are valid.
    let (result, peer) = unsafe {
        let result = libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, peer.as_mut_ptr().cast(), &raw mut length);
        (result, peer.assume_init())
    };
    (result == 0 && length as usize == size_of::<libc::ucred>()).then_some(peer.uid)
}

/// The account that this process runs as.
pub(crate) fn own_account() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// The name of an account.
pub(crate) fn account_name(account: u32) -> Option<String> {
    let mut entry = MaybeUninit::<libc::passwd>::zeroed();
    let mut room = vec![0; 16 << 10];
    let mut found = std::ptr::null_mut();
    // SAFETY: the pointers are to places that live through the call, `room` with its length.
    let result = unsafe { libc::getpwuid_r(account, entry.as_mut_ptr(), room.as_mut_ptr(), room.len(), &raw mut found) };
    if result != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the entry was found, so its name is a string in `room`.
    let name: CString = unsafe { CStr::from_ptr((*found).pw_name) }.to_owned();
    name.into_string().ok()
}

/// The account of the process at the other end of a TCP connection within this machine, if that can be told.
pub(crate) fn local_account(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    let look = |file: &str, client, server| account_in(&std::fs::read_to_string(file).ok()?, client, server);
    match (client.ip().to_canonical(), server.ip().to_canonical()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            look("/proc/net/tcp", (from, client.port()).into(), (to, server.port()).into()).or_else(|| {
                // Some programs reach IPv4 by sockets of IPv6.
                let mapped = [(from, client.port()), (to, server.port())].map(|(ip, port)| (ip.to_ipv6_mapped(), port).into());
                look("/proc/net/tcp6", mapped[0], mapped[1])
            })
        }
        _ => look("/proc/net/tcp6", client, server),
    }
}

/// The account of the connected socket with these ends in a table of the kernel's. Sockets that nobody has (any more) are listed as
/// root's, and told by their state or by having no inode.
fn account_in(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    const ESTABLISHED: &str = "01";
    let (local, remote) = (hexadecimal(local), hexadecimal(remote));
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        if fields.next()? != local || fields.next()? != remote || fields.next()? != ESTABLISHED {
            return None;
        }
        let (account, inode) = (fields.nth(3)?, fields.nth(1)?);
        if inode == "0" { None } else { account.parse().ok() }
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
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn accounts_of_processes_behind_sockets_are_found() {
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        assert_eq!(peer_account(ours.as_raw_fd()), Some(own_account()));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (server, _) = listener.accept().expect("a client");
        let ends = (server.peer_addr().expect("connected"), server.local_addr().expect("connected"));
        assert_eq!(local_account(ends.0, ends.1), Some(own_account()));
        drop(client);
        assert_eq!(local_account(ends.0, ends.1), None, "what was closed belongs to nobody");
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn sockets_without_a_process_are_nobody_s() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000   999        0 100 1 0 100 0 0 10 0\n\
             1: 0100007F:B001 0100007F:1538 01 00000000:00000000 02:00000000 00000000  1000        0 101 2 0 20 4 30 10 -1\n\
             2: 0100007F:B002 0100007F:1538 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0\n\
             3: 0100007F:B003 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0\n";
        let of = |port: u16| account_in(table, (Ipv4Addr::LOCALHOST, port).into(), (Ipv4Addr::LOCALHOST, 0x1538).into());
        assert_eq!((of(0xB001), of(0xB002), of(0xB003), of(0xB004)), (Some(1000), None, None, None));
    }

    #[test]
    fn this_machine_has_a_loopback() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert!(System.interfaces().iter().any(|(address, _)| *address == loopback));
        assert_eq!(System.addresses_of("127.0.0.1"), [loopback]);
        assert_eq!(account_name(0).as_deref(), Some("root"));
    }
}
