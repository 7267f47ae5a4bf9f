//! Speed of the codecs beside the libraries they stand on. `cargo bench -p melba-toast` measures, with the files of the folder in
//! MELBA_CORPUS if that is set; inside `cargo test` it runs on a tiny input, so that it cannot rot.

#![allow(clippy::disallowed_methods, reason = "a benchmark by real time")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use melba_toast::{Method, compress, decompress, frame, pglz};

/// About English, from a seed.
fn sentences(bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "the",
        "of",
        "toast",
        "value",
        "row",
        "and",
        "is",
        "stored",
        "compressed",
        "frame",
        "melba",
        "a",
        "in",
        "table",
        "when",
        "slice",
    ];
    let mut out = Vec::with_capacity(bytes + 16);
    let mut x = 0x9E37_79B9_7F4A_7C15u64;
    while out.len() < bytes {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        out.extend_from_slice(WORDS[(x >> 40) as usize % 16].as_bytes());
        out.push(if (x >> 20).is_multiple_of(9) { b'0' + (x % 10) as u8 } else { b' ' });
    }
    out.truncate(bytes);
    out
}

fn inputs(measure: bool) -> Vec<(String, Vec<u8>)> {
    let folder = std::env::var_os("MELBA_CORPUS").filter(|_| measure);
    let Some(folder) = folder else { return vec![("sentences".into(), sentences(if measure { 8 << 20 } else { 20_000 }))] };
    let entries = std::fs::read_dir(folder).expect("the corpus' folder");
    let mut files: Vec<_> = entries.flatten().map(|e| e.path()).filter(|p| p.is_file()).collect();
    files.sort();
    files
        .iter()
        .map(|p| (p.file_name().unwrap_or_default().to_string_lossy().into(), std::fs::read(p).expect("a file")))
        .collect()
}

/// The shortest of some rounds of either, taken in turns: what else the machine does meets both.
fn best_of_two(rounds: usize, mut ours: impl FnMut(), mut theirs: impl FnMut()) -> (Duration, Duration) {
    let time = |work: &mut dyn FnMut()| {
        let started = Instant::now();
        work();
        started.elapsed()
    };
    let times: Vec<_> = (0..rounds).map(|_| (time(&mut ours), time(&mut theirs))).collect();
    let least = |pick: fn(&(Duration, Duration)) -> Duration| times.iter().map(pick).min().unwrap_or_default();
    (least(|t| t.0), least(|t| t.1))
}

fn raw_compress(method: Method, source: &[u8], out: &mut [u8], context: &mut zstd_safe::CCtx<'_>) -> usize {
    match method {
        // SAFETY: both buffers are valid for the lengths passed, which fit in an int.
        Method::Lz4 => unsafe {
            lz4_sys::LZ4_compress_default(source.as_ptr().cast(), out.as_mut_ptr().cast(), source.len() as i32, out.len() as i32)
                as usize
        },
        _ => context.compress(out, source, 3).expect("it fits"),
    }
}

fn raw_decompress(method: Method, source: &[u8], out: &mut [u8], context: &mut zstd_safe::DCtx<'_>) {
    match method {
        // SAFETY: both buffers are valid for the lengths passed, which fit in an int.
        Method::Lz4 => unsafe {
            let written = lz4_sys::LZ4_decompress_safe(
                source.as_ptr().cast(),
                out.as_mut_ptr().cast(),
                source.len() as i32,
                out.len() as i32,
            );
            assert_eq!(written, out.len() as i32);
        },
        _ => assert_eq!(context.decompress(out, source), Ok(out.len())),
    }
}

/// A frame by a method, whether it pays or not.
fn pack(method: Method, piece: &[u8], out: &mut Vec<u8>) -> bool {
    if method == Method::Pglz { pglz::compress_always(piece, out) } else { compress(method, 3, piece, out) }
}

/// One file, as frames, by one method: its ratio and speed, and the library's time beside ours.
fn measure(name: &str, bytes: &[u8], method: Method, rounds: usize) {
    let (mut cctx, mut dctx) = (zstd_safe::CCtx::create(), zstd_safe::DCtx::create());
    let pieces: Vec<&[u8]> = bytes.chunks(frame::FRAME_BYTES).collect();
    let mut target = vec![0; zstd_safe::compress_bound(frame::FRAME_BYTES)];
    let mut raw = vec![0; frame::FRAME_BYTES];
    let packed: Vec<Option<Vec<u8>>> = pieces
        .iter()
        .map(|piece| {
            let mut out = Vec::new();
            pack(method, piece, &mut out).then_some(out)
        })
        .collect();
    let mut out = Vec::with_capacity(frame::FRAME_BYTES);
    let has_library = method != Method::Pglz;
    let (ours, theirs) = best_of_two(
        rounds,
        || {
            for piece in &pieces {
                out.clear();
                black_box(pack(method, piece, &mut out));
            }
        },
        || {
            for piece in pieces.iter().filter(|_| has_library) {
                black_box(raw_compress(method, piece, &mut target, &mut cctx));
            }
        },
    );
    let streams = || pieces.iter().zip(&packed).filter_map(|(piece, stream)| Some((piece, stream.as_ref()?)));
    let mut raw_target = raw.clone();
    let (back, their_back) = best_of_two(
        rounds,
        || streams().for_each(|(piece, stream)| decompress(method, stream, &mut raw[..piece.len()]).expect("our own stream")),
        || {
            for (piece, stream) in streams().filter(|_| has_library) {
                raw_decompress(method, stream, &mut raw_target[..piece.len()], &mut dctx);
            }
        },
    );
    let speed = |time: Duration| bytes.len() as f64 / time.as_secs_f64() / 1e6;
    let stored: usize = pieces.iter().zip(&packed).map(|(piece, packed)| packed.as_ref().map_or(piece.len(), Vec::len)).sum();
    let ratio = bytes.len() as f64 / stored as f64;
    print!("{name:10} {:4} ratio {ratio:5.2}, MB/s: compress {:6.0}, decompress {:6.0}", method.name(), speed(ours), speed(back));
    if has_library {
        let share = |ours: Duration, theirs: Duration| ours.as_secs_f64() / theirs.as_secs_f64();
        print!("; of the library's time: {:.3}, {:.3}", share(ours, theirs), share(back, their_back));
    }
    println!();
}

fn main() {
    // `cargo bench` passes --bench, `cargo test` does not.
    let measured = std::env::args().any(|argument| argument == "--bench");
    for (name, bytes) in inputs(measured) {
        for method in [Method::Pglz, Method::Lz4, Method::Zstd] {
            measure(&name, &bytes, method, if measured { 7 } else { 1 });
        }
    }
}
