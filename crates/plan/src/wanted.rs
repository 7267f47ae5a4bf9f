//! How many rows will be read of a query.

/// How many of a query's rows will be read before LIMIT ends it.
#[derive(Clone, Copy, Default)]
pub(super) enum Wanted {
    #[default]
    All,
    /// A share of them, where LIMIT or OFFSET has no value yet.
    Share(f64),
    Rows(f64),
}

/// The smallest share that counts. Rows that match may stand at the end of an order, so a plan that is good only if they come at once
/// is not taken for one that finds them all.
const SHARE_MIN: f64 = 0.01;

impl Wanted {
    /// The share of `rows`.
    pub fn share_of(self, rows: f64) -> f64 {
        match self {
            Wanted::All => 1.0,
            Wanted::Share(share) => share,
            Wanted::Rows(wanted) => (wanted / rows.max(1.0)).clamp(SHARE_MIN, 1.0),
        }
    }
}
