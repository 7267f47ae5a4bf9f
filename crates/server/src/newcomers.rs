//! Connections whose clients have not authenticated yet. Their number is bounded, and a connection beyond the bound ends another
//! one: silent connections keep no client out.

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::hba::system::peer_account;
use crate::stream::Stream;

/// The origin of a connection, as far as it is known before anything was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Host(IpAddr),
    /// An account of this machine, by a Unix-domain socket.
    Account(Option<u32>),
}

struct Newcomer<S> {
    pid: i32,
    origin: Origin,
    since: Instant,
    stream: S,
}

/// Those of a server.
pub(crate) struct Newcomers<S = Arc<Stream>> {
    list: Mutex<Vec<Newcomer<S>>>,
}

/// Younger ones are not ended in favour of others of the same origin, which are as likely to be well-behaved.
const PATIENCE: Duration = Duration::from_secs(1);

impl Default for Newcomers {
    fn default() -> Newcomers {
        Newcomers { list: Mutex::default() }
    }
}

impl Newcomers {
    /// Notes a connection, of which there may be `max`; ends another when there are that many. False: this one must end.
    pub fn admit(&self, pid: i32, stream: &Arc<Stream>, max: usize) -> bool {
        let Ok(addresses) = stream.addresses() else { return false };
        let origin = match addresses {
            Some(addresses) => Origin::Host(network(addresses.client.ip().to_canonical())),
            None => Origin::Account(peer_account(stream.as_raw_fd())),
        };
        let newcomer = Newcomer { pid, origin, since: Instant::now(), stream: Arc::clone(stream) };
        match self.list.lock().admit(newcomer, max) {
            Admitted::Refused => return false,
            // Its thread finds the end of the stream, and removes nothing twice.
            Admitted::Instead(other) => _ = other.shut_down(),
            Admitted::Beside => {}
        }
        true
    }

    pub fn remove(&self, pid: i32) {
        self.list.lock().retain(|newcomer| newcomer.pid != pid);
    }

    /// The server stops.
    pub fn end_all(&self) {
        self.list.lock().iter().for_each(|newcomer| _ = newcomer.stream.shut_down());
    }
}

/// The end of a newcomer.
#[derive(Debug, PartialEq, Eq)]
enum Admitted<S> {
    Beside,
    /// This one was sent away.
    Instead(S),
    Refused,
}

/// A host of IPv6 has a whole network of addresses.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() & !u128::from(u64::MAX)).into()),
        v4 => v4,
    }
}

trait Admit<S> {
    fn admit(&mut self, newcomer: Newcomer<S>, max: usize) -> Admitted<S>;
}

impl<S> Admit<S> for Vec<Newcomer<S>> {
    fn admit(&mut self, newcomer: Newcomer<S>, max: usize) -> Admitted<S> {
        if self.len() < max {
            self.push(newcomer);
            return Admitted::Beside;
        }
        // The oldest of the origin that has the most.
        let count = |origin: Origin| self.iter().filter(|other| other.origin == origin).count();
        let Some(busiest) = self.iter().map(|n| n.origin).max_by_key(|origin| count(*origin)) else { return Admitted::Refused };
        let at = self.iter().position(|other| other.origin == busiest).expect("it is one of theirs");
        let is_young = newcomer.since.saturating_duration_since(self[at].since) < PATIENCE;
        if busiest == newcomer.origin && is_young {
            return Admitted::Refused;
        }
        let old = self.remove(at);
        self.push(newcomer);
        Admitted::Instead(old.stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newcomer(host: u8, pid: i32, since: Instant) -> Newcomer<i32> {
        Newcomer { pid, origin: Origin::Host(IpAddr::V4([10, 0, 0, host].into())), since, stream: pid }
    }

    #[test]
    fn who_fills_the_room_makes_room() {
        let start = Instant::now();
        let mut list = Vec::new();
        for pid in 0..3 {
            assert_eq!(list.admit(newcomer(1, pid, start), 4), Admitted::Beside);
        }
        assert_eq!(list.admit(newcomer(2, 3, start), 4), Admitted::Beside);
        assert_eq!(list.admit(newcomer(1, 4, start), 4), Admitted::Refused, "a burst of one host's keeps within its room");
        assert_eq!(list.admit(newcomer(3, 5, start), 4), Admitted::Instead(0), "others are not kept out by it");
        assert_eq!(list.admit(newcomer(1, 6, start + PATIENCE), 4), Admitted::Instead(1), "silent ones go after a while");
        assert_eq!(list.len(), 4);
    }

    #[test]
    fn hosts_of_ipv6_are_networks() {
        let network = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_ne!(network("10.0.0.1"), network("10.0.0.2"));
    }
}
