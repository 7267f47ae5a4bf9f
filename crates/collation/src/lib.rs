//! Locales of ICU: the order of texts, and their upper and lower case, by CLDR's data in the binary.
//!
//! A `Collator` is the meaning of one row of pg_collation whose provider is icu. The catalog keeps it with the row, keys of columns
//! (`types::key`) hold it as a `Collate`, and functions on texts ask it.
//!
//! The keys of indexes are stored, so the data must not change unnoticed: Cargo.toml pins its version, and pg_collation.collversion
//! records `VERSION`.

mod collator;
mod locale;
mod search;

pub use collator::Collator;
pub use locale::{LocaleError, language_of, language_tag};
pub use search::Occurrences;

/// The version of the orders: that of the crate with their data.
pub const VERSION: &str = "icu4x-2.4.0";
/// The version of Unicode that the orders know.
pub const UNICODE_VERSION: &str = "17.0";
