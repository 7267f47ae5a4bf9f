//! The hash of a jsonb, bit for bit as PostgreSQL's: rows are put into hash partitions by it.
//!
//! Containers mark their beginning in the hash, scalars and keys rotate it and add their own. With a seed both halves are treated so.

use melba_functions::hash::{hash_word_extended, rotate_halves, value_hash};
use melba_types::jsonb::{Json, View};
use melba_types::{Datum, Result, limits};

/// The marks of containers, PostgreSQL's JB_FARRAY and JB_FOBJECT.
const ARRAY: u64 = 0x4000_0000;
const OBJECT: u64 = 0x2000_0000;

/// Without a seed it is the plain hash, in the low 32 bits.
pub fn root_hash(json: Json<'_>, seed: Option<u64>) -> Result<u64> {
    let mut hash = Hash { seed, state: 0 };
    match json.view() {
        View::Array(array) if array.is_empty() => return Ok(seed.unwrap_or_default()),
        View::Object(object) if object.is_empty() => return Ok(seed.unwrap_or_default()),
        View::Array(_) | View::Object(_) => hash.add(json)?,
        // A scalar at the top is the one element of an array.
        _ => {
            hash.begin(ARRAY);
            hash.add(json)?;
        }
    }
    Ok(hash.state)
}

struct Hash {
    seed: Option<u64>,
    state: u64,
}

impl Hash {
    fn begin(&mut self, mark: u64) {
        self.state ^= if self.seed.is_some() { mark << 32 | mark } else { mark };
    }

    fn scalar(&mut self, own: u64) {
        self.state = rotate_halves(self.state) ^ own;
    }

    fn text(&mut self, text: &str) -> Result<()> {
        let own = value_hash(&Datum::text(text), self.seed)?;
        self.scalar(own);
        Ok(())
    }

    fn add(&mut self, json: Json<'_>) -> Result<()> {
        limits::check_stack()?;
        match json.view() {
            View::Null => self.scalar(self.seed.unwrap_or_default().wrapping_add(1)),
            View::Bool(value) => self.scalar(match self.seed {
                Some(seed) if seed != 0 => hash_word_extended(u32::from(value), seed),
                _ if value => 2,
                _ => 4,
            }),
            View::Number(number) => {
                let own = value_hash(&Datum::Numeric(number), self.seed)?;
                self.scalar(own);
            }
            View::String(text) => self.text(text)?,
            View::Array(array) => {
                self.begin(ARRAY);
                for element in array.iter() {
                    self.add(element)?;
                }
            }
            View::Object(object) => {
                self.begin(OBJECT);
                for (key, value) in object.iter() {
                    self.text(key)?;
                    self.add(value)?;
                }
            }
        }
        Ok(())
    }
}
