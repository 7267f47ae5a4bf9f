//! The frames of a long value, compressed by two threads and put in order.
//!
//! An idle thread takes the next frame, so that a second core helps as much as it has time to, and a busy one delays only the
//! frame it has begun. At most `2 * AHEAD_MAX + 1` compressed frames wait for their turn.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::Builder;

use crate::frame::{FRAME_BYTES, encode_parts};
use crate::{Method, frame};

/// Compressed frames that wait, of each thread.
const AHEAD_MAX: usize = 4;
/// Values of fewer frames do not justify a thread.
const FRAMES_MIN: usize = 4;

/// How frames are compressed.
#[derive(Clone, Copy, Debug)]
pub struct Encoding {
    /// `None`: not at all.
    pub method: Option<Method>,
    /// zstd's level.
    pub level: i32,
}

/// Calls `put` with the frames of `raw`, each in parts (`frame::encode_parts`), in their order. With `threads` above 1 a second
/// thread compresses, too, before whose start `before_thread` is called.
///
/// # Errors
/// Those of `put`, at once.
pub fn encode_all<E>(
    encoding: Encoding,
    raw: &[u8],
    threads: usize,
    before_thread: impl FnOnce(),
    mut put: impl FnMut(&[&[u8]]) -> Result<(), E>,
) -> Result<(), E> {
    let pieces = Pieces { encoding, raw, next: AtomicUsize::new(0) };
    if threads > 1 && encoding.method.is_some() && pieces.count() >= FRAMES_MIN {
        before_thread();
        return pieces.encode_by_two(put);
    }
    let mut buffer = Vec::new();
    raw.chunks(FRAME_BYTES).try_for_each(|piece| put(&encode_parts(encoding.method, encoding.level, piece, &mut buffer)))
}

/// The pieces to compress, and the state that the threads share.
struct Pieces<'a> {
    encoding: Encoding,
    raw: &'a [u8],
    /// The first piece that no thread has taken.
    next: AtomicUsize,
}

/// A frame with its number.
type Numbered = (usize, Vec<u8>);

impl Pieces<'_> {
    fn count(&self) -> usize {
        self.raw.len().div_ceil(FRAME_BYTES)
    }

    /// Takes the next piece and compresses it.
    fn encode_next(&self, mut buffer: Vec<u8>) -> Option<Numbered> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let piece = self.raw.chunks(FRAME_BYTES).nth(number)?;
        buffer.clear();
        frame::encode(self.encoding.method, self.encoding.level, piece, &mut buffer);
        Some((number, buffer))
    }

    fn encode_by_two<E>(&self, put: impl FnMut(&[&[u8]]) -> Result<(), E>) -> Result<(), E> {
        std::thread::scope(|scope| {
            // Dropped when the scope waits for the second thread: frames that it still makes are not needed.
            let (frames, received) = sync_channel(AHEAD_MAX);
            let (spares, used) = channel();
            // Without a second thread the first does it all: the channel is closed then.
            let _ = Builder::new().name("frames".into()).spawn_scoped(scope, move || self.help(&frames, &used));
            self.encode_and_put(&received, &spares, put)
        })
    }

    /// The second thread: until all pieces are taken, or the receiver is dropped.
    fn help(&self, frames: &SyncSender<Numbered>, spares: &Receiver<Vec<u8>>) {
        while let Some(frame) = self.encode_next(spares.try_recv().unwrap_or_default()) {
            if frames.send(frame).is_err() {
                return;
            }
        }
    }

    /// The first thread: puts frames whose turn has come, and compresses meanwhile.
    fn encode_and_put<E>(
        &self,
        received: &Receiver<Numbered>,
        spares: &Sender<Vec<u8>>,
        mut put: impl FnMut(&[&[u8]]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut waiting: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        let mut spare = None;
        for number in 0..self.count() {
            let frame = loop {
                waiting.extend(received.try_iter());
                if let Some(frame) = waiting.remove(&number) {
                    break frame;
                }
                let own = (waiting.len() < AHEAD_MAX).then(|| self.encode_next(spare.take().unwrap_or_default())).flatten();
                // A missing frame that is not ours is being compressed by the other thread.
                let next = own.or_else(|| received.recv().ok());
                waiting.extend(Some(next.expect("the thread that has taken a piece sends it")));
            };
            put(&[&frame])?;
            match spare {
                None => spare = Some(frame),
                // The other may have ended.
                Some(_) => drop(spares.send(frame)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(raw: &[u8], threads: usize) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        let encoding = Encoding { method: Some(Method::Lz4), level: 0 };
        let put = |parts: &[&[u8]]| -> Result<(), ()> {
            out.push(parts.concat());
            Ok(())
        };
        encode_all(encoding, raw, threads, || {}, put).unwrap();
        out
    }

    #[test]
    fn two_threads_make_the_same_frames() {
        let mut raw = Vec::new();
        for i in 0..600_000u32 {
            raw.extend_from_slice(&(i % 977).to_le_bytes());
        }
        for bytes in [0, 1, FRAME_BYTES, 3 * FRAME_BYTES, 5 * FRAME_BYTES + 1, raw.len()] {
            assert_eq!(frames(&raw[..bytes], 2), frames(&raw[..bytes], 1));
        }
        let mut back = Vec::new();
        frames(&raw, 2).iter().for_each(|f| frame::decode(f, &mut back).unwrap());
        assert!(back == raw);
    }

    #[test]
    fn an_error_ends_it() {
        let raw = vec![7; 40 * FRAME_BYTES];
        let mut frames = 0;
        let put = |_: &[&[u8]]| {
            frames += 1;
            if frames == 7 { Err("full") } else { Ok(()) }
        };
        assert_eq!(encode_all(Encoding { method: Some(Method::Zstd), level: 1 }, &raw, 2, || {}, put), Err("full"));
        assert_eq!(frames, 7);
    }
}
