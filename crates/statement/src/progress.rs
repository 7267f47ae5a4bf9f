//! How far a long command is (pg_stat_progress_*): figures that only its session writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, Ordering::Relaxed};

use melba_definition::progress::{LongCommand, ProgressReport};
use melba_types::{Datum, Oid};

use super::activity::Activity;

/// Figures that pg_stat_get_progress_info() returns.
pub const FIGURES: usize = 20;

/// The running command, by its name in pg_stat_get_progress_info().
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ProgressCommand {
    Copy = 1,
    CreateIndex = 2,
    Analyze = 3,
    Vacuum = 4,
}

impl From<LongCommand> for ProgressCommand {
    fn from(command: LongCommand) -> ProgressCommand {
        match command {
            LongCommand::CreateIndex => ProgressCommand::CreateIndex,
            LongCommand::Analyze => ProgressCommand::Analyze,
            LongCommand::Vacuum => ProgressCommand::Vacuum,
        }
    }
}

impl ProgressCommand {
    pub fn by_name(name: &str) -> Option<ProgressCommand> {
        Some(match &*name.to_ascii_uppercase() {
            "COPY" => ProgressCommand::Copy,
            "CREATE INDEX" => ProgressCommand::CreateIndex,
            "ANALYZE" => ProgressCommand::Analyze,
            "VACUUM" => ProgressCommand::Vacuum,
            _ => return None,
        })
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Progress {
    /// 0: nothing is under way.
    command: AtomicU8,
    relation: AtomicU32,
    figures: [AtomicI64; FIGURES],
}

impl Progress {
    /// The relation and the figures of a command that is under way.
    pub fn of(&self, command: ProgressCommand) -> Option<(Oid, [i64; FIGURES])> {
        let is_it = self.command.load(Relaxed) == command as u8;
        is_it.then(|| (Oid(self.relation.load(Relaxed)), std::array::from_fn(|at| self.figures[at].load(Relaxed))))
    }
}

/// A command that is under way as long as this lives.
pub struct Running(Arc<Activity>);

impl Running {
    pub fn begin(activity: &Arc<Activity>, command: ProgressCommand, relation: Oid) -> Running {
        let progress = &activity.progress;
        progress.figures.iter().for_each(|figure| figure.store(0, Relaxed));
        progress.relation.store(relation.0, Relaxed);
        progress.command.store(command as u8, Relaxed);
        Running(activity.clone())
    }

    /// The same for a part of a statement; `None`: another part is under way.
    pub fn begin_within(activity: &Arc<Activity>, command: ProgressCommand, relation: Oid) -> Option<Running> {
        let is_free = activity.progress.command.load(Relaxed) == 0;
        is_free.then(|| Running::begin(activity, command, relation))
    }

    /// `number`: as `paramN`.
    pub fn set(&self, number: usize, value: i64) {
        self.0.progress.figures[number - 1].store(value, Relaxed);
    }

    pub fn add(&self, number: usize, value: i64) {
        let figure = &self.0.progress.figures[number - 1];
        figure.store(figure.load(Relaxed) + value, Relaxed);
    }
}

impl ProgressReport for Running {
    fn set(&self, number: usize, value: i64) {
        Running::set(self, number, value);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.progress.command.store(0, Relaxed);
    }
}

/// A row of pg_stat_get_progress_info(): pid, datid, relid, param1 and so on; users who may not see them get only the first two.
pub fn row(pid: i32, database: Oid, relation: Oid, figures: &[i64; FIGURES], is_seen: bool) -> Vec<Datum> {
    let seen = |value: Datum| if is_seen { value } else { Datum::Null };
    let mut row = vec![Datum::Int4(pid), Datum::Oid(database.0), seen(Datum::Oid(relation.0))];
    row.extend(figures.iter().map(|figure| seen(Datum::Int8(*figure))));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_long_as_it_runs() {
        let activity = Arc::<Activity>::default();
        assert!(activity.progress.of(ProgressCommand::Copy).is_none());
        let running = Running::begin(&activity, ProgressCommand::Copy, Oid(7));
        running.set(5, 1);
        running.add(1, 10);
        running.add(1, 5);
        let (relation, figures) = activity.progress.of(ProgressCommand::Copy).expect("it runs");
        assert_eq!((relation, figures[0], figures[4]), (Oid(7), 15, 1));
        drop(running);
        assert!(activity.progress.of(ProgressCommand::Copy).is_none());
        Running::begin(&activity, ProgressCommand::Copy, Oid(8)).set(2, 1);
        let again = Running::begin(&activity, ProgressCommand::Copy, Oid(9));
        assert_eq!(activity.progress.of(ProgressCommand::Copy).map(|(_, figures)| figures[1]), Some(0), "figures begin anew");
        assert!(Running::begin_within(&activity, ProgressCommand::CreateIndex, Oid(10)).is_none(), "the outer one is shown");
        drop(again);
        assert!(Running::begin_within(&activity, ProgressCommand::CreateIndex, Oid(10)).is_some());
    }
}
