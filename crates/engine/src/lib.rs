//! melba-engine
