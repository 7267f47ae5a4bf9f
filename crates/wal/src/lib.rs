//! melba-wal
