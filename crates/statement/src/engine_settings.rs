//! The engine's settings.

use std::time::Duration;

use melba_engine::EngineOptions;

use melba_settings::Settings;

/// The block that PostgreSQL measures memory and log in.
const BLOCK_BYTES: u64 = 8192;

/// The engine's options as a server's settings have them.
pub fn engine_options(settings: &Settings) -> EngineOptions {
    let number = |name| settings.get(name).as_integer().max(0) as u64;
    EngineOptions {
        memory_bytes: number("shared_buffers").max(16) * BLOCK_BYTES,
        fsync: settings.get("fsync").as_bool(),
        wal_writer_delay: Duration::from_millis(number("wal_writer_delay").max(1)),
        wal_writer_flush_after_bytes: number("wal_writer_flush_after") * BLOCK_BYTES,
        dense_gain_min_bytes: number("dense_gain_min") << 10,
        dense_read_budget: Duration::from_micros((settings.get("dense_read_budget").as_real() * 1000.0) as u64),
        measure_times: settings.get("track_io_timing").as_bool(),
        ..EngineOptions::default()
    }
}

/// Sets the session's `commit_delay` and `commit_siblings`.
pub fn set_commit_delay(session: &melba_engine::EngineSession, settings: &Settings) {
    let number = |name| settings.get(name).as_integer().max(0) as u64;
    session.set_commit_delay(Duration::from_micros(number("commit_delay")), number("commit_siblings") as usize);
}
