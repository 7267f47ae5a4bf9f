//! The operations that fail on purpose.

use std::sync::atomic::{AtomicU64, Ordering};

use libc::c_int;

/// Names of operations in POWERCUT_FAULT.
pub const NAMES: [&str; 9] = ["open", "read", "write", "write-back", "length", "allocate", "sync", "rename", "remove"];

/// Some operations of one name, in a row.
pub struct Fault {
    name: &'static str,
    first: u64,
    times: u64,
    errno: c_int,
    seen: AtomicU64,
}

impl Fault {
    /// `OPERATION:FIRST:TIMES:ERRNO`.
    pub fn parse(text: &str) -> Option<Fault> {
        let mut parts = text.split(':');
        let given = parts.next()?;
        let name = NAMES.into_iter().find(|name| *name == given)?;
        let mut number = || parts.next()?.parse::<u64>().ok();
        Some(Fault { name, first: number()?, times: number()?, errno: number()? as c_int, seen: AtomicU64::new(0) })
    }

    /// Counts an operation; the error's number where it is to fail.
    pub fn strikes(&self, name: &str) -> Option<c_int> {
        if name != self.name {
            return None;
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed);
        (self.first..self.first.saturating_add(self.times)).contains(&number).then_some(self.errno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_operations_fail_that_were_named() {
        let fault = Fault::parse("sync:1:2:5").expect("a fault");
        let struck: Vec<_> = ["sync", "write", "sync", "sync", "sync"].map(|name| fault.strikes(name)).into();
        assert_eq!(struck, [None, None, Some(5), Some(5), None]);
        assert!(Fault::parse("sink:1:2:5").is_none() && Fault::parse("sync:1").is_none());
    }
}
