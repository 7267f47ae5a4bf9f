//! The system's knowledge of clients: the account behind a Unix-domain socket, names of hosts and accounts, networks.

use std::ffi::{CStr, CString};
use std::mem::{MaybeUninit, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
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
        // SAFETY: the address lives through the call and has the length of its family; `name` has the given size.
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
        // SAFETY: the list is as getifaddrs has made it, and freed after its last use.
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
    // SAFETY: there is room for the option's value; numbers of zeros are valid.
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

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn account_behind_a_unix_socket_is_found() {
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        assert_eq!(peer_account(ours.as_raw_fd()), Some(own_account()));
    }

    #[test]
    fn this_machine_has_a_loopback() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert!(System.interfaces().iter().any(|(address, _)| *address == loopback));
        assert_eq!(System.addresses_of("127.0.0.1"), [loopback]);
        assert_eq!(account_name(0).as_deref(), Some("root"));
    }
}
