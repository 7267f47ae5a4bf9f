//! melba-segment
