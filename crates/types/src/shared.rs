//! Long values that are made where they stay: a `Vec` or `String` would be copied into the `Arc` of a datum, which takes
//! twice the memory.

use std::convert::Infallible;
use std::sync::Arc;

/// So many bytes, as `fill` leaves them; they are zeros before.
///
/// # Errors
/// Those of `fill`.
pub fn bytes<E>(length: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Arc<[u8]>, E> {
    // SAFETY: zeros are bytes. (Memory that is new comes as zeros, and is not touched for this.)
    let mut bytes: Arc<[u8]> = unsafe { Arc::new_zeroed_slice(length).assume_init() };
    fill(Arc::get_mut(&mut bytes).expect("nobody else has it yet"))?;
    Ok(bytes)
}

/// The bytes as text; `None` when they are not UTF-8.
pub fn text(bytes: Arc<[u8]>) -> Option<Arc<str>> {
    std::str::from_utf8(&bytes).ok()?;
    // SAFETY: the allocations of `Arc<[u8]>` and `Arc<str>` are laid out alike, and the bytes are UTF-8.
    Some(unsafe { Arc::from_raw(Arc::into_raw(bytes) as *const str) })
}

/// All parts, one after the other.
///
/// # Panics
/// When they are longer than the address space.
pub fn concat<'a>(parts: impl IntoIterator<Item = &'a [u8]> + Clone) -> Arc<[u8]> {
    let length = parts.clone().into_iter().try_fold(0usize, |sum, part| sum.checked_add(part.len())).expect("a length in memory");
    let mut bytes = Arc::new_uninit_slice(length);
    let mut rest = Arc::get_mut(&mut bytes).expect("nobody else has it yet");
    for part in parts {
        let (to, after) = rest.split_at_mut(part.len());
        to.write_copy_of_slice(part);
        rest = after;
    }
    assert!(rest.is_empty(), "the parts are as long as was counted");
    // SAFETY: the parts were written end to end, from the start to the end.
    unsafe { bytes.assume_init() }
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
        assert_eq!(*concat([&b"ab"[..], b"", b"c"]), *b"abc");
        assert!(concat([]).is_empty());
        assert_eq!(bytes(2, |_| Err("no")), Err("no"));
        assert_eq!(text(concat([&b"\xc3"[..], b"\xa9"])).as_deref(), Some("é"));
        assert_eq!(text(concat([&b"\xc3"[..], b""])), None);
    }
}
