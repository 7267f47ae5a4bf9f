//! A console in the browser, for any server of PostgreSQL's protocol: `melba serve --console`, `melba console URL`.
//!
//! 1. It is a client (`client`) and knows nothing of the server's internals: all that the page shows is SQL, asked as the role that
//!    logged in. There is nothing in it that this role could not do with psql.
//! 2. It never admits more people than the server: who logs in is asked for a password by the server itself. A server that admits
//!    the console's own account without a password admits a browser of that account only (`sessions`).
//! 3. Pages of other origins can neither read nor send anything (`gate`), and values are never markup (`assets`: the policy, and a
//!    test that the scripts write text only).
//! 4. Sizes, times, clients and sessions are bounded; a slow client keeps nobody out.
//!
//! `reports` shows pages that `melba lab` has written. `listener` is the port, `interface` the requests in JSON, `query` and `transfer` run statements, `assets` has the page. The
//! scripts are modules without a build step; crates/console/assets/main.js says what each is for.

#![allow(clippy::disallowed_methods, reason = "a client: its clock and sockets are not the database's")]

mod assets;
mod gate;
mod interface;
mod listener;
mod query;
mod reports;
mod sessions;
mod transfer;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use listener::{Bound, IsOwnAccount};
pub use melba_client::target::Target;

/// `melba console`.
#[derive(clap::Args)]
pub struct Options {
    /// The server: postgres://HOST:PORT/DATABASE, or libpq's keywords; who logs in gives role and password
    #[arg(value_name = "URL", default_value = "")]
    url: String,
    /// Address and port of the console, on this machine
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8432")]
    listen: String,
    /// How browsers reach it through a proxy: https://HOST; may be given several times
    #[arg(long = "origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// A folder with reports of `melba lab` and `melba advise` (HTML), to be shown after a login
    #[arg(long, value_name = "DIR")]
    reports: Option<PathBuf>,
}

/// Serves a console until the process is ended.
///
/// # Errors
/// The address cannot be listened on, or the server's is malformed.
pub fn console(options: &Options, is_own_account: IsOwnAccount) -> Result<(), String> {
    let target = Target::parse(&options.url)?;
    if let Some(folder) = &options.reports {
        reports::list(folder)?;
    }
    let bound = Bound::new(&options.listen, &options.origins)?.with_reports(options.reports.clone());
    println!("melba console: {} for {}", bound.url(), target.place());
    bound.serve(target, is_own_account)
}
