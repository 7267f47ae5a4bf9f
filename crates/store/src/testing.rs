//! Helpers that tests of formats share.

/// The bytes of the fenced block that follows a line of a document: two-digit hexadecimal numbers up to a `|` on each line.
pub fn documented(document: &str, title: &str) -> String {
    let after = document.split_once(title).expect("the title is in the document").1;
    let block = after.split("```").nth(1).expect("a fenced block follows");
    let bytes = block.lines().skip(1).flat_map(|line| line.split('|').next().unwrap_or("").split_whitespace());
    bytes.collect::<Vec<_>>().join(" ")
}

/// Bytes in the same form.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
