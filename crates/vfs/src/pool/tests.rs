use std::sync::atomic::AtomicUsize;

use super::*;
use crate::{MemoryDirectory, OsDirectory};

/// Counts the open handles, and allows no more than `limit`.
struct Limited {
    inner: Arc<dyn Directory>,
    open: Arc<AtomicUsize>,
    limit: usize,
}

struct Counted {
    inner: Arc<dyn File>,
    open: Arc<AtomicUsize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl File for Counted {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_at(buffer, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(data, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }
    fn write_back(&self, offset: u64, len: u64) -> io::Result<()> {
        self.inner.write_back(offset, len)
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.inner.allocate(len)
    }
}

impl Limited {
    fn counted(&self, open: impl FnOnce() -> io::Result<Arc<dyn File>>) -> io::Result<Arc<dyn File>> {
        if self.open.load(Ordering::SeqCst) >= self.limit {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let inner = open()?;
        self.open.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(Counted { inner, open: Arc::clone(&self.open) }))
    }
}

impl Directory for Limited {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.counted(|| self.inner.create(name))
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.counted(|| self.inner.open(name))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }
    fn sync_names(&self) -> io::Result<()> {
        self.inner.sync_names()
    }
    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Directory>> {
        self.inner.subdirectory(name)
    }
    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.inner.lock(name)
    }
}

fn name(i: usize) -> String {
    format!("f{i}")
}

/// A pool over a system that allows `limit` handles, and `files` files with their number in them.
fn folder(handles_max: usize, limit: usize, files: usize) -> (PooledDirectory, Arc<AtomicUsize>) {
    let open = Arc::new(AtomicUsize::new(0));
    let inner = Arc::new(Limited { inner: MemoryDirectory::new(), open: Arc::clone(&open), limit });
    let pooled = PooledDirectory::new(inner, handles_max);
    for i in 0..files {
        pooled.create(&name(i)).and_then(|f| f.write_at(&[i as u8], 0)).expect("writes");
    }
    (pooled, open)
}

fn content(file: &dyn File) -> u8 {
    let mut byte = [0];
    file.read_at(&mut byte, 0).expect("reads");
    byte[0]
}

#[test]
fn many_files_share_few_handles() {
    let (pooled, open) = folder(5, 100, 40);
    let files: Vec<_> = (0..40).map(|i| pooled.open_on_demand(&name(i)).expect("opens")).collect();
    for round in 0..3 {
        for (i, file) in files.iter().enumerate() {
            assert_eq!(content(&**file), i as u8, "round {round}");
            assert!(open.load(Ordering::SeqCst) <= 5);
        }
    }
    drop(files);
    assert_eq!(open.load(Ordering::SeqCst), 0, "handles go with their files");
    assert!(pooled.open_on_demand("no such file").is_err());
    assert_eq!(pooled.pool.state.lock().open, 0);
}

#[test]
fn recently_used_files_are_closed_last() {
    let (pooled, _) = folder(4, 100, 6);
    let files: Vec<_> = (0..4).map(|i| pooled.open_on_demand(&name(i)).expect("opens")).collect();
    content(&*files[0]);
    content(&*files[2]);
    // A file without a name can be read only through a handle that stays open.
    (0..4).for_each(|i| pooled.remove(&name(i)).expect("removes"));
    let _more = [4, 5].map(|i| pooled.open_on_demand(&name(i)).expect("opens"));
    assert_eq!((content(&*files[0]), content(&*files[2])), (0, 2));
    assert!([1, 3].iter().all(|i| files[*i].len().is_err()));
}

#[test]
fn handles_make_room_for_other_files() {
    let (pooled, open) = folder(100, 10, 9);
    let pooled_files: Vec<_> = (0..9).map(|i| pooled.open_on_demand(&name(i)).expect("opens")).collect();
    assert_eq!(open.load(Ordering::SeqCst), 9);
    let mine: Vec<_> = (0..9).map(|i| pooled.create(&format!("mine{i}")).expect("room is made")).collect();
    pooled_files.iter().enumerate().for_each(|(i, f)| assert_eq!(content(&**f), i as u8));
    let last = pooled.open("mine0").expect("room is made");
    let refused = pooled.open("mine1").map(drop).expect_err("nothing is left to close");
    assert_eq!(refused.raw_os_error(), Some(libc::EMFILE));
    drop((last, mine));
    assert_eq!(content(&*pooled_files[3]), 3);
}

#[test]
fn threads_share_a_pool() {
    let (pooled, open) = folder(3, 1000, 16);
    let files: Vec<_> = (0..16).map(|i| pooled.open_on_demand(&name(i)).expect("opens")).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let files = &files;
            scope.spawn(move || {
                (0..2000).for_each(|i| assert_eq!(content(&*files[(i * 7 + thread) % 16]), ((i * 7 + thread) % 16) as u8))
            });
        }
    });
    drop(files);
    assert_eq!((open.load(Ordering::SeqCst), pooled.pool.state.lock().open), (0, 0));
}

#[test]
fn a_folder_of_the_system_is_synced_without_another_handle() {
    let folder = tempfile::tempdir().expect("a folder");
    let d = PooledDirectory::new(Arc::new(OsDirectory::open(folder.path()).expect("opens")), 4);
    d.create("a").and_then(|f| f.write_at(b"a", 0)).expect("writes");
    d.sync_names().expect("syncs");
    assert_eq!(content(&*d.open_on_demand("a").expect("opens")), b'a');
}
