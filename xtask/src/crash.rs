//! `cargo xtask crash`: kills the server in the middle of pgbench, again and again. The sums of money must agree, and every
//! transaction that pgbench was told of must exist.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::melba::{Address, Melba, ask, postgres_program, run};
use crate::root;

const CLIENTS: &str = "8";

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
        let logs = root().join("target/crash-logs");
        let _ = std::fs::remove_dir_all(&logs);
        std::fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
        bench.args(["-n", "-c", CLIENTS, "-j", "2", "-T", "600", "-M", mode, "-l", "--log-prefix"]).arg(logs.join("log"));
        bench.stdout(Stdio::null()).stderr(Stdio::null());
        let mut bench = bench.spawn().map_err(|e| format!("pgbench: {e}"))?;
        std::thread::sleep(Duration::from_millis(u64::from(options.seconds) * 1000 + u64::from(round) * 37 % 500));
        let ended = bench.try_wait().map_err(|e| format!("pgbench: {e}"))?;
        if let Some(status) = ended {
            return Err(format!("pgbench -M {mode} ended before the server was killed: {status}"));
        }
        melba = melba.crash_and_restart()?;
        bench.wait().map_err(|e| format!("pgbench: {e}"))?;
        let transactions = balanced(&melba.address)?;
        let acknowledged = lines(&logs)?;
        // A client may have been cut off between the commit and its answer.
        let possible = acknowledged..=acknowledged + CLIENTS.parse::<u64>().unwrap_or_default();
        if acknowledged == 0 || !possible.contains(&(transactions - before)) {
            return Err(format!("round {round}: {acknowledged} transactions acknowledged, {} are there", transactions - before));
        }
        println!(
            "ok      crash {round}: {mode}, {} transactions more, {acknowledged} of them acknowledged, the sums agree",
            transactions - before
        );
        before = transactions;
    }
    melba.stop()
}

/// One line a transaction, in one file a thread.
fn lines(logs: &Path) -> Result<u64, String> {
    let mut lines = 0;
    for file in logs.read_dir().map_err(|e| format!("{}: {e}", logs.display()))?.flatten() {
        let text = std::fs::read(file.path()).map_err(|e| format!("{}: {e}", file.path().display()))?;
        lines += text.iter().filter(|b| **b == b'\n').count() as u64;
    }
    Ok(lines)
}

/// Checks the sums; returns the number of transactions in the history.
pub fn balanced(address: &Address) -> Result<u64, String> {
    let sums = ask(address, SUMS)?;
    let mut parts = sums.split('|');
    let first = parts.next().unwrap_or_default();
    if parts.clone().count() != 3 || parts.any(|p| p != first) {
        return Err(format!("the sums of accounts, tellers, branches and history differ: {sums}"));
    }
    let count = ask(address, "select count(*) from pgbench_history")?;
    count.parse().map_err(|_| format!("count(*) gave {count}"))
}
