//! The manifest: which trees, segments and log positions make up the database.
//!
//! ```text
//! file      record, record, ... | zeros
//! record    length u32 | crc u32 | edits (length bytes)
//! edit      1 reset     version u32
//!           2 tree      id u64 | is index u8 | table u64 | persistence u8 | next row u64 | live u64 | columns u16 | kind u8 each
//!           3 drop tree id u64
//!           4 segments  tree u64 | removed v | removed x file u64 | added v | added x (file u64 | assigned CSN u64 | footer crc u32)
//!           5 sequence  id u64 | persistence u8 | definition (25) | state (9) | start (9)
//!           6 drop sequence id u64
//!           7 checkpoint  replay LSN u64 | CSN u64 | next tree u64 | next file u64
//!           8 clean     u8
//!           9 database  number u64 | record u64
//!          10 log       is known u8 | start LSN u64 | durable LSN u64
//! ```
//!
//! Version 2 is still read: its segments have no checksums, and it has no edits 9 and 10.
//!
//! Invariants:
//! 1. An edit takes effect when its record is durable, all edits of a record or none.
//! 2. The first record begins with a reset: it is the whole state. A longer manifest is rewritten into a new file, which
//!    replaces the old one by a rename.
//! 3. Only the last record may be torn, because each is durable before the next is written: an incomplete record with others
//!    behind it is damage. Opening rewrites the file, so nothing is ever appended behind a torn record.
//! 4. Space for a record is reserved before the operation that it records (`reserve`): a full disk never leaves one half done.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use melba_threads::planted::{Plant, is_planted};
use melba_types::bytes::{ByteReader, put_u16, put_u64, put_varint};
use melba_types::{Csn, Kind, Lsn, TreeId};
use melba_vfs::{Directory, File};
use melba_wal::{Belongs, Known};

use crate::error::{EngineError, Result};
use crate::files::SegmentFile;
use crate::ids::SequenceId;
use crate::persistence::{Persistence, read_kinds};
use crate::sequence::{SequenceDefinition, SequenceState};

/// Version of the format, in the first record.
pub const FORMAT_VERSION: u32 = 3;
/// The version before: without checksums of segments.
const OLD_FORMAT_VERSION: u32 = 2;
const NAME: &str = "MANIFEST";
const NEW_NAME: &str = "MANIFEST.new";
const RECORD_HEADER_BYTES: usize = 8;
/// Bytes of edits after which the manifest is rewritten, if that is also several times the state's size.
const REWRITE_BYTES: u64 = 64 << 10;
/// The file grows by zeros in units of this, before records are written over them.
const ALLOCATION_BYTES: u64 = 4 << 10;
/// The size of an edit for each file that it names, or for itself: a file's number and CSN, once removed and once added.
const NAME_BYTES_MAX: u64 = 44;
/// The size of a checkpoint and of the certain facts about the log.
const CHECKPOINT_BYTES: u64 = 96;

/// A tree as the manifest has it.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeRecord {
    pub id: TreeId,
    pub is_index: bool,
    pub table: TreeId,
    pub persistence: Persistence,
    pub next_row: u64,
    /// About how many live rows or entries.
    pub live: u64,
    pub kinds: Vec<Kind>,
}

/// A sequence as the manifest has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequenceRecord {
    pub id: SequenceId,
    pub persistence: Persistence,
    pub definition: SequenceDefinition,
    /// At or ahead of the values handed out.
    pub state: SequenceState,
    /// Where an unlogged sequence begins again after a crash.
    pub start: SequenceState,
}

/// One change of the state.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    Reset,
    /// The reset of the version before.
    OldReset,
    /// The reset of a manifest that this program cannot read.
    OtherVersion(u32),
    Tree(TreeRecord),
    DropTree(TreeId),
    /// `added` (newest first) takes the place of the first of `removed`, or is put in front of all.
    Segments {
        tree: TreeId,
        removed: Vec<u64>,
        added: Vec<SegmentFile>,
    },
    Sequence(SequenceRecord),
    DropSequence(SequenceId),
    Checkpoint {
        replay: Lsn,
        csn: Csn,
        next_tree: u64,
        next_file: u64,
    },
    Clean(bool),
    /// Which database this is, and the number of the record that this is in.
    Database {
        number: u64,
        record: u64,
    },
    /// Certain facts about the log.
    Log(Option<Known>),
}

/// The sum of all edits so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManifestState {
    pub trees: BTreeMap<TreeId, TreeRecord>,
    /// Segment files of each tree, newest first.
    pub segments: BTreeMap<TreeId, Vec<SegmentFile>>,
    /// The numbers of all those files.
    named: HashSet<u64>,
    pub sequences: BTreeMap<SequenceId, SequenceRecord>,
    pub replay: Lsn,
    pub csn: Csn,
    pub next_tree: u64,
    pub next_file: u64,
    pub clean: bool,
    /// Drawn when the database was made; 0: by a version that drew none.
    pub database: u64,
    /// Records that the manifest has had, those before its last rewrite too.
    pub records: u64,
    pub log: Option<Known>,
}

impl ManifestState {
    /// Whose log it is.
    pub fn belongs(&self) -> Belongs {
        Belongs { database: self.database, manifest: self.records }
    }

    /// Whether some tree has a segment file.
    pub fn is_named(&self, file: u64) -> bool {
        self.named.contains(&file)
    }

    fn apply_record(&mut self, edits: &[Edit]) {
        self.records += 1;
        edits.iter().for_each(|e| self.apply(e));
    }

    fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Reset | Edit::OldReset | Edit::OtherVersion(_) => *self = ManifestState::default(),
            Edit::Tree(tree) => drop(self.trees.insert(tree.id, tree.clone())),
            Edit::DropTree(id) => {
                self.trees.remove(id);
                for gone in self.segments.remove(id).into_iter().flatten() {
                    self.named.remove(&gone.file);
                }
            }
            Edit::Segments { tree, removed, added } => {
                let list = self.segments.entry(*tree).or_default();
                let at = list.iter().position(|s| removed.contains(&s.file)).unwrap_or(0);
                list.retain(|s| !removed.contains(&s.file));
                list.splice(at..at, added.iter().copied());
                for file in removed {
                    self.named.remove(file);
                }
                self.named.extend(added.iter().map(|s| s.file));
            }
            Edit::Sequence(sequence) => drop(self.sequences.insert(sequence.id, *sequence)),
            Edit::DropSequence(id) => drop(self.sequences.remove(id)),
            Edit::Checkpoint { replay, csn, next_tree, next_file } => {
                (self.replay, self.csn, self.next_tree, self.next_file) = (*replay, *csn, *next_tree, *next_file);
            }
            Edit::Clean(clean) => self.clean = *clean,
            Edit::Database { number, record } => (self.database, self.records) = (*number, *record),
            Edit::Log(known) => self.log = *known,
        }
    }

    /// The state as the bytes of a manifest.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode_record(&self.edits())
    }

    /// The state that `to_bytes` wrote.
    ///
    /// # Errors
    /// `Corrupt` for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<ManifestState> {
        let mut state = ManifestState::default();
        match decode_record(bytes, true) {
            Some((edits, length)) if length == bytes.len() && edits.first() == Some(&Edit::Reset) => {
                edits.iter().for_each(|e| state.apply(e));
                Ok(state)
            }
            _ => Err(EngineError::Corrupt { what: "the copy of the manifest is damaged, or of another version".to_owned() }),
        }
    }

    /// The edits that make this state from nothing.
    fn edits(&self) -> Vec<Edit> {
        let mut out = vec![Edit::Reset, Edit::Database { number: self.database, record: self.records }];
        out.extend(self.trees.values().cloned().map(Edit::Tree));
        out.extend(self.segments.iter().filter(|(_, files)| !files.is_empty()).map(|(tree, files)| Edit::Segments {
            tree: *tree,
            removed: Vec::new(),
            added: files.clone(),
        }));
        out.extend(self.sequences.values().copied().map(Edit::Sequence));
        out.push(Edit::Checkpoint { replay: self.replay, csn: self.csn, next_tree: self.next_tree, next_file: self.next_file });
        out.push(Edit::Clean(self.clean));
        out.push(Edit::Log(self.log));
        out
    }
}

fn encode(edit: &Edit, out: &mut Vec<u8>) {
    match edit {
        Edit::Reset => {
            out.push(1);
            out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        }
        Edit::Tree(t) => {
            out.push(2);
            put_u64(t.id.0, out);
            out.push(u8::from(t.is_index));
            put_u64(t.table.0, out);
            out.push(t.persistence as u8);
            put_u64(t.next_row, out);
            put_u64(t.live, out);
            put_u16(t.kinds.len() as u16, out);
            out.extend(t.kinds.iter().map(|k| *k as u8));
        }
        Edit::OldReset | Edit::OtherVersion(_) => unreachable!("is only read"),
        Edit::DropTree(id) => {
            out.push(3);
            put_u64(id.0, out);
        }
        Edit::Segments { tree, removed, added } => {
            out.push(4);
            put_u64(tree.0, out);
            put_varint(removed.len() as u64, out);
            removed.iter().for_each(|f| put_u64(*f, out));
            put_varint(added.len() as u64, out);
            for segment in added {
                put_u64(segment.file, out);
                put_u64(segment.assigned.0, out);
                out.extend_from_slice(&segment.footer_crc.to_le_bytes());
            }
        }
        Edit::Sequence(s) => {
            out.push(5);
            put_u64(s.id.0, out);
            out.push(s.persistence as u8);
            s.definition.put(out);
            s.state.put(out);
            s.start.put(out);
        }
        Edit::DropSequence(id) => {
            out.push(6);
            put_u64(id.0, out);
        }
        Edit::Checkpoint { replay, csn, next_tree, next_file } => {
            out.push(7);
            for v in [replay.0, csn.0, *next_tree, *next_file] {
                put_u64(v, out);
            }
        }
        Edit::Clean(clean) => out.extend([8, u8::from(*clean)]),
        Edit::Database { number, record } => {
            out.push(9);
            put_u64(*number, out);
            put_u64(*record, out);
        }
        Edit::Log(known) => {
            out.extend([10, u8::from(known.is_some())]);
            put_u64(known.map_or(0, |k| k.start.0), out);
            put_u64(known.map_or(0, |k| k.durable.0), out);
        }
    }
}

/// `has_crcs`: the version has checksums of segments.
fn decode(r: &mut ByteReader<'_>, has_crcs: bool) -> Option<Edit> {
    Some(match r.u8()? {
        1 => match r.u32()? {
            FORMAT_VERSION => Edit::Reset,
            OLD_FORMAT_VERSION => Edit::OldReset,
            version => Edit::OtherVersion(version),
        },
        2 => Edit::Tree(TreeRecord {
            id: TreeId(r.u64()?),
            is_index: r.u8()? != 0,
            table: TreeId(r.u64()?),
            persistence: Persistence::read(r)?,
            next_row: r.u64()?,
            live: r.u64()?,
            kinds: read_kinds(r)?,
        }),
        3 => Edit::DropTree(TreeId(r.u64()?)),
        4 => {
            let tree = TreeId(r.u64()?);
            let removed = (0..r.varint()?).map(|_| r.u64()).collect::<Option<_>>()?;
            let count = r.varint()?;
            let mut segment = || {
                let (file, assigned) = (r.u64()?, Csn(r.u64()?));
                Some(SegmentFile { file, assigned, footer_crc: if has_crcs { r.u32()? } else { 0 } })
            };
            let added = (0..count).map(|_| segment()).collect::<Option<_>>()?;
            Edit::Segments { tree, removed, added }
        }
        5 => Edit::Sequence(SequenceRecord {
            id: SequenceId(r.u64()?),
            persistence: Persistence::read(r)?,
            definition: SequenceDefinition::read(r)?,
            state: SequenceState::read(r)?,
            start: SequenceState::read(r)?,
        }),
        6 => Edit::DropSequence(SequenceId(r.u64()?)),
        7 => Edit::Checkpoint { replay: Lsn(r.u64()?), csn: Csn(r.u64()?), next_tree: r.u64()?, next_file: r.u64()? },
        8 => Edit::Clean(r.u8()? != 0),
        9 => Edit::Database { number: r.u64()?, record: r.u64()? },
        10 => {
            let (is_known, start, durable) = (r.u8()? != 0, Lsn(r.u64()?), Lsn(r.u64()?));
            Edit::Log(is_known.then_some(Known { start, durable }))
        }
        _ => return None,
    })
}

fn encode_record(edits: &[Edit]) -> Vec<u8> {
    let mut out = vec![0; RECORD_HEADER_BYTES];
    edits.iter().for_each(|e| encode(e, &mut out));
    let length = (out.len() - RECORD_HEADER_BYTES) as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&out[..4]), &out[RECORD_HEADER_BYTES..]);
    out[4..8].copy_from_slice(&crc.to_le_bytes());
    out
}

/// The edits of the record at the start of `bytes`, and its length; `None` when there is no whole one.
fn decode_record(bytes: &[u8], has_crcs: bool) -> Option<(Vec<Edit>, usize)> {
    let mut r = ByteReader::new(bytes);
    let (length, crc) = (r.u32()? as usize, r.u32()?);
    let body = r.take(length)?;
    if crc32c::crc32c_append(crc32c::crc32c(&bytes[..4]), body) != crc {
        return None;
    }
    let mut r = ByteReader::new(body);
    let mut edits = Vec::new();
    let mut has_crcs = has_crcs;
    while !r.is_empty() {
        edits.push(decode(&mut r, has_crcs)?);
        match edits[..] {
            [Edit::OtherVersion(_)] => break,
            [Edit::OldReset] => has_crcs = false,
            _ => {}
        }
    }
    Some((edits, RECORD_HEADER_BYTES + length))
}

/// Whether there is a whole record anywhere in `bytes`. Records are written when those before are durable, so the bytes in front
/// of it are damaged, not torn.
fn has_record(bytes: &[u8]) -> bool {
    (0..bytes.len().saturating_sub(RECORD_HEADER_BYTES)).any(|at| {
        // Of either version: a whole record has a matching checksum.
        [true, false].into_iter().any(|has_crcs| decode_record(&bytes[at..], has_crcs).is_some_and(|(e, _)| !e.is_empty()))
    })
}

/// The manifest, open for changes.
pub struct Manifest {
    directory: Arc<dyn Directory>,
    file: Arc<dyn File>,
    offset: u64,
    /// Bytes of the file that have blocks on the disk; zeros from `offset` on.
    allocated: u64,
    /// The offset at which to rewrite.
    rewrite_at: u64,
    /// A replacement of the file has failed: which one is in force is unknown.
    lost: bool,
    state: ManifestState,
}

fn io(e: std::io::Error) -> EngineError {
    EngineError::io("write the manifest", e)
}

impl Manifest {
    /// Reads a directory's manifest, or begins one, of a database that gets this number. Also returns whether there was one.
    pub fn open(directory: Arc<dyn Directory>, number: u64) -> Result<(Manifest, bool)> {
        let names = directory.list().map_err(|e| EngineError::io("list the data directory", e))?;
        let existed = names.iter().any(|n| n == NAME);
        let mut state = ManifestState { next_tree: 1, next_file: 1, clean: true, ..ManifestState::default() };
        if existed {
            state = Manifest::read(&*directory)?;
        }
        if names.iter().any(|n| n == NEW_NAME) {
            directory.remove(NEW_NAME).map_err(io)?;
        }
        if state.database == 0 {
            state.database = number;
        }
        state.records += 1;
        let (file, offset) = write_new(&*directory, &state)?;
        replace(&*directory)?;
        let rewrite_at = REWRITE_BYTES.max(offset * 4);
        Ok((Manifest { directory, file, offset, allocated: offset, rewrite_at, lost: false, state }, existed))
    }

    /// Whether a directory has one.
    pub fn is_in(directory: &dyn Directory) -> Result<bool> {
        let names = directory.list().map_err(|e| EngineError::io("list the data directory", e))?;
        Ok(names.iter().any(|n| n == NAME))
    }

    /// The error for a directory that must have one.
    pub fn missing() -> EngineError {
        EngineError::Corrupt { what: format!("the file \"{NAME}\" is missing, and there are log files or segments") }
    }

    /// Reads a directory's manifest without changing anything.
    pub fn read(directory: &dyn Directory) -> Result<ManifestState> {
        match Manifest::read_beginning(directory)? {
            (state, None) => Ok(state),
            (_, Some(damage)) => Err(damage),
        }
    }

    /// Puts a manifest that says this in the place of a directory's.
    pub fn replace(directory: &dyn Directory, state: &ManifestState) -> Result<()> {
        write_new(directory, state)?;
        replace(directory)
    }

    /// The state as far as it can be read, and the damage that it ends at.
    pub fn read_beginning(directory: &dyn Directory) -> Result<(ManifestState, Option<EngineError>)> {
        let io = |e| EngineError::io("read the manifest", e);
        let file = directory.open(NAME).map_err(io)?;
        let mut bytes = vec![0; file.len().map_err(io)? as usize];
        file.read_at(&mut bytes, 0).map_err(io)?;
        let mut state = ManifestState::default();
        let (mut at, mut has_crcs) = (0, true);
        while let Some((edits, length)) = decode_record(&bytes[at..], has_crcs) {
            if let Some(Edit::OtherVersion(version)) = edits.first() {
                return Err(EngineError::Corrupt { what: format!("file \"{NAME}\" has unknown format version {version}") });
            }
            match edits.first() {
                Some(Edit::Reset) => {}
                Some(Edit::OldReset) => has_crcs = false,
                _ if at == 0 => break,
                _ => {}
            }
            state.apply_record(&edits);
            at += length;
        }
        let is_damaged = at == 0 || has_record(&bytes[at..]);
        let damage = is_damaged.then(|| EngineError::Corrupt {
            what: format!("the file \"{NAME}\" is damaged at offset {at}: not a whole record, and others follow"),
        });
        match damage {
            Some(damage) if at == 0 => Err(damage),
            damage => Ok((state, damage)),
        }
    }

    pub fn state(&self) -> &ManifestState {
        &self.state
    }

    /// Whether the engine must be poisoned: which file is in force is unknown.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Reserves disk space for a record of `edits` and of others that name `names` files or trees. After an error everything is
    /// as before, unless the manifest is lost then.
    pub fn reserve(&mut self, edits: &[Edit], names: usize) -> Result<()> {
        if self.offset >= self.rewrite_at {
            let mut state = self.state.clone();
            state.records += 1;
            let (file, offset) = write_new(&*self.directory, &state)?;
            self.lost = true;
            replace(&*self.directory)?;
            (self.lost, self.file, self.offset) = (false, file, offset);
            self.state = state;
            (self.allocated, self.rewrite_at) = (self.offset, REWRITE_BYTES.max(self.offset * 4));
        }
        let bytes = encode_record(edits).len() as u64 + names as u64 * NAME_BYTES_MAX + CHECKPOINT_BYTES;
        let needed = (self.offset + bytes).next_multiple_of(ALLOCATION_BYTES);
        if needed > self.allocated {
            self.file.write_at(&vec![0; (needed - self.allocated) as usize], self.allocated).map_err(io)?;
            self.allocated = needed;
        }
        Ok(())
    }

    /// Installs edits for which there is room, all or none; durable on return. After an error the caller must poison the engine.
    pub fn install(&mut self, edits: &[Edit]) -> Result<()> {
        let record = encode_record(edits);
        self.file.write_at(&record, self.offset).map_err(io)?;
        if !is_planted(Plant::SkipFsync) {
            self.file.sync().map_err(io)?;
        }
        self.offset += record.len() as u64;
        self.allocated = self.allocated.max(self.offset);
        // Only now: files that the durable state may name are not removed because of a record that failed.
        self.state.apply_record(edits);
        Ok(())
    }
}

/// Writes a new manifest beside the old one, or leaves nothing.
fn write_new(directory: &dyn Directory, state: &ManifestState) -> Result<(Arc<dyn File>, u64)> {
    let record = encode_record(&state.edits());
    let file = directory.create(NEW_NAME).map_err(io)?;
    let written = file.write_at(&record, 0).and_then(|()| file.sync());
    written.map_err(|e| {
        // A file that cannot be removed now is removed by the next start.
        let _ = directory.remove(NEW_NAME);
        io(e)
    })?;
    Ok((file, record.len() as u64))
}

/// Puts the new manifest in the old one's place.
fn replace(directory: &dyn Directory) -> Result<()> {
    directory.rename(NEW_NAME, NAME).map_err(io)?;
    directory.sync_names().map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;
    use melba_vfs::{Faults, FaultyDirectory, FileOperation, MemoryDirectory};

    fn tree(id: u64) -> TreeRecord {
        TreeRecord {
            id: TreeId(id),
            is_index: id.is_multiple_of(2),
            table: TreeId(1),
            persistence: Persistence::Unlogged,
            next_row: 77,
            live: 5,
            kinds: vec![Kind::Int4, Kind::Text],
        }
    }

    fn segment(file: u64) -> SegmentFile {
        SegmentFile { file, assigned: Csn(file * 2), footer_crc: file as u32 * 3 }
    }

    fn edits() -> Vec<Vec<Edit>> {
        let state = SequenceState { last_value: -5, is_called: true };
        let definition = SequenceDefinition { increment: 1, min: -9, max: 9, cycle: true };
        let sequence = SequenceRecord { id: SequenceId(9), persistence: Persistence::Logged, definition, state, start: state };
        vec![
            vec![Edit::Tree(tree(1)), Edit::Tree(tree(2)), Edit::Sequence(sequence)],
            vec![Edit::Segments { tree: TreeId(1), removed: vec![], added: [3, 2, 1].map(segment).to_vec() }],
            vec![Edit::Segments { tree: TreeId(1), removed: vec![2, 1], added: vec![segment(4)] }, Edit::DropTree(TreeId(2))],
            vec![
                Edit::Checkpoint { replay: Lsn(5), csn: Csn(6), next_tree: 7, next_file: 8 },
                Edit::Clean(false),
                Edit::Log(Some(Known { start: Lsn(3), durable: Lsn(9) })),
            ],
        ]
    }

    #[test]
    fn the_format_is_as_documented() {
        let document = include_str!("../../../docs/design/manifest.md");
        let source = include_str!("manifest.rs");
        let diagram = source.lines().filter_map(|l| l.strip_prefix("//! ")).filter(|l| l.contains(" | "));
        assert_eq!(diagram.inspect(|l| assert!(document.contains(l.trim()), "{l}")).count(), 8);
        assert!(document.contains("1 reset     version u32") && document.contains(&format!("Format version: {FORMAT_VERSION}.")));
        let checkpoint = Edit::Checkpoint { replay: Lsn(5), csn: Csn(6), next_tree: 7, next_file: 8 };
        let log = Edit::Log(Some(Known { start: Lsn(5), durable: Lsn(9) }));
        let record = encode_record(&[Edit::Reset, Edit::Database { number: 3, record: 4 }, checkpoint, Edit::Clean(true), log]);
        assert_eq!(crate::testing::documented(document, "## A record, byte by byte"), crate::testing::hex(&record));
        let record = encode_record(&[Edit::Checkpoint { replay: Lsn(1), csn: Csn(2), next_tree: 3, next_file: 4 }]);
        assert_eq!(record.len(), RECORD_HEADER_BYTES + 1 + 4 * 8);
        assert_eq!((record[0], record[8], record[9], record[17]), (33, 7, 1, 2));
        assert_eq!(encode_record(&edits()[0][2..]).len(), RECORD_HEADER_BYTES + 1 + 8 + 1 + 25 + 9 + 9);
    }

    #[test]
    fn a_manifest_of_the_version_before_is_read_and_its_database_gets_a_number() {
        // As version 2 wrote it: a reset, a table with a segment, a checkpoint; then a segment more.
        let record = |edits: &[u8]| {
            let mut out = (edits.len() as u32).to_le_bytes().to_vec();
            let crc = crc32c::crc32c_append(crc32c::crc32c(&out), edits);
            out.extend(crc.to_le_bytes());
            out.extend(edits);
            out
        };
        let segment_edit = |file: u8| {
            let mut edit = vec![4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1];
            edit.extend(u64::from(file).to_le_bytes());
            edit.extend([0; 8]);
            edit
        };
        let mut first = vec![1, 2, 0, 0, 0];
        encode(&Edit::Tree(tree(1)), &mut first);
        first.extend(segment_edit(7));
        encode(&Edit::Checkpoint { replay: Lsn(5), csn: Csn(6), next_tree: 7, next_file: 8 }, &mut first);
        let d = MemoryDirectory::new();
        let file = d.create(NAME).expect("creates");
        file.write_at(&[record(&first), record(&segment_edit(8))].concat(), 0).expect("writes");
        let state = Manifest::read(&*d).expect("reads");
        let unknown = |file| SegmentFile { file, assigned: Csn(0), footer_crc: 0 };
        assert_eq!(state.segments[&TreeId(1)], [8, 7].map(unknown));
        assert_eq!((state.replay, state.database, state.log), (Lsn(5), 0, None));
        let (manifest, existed) = Manifest::open(Arc::clone(&d) as Arc<dyn Directory>, 77).expect("opens");
        assert!(existed && manifest.state().database == 77 && manifest.state().records == 2);
        assert_eq!(Manifest::read(&*d).expect("reads"), *manifest.state());
        let again = Manifest::open(Arc::clone(&d) as Arc<dyn Directory>, 78).expect("opens").0;
        assert_eq!((again.state().database, again.state().records), (77, 3));
    }

    #[test]
    fn a_torn_manifest_is_the_state_before_the_torn_record() {
        let steps = edits();
        let d = MemoryDirectory::new();
        let (mut manifest, existed) = Manifest::open(Arc::clone(&d) as Arc<dyn Directory>, 77).expect("opens");
        assert!(!existed);
        let mut states = vec![manifest.state().clone()];
        let mut ends = vec![manifest.offset];
        for step in &steps {
            manifest.reserve(step, 0).and_then(|()| manifest.install(step)).expect("installs");
            states.push(manifest.state().clone());
            ends.push(manifest.offset);
        }
        assert_eq!(states[3].segments[&TreeId(1)], [segment(3), segment(4)]);
        for cut in ends[0]..=ends[4] {
            let copy = d.after_power_cut(&mut || true);
            copy.open(NAME).expect("there").set_len(cut).expect("cuts");
            let whole = ends.iter().rposition(|e| *e <= cut).expect("the first is whole");
            assert_eq!(Manifest::read(&*copy).expect("reads"), states[whole]);
        }
        for byte in 0..ends[3] {
            d.flip_bit(NAME, byte * 8 + byte % 8).expect("flips");
            let read = Manifest::read(&*d);
            assert!(matches!(&read, Err(EngineError::Corrupt { what }) if what.contains(NAME)), "byte {byte}");
            d.flip_bit(NAME, byte * 8 + byte % 8).expect("flips");
        }
    }

    #[test]
    fn a_record_that_failed_changes_nothing_in_memory() {
        // Files that are not named are removed, and the durable manifest may still name them.
        let faults = Faults::new();
        let d = FaultyDirectory::new(MemoryDirectory::new(), Arc::clone(&faults));
        let (mut manifest, _) = Manifest::open(d, 77).expect("opens");
        manifest.install(&edits()[0]).expect("installs");
        manifest.install(&edits()[1]).expect("installs");
        for rewrite_at in [u64::MAX, 0] {
            manifest.rewrite_at = rewrite_at;
            let before = manifest.state().clone();
            faults.fail_once(&[FileOperation::Sync], 0);
            assert!(manifest.install(&edits()[2]).is_err());
            assert_eq!(*manifest.state(), before);
        }
    }

    #[test]
    fn a_long_manifest_is_rewritten_and_survives_power_cuts_at_every_sync() {
        for cut in 0..40 {
            let d = MemoryDirectory::new();
            d.cut_power_at_sync(cut);
            let mut acknowledged = 0;
            if let Ok((mut manifest, _)) = Manifest::open(Arc::clone(&d) as Arc<dyn Directory>, 77) {
                manifest.rewrite_at = 2000;
                for i in 1..=36 {
                    let edit = [Edit::Tree(tree(i))];
                    if manifest.reserve(&edit, 0).and_then(|()| manifest.install(&edit)).is_err() {
                        break;
                    }
                    acknowledged = i;
                }
            }
            let after = d.after_power_cut(&mut || cut % 2 == 0);
            let Ok((manifest, existed)) = Manifest::open(after, 78) else { panic!("cut {cut}") };
            let found = manifest.state().trees.len() as u64;
            assert!(found == acknowledged || found == acknowledged + 1, "cut {cut}: {found} {acknowledged}");
            assert!(existed || acknowledged == 0);
        }
    }
}
