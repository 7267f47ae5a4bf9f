//! The length of PostgreSQL's row, which decides which values are compressed and moved out of line.
//!
//! The numbers are those of PostgreSQL's pages of 8 KB, kept so that the same rows are treated the same, though this storage has no pages.

use melba_fmgr::varlena::{HEADER_BYTES, SHORT_BYTES_MAX};

/// A row that is longer is toasted.
pub const TUPLE_BYTES_MAX: usize = 2032;
/// The size to which EXTENDED and EXTERNAL values are reduced, unless the table says otherwise (toast_tuple_target).
pub const TUPLE_TARGET: usize = 2032;
/// The row size up to which MAIN values stay in the row.
pub const TUPLE_TARGET_MAIN: usize = 8160;
/// A pointer in a row.
pub const POINTER_BYTES: usize = 18;
const TUPLE_HEADER_BYTES: usize = 23;

/// A column as the row's length depends on it.
#[derive(Clone, Copy, Debug)]
pub struct ColumnShape {
    /// pg_type.typlen.
    pub length: i16,
    /// pg_type.typalign in bytes.
    pub align: usize,
    /// Short values have a header of one byte: all but PLAIN ones.
    pub packable: bool,
}

/// A value's part in the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Null,
    /// Fixed width.
    Fixed,
    /// Of varying width, with its header of four bytes.
    Plain(usize),
    /// The same, compressed.
    Compressed(usize),
    Pointer,
}

/// Bytes of the header, with the bitmap that rows with nulls have.
pub fn header_bytes(parts: &[Part]) -> usize {
    let nulls = parts.contains(&Part::Null);
    (TUPLE_HEADER_BYTES + if nulls { parts.len().div_ceil(8) } else { 0 }).next_multiple_of(8)
}

/// Bytes of the values.
pub fn data_bytes(shapes: &[ColumnShape], parts: &[Part]) -> usize {
    let mut at: usize = 0;
    for (shape, part) in shapes.iter().zip(parts) {
        at = match *part {
            Part::Null => at,
            Part::Fixed => at.next_multiple_of(shape.align) + shape.length.max(0) as usize,
            Part::Plain(bytes) if shape.packable && bytes - HEADER_BYTES < SHORT_BYTES_MAX => at + bytes - HEADER_BYTES + 1,
            Part::Plain(bytes) | Part::Compressed(bytes) => at.next_multiple_of(shape.align) + bytes,
            Part::Pointer => at + POINTER_BYTES,
        };
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_long_as_postgresqls() {
        let int = ColumnShape { length: 4, align: 4, packable: false };
        let text = ColumnShape { length: -1, align: 4, packable: true };
        let shapes = [int, text, text, int];
        let parts = [Part::Fixed, Part::Plain(4 + 126), Part::Null, Part::Fixed];
        assert_eq!(header_bytes(&parts), 24);
        assert_eq!(data_bytes(&shapes, &parts), 136, "a short value lies unaligned");
        assert_eq!(data_bytes(&shapes, &[Part::Fixed, Part::Plain(4 + 127), Part::Pointer, Part::Fixed]), 160);
        assert_eq!(header_bytes(&[Part::Fixed; 9]), 24);
        assert_eq!(header_bytes(&[Part::Null; 9]), 32);
    }
}
