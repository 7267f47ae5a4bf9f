//! The memory of the server and its parts.
//!
//! Of the setting `memory`, three eighths are for rows that are not flushed yet and cached blocks (unless shared_buffers says
//! otherwise), three eighths for what queries and write sets hold. The rest is for what nobody counts: connections, catalogs and
//! plans, the buffers of background work, the allocator.

const MACHINE_SHARE: u64 = 4;
/// When the machine does not tell how much it has, and the least there is any use in.
const DEFAULT_BYTES: u64 = 256 << 20;
const BYTES_MIN: u64 = 64 << 20;

/// The allocator's option of how long freed pages stay with the process, by its number, for which its bindings have no name.
const PURGE_DELAY: std::ffi::c_int = 15;
const PURGE_MILLISECONDS: std::ffi::c_long = 100;

/// Lets freed pages go back to the system after a tenth of a second, not the allocator's second: what a large query held shall not
/// be there beside what the next one takes.
pub fn purge_soon() {
    // SAFETY: sets an atomic integer of the allocator.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_MILLISECONDS) };
}

/// The assignments with what follows from them: `memory` when it is not given or 0, and shared_buffers when that is not given.
pub fn with_defaults(assignments: Vec<(String, String)>) -> Vec<(String, String)> {
    let given = |name: &str| assignments.iter().rev().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.clone());
    let mut all = assignments.clone();
    let parsed = |value: String| {
        let settings = melba_sql::session::settings::Settings::server(&[("memory".to_owned(), value)]).ok()?;
        Some((settings.get("memory").as_integer() as u64) << 10)
    };
    // What cannot be read is refused later, with the reason.
    let Some(mut bytes) = given("memory").map_or(Some(0), parsed) else { return all };
    if bytes == 0 {
        bytes = (machine_bytes().unwrap_or(MACHINE_SHARE * DEFAULT_BYTES) / MACHINE_SHARE).max(BYTES_MIN);
        all.push(("memory".to_owned(), format!("{}kB", bytes >> 10)));
    }
    if given("shared_buffers").is_none() {
        all.push(("shared_buffers".to_owned(), format!("{}kB", ((bytes * 3 / 8) >> 13) << 3)));
    }
    all
}

/// What queries and write sets may hold.
pub fn query_bytes(memory_bytes: u64) -> u64 {
    let bytes = if memory_bytes == 0 { DEFAULT_BYTES } else { memory_bytes };
    bytes * 3 / 8
}

/// What the process may have before statements that make large values are refused more: the setting, and what the allocator's
/// and the system's pages differ by from what is in them.
pub fn statement_limit(memory_bytes: u64) -> u64 {
    let bytes = if memory_bytes == 0 { DEFAULT_BYTES } else { memory_bytes };
    bytes + bytes / 16
}

/// What one transaction's changes may take of it before they move into files.
pub fn write_set_bytes(query_bytes: u64) -> usize {
    (query_bytes / 16).clamp(256 << 10, 32 << 20) as usize
}

/// The machine's memory, or what the process's control group may use of it.
fn machine_bytes() -> Option<u64> {
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    let total = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes << 10)
    });
    total.into_iter().chain(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(all: &'a [(String, String)], name: &str) -> Option<&'a str> {
        all.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    #[test]
    fn the_purge_delay_is_the_option_of_that_number() {
        // SAFETY: reads an atomic integer of the allocator.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 1000, "the allocator's default");
        purge_soon();
        assert_eq!(delay(), PURGE_MILLISECONDS);
    }

    #[test]
    fn shares_follow_from_memory_unless_they_are_given() {
        let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        let all = with_defaults(vec![pair("memory", "256MB")]);
        assert_eq!((value(&all, "memory"), value(&all, "shared_buffers")), (Some("256MB"), Some("98304kB")));
        let all = with_defaults(vec![pair("memory", "1GB"), pair("Shared_Buffers", "16MB")]);
        assert_eq!((value(&all, "shared_buffers"), all.len()), (None, 2));
        let all = with_defaults(vec![]);
        assert!(value(&all, "memory").is_some_and(|v| v.ends_with("kB")) && value(&all, "shared_buffers").is_some());
        assert_eq!(with_defaults(vec![pair("memory", "much")]).len(), 1);
        assert_eq!(query_bytes(256 << 20), 96 << 20);
    }
}
