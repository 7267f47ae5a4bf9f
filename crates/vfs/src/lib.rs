//! melba-vfs
