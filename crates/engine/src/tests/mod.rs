//! Tests of the whole engine.

pub(crate) mod basic;
mod bulk;
mod crash;
mod damage;
mod durability;
mod early;
mod frames;
mod full;
mod growth;
mod limits;
mod load;
mod misplaced;
mod model;
mod panics;
mod salvage;
mod space;
mod spill;
mod threads;

/// The bytes of the fenced block that follows a line of a document: two-digit hexadecimal numbers up to a `|` on each line.
pub(crate) fn documented(document: &str, title: &str) -> String {
    let after = document.split_once(title).expect("the title is in the document").1;
    let block = after.split("```").nth(1).expect("a fenced block follows");
    let bytes = block.lines().skip(1).flat_map(|line| line.split('|').next().unwrap_or("").split_whitespace());
    bytes.collect::<Vec<_>>().join(" ")
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
