//! Large objects in a dump: for every range of OIDs a stream with one line per object, and one with one tuple per page.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::privileges::Granted;
use crate::schema::Reader;

/// Bytes of a page of pg_largeobject.
const PAGE_BYTES: u64 = 2048;
/// Neighbouring pages are put together up to this many bytes.
const RUN_BYTES_MAX: usize = 1 << 20;
/// Objects of a range: at least this many, and more if there would be too many ranges.
const RANGE_OBJECTS_MIN: u64 = 16384;
const RANGES_MAX: u64 = 256;

/// The objects from the first OID to the last, both among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OidRange {
    pub first: u32,
    pub last: u32,
}

impl std::fmt::Display for OidRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.last {
            u32::MAX => write!(f, "from {}", self.first),
            last => write!(f, "{} to {last}", self.first),
        }
    }
}

impl OidRange {
    /// Ranges that hold all objects of a database, about as many in each.
    pub fn of_all(reader: &mut Reader) -> Result<Vec<OidRange>> {
        let number = |row: &Vec<Option<String>>| row.first()?.as_ref()?.parse().ok();
        let count = reader.rows("SELECT pg_catalog.count(*) FROM pg_catalog.pg_largeobject_metadata")?;
        let count: u64 = count.iter().find_map(number).unwrap_or(0);
        let objects = RANGE_OBJECTS_MIN.max(count.div_ceil(RANGES_MAX));
        let firsts = reader.rows(&format!(
            "SELECT oid FROM (SELECT oid, pg_catalog.row_number() OVER (ORDER BY oid) AS n
                FROM pg_catalog.pg_largeobject_metadata) AS o WHERE n % {objects} = 1 ORDER BY oid"
        ))?;
        let firsts: Vec<u64> = firsts.iter().filter_map(number).collect();
        let lasts = firsts.iter().skip(1).map(|first| first - 1).chain([u64::from(u32::MAX)]);
        Ok(firsts.iter().zip(lasts).map(|(first, last)| OidRange { first: *first as u32, last: last as u32 }).collect())
    }

    /// The COPY statement of the stream of objects.
    pub fn objects_statement(self) -> String {
        format!(
            "COPY (SELECT oid, pg_catalog.pg_get_userbyid(lomowner), lomacl FROM pg_catalog.pg_largeobject_metadata
                WHERE {} ORDER BY oid) TO STDOUT",
            self.condition("oid")
        )
    }

    /// The COPY statement of the stream of pages. Not every role may read pg_largeobject (`reads_pages`), but its objects, of which
    /// holes show as zeros.
    pub fn pages_statement(self, reads_pages: bool) -> String {
        let condition = self.condition("oid");
        if !reads_pages {
            return format!(
                "COPY (SELECT p.loid, p.pageno, p.data FROM (
                    SELECT o.oid AS loid, n::integer AS pageno, lo_get(o.oid, n * {PAGE_BYTES}, {PAGE_BYTES}) AS data, n = o.last AS is_last
                    FROM (SELECT f.oid, (lo_lseek64(f.fd, 0, 2) + {PAGE_BYTES} - 1) / {PAGE_BYTES} - 1 AS last, lo_close(f.fd) AS zero FROM (
                            SELECT oid, lo_open(oid, 262144) AS fd FROM pg_catalog.pg_largeobject_metadata WHERE {condition} OFFSET 0) f
                        OFFSET 0) o, generate_series(0, o.last + o.zero) n OFFSET 0) p
                 WHERE p.is_last OR p.data <> decode(repeat('00', {PAGE_BYTES}), 'hex') ORDER BY p.loid, p.pageno) TO STDOUT (FORMAT binary)"
            );
        }
        format!(
            "COPY (SELECT loid, pageno, data FROM pg_catalog.pg_largeobject
                WHERE {} ORDER BY loid, pageno) TO STDOUT (FORMAT binary)",
            self.condition("loid")
        )
    }

    fn condition(self, column: &str) -> String {
        format!("{column} >= '{}'::pg_catalog.oid AND {column} <= '{}'::pg_catalog.oid", self.first, self.last)
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

fn malformed() -> String {
    "the dump's large objects are malformed".to_owned()
}

/// Cuts a stream of blocks in COPY's binary format into pages.
struct Pages<B> {
    blocks: B,
    buffer: Vec<u8>,
    at: usize,
    place: Place,
}

/// How much of a stream of pages was read.
enum Place {
    Nothing,
    Header,
    Trailer,
}

/// How COPY's binary format begins; flags and the length of an extension follow.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

impl<B: Iterator<Item = Result<Vec<u8>>>> Pages<B> {
    /// The next `length` bytes.
    fn take(&mut self, length: usize) -> Result<&[u8]> {
        while self.buffer.len() - self.at < length {
            self.buffer.drain(..self.at);
            self.at = 0;
            self.buffer.extend_from_slice(&self.blocks.next().ok_or("the dump's large objects end in the middle of a page")??);
        }
        self.at += length;
        Ok(&self.buffer[self.at - length..self.at])
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| malformed())
    }

    /// The length of a field that is not null.
    fn length(&mut self) -> Result<usize> {
        usize::try_from(i32::from_be_bytes(self.number()?)).map_err(|_| malformed())
    }

    /// Object, byte offset and bytes of the next page.
    fn next(&mut self) -> Result<Option<(u32, u64, &[u8])>> {
        if let Place::Trailer = self.place {
            return Ok(None);
        }
        if let Place::Nothing = self.place {
            if self.take(SIGNATURE.len())? != SIGNATURE || self.number()? != [0; 4] {
                return Err(malformed());
            }
            let extension = self.length()?;
            self.take(extension)?;
            self.place = Place::Header;
        }
        match i16::from_be_bytes(self.number()?) {
            -1 => {
                self.place = Place::Trailer;
                return Ok(None);
            }
            3 if self.length()? == 4 => {}
            _ => return Err(malformed()),
        }
        let oid = u32::from_be_bytes(self.number()?);
        if self.length()? != 4 {
            return Err(malformed());
        }
        let page = u64::from(u32::from_be_bytes(self.number()?));
        let length = self.length()?;
        if length as u64 > PAGE_BYTES {
            return Err(malformed());
        }
        Ok(Some((oid, page * PAGE_BYTES, self.take(length)?)))
    }
}

/// Puts the pages of a stream together.
pub struct Runs<B> {
    pages: Pages<B>,
    next: Option<Run>,
}

impl<B: Iterator<Item = Result<Vec<u8>>>> Runs<B> {
    pub fn new(blocks: B) -> Runs<B> {
        Runs { pages: Pages { blocks, buffer: Vec::new(), at: 0, place: Place::Nothing }, next: None }
    }

    /// The next run, by object and offset.
    pub fn next(&mut self) -> Result<Option<Run>> {
        let mut current = self.next.take();
        while let Some((oid, offset, bytes)) = self.pages.next()? {
            match &mut current {
                Some(run)
                    if run.oid == oid && run.offset + run.bytes.len() as u64 == offset && run.bytes.len() < RUN_BYTES_MAX =>
                {
                    run.bytes.extend_from_slice(bytes);
                }
                Some(_) => {
                    self.next = Some(Run { oid, offset, bytes: bytes.to_vec() });
                    return Ok(current);
                }
                None => current = Some(Run { oid, offset, bytes: bytes.to_vec() }),
            }
        }
        Ok(current)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A page as a tuple.
    pub fn tuple(oid: u32, page: u32, bytes: &[u8]) -> Vec<u8> {
        let field = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes(), bytes].concat();
        [&[0, 3], &field(&oid.to_be_bytes())[..], &field(&page.to_be_bytes()), &field(bytes)].concat()
    }

    /// A stream of tuples.
    pub fn stream(tuples: &[Vec<u8>]) -> Vec<u8> {
        [SIGNATURE, &[0; 8], &tuples.concat(), &[255; 2]].concat()
    }

    fn blocks(bytes: &[u8], size: usize) -> impl Iterator<Item = Result<Vec<u8>>> + use<> {
        bytes.chunks(size).map(|c| Ok(c.to_vec())).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn pages_become_runs_wherever_blocks_are_cut() {
        let tuples = [tuple(5, 0, &[3; 2048]), tuple(5, 1, &[1, 2]), tuple(5, 9, &[255]), tuple(7, 0, &[])];
        for size in [1, 7, 4096, 10_000] {
            let mut runs = Runs::new(blocks(&stream(&tuples), size));
            let first = runs.next().unwrap().unwrap();
            assert_eq!((first.oid, first.offset, first.bytes.len()), (5, 0, 2050));
            assert_eq!(runs.next().unwrap(), Some(Run { oid: 5, offset: 9 * 2048, bytes: vec![0xff] }));
            assert_eq!(runs.next().unwrap(), Some(Run { oid: 7, offset: 0, bytes: vec![] }));
            assert_eq!(runs.next().unwrap(), None);
        }
    }

    #[test]
    fn malformed_streams_are_errors() {
        let good = stream(&[tuple(5, 0, &[1; 20])]);
        let all = |bytes: &[u8]| -> Result<()> {
            let mut runs = Runs::new(blocks(bytes, 100));
            while runs.next()?.is_some() {}
            Ok(())
        };
        assert!(all(&good).is_ok());
        assert!((0..good.len()).all(|cut| all(&good[..cut]).is_err()));
        // Every byte except those of OID, page and data is checked.
        let free = |at: usize| (25..29).contains(&at) || (33..37).contains(&at) || (41..61).contains(&at);
        for at in (0..good.len()).filter(|at| !free(*at)) {
            let mut bad = good.clone();
            bad[at] ^= 0x40;
            assert!(all(&bad).is_err(), "byte {at}");
        }
        assert_eq!(object(b"5\tann\t{ann=rw/ann}").unwrap().acl.as_deref(), Some("{ann=rw/ann}"));
        assert_eq!(object(b"5\ta\\\\b\t\\N").unwrap(), Object { oid: 5, owner: "a\\b".into(), acl: None });
        assert!(object(b"5").is_err() && object(b"x\ta\t\\N").is_err());
    }
}
