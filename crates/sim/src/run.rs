//! One seed from beginning to end.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::client::Client;
use crate::restart::End;
use crate::world::{Stats, World};

/// How a seed ended.
pub struct Run {
    pub seed: u64,
    pub stats: Stats,
    /// The same for every run of a seed.
    pub hash: u64,
    /// A checker's finding, and the events before it.
    pub failure: Option<String>,
}

/// Runs a seed; `verbose` prints all events.
pub fn run(seed: u64, verbose: bool, serializable: bool) -> Run {
    let mut world = match World::new(seed, verbose) {
        Ok(world) => world,
        Err(message) => return Run { seed, stats: Stats::default(), hash: 0, failure: Some(message) },
    };
    world.judges_serializable = serializable;
    let result = catch_unwind(AssertUnwindSafe(|| live(&mut world)));
    let failure = match result {
        Ok(Ok(())) => None,
        Ok(Err(message)) => Some(message),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Some(format!("a panic: {}", message.unwrap_or("without a message")))
        }
    };
    let failure = failure.map(|message| format!("{message}\n  the last events:\n{}", world.trace.tail()));
    Run { seed, stats: world.stats, hash: world.trace.hash(), failure }
}

fn live(world: &mut World) -> Result<(), String> {
    let mut clients = world.clients()?;
    for _ in 0..world.profile.steps {
        world.stats.steps += 1;
        world.pass_time();
        if let Some(cause) = world.engine().failure() {
            if cause.contains("panicked") || !world.is_troubled() {
                return Err(format!("the engine has stopped: {cause}"));
            }
            let end = if world.random.chance(50) { End::Kill } else { End::PowerCut };
            world.restart(&mut clients, end)?;
        } else if world.directory.is_off() {
            world.restart(&mut clients, End::PowerCut)?;
        }
        step(world, &mut clients)?;
    }
    // A last life without failures, so that everything is checked again and nothing is left.
    let end = [End::Kill, End::PowerCut, End::Clean][world.random.below(3)];
    world.restart(&mut clients, end)?;
    world.finish(&mut clients)
}

fn step(world: &mut World, clients: &mut Vec<Client>) -> Result<(), String> {
    let choice = world.random.below(1000);
    let crashes = world.profile.crashes;
    if choice < crashes {
        return match world.random.below(10) {
            0..4 => world.restart(clients, End::PowerCut),
            4..6 => world.restart(clients, End::Kill),
            6..8 => world.restart(clients, End::Clean),
            8 => {
                let n = world.directory.syncs() + world.random.below(12) as u64;
                world.event(format_args!("the power goes at sync {n}"));
                world.directory.cut_power_at_sync(n);
                Ok(())
            }
            _ => world.finish(clients),
        };
    }
    if choice < crashes + world.profile.faults {
        world.trouble();
        return Ok(());
    }
    if choice < crashes + world.profile.faults + world.profile.background {
        return world.background();
    }
    let at = world.random.below(clients.len());
    clients[at].step(world)
}
