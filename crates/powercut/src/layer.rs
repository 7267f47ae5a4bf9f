//! The treatment of an operation on a file below the folder: it may fail on purpose, it happens, and it is recorded.

use std::borrow::Cow;
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libc::{c_int, c_long, off_t, size_t};

use crate::fault::Fault;
use crate::journal::{Kind, append};
use crate::system::{refuse, system};

/// A sync takes up to this many microseconds, so that others begin meanwhile.
const SYNC_MICROS_MAX: u64 = 2000;

struct Layer {
    /// Its path, without a slash at the end.
    folder: Vec<u8>,
    journal: c_int,
    fault: Option<Fault>,
    /// Held through an operation and its record.
    order: Mutex<()>,
    syncs: AtomicU64,
}

static LAYER: OnceLock<Option<Layer>> = OnceLock::new();

fn layer() -> Option<&'static Layer> {
    let open = || {
        let folder = std::env::var_os("POWERCUT_FOLDER")?.into_vec();
        let journal = CString::new(std::env::var_os("POWERCUT_JOURNAL")?.into_vec()).ok()?;
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
        let journal = system!(SYS_openat, libc::AT_FDCWD, journal.as_ptr(), flags, 0o600) as c_int;
        if journal < 0 {
            refuse("a journal that cannot be opened");
        }
        let fault = match std::env::var("POWERCUT_FAULT") {
            Ok(text) => Some(Fault::parse(&text).unwrap_or_else(|| refuse("POWERCUT_FAULT"))),
            Err(_) => None,
        };
        Some(Layer { folder, journal, fault, order: Mutex::new(()), syncs: AtomicU64::new(0) })
    };
    LAYER.get_or_init(open).as_ref()
}

/// Sets errno; returns the result of a failed call.
fn failed(errno: c_int) -> c_long {
    // SAFETY: the address of this thread's errno.
    unsafe { *libc::__errno_location() = errno };
    -1
}

fn errno_of(fault: c_int) -> c_int {
    if fault == 0 { libc::EINTR } else { fault }
}

/// The file of an open descriptor.
fn link_of(fd: c_int) -> Option<Vec<u8>> {
    let name = format!("/proc/self/fd/{fd}\0");
    let mut buffer = vec![0; 1024];
    let length = system!(SYS_readlinkat, libc::AT_FDCWD, name.as_ptr(), buffer.as_mut_ptr(), buffer.len());
    buffer.truncate(usize::try_from(length).ok()?);
    Some(buffer)
}

/// A file or folder below the folder.
pub struct Target<'a> {
    layer: &'static Layer,
    path: Cow<'a, [u8]>,
}

impl<'a> Target<'a> {
    fn below(layer: &'static Layer, path: Cow<'a, [u8]>) -> Option<Target<'a>> {
        let rest = path.strip_prefix(layer.folder.as_slice())?;
        let rest = if rest.is_empty() { rest } else { rest.strip_prefix(b"/")? };
        let rest = rest.strip_suffix(b"/").unwrap_or(rest).to_vec();
        Some(Target { layer, path: rest.into() })
    }

    pub fn of_path(folder: c_int, path: &'a [u8]) -> Option<Target<'a>> {
        let layer = layer()?;
        if path.starts_with(b"/") || folder == libc::AT_FDCWD {
            return Target::below(layer, path.into());
        }
        let mut whole = link_of(folder)?;
        whole.push(b'/');
        whole.extend(path);
        Target::below(layer, whole.into())
    }

    /// `None` also for a file without a name: nothing of it comes back.
    pub fn of_descriptor(fd: c_int) -> Option<Target<'a>> {
        let layer = layer()?;
        let path = link_of(fd)?;
        if path.ends_with(b" (deleted)") { None } else { Target::below(layer, path.into()) }
    }

    fn strikes(&self, name: &str) -> Option<c_int> {
        self.layer.fault.as_ref()?.strikes(name)
    }

    fn in_order(&self) -> MutexGuard<'static, ()> {
        self.layer.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, kind: Kind, number: u64, data: &[u8]) {
        append(self.layer.journal, kind, [&self.path, b""], number, data);
    }

    pub fn open(&self, flags: c_int, call: impl FnOnce() -> c_long) -> c_long {
        if flags & (libc::O_DSYNC | libc::O_SYNC) != 0 {
            refuse("O_SYNC");
        }
        if let Some(fault) = self.strikes("open") {
            return failed(errno_of(fault));
        }
        if flags & (libc::O_CREAT | libc::O_TRUNC) == 0 {
            return call();
        }
        let _order = self.in_order();
        let path = [self.layer.folder.as_slice(), b"/", &self.path, b"\0"].concat();
        let was_there = system!(SYS_faccessat, libc::AT_FDCWD, path.as_ptr(), libc::F_OK) == 0;
        let result = call();
        if result >= 0 && !was_there {
            self.record(Kind::Create, 0, b"");
        } else if result >= 0 && flags & libc::O_TRUNC != 0 {
            self.record(Kind::SetLength, 0, b"");
        }
        result
    }

    /// A write by `call`, which is told how many bytes; `at`: not at the descriptor's place.
    pub fn write(&self, fd: c_int, data: &[u8], at: Option<off_t>, call: &dyn Fn(size_t) -> c_long) -> c_long {
        let _order = self.in_order();
        let fault = self.strikes("write");
        let taken = call(if fault.is_some() { data.len() / 2 } else { data.len() });
        if taken > 0 {
            let end = || system!(SYS_lseek, fd, 0, libc::SEEK_CUR);
            let offset = at.map_or_else(|| end() - taken, |at| at as c_long) as u64;
            self.record(Kind::Write, offset, &data[..taken as usize]);
        }
        match fault {
            None => taken,
            Some(0) if taken > 0 => taken,
            Some(fault) => failed(errno_of(fault)),
        }
    }

    /// A call that changes the file's length, or may do so.
    pub fn resize(&self, name: &str, fd: c_int, call: impl FnOnce() -> c_long) -> c_long {
        let _order = self.in_order();
        if let Some(fault) = self.strikes(name) {
            return failed(errno_of(fault));
        }
        let length = || system!(SYS_lseek, fd, 0, libc::SEEK_END) as u64;
        let (place, before) = (system!(SYS_lseek, fd, 0, libc::SEEK_CUR), length());
        let result = call();
        if result >= 0 && length() != before {
            self.record(Kind::SetLength, length(), b"");
        }
        system!(SYS_lseek, fd, place, libc::SEEK_SET);
        result
    }

    /// Recorded only: whether it has reached the disk is decided afterwards.
    pub fn sync(&self) -> c_long {
        let number = self.layer.syncs.fetch_add(1, Ordering::Relaxed);
        let fault = self.strikes("sync");
        let recorded = |kind| {
            let _order = self.in_order();
            self.record(kind, number, b"");
        };
        recorded(Kind::SyncBegin);
        std::thread::sleep(std::time::Duration::from_micros(number.wrapping_mul(0x9e37_79b9) % SYNC_MICROS_MAX));
        recorded(if fault.is_some() { Kind::SyncFailed } else { Kind::SyncEnd });
        fault.map_or(0, |fault| failed(errno_of(fault)))
    }

    pub fn rename(&self, to: &Target<'_>, call: impl FnOnce() -> c_long) -> c_long {
        let _order = self.in_order();
        if let Some(fault) = self.strikes("rename") {
            return failed(errno_of(fault));
        }
        let result = call();
        if result >= 0 {
            append(self.layer.journal, Kind::Rename, [&self.path, &to.path], 0, b"");
        }
        result
    }

    pub fn remove(&self, call: impl FnOnce() -> c_long) -> c_long {
        self.change_name("remove", Kind::Remove, call)
    }

    pub fn make_folder(&self, call: impl FnOnce() -> c_long) -> c_long {
        self.change_name("open", Kind::MakeFolder, call)
    }

    fn change_name(&self, name: &str, kind: Kind, call: impl FnOnce() -> c_long) -> c_long {
        let _order = self.in_order();
        if let Some(fault) = self.strikes(name) {
            return failed(errno_of(fault));
        }
        let result = call();
        if result >= 0 {
            self.record(kind, 0, b"");
        }
        result
    }

    /// A call that leaves the disk unchanged.
    pub fn unrecorded(&self, name: &str, call: impl FnOnce() -> c_long) -> c_long {
        self.strikes(name).map_or_else(call, |fault| failed(errno_of(fault)))
    }
}
