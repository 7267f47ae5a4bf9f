use std::path::Path;

use super::format::{BlockHeader, FileHeader};
use super::*;

fn contents() -> Contents {
    let table = |name: &str| StreamInfo {
        kind: StreamKind::Table { schema: "s".into(), name: name.into(), target: format!("s.{name} (a)") },
    };
    Contents {
        server: "PostgreSQL 18 (Melba)".into(),
        database: "d".into(),
        taken_at: "now".into(),
        entries: vec![Entry { section: Section::Before, kind: "TABLE".into(), schema: None, name: "t".into(), sql: "x".into() }],
        streams: vec![table("one"), table("two")],
    }
}

/// Bytes that differ by stream and compress a little.
fn data(stream: u32, length: usize) -> Vec<u8> {
    (0..length).map(|i| ((i as u32).wrapping_mul(2654435761).rotate_left(stream) >> 24) as u8 & 0x3f).collect()
}

fn write(archive: ArchiveWriter, finished: bool) {
    archive.contents(&contents()).unwrap();
    std::thread::scope(|scope| {
        for stream in 1..=2u32 {
            let archive = &archive;
            scope.spawn(move || {
                let mut writer = archive.stream(stream, stream as usize - 1).unwrap();
                for piece in data(stream, 3 * BLOCK_BYTES + 5).chunks(77_777) {
                    writer.write(piece).unwrap();
                }
                if finished || stream == 1 {
                    writer.finish().unwrap();
                }
            });
        }
    });
    if finished {
        archive.finish().unwrap();
    }
}

fn read(reader: &ArchiveReader, stream: u32) -> crate::Result<Vec<u8>> {
    Ok(reader.blocks(stream)?.collect::<crate::Result<Vec<_>>>()?.concat())
}

#[test]
fn files_and_folders_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let [file, directory] = ["file", "directory"].map(|n| folder.path().join(n));
    write(ArchiveWriter::file(&file, 3).unwrap(), true);
    write(ArchiveWriter::directory(&directory, 2, 3).unwrap(), true);
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 2);
    for path in [&file, &directory] {
        let reader = ArchiveReader::open(path).unwrap();
        assert!(reader.is_whole());
        assert_eq!(reader.contents, contents());
        for stream in 1..=2 {
            assert_eq!(read(&reader, stream).unwrap(), data(stream, 3 * BLOCK_BYTES + 5));
            assert_eq!(reader.raw_bytes(stream), 3 * BLOCK_BYTES as u64 + 5);
        }
    }
    assert!(ArchiveWriter::file(&file, 3).is_err(), "nothing is overwritten");
}

#[test]
fn an_interrupted_dump_names_its_missing_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d");
    write(ArchiveWriter::file(&path, 3).unwrap(), false);
    let reader = ArchiveReader::open(&path).unwrap();
    assert!(!reader.is_whole());
    assert_eq!(reader.missing(), [&contents().streams[1]]);
    assert_eq!(read(&reader, 1).unwrap().len(), 3 * BLOCK_BYTES + 5);
    assert!(read(&reader, 2).unwrap_err().contains("table s.two"));
}

#[test]
fn a_cut_anywhere_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, cut] = ["whole", "cut"].map(|n| folder.path().join(n));
    write(ArchiveWriter::file(&whole, 3).unwrap(), true);
    let bytes = std::fs::read(&whole).unwrap();
    for length in (0..bytes.len()).step_by(bytes.len() / 50).chain([bytes.len() - 1]) {
        std::fs::write(&cut, &bytes[..length]).unwrap();
        assert!(!ArchiveReader::open(&cut).is_ok_and(|r| r.is_whole()), "cut at {length}");
    }
}

#[test]
fn a_flipped_bit_is_noticed_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, flipped] = ["whole", "flipped"].map(|n| folder.path().join(n));
    write(ArchiveWriter::file(&whole, 3).unwrap(), true);
    let bytes = std::fs::read(&whole).unwrap();
    for at in (0..bytes.len()).step_by(bytes.len() / 60) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        std::fs::write(&flipped, &damaged).unwrap();
        let sound = |path: &Path| {
            let reader = ArchiveReader::open(path)?;
            if !reader.is_whole() {
                return Err("not whole".to_owned());
            }
            (1..=2).try_for_each(|s| read(&reader, s).map(drop))
        };
        // The dump's id is of no consequence in a single file.
        assert_eq!(sound(&flipped).is_err(), !(16..24).contains(&at), "flipped at {at}");
    }
}

#[test]
fn the_bytes_are_as_documented() {
    let header = FileHeader { part: 1, dump: 0x0807060504030201 }.encode();
    assert_eq!(header, *b"MELBADMP\x02\0\0\0\x01\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08");
    let block = BlockHeader::new(3, 2, 5, b"stored").encode();
    assert_eq!(block[..16], *b"\x03\0\0\0\x02\0\0\0\x05\0\0\0\x06\0\0\0");
    let crc = crc32c::crc32c(&[&block[..16], b"stored"].concat());
    assert_eq!(block[16..], crc.to_le_bytes());
}
