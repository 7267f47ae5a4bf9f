//! The resources used by a server's processes, from /proc: PostgreSQL has a process per connection, Melba and MySQL have one.

use std::collections::{HashMap, HashSet};
use std::fs;

/// A running server: the process that listens, and its descendants.
#[derive(Clone, Copy, Debug)]
pub struct ServerProcess {
    pid: u32,
}

/// The resources used by a server since its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Seconds of CPU, user and system.
    pub cpu_seconds: f64,
    /// Bytes handed to the disk; `None` when /proc does not let us see them.
    pub written_bytes: Option<u64>,
}

/// A listening socket's state in /proc/net/tcp.
const LISTEN: &str = "0A";

impl ServerProcess {
    /// The process that listens on a port of this machine; a forked child that still holds the socket is not it.
    pub fn listening_on(port: u16) -> Option<ServerProcess> {
        let sockets: HashSet<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
            .iter()
            .flat_map(|file| listeners(&fs::read_to_string(file).ok()?, port))
            .flatten()
            .collect();
        let holders: HashSet<u32> = processes().filter(|pid| holds_socket(*pid, &sockets)).collect();
        let pid = holders.iter().copied().find(|pid| Stat::of(*pid).is_some_and(|s| !holders.contains(&s.parent)))?;
        Some(ServerProcess { pid })
    }

    /// The resources used by it and its children, including ended ones.
    pub fn usage(self) -> Usage {
        let stats: HashMap<u32, Stat> = processes().filter_map(|pid| Some((pid, Stat::of(pid)?))).collect();
        let belongs = |mut pid: u32| loop {
            if pid == self.pid {
                return true;
            }
            match stats.get(&pid) {
                Some(stat) => pid = stat.parent,
                None => return false,
            }
        };
        let mut usage = Usage { cpu_seconds: 0.0, written_bytes: Some(0) };
        for (pid, stat) in &stats {
            if belongs(*pid) {
                usage.cpu_seconds += stat.cpu_seconds;
                usage.written_bytes = usage.written_bytes.zip(written_bytes(*pid)).map(|(a, b)| a + b);
            }
        }
        usage
    }
}

impl Usage {
    /// The resources used since an earlier reading.
    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            cpu_seconds: self.cpu_seconds - earlier.cpu_seconds,
            written_bytes: self.written_bytes.zip(earlier.written_bytes).map(|(a, b)| a.saturating_sub(b)),
        }
    }
}

/// The part of /proc/PID/stat that matters.
struct Stat {
    parent: u32,
    cpu_seconds: f64,
}

impl Stat {
    fn of(pid: u32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Fields by proc(5): after the name in parentheses, state, parent, ..., the 12th to 15th are the ticks used by the process
    /// and by its children that were waited for.
    fn parse(text: &str) -> Option<Stat> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = fields.get(11..15)?.iter().filter_map(|t| t.parse::<u64>().ok()).sum();
        Some(Stat { parent: fields.get(1)?.parse().ok()?, cpu_seconds: ticks as f64 / ticks_per_second() })
    }
}

fn ticks_per_second() -> f64 {
    // SAFETY: sysconf reads a constant of the system and touches no memory of ours.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}

fn written_bytes(pid: u32) -> Option<u64> {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    io.lines().find_map(|l| l.strip_prefix("write_bytes: ")).and_then(|v| v.trim().parse().ok())
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok())
}

/// The inodes of sockets that listen on the port.
fn listeners(table: &str, port: u16) -> Option<Vec<String>> {
    let wanted = format!(":{port:04X}");
    let rows = table.lines().skip(1).map(|l| l.split_whitespace().collect::<Vec<_>>());
    Some(
        rows.filter(|f| f.len() > 9 && f[1].ends_with(&wanted) && f[3] == LISTEN).map(|f| format!("socket:[{}]", f[9])).collect(),
    )
}

fn holds_socket(pid: u32, sockets: &HashSet<String>) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|d| fs::read_link(d.path()).ok()).any(|link| sockets.contains(&*link.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listener_is_found_and_its_use_grows() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = ServerProcess::listening_on(listener.local_addr().unwrap().port()).unwrap();
        assert_eq!(server.pid, std::process::id());
        let before = server.usage();
        let mut sum = 0u64;
        while server.usage().since(before).cpu_seconds < 0.02 {
            sum = (0..1_000_000u64).fold(sum, |a, b| std::hint::black_box(a ^ b));
        }
    }

    #[test]
    fn stat_is_read_behind_any_name() {
        let stat = Stat::parse("7 (a) b) S 3 0 0 0 0 0 0 0 0 0 100 50 25 25 0").unwrap();
        assert_eq!(stat.parent, 3);
        assert!((stat.cpu_seconds - 200.0 / ticks_per_second()).abs() < 1e-9);
    }
}
