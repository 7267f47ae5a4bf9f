//! Decoders meet bytes that no encoder wrote: damaged streams, frames and stored forms give errors or wrong values, never a panic,
//! never more bytes than asked for.

use melba_toast::{Method, Stored, compress, decompress, frame};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// Changes, cuts or extends some bytes.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(4) {
            match self.below(4) {
                0 => bytes.truncate(self.below(bytes.len())),
                1 => bytes.push(self.next() as u8),
                _ if bytes.is_empty() => {}
                2 => {
                    let at = self.below(bytes.len());
                    bytes[at] = self.next() as u8;
                }
                _ => {
                    let at = self.below(bytes.len());
                    bytes[at] ^= 1 << self.below(8);
                }
            }
        }
    }
}

const METHODS: [Method; 3] = [Method::Pglz, Method::Lz4, Method::Zstd];

fn value(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..1 + random.below(60) {
        let word =
            [&b"melba "[..], b"toast, ", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"sliced ", b"thin; "][random.below(5)];
        (0..1 + random.below(5)).for_each(|_| out.extend_from_slice(word));
        out.push(random.next() as u8);
    }
    out
}

#[test]
fn damaged_streams_stay_within_their_buffers() {
    let mut random = Random(1);
    for _ in 0..4000 {
        let raw = value(&mut random);
        let method = METHODS[random.below(3)];
        let mut stream = Vec::new();
        if !compress(method, 3, &raw, &mut stream) {
            continue;
        }
        let mut back = vec![0; raw.len()];
        assert_eq!(decompress(method, &stream, &mut back), Ok(()));
        assert_eq!(back, raw);
        random.damage(&mut stream);
        // Of any length, with guards behind.
        let length = random.below(raw.len() * 2);
        let mut target = vec![0xEE; length + 64];
        let _ = decompress(method, &stream, &mut target[..length]);
        assert!(target[length..].iter().all(|b| *b == 0xEE), "{method:?} wrote beyond its target");
    }
}

#[test]
fn damaged_frames_and_forms_are_errors_or_bounded() {
    let mut random = Random(2);
    for _ in 0..4000 {
        let raw = value(&mut random);
        let mut bytes = Vec::new();
        frame::encode(Some(METHODS[random.below(3)]), 3, &raw, &mut bytes);
        random.damage(&mut bytes);
        let mut out = b"before".to_vec();
        let _ = frame::decode(&bytes, &mut out);
        assert!(out.starts_with(b"before"));
        let length = random.below(raw.len() * 2);
        let mut target = vec![0xEE; length + 64];
        let _ = frame::decode_into(&bytes, &mut target[..length]);
        assert!(target[length..].iter().all(|b| *b == 0xEE), "a frame is written beyond its target");
        let _ = frame::stream_bytes(&[&bytes]);
        let _ = Stored::parse(&bytes).map(|s| (s.method(), s.raw_bytes(), s.characters()));
        let noise: Vec<u8> = (0..random.below(40)).map(|_| random.next() as u8).collect();
        let _ = Stored::parse(&noise);
        let _ = frame::decode(&noise, &mut out);
    }
}
