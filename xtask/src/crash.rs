//! `cargo xtask crash`: the server is killed in the middle of pgbench, again and again; money is neither made nor lost.

use std::process::Stdio;
use std::time::Duration;

use crate::melba::{Address, Melba, ask, postgres_program, run};

/// Each transaction of pgbench adds one amount to an account, a teller and a branch, and records it in the history.
const SUMS: &str = "select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers), \
    (select sum(bbalance) from pgbench_branches), (select coalesce(sum(delta), 0) from pgbench_history)";

pub struct Options {
    pub rounds: u32,
    pub scale: u32,
    pub seconds: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { rounds: 2, scale: 1, seconds: 3 }
    }
}

pub fn crash(options: &Options) -> Result<(), String> {
    let Some(pgbench) = postgres_program("pgbench") else {
        println!("skipped crash: pgbench is not installed");
        return Ok(());
    };
    let mut melba = Melba::fresh("crash")?;
    let scale = options.scale.to_string();
    run(melba.address.client(&pgbench).args(["-i", "-q", "-s", &scale]).stderr(Stdio::null()), "pgbench -i")?;
    let mut before = 0;
    for round in 1..=options.rounds {
        // Each round takes another protocol, and is cut at another moment.
        let mode = ["simple", "extended", "prepared"][round as usize % 3];
        let mut bench = melba.address.client(&pgbench);
        bench.args(["-n", "-c", "8", "-j", "2", "-T", "600", "-M", mode]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut bench = bench.spawn().map_err(|e| format!("pgbench: {e}"))?;
        std::thread::sleep(Duration::from_millis(u64::from(options.seconds) * 1000 + u64::from(round) * 37 % 500));
        let ended = bench.try_wait().map_err(|e| format!("pgbench: {e}"))?;
        if let Some(status) = ended {
            return Err(format!("pgbench -M {mode} ended before the server was killed: {status}"));
        }
        melba = melba.crash_and_restart()?;
        bench.wait().map_err(|e| format!("pgbench: {e}"))?;
        let transactions = balanced(&melba.address)?;
        if transactions <= before {
            return Err(format!("round {round}: {transactions} transactions after it, {before} before it"));
        }
        println!("ok      crash {round}: {mode}, {} transactions more, the sums agree", transactions - before);
        before = transactions;
    }
    melba.stop()
}

/// Checks the sums; gives the number of transactions in the history.
fn balanced(address: &Address) -> Result<u64, String> {
    let sums = ask(address, SUMS)?;
    let mut parts = sums.split('|');
    let first = parts.next().unwrap_or_default();
    if parts.clone().count() != 3 || parts.any(|p| p != first) {
        return Err(format!("the sums of accounts, tellers, branches and history differ: {sums}"));
    }
    let count = ask(address, "select count(*) from pgbench_history")?;
    count.parse().map_err(|_| format!("count(*) gave {count}"))
}
