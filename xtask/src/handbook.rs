//! `cargo xtask handbook`: runs the commands of README.md and docs/handbook, in order, and compares what the pages show with what comes.
//!
//! A page is played in a temporary directory of its own. Its fenced blocks are
//!
//! | block | played as |
//! |---|---|
//! | `sh` | bash; every command must succeed |
//! | `sh server` | a server that keeps running; the one before it is stopped first |
//! | `sql` | a session of psql; every statement must succeed |
//! | `sql error` | the same; one must fail |
//! | `text` | the output of the block before it; `...` stands for any text |
//! | LANGUAGE FILE | lines that are added to the file |
//! | with `not run: REASON` in the first line | nothing: it needs another machine, a network, or minutes |
//!
//! A page that does not begin with `sh server` finds a server over a fresh `./melba-data`. 5432 stands for its port, 9187 for another free one, and 5433 for
//! that of a PostgreSQL with the tables of tests/handbook. `UPDATE=1` writes the output that came into the page.

mod fences;
mod stage;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use crate::compare::Postgres;
use crate::root;
use fences::Kind;
use stage::Stage;

/// Blocks with `not run`; more of them need a reason that convinces.
const NOT_RUN_MAX: usize = 10;
/// Pages that are played at the same time.
const PLAYERS: usize = 2;

/// Plays the pages whose name contains `filter`.
pub fn handbook(filter: &str) -> Result<(), String> {
    let mut pages = pages()?;
    pages.retain(|p| p.to_string_lossy().contains(filter));
    if pages.is_empty() {
        return Err(format!("no page of the handbook is called {filter}"));
    }
    let texts = pages.iter().map(|p| read(p)).collect::<Result<Vec<_>, _>>()?;
    let postgres = if texts.iter().any(|t| t.contains("5433")) { postgres()? } else { None };
    let port = postgres.as_ref().map(|p| p.address.port.as_str());
    stage::build()?;
    let queue = Mutex::new(pages.iter().zip(&texts).collect::<Vec<_>>());
    let problems = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..PLAYERS {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().ok().and_then(|mut q| q.pop());
                    let Some((path, text)) = next else { return };
                    let found = played(path, text, port);
                    if let Ok(mut problems) = problems.lock() {
                        problems.extend(found);
                    }
                }
            });
        }
    });
    let mut problems = problems.into_inner().map_err(|_| "a page's player has panicked")?;
    let skipped = texts.iter().flat_map(|t| fences::fences(t)).filter(|f| f.kind == Kind::NotRun).count();
    if skipped > NOT_RUN_MAX {
        problems.push(format!("{skipped} blocks are not run, at most {NOT_RUN_MAX} may be"));
    }
    println!("        handbook: {skipped} blocks are marked as not run");
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// README.md and the pages of docs/handbook.
fn pages() -> Result<Vec<PathBuf>, String> {
    let folder = root().join("docs/handbook");
    let entries = folder.read_dir().map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut pages: Vec<PathBuf> =
        entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "md")).collect();
    pages.push(root().join("README.md"));
    // Taken from the end: the pages that wait for seconds (analytics, backup) come first, beside others.
    pages.sort();
    pages.reverse();
    Ok(pages)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// The PostgreSQL that the pages about migration start from; `None` where it is not installed.
fn postgres() -> Result<Option<Postgres>, String> {
    let postgres = Postgres::start()?;
    match &postgres {
        Some(postgres) => {
            let mut psql = postgres.address.psql();
            psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-f", "tests/handbook/postgres.sql"]);
            crate::melba::run(&mut psql, "tests/handbook/postgres.sql")?;
        }
        None => println!("skipped handbook: pages about migration, as PostgreSQL's server is not installed"),
    }
    Ok(postgres)
}

/// What is wrong with a page.
fn played(path: &Path, text: &str, postgres: Option<&str>) -> Vec<String> {
    let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    if text.contains("5433") && postgres.is_none() {
        return Vec::new();
    }
    let fences = fences::fences(text);
    let mut update = Vec::new();
    let began = Instant::now();
    let mut problems = Vec::new();
    let mut play = || -> Result<(), String> {
        let mut stage = Stage::new(&name.replace('/', "-"), postgres)?;
        for (at, fence) in fences.iter().enumerate() {
            let shown = fences.get(at + 1).filter(|next| next.kind == Kind::Output);
            // Without its effects the next blocks would fail for reasons that are not theirs.
            let output = stage.play(fence).map_err(|e| format!("{name}:{}: {e}", fence.line))?;
            if let Some(shown) = shown
                && !fences::matches(&shown.text, &output)
            {
                problems.push(format!("{name}:{}: shown is\n{}but what comes is\n{output}", shown.line, shown.text));
                update.push((shown, output));
            }
        }
        stage.end()
    };
    let played = play();
    problems.extend(played.err());
    if problems.is_empty() {
        println!("ok      handbook: {name}, {:.1} s", began.elapsed().as_secs_f32());
    }
    if std::env::var_os("UPDATE").is_some() && !update.is_empty() {
        problems.extend(std::fs::write(path, fences::replaced(text, &update)).err().map(|e| format!("{name}: {e}")));
    }
    problems
}
