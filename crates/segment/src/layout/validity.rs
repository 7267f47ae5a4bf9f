//! Which rows of a block are not null.
//!
//! ```text
//! 0 all | 1 none | 2, a u64 for each 64 rows, bit set: not null
//! ```

use melba_types::Bitmap;

use melba_types::bytes::ByteReader;

const ALL: u8 = 0;
const NONE: u8 = 1;
const SOME: u8 = 2;

/// The validity of a block's rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Validity {
    All,
    None,
    /// A bitmap at this offset of the content.
    Some(usize),
}

/// Appends the validity of rows `start..start + n`; absent is all valid.
pub(crate) fn encode(validity: Option<&Bitmap>, start: usize, n: usize, out: &mut Vec<u8>) {
    let Some(validity) = validity else { return out.push(ALL) };
    let valid = (start..start + n).filter(|&i| validity.get(i)).count();
    if valid == n {
        out.push(ALL);
    } else if valid == 0 {
        out.push(NONE);
    } else {
        out.push(SOME);
        for from in (start..start + n).step_by(64) {
            let to = (from + 64).min(start + n);
            let word = (from..to).fold(0u64, |word, i| word | u64::from(validity.get(i)) << (i - from));
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
}

impl Validity {
    pub fn parse(reader: &mut ByteReader<'_>, rows: usize) -> Option<Validity> {
        Some(match reader.u8()? {
            ALL => Validity::All,
            NONE => Validity::None,
            SOME => {
                let at = reader.position();
                reader.take(rows.div_ceil(64) * 8)?;
                Validity::Some(at)
            }
            _ => return None,
        })
    }

    #[inline]
    pub fn get(&self, bytes: &[u8], i: usize) -> bool {
        match *self {
            Validity::All => true,
            Validity::None => false,
            Validity::Some(at) => bytes[at + (i >> 3)] >> (i & 7) & 1 != 0,
        }
    }

    /// Appends rows `start..start + n` to `out`, which holds the `before` rows before them or is absent as long as all were valid.
    pub fn decode(&self, bytes: &[u8], start: usize, n: usize, before: usize, out: &mut Option<Bitmap>) {
        if matches!(self, Validity::All) && out.is_none() {
            return;
        }
        let out = out.get_or_insert_with(|| Bitmap::filled(before, true));
        match *self {
            Validity::All => out.extend_filled(n, true),
            Validity::None => out.extend_filled(n, false),
            Validity::Some(at) => {
                let word = |i: usize| {
                    let mut word = [0; 8];
                    word.copy_from_slice(&bytes[at + i * 8..at + i * 8 + 8]);
                    u64::from_le_bytes(word)
                };
                out.extend_words((start >> 6..(start + n).div_ceil(64)).map(word), start & 63, n);
            }
        }
    }
}
