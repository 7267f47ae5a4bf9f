//! A logical session: one transaction after the other, an action at a time. No action waits: one that would have to is tried
//! again at a later step.

use std::sync::Arc;

use melba_engine::{Committing, Durability, EngineError, EngineSession, Isolation, ReadView, Savepoint, SequenceId, Transaction};
use melba_types::Csn;

use crate::check;
use crate::check::serializable::Read;
use crate::failure::{Failure, Outcome};
use crate::model::{Changes, TableNumber};
use crate::read::Cursor;
use crate::row::{IndexKey, Row};
use crate::world::World;

/// Steps for which an action waits before its transaction gives up.
const PATIENCE: u32 = 12;

/// A transaction's possible actions.
#[derive(Clone, Debug)]
pub enum Action {
    Insert(TableNumber, Row),
    Update(TableNumber, usize, Row),
    Delete(TableNumber, usize),
    LockRow(TableNumber, usize),
    Load(TableNumber, Vec<Row>),
    Read(TableNumber),
    OpenCursor(TableNumber),
    CreateTable,
    DropTable(TableNumber),
    CreateIndex(TableNumber),
    DropIndex(TableNumber),
    AddColumn(TableNumber),
    CreateSequence,
    DropSequence(SequenceId),
    NextValue(SequenceId),
    SetValue(SequenceId, i64),
}

/// Whether an action is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    Done,
    /// Another session holds a lock.
    Blocked,
}

/// A transaction in progress.
pub struct Open {
    pub txn: Arc<Transaction>,
    /// One snapshot for all statements.
    pub repeatable: bool,
    pub snapshot: Option<Csn>,
    pub changes: Changes,
    pub savepoints: Vec<(Savepoint, Changes)>,
    pub cursor: Option<Cursor>,
    /// An action that waits, and for how long it has.
    blocked: Option<(Action, u32)>,
    /// Values of sequences that it has used.
    pub used: Vec<(SequenceId, i64)>,
    /// SERIALIZABLE: its reads.
    reads: Option<Vec<Read>>,
    /// Declared READ ONLY.
    pub read_only: bool,
}

/// A commit on its way.
struct Ending {
    committing: Committing,
    csn: Csn,
    used: Vec<(SequenceId, i64)>,
    synchronous: bool,
}

pub struct Client {
    pub number: usize,
    session: Arc<EngineSession>,
    open: Option<Open>,
    ending: Option<Ending>,
}

impl Client {
    pub fn new(number: usize, session: Arc<EngineSession>) -> Client {
        // A wait is a refusal: the request queues, and is taken back at once.
        session.set_lock_timeout(Some(std::time::Duration::ZERO));
        Client { number, session, open: None, ending: None }
    }

    /// One step; an error is a checker's finding.
    pub fn step(&mut self, world: &mut World) -> Result<(), String> {
        if self.ending.is_some() {
            return self.poll(world);
        }
        let Some(mut open) = self.open.take() else { return self.begin(world) };
        match self.act(world, &mut open) {
            Ok(true) => self.open = Some(open),
            Ok(false) => {}
            Err(Failure::Violation(message)) => return Err(format!("session {}: {message}", self.number)),
            Err(Failure::Engine(e)) => {
                world.judge(&e, "a statement")?;
                world.event(format_args!("{} rolls back: {e}", self.number));
                open.end(|txn| txn.rollback());
            }
        }
        Ok(())
    }

    fn begin(&mut self, world: &mut World) -> Result<(), String> {
        let repeatable = world.random.chance(world.profile.repeatable);
        let isolation = match repeatable {
            false => Isolation::ReadCommitted,
            true if world.random.chance(world.profile.serializable) => Isolation::Serializable,
            true => Isolation::RepeatableRead,
        };
        let txn = match world.engine().begin_in(&self.session, isolation) {
            Ok(txn) => txn,
            Err(e) => return world.judge(&e, "begin"),
        };
        let is_serializable = isolation == Isolation::Serializable;
        let read_only = is_serializable && world.random.chance(25);
        txn.set_access(read_only, false);
        let access = if read_only { " READ ONLY" } else { "" };
        world.event(format_args!("{} begins {isolation:?}{access}", self.number));
        self.open = Some(Open {
            txn,
            repeatable,
            snapshot: None,
            changes: Changes::default(),
            savepoints: Vec::new(),
            cursor: None,
            blocked: None,
            used: Vec::new(),
            reads: is_serializable.then(Vec::new),
            read_only,
        });
        Ok(())
    }

    /// False: the transaction has ended.
    fn act(&mut self, world: &mut World, open: &mut Open) -> Outcome<bool> {
        if let Some((action, waited)) = open.blocked.take() {
            if waited == PATIENCE {
                world.event(format_args!("{} waited too long", self.number));
                self.give_up(world, open);
                return Ok(false);
            }
            return self.attempt(world, open, action, waited).map(|()| true);
        }
        if open.cursor.is_some() && world.random.chance(30) {
            world.step_cursor(open)?;
            return Ok(true);
        }
        let choice = world.random.below(100);
        let profile = &world.profile;
        if choice < profile.commit {
            return self.end(world, open).map(|()| false);
        }
        if choice < profile.commit + 4 {
            self.give_up(world, open);
            return Ok(false);
        }
        if choice < profile.commit + 14 {
            self.savepoint(world, open);
            return Ok(true);
        }
        if choice < profile.commit + 17 && !open.repeatable && open.cursor.is_none() {
            open.txn.end_statement();
            return Ok(true);
        }
        match world.choose_action(open) {
            Some(action) => self.attempt(world, open, action, 0).map(|()| true),
            None => Ok(true),
        }
    }

    fn attempt(&mut self, world: &mut World, open: &mut Open, action: Action, waited: u32) -> Outcome<()> {
        world.event(format_args!("{} {action:?}", self.number));
        match world.perform(open, &action) {
            Ok(Attempt::Done) => Ok(()),
            Ok(Attempt::Blocked) | Err(Failure::Engine(EngineError::LockTimeout)) => {
                world.event(format_args!("{} waits", self.number));
                open.blocked = Some((action, waited + 1));
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    fn savepoint(&mut self, world: &mut World, open: &mut Open) {
        if open.savepoints.is_empty() || world.random.chance(50) {
            world.event(format_args!("{} savepoint", self.number));
            open.savepoints.push((open.txn.savepoint(), open.changes.clone()));
            return;
        }
        let keep = world.random.below(open.savepoints.len());
        world.event(format_args!("{} rolls back to savepoint {keep}", self.number));
        open.savepoints.truncate(keep + 1);
        open.cursor = None;
        let (savepoint, changes) = &open.savepoints[keep];
        open.txn.rollback_to(*savepoint);
        open.changes = changes.clone();
    }

    fn give_up(&mut self, world: &mut World, open: &mut Open) {
        world.event(format_args!("{} rolls back", self.number));
        open.end(|txn| txn.rollback());
    }

    fn end(&mut self, world: &mut World, open: &mut Open) -> Outcome<()> {
        let synchronous = world.random.chance(world.profile.synchronous);
        let durability = if synchronous { Durability::Sync } else { Durability::Async };
        open.cursor = None;
        let changes = std::mem::take(&mut open.changes);
        let may_write = !changes.rows.is_empty() || !changes.schema.is_empty() || open.txn.has_writes();
        let committing = open.txn.start_commit(durability, None)?;
        let csn = committing.csn();
        world.event(format_args!("{} commits {csn} {durability:?}", self.number));
        world.stats.commits += 1;
        // One that has rolled all its changes back to a savepoint gets the number of the last commit before it.
        let writes = may_write && csn > world.model.assigned;
        if writes {
            world.model.commit(csn, changes, synchronous);
        } else if !changes.rows.is_empty() || !changes.schema.is_empty() {
            return Err(Failure::Violation(format!("a commit got {csn}, and {} was given before", world.model.assigned)));
        }
        if let Some(reads) = open.reads.take() {
            world.serializable.add(open.snapshot.unwrap_or(csn), writes.then_some(csn), reads);
        }
        self.ending = Some(Ending { committing, csn, used: std::mem::take(&mut open.used), synchronous });
        Ok(())
    }

    fn poll(&mut self, world: &mut World) -> Result<(), String> {
        let Some(Ending { committing, csn, used, synchronous }) = self.ending.take() else { return Ok(()) };
        match committing.poll() {
            Err(committing) => {
                self.ending = Some(Ending { committing, csn, used, synchronous });
                if world.random.chance(20) { world.flush_log() } else { Ok(()) }
            }
            Ok(Ok(ended)) => {
                world.event(format_args!("{} committed {ended}", self.number));
                if ended != csn {
                    return Err(format!("the commit of {csn} ended as {ended}"));
                }
                world.model.acknowledge(csn);
                if synchronous {
                    world.model.use_values(&used);
                }
                Ok(())
            }
            Ok(Err(e)) => {
                world.event(format_args!("{} does not know of commit {csn}: {e}", self.number));
                world.judge(&e, "a commit")?;
                match world.engine().failure() {
                    Some(_) => Ok(()),
                    None => Err(format!("commit {csn} failed after it had its place, and the engine goes on: {e}")),
                }
            }
        }
    }

    /// Ends an open transaction, so that a clean stop may follow; an error is a finding.
    pub fn finish(&mut self, world: &mut World) -> Result<(), String> {
        if let Some(mut open) = self.open.take() {
            self.give_up(world, &mut open);
        }
        while self.ending.is_some() {
            world.flush_log()?;
            self.poll(world)?;
        }
        Ok(())
    }
}

impl Open {
    /// A new statement's view, checked.
    pub fn view(&mut self, world: &mut World) -> Outcome<ReadView> {
        let view = self.txn.statement_view();
        check::views::check(&world.model, view.csn, self.snapshot)?;
        if self.repeatable {
            self.snapshot = Some(view.csn);
        }
        // A crash may lose the view's transaction together with commits that are applied and not visible.
        world.model.must_keep_seen(view.csn.min(world.engine().visible_csn()));
        Ok(view)
    }

    /// Notes a read before it happens.
    pub fn note(&mut self, read: Read) {
        self.reads.iter_mut().for_each(|reads| reads.push(read.clone()));
    }

    fn end(&mut self, how: impl FnOnce(&Transaction)) {
        self.cursor = None;
        how(&self.txn);
    }

    /// The columns that an index is on, of those that the table has an index for.
    pub fn has_text_index(indexes: &[(melba_types::TreeId, IndexKey, Csn)]) -> bool {
        indexes.iter().any(|(_, key, _)| *key == IndexKey::Text)
    }
}
