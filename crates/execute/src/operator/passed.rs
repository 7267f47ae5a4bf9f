//! How many rows the filters and the conditions of a scan pass, by which their order is chosen.

/// Results on fewer rows say nothing.
const JUDGED_ROWS: usize = 8192;

/// Of how many rows something was asked, and how many have passed.
#[derive(Clone, Copy, Default)]
pub(super) struct Passed {
    tested: usize,
    passed: usize,
}

impl Passed {
    pub fn note(&mut self, tested: usize, passed: usize) {
        self.tested += tested;
        self.passed += passed;
    }

    fn is_judged(&self) -> bool {
        self.tested >= JUDGED_ROWS
    }

    /// Whether more than 7 of 8 rows pass: to ask is not worth its time then.
    pub fn is_useless(&self) -> bool {
        self.is_judged() && self.passed > self.tested / 8 * 7
    }

    /// Whether this is known to leave out more than another does.
    pub fn is_sharper_than(&self, other: Passed) -> bool {
        let (own, others) = (self.passed as u128 * other.tested as u128, other.passed as u128 * self.tested as u128);
        self.is_judged() && other.is_judged() && own < others
    }

    /// Another part of the table is to be scanned, or the same with other parameters: what was learnt counts half.
    pub fn fade(&mut self) {
        (self.tested, self.passed) = (self.tested / 2, self.passed / 2);
    }
}
