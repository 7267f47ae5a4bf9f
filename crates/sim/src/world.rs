//! The engine, its disk and its clock, the model, and the choice of the next event.

use std::sync::Arc;
use std::time::Duration;

use melba_engine::{BackgroundStep, Engine, EngineError};
use melba_types::Csn;
use melba_vfs::{Clock, Directory, Faults, FaultyDirectory, FileOperation, ManualClock, MemoryDirectory, SeededRandom};

use crate::check::serializable::History;
use crate::client::{Action, Attempt, Client, Open};
use crate::failure::Outcome;
use crate::model::{Model, TableNumber};
use crate::profile::{Profile, Trouble};
use crate::row::{Row, Value};
use crate::trace::Trace;

/// Single rows have numbers below this, and some of those that are loaded.
pub const NUMBERS: i64 = 70;
/// Other numbers of rows that are loaded begin here, and never come again.
const LOADED_NUMBERS: i64 = 1_000_000;

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    pub steps: u64,
    pub actions: u64,
    pub commits: u64,
    /// Loads that succeeded, and that found an existing number.
    pub loads: u64,
    pub refused_loads: u64,
    pub background: u64,
    pub power_cuts: u64,
    pub kills: u64,
    pub clean_stops: u64,
    pub faults: u64,
}

pub struct World {
    pub random: SeededRandom,
    pub profile: Profile,
    pub directory: Arc<MemoryDirectory>,
    pub faults: Arc<Faults>,
    pub clock: Arc<ManualClock>,
    /// `None` only while it is restarted.
    pub engine: Option<Arc<Engine>>,
    pub model: Model,
    pub trace: Trace,
    pub stats: Stats,
    /// The SERIALIZABLE transactions since the engine was opened.
    pub serializable: History,
    /// Whether that is judged.
    pub judges_serializable: bool,
    next_loaded: i64,
}

impl World {
    pub fn new(seed: u64, verbose: bool) -> Result<World, String> {
        let random = SeededRandom::new(seed);
        let profile = Profile::draw(&random);
        let mut world = World {
            random,
            profile,
            directory: MemoryDirectory::new(),
            faults: Faults::new(),
            clock: Arc::default(),
            engine: None,
            model: Model::default(),
            trace: Trace::new(verbose),
            stats: Stats::default(),
            serializable: History::default(),
            judges_serializable: false,
            next_loaded: LOADED_NUMBERS,
        };
        world.trace.event(format_args!("{:?}", world.profile));
        let engine = world.open().map_err(|e| format!("an empty folder does not open: {e}"))?;
        world.engine = Some(engine);
        Ok(world)
    }

    pub fn engine(&self) -> &Arc<Engine> {
        self.engine.as_ref().expect("only a restart takes it away, and puts it back")
    }

    pub fn event(&mut self, event: std::fmt::Arguments<'_>) {
        self.trace.event(event);
    }

    /// The folder that the engine sees.
    pub fn folder(&self) -> Arc<dyn Directory> {
        FaultyDirectory::new(Arc::clone(&self.directory) as Arc<dyn Directory>, Arc::clone(&self.faults))
    }

    pub fn open(&self) -> Result<Arc<Engine>, EngineError> {
        Engine::open(self.profile.options.clone(), self.folder(), Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    pub fn clients(&self) -> Result<Vec<Client>, String> {
        let session = |number| match self.engine().session() {
            Ok(session) => Ok(Client::new(number, session)),
            Err(e) => Err(format!("no session: {e}")),
        };
        (0..self.profile.clients).map(session).collect()
    }

    /// Whether a failure was planned since the engine was opened.
    pub fn is_troubled(&self) -> bool {
        self.faults.failures() > 0 || self.directory.is_off()
    }

    /// Whether the engine may answer with this error now; an error otherwise.
    pub fn judge(&self, e: &EngineError, what: &str) -> Result<(), String> {
        let allowed = match e {
            EngineError::Io { source, .. } => {
                source.kind() == std::io::ErrorKind::StorageFull
                    || ["injected failure", "the power is off"].contains(&source.to_string().as_str())
            }
            EngineError::Poisoned { .. } => self.is_troubled(),
            EngineError::SerializationFailure | EngineError::SerializationConflict { .. } | EngineError::LockTimeout => true,
            EngineError::OutOfMemory { what } => what.contains("memory tables"),
            _ => false,
        };
        if allowed { Ok(()) } else { Err(format!("{what} failed: {e:?}")) }
    }

    /// Makes the log durable, as a commit that leads does.
    pub fn flush_log(&mut self) -> Result<(), String> {
        match self.engine().flush_log() {
            Ok(()) => {
                self.event(format_args!("log flushed"));
                self.model.must_keep_all();
                Ok(())
            }
            Err(e) => {
                self.event(format_args!("log not flushed: {e}"));
                self.judge(&e, "a flush of the log")
            }
        }
    }

    /// One step of the background work beside the sessions.
    pub fn background(&mut self) -> Result<(), String> {
        self.stats.background += 1;
        let engine = Arc::clone(self.engine());
        let choice = self.random.below(100);
        let step = match choice {
            0..20 => BackgroundStep::Log,
            20..25 => BackgroundStep::LogFile,
            25..65 => BackgroundStep::Flush,
            _ => BackgroundStep::Merge,
        };
        if choice < 95 {
            let worked = engine.run_step(step);
            self.event(format_args!("{step:?} step: {worked}"));
            return Ok(());
        }
        let (what, result) = match choice {
            95..99 => ("checkpoint", engine.checkpoint()),
            _ => ("merge of everything", engine.merge_all()),
        };
        self.event(format_args!("{what}: {result:?}"));
        match result {
            Ok(()) if what == "checkpoint" => self.model.must_keep_all(),
            Ok(()) => {}
            Err(e) => self.judge(&e, what)?,
        }
        Ok(())
    }

    /// Time passes, mostly little.
    pub fn pass_time(&mut self) {
        let millis = if self.random.chance(2) { 2000 } else { self.random.below(20) as u64 };
        self.clock.advance(Duration::from_millis(millis));
    }

    /// Arms or heals the planned failures.
    pub fn trouble(&mut self) {
        match self.profile.trouble {
            Trouble::Crashes => {}
            Trouble::Faults => {
                let which: &[&[FileOperation]] = &[
                    FileOperation::ALL,
                    &[FileOperation::Read],
                    &[FileOperation::Write],
                    &[FileOperation::Sync],
                    &[FileOperation::SyncNames],
                    &[FileOperation::Rename, FileOperation::Remove],
                    &[FileOperation::Create, FileOperation::Open],
                ];
                let which = which[self.random.below(which.len())];
                let n = self.random.below(60) as u64;
                self.event(format_args!("operation {n} of {which:?} is to fail"));
                self.faults.fail_once(which, n);
            }
            Trouble::FullDisk => {
                let free = if self.random.chance(50) { None } else { Some(self.random.below(20_000) as u64) };
                self.event(format_args!("free space is {free:?}"));
                self.faults.set_free(free);
            }
        }
    }

    /// A transaction's next action; `None`: nothing.
    pub fn choose_action(&mut self, open: &Open) -> Option<Action> {
        let visible = self.engine().visible_csn();
        let numbers = self.model.numbers(&open.changes, visible);
        let few = numbers.len() < 2;
        if open.read_only && numbers.is_empty() {
            return None;
        }
        if !open.read_only && (few || self.random.chance(2) && numbers.len() < 5) {
            return self.random.chance(if few { 60 } else { 100 }).then_some(Action::CreateTable);
        }
        let number = numbers[self.random.below(numbers.len())];
        if open.read_only {
            return Some(if open.cursor.is_none() && self.random.chance(15) {
                Action::OpenCursor(number)
            } else {
                Action::Read(number)
            });
        }
        if self.random.chance(self.profile.writes) {
            return Some(self.choose_write(open, number, visible));
        }
        if self.random.chance(self.profile.schema) {
            return self.choose_schema(number, visible);
        }
        Some(if open.cursor.is_none() && self.random.chance(15) { Action::OpenCursor(number) } else { Action::Read(number) })
    }

    fn choose_write(&mut self, open: &Open, number: TableNumber, visible: Csn) -> Action {
        let rows = self.model.rows(number, visible, &open.changes).len();
        let nth = self.random.below(1000);
        let full = rows > self.profile.rows;
        match self.random.below(20) {
            0 if !full => Action::Load(number, self.loaded_rows()),
            0..5 => Action::Delete(number, nth),
            5..12 if !full => Action::Insert(number, self.row()),
            5..8 => Action::Delete(number, nth),
            12 => Action::LockRow(number, nth),
            _ => Action::Update(number, nth, self.row()),
        }
    }

    fn choose_schema(&mut self, number: TableNumber, visible: Csn) -> Option<Action> {
        let live = self.model.sequences.iter().filter(|(_, s)| s.life.is_at(visible));
        let sequences: Vec<_> = live.map(|(id, _)| *id).collect();
        let sequence = (!sequences.is_empty()).then(|| sequences[self.random.below(sequences.len())]);
        match (self.random.below(20), sequence) {
            (0..2, _) => Some(Action::DropTable(number)),
            (2..4, _) => Some(Action::CreateIndex(number)),
            (4..6, _) => Some(Action::DropIndex(number)),
            (6..8, _) => Some(Action::AddColumn(number)),
            (8, _) if sequences.len() < 3 => Some(Action::CreateSequence),
            (9, Some(id)) => Some(Action::DropSequence(id)),
            (10, Some(id)) => Some(Action::SetValue(id, 1 + self.random.below(50) as i64)),
            (_, Some(id)) => Some(Action::NextValue(id)),
            _ => None,
        }
    }

    /// A row; its number may be another row's.
    fn row(&mut self) -> Row {
        let number = self.random.below(NUMBERS as usize) as i64;
        self.row_with(number)
    }

    fn row_with(&mut self, number: i64) -> Row {
        let prefix = self.random.below(40);
        let text = match self.random.below(10) {
            0 => Value::Null,
            1 => Value::Text(format!("{prefix:02}{:x}", self.random.below(1 << 30)).repeat(1 + self.random.below(40))),
            _ => Value::Text(format!("{prefix:02}{}", "abcdefgh".repeat(self.random.below(8)))),
        };
        let framed = self.random.chance(self.profile.framed);
        let mut values = vec![Value::Number(number), text];
        for _ in 2..5 {
            let value = Value::Number(self.random.below(100) as i64);
            values.push(if self.random.chance(20) { Value::Null } else { value });
        }
        let mut row = Row(values);
        if framed {
            row.want_frames();
        }
        row
    }

    fn loaded_rows(&mut self) -> Vec<Row> {
        let count = 1 + self.random.below(self.profile.options.bulk_rows_min * 3);
        let first = self.next_loaded;
        self.next_loaded += count as i64;
        // In a thousand; most loads that have any have few, so that they do not all fail.
        let contended = [0, 0, 20, 100, 600][self.random.below(5)];
        let descending = self.random.chance(30);
        let numbers = (first..self.next_loaded).map(|n| {
            let fresh = if descending { self.next_loaded + first - 1 - n } else { n };
            if self.random.below(1000) < contended { self.random.below(NUMBERS as usize) as i64 } else { fresh }
        });
        let numbers: Vec<i64> = numbers.collect();
        numbers.into_iter().map(|n| self.row_with(n)).collect()
    }

    pub fn perform(&mut self, open: &mut Open, action: &Action) -> Outcome<Attempt> {
        self.stats.actions += 1;
        match action {
            Action::Insert(table, row) => self.insert(open, *table, row),
            Action::Update(table, nth, row) => self.update(open, *table, *nth, row),
            Action::Delete(table, nth) => self.delete(open, *table, *nth),
            Action::LockRow(table, nth) => self.lock_only(open, *table, *nth),
            Action::Load(table, rows) => self.load(open, *table, rows),
            Action::Read(table) => self.read(open, *table),
            Action::OpenCursor(table) => self.open_cursor(open, *table),
            Action::CreateTable => self.create_table(open),
            Action::DropTable(table) => self.drop_table(open, *table),
            Action::CreateIndex(table) => self.create_index(open, *table),
            Action::DropIndex(table) => self.drop_index(open, *table),
            Action::AddColumn(table) => self.add_column(open, *table),
            Action::CreateSequence => self.create_sequence(open),
            Action::DropSequence(id) => self.drop_sequence(open, *id),
            Action::NextValue(id) => self.next_value(open, *id),
            Action::SetValue(id, by) => self.set_value(open, *id, *by),
        }
    }
}
