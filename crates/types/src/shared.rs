//! Long values that are made where they stay: a `Vec` or `String` would be copied into the `Arc` of a datum, which takes
//! twice the memory.

use std::convert::Infallible;
use std::sync::Arc;

/// So many bytes, as `fill` leaves them; they are zeros before.
///
/// # Errors
/// Those of `fill`.
pub fn bytes<E>(length: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Arc<[u8]>, E> {
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
    fill(Arc::get_mut(&mut bytes).expect("nobody else has it yet"))?;
    Ok(bytes)
}

/// The bytes as text; `None` when they are not UTF-8.
pub fn text(bytes: Arc<[u8]>) -> Option<Arc<str>> {
    std::str::from_utf8(&bytes).ok()?;
    // SAFETY: the allocations of `Arc<[u8]>` and `Arc<str>` are laid out alike, and the bytes are UTF-8.
    Some(unsafe { Arc::from_raw(Arc::into_raw(bytes) as *const str) })
}

/// Both, one after the other.
pub fn concat(a: &[u8], b: &[u8]) -> Arc<[u8]> {
    let fill = |to: &mut [u8]| -> Result<(), Infallible> {
        to[..a.len()].copy_from_slice(a);
        to[a.len()..].copy_from_slice(b);
        Ok(())
    };
    let Ok(bytes) = bytes(a.len() + b.len(), fill);
    bytes
}

/// A text `n` times.
///
/// # Panics
/// When that is longer than the address space.
pub fn repeat(s: &str, n: usize) -> Arc<str> {
    let length = s.len().checked_mul(n).expect("a length in memory");
    let fill = |to: &mut [u8]| -> Result<(), Infallible> {
        let mut done = s.len().min(length);
        to[..done].copy_from_slice(&s.as_bytes()[..done]);
        while done < length {
            let more = done.min(length - done);
            to.copy_within(..more, done);
            done += more;
        }
        Ok(())
    };
    let Ok(bytes) = bytes(length, fill);
    text(bytes).expect("a text several times is text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_what_vectors_would_be() {
        for n in [0, 1, 2, 3, 7, 1000] {
            assert_eq!(*repeat("né-", n), *"né-".repeat(n));
            assert_eq!(*repeat("", n), *"");
        }
        assert_eq!(*concat(b"ab", b"c"), *b"abc");
        assert_eq!(bytes(2, |_| Err("no")), Err("no"));
        assert_eq!(text(concat(b"\xc3", b"\xa9")).as_deref(), Some("é"));
        assert_eq!(text(concat(b"\xc3", b"")), None);
    }
}
