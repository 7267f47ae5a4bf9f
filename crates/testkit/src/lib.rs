//! melba-testkit
