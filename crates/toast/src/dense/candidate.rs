//! The references among which a section chooses.
//!
//! Readers keep one decoded copy of a reference, however many sections have it. So a section prefers the reference of another
//! section, then that one with what its own values share besides, and last one of its own values alone.

use std::collections::HashSet;

use super::reference::Coverage;
use super::{BlockEncoder, REFERENCE_BYTES_MOST, Spool, chunks};
use crate::CodecError;

/// Bytes of a reference that continues another section's, in those that a section's own may have: two of them still fit into a
/// shard of the block cache.
const SHARED_BYTES: usize = 3;

/// How much larger a section may become for a reference that is there already, in thousandths.
const ALLOWANCE: usize = 20;
/// The same where there are more references than memory has room for: a read decodes its reference anew then.
const ALLOWANCE_CROWDED: usize = 250;

/// The reference of another section.
pub struct Offer {
    pub reference: Vec<u8>,
    /// Its bytes in a file.
    pub stored_bytes: usize,
    /// There are more references already than memory has room for.
    pub is_crowded: bool,
}

/// A reference that a section may have.
#[derive(Default)]
pub struct Candidate {
    pub reference: Vec<u8>,
    /// It is the one that was offered.
    pub is_offered: bool,
    /// Its bytes in a file; of one that is not stored yet, those at a fast level.
    pub stored_bytes: usize,
    /// How much larger a section may become with it than with the next candidate, in thousandths.
    pub allowance: usize,
}

impl Candidate {
    fn new(reference: Vec<u8>, level: i32) -> Candidate {
        let mut encoded = Vec::new();
        let is_smaller = BlockEncoder::new(&[], level).encode(&reference, reference.len(), &mut encoded);
        let stored_bytes = if is_smaller { encoded.len() } else { reference.len() };
        Candidate { reference, is_offered: false, stored_bytes, allowance: 0 }
    }
}

/// What a section's references are made of.
pub struct Material<'a> {
    pub spool: &'a Spool,
    /// The values, of the spool's, that the coverage is of.
    pub values: &'a [u32],
    pub coverage: Coverage,
    /// Most bytes of a reference of this section's values alone.
    pub bytes_max: usize,
    /// The size of its chunks (`chunks::cut`).
    pub bits: u32,
    /// zstd's level.
    pub level: i32,
}

impl Material<'_> {
    /// The references that a section may have, the preferred one first.
    ///
    /// # Errors
    /// `Malformed` when the spool's memory has changed: a bug of ours.
    pub fn candidates(&self, offer: Option<Offer>) -> Result<Vec<Candidate>, CodecError> {
        let own = self.extend(vec![0], self.bytes_max, HashSet::new())?;
        let shared_bytes_max = (self.bytes_max * SHARED_BYTES).min(REFERENCE_BYTES_MOST);
        // A longer one may come from a time when there was more memory.
        let Some(offer) = offer.filter(|offer| offer.reference.len() <= shared_bytes_max + 1) else {
            return Ok(own.into_iter().collect());
        };
        let mut known = Vec::new();
        chunks::cut(&offer.reference, self.bits, &mut known);
        let known = known.iter().map(|chunk| chunk.hash).collect();
        let mut continued = self.extend(offer.reference.clone(), shared_bytes_max, known)?;
        let mut offered =
            Candidate { reference: offer.reference, is_offered: true, stored_bytes: offer.stored_bytes, allowance: ALLOWANCE };
        // The last that is shared stands against the section's own.
        let last = continued.as_mut().unwrap_or(&mut offered);
        last.allowance = if offer.is_crowded { ALLOWANCE_CROWDED } else { ALLOWANCE };
        Ok([Some(offered), continued, own].into_iter().flatten().collect())
    }

    /// A reference of at most `bytes_max` that begins with another one, which has the `known` chunks; `None`: nothing is missing
    /// in that.
    fn extend(&self, mut reference: Vec<u8>, bytes_max: usize, known: HashSet<u64>) -> Result<Option<Candidate>, CodecError> {
        let pieces = self.coverage.choose((bytes_max + 1).saturating_sub(reference.len()), known);
        let mut reader = self.spool.reader();
        for piece in &pieces {
            let value = reader.get(self.values[piece.value as usize] as usize)?;
            reference.extend_from_slice(&value[piece.from as usize..piece.to as usize]);
        }
        Ok((!pieces.is_empty()).then(|| Candidate::new(reference, self.level)))
    }
}
