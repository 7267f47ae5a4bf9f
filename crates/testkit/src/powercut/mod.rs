//! Power cuts below a real server, judged: a journal of its file operations (written by the preloaded `crates/powercut`), the disks
//! that a cut at any place of it may leave, sessions whose transactions are known (`melba_workload`), and servers on those disks.

mod disk;
mod journal;
mod server;
mod sessions;

pub use disk::{Disk, Lie};
pub use journal::{EntryKind, Journal, JournalEntry};
pub use server::Server;
pub use sessions::{Client, Sessions};
