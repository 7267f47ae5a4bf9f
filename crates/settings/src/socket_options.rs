//! Settings that are options of the client's socket: tcp_keepalives_idle and similar ones. SHOW prints the socket's values.

/// An option of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketOption {
    /// Seconds without traffic after which the client is probed.
    KeepalivesIdle,
    /// Seconds between two probes.
    KeepalivesInterval,
    /// Unanswered probes after which the client counts as disconnected.
    KeepalivesCount,
    /// Milliseconds after which the client counts as disconnected if it confirms no sent data.
    UserTimeout,
}

/// A client's socket, as its session's settings see it.
pub trait SocketOptions: Send + Sync + std::fmt::Debug {
    /// 0: the system's default. A value that the system refuses changes nothing.
    fn set(&self, option: SocketOption, value: i64);

    /// The value in force; 0 where there is no such option.
    fn get(&self, option: SocketOption) -> i64;
}

pub(super) const SETTINGS: [(&str, SocketOption); 4] = [
    ("tcp_keepalives_idle", SocketOption::KeepalivesIdle),
    ("tcp_keepalives_interval", SocketOption::KeepalivesInterval),
    ("tcp_keepalives_count", SocketOption::KeepalivesCount),
    ("tcp_user_timeout", SocketOption::UserTimeout),
];
