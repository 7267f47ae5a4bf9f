//! melba-protocol
