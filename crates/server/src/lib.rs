//! melba-server
