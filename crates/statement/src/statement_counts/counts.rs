//! The figures of a statement.

use melba_engine::IoCounts;

/// Times of one kind, in nanoseconds: their number, sum, extremes, and the sum of squared differences from the mean.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    pub count: u64,
    pub total: f64,
    pub min: f64,
    pub max: f64,
    /// `min` and `max` cover this many.
    pub since_reset: u64,
    squares: f64,
}

impl Times {
    fn one(nanoseconds: u64) -> Times {
        let time = nanoseconds as f64;
        Times { count: 1, total: time, min: time, max: time, since_reset: 1, squares: 0.0 }
    }

    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total / self.count as f64 }
    }

    /// Of the population, as PostgreSQL's.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.squares / self.count as f64).sqrt() }
    }

    /// Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979).
    fn add(&mut self, other: &Times) {
        if other.count == 0 {
            self.total += other.total;
            return;
        }
        if self.count == 0 {
            *self = Times { total: self.total + other.total, ..*other };
            return;
        }
        let (mine, theirs) = (self.count as f64, other.count as f64);
        let difference = other.mean() - self.mean();
        self.squares += other.squares + difference * difference * mine * theirs / (mine + theirs);
        self.count += other.count;
        self.total += other.total;
        match (self.since_reset, other.since_reset) {
            (_, 0) => {}
            (0, _) => (self.min, self.max) = (other.min, other.max),
            _ => (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max)),
        }
        self.since_reset += other.since_reset;
    }

    fn reset_extremes(&mut self) {
        (self.min, self.max, self.since_reset) = (0.0, 0.0, 0);
    }
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub planning: Times,
    pub execution: Times,
    pub rows: u64,
    pub io: IoCounts,
}

impl Counts {
    /// Of one execution; times in nanoseconds.
    pub fn one(execution: u64, rows: u64, planning: Option<u64>, io: IoCounts) -> Counts {
        Counts { planning: planning.map_or_else(Times::default, Times::one), execution: Times::one(execution), rows, io }
    }

    /// Of an execution that continues.
    pub fn more(execution: u64, rows: u64, io: IoCounts) -> Counts {
        Counts { execution: Times { total: execution as f64, ..Times::default() }, rows, io, ..Counts::default() }
    }

    pub fn add(&mut self, other: &Counts) {
        self.planning.add(&other.planning);
        self.execution.add(&other.execution);
        self.rows += other.rows;
        self.io.add(&other.io);
    }

    pub fn reset_extremes(&mut self) {
        self.planning.reset_extremes();
        self.execution.reset_extremes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_sums_are_those_of_all() {
        let of = |times: &[u64]| {
            let mut counts = Counts::default();
            times.iter().for_each(|time| counts.add(&Counts::one(*time, 2, Some(*time), IoCounts::default())));
            counts
        };
        let (mut sum, all) = (of(&[2, 4, 4]), of(&[2, 4, 4, 4, 5, 5, 7, 9]));
        sum.add(&of(&[4, 5, 5, 7, 9]));
        assert_eq!((sum.execution.count, sum.execution.total, sum.rows), (8, 40.0, 16));
        assert_eq!((sum.execution.min, sum.execution.max), (2.0, 9.0));
        assert!((sum.execution.deviation() - 2.0).abs() < 1e-9 && (all.execution.deviation() - 2.0).abs() < 1e-9);
        sum.reset_extremes();
        sum.add(&of(&[6]));
        assert_eq!((sum.execution.min, sum.execution.max, sum.planning.count), (6.0, 6.0, 9));
    }
}
