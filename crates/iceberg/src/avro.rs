//! Avro's object container files with records of one schema: as much as manifests need. Without compression.
//!
//! ```text
//! file    "Obj" 1 | metadata: map of bytes | sync marker, 16 bytes | block ...
//! block   records long | bytes long | record ... | sync marker
//! long    zigzag, seven bits a byte
//! bytes   length long | bytes
//! ```

use melba_types::{DbError, Result, err};

const MAGIC: &[u8] = b"Obj\x01";
const MARKER_BYTES: usize = 16;

/// A record in the making.
#[derive(Default)]
pub struct Encoder(Vec<u8>);

impl Encoder {
    pub fn long(&mut self, value: i64) {
        let mut left = (value << 1 ^ value >> 63) as u64;
        while left >= 0x80 {
            self.0.push(left as u8 | 0x80);
            left >>= 7;
        }
        self.0.push(left as u8);
    }

    pub fn bytes(&mut self, value: &[u8]) {
        self.long(value.len() as i64);
        self.0.extend_from_slice(value);
    }

    /// A value of a union with null, which comes first.
    pub fn optional_long(&mut self, value: Option<i64>) {
        self.long(i64::from(value.is_some()));
        if let Some(value) = value {
            self.long(value);
        }
    }

    pub fn null(&mut self) {
        self.long(0);
    }
}

/// A file with one block, and some metadata. `marker` is any bytes.
pub fn file(metadata: &[(&str, &str)], marker: [u8; MARKER_BYTES], records: usize, content: Encoder) -> Vec<u8> {
    let mut out = Encoder(MAGIC.to_vec());
    out.long(metadata.len() as i64);
    for (key, value) in metadata {
        out.bytes(key.as_bytes());
        out.bytes(value.as_bytes());
    }
    out.long(0);
    out.0.extend_from_slice(&marker);
    if records > 0 {
        out.long(records as i64);
        out.bytes(&content.0);
        out.0.extend_from_slice(&marker);
    }
    out.0
}

/// Reads records whose schema the caller knows.
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or_else(damaged)?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn long(&mut self) -> Result<i64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = self.take(1)?[0];
            if shift > 63 {
                return Err(damaged());
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
            shift += 7;
        }
    }

    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.long()?).map_err(|_| damaged())?;
        self.take(length)
    }

    pub fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| damaged())
    }

    /// Whether the value of a union with null is there.
    pub fn is_some(&mut self) -> Result<bool> {
        match self.long()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(damaged()),
        }
    }

    pub fn optional_long(&mut self) -> Result<Option<i64>> {
        if self.is_some()? { self.long().map(Some) } else { Ok(None) }
    }
}

/// The records of a file that `file` has made.
///
/// # Errors
/// XX001 for other bytes.
pub fn records<T>(bytes: &[u8], mut each: impl FnMut(&mut Decoder<'_>) -> Result<T>) -> Result<Vec<T>> {
    let mut file = Decoder { rest: bytes };
    if file.take(MAGIC.len())? != MAGIC {
        return Err(damaged());
    }
    loop {
        match file.long()? {
            0 => break,
            pairs @ 1.. => (0..2 * pairs).try_for_each(|_| file.bytes().map(|_| ()))?,
            _ => return Err(damaged()),
        }
    }
    let marker = file.take(MARKER_BYTES)?;
    let mut out = Vec::new();
    while !file.rest.is_empty() {
        let records = file.long()?;
        let mut block = Decoder { rest: file.bytes()? };
        for _ in 0..records {
            out.push(each(&mut block)?);
        }
        if !block.rest.is_empty() || file.take(MARKER_BYTES)? != marker {
            return Err(damaged());
        }
    }
    Ok(out)
}

fn damaged() -> DbError {
    err!(DATA_CORRUPTED, "a manifest of an Iceberg table is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_other_bytes_are_errors() {
        let numbers = [0, -1, 63, 64, -65, i64::MAX, i64::MIN];
        let mut content = Encoder::default();
        for number in numbers {
            content.long(number);
            content.optional_long((number > 0).then_some(number));
            content.bytes(b"text");
        }
        let bytes = file(&[("avro.codec", "null"), ("k", "v")], [7; 16], numbers.len(), content);
        let read = |bytes: &[u8]| records(bytes, |r| Ok((r.long()?, r.optional_long()?, r.text()?)));
        let expected: Vec<_> = numbers.iter().map(|n| (*n, (*n > 0).then_some(*n), "text".to_owned())).collect();
        assert_eq!(read(&bytes).unwrap(), expected);
        assert!((0..bytes.len()).filter(|end| read(&bytes[..*end]).is_ok()).count() == 1, "only the file without its block");
        assert!(read(b"PAR1 is another format").is_err());
        let empty = file(&[("k", "v")], [0; 16], 0, Encoder::default());
        assert!(read(&empty).unwrap().is_empty());
    }
}
