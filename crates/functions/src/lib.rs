//! melba-functions
