//! The system's figures for this process, named as in Prometheus' client libraries.

use super::exposition::Exposition;

pub fn gather(out: &mut Exposition) {
    // SAFETY: both functions only read.
    let (page_bytes, ticks) = unsafe { (libc::sysconf(libc::_SC_PAGESIZE) as f64, libc::sysconf(libc::_SC_CLK_TCK) as f64) };
    let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    let pages: Vec<f64> = read("statm").split_whitespace().filter_map(|n| n.parse().ok()).collect();
    if let [virtual_pages, resident_pages, ..] = pages[..] {
        out.gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", virtual_pages * page_bytes);
        out.gauge("process_resident_memory_bytes", "Resident memory size in bytes.", resident_pages * page_bytes);
    }
    // The name of the process, in parentheses, may hold anything.
    let stat = read("stat");
    let fields: Vec<f64> = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().map(|n| n.parse().unwrap_or(0.0)).collect())
        .unwrap_or_default();
    const USER: usize = 11;
    const SYSTEM: usize = 12;
    const THREADS: usize = 17;
    if let (Some(user), Some(system), Some(threads)) = (fields.get(USER), fields.get(SYSTEM), fields.get(THREADS)) {
        let help = "Total user and system CPU time spent in seconds.";
        out.counter("process_cpu_seconds_total", help, (user + system) / ticks);
        out.gauge("process_threads", "Number of threads.", *threads);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        out.gauge("process_open_fds", "Number of open file descriptors.", open.count() as f64);
    }
}
