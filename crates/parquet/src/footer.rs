//! The footer of a file. What would take the decoder beyond its stack or the memory is found before it is called.
//!
//! The decoder calls itself for each level of the schema, and reserves room for as many row groups as a number says. So the footer,
//! which is Thrift's compact protocol, is walked first, without recursion over the schema.

use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader as _, Length as _};

use melba_types::{Result, bail, err, limits};

use crate::damaged;
use crate::source::Chunks;

/// The footer's length, and the magic after it.
const TAIL_BYTES: u64 = 8;
/// Columns, groups and the root.
const ELEMENTS_MAX: usize = 20_000;
/// Groups in one another.
const LEVELS_MAX: usize = 100;
/// Bytes of all columns' paths, which the decoder makes of the groups' names.
const PATH_BYTES_MAX: usize = 16 << 20;
/// The decoder numbers them so.
const ROW_GROUPS_MAX: usize = i16::MAX as usize;
/// Structs and lists in one another, outside of the schema.
const NESTING_MAX: usize = 32;

/// Reads the footer of a file that has both magics.
pub(crate) fn read(chunks: &Chunks) -> Result<ParquetMetaData> {
    let tail = chunks.get_bytes(chunks.len() - TAIL_BYTES, 4).map_err(damaged)?;
    let length = tail.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let Some(start) = (chunks.len() - TAIL_BYTES).checked_sub(length) else {
        bail!(BAD_COPY_FILE_FORMAT, "invalid Parquet file: the footer is longer than the file");
    };
    let length = length as usize;
    limits::check_request(length)?;
    let footer = chunks.get_bytes(start, length).map_err(damaged)?;
    check(&footer)?;
    // Only the list that was checked: the others are passed over.
    let schema = ParquetMetaDataReader::decode_schema(&footer).map_err(damaged)?;
    let options = ParquetMetaDataOptions::new().with_schema(schema);
    ParquetMetaDataReader::decode_metadata_with_options(&footer, Some(&options)).map_err(damaged)
}

/// Types of fields.
const STOP: u8 = 0;
const I32: u8 = 5;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

fn check(footer: &[u8]) -> Result<()> {
    let mut walk = Walk { rest: footer };
    let (mut id, mut ty) = walk.field(0)?;
    if (id, ty) != (1, I32) {
        return Err(invalid());
    }
    walk.skip(ty, 0)?;
    (id, ty) = walk.field(id)?;
    if (id, ty) != (2, LIST) {
        return Err(invalid());
    }
    walk.schema()?;
    loop {
        (id, ty) = walk.field(id)?;
        match (id, ty) {
            (_, STOP) => return Ok(()),
            (4, LIST) => {
                let (element, count) = walk.list()?;
                if count > ROW_GROUPS_MAX {
                    bail!(PROGRAM_LIMIT_EXCEEDED, "the Parquet file has more than {ROW_GROUPS_MAX} row groups");
                }
                (0..count).try_for_each(|_| walk.skip(element, 1))?;
            }
            _ => walk.skip(ty, 0)?,
        }
    }
}

fn invalid() -> melba_types::DbError {
    err!(BAD_COPY_FILE_FORMAT, "invalid Parquet file").detail("The footer is damaged.")
}

/// Bytes in Thrift's compact protocol.
struct Walk<'a> {
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or_else(invalid)?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(invalid())
    }

    fn signed(&mut self) -> Result<i64> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The number of the next field, by the one before, and its type.
    fn field(&mut self, before: i64) -> Result<(i64, u8)> {
        let byte = self.byte()?;
        let id = match (byte >> 4, byte & 0xf) {
            (_, STOP) => before,
            (0, _) => self.signed()?,
            (delta, _) => before + i64::from(delta),
        };
        if i16::try_from(id).is_ok() { Ok((id, byte & 0xf)) } else { Err(invalid()) }
    }

    /// The type of a list's elements, and how many there are: not more than bytes.
    fn list(&mut self) -> Result<(u8, usize)> {
        let byte = self.byte()?;
        let count = if byte >> 4 == 15 { self.number()? } else { u64::from(byte >> 4) };
        let count = usize::try_from(count).ok().filter(|count| *count <= self.rest.len()).ok_or_else(invalid)?;
        Ok((byte & 0xf, count))
    }

    fn binary(&mut self) -> Result<&'a [u8]> {
        let bytes = usize::try_from(self.number()?).map_err(|_| invalid())?;
        self.take(bytes)
    }

    /// Passes over a field's value.
    fn skip(&mut self, ty: u8, level: usize) -> Result<()> {
        if level > NESTING_MAX {
            return Err(invalid());
        }
        match ty {
            1 | 2 => Ok(()),
            3 => self.byte().map(|_| ()),
            4..=6 => self.number().map(|_| ()),
            7 => self.take(8).map(|_| ()),
            BINARY => self.binary().map(|_| ()),
            LIST | 10 => {
                let (element, count) = self.list()?;
                // A boolean has a byte as an element only.
                let element = if matches!(element, 1 | 2) { 3 } else { element };
                (0..count).try_for_each(|_| self.skip(element, level + 1))
            }
            STRUCT => {
                let mut before = 0;
                loop {
                    let (id, ty) = self.field(before)?;
                    if ty == STOP {
                        return Ok(());
                    }
                    self.skip(ty, level + 1)?;
                    before = id;
                }
            }
            _ => Err(invalid()),
        }
    }

    /// Passes over the list of the schema's elements: each group is followed by its children.
    fn schema(&mut self) -> Result<()> {
        let (element, count) = self.list()?;
        if element != STRUCT || count == 0 {
            return Err(invalid());
        }
        if count > ELEMENTS_MAX {
            bail!(PROGRAM_LIMIT_EXCEEDED, "the schema of the Parquet file has more than {ELEMENTS_MAX} columns and groups");
        }
        // Of the groups around the next element: children to come, and bytes of the path.
        let mut groups: Vec<(usize, usize)> = Vec::new();
        let mut path_bytes = 0;
        for at in 0..count {
            let (children, name_bytes) = self.element()?;
            let above = match groups.last_mut() {
                Some((left, path)) => {
                    *left -= 1;
                    *path
                }
                None if at == 0 => 0,
                None => return Err(invalid()),
            };
            if children > count {
                return Err(invalid());
            }
            if children > 0 {
                groups.push((children, above + name_bytes));
            } else {
                path_bytes += above + name_bytes;
            }
            if groups.len() > LEVELS_MAX {
                bail!(PROGRAM_LIMIT_EXCEEDED, "the schema of the Parquet file has more than {LEVELS_MAX} levels");
            }
            if path_bytes > PATH_BYTES_MAX {
                bail!(PROGRAM_LIMIT_EXCEEDED, "the names in the schema of the Parquet file are too long");
            }
            while groups.last().is_some_and(|(left, _)| *left == 0) {
                groups.pop();
            }
        }
        if groups.is_empty() { Ok(()) } else { Err(invalid()) }
    }

    /// How many children an element of the schema has, and the length of its name.
    fn element(&mut self) -> Result<(usize, usize)> {
        let (mut children, mut name_bytes, mut before) = (0, 0, 0);
        loop {
            let (id, ty) = self.field(before)?;
            match (id, ty) {
                (_, STOP) => return Ok((children, name_bytes)),
                (4, BINARY) => name_bytes = self.binary()?.len(),
                (5, I32) => children = usize::try_from(self.signed()?).map_err(|_| invalid())?,
                // Numbers, which the decoder reads as such whatever their type is.
                (4, _) => return Err(invalid()),
                (1..=9, ty) if ty != I32 => return Err(invalid()),
                (10, ty) if ty != STRUCT => return Err(invalid()),
                _ => self.skip(ty, 1)?,
            }
            before = id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer whose schema has `groups` groups in one another, and the bytes after it.
    fn nested(groups: usize, after: &[u8]) -> Vec<u8> {
        let mut out = vec![0x15, 0x02, 0x19, 0xfc];
        let mut count = groups + 1;
        while count >= 0x80 {
            out.push(count as u8 | 0x80);
            count >>= 7;
        }
        out.push(count as u8);
        (0..groups).for_each(|_| out.extend([0x48, 0x01, b'g', 0x15, 0x02, 0x00]));
        out.extend([0x15, 0x02, 0x25, 0x00, 0x18, 0x01, b'c', 0x00]);
        out.extend(after);
        out
    }

    #[test]
    fn schemas_have_a_depth_and_a_size() {
        let state = |footer: &[u8]| check(footer).err().map_or("00000".to_owned(), |e| e.sqlstate().as_str().to_owned());
        assert_eq!(state(&nested(LEVELS_MAX, &[0])), "00000");
        assert_eq!(state(&nested(LEVELS_MAX + 1, &[0])), "54000");
        assert_eq!(state(&nested(1_000_000, &[0])), "54000");
        assert_eq!((&*state(&nested(3, &[])), &*state(&[])), ("22P04", "22P04"));
        // Three rows; 2^31 - 1 row groups, of which there is none, and 40000 empty ones.
        assert_eq!(state(&nested(1, &[0x16, 0x06, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0])), "22P04");
        let groups = [&[0x16, 0x06, 0x19, 0xfc, 0xc0, 0xb8, 0x02][..], &[0; 40_001]].concat();
        assert_eq!(state(&nested(1, &groups)), "54000");
    }

    #[test]
    fn a_file_of_a_million_groups_is_refused() {
        let footer = nested(1_000_000, &[0x16, 0x00, 0x19, 0x0c, 0]);
        let length = (footer.len() as u32).to_le_bytes();
        let file = [b"PAR1", &footer[..], &length, b"PAR1"].concat();
        let error = crate::FileReader::open(std::sync::Arc::new(file)).err();
        assert_eq!(error.map(|e| e.sqlstate()), Some(melba_types::SqlState::PROGRAM_LIMIT_EXCEEDED));
    }
}
