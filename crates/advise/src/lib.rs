//! `melba advise`: estimates how much space data would take in Melba and in PostgreSQL before it is loaded.
//!
//! 1. A sample is a few stretches of neighbouring rows of each table, from several places: a dense section consists of such stretches.
//! 2. PostgreSQL's sizes are computed from its row-by-row TOAST rule, its codecs and its pages (`postgres_size`).
//! 3. Melba's sizes are measured: the sample is loaded into a separate server in a temporary directory, once for each method
//!    (`trial`).
//! 4. The table is read again to compute the size of its dense sections (`growth`, `sections`), because that size is not
//!    proportional to the sample's.
//! 5. The command is a client of the data's server and of the temporary one. Of Melba's internals it uses only the codecs.

#![allow(clippy::disallowed_methods, reason = "a client: its clock and files are not the database's")]

mod advice;
mod csv;
mod database;
mod folder;
mod growth;
mod html;
mod jsonb;
mod pages;
mod postgres_size;
mod run;
mod sample;
mod sections;
mod trial;
mod units;
mod verify;

pub use run::{Options, Serve, advise};

/// A failure in words for the person at the terminal.
pub type Result<T> = std::result::Result<T, String>;
