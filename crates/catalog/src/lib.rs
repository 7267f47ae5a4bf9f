//! melba-catalog
