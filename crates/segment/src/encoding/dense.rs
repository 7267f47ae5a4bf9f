//! Chunks whose values are in their column's dense section (`section`), among those of all row groups. Which columns have one is the
//! writer's choice (`table::dense`), made for a segment.

use std::ops::Range;

use super::read::{ChunkView, HeldRow, Scan};
use super::stages::{ChunkEncoding, EntryKind};
use super::values::{StringsOut, ValueOut};
use super::write::{ChunkValues, Trained, Write, WriteOptions};
use crate::error::Result;

#[derive(Debug)]
pub(crate) struct Dense;

pub(crate) static DENSE: &dyn ChunkEncoding = &Dense;

impl ChunkEncoding for Dense {
    fn tag(&self) -> u8 {
        5
    }

    fn entry_kind(&self) -> EntryKind {
        EntryKind::Section
    }

    fn analyze<'a>(&self, _: &'a ChunkValues<'a>, _: &WriteOptions, _: &mut Trained<'_>) -> Option<Box<Write<'a>>> {
        None
    }

    fn read_strings(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>], out: &mut StringsOut) -> Result<()> {
        let (section, start) = scan.chunk.section()?;
        for range in ranges {
            section.read(scan.chunk.file, start + range.start..start + range.end, &mut scan.held.section, out)?;
        }
        Ok(())
    }

    fn read_rows(&self, chunk: &ChunkView<'_>, rows: &[u32], _: &mut HeldRow, out: &mut ValueOut<'_>) -> Result<()> {
        let (section, start) = chunk.section()?;
        for &row in rows {
            let push = |bytes: &[u8], is_plain: bool| out.push_plain_or_stored(bytes, is_plain);
            match section.with_value(chunk.file, start + row as usize, push)? {
                Some(true) => {}
                Some(false) => return Err(chunk.undecodable()),
                None => out.push_null(),
            }
        }
        Ok(())
    }

    fn with_bytes(&self, chunk: &ChunkView<'_>, row: usize, each: &mut dyn FnMut(&[u8])) -> Result<()> {
        let (section, start) = chunk.section()?;
        section.with_value(chunk.file, start + row, |bytes, _| each(bytes)).map(drop)
    }
}
