//! melba-toast
