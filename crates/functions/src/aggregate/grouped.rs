//! Aggregates of many groups at a time: their states are vectors by the group's number, not a box for each.

use std::collections::HashMap;

use melba_fmgr::{CallInfo, GroupedAggregate, TakenRows};
use melba_types::{Bitmap, Column, ColumnData, Datum, DbError, Mantissas, Numeric, Result};

use super::exact::{IntegerResult, NumericSum, count_of, integer_result, numeric_result, sum_of_integers, sum_of_words};
use super::for_each_valid;
use super::kernels::{best_of, greatest, least};

/// Calls `f` with each of the rows, all if none are named, whose value is not null, and with its group.
#[inline]
fn for_each_value(column: &Column, rows: Option<&[u32]>, places: &[u32], mut f: impl FnMut(usize, usize)) {
    match (rows, &column.validity) {
        (None, None) => places.iter().enumerate().for_each(|(row, place)| f(row, *place as usize)),
        (None, Some(valid)) => {
            places.iter().enumerate().filter(|(row, _)| valid.get(*row)).for_each(|(row, place)| f(row, *place as usize));
        }
        (Some(rows), valid) => {
            let valid = |row: &&u32| valid.as_ref().is_none_or(|v| v.get(**row as usize));
            rows.iter().filter(valid).for_each(|&row| f(row as usize, places[row as usize] as usize));
        }
    }
}

/// The states to merge, of the type they must have.
fn same<T: 'static>(other: &dyn GroupedAggregate) -> Result<&T> {
    other.as_any().downcast_ref().ok_or_else(|| DbError::internal("merged states of different aggregates"))
}

/// Adds the values of some groups to those at other places.
fn add_at<T: Copy + std::ops::AddAssign>(to: &mut [T], values: &[T], groups: &[u32], places: &[u32]) {
    groups.iter().zip(places).for_each(|(group, place)| to[*place as usize] += values[*group as usize]);
}

#[derive(Default)]
pub(super) struct GroupedCount {
    counts: Vec<i64>,
}

impl GroupedAggregate for GroupedCount {
    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
    }

    fn add(&mut self, _: &CallInfo<'_>, args: &[&Column], rows: Option<&[u32]>, places: &[u32]) -> Result<()> {
        let counts = &mut self.counts;
        match (args, rows) {
            ([], None) => places.iter().for_each(|place| counts[*place as usize] += 1),
            ([], Some(rows)) => rows.iter().for_each(|row| counts[places[*row as usize] as usize] += 1),
            ([column], _) => for_each_value(column, rows, places, |row, group| {
                let null = matches!(&column.data, ColumnData::Datum(v) | ColumnData::Stored(v) if v[row].is_null());
                counts[group] += i64::from(!null);
            }),
            _ => {
                let mut count = |row: usize| {
                    let null = args.iter().any(|column| column.is_null(row));
                    counts[places[row] as usize] += i64::from(!null);
                };
                match rows {
                    None => (0..places.len()).for_each(count),
                    Some(rows) => rows.iter().for_each(|row| count(*row as usize)),
                }
            }
        }
        Ok(())
    }

    fn add_to(&mut self, _: &CallInfo<'_>, args: &[&Column], group: usize, rows: TakenRows<'_>) -> Result<()> {
        self.counts[group] += count_of(args, rows);
        Ok(())
    }

    fn merge(&mut self, other: &dyn GroupedAggregate, groups: &[u32], places: &[u32]) -> Result<()> {
        add_at(&mut self.counts, &same::<GroupedCount>(other)?.counts, groups, places);
        Ok(())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn finish(&self, _: &CallInfo<'_>, group: usize) -> Result<Datum> {
        Ok(Datum::Int8(self.counts[group]))
    }

    fn group_bytes(&self) -> usize {
        size_of::<i64>()
    }
}

/// Sums and averages of the integer types.
pub(super) struct GroupedIntegerSum {
    counts: Vec<i64>,
    sums: Vec<i128>,
    result: IntegerResult,
}

impl GroupedIntegerSum {
    pub fn new(result: IntegerResult) -> GroupedIntegerSum {
        GroupedIntegerSum { counts: Vec::new(), sums: Vec::new(), result }
    }
}

impl GroupedAggregate for GroupedIntegerSum {
    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
        self.sums.resize(groups, 0);
    }

    fn add(&mut self, _: &CallInfo<'_>, args: &[&Column], rows: Option<&[u32]>, places: &[u32]) -> Result<()> {
        let (counts, sums) = (&mut self.counts, &mut self.sums);
        let mut step = |group: usize, value: i64| {
            counts[group] += 1;
            sums[group] += i128::from(value);
        };
        match &args[0].data {
            ColumnData::Int2(v) => for_each_value(args[0], rows, places, |row, group| step(group, i64::from(v[row]))),
            ColumnData::Int4(v) => for_each_value(args[0], rows, places, |row, group| step(group, i64::from(v[row]))),
            ColumnData::Int8(v) => for_each_value(args[0], rows, places, |row, group| step(group, v[row])),
            _ => for_each_value(args[0], rows, places, |row, group| {
                let value = args[0].get(row);
                if !value.is_null() {
                    step(group, crate::int::wide(&value));
                }
            }),
        }
        Ok(())
    }

    fn add_to(&mut self, _: &CallInfo<'_>, args: &[&Column], group: usize, rows: TakenRows<'_>) -> Result<()> {
        let (count, sum) = sum_of_integers(args[0], rows);
        self.counts[group] += count;
        self.sums[group] += sum;
        Ok(())
    }

    fn merge(&mut self, other: &dyn GroupedAggregate, groups: &[u32], places: &[u32]) -> Result<()> {
        let other = same::<GroupedIntegerSum>(other)?;
        add_at(&mut self.counts, &other.counts, groups, places);
        add_at(&mut self.sums, &other.sums, groups, places);
        Ok(())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn finish(&self, _: &CallInfo<'_>, group: usize) -> Result<Datum> {
        integer_result(self.result, self.counts[group], self.sums[group])
    }

    fn group_bytes(&self) -> usize {
        size_of::<i64>() + size_of::<i128>()
    }
}

/// Sums and averages of numeric: words of the scale that came first by group, and of the groups that have others those.
pub(super) struct GroupedNumericSum {
    counts: Vec<i64>,
    sums: Vec<i128>,
    scale: Option<u16>,
    others: HashMap<u32, NumericSum>,
    average: bool,
}

impl GroupedNumericSum {
    pub fn new(average: bool) -> GroupedNumericSum {
        GroupedNumericSum { counts: Vec::new(), sums: Vec::new(), scale: None, others: HashMap::new(), average }
    }

    fn step(&mut self, group: usize, value: &Numeric) -> Result<()> {
        match value.small_parts() {
            Some((mantissa, scale)) if *self.scale.get_or_insert(scale) == scale => {
                self.counts[group] += 1;
                self.sums[group] += i128::from(mantissa);
                Ok(())
            }
            _ => self.others.entry(group as u32).or_default().add(value),
        }
    }
}

impl GroupedNumericSum {
    /// The sums of some groups, if they are words.
    fn words(&self, groups: &[u32]) -> Option<Column> {
        if self.average || !self.others.is_empty() {
            return None;
        }
        let values = groups.iter().map(|&group| i64::try_from(self.sums[group as usize]).ok()).collect::<Option<Vec<_>>>()?;
        let mut column = Column::new(ColumnData::Numeric(Mantissas::new(values, self.scale?)?));
        for (row, _) in groups.iter().enumerate().filter(|(_, group)| self.counts[**group as usize] == 0) {
            column.validity.get_or_insert_with(|| Bitmap::filled(groups.len(), true)).set(row, false);
        }
        Some(column)
    }
}

impl GroupedAggregate for GroupedNumericSum {
    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
        self.sums.resize(groups, 0);
    }

    fn add(&mut self, _: &CallInfo<'_>, args: &[&Column], rows: Option<&[u32]>, places: &[u32]) -> Result<()> {
        match &args[0].data {
            ColumnData::Numeric(words) if *self.scale.get_or_insert(words.scale) == words.scale => {
                let (counts, sums) = (&mut self.counts, &mut self.sums);
                for_each_value(args[0], rows, places, |row, group| {
                    counts[group] += 1;
                    sums[group] += i128::from(words.values[row]);
                });
                Ok(())
            }
            _ => {
                let mut done = Ok(());
                for_each_value(args[0], rows, places, |row, group| {
                    if let (true, Datum::Numeric(value)) = (done.is_ok(), args[0].get(row)) {
                        done = self.step(group, &value);
                    }
                });
                done
            }
        }
    }

    fn add_to(&mut self, _: &CallInfo<'_>, args: &[&Column], group: usize, rows: TakenRows<'_>) -> Result<()> {
        match &args[0].data {
            ColumnData::Numeric(words) if *self.scale.get_or_insert(words.scale) == words.scale => {
                let (count, sum) = sum_of_words(&words.values, args[0].validity.as_ref(), rows);
                self.counts[group] += count;
                self.sums[group] += sum;
                Ok(())
            }
            _ => {
                let mut done = Ok(());
                rows.for_each(|row| {
                    if let (true, Datum::Numeric(value)) = (done.is_ok(), args[0].get(row)) {
                        done = self.step(group, &value);
                    }
                });
                done
            }
        }
    }

    fn merge(&mut self, other: &dyn GroupedAggregate, groups: &[u32], places: &[u32]) -> Result<()> {
        let other = same::<GroupedNumericSum>(other)?;
        if let Some(scale) = other.scale {
            if *self.scale.get_or_insert(scale) == scale {
                add_at(&mut self.counts, &other.counts, groups, places);
                add_at(&mut self.sums, &other.sums, groups, places);
            } else {
                for (group, place) in groups.iter().map(|g| *g as usize).zip(places).filter(|(group, _)| other.counts[*group] > 0)
                {
                    self.others.entry(*place).or_default().add_words(other.counts[group], other.sums[group], scale)?;
                }
            }
        }
        if other.others.is_empty() {
            return Ok(());
        }
        let others = groups.iter().zip(places).filter_map(|(group, place)| Some((other.others.get(group)?, place)));
        others.into_iter().try_for_each(|(sum, place)| self.others.entry(*place).or_default().merge(sum))
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn finish(&self, _: &CallInfo<'_>, group: usize) -> Result<Datum> {
        let mut sum = NumericSum::default();
        sum.add_words(self.counts[group], self.sums[group], self.scale.unwrap_or(0))?;
        if let Some(other) = self.others.get(&(group as u32)) {
            sum.merge(other)?;
        }
        numeric_result(&sum, self.average)
    }

    fn finish_all(&self, call: &CallInfo<'_>, groups: &[u32], out: &mut Column) -> Result<()> {
        match self.words(groups) {
            Some(words) if out.is_empty() => *out = words,
            _ => groups.iter().try_for_each(|&group| self.finish(call, group as usize).map(|result| out.push(result)))?,
        }
        Ok(())
    }

    fn group_bytes(&self) -> usize {
        size_of::<i64>() + size_of::<i128>()
    }

    fn other_bytes(&self) -> usize {
        self.others.len() * (size_of::<NumericSum>() + 16)
    }
}

/// min and max of integers, dates, timestamps and other types of their physical form.
pub(super) struct GroupedExtreme {
    best: Vec<i64>,
    seen: Vec<bool>,
    greatest: bool,
    /// Makes a value of a word.
    value: fn(i64) -> Datum,
}

impl GroupedExtreme {
    pub fn new(greatest: bool, value: fn(i64) -> Datum) -> GroupedExtreme {
        GroupedExtreme { best: Vec::new(), seen: Vec::new(), greatest, value }
    }

    #[inline]
    fn take(&mut self, group: usize, value: i64) {
        let better = if self.greatest { value > self.best[group] } else { value < self.best[group] };
        if better || !self.seen[group] {
            self.best[group] = value;
            self.seen[group] = true;
        }
    }

    fn take_best<T: Into<i64>>(&mut self, group: usize, best: Option<T>) {
        if let Some(best) = best {
            self.take(group, best.into());
        }
    }
}

/// The least or greatest of some values.
fn extreme<T: Copy + Ord>(values: &[T], validity: Option<&Bitmap>, rows: TakenRows<'_>, greatest: bool) -> Option<T> {
    match (rows, validity, greatest) {
        (TakenRows::All(n), None, true) => best_of(&values[..n], |a, b| if b > a { b } else { a }),
        (TakenRows::All(n), None, false) => best_of(&values[..n], |a, b| if b < a { b } else { a }),
        _ => {
            let mut best: Option<T> = None;
            for_each_valid(validity, rows, |row| {
                let value = values[row];
                best = Some(best.map_or(value, |best| if (value > best) == greatest { value } else { best }));
            });
            best
        }
    }
}

impl GroupedAggregate for GroupedExtreme {
    fn resize(&mut self, groups: usize) {
        self.best.resize(groups, 0);
        self.seen.resize(groups, false);
    }

    fn add(&mut self, _: &CallInfo<'_>, args: &[&Column], rows: Option<&[u32]>, places: &[u32]) -> Result<()> {
        let mut step = |group: usize, value: i64| self.take(group, value);
        match &args[0].data {
            ColumnData::Int2(v) => for_each_value(args[0], rows, places, |row, group| step(group, i64::from(v[row]))),
            ColumnData::Int4(v) => for_each_value(args[0], rows, places, |row, group| step(group, i64::from(v[row]))),
            ColumnData::Int8(v) => for_each_value(args[0], rows, places, |row, group| step(group, v[row])),
            other => panic!("the extreme of integers over {other:?}"),
        }
        Ok(())
    }

    fn add_to(&mut self, _: &CallInfo<'_>, args: &[&Column], group: usize, rows: TakenRows<'_>) -> Result<()> {
        let validity = args[0].validity.as_ref();
        match &args[0].data {
            ColumnData::Int2(v) => self.take_best(group, extreme(v, validity, rows, self.greatest)),
            ColumnData::Int4(v) => self.take_best(group, extreme(v, validity, rows, self.greatest)),
            ColumnData::Int8(v) => match (validity, rows) {
                (None, TakenRows::All(n)) if self.greatest => self.take_best(group, greatest(&v[..n])),
                (None, TakenRows::All(n)) => self.take_best(group, least(&v[..n])),
                _ => self.take_best(group, extreme(v, validity, rows, self.greatest)),
            },
            other => panic!("the extreme of integers over {other:?}"),
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn GroupedAggregate, groups: &[u32], places: &[u32]) -> Result<()> {
        let other = same::<GroupedExtreme>(other)?;
        for (group, place) in groups.iter().map(|g| *g as usize).zip(places).filter(|(group, _)| other.seen[*group]) {
            self.take(*place as usize, other.best[group]);
        }
        Ok(())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn finish(&self, _: &CallInfo<'_>, group: usize) -> Result<Datum> {
        Ok(if self.seen[group] { (self.value)(self.best[group]) } else { Datum::Null })
    }

    fn group_bytes(&self) -> usize {
        size_of::<i64>() + 1
    }
}
