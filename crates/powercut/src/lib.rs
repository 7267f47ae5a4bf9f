//! A library that is preloaded into a server (LD_PRELOAD) and intercepts its file operations.
//!
//! Operations of the process on files below one folder are written to a journal elsewhere, in order, so that afterwards every
//! state in which a power cut could have left the disk can be constructed (`melba_testkit::powercut`). A sync is recorded by its
//! begin and its end and does not reach the disk. One operation, or several in a row, can be made to fail.
//!
//! Environment:
//! - `POWERCUT_FOLDER`: the absolute path of the folder; without it the library does nothing.
//! - `POWERCUT_JOURNAL`: the journal, which must not lie in the folder.
//! - `POWERCUT_FAULT`: `OPERATION:FIRST:TIMES:ERRNO`: TIMES operations of this name (`fault::NAMES`), counted from 0, fail with
//!   this number; 0: a write takes half of its bytes and reports that, others are interrupted.
//!
//! Operations that are not recorded (writing through a mapping, links, O_SYNC) end the process when they are tried below the
//! folder. Writes by io_uring are not seen: database files must not be written that way.
//!
//! Invariant: an operation and its record are one atomic step among those of all threads, so that the journal's order is the disk's.

mod fault;
mod journal;
mod layer;
mod system;

use std::ffi::CStr;

use libc::{c_char, c_int, c_long, c_uint, c_void, iovec, mode_t, off_t, size_t, ssize_t};

use layer::Target;
use system::{refuse, system};

/// Defines functions under the names by which programs call the C library's.
macro_rules! interpose {
    ($(fn [$($name:ident),+] $arguments:tt -> $result:ty $body:block)+) => {
        $($(
            #[doc = "The C library's function of this name."]
            ///
            /// # Safety
            /// As for the C library's.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name $arguments -> $result $body
        )+)+
    };
}

/// A path of the caller's.
///
/// # Safety
/// `path` is a C string.
unsafe fn target_of_path<'a>(folder: c_int, path: *const c_char) -> Option<Target<'a>> {
    // SAFETY: the caller's promise.
    Target::of_path(folder, unsafe { CStr::from_ptr(path) }.to_bytes())
}

fn opened(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    let call = || system!(SYS_openat, folder, path, flags, mode);
    // SAFETY: the caller that opens a file passes a C string.
    match unsafe { target_of_path(folder, path) } {
        Some(target) => target.open(flags, call) as c_int,
        None => call() as c_int,
    }
}

fn renamed(old_folder: c_int, old: *const c_char, new_folder: c_int, new: *const c_char, flags: c_uint) -> c_int {
    let call = || system!(SYS_renameat2, old_folder, old, new_folder, new, flags);
    // SAFETY: the caller that renames a file passes two C strings.
    match unsafe { (target_of_path(old_folder, old), target_of_path(new_folder, new)) } {
        (None, None) => call() as c_int,
        (Some(old), Some(new)) if flags == 0 => old.rename(&new, call) as c_int,
        _ => refuse("a renaming into or out of the folder, or an exchange"),
    }
}

fn removed(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    let call = || system!(SYS_unlinkat, folder, path, flags);
    // SAFETY: the caller that removes a file passes a C string.
    match unsafe { target_of_path(folder, path) } {
        Some(_) if flags != 0 => refuse("the removal of a folder"),
        Some(target) => target.remove(call) as c_int,
        None => call() as c_int,
    }
}

fn synced(fd: c_int, call: impl FnOnce() -> c_long) -> c_int {
    Target::of_descriptor(fd).map_or_else(call, |target| target.sync()) as c_int
}

fn written(fd: c_int, data: *const c_void, bytes: size_t, at: Option<off_t>, call: impl Fn(size_t) -> c_long) -> ssize_t {
    let Some(target) = Target::of_descriptor(fd) else { return call(bytes) as ssize_t };
    // SAFETY: the caller that writes `bytes` bytes has them.
    let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) };
    target.write(fd, data, at, &call) as ssize_t
}

fn mapped(address: *mut c_void, bytes: size_t, protection: c_int, flags: c_int, fd: c_int, offset: off_t) -> *mut c_void {
    let shared = flags & libc::MAP_SHARED != 0 && protection & libc::PROT_WRITE != 0;
    if shared && fd >= 0 && Target::of_descriptor(fd).is_some() {
        refuse("writing through a mapping");
    }
    system!(SYS_mmap, address, bytes, protection, flags, fd, offset) as *mut c_void
}

/// Ends the process where a call that is not recorded is about a file below the folder.
fn refused_for(fd: c_int, what: &str) {
    if Target::of_descriptor(fd).is_some() {
        refuse(what);
    }
}

interpose! {
    fn [open, open64](path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
        opened(libc::AT_FDCWD, path, flags, mode)
    }
    fn [openat, openat64](folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
        opened(folder, path, flags, mode)
    }
    fn [creat, creat64](path: *const c_char, mode: c_uint) -> c_int {
        opened(libc::AT_FDCWD, path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode)
    }
    fn [write](fd: c_int, data: *const c_void, bytes: size_t) -> ssize_t {
        written(fd, data, bytes, None, |bytes| system!(SYS_write, fd, data, bytes))
    }
    fn [pwrite, pwrite64](fd: c_int, data: *const c_void, bytes: size_t, offset: off_t) -> ssize_t {
        written(fd, data, bytes, Some(offset), |bytes| system!(SYS_pwrite64, fd, data, bytes, offset))
    }
    fn [writev](fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
        refused_for(fd, "writev");
        system!(SYS_writev, fd, parts, count) as ssize_t
    }
    fn [pwritev, pwritev64](fd: c_int, parts: *const iovec, count: c_int, offset: off_t) -> ssize_t {
        refused_for(fd, "pwritev");
        system!(SYS_pwritev, fd, parts, count, offset, 0) as ssize_t
    }
    fn [copy_file_range](from: c_int, from_offset: *mut off_t, to: c_int, to_offset: *mut off_t, bytes: size_t, flags: c_uint) -> ssize_t {
        refused_for(to, "copy_file_range");
        system!(SYS_copy_file_range, from, from_offset, to, to_offset, bytes, flags) as ssize_t
    }
    fn [pread, pread64](fd: c_int, data: *mut c_void, bytes: size_t, offset: off_t) -> ssize_t {
        let call = || system!(SYS_pread64, fd, data, bytes, offset);
        Target::of_descriptor(fd).map_or_else(call, |target| target.unrecorded("read", call)) as ssize_t
    }
    fn [ftruncate, ftruncate64](fd: c_int, bytes: off_t) -> c_int {
        let call = || system!(SYS_ftruncate, fd, bytes);
        Target::of_descriptor(fd).map_or_else(call, |target| target.resize("length", fd, call)) as c_int
    }
    fn [fallocate, fallocate64](fd: c_int, mode: c_int, offset: off_t, bytes: off_t) -> c_int {
        let call = || system!(SYS_fallocate, fd, mode, offset, bytes);
        Target::of_descriptor(fd).map_or_else(call, |target| target.resize("allocate", fd, call)) as c_int
    }
    fn [sync_file_range](fd: c_int, offset: off_t, bytes: off_t, flags: c_uint) -> c_int {
        let call = || system!(SYS_sync_file_range, fd, offset, bytes, flags);
        Target::of_descriptor(fd).map_or_else(call, |target| target.unrecorded("write-back", call)) as c_int
    }
    fn [fsync](fd: c_int) -> c_int {
        synced(fd, || system!(SYS_fsync, fd))
    }
    fn [fdatasync](fd: c_int) -> c_int {
        synced(fd, || system!(SYS_fdatasync, fd))
    }
    fn [rename](old: *const c_char, new: *const c_char) -> c_int {
        renamed(libc::AT_FDCWD, old, libc::AT_FDCWD, new, 0)
    }
    fn [renameat](old_folder: c_int, old: *const c_char, new_folder: c_int, new: *const c_char) -> c_int {
        renamed(old_folder, old, new_folder, new, 0)
    }
    fn [renameat2](old_folder: c_int, old: *const c_char, new_folder: c_int, new: *const c_char, flags: c_uint) -> c_int {
        renamed(old_folder, old, new_folder, new, flags)
    }
    fn [unlink](path: *const c_char) -> c_int {
        removed(libc::AT_FDCWD, path, 0)
    }
    fn [unlinkat](folder: c_int, path: *const c_char, flags: c_int) -> c_int {
        removed(folder, path, flags)
    }
    fn [rmdir](path: *const c_char) -> c_int {
        removed(libc::AT_FDCWD, path, libc::AT_REMOVEDIR)
    }
    fn [mkdir](path: *const c_char, mode: mode_t) -> c_int {
        let call = || system!(SYS_mkdirat, libc::AT_FDCWD, path, mode);
        // SAFETY: the caller that creates a folder passes a C string.
        match unsafe { target_of_path(libc::AT_FDCWD, path) } {
            Some(target) => target.make_folder(call) as c_int,
            None => call() as c_int,
        }
    }
    fn [link](old: *const c_char, new: *const c_char) -> c_int {
        // SAFETY: the caller that links files passes two C strings.
        if unsafe { target_of_path(libc::AT_FDCWD, new) }.is_some() {
            refuse("a link");
        }
        system!(SYS_linkat, libc::AT_FDCWD, old, libc::AT_FDCWD, new, 0) as c_int
    }
    fn [mmap, mmap64](address: *mut c_void, bytes: size_t, protection: c_int, flags: c_int, fd: c_int, offset: off_t) -> *mut c_void {
        mapped(address, bytes, protection, flags, fd, offset)
    }
}
