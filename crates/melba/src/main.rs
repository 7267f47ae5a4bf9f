//! The melba binary.
fn main() {}
