//! A store of objects in memory that fails as it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;

use parking_lot::Mutex;

use crate::{OF_OBJECT, Objects};

/// How a store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// It answers nothing but errors.
    Refuses,
    /// It writes half of each object, and says that all is well.
    WritesHalf,
    /// It writes each object and loses the answer.
    LosesAnswers,
    /// It changes a byte of its next answers, so many.
    Garbles(u32),
}

#[derive(Default)]
struct StoreState {
    objects: BTreeMap<String, Vec<u8>>,
    /// All that were ever written.
    written: BTreeSet<String>,
    fault: Option<StoreFault>,
    locked: Option<String>,
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

    /// Refuses from now on to remove objects whose URLs begin so.
    pub fn lock(&self, locked: Option<&str>) {
        self.0.lock().locked = locked.map(str::to_owned);
    }

    /// Ranges that were asked for so far.
    pub fn gets(&self) -> u64 {
        self.0.lock().gets
    }

    /// The URLs of all objects that were ever written.
    pub fn written(&self) -> Vec<String> {
        self.0.lock().written.iter().cloned().collect()
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
        if !state.written.insert(url.to_owned()) {
            return Err(io::Error::other("there was such an object already"));
        }
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
        let object = state.objects.get(url).ok_or_else(|| io::Error::new(OF_OBJECT, "there is no such object"))?;
        let end = range.end.min(object.len() as u64);
        let mut answer = object[range.start.min(end) as usize..end as usize].to_vec();
        if let Some(StoreFault::Garbles(times)) = state.fault {
            if let Some(byte) = answer.last_mut() {
                *byte ^= 1;
            }
            state.fault = (times > 1).then_some(StoreFault::Garbles(times - 1));
        }
        Ok(answer)
    }

    fn remove(&self, url: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.answer()?;
        if state.locked.as_ref().is_some_and(|locked| url.starts_with(locked.as_str())) {
            return Err(io::Error::other("the object is locked"));
        }
        state.objects.remove(url);
        Ok(())
    }
}
