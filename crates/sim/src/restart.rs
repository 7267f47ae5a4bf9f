//! The ends of an engine's life, and the state that the next one finds.

use std::sync::Arc;

use melba_engine::{BackgroundStep, Engine, EngineError, Isolation, Persistence};
use melba_vfs::{Clock, Directory, Faults, FileOperation, MemoryDirectory, SeededRandom};

use crate::check;
use crate::client::Client;
use crate::ensure;
use crate::failure::Failure;
use crate::model::Changes;
use crate::world::World;

/// How an engine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The machine loses power.
    PowerCut,
    /// The process ends, the operating system continues.
    Kill,
    /// A shutdown. The power fails right after it.
    Clean,
}

/// Recoveries that may be cut short before one is let through.
const CUT_RECOVERIES_MAX: usize = 3;
/// A merge that does not end is one that takes more steps than this.
const MERGE_STEPS_MAX: usize = 20_000;

impl World {
    /// Ends the engine, opens it again, and checks the state it kept.
    pub fn restart(&mut self, clients: &mut Vec<Client>, mut end: End) -> Result<(), String> {
        self.event(format_args!("end: {end:?}"));
        let wanted = end;
        let history = std::mem::take(&mut self.serializable);
        if self.judges_serializable {
            check::serializable::check(&self.model, &history)?;
        }
        if end == End::Clean {
            for client in clients.iter_mut() {
                client.finish(self)?;
            }
            if let Err(e) = self.engine().shutdown() {
                self.event(format_args!("shutdown: {e}"));
                self.judge(&e, "shutdown")?;
                end = End::PowerCut;
            }
        }
        match end {
            End::PowerCut => self.stats.power_cuts += 1,
            End::Kill => self.stats.kills += 1,
            End::Clean => self.stats.clean_stops += 1,
        }
        self.directory.cut_power();
        clients.clear();
        self.engine = None;
        let survive = match end {
            End::Kill => 100,
            End::Clean => 0,
            End::PowerCut => self.profile.survive[self.random.below(self.profile.survive.len())],
        };
        self.power_returns(survive);
        let (engine, crashed) = self.recover(survive)?;
        // A shutdown that failed may have completed after all.
        let clean = end == End::Clean && !crashed || wanted == End::Clean && self.has_unlogged_rows(&engine);
        self.check_recovered(&engine, clean)?;
        self.engine = Some(engine);
        *clients = self.clients()?;
        Ok(())
    }

    fn power_returns(&mut self, survive: usize) {
        let random = &self.random;
        let after: Arc<MemoryDirectory> = self.directory.after_power_cut(&mut || random.chance(survive));
        self.directory = after;
        self.stats.faults += self.faults.failures();
        self.faults = Faults::new();
    }

    /// Opens the engine; some recoveries fail or are cut short, and then there is another. Returns whether an engine opened in
    /// between, and then the power failed.
    fn recover(&mut self, survive: usize) -> Result<(Arc<Engine>, bool), String> {
        self.misplace()?;
        let mut crashed = false;
        for _ in 0..CUT_RECOVERIES_MAX {
            match self.random.below(8) {
                0 => self.directory.cut_power_at_sync(self.random.below(8) as u64),
                1 => self.faults.fail_once(FileOperation::ALL, self.random.below(40) as u64),
                _ => break,
            }
            match self.open() {
                Ok(engine) if !self.is_troubled() => {
                    // It succeeded; the planned failure must not happen later.
                    self.faults.heal();
                    self.directory.cut_power_at_sync(u64::MAX);
                    return Ok((engine, crashed));
                }
                Ok(_) => {
                    self.event(format_args!("recovery in trouble"));
                    crashed = true;
                }
                Err(e) => {
                    self.event(format_args!("recovery cut: {e}"));
                    self.judge(&e, "recovery")?;
                }
            }
            self.directory.cut_power();
            self.power_returns(survive);
        }
        let engine = self.open().map_err(|e| format!("recovery failed: {e:?}"))?;
        Ok((engine, crashed))
    }

    /// Now and then: a copy of the disk without one of its files, or with one in another's place. Either it is refused, and a file is
    /// named, or the file was not needed.
    fn misplace(&self) -> Result<(), String> {
        // Separate random numbers: the seeds of past failures keep their meaning.
        let random = SeededRandom::new(self.stats.steps);
        if !random.chance(25) {
            return Ok(());
        }
        let copy = || self.directory.after_power_cut(&mut || true);
        let open = |disk: Arc<MemoryDirectory>| {
            Engine::open(self.profile.options.clone(), disk, Arc::clone(&self.clock) as Arc<dyn Clock>)
        };
        let sound = open(copy()).map_err(|e| format!("recovery of a copy failed: {e:?}"))?.visible_csn();
        let disk = copy();
        let place = ["", "wal", "segments"][random.below(3)];
        let folder = if place.is_empty() { Ok(Arc::clone(&disk) as Arc<dyn Directory>) } else { disk.subdirectory(place) };
        let folder = folder.map_err(|e| e.to_string())?;
        let names = folder.list().map_err(|e| e.to_string())?;
        if names.is_empty() {
            return Ok(());
        }
        let (file, other) = (&names[random.below(names.len())], &names[random.below(names.len())]);
        let is_moved = random.chance(50) && file != other;
        let done = if is_moved { folder.rename(file, other) } else { folder.remove(file) };
        done.map_err(|e| e.to_string())?;
        let what = format!("{place}/{file}, {}", if is_moved { other } else { "removed" });
        match open(disk) {
            Ok(engine) => {
                let csn = engine.visible_csn();
                ensure!(csn == sound, "{what}: recovered {csn}, and {sound} with all files in place");
            }
            Err(e) => {
                let named = [".wal", ".seg", "MANIFEST"].iter().any(|kind| e.to_string().contains(kind));
                ensure!(matches!(e, EngineError::Corrupt { .. }) && named, "{what}: {e:?}");
            }
        }
        Ok(())
    }

    /// Whether unlogged tables have their rows, as they do after a clean stop.
    fn has_unlogged_rows(&self, engine: &Arc<Engine>) -> bool {
        let unlogged = self.model.tables.values().filter(|t| t.persistence == Persistence::Unlogged);
        unlogged.into_iter().any(|t| engine.tree_rows_estimate(t.tree) > 0)
    }

    fn check_recovered(&mut self, engine: &Arc<Engine>, clean: bool) -> Result<(), String> {
        let csn = engine.visible_csn();
        self.event(format_args!("recovered {csn}"));
        check::durability::check(&self.model, csn, clean)?;
        let before: Vec<_> = self.model.tables.values().map(|t| t.tree).collect();
        self.model.restart(csn, clean);
        let nothing = Changes::default();
        let there = self.model.numbers(&nothing, csn);
        let mut trees = Vec::new();
        for number in there {
            let shape = self.model.shape(number, &nothing, csn);
            trees.extend(shape.iter().flat_map(|s| s.indexes.iter().map(|i| i.0).chain([s.tree])));
        }
        for tree in &trees {
            ensure!(engine.has_tree(*tree), "tree {tree} is gone after recovery to {csn}");
        }
        let gone = before.iter().find(|t| !trees.contains(t) && engine.has_tree(**t));
        ensure!(gone.is_none(), "tree {gone:?} is there after recovery to {csn}, and must not");
        self.check_all(engine).map_err(|e| match e {
            Failure::Violation(message) => format!("after recovery to {csn}: {message}"),
            Failure::Engine(e) => format!("after recovery to {csn}: {e:?}"),
        })
    }

    /// Every table and index, whole.
    fn check_all(&mut self, engine: &Arc<Engine>) -> Result<(), Failure> {
        let txn = engine.begin(Isolation::ReadCommitted)?;
        let view = txn.statement_view();
        let nothing = Changes::default();
        for number in self.model.numbers(&nothing, view.csn) {
            let Some(shape) = self.model.shape(number, &nothing, view.csn) else { continue };
            let expected = self.model.rows(number, view.csn, &nothing);
            check::state::check_rows(&txn, view, &shape, &expected, &self.random)?;
            check::state::check_points(&txn, view, &shape, &expected, &self.random)?;
            check::state::check_frames(&txn, view, &shape, &expected)?;
            check::state::check_numbers(&shape, &expected)?;
            for (tree, key, _) in &shape.indexes {
                check::state::check_whole_index(&txn, view, (*tree, *key), &expected)?;
            }
        }
        Ok(())
    }

    /// Ends all work, and checks state and files.
    pub fn finish(&mut self, clients: &mut [Client]) -> Result<(), String> {
        for client in clients {
            client.finish(self)?;
        }
        self.event(format_args!("settles"));
        let engine = Arc::clone(self.engine());
        let may = |e: EngineError| self.judge(&e, "a checkpoint");
        if let Err(e) = engine.checkpoint() {
            return may(e);
        }
        self.clock.advance(std::time::Duration::from_secs(5));
        let mut steps = 0;
        while engine.run_step(BackgroundStep::Merge) {
            steps += 1;
            ensure!(steps < MERGE_STEPS_MAX, "merges do not end");
        }
        if self.is_troubled() || engine.failure().is_some() {
            return Ok(());
        }
        match self.check_all(&engine) {
            Ok(()) => {}
            Err(Failure::Violation(message)) => return Err(format!("at rest: {message}")),
            Err(Failure::Engine(e)) => return self.judge(&e, "a check at rest"),
        }
        // Blocks of readers that the check has just dropped.
        while engine.run_step(BackgroundStep::Merge) {}
        let plain = Arc::clone(&self.directory) as Arc<dyn Directory>;
        check::files::check(&plain)
    }
}
