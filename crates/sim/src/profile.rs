//! The parameters of one seed's run: sizes, shares of actions, and failures. Seeds differ widely in these, because many bugs need
//! much of one thing rather than a little of everything.

use std::time::Duration;

use melba_engine::EngineOptions;
use melba_vfs::SeededRandom;

/// The failures of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Power cuts, kills and clean stops only.
    Crashes,
    /// Single operations of the file system fail too.
    Faults,
    /// The disk is full now and then.
    FullDisk,
}

#[derive(Clone, Debug)]
pub struct Profile {
    pub options: EngineOptions,
    pub trouble: Trouble,
    pub clients: usize,
    pub steps: usize,
    /// Percentages.
    pub repeatable: usize,
    /// Of those.
    pub serializable: usize,
    /// Of texts, those that are kept out of their rows.
    pub framed: usize,
    pub synchronous: usize,
    pub commit: usize,
    /// Of all actions, those that write rows; of the rest, those that change the schema or a sequence.
    pub writes: usize,
    pub schema: usize,
    /// Rows of a table above which deletions are preferred.
    pub rows: usize,
    /// In a thousand steps.
    pub background: usize,
    pub crashes: usize,
    pub faults: usize,
    /// Of a power cut's unsynced sectors and names, how many survive: a percentage for each cut, drawn from these.
    pub survive: &'static [usize],
}

impl Profile {
    pub fn draw(random: &SeededRandom) -> Profile {
        let one_of = |choices: &[usize]| choices[random.below(choices.len())];
        let trouble = [Trouble::Crashes, Trouble::Crashes, Trouble::Faults, Trouble::FullDisk][random.below(4)];
        Profile {
            options: EngineOptions {
                memory_bytes: one_of(&[12_000, 40_000, 120_000, 400_000]) as u64,
                wal_file_bytes: one_of(&[1024, 4096, 16_384]) as u64,
                segment_bytes: one_of(&[500, 2000, 8000, 1 << 20]),
                bulk_rows_min: one_of(&[4, 20, 60]),
                write_set_bytes: one_of(&[500, 3000, 16 << 20]),
                open_files_max: one_of(&[1, 4, 512]),
                wal_writer_delay: Duration::from_millis(one_of(&[1, 50, 200]) as u64),
                ..EngineOptions::default()
            },
            trouble,
            clients: one_of(&[2, 4, 8]),
            steps: one_of(&[300, 900, 1600]),
            repeatable: one_of(&[20, 50, 80]),
            serializable: one_of(&[0, 30, 90]),
            framed: one_of(&[0, 5, 40]),
            synchronous: one_of(&[20, 60, 95]),
            commit: one_of(&[6, 15, 30]),
            writes: one_of(&[50, 70, 85]),
            schema: one_of(&[5, 15, 40]),
            rows: one_of(&[20, 80, 250]),
            background: one_of(&[40, 150, 400]),
            crashes: one_of(&[2, 6, 15]),
            faults: one_of(&[3, 10]),
            survive: &[0, 0, 30, 50, 80, 100],
        }
    }
}
