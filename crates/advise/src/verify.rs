//! Verifies the prediction: the whole table is loaded by each method, and its size is compared with the predicted one.

use postgres::Client;

use crate::Result;
use crate::advice::{TableAdvice, Verdict};
use crate::sample::Sample;
use crate::trial::load_together;

/// Loads a table into a server whose read budget is `budget`.
pub fn verify(client: &mut Client, sample: &Sample, advice: &TableAdvice, budget: f64) -> Result<Vec<Verdict>> {
    let tried = advice.rests.iter().enumerate().filter(|(_, rest)| rest.budget.is_none_or(|own| own == budget));
    let each = tried.map(|(at, rest)| {
        Ok(Verdict {
            table: sample.name.clone(),
            method: rest.name(),
            predicted_bytes: advice.melba_bytes_with(|_| at),
            took_bytes: load_together(client, sample, rest.method, |each| (sample.scan)(&(0.0..1.0), each))?,
        })
    });
    each.collect()
}
