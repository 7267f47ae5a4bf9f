//! The simulation of the engine: everything on one thread, chosen by a seed, with crashes and failing disks, against a model.
//! docs/design/simulation.md says what is simulated and how to repeat a failure.

#![allow(clippy::disallowed_methods, reason = "it says how many seeds it runs in real time")]

mod check;
mod client;
mod failure;
mod model;
mod options;
mod profile;
mod read;
mod restart;
mod row;
mod run;
mod schema;
mod seeds;
mod trace;
mod world;
mod write;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match options::Options::parse(&arguments).and_then(|options| seeds::run_all(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
