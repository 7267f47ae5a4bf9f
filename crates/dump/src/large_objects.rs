//! Large objects in a dump: a stream with a line an object, and one with a line a page.

use crate::Result;
use crate::privileges::Granted;

/// What the two streams are copied from, in the order of their keys: the server sorts, in files when there are many.
pub const OBJECTS: &str = "COPY (SELECT oid, pg_catalog.pg_get_userbyid(lomowner), lomacl FROM pg_catalog.pg_largeobject_metadata ORDER BY oid) TO STDOUT";
pub const PAGES: &str = "COPY (SELECT loid, pageno, data FROM pg_catalog.pg_largeobject ORDER BY loid, pageno) TO STDOUT";

/// Bytes of a page of pg_largeobject.
const PAGE_BYTES: u64 = 2048;
/// Neighbouring pages are put together up to this many bytes.
const RUN_BYTES_MAX: usize = 1 << 20;

/// Checks that lines come in the order of the number that each begins with.
#[derive(Default)]
pub struct OrderCheck {
    last: u32,
    number: u32,
    past_number: bool,
}

impl OrderCheck {
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<()> {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.past_number {
                match memchr::memchr(b'\n', bytes) {
                    Some(end) => bytes = &bytes[end + 1..],
                    None => return Ok(()),
                }
                (self.past_number, self.number) = (false, 0);
                continue;
            }
            bytes = rest;
            if byte.is_ascii_digit() {
                self.number = self.number.wrapping_mul(10).wrapping_add(u32::from(byte - b'0'));
            } else {
                if self.number < self.last {
                    return Err(format!("the server's large objects are not in order: {} after {}", self.number, self.last));
                }
                (self.last, self.past_number) = (self.number, true);
            }
        }
        Ok(())
    }
}

/// Cuts a stream of blocks into lines.
pub struct Lines<B> {
    blocks: B,
    buffer: Vec<u8>,
    at: usize,
}

impl<B: Iterator<Item = Result<Vec<u8>>>> Lines<B> {
    pub fn new(blocks: B) -> Lines<B> {
        Lines { blocks, buffer: Vec::new(), at: 0 }
    }

    /// The next line without its end.
    pub fn next(&mut self) -> Result<Option<&[u8]>> {
        let mut searched = self.at;
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                let line = self.at..searched + length;
                self.at = line.end + 1;
                return Ok(Some(&self.buffer[line]));
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            searched = self.buffer.len();
            match self.blocks.next() {
                Some(block) => self.buffer.extend_from_slice(&block?),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err("the dump's large objects end in the middle of a line".to_owned()),
            }
        }
    }
}

/// An object as its line says.
#[derive(Debug, PartialEq)]
pub struct Object {
    pub oid: u32,
    pub owner: String,
    pub acl: Option<String>,
}

impl Object {
    /// The statements that make its privileges from the text of an ACL.
    pub fn privileges(&self, acl: &str) -> Result<String> {
        let object = format!("LARGE OBJECT {}", self.oid);
        let granted = Granted { prefix: "", object: &object, column: None, owner: &self.owner, all: "rw" };
        Ok(granted.revoke_all() + &granted.grants(acl)?)
    }
}

/// Bytes of an object from an offset on.
#[derive(Debug, PartialEq)]
pub struct Run {
    pub oid: u32,
    pub offset: u64,
    pub bytes: Vec<u8>,
}

pub fn object(line: &[u8]) -> Result<Object> {
    let text = std::str::from_utf8(line).map_err(|_| malformed())?;
    let mut fields = text.split('\t');
    let (oid, owner, acl) = (fields.next(), fields.next(), fields.next());
    let oid = oid.and_then(|o| o.parse().ok()).ok_or_else(malformed)?;
    Ok(Object { oid, owner: unescape(owner.ok_or_else(malformed)?), acl: acl.filter(|a| *a != "\\N").map(unescape) })
}

/// COPY's text of a name or an ACL: of the escapes only the backslash occurs.
fn unescape(text: &str) -> String {
    text.replace("\\\\", "\\")
}

/// Object, byte offset, bytes of a page's line.
fn page(line: &[u8]) -> Result<(u32, u64, Vec<u8>)> {
    let mut fields = line.split(|b| *b == b'\t');
    let mut number = || -> Option<u64> { std::str::from_utf8(fields.next()?).ok()?.parse().ok() };
    let (oid, page) = number().zip(number()).ok_or_else(malformed)?;
    let hex = fields.next().and_then(|f| f.strip_prefix(b"\\\\x")).ok_or_else(malformed)?;
    let bytes = unhexed(hex).ok_or_else(malformed)?;
    Ok((u32::try_from(oid).map_err(|_| malformed())?, page * PAGE_BYTES, bytes))
}

/// The values of hexadecimal digits, 255 for other bytes.
const DIGITS: [u8; 256] = {
    let mut digits = [255; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value] as usize] = value as u8;
        digits[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

/// The bytes of hexadecimal digits: two for each.
fn unhexed(hex: &[u8]) -> Option<Vec<u8>> {
    let pairs = hex.chunks_exact(2);
    let is_even = pairs.remainder().is_empty();
    // A wrong digit has bits that no right one has: looked at once, behind the loop.
    let mut wrong = 0;
    let bytes = pairs.map(|pair| {
        let (high, low) = (DIGITS[usize::from(pair[0])], DIGITS[usize::from(pair[1])]);
        wrong |= high | low;
        high << 4 | low
    });
    let bytes = bytes.collect();
    (is_even && wrong < 16).then_some(bytes)
}

fn malformed() -> String {
    "the dump's large objects are malformed".to_owned()
}

/// Puts the pages of a stream together.
pub struct Runs<B> {
    lines: Lines<B>,
    next: Option<Run>,
}

impl<B: Iterator<Item = Result<Vec<u8>>>> Runs<B> {
    pub fn new(blocks: B) -> Runs<B> {
        Runs { lines: Lines::new(blocks), next: None }
    }

    /// The next run, by object and offset.
    pub fn next(&mut self) -> Result<Option<Run>> {
        let mut current = self.next.take();
        while let Some(line) = self.lines.next()? {
            let (oid, offset, bytes) = page(line)?;
            match &mut current {
                Some(run)
                    if run.oid == oid && run.offset + run.bytes.len() as u64 == offset && run.bytes.len() < RUN_BYTES_MAX =>
                {
                    run.bytes.extend_from_slice(&bytes);
                }
                Some(_) => {
                    self.next = Some(Run { oid, offset, bytes });
                    return Ok(current);
                }
                None => current = Some(Run { oid, offset, bytes }),
            }
        }
        Ok(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str, size: usize) -> impl Iterator<Item = Result<Vec<u8>>> {
        text.as_bytes().chunks(size).map(|c| Ok(c.to_vec())).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn pages_become_runs_wherever_blocks_are_cut() {
        let page = |n: u8| format!("{n:02x}").repeat(2048);
        let text = format!("5\t0\t\\\\x{}\n5\t1\t\\\\x0102\n5\t9\t\\\\xff\n7\t0\t\\\\x\n", page(3));
        for size in [1, 7, 4096, 10_000] {
            let mut runs = Runs::new(blocks(&text, size));
            let first = runs.next().unwrap().unwrap();
            assert_eq!((first.oid, first.offset, first.bytes.len()), (5, 0, 2050));
            assert_eq!(runs.next().unwrap(), Some(Run { oid: 5, offset: 9 * 2048, bytes: vec![0xff] }));
            assert_eq!(runs.next().unwrap(), Some(Run { oid: 7, offset: 0, bytes: vec![] }));
            assert_eq!(runs.next().unwrap(), None);
        }
    }

    #[test]
    fn malformed_lines_are_errors() {
        for text in
            ["5", "5\n", "x\t0\t\\\\x00\n", "5\t0\t\\\\x0\n", "5\t0\t\\\\xzz\n", "5\t0\t00\n", "99999999999\t0\t\\\\x00\n"]
        {
            assert!(Runs::new(blocks(text, 100)).next().is_err(), "{text:?}");
        }
        assert_eq!(object(b"5\tann\t{ann=rw/ann}").unwrap().acl.as_deref(), Some("{ann=rw/ann}"));
        assert_eq!(object(b"5\ta\\\\b\t\\N").unwrap(), Object { oid: 5, owner: "a\\b".into(), acl: None });
        assert!(object(b"5").is_err());
    }

    #[test]
    fn order_is_checked_wherever_bytes_are_cut() {
        let check = |text: &str, size: usize| {
            let mut check = OrderCheck::default();
            text.as_bytes().chunks(size).try_for_each(|c| check.feed(c))
        };
        for size in 1..20 {
            assert!(check("1\t9\n1\t3\n22\tx\n103\t1\n", size).is_ok());
            assert!(check("1\t9\n12\t3\n11\tx\n", size).is_err());
        }
    }
}
