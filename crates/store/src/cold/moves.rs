//! Moves segments into stores and back, and removes objects that nobody needs.
//!
//! One thread at a time may call these functions, for files that it keeps from being removed. No lock is held while it waits for a
//! store.

use std::io;
use std::sync::Arc;

use melba_segment::ColdLayout;
use melba_types::TreeId;
use melba_vfs::{File, OF_OBJECT};

use super::stub::Stub;
use super::{
    Asking, ColdDirectory, ColdFailure, ColdPlace, ColdRequest, Content, NEW, gone_name, gone_number, other_bytes, store_of,
    stub_name,
};
use crate::error::EngineError;
use crate::ids::segment_name;

/// Bytes that are sent, read back or fetched at a time.
const PIECE_BYTES: u64 = 8 << 20;

impl ColdDirectory {
    /// Makes a local segment an object below `folder`; its readers read that from now on.
    ///
    /// The object is read back, and the stub is durable, before the local file is removed. After a failure the file is where it
    /// was, and an object that may be there is to be removed: by `sweep`, or by `remove_old_object` before the next attempt.
    pub fn move_out(&self, file: u64, folder: &str, layout: ColdLayout) -> io::Result<()> {
        if self.has_stub(file) {
            return self.move_again(file);
        }
        if self.old_object(file)?.is_some() {
            return Err(io::Error::other("an object that the segment had before was not removed"));
        }
        let local = self.inner.open_on_demand(&segment_name(file))?;
        let (bytes, (crc, part_crcs)) = (local.len()?, checksums(&*local, &layout.ends)?);
        let stub = Stub { url: self.new_url(file, folder)?, bytes, crc, layout, part_crcs };
        let intent = Stub { layout: ColdLayout::default(), part_crcs: Vec::new(), ..stub.clone() };
        self.write_stub(&gone_name(file), &intent, &*local)?;
        let mut read = |range: std::ops::Range<u64>| {
            let mut piece = vec![0; (range.end - range.start) as usize];
            local.read_at(&mut piece, range.start).map(|()| piece)
        };
        self.shared.objects()?.put(&stub.url, bytes, &mut read)?;
        self.check_object(&stub, &mut |_| Ok(()))?;
        self.write_stub(&stub_name(file), &stub, &*local)?;
        self.stubs.lock().insert(file, None);
        self.inner.remove(&gone_name(file))?;
        drop(local);
        self.go_cold(file)
    }

    /// A segment that is here, and an object too, goes when the object is still the same. Otherwise it gets a new one the next time.
    fn move_again(&self, file: u64) -> io::Result<()> {
        let local = self.inner.open_on_demand(&segment_name(file))?;
        let (stub, _) = Stub::read(&*self.inner.open_on_demand(&stub_name(file))?)?;
        if (local.len()?, checksums(&*local, &[])?.0) != (stub.bytes, stub.crc) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a segment differs from the stub beside it"));
        }
        drop(local);
        match self.check_object(&stub, &mut |_| Ok(())) {
            Ok(()) => self.go_cold(file),
            // Another failure says nothing of the object.
            Err(e) if e.kind() != OF_OBJECT => Err(e),
            Err(e) => self.give_up_object(file).and(Err(e)),
        }
    }

    /// The name of an object that no attempt had before: a store may do what it was asked for long after it was given up.
    fn new_url(&self, file: u64, folder: &str) -> io::Result<String> {
        let mut random = [0; 16];
        self.shared.stores()?.random.fill(&mut random)?;
        Ok(format!("{folder}{file:016x}-{:032x}.seg", u128::from_le_bytes(random)))
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

    /// Brings back files that merges need and that are not here. A failure is of the file's table.
    pub fn bring_wanted(&self, asking: &mut Asking<'_>, table_of: &dyn Fn(u64) -> Option<TreeId>) {
        let wanted: Vec<u64> = self.wanted.lock().keys().copied().collect();
        for file in wanted {
            let failures = asking.failures.len();
            match self.place(file) {
                Ok(ColdPlace::Cold { url, .. }) => {
                    asking.ask(ColdRequest::Read(&url), "bring a segment back", || self.bring_back(file));
                }
                Ok(_) => {}
                Err(e) => asking.failures.push(local("read what stands for a segment", e)),
            }
            asking.failures[failures..].iter_mut().for_each(|failure| failure.table = table_of(file));
        }
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

    /// Removes objects that no segment needs any more, and files that a crash left half written.
    pub fn sweep(&self, asking: &mut Asking<'_>) {
        if let Err(e) = self.try_sweep(asking) {
            asking.failures.push(local("look for objects to remove", e));
        }
    }

    fn try_sweep(&self, asking: &mut Asking<'_>) -> io::Result<()> {
        let names = self.inner.list()?;
        if names.iter().any(|name| gone_number(name).is_some()) {
            // A stub that became one of these must not come back after a crash: its object is gone then.
            self.inner.sync_names()?;
        }
        for name in names.iter().filter(|name| name.ends_with(NEW)) {
            self.inner.remove(name)?;
        }
        let mut gone = Vec::new();
        for file in names.iter().filter_map(|name| gone_number(name)) {
            match self.old_object(file) {
                Ok(url) => gone.extend(url.map(|url| (file, url))),
                Err(e) => asking.failures.push(local("read which object is to be removed", e)),
            }
        }
        // A store begins behind the object that it refused last, so that one that stays does not keep the others.
        let refused = self.refused.lock().clone();
        gone.sort_by_key(|(file, url)| (refused.get(store_of(url)).is_some_and(|last| file <= last), *file));
        for (file, url) in gone {
            let refuse = |_: &io::Error| {
                self.refused.lock().insert(store_of(&url).to_owned(), file);
            };
            asking.ask(ColdRequest::Remove(&url), "remove an object", || self.sweep_file(file, &url).inspect_err(refuse));
        }
        Ok(())
    }

    /// The URL of an object that a segment had, or may have, and that is to be removed.
    pub fn old_object(&self, file: u64) -> io::Result<Option<String>> {
        match self.inner.open_on_demand(&gone_name(file)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            found => Ok(Some(Stub::read(&*found?)?.0.url)),
        }
    }

    /// Removes what `old_object` says.
    pub fn remove_old_object(&self, file: u64) -> io::Result<()> {
        let Some(url) = self.old_object(file)? else { return Ok(()) };
        // As in `try_sweep`.
        self.inner.sync_names()?;
        self.sweep_file(file, &url)
    }

    /// Removes the object that a segment does not need any more.
    fn sweep_file(&self, file: u64, gone: &str) -> io::Result<()> {
        let is_needed = match self.place(file)? {
            ColdPlace::Local => false,
            ColdPlace::Both { url } | ColdPlace::Cold { url, .. } => *url == *gone,
        };
        if !is_needed {
            self.shared.objects()?.remove(gone)?;
        }
        self.inner.remove(&gone_name(file))
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
            let range = start..stub.bytes.min(start + PIECE_BYTES);
            let piece = self.shared.objects()?.get(&stub.url, range.clone())?;
            if piece.len() as u64 != range.end - range.start {
                return Err(other_bytes(&stub.url));
            }
            crc = crc32c::crc32c_append(crc, &piece);
            each(&piece)?;
        }
        if crc == stub.crc {
            return Ok(());
        }
        Err(other_bytes(&stub.url))
    }
}

fn local(doing: &'static str, error: io::Error) -> ColdFailure {
    ColdFailure::local(EngineError::io(doing, error))
}

/// Of a whole file, and of the parts of it that end at `ends`.
fn checksums(file: &dyn File, ends: &[u64]) -> io::Result<(u32, Vec<u32>)> {
    let bytes = file.len()?;
    let (mut crc, mut part_crcs, mut piece) = (0, Vec::with_capacity(ends.len()), Vec::new());
    let mut start = 0;
    for end in ends.iter().copied().filter(|end| *end < bytes).chain([bytes]) {
        let mut part_crc = 0;
        while start < end {
            piece.resize((end - start).min(PIECE_BYTES) as usize, 0);
            file.read_at(&mut piece, start)?;
            crc = crc32c::crc32c_append(crc, &piece);
            part_crc = crc32c::crc32c_append(part_crc, &piece);
            start += piece.len() as u64;
        }
        part_crcs.push(part_crc);
    }
    Ok((crc, part_crcs))
}
