//! Numbers derived from their purpose: the same question has the same answer on every machine, in any order.

/// A number in which every bit depends on all parts (the finalizer of SplitMix64 over each).
pub fn hash(parts: &[u64]) -> u64 {
    parts.iter().fold(0x6C61_622D_646F_6373, |state: u64, part| {
        let mut z = (state ^ part).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

/// A stream of such numbers.
pub struct Random {
    seed: u64,
    next: u64,
}

impl Random {
    pub fn new(parts: &[u64]) -> Random {
        Random { seed: hash(parts), next: 0 }
    }

    pub fn number(&mut self) -> u64 {
        self.next += 1;
        hash(&[self.seed, self.next])
    }

    /// Below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    pub fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }

    /// Words with spaces between them.
    pub fn text(&mut self, words: &[&str], count: u64) -> String {
        (0..count).map(|_| self.one_of(words)).collect::<Vec<_>>().join(" ")
    }
}
