//! The file that stays in place of a segment whose own file is an object of a store.
//!
//! ```text
//! stub     magic 8 | version u32 | length of the header u32 | crc32c of the header u32 | header | kept bytes, end to end
//! header   bytes of the segment u64 | crc32c of the segment u32 | URL: length u32, bytes
//!          | kept u32 | (start u64, end u64) ... | parts u32 | (end u64, crc32c u32) ...
//! ```
//!
//! Numbers are little-endian. Kept bytes are parts of the segment, which has checksums of its own.
//!
//! Invariants:
//! 1. A stub is written under another name, synced, and renamed: under its own name it is whole.
//! 2. Bytes that are no stub are an error of kind `InvalidData`: damage to its tree, and to nothing else.

use std::io;
use std::ops::Range;

use melba_segment::ColdLayout;
use melba_types::bytes::{ByteReader, put_u64};
use melba_vfs::File;

/// Version of the format.
pub const STUB_VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"MELBCOLD";
const PREFIX_BYTES: usize = 20;
/// Bytes of the segment that are copied at a time.
const COPY_BYTES: u64 = 1 << 20;

/// What a stub says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stub {
    /// Where the object is.
    pub url: String,
    /// Of the segment's file.
    pub bytes: u64,
    /// Of the segment's file.
    pub crc: u32,
    pub layout: ColdLayout,
    /// Of the parts, in order.
    pub part_crcs: Vec<u32>,
}

fn put_u32(n: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&n.to_le_bytes());
}

impl Stub {
    fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_u64(self.bytes, &mut out);
        put_u32(self.crc, &mut out);
        put_u32(self.url.len() as u32, &mut out);
        out.extend_from_slice(self.url.as_bytes());
        put_u32(self.layout.kept.len() as u32, &mut out);
        self.layout.kept.iter().flat_map(|range| [range.start, range.end]).for_each(|n| put_u64(n, &mut out));
        put_u32(self.layout.ends.len() as u32, &mut out);
        for (end, crc) in self.layout.ends.iter().zip(&self.part_crcs) {
            put_u64(*end, &mut out);
            put_u32(*crc, &mut out);
        }
        out
    }

    /// Writes it into an empty file, with the bytes of `segment` that it keeps, and makes it durable.
    pub fn write(&self, file: &dyn File, segment: &dyn File) -> io::Result<()> {
        let header = self.header();
        let mut out = MAGIC.to_vec();
        put_u32(STUB_VERSION, &mut out);
        put_u32(header.len() as u32, &mut out);
        put_u32(crc32c::crc32c(&header), &mut out);
        out.extend_from_slice(&header);
        file.write_at(&out, 0)?;
        let mut at = out.len() as u64;
        for range in &self.layout.kept {
            for start in range.clone().step_by(COPY_BYTES as usize) {
                out.resize((range.end - start).min(COPY_BYTES) as usize, 0);
                segment.read_at(&mut out, start)?;
                file.write_at(&out, at)?;
                at += out.len() as u64;
            }
        }
        file.sync()
    }

    /// Reads what a file says, and where the kept bytes begin in it.
    pub fn read(file: &dyn File) -> io::Result<(Stub, u64)> {
        let file_bytes = file.len()?;
        let mut prefix = [0; PREFIX_BYTES];
        if file_bytes < PREFIX_BYTES as u64 {
            return Err(damaged());
        }
        file.read_at(&mut prefix, 0)?;
        let mut r = ByteReader::new(&prefix[MAGIC.len()..]);
        let fields = r.u32().zip(r.u32()).zip(r.u32());
        let ((version, length), crc) = fields.ok_or_else(damaged)?;
        let data = PREFIX_BYTES as u64 + u64::from(length);
        if prefix[..MAGIC.len()] != MAGIC || version != STUB_VERSION || data > file_bytes {
            return Err(damaged());
        }
        let mut header = vec![0; length as usize];
        file.read_at(&mut header, PREFIX_BYTES as u64)?;
        if crc32c::crc32c(&header) != crc {
            return Err(damaged());
        }
        let stub = Stub::decode(&header).ok_or_else(damaged)?;
        let kept: u64 = stub.layout.kept.iter().map(|range| range.end - range.start).sum();
        if data + kept != file_bytes { Err(damaged()) } else { Ok((stub, data)) }
    }

    fn decode(header: &[u8]) -> Option<Stub> {
        let mut r = ByteReader::new(header);
        let (bytes, crc) = (r.u64()?, r.u32()?);
        let length = r.u32()? as usize;
        let url = String::from_utf8(r.take(length)?.to_vec()).ok()?;
        let kept: Vec<Range<u64>> = (0..r.u32()?).map(|_| Some(r.u64()?..r.u64()?)).collect::<Option<_>>()?;
        let parts: Vec<(u64, u32)> = (0..r.u32()?).map(|_| r.u64().zip(r.u32())).collect::<Option<_>>()?;
        let (ends, part_crcs): (Vec<u64>, Vec<u32>) = parts.into_iter().unzip();
        let ascend = kept.windows(2).all(|two| two[0].end <= two[1].start) && ends.windows(2).all(|two| two[0] < two[1]);
        let within = kept.iter().all(|range| range.start <= range.end && range.end <= bytes);
        let is_valid = r.is_empty() && ascend && within && ends.last().is_none_or(|end| *end == bytes);
        is_valid.then_some(Stub { url, bytes, crc, layout: ColdLayout { kept, ends }, part_crcs })
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file that stands for a segment in a store is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;
    use melba_vfs::{Directory, MemoryDirectory};

    #[test]
    fn stubs_are_read_as_written_and_damage_is_found() {
        let d = MemoryDirectory::new();
        let segment = d.create("s").expect("creates");
        segment.write_at(&(0..100).collect::<Vec<u8>>(), 0).expect("writes");
        let layout = ColdLayout { kept: vec![0..10, 50..60, 90..100], ends: vec![40, 80, 100] };
        let stub = Stub { url: "s3://b/k".into(), bytes: 100, crc: 7, layout, part_crcs: vec![1, 2, 3] };
        let file = d.create("f").expect("creates");
        stub.write(&*file, &*segment).expect("writes");
        let (read, data) = Stub::read(&*file).expect("reads");
        assert_eq!(read, stub);
        let mut kept = [0; 30];
        file.read_at(&mut kept, data).expect("reads");
        assert_eq!((kept[0], kept[10], kept[29]), (0, 50, 99));
        for byte in 0..data {
            d.flip_bit("f", byte * 8 + byte % 8).expect("flips");
            assert_eq!(Stub::read(&*file).map_err(|e| e.kind()), Err(io::ErrorKind::InvalidData), "byte {byte}");
            d.flip_bit("f", byte * 8 + byte % 8).expect("flips");
        }
        file.set_len(data + 29).expect("cuts");
        assert!(Stub::read(&*file).is_err());
    }
}
