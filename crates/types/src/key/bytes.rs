//! Strings of bytes within keys.

/// Appends a string so that bytes appended behind it do not affect its order: a zero is followed by 255, the end is two zeros.
pub(crate) fn encode_bytes(v: &[u8], out: &mut Vec<u8>) {
    for &b in v {
        out.push(b);
        if b == 0 {
            out.push(255);
        }
    }
    out.extend_from_slice(&[0, 0]);
}
