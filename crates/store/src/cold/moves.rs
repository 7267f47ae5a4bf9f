//! Moves segments into stores and back, and removes objects that nobody needs.
//!
//! One thread at a time may call these functions, for files that it keeps from being removed. No lock is held while it waits for a
//! store.

use std::io;
use std::sync::Arc;

use melba_segment::ColdLayout;
use melba_vfs::File;

use super::stub::Stub;
use super::{ColdDirectory, ColdPlace, Content, NEW, gone_name, gone_number, stub_name};
use crate::ids::segment_name;

/// Bytes that are sent, read back or fetched at a time.
const PIECE_BYTES: u64 = 8 << 20;

impl ColdDirectory {
    /// Makes a local segment an object; its readers read that from now on.
    ///
    /// The object is read back, and the stub is durable, before the local file is removed. After a failure the file is where it
    /// was, and an object that may be there is removed by `sweep`.
    pub fn move_out(&self, file: u64, url: &str, layout: ColdLayout) -> io::Result<()> {
        let local = self.inner.open_on_demand(&segment_name(file))?;
        let (bytes, crc) = (local.len()?, checksum(&*local)?);
        let has_stub = self.has_stub(file);
        let stub = match has_stub {
            true => Stub::read(&*self.inner.open_on_demand(&stub_name(file))?)?.0,
            false => Stub { url: url.to_owned(), bytes, crc, layout },
        };
        if (stub.bytes, stub.crc) != (bytes, crc) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a segment differs from the stub beside it"));
        }
        if !has_stub {
            // One in another store, say, that the segment had before.
            self.sweep_file(file)?;
            let intent = Stub { layout: ColdLayout::default(), ..stub.clone() };
            self.write_stub(&gone_name(file), &intent, &*local)?;
        }
        let mut read = |range: std::ops::Range<u64>| {
            let mut piece = vec![0; (range.end - range.start) as usize];
            local.read_at(&mut piece, range.start).map(|()| piece)
        };
        self.shared.objects()?.put(&stub.url, bytes, &mut read)?;
        self.check_object(&stub, &mut |_| Ok(()))?;
        if !has_stub {
            self.write_stub(&stub_name(file), &stub, &*local)?;
            self.stubs.lock().insert(file, None);
            self.inner.remove(&gone_name(file))?;
        }
        drop(local);
        self.go_cold(file)
    }

    /// Readers read the object from now on; then the local file is removed.
    fn go_cold(&self, file: u64) -> io::Result<()> {
        let name = segment_name(file);
        // Until the file is gone, so that nobody opens it meanwhile.
        let places = self.places.lock();
        if self.pinned.lock().contains(&file) {
            // A merge waits for no store. The file moves when it is looked at again.
            return Ok(());
        }
        let cold = Arc::new(self.open_cold(file)?);
        if let Some(place) = places.get(&name).and_then(std::sync::Weak::upgrade) {
            *place.content.write() = Content::Cold(cold);
        }
        self.inner.remove(&name)?;
        drop(places);
        self.inner.sync_names()
    }

    /// Makes a segment local again; the object stays.
    pub fn bring_back(&self, file: u64) -> io::Result<()> {
        let name = segment_name(file);
        let new_name = format!("{name}{NEW}");
        let (stub, _) = Stub::read(&*self.inner.open_on_demand(&stub_name(file))?)?;
        let _ = self.inner.remove(&new_name);
        let new = self.inner.create(&new_name)?;
        let mut at = 0;
        let mut write = |piece: &[u8]| {
            new.write_at(piece, at)?;
            at += piece.len() as u64;
            Ok(())
        };
        let written = self.check_object(&stub, &mut write).and_then(|()| new.sync());
        if let Err(e) = written {
            let _ = self.inner.remove(&new_name);
            return Err(e);
        }
        drop(new);
        self.inner.rename(&new_name, &name)?;
        self.inner.sync_names()?;
        let places = self.places.lock();
        let local = self.inner.open_on_demand(&name)?;
        if let Some(place) = places.get(&name).and_then(std::sync::Weak::upgrade) {
            *place.content.write() = Content::Local(local);
        }
        drop(places);
        self.shared.cache.forget_file(file);
        Ok(())
    }

    /// The object of a segment that is local again is not needed any more.
    pub fn give_up_object(&self, file: u64) -> io::Result<()> {
        if !self.has_local(file)? {
            return Err(io::Error::other("a segment that is an object only needs it"));
        }
        self.inner.rename(&stub_name(file), &gone_name(file))?;
        self.stubs.lock().remove(&file);
        self.wanted.lock().remove(&file);
        Ok(())
    }

    /// Files that merges need and that are not here.
    pub fn wanted(&self) -> Vec<u64> {
        let wanted: Vec<u64> = self.wanted.lock().keys().copied().collect();
        wanted.into_iter().filter(|file| self.is_cold(*file)).collect()
    }

    /// Whether a merge asked for a file of late, which then stays; `now` and `patience` in microseconds.
    pub fn is_wanted(&self, file: u64, now: i64, patience: i64) -> bool {
        let mut wanted = self.wanted.lock();
        let Some(since) = wanted.get_mut(&file) else { return false };
        if *since == 0 {
            *since = now;
        }
        let is_wanted = now - *since < patience;
        if !is_wanted {
            wanted.remove(&file);
        }
        is_wanted
    }

    /// Removes objects that no segment needs any more, and files that a crash left half written; returns the first failure.
    pub fn sweep(&self) -> io::Result<()> {
        let names = self.inner.list()?;
        let mut result = Ok(());
        if names.iter().any(|name| gone_number(name).is_some()) {
            // A stub that became one of these must not come back after a crash: its object is gone then.
            self.inner.sync_names()?;
        }
        for name in names {
            if name.ends_with(NEW) {
                self.inner.remove(&name)?;
            } else if let Some(file) = gone_number(&name) {
                result = result.and(self.sweep_file(file));
            }
        }
        result
    }

    /// Removes the object that a segment does not need any more, if it has such a one.
    fn sweep_file(&self, file: u64) -> io::Result<()> {
        let name = gone_name(file);
        let found = match self.inner.open_on_demand(&name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        let (gone, _) = Stub::read(&*found)?;
        let is_needed = match self.place(file)? {
            ColdPlace::Local => false,
            ColdPlace::Both { url } | ColdPlace::Cold { url, .. } => *url == *gone.url,
        };
        if !is_needed {
            self.shared.objects()?.remove(&gone.url)?;
        }
        self.inner.remove(&name)
    }

    /// Writes a stub so that it is whole and durable under its name.
    fn write_stub(&self, name: &str, stub: &Stub, segment: &dyn File) -> io::Result<()> {
        let new_name = format!("{name}{NEW}");
        let _ = self.inner.remove(&new_name);
        let new = self.inner.create(&new_name)?;
        if let Err(e) = stub.write(&*new, segment) {
            let _ = self.inner.remove(&new_name);
            return Err(e);
        }
        drop(new);
        self.inner.rename(&new_name, name)?;
        self.inner.sync_names()
    }

    /// Reads a whole object; an error when it is not the segment's file.
    fn check_object(&self, stub: &Stub, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut crc = 0;
        for start in (0..stub.bytes).step_by(PIECE_BYTES as usize) {
            let piece = self.shared.get(&stub.url, start..stub.bytes.min(start + PIECE_BYTES))?;
            crc = crc32c::crc32c_append(crc, &piece);
            each(&piece)?;
        }
        if crc == stub.crc {
            return Ok(());
        }
        Err(io::Error::other(format!("the object \"{}\" is not the segment that was written to it", stub.url)))
    }
}

/// Of a whole file.
fn checksum(file: &dyn File) -> io::Result<u32> {
    let (bytes, mut crc) = (file.len()?, 0);
    let mut piece = Vec::new();
    for start in (0..bytes).step_by(PIECE_BYTES as usize) {
        piece.resize((bytes - start).min(PIECE_BYTES) as usize, 0);
        file.read_at(&mut piece, start)?;
        crc = crc32c::crc32c_append(crc, &piece);
    }
    Ok(crc)
}
