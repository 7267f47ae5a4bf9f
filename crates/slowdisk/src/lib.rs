//! A library that is preloaded into a server (LD_PRELOAD), Melba, PostgreSQL or MySQL alike, and makes its disk as slow as those of
//! rented machines: every fsync, fdatasync, syncfs, msync that waits, and every write that is synchronous by itself (O_SYNC, O_DSYNC,
//! RWF_SYNC, RWF_DSYNC) takes a given time at least. The call happens first; the thread then sleeps for the missing time.
//!
//! The time is read, at each call, from the file that `SLOWDISK` names, so that it can be changed while the server runs (`melba
//! lab --sync-delay`). Without the variable the library does nothing; a file that cannot be used ends the process. Four numbers,
//! little-endian, in nanoseconds:
//!
//! ```text
//! delay: u64 | jitter: u64 | pause: u64 | period: u64
//! ```
//!
//! A call takes `delay` and a random part of `jitter`. In each period of the machine's monotonic clock the disk stands still for the
//! time `pause`, for all processes at once: a call that would end within it ends with it. All zero: nothing is slowed.
//!
//! Not seen: writes and syncs by io_uring or by the kernel's asynchronous calls.

mod delay;
mod interpose;
