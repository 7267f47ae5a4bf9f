//! Layouts of blocks' contents. Each keeps access to value `i` O(1) (or logarithmic in the number of runs) once its block is in
//! memory, and decodes ranges in tight loops. Which blocks a chunk has is its encoding's business (`encoding`).

pub(crate) mod digits;
pub(crate) mod packed;
pub(crate) mod strings;
pub(crate) mod symbols;
pub(crate) mod validity;
pub(crate) mod words;
