use super::*;
use crate::CodecError;

/// "0 rows; 1 rows; 2 rows; ..." cut to `n` bytes.
fn counted(n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for i in 0.. {
        if out.len() >= n {
            break;
        }
        out.extend_from_slice(format!("{i} rows; ").as_bytes());
    }
    out.truncate(n);
    out
}

fn packed(source: &[u8]) -> Option<Vec<u8>> {
    let mut out = b"kept".to_vec();
    let compressed = compress(source, &mut out);
    assert!(out.starts_with(b"kept"));
    if !compressed {
        assert_eq!(out.len(), 4, "a refusal leaves the output as it was");
    }
    compressed.then(|| out.split_off(4))
}

/// The results of `pg_column_size` of PostgreSQL 18.6 for these values, less the 8 bytes of its header: each of the hash table's sizes.
#[test]
fn sizes_are_those_of_postgresql() {
    let expected = [
        (100, 45),
        (127, 55),
        (128, 56),
        (255, 102),
        (256, 100),
        (300, 117),
        (511, 188),
        (512, 188),
        (600, 219),
        (1000, 353),
        (1024, 361),
        (3000, 982),
        (5000, 1610),
    ];
    for (source, stored) in expected {
        assert_eq!(packed(&counted(source)).map(|p| p.len()), Some(stored), "{source} bytes");
    }
    let repeated = b"abc".repeat(1000);
    assert_eq!(packed(&repeated[..100]).unwrap().len(), 7);
    assert_eq!(packed(&repeated).unwrap().len(), 38);
}

/// The bytes that PostgreSQL 18.6 keeps in its TOAST table for this value, by their FNV-1a hash.
#[test]
fn bytes_are_those_of_postgresql() {
    let packed = packed(&counted(20_000)).unwrap();
    let hash = packed.iter().fold(0xCBF2_9CE4_8422_2325u64, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01B3));
    assert_eq!(hash, 0x5b20af5d060dbc05);
}

#[test]
fn the_strategy_refuses_short_or_dense_values() {
    assert_eq!(packed(&[b'a'; 31]), None);
    assert!(packed(&[b'a'; 32]).is_some());
    let noise: Vec<u8> =
        (0..3000u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8 ^ ((i * i) >> 3) as u8).collect();
    let mut late = noise[..1200].to_vec();
    late.extend_from_slice(&[b'x'; 9000]);
    assert_eq!(packed(&late), None, "no match in the first kilobyte");
}

#[test]
fn prefixes_decode_and_nonsense_does_not_escape() {
    let source = counted(3000);
    let stream = packed(&source).unwrap();
    for n in [0, 1, 17, 1000, 3000] {
        let mut out = vec![0; n];
        assert_eq!(decompress(&stream, &mut out), Ok(n));
        assert_eq!(out, source[..n]);
    }
    let mut out = vec![0; 3000];
    assert_eq!(decompress(&[1, 0x0F, 1, 0], &mut out), Err(CodecError::Malformed), "offset before the start");
    assert_eq!(decompress(&[1, 0x0F], &mut out), Err(CodecError::Malformed), "tag cut short");
    for at in 0..stream.len() {
        let mut bad = stream.clone();
        bad[at] ^= 0x55;
        let _ = decompress(&bad, &mut out);
    }
}
