//! The payload of log records: the changes of a commit, or the position of a sequence. docs/design/wal.md defines the bytes.

use std::sync::Arc;

use melba_store::{
    KeyBytes, Persistence, Sequence, SequenceDefinition, SequenceId, SequenceState, Tree, TreeData, put_kinds, read_kinds,
};
use melba_types::bytes::{ByteReader, put_u64, put_varint};
use melba_types::{Kind, RowId, TreeId};

use crate::write_set::{ChangeKind, TreeHeads, WriteSet};

const CREATE_TABLE: u8 = 1;
const CREATE_INDEX: u8 = 2;
const DROP_TREE: u8 = 3;
const EXTEND_TABLE: u8 = 4;
const CREATE_SEQUENCE: u8 = 5;
const DROP_SEQUENCE: u8 = 6;
const ROWS: u8 = 7;
const ENTRIES: u8 = 8;
/// Of the version before: without checksums.
const OLD_LINK_SEGMENTS: u8 = 9;
const SEQUENCE_STATE: u8 = 10;
const LINK_SEGMENTS: u8 = 11;

/// One operation read back.
pub(crate) enum Operation<'a> {
    CreateTable {
        tree: TreeId,
        persistence: Persistence,
        kinds: Vec<Kind>,
    },
    CreateIndex {
        tree: TreeId,
        table: TreeId,
        persistence: Persistence,
    },
    DropTree(TreeId),
    ExtendTable {
        tree: TreeId,
        kinds: Vec<Kind>,
    },
    CreateSequence {
        id: SequenceId,
        persistence: Persistence,
        definition: SequenceDefinition,
        state: SequenceState,
    },
    DropSequence(SequenceId),
    /// `None`: deleted.
    Row {
        tree: TreeId,
        row: RowId,
        bytes: Option<&'a [u8]>,
    },
    Entry {
        tree: TreeId,
        key: &'a [u8],
        live: bool,
    },
    /// Private segments of a bulk load, oldest first.
    LinkSegments {
        tree: TreeId,
        /// Each with the checksum of its footer, or 0.
        files: Vec<(u64, u32)>,
    },
    SequenceState {
        id: SequenceId,
        state: SequenceState,
    },
}

/// Appends the part of a write set that the log must hold; nothing when all of it is in unlogged or memory trees.
pub(crate) fn encode(writes: &WriteSet, out: &mut Vec<u8>) {
    encode_if(writes, |persistence| persistence == Persistence::Logged, out);
}

/// The same with the rows and entries of trees of the persistence that `holds` accepts.
pub(crate) fn encode_if(writes: &WriteSet, holds: impl Fn(Persistence) -> bool, out: &mut Vec<u8>) {
    for change in &writes.changes {
        encode_schema(&change.kind, writes, out);
    }
    for link in writes.links.iter().filter(|l| holds(l.tree.persistence)) {
        out.push(LINK_SEGMENTS);
        put_u64(link.tree.id.0, out);
        put_varint(1, out);
        let segment = link.run.segment();
        put_u64(segment.file, out);
        out.extend_from_slice(&segment.footer_crc.to_le_bytes());
    }
    for written in writes.trees.iter().filter(|t| !t.is_empty() && holds(t.tree.persistence)) {
        match &written.heads {
            TreeHeads::Rows(heads) => {
                out.push(ROWS);
                put_u64(written.tree.id.0, out);
                put_varint(heads.len() as u64, out);
                let mut last = 0;
                for (row, bytes) in writes.final_rows(heads) {
                    put_varint(row.0 - last, out);
                    last = row.0;
                    put_varint(bytes.map_or(0, |b| b.len() as u64 + 1), out);
                    out.extend_from_slice(bytes.map_or(&[], |b| &b[..]));
                }
            }
            TreeHeads::Keys(heads) => {
                out.push(ENTRIES);
                put_u64(written.tree.id.0, out);
                put_varint(heads.len() as u64, out);
                for (key, live) in writes.final_keys(heads) {
                    put_entry(key, live, out);
                }
            }
        }
    }
}

fn put_entry(key: &KeyBytes, live: bool, out: &mut Vec<u8>) {
    let key = key.as_slice();
    put_varint((key.len() as u64) << 1 | u64::from(live), out);
    out.extend_from_slice(key);
}

fn encode_schema(what: &ChangeKind, writes: &WriteSet, out: &mut Vec<u8>) {
    match what {
        ChangeKind::CreateTree(tree) if tree.persistence != Persistence::Temporary => encode_create(tree, out),
        ChangeKind::DropTree(tree) if tree.persistence != Persistence::Temporary => {
            out.push(DROP_TREE);
            put_u64(tree.id.0, out);
        }
        ChangeKind::ExtendTable { tree, .. } if tree.persistence != Persistence::Temporary => {
            if let Some((_, layout)) = writes.layouts.iter().find(|(id, _)| *id == tree.id) {
                out.push(EXTEND_TABLE);
                put_u64(tree.id.0, out);
                put_kinds(layout.kinds(), out);
            }
        }
        ChangeKind::CreateSequence(sequence) if sequence.persistence != Persistence::Temporary => {
            encode_create_sequence(sequence, out);
        }
        ChangeKind::DropSequence(sequence) if sequence.persistence != Persistence::Temporary => {
            out.push(DROP_SEQUENCE);
            put_u64(sequence.id.0, out);
        }
        _ => {}
    }
}

fn encode_create(tree: &Arc<Tree>, out: &mut Vec<u8>) {
    match &tree.data {
        TreeData::Table(table) => {
            out.push(CREATE_TABLE);
            put_u64(tree.id.0, out);
            out.push(tree.persistence as u8);
            put_kinds(table.layout.read().kinds(), out);
        }
        TreeData::Index(_) => {
            out.push(CREATE_INDEX);
            put_u64(tree.id.0, out);
            put_u64(tree.table.0, out);
            out.push(tree.persistence as u8);
        }
    }
}

fn encode_create_sequence(sequence: &Sequence, out: &mut Vec<u8>) {
    out.push(CREATE_SEQUENCE);
    put_u64(sequence.id.0, out);
    out.push(sequence.persistence as u8);
    sequence.definition.put(out);
    sequence.state.lock().state.put(out);
}

/// Bytes of the payload with a sequence's position.
pub(crate) const SEQUENCE_STATE_BYTES: usize = 1 + 8 + 9;

/// The payload with a sequence's position.
pub(crate) fn encode_sequence_state(id: SequenceId, state: SequenceState) -> Vec<u8> {
    let mut out = vec![SEQUENCE_STATE];
    put_u64(id.0, &mut out);
    state.put(&mut out);
    out
}

/// Hands each operation of a payload to `each`; `None` when the payload is malformed.
pub(crate) fn decode(payload: &[u8], each: &mut impl FnMut(Operation<'_>)) -> Option<()> {
    let mut r = ByteReader::new(payload);
    while !r.is_empty() {
        let code = r.u8()?;
        let id = r.u64()?;
        let tree = TreeId(id);
        match code {
            CREATE_TABLE => {
                each(Operation::CreateTable { tree, persistence: Persistence::read(&mut r)?, kinds: read_kinds(&mut r)? })
            }
            CREATE_INDEX => {
                let table = TreeId(r.u64()?);
                each(Operation::CreateIndex { tree, table, persistence: Persistence::read(&mut r)? });
            }
            DROP_TREE => each(Operation::DropTree(tree)),
            EXTEND_TABLE => each(Operation::ExtendTable { tree, kinds: read_kinds(&mut r)? }),
            CREATE_SEQUENCE => each(Operation::CreateSequence {
                id: SequenceId(id),
                persistence: Persistence::read(&mut r)?,
                definition: SequenceDefinition::read(&mut r)?,
                state: SequenceState::read(&mut r)?,
            }),
            DROP_SEQUENCE => each(Operation::DropSequence(SequenceId(id))),
            ROWS => decode_rows(&mut r, tree, each)?,
            ENTRIES => {
                for _ in 0..r.varint()? {
                    let length = r.varint()?;
                    let key = r.take((length >> 1) as usize)?;
                    each(Operation::Entry { tree, key, live: length & 1 != 0 });
                }
            }
            LINK_SEGMENTS | OLD_LINK_SEGMENTS => {
                let count = r.varint()?;
                let mut file = || Some((r.u64()?, if code == LINK_SEGMENTS { r.u32()? } else { 0 }));
                let files = (0..count).map(|_| file()).collect::<Option<_>>()?;
                each(Operation::LinkSegments { tree, files });
            }
            SEQUENCE_STATE => each(Operation::SequenceState { id: SequenceId(id), state: SequenceState::read(&mut r)? }),
            _ => return None,
        }
    }
    Some(())
}

fn decode_rows(r: &mut ByteReader<'_>, tree: TreeId, each: &mut impl FnMut(Operation<'_>)) -> Option<()> {
    let mut row = 0u64;
    for _ in 0..r.varint()? {
        row = row.checked_add(r.varint()?)?;
        let bytes = match r.varint()? {
            0 => None,
            length => Some(r.take((length - 1) as usize)?),
        };
        each(Operation::Row { tree, row: RowId(row), bytes });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use melba_types::Datum;
    use melba_types::row::RowLayout;

    #[test]
    fn payloads_and_rows_are_as_documented() {
        let document = include_str!("../../../../docs/design/wal.md");
        let mut out = vec![CREATE_TABLE];
        put_u64(1, &mut out);
        out.push(Persistence::Logged as u8);
        put_kinds(&[Kind::Int4, Kind::Text], &mut out);
        out.push(ROWS);
        put_u64(1, &mut out);
        out.extend([2, 3, 3, b'a', b'b', 2, 0, ENTRIES]);
        put_u64(2, &mut out);
        put_varint(1, &mut out);
        put_entry(&KeyBytes::new(b"xyz"), true, &mut out);
        assert_eq!(melba_store::testing::documented(document, "### A payload, byte by byte"), melba_store::testing::hex(&out));
        let mut seen = Vec::new();
        let decoded = decode(&out, &mut |operation| {
            seen.push(match operation {
                Operation::CreateTable { tree, kinds, .. } => format!("create {tree} {}", kinds.len()),
                Operation::Row { tree, row, bytes } => format!("row {tree} {row} {bytes:?}"),
                Operation::Entry { tree, key, live } => format!("entry {tree} {key:?} {live}"),
                _ => "another".to_owned(),
            });
        });
        assert_eq!(decoded, Some(()));
        let expected = ["create 1 2", "row 1 3 Some([97, 98])", "row 1 5 None", "entry 2 [120, 121, 122] true"];
        assert_eq!(seen, expected);
        assert_eq!(
            encode_sequence_state(SequenceId(1), SequenceState { last_value: 1, is_called: true }).len(),
            SEQUENCE_STATE_BYTES
        );

        let document = include_str!("../../../../docs/design/rowstore.md");
        let layout = RowLayout::new(vec![Kind::Int4, Kind::Int8, Kind::Text]);
        let row = layout.encode_row(&[Datum::Int4(7), Datum::Null, Datum::text("ab")]);
        assert_eq!(melba_store::testing::documented(document, "## A row, byte by byte"), melba_store::testing::hex(&row));
    }

    #[test]
    fn the_versions_in_the_overview_are_those_of_the_formats() {
        let document = include_str!("../../../../docs/design/recovery.md");
        let (wal, manifest) = (melba_wal::FORMAT_VERSION, melba_store::FORMAT_VERSION);
        assert!(document.contains(&format!("`manifest.md` ({manifest}), `wal.md` ({wal}) and `segment.md`")));
        for name in [melba_store::segment_name(0x1f), "MANIFEST".to_owned()] {
            let shown = if name.ends_with(".seg") {
                "number in 16 hexadecimal digits \".seg\""
            } else {
                "MANIFEST | MANIFEST.new | reserve"
            };
            assert!(document.contains(shown) && (name.len() == 20 || name == "MANIFEST"));
        }
    }
}
