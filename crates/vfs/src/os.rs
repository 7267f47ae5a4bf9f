//! The operating system's files, clock and randomness.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::counts::timed;
use crate::{Clock, Directory, File, Random};

/// How far back `write_back` waits.
const WRITE_BACK_WINDOW: u64 = 8 << 20;

/// A file descriptor.
struct OsFile(fs::File);

impl File for OsFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        timed(|| self.0.read_exact_at(buffer, offset))
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        timed(|| self.0.write_all_at(data, offset))
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn write_back(&self, offset: u64, len: u64) -> io::Result<()> {
        let before = offset.saturating_sub(WRITE_BACK_WINDOW);
        let ranges = [
            (offset, len, libc::SYNC_FILE_RANGE_WRITE),
            (
                before,
                offset - before,
                libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER,
            ),
        ];
        for (from, bytes, flags) in ranges.into_iter().filter(|(_, bytes, _)| *bytes > 0) {
            // SAFETY: the descriptor is open for as long as `self` lives; sync_file_range touches no memory of ours.
            let result =
                unsafe { libc::sync_file_range(self.0.as_raw_fd(), from as libc::off64_t, bytes as libc::off64_t, flags) };
            if result != 0 {
                let error = io::Error::last_os_error();
                // A file system without it only loses the optimisation; a failed write must be heard of, for it may not be told again.
                let unsupported = [libc::ENOSYS, libc::EINVAL, libc::ESPIPE, libc::EOPNOTSUPP];
                return if error.raw_os_error().is_some_and(|e| unsupported.contains(&e)) { Ok(()) } else { Err(error) };
            }
        }
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        // SAFETY: the descriptor is open for as long as `self` lives; fallocate touches no memory of ours.
        let result = unsafe { libc::fallocate(self.0.as_raw_fd(), 0, 0, len as libc::off_t) };
        // A file system without fallocate only loses the optimisation; a full disk must be heard of.
        match result {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                e if e.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
                e => Err(e),
            },
        }
    }
}

/// A folder of the operating system's file system.
pub struct OsDirectory {
    path: PathBuf,
    /// Kept open: names must be syncable when no further file may be opened.
    folder: fs::File,
}

impl OsDirectory {
    /// The folder at `path`, created when missing.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<OsDirectory> {
        let path = path.into();
        fs::create_dir_all(&path)?;
        let folder = fs::File::open(&path)?;
        Ok(OsDirectory { path, folder })
    }
}

impl Directory for OsDirectory {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(self.path.join(name))?;
        Ok(Arc::new(OsFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(true).open(self.path.join(name))?;
        Ok(Arc::new(OsFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn modified(&self, name: &str) -> io::Result<i64> {
        Ok(micros(fs::metadata(self.path.join(name))?.modified()?))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.folder.sync_all()
    }

    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Directory>> {
        Ok(Arc::new(OsDirectory::open(self.path.join(name))?))
    }

    fn existing_subdirectory(&self, name: &str) -> io::Result<Option<Arc<dyn Directory>>> {
        if self.path.join(name).is_dir() { self.subdirectory(name).map(Some) } else { Ok(None) }
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(self.path.join(name))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(fs::TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(fs::TryLockError::Error(e)) => Err(e),
        }
    }
}

/// Lets this process have as many files open as the system allows it at most; returns how many that is.
pub fn raise_open_files_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls only read and write the struct that they are given.
    let result = unsafe {
        match libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) {
            0 => {
                limit.rlim_cur = limit.rlim_max;
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit)
            }
            failed => failed,
        }
    };
    if result == 0 { Ok(limit.rlim_max) } else { Err(io::Error::last_os_error()) }
}

/// The operating system's clocks.
pub struct OsClock {
    start: Instant,
}

impl OsClock {
    pub fn new() -> OsClock {
        OsClock { start: Instant::now() }
    }
}

impl Default for OsClock {
    fn default() -> Self {
        OsClock::new()
    }
}

/// Seconds from 1970-01-01 to 2000-01-01.
const POSTGRES_EPOCH_SECONDS: i64 = 946_684_800;

/// Since PostgreSQL's epoch.
fn micros(time: SystemTime) -> i64 {
    let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since_1970.as_micros() as i64 - POSTGRES_EPOCH_SECONDS * 1_000_000
}

impl Clock for OsClock {
    fn now_micros(&self) -> i64 {
        micros(SystemTime::now())
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn thread_cpu(&self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a local that lives through the call.
        let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) } != 0;
        (!failed).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}

/// The operating system's random source.
pub struct OsRandom;

impl Random for OsRandom {
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        if self.fill(&mut bytes).is_err() {
            // Without a random source, only the time is left: secrets are drawn by `fill`.
            return SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        }
        u64::from_le_bytes(bytes)
    }

    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(io::Error::from)
    }
}
