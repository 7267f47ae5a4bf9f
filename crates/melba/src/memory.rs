//! The memory of the server and its parts.
//!
//! Of the setting `memory`, three eighths are for unflushed rows and cached blocks (unless shared_buffers says otherwise), three
//! eighths for queries and write sets. One sort may hold a sixteenth, a hash table hash_mem_multiplier times that, as long as
//! queries have that much left together; and more, unless work_mem says otherwise, as long as half of the queries' part is left
//! for others. The rest is for uncounted memory: connections, catalogs and plans, the buffers of background work, the allocator.

use std::path::Path;

use melba_settings::configuration::{Assignment, Place};

const MACHINE_SHARE: u64 = 4;
/// The default when the machine does not report its memory, and the least useful size.
const DEFAULT_BYTES: u64 = 256 << 20;
const BYTES_MIN: u64 = 64 << 20;

/// One sort's share of `memory`.
const WORK_SHARE: u64 = 16;
/// PostgreSQL's default of work_mem, and the value above which queries get no faster.
const WORK_BYTES_MIN: u64 = 4 << 20;
const WORK_BYTES_MAX: u64 = 256 << 20;

/// The allocator's option of how long freed pages stay with the process, by its number, for which its bindings have no name.
const PURGE_DELAY: std::ffi::c_int = 15;
/// Milliseconds, for memory of any size.
const PURGE_DELAY_MAX: u64 = 100;
/// Bytes that a query may free in a millisecond: a sort writes runs at about twice this rate.
const FREED_A_MILLISECOND: u64 = 1 << 20;
/// The share of `memory` that freed pages may take before they return to the system.
const FREED_SHARE: u64 = 16;

/// The size given to `--memory`. Without a unit it would be in kilobytes, which is never intended.
pub fn size(text: &str) -> Result<String, String> {
    let is_plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    match text.trim() {
        "0" => Ok("0".to_owned()),
        plain if is_plain(plain) => Err(format!("a size needs its unit: {plain}GB, or {plain}MB")),
        size => Ok(size.to_owned()),
    }
}

/// Adds the derived assignments: `memory` when it is not given or 0, shared_buffers and work_mem when they are not given.
pub fn add_defaults(assignments: &mut Vec<Assignment>) {
    let given = |name: &str| assignments.iter().rev().find(|a| a.name.eq_ignore_ascii_case(name)).map(|a| a.value.clone());
    let mut follow = Vec::new();
    let mut add = |name: &str, kilobytes: u64| follow.push(Assignment::new(name, &format!("{kilobytes}kB"), Place::Derived));
    let parsed = |value: String| {
        let settings = melba_settings::Settings::server(&[("memory".to_owned(), value)]).ok()?;
        Some((settings.get("memory").as_integer() as u64) << 10)
    };
    // An unreadable value is refused later, with the reason.
    let Some(mut bytes) = given("memory").map_or(Some(0), parsed) else { return };
    if bytes == 0 {
        bytes = (machine_bytes().unwrap_or(MACHINE_SHARE * DEFAULT_BYTES) / MACHINE_SHARE).max(BYTES_MIN);
        add("memory", bytes >> 10);
    }
    if given("shared_buffers").is_none() {
        add("shared_buffers", ((bytes * 3 / 8) >> 13) << 3);
    }
    if given("work_mem").or_else(|| given("sort_mem")).is_none() {
        let work_bytes = (bytes / WORK_SHARE).clamp(WORK_BYTES_MIN, WORK_BYTES_MAX);
        add("work_mem", work_bytes >> 10);
    }
    assignments.extend(follow);
}

/// Lets freed pages return to the system the sooner the less `memory` there is, so that they stay a small part of it. The
/// allocator's own second would let the memory of a large query add to that of the next one.
pub fn purge_soon(memory_bytes: u64) {
    // SAFETY: sets an atomic integer of the allocator.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, purge_delay(memory_bytes)) };
}

/// Milliseconds.
fn purge_delay(memory_bytes: u64) -> std::ffi::c_long {
    (memory_bytes / FREED_SHARE / FREED_A_MILLISECOND).clamp(1, PURGE_DELAY_MAX) as std::ffi::c_long
}

/// The setting `memory`, or a default where nothing has derived it.
pub fn setting_bytes(settings: &melba_settings::Settings) -> u64 {
    match settings.get("memory").as_integer() as u64 {
        0 => DEFAULT_BYTES,
        kilobytes => kilobytes << 10,
    }
}

/// The memory of queries and write sets.
pub fn query_bytes(memory_bytes: u64) -> u64 {
    memory_bytes * 3 / 8
}

/// The memory of the process above which statements that make large values are refused more: the setting, plus the difference
/// between the allocator's and the system's pages and their content.
pub fn statement_limit(memory_bytes: u64) -> u64 {
    memory_bytes + memory_bytes / 16
}

/// The part of it that one transaction's changes may take before they move into files.
pub fn write_set_bytes(query_bytes: u64) -> usize {
    (query_bytes / 16).clamp(256 << 10, 32 << 20) as usize
}

/// The machine's memory, or the limit of the process's control groups.
fn machine_bytes() -> Option<u64> {
    let total = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes << 10)
    });
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let of_group = group_limit(Path::new("/sys/fs/cgroup"), &groups);
    total.into_iter().chain(of_group).chain(address_space_limit(&limits)).min()
}

/// The part of the `ulimit -v` limit for data, when there is one: stacks of sessions and the allocator's own take address space, too.
fn address_space_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let soft: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(soft / 2)
}

/// The least limit of the groups that a process is in and of those above them. `groups` is /proc/self/cgroup: lines of number,
/// controllers and path; version 2 has number 0 and no controllers. In a container the paths may be those of the machine, and the
/// container's own group is the root.
fn group_limit(root: &Path, groups: &str) -> Option<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (tree, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|c| c == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
            _ => continue,
        };
        let group = tree.join(path.trim_start_matches('/'));
        let of_tree = group.ancestors().take_while(|group| group.starts_with(&tree));
        limits.extend(of_tree.filter_map(|group| read_limit(&group.join(file))));
        // Beside version 1, version 2 may be mounted further down.
        if controllers.is_empty() {
            let group = root.join("unified").join(path.trim_start_matches('/'));
            limits.extend(group.ancestors().take_while(|g| *g != root).filter_map(|g| read_limit(&g.join(file))));
        }
    }
    limits.into_iter().min()
}

/// "max", and the number by which version 1 says the same, are no limits.
fn read_limit(file: &Path) -> Option<u64> {
    let bytes: u64 = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
    (bytes < 1 << 60).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(all: &'a [Assignment], name: &str) -> Option<&'a str> {
        all.iter().rev().find(|a| a.name == name).map(|a| a.value.as_str())
    }

    fn with_defaults(given: &[(&str, &str)]) -> Vec<Assignment> {
        let mut all = given.iter().map(|(name, value)| Assignment::new(name, value, Place::CommandLine)).collect();
        add_defaults(&mut all);
        all
    }

    #[test]
    fn the_purge_delay_is_the_option_of_that_number() {
        // SAFETY: reads an atomic integer of the allocator.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 1000, "the allocator's default");
        purge_soon(192 << 20);
        assert_eq!(delay(), 12);
        assert_eq!((purge_delay(0), purge_delay(1 << 30), purge_delay(16 << 30)), (1, 64, 100));
    }

    #[test]
    fn shares_follow_from_memory_unless_they_are_given() {
        let all = with_defaults(&[("memory", "256MB")]);
        assert_eq!((value(&all, "memory"), value(&all, "shared_buffers")), (Some("256MB"), Some("98304kB")));
        assert_eq!(value(&all, "work_mem"), Some("16384kB"));
        let all = with_defaults(&[("memory", "1GB"), ("Shared_Buffers", "16MB")]);
        assert_eq!((value(&all, "shared_buffers"), value(&all, "work_mem")), (None, Some("65536kB")));
        let all = with_defaults(&[("memory", "1GB"), ("sort_mem", "1MB")]);
        assert_eq!(value(&all, "work_mem"), None);
        let all = with_defaults(&[]);
        assert!(value(&all, "memory").is_some_and(|v| v.ends_with("kB")) && value(&all, "shared_buffers").is_some());
        assert_eq!(with_defaults(&[("memory", "much")]).len(), 1);
        assert_eq!(query_bytes(256 << 20), 96 << 20);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("512MB").as_deref(), Ok("512MB"));
        assert_eq!(size("0").as_deref(), Ok("0"));
        assert!(size("5").is_err_and(|e| e.contains("5GB")));
    }

    #[test]
    fn the_least_limit_of_a_group_and_those_above_counts() {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("has one")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let limit = |groups: &str| group_limit(root.path(), groups);
        assert_eq!(limit("0::/system.slice/melba.service\n"), None);
        put("system.slice/melba.service/memory.max", "1073741824\n");
        put("system.slice/memory.max", "max\n");
        assert_eq!(limit("0::/system.slice/melba.service\n"), Some(1 << 30));
        put("system.slice/memory.max", "536870912\n");
        assert_eq!(limit("0::/system.slice/melba.service\n"), Some(1 << 29));
        put("memory/docker/memory.limit_in_bytes", "268435456");
        put("memory/memory.limit_in_bytes", "9223372036854771712");
        assert_eq!(limit("4:cpu,cpuacct:/docker\n3:memory:/docker\n"), Some(1 << 28));
        assert_eq!(limit("3:memory:/elsewhere\n"), None);
        put("memory.max", "134217728");
        assert_eq!(limit("0::/a/path/of/the/machine\n"), Some(1 << 27));
    }
}
