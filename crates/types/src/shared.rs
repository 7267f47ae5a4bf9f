//! Long values that are made in place: a `Vec` or `String` would be copied into the `Arc` of a datum, which takes twice the
//! memory.

use std::sync::Arc;

use crate::{Result, limits};

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

/// Copied between two checks of the limits.
const PIECE_BYTES: usize = 1 << 20;

/// Texts end to end, each repeated the given number of times; long ones are copied with checks of the limits.
///
/// # Errors
/// Those of `check_interrupt`.
///
/// # Panics
/// When they are longer than the address space.
pub fn texts(parts: &[(&str, usize)]) -> Result<Arc<str>> {
    let add = |sum: usize, (part, n): &(&str, usize)| part.len().checked_mul(*n).and_then(|bytes| sum.checked_add(bytes));
    let length = parts.iter().try_fold(0, add).expect("a length in memory");
    let bytes = bytes(length, |to| {
        let mut rest = to;
        for (part, n) in parts {
            let (own, after) = rest.split_at_mut(part.len() * n);
            fill(own, part.as_bytes())?;
            rest = after;
        }
        Ok(())
    })?;
    // SAFETY: the allocations of `Arc<[u8]>` and `Arc<str>` are laid out alike, and whole texts, end to end, are UTF-8.
    Ok(unsafe { Arc::from_raw(Arc::into_raw(bytes) as *const str) })
}

/// Fills with a part, which fits a whole number of times.
fn fill(to: &mut [u8], part: &[u8]) -> Result<()> {
    if to.is_empty() {
        return Ok(());
    }
    for (to, from) in to.chunks_mut(PIECE_BYTES).zip(part.chunks(PIECE_BYTES)) {
        limits::check_long(to.len())?;
        to[..from.len()].copy_from_slice(from);
    }
    let mut done = part.len();
    while done < to.len() {
        // Whole parts, as many as there are, up to a piece or one part.
        let most = if done <= PIECE_BYTES { done } else { (PIECE_BYTES / part.len()).max(1) * part.len() };
        let more = most.min(to.len() - done);
        limits::check_long(more)?;
        to.copy_within(..more, done);
        done += more;
    }
    Ok(())
}

/// A text `n` times.
///
/// # Errors
/// Those of `check_interrupt`.
///
/// # Panics
/// When that is longer than the address space.
pub fn repeat(s: &str, n: usize) -> Result<Arc<str>> {
    texts(&[(s, n)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_slices_behave_like_vectors() {
        for n in [0, 1, 2, 3, 7, 1000] {
            assert_eq!(*repeat("né-", n).expect("is short"), *"né-".repeat(n));
            assert_eq!(*repeat("", n).expect("is short"), *"");
        }
        assert_eq!(*texts(&[("é", 3), ("ab", 0), ("", 2), ("xy", 2)]).expect("are short"), *"éééxyxy");
        // Longer than a piece: of small parts, and of one that is longer itself.
        for part in ["né-".to_owned(), "é".repeat(PIECE_BYTES), "n".repeat(PIECE_BYTES - 1)] {
            let n = 3 * PIECE_BYTES / part.len() + 2;
            assert_eq!(*repeat(&part, n).expect("fits"), *part.repeat(n), "{n}");
        }
        assert_eq!(*concat([&b"ab"[..], b"", b"c"]), *b"abc");
        assert!(concat([]).is_empty());
        struct Raised;
        impl limits::Interruptible for Raised {
            fn check(&self) -> Result<()> {
                Err(crate::err!(QUERY_CANCELED, "canceling statement due to user request"))
            }
        }
        let raised = || {
            limits::run(Arc::new(Raised), || {
                (repeat("é", 40_000).is_err(), texts(&[("é", 3), (&"x".repeat(70_000), 1)]).is_err())
            })
        };
        assert_eq!(raised(), (true, true), "long ones look at the limits");
        assert_eq!(bytes(2, |_| Err("no")), Err("no"));
        assert_eq!(text(concat([&b"\xc3"[..], b"\xa9"])).as_deref(), Some("é"));
        assert_eq!(text(concat([&b"\xc3"[..], b""])), None);
    }
}
