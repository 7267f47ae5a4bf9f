//! `melba advise`: what data would take in Melba, and in PostgreSQL, before they are there.
//!
//! 1. A sample is some stretches of neighbouring rows of each table: what a dense section is made of, from several places.
//! 2. PostgreSQL's sizes are computed: its rule of TOAST row by row, its codecs, its pages (`postgres_size`).
//! 3. Melba's are measured: the sample is loaded into a server of its own in a temporary directory, once for each method
//!    (`trial`).
//! 4. The table is read again, and what its dense sections take is computed (`growth`, `sections`): they are not in proportion to a sample.
//! 5. It is a client of the data's server and of its own: of Melba's insides it uses the codecs alone.

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
