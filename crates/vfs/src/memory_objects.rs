//! A store of objects in memory that fails as it is told.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use parking_lot::Mutex;

use crate::Objects;

/// How a store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// It answers nothing but errors.
    Refuses,
    /// It writes half of each object, and says that all is well.
    WritesHalf,
    /// It writes each object and loses the answer.
    LosesAnswers,
}

#[derive(Default)]
struct StoreState {
    objects: BTreeMap<String, Vec<u8>>,
    fault: Option<StoreFault>,
    gets: u64,
}

/// See the module.
#[derive(Default)]
pub struct MemoryObjects(Mutex<StoreState>);

impl MemoryObjects {
    /// Fails so from now on; `None`: not at all.
    pub fn set_fault(&self, fault: Option<StoreFault>) {
        self.0.lock().fault = fault;
    }

    /// Ranges that were asked for so far.
    pub fn gets(&self) -> u64 {
        self.0.lock().gets
    }

    pub fn urls(&self) -> Vec<String> {
        self.0.lock().objects.keys().cloned().collect()
    }

    /// Changes objects behind their users' backs.
    pub fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Vec<u8>>)) {
        change(&mut self.0.lock().objects);
    }
}

impl StoreState {
    fn answer(&self) -> io::Result<()> {
        if self.fault == Some(StoreFault::Refuses) { Err(io::Error::other("the store does not answer")) } else { Ok(()) }
    }
}

impl Objects for MemoryObjects {
    fn put(&self, url: &str, bytes: u64, read: &mut dyn FnMut(Range<u64>) -> io::Result<Vec<u8>>) -> io::Result<()> {
        let mut content = read(0..bytes)?;
        let mut state = self.0.lock();
        state.answer()?;
        if state.fault == Some(StoreFault::WritesHalf) {
            content.truncate(content.len() / 2);
        }
        state.objects.insert(url.to_owned(), content);
        if state.fault == Some(StoreFault::LosesAnswers) { Err(io::Error::other("no answer")) } else { Ok(()) }
    }

    fn get(&self, url: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut state = self.0.lock();
        state.gets += 1;
        state.answer()?;
        let object = state.objects.get(url).ok_or_else(|| io::Error::other("there is no such object"))?;
        let end = range.end.min(object.len() as u64);
        Ok(object[range.start.min(end) as usize..end as usize].to_vec())
    }

    fn remove(&self, url: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.answer()?;
        state.objects.remove(url);
        Ok(())
    }
}
