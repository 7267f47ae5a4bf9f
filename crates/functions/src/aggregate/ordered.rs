//! Ordered-set and hypothetical-set aggregates; see the module above for their arguments.

use std::sync::Arc;

use melba_fmgr::value_order::Comparison;
use melba_fmgr::{Aggregate, AggregateFn, CallInfo, registry};
use melba_types::{Array, Datum, DbError, Oid, Result, err};

use super::any;

pub const AGGREGATES: &[(&str, &str, AggregateFn)] = &[
    ("ordered_set_transition", "percentile_disc_final", |_| Percentile::make(discrete)),
    ("ordered_set_transition", "percentile_disc_multi_final", |_| Percentile::make(discrete)),
    ("ordered_set_transition", "percentile_cont_float8_final", |_| Percentile::make(continuous_float)),
    ("ordered_set_transition", "percentile_cont_float8_multi_final", |_| Percentile::make(continuous_float)),
    ("ordered_set_transition", "percentile_cont_interval_final", |_| Percentile::make(continuous_interval)),
    ("ordered_set_transition", "percentile_cont_interval_multi_final", |_| Percentile::make(continuous_interval)),
    ("ordered_set_transition", "mode_final", |_| Ok(Box::new(Mode { best: (Datum::Null, 0), run: (Datum::Null, 0) }))),
    ("ordered_set_transition_multi", "hypothetical_rank_final", |_| Hypothetical::make(HypotheticalResult::Rank)),
    ("ordered_set_transition_multi", "hypothetical_dense_rank_final", |_| Hypothetical::make(HypotheticalResult::DenseRank)),
    ("ordered_set_transition_multi", "hypothetical_percent_rank_final", |_| Hypothetical::make(HypotheticalResult::PercentRank)),
    ("ordered_set_transition_multi", "hypothetical_cume_dist_final", |_| Hypothetical::make(HypotheticalResult::CumeDist)),
];

/// The value at a fraction of sorted values, of which there is at least one.
type Pick = fn(&CallInfo<'_>, &[Datum], f64) -> Result<Datum>;

fn discrete(_: &CallInfo<'_>, values: &[Datum], fraction: f64) -> Result<Datum> {
    let row = (fraction * values.len() as f64).ceil() as usize;
    Ok(values[row.max(1) - 1].clone())
}

/// The neighbours of a fraction's place, and where it lies between them.
fn neighbours(values: &[Datum], fraction: f64) -> (&Datum, &Datum, f64) {
    let place = fraction * (values.len() - 1) as f64;
    (&values[place.floor() as usize], &values[place.ceil() as usize], place - place.floor())
}

fn continuous_float(_: &CallInfo<'_>, values: &[Datum], fraction: f64) -> Result<Datum> {
    let (low, high, part) = neighbours(values, fraction);
    let (low, high) = (low.as_f64(), high.as_f64());
    Ok(Datum::Float8(if part == 0.0 { low } else { low + part * (high - low) }))
}

fn continuous_interval(call: &CallInfo<'_>, values: &[Datum], fraction: f64) -> Result<Datum> {
    let (low, high, part) = neighbours(values, fraction);
    if part == 0.0 {
        return Ok(low.clone());
    }
    let function = |name: &str| registry::scalar(name).ok_or_else(|| DbError::unsupported("percentile_cont of intervals"));
    let span = function("interval_mi")?(call, &[high.clone(), low.clone()])?;
    let part = function("interval_mul")?(call, &[span, Datum::Float8(part)])?;
    function("interval_pl")?(call, &[part, low.clone()])
}

/// percentile_disc and percentile_cont, of one fraction or an array of them.
struct Percentile {
    /// NULL, a fraction or an array of them.
    fraction: Datum,
    values: Vec<Datum>,
    /// Bytes that the values point to.
    memory: usize,
    pick: Pick,
}

impl Percentile {
    fn make(pick: Pick) -> Result<Box<dyn Aggregate>> {
        Ok(Box::new(Percentile { fraction: Datum::Null, values: Vec::new(), memory: 0, pick }))
    }

    /// The value at a fraction; the fraction is checked even if there is no value.
    fn at(&self, call: &CallInfo<'_>, fraction: &Datum) -> Result<Datum> {
        if fraction.is_null() {
            return Ok(Datum::Null);
        }
        let fraction = checked(fraction)?;
        if self.values.is_empty() { Ok(Datum::Null) } else { (self.pick)(call, &self.values, fraction) }
    }
}

/// A fraction between 0 and 1; 22003.
fn checked(fraction: &Datum) -> Result<f64> {
    let p = fraction.as_f64();
    if (0.0..=1.0).contains(&p) {
        return Ok(p);
    }
    let mut shown = Vec::new();
    melba_types::float::write_general(&mut shown, p, 6);
    let shown = String::from_utf8_lossy(&shown);
    Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "percentile value {shown} is not between 0 and 1"))
}

impl Aggregate for Percentile {
    fn begin(&mut self, _: &CallInfo<'_>, direct: &[Datum]) -> Result<()> {
        self.fraction = direct.first().cloned().unwrap_or_default();
        self.memory += self.fraction.heap_bytes();
        Ok(())
    }

    fn add(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        let Some(value) = args.first() else {
            return Err(DbError::internal("percentile takes a value"));
        };
        if !value.is_null() {
            self.memory += value.heap_bytes();
            self.values.push(value.clone());
        }
        Ok(())
    }

    fn merge(&mut self, _: Box<dyn Aggregate>) -> Result<()> {
        Err(DbError::internal("ordered-set aggregates are not merged"))
    }

    fn finish(&self, call: &CallInfo<'_>) -> Result<Datum> {
        let Datum::Array(fractions) = &self.fraction else { return self.at(call, &self.fraction) };
        // PostgreSQL does not check an array of fractions then.
        if self.values.is_empty() {
            return Ok(Datum::Null);
        }
        let elements = fractions.elements.iter().map(|f| self.at(call, f)).collect::<Result<Vec<_>>>()?;
        let element_type = melba_fmgr::lookup::array_element(call.session, call.return_type).unwrap_or(Oid::INVALID);
        Ok(Datum::Array(Arc::new(Array { element_type, dims: fractions.dims.clone(), elements })))
    }

    any!();

    fn grows(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        64 + self.values.capacity() * 24 + self.memory
    }
}

/// The most frequent value, the first of them in order.
struct Mode {
    best: (Datum, i64),
    run: (Datum, i64),
}

impl Aggregate for Mode {
    fn add(&mut self, call: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        let Some(v) = args.last().filter(|v| !v.is_null()) else { return Ok(()) };
        let equal = match &self.run.0 {
            Datum::Null => false,
            run => {
                let ty = call.arg_types.last().copied().unwrap_or(call.return_type);
                Comparison::of_type(call, ty, call.collation)?.compare(run, v)?.is_eq()
            }
        };
        if equal {
            self.run.1 += 1;
        } else {
            self.run = (v.clone(), 1);
        }
        if self.run.1 > self.best.1 {
            self.best = self.run.clone();
        }
        Ok(())
    }

    fn merge(&mut self, _: Box<dyn Aggregate>) -> Result<()> {
        Err(DbError::internal("ordered-set aggregates are not merged"))
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        Ok(self.best.0.clone())
    }

    any!();
}

#[derive(Clone, Copy)]
enum HypotheticalResult {
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
}

/// Where a row would stand among the aggregated ones.
struct Hypothetical {
    rows: i64,
    before: i64,
    peers: i64,
    /// Different rows before, for dense_rank.
    distinct_before: i64,
    previous: Vec<Datum>,
    result: HypotheticalResult,
}

impl Hypothetical {
    fn make(result: HypotheticalResult) -> Result<Box<dyn Aggregate>> {
        Ok(Box::new(Hypothetical { rows: 0, before: 0, peers: 0, distinct_before: 0, previous: Vec::new(), result }))
    }

    fn equals_previous(&self, call: &CallInfo<'_>, row: &[Datum]) -> Result<bool> {
        if self.previous.len() != row.len() {
            return Ok(false);
        }
        for (i, (a, b)) in self.previous.iter().zip(row).enumerate() {
            let equal = match (a.is_null(), b.is_null()) {
                (false, false) => {
                    let ty = call.arg_types.get(i).copied().unwrap_or(Oid::INVALID);
                    Comparison::of_type(call, ty, call.collation)?.compare(a, b)?.is_eq()
                }
                (a, b) => a == b,
            };
            if !equal {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Aggregate for Hypothetical {
    fn add(&mut self, call: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        let Some((Datum::Int4(ordering), row)) = args.split_last() else {
            return Err(DbError::internal("hypothetical-set aggregate without an ordering"));
        };
        self.rows += 1;
        match ordering {
            0 => self.peers += 1,
            1.. => {}
            _ => {
                self.before += 1;
                if !self.equals_previous(call, row)? {
                    self.distinct_before += 1;
                    self.previous = row.to_vec();
                }
            }
        }
        Ok(())
    }

    fn merge(&mut self, _: Box<dyn Aggregate>) -> Result<()> {
        Err(DbError::internal("hypothetical-set aggregates are not merged"))
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        Ok(match self.result {
            HypotheticalResult::Rank => Datum::Int8(self.before + 1),
            HypotheticalResult::DenseRank => Datum::Int8(self.distinct_before + 1),
            HypotheticalResult::PercentRank if self.rows == 0 => Datum::Float8(0.0),
            HypotheticalResult::PercentRank => Datum::Float8(self.before as f64 / self.rows as f64),
            // The hypothetical row counts among the rows.
            HypotheticalResult::CumeDist => Datum::Float8((self.before + self.peers + 1) as f64 / (self.rows + 1) as f64),
        })
    }

    any!();
}
