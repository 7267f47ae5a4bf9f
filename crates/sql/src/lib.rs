//! melba-sql
