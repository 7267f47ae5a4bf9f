//! The number of files that the process may have open, and their distribution.
//!
//! Connections come first, because an admitted client must find the files it needs; the rest is for segments and temporary files,
//! of which a few are enough. So a low limit costs time and, when it is very low, connections.

/// A client's socket, and a second handle to wake it.
const FILES_OF_A_CLIENT: u64 = 2;
/// Of a session: a file that COPY, lo_import or pg_read_file has open.
const FILES_OF_A_SESSION: u64 = 1;
/// Clients that have not authenticated yet are as many again as max_connections, and these.
const CLIENTS_MORE: u64 = 16;
/// The log, the manifest, folders, standard streams, the listener and files of libraries.
const FILES_OF_THE_SERVER: u64 = 64;
/// Segments and temporary files that are open at a time: at least, and by default.
const CACHED_MIN: u64 = 32;
const CACHED_MAX: u64 = 16384;

const FILES_OF_A_CONNECTION: u64 = 2 * FILES_OF_A_CLIENT + FILES_OF_A_SESSION;
const FILES_KEPT: u64 = FILES_OF_THE_SERVER + CLIENTS_MORE * FILES_OF_A_CLIENT;

/// How a limit of open files is shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    pub max_connections: u64,
    /// `EngineOptions::open_files_max`.
    pub cached: usize,
}

impl Shares {
    /// Of `limit` files; `None` when not even one connection can be served.
    pub fn new(limit: u64, max_connections: u64) -> Option<Shares> {
        let free = limit.checked_sub(FILES_KEPT + CACHED_MIN)?;
        let max_connections = max_connections.min(free / FILES_OF_A_CONNECTION);
        let cached = (free - max_connections * FILES_OF_A_CONNECTION + CACHED_MIN).min(CACHED_MAX);
        (max_connections > 0).then_some(Shares { max_connections, cached: cached as usize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_first_and_caches_keep_some() {
        assert_eq!(Shares::new(1 << 20, 100), Some(Shares { max_connections: 100, cached: 16384 }));
        assert_eq!(Shares::new(1024, 100), Some(Shares { max_connections: 100, cached: 428 }));
        assert_eq!(Shares::new(256, 100), Some(Shares { max_connections: 25, cached: 35 }));
        assert_eq!(Shares::new(130, 100), None);
        assert_eq!(Shares::new(0, 1), None);
        for limit in (133..5000).step_by(7) {
            let Shares { max_connections, cached } = Shares::new(limit, 300).expect("enough");
            let used = max_connections * FILES_OF_A_CONNECTION + FILES_KEPT + cached as u64;
            assert!(used <= limit && cached as u64 >= CACHED_MIN, "{limit}");
        }
    }
}
