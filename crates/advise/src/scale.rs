//! From a sample to the whole table.
//!
//! What is compressed alone grows with the rows. A dense section grows slower, for later values find more that they share with earlier
//! ones, until it is as long as sections get; then there are more of them.

/// Sections do not grow faster than their values, nor slower than this power of their number.
const EXPONENTS: (f64, f64) = (0.3, 1.0);

/// What dense values of a sample took, and what is known beside it.
#[derive(Clone, Copy, Debug)]
pub struct Dense {
    pub bytes: f64,
    /// Of the sample's first half.
    pub half_bytes: f64,
    pub raw_bytes: f64,
    /// Of the whole table.
    pub raw_total: f64,
    /// Raw bytes of a section as long as sections get.
    pub section_raw: f64,
}

impl Dense {
    /// Bytes of the whole table's values.
    pub fn total(&self) -> f64 {
        let growth = self.raw_total / self.raw_bytes.max(1.0);
        if growth <= 1.0 {
            return self.bytes;
        }
        // As far as one section goes.
        let within = (self.section_raw.min(self.raw_total) / self.raw_bytes.max(1.0)).max(1.0);
        let exponent = (self.bytes / self.half_bytes.max(1.0)).log2().clamp(EXPONENTS.0, EXPONENTS.1);
        self.bytes * within.powf(exponent) * growth / within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_grow_slower_until_they_are_full() {
        let dense =
            Dense { bytes: 20.0, half_bytes: 20.0 / 2f64.sqrt(), raw_bytes: 100.0, raw_total: 1600.0, section_raw: 400.0 };
        // Four times as many values take twice the room; there are four such sections.
        assert!((dense.total() - 160.0).abs() < 1e-9);
        assert_eq!(Dense { raw_total: 100.0, ..dense }.total(), 20.0, "all of it was tried");
        let alone = Dense { half_bytes: 10.0, ..dense };
        assert!((alone.total() - 320.0).abs() < 1e-9, "what shares nothing grows with the rows");
        let full = Dense { section_raw: 50.0, ..dense };
        assert!((full.total() - 320.0).abs() < 1e-9, "the sample has several sections");
    }
}
