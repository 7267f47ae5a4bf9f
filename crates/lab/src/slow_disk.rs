//! Servers whose disks are slowed: their syncs take a given time (crates/slowdisk, preloaded into each of them).
//!
//! The delays are written into the file that the servers' `SLOWDISK` names. Their effect on each target is measured: one client's
//! commit cannot be faster than the sync that it waits for.

use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use crate::report::{Collector, Key};
use crate::statistics::median;
use crate::target::Protocol;
use crate::{Result, Target};

#[derive(Debug, Args)]
pub struct SlowDisk {
    /// How long a sync takes, such as 0.2ms or 5ms; of several, each is an experiment of its own. The servers are started
    /// with LD_PRELOAD=libmelba_slowdisk.so and SLOWDISK=FILE
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = time, requires = "slow_disk")]
    sync_delay: Vec<Duration>,
    /// A random time up to this is added to each sync
    #[arg(long, value_name = "TIME", value_parser = time, requires = "sync_delay", default_value = "0ms")]
    sync_jitter: Duration,
    /// The disk stalls for a time in each period, such as 1s/20s
    #[arg(long, value_name = "TIME/TIME", value_parser = pause, requires = "sync_delay", default_value = "0s/0s")]
    sync_pause: (Duration, Duration),
    /// The file that the servers were told by SLOWDISK (32 zero bytes at first)
    #[arg(long, value_name = "FILE")]
    slow_disk: Option<PathBuf>,
}

/// 0.2ms, 1s.
fn time(text: &str) -> Result<Duration> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').ok_or("expected a time in ms or s")?, 1.0),
    };
    let number = number.parse::<f64>().map_err(|_| "expected a time such as 0.2ms")?;
    Duration::try_from_secs_f64(number * unit).map_err(|e| e.to_string())
}

fn pause(text: &str) -> Result<(Duration, Duration)> {
    let (pause, period) = text.split_once('/').ok_or("expected TIME/TIME")?;
    Ok((time(pause)?, time(period)?))
}

impl SlowDisk {
    /// The delays of the experiment; `None`: the unchanged disk.
    pub fn delays(&self) -> Vec<Option<Duration>> {
        if self.sync_delay.is_empty() { vec![None] } else { self.sync_delay.iter().copied().map(Some).collect() }
    }

    /// For a report.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        if self.sync_delay.is_empty() {
            return Vec::new();
        }
        let delays: Vec<String> = self.sync_delay.iter().map(|d| format!("{d:?}")).collect();
        let (pause, period) = self.sync_pause;
        let jitter = ("sync jitter", format!("{:?}", self.sync_jitter));
        vec![("sync delay", delays.join(", ")), jitter, ("sync pause", format!("{pause:?} in {period:?}"))]
    }

    /// Sets the delay of all targets' syncs.
    pub fn set(&self, delay: Option<Duration>) -> Result<()> {
        let Some((delay, file)) = delay.zip(self.slow_disk.as_ref()) else { return Ok(()) };
        let numbers = [delay, self.sync_jitter, self.sync_pause.0, self.sync_pause.1];
        let bytes: Vec<u8> = numbers.iter().flat_map(|time| (time.as_nanos() as u64).to_le_bytes()).collect();
        let written = std::fs::OpenOptions::new().write(true).open(file).and_then(|f| f.write_all_at(&bytes, 0));
        written.map_err(|e| format!("{}: {e}", file.display()))
    }

    /// Measurements with a delay belong to a separate section.
    pub fn section(title: &str, delay: Option<Duration>) -> String {
        delay.map_or_else(|| title.to_owned(), |delay| format!("{title}, syncs of {delay:?}"))
    }

    /// Measures one client's commits on a target, and fails if they are faster than a sync.
    pub fn check(delay: Option<Duration>, target: &Target, index: usize, collector: &mut Collector) -> Result<()> {
        let Some(delay) = delay.filter(|_| target.protocol == Protocol::PostgreSql) else { return Ok(()) };
        let mut client = target.connect()?;
        target.execute(&mut client, "DROP TABLE IF EXISTS melba_lab_sync; CREATE TABLE melba_lab_sync (n int)")?;
        let mut times = Vec::new();
        for n in 0..COMMITS {
            let began = Instant::now();
            target.execute(&mut client, &format!("INSERT INTO melba_lab_sync VALUES ({n})"))?;
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        target.execute(&mut client, "DROP TABLE melba_lab_sync")?;
        let middle = median(&mut times);
        if middle < delay.as_secs_f64() * 1e3 {
            let name = &target.name;
            return Err(format!(
                "{name}: a commit takes {middle:.2} ms where a sync is to take {delay:?}: its disk is not slowed"
            ));
        }
        collector.add(Key::lower(SlowDisk::section("One client's commit", Some(delay)), "latency, median", "ms"), index, middle);
        Ok(())
    }
}

/// Commits whose median is taken.
const COMMITS: usize = 21;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("0.2ms"), Ok(Duration::from_micros(200)));
        assert_eq!(pause("1s/20s"), Ok((Duration::from_secs(1), Duration::from_secs(20))));
        assert!(time("5").is_err() && time("-1ms").is_err() && pause("1s").is_err());
    }

    #[test]
    fn delays_are_written_as_the_library_reads_them() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let options = SlowDisk {
            sync_delay: vec![Duration::from_millis(5)],
            sync_jitter: Duration::from_millis(1),
            sync_pause: (Duration::from_secs(1), Duration::from_secs(20)),
            slow_disk: Some(file.path().to_owned()),
        };
        options.set(options.delays()[0]).expect("writes");
        let bytes = std::fs::read(file.path()).expect("reads");
        let numbers: Vec<u64> = bytes.chunks(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight bytes"))).collect();
        assert_eq!(numbers, [5_000_000, 1_000_000, 1_000_000_000, 20_000_000_000]);
    }
}
