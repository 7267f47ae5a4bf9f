//! What is known of a table's columns without ANALYZE, in the form that PostgreSQL's ANALYZE gives it: for pg_statistic and pg_stats.
//!
//! It is computed from the rows that plans draw (`engine::samples`) and from the statistics of segments, whenever it is asked for. Of a
//! table that is sampled as a whole it is what PostgreSQL's ANALYZE finds.

mod elements;
mod scalar;

use std::sync::Arc;

use melba_catalog::relations::{ColumnStatistics, StatisticsSlot, statistic_kinds as kinds};
use melba_catalog::{Catalog, Column, Relation, Storage, TypeKind, classes};
use melba_engine::{Engine, SampleAge, SampledColumn, TableSample};
use melba_expression::key::KeyPart;
use melba_fmgr::order;
use melba_fmgr::varlena::{HEADER_BYTES, SHORT_BYTES_MAX, data_bytes};
use melba_types::{Array, ArrayDim, Datum, Oid, Result, TreeId, limits, oids};

use scalar::{SampleExtent, Values};

/// PostgreSQL's default_statistics_target.
const TARGET: usize = 100;
/// Longer values are left out of lists and histograms (PostgreSQL's WIDTH_THRESHOLD).
const VALUE_BYTES_MAX: usize = 1024;
/// The width of a value of varying length of which nothing is known (PostgreSQL's get_typavgwidth).
const WIDTH_UNKNOWN: i32 = 32;
/// Strategies of B-trees.
const LESS: i16 = 1;
const EQUAL: i16 = 3;

/// A column of a table.
struct Described<'a> {
    engine: &'a Engine,
    catalog: &'a Catalog,
    table: &'a Relation,
    tree: TreeId,
    place: usize,
    column: &'a Column,
    /// Of the whole table.
    rows: f64,
}

/// What is known of a table's columns, or of one of them, by place.
///
/// # Errors
/// 57014 and others when the statement is interrupted.
pub fn column_statistics(
    engine: &Engine,
    catalog: &Catalog,
    table: &Relation,
    column: Option<usize>,
) -> Result<Vec<(usize, ColumnStatistics)>> {
    let Storage::Tree(tree) = table.storage else { return Ok(Vec::new()) };
    let is_wanted = |(place, c): &(usize, &Column)| {
        column.is_none_or(|column| column == *place) && !c.dropped && c.generated != b'v' && c.statistics_target != Some(0)
    };
    let mut known = Vec::new();
    for (place, column) in table.columns.iter().enumerate().filter(is_wanted) {
        limits::check()?;
        let Some(sample) = engine.tree_sample(tree, &[place], SampleAge::Current) else { break };
        let rows =
            if sample.is_complete { sample.rows as f64 } else { engine.tree_rows_estimate(tree).max(sample.rows as u64) as f64 };
        let described = Described { engine, catalog, table, tree, place, column, rows };
        known.extend(described.statistics(&sample).map(|statistics| (place, statistics)));
    }
    Ok(known)
}

impl Described<'_> {
    fn statistics(&self, sample: &TableSample) -> Option<ColumnStatistics> {
        let stated = self.stated_distinct();
        let mut statistics = match sample.columns.first()? {
            Some(sampled) => self.sampled(sample, sampled),
            None => self.of_segments()?,
        };
        statistics.distinct = stated.unwrap_or(statistics.distinct);
        Some(statistics)
    }

    /// ALTER COLUMN ... SET (n_distinct = ...).
    fn stated_distinct(&self) -> Option<f32> {
        let option = self.column.options.iter().find_map(|option| option.strip_prefix("n_distinct="))?;
        option.parse().ok().filter(|distinct| *distinct != 0.0)
    }

    /// Of a column that is not sampled.
    fn of_segments(&self) -> Option<ColumnStatistics> {
        let estimate = self.engine.tree_column_estimate(self.tree, self.place)?;
        let null_share = estimate.null_share as f32;
        let width = if self.length() >= 0 { i32::from(self.length()) } else { WIDTH_UNKNOWN };
        let distinct =
            self.distinct_of_table().map_or(0.0, |distinct| scalar::stated(distinct, self.rows, estimate.null_share) as f32);
        Some(ColumnStatistics { null_share, width, distinct, slots: Vec::new() })
    }

    fn sampled(&self, sample: &TableSample, sampled: &SampledColumn) -> ColumnStatistics {
        let column = &sampled.values;
        let null_share = (sampled.nulls as f64 / sample.rows as f64) as f32;
        if sampled.nulls == sample.rows {
            let width = self.length().max(0).into();
            return ColumnStatistics { null_share: 1.0, width, distinct: 0.0, slots: Vec::new() };
        }
        let values: Vec<Datum> = (0..column.len()).filter(|row| !column.is_null(*row)).map(|row| column.get(row)).collect();
        let width = self.width(&values);
        let extent = SampleExtent {
            rows: sample.rows,
            nulls: sampled.nulls,
            all: self.rows,
            cluster_rows: sample.cluster_rows,
            target: self.column.statistics_target.map_or(TARGET, |target| target.max(0) as usize),
            distinct: if sample.is_complete { None } else { self.distinct_of_table() },
        };
        let base = self.catalog.base_type(self.column.ty);
        if self.is_without_scalars(base) {
            let distinct = if base == oids::JSON { 0.0 } else { null_share - 1.0 };
            return ColumnStatistics { null_share, width, distinct, slots: Vec::new() };
        }
        let Some((key, less, equal)) = self.order(base) else {
            return ColumnStatistics { null_share, width, distinct: 0.0, slots: Vec::new() };
        };
        let mut keys = Vec::with_capacity(values.len());
        let rows = (0..column.len() as u32).filter(|row| !column.is_null(*row as usize));
        for ((value, row), at) in values.iter().zip(rows).zip(0..) {
            if data_bytes(value) <= VALUE_BYTES_MAX {
                let mut bytes = Vec::new();
                key.encode(value, &mut bytes);
                keys.push((bytes, row, at));
            }
        }
        let of_values = Values::new(keys, values.len()).describe(&extent);
        let slot = |kind, operator, numbers, values| StatisticsSlot {
            kind,
            operator,
            collation: self.column.collation,
            numbers,
            values,
        };
        let mut slots = Vec::new();
        let listed = |places: Vec<usize>| self.array(self.column.ty, places.into_iter().map(|at| values[at].clone()).collect());
        if !of_values.common.is_empty() {
            let numbers = of_values.common.iter().map(|(_, count)| (*count as f64 / sample.rows as f64) as f32).collect();
            let places = of_values.common.iter().map(|(at, _)| *at).collect();
            slots.push(slot(kinds::MOST_COMMON, equal, numbers, Some(listed(places))));
        }
        if !of_values.bounds.is_empty() {
            slots.push(slot(kinds::HISTOGRAM, less, Vec::new(), Some(listed(of_values.bounds))));
        }
        if let Some(correlation) = of_values.correlation {
            slots.push(slot(kinds::CORRELATION, less, vec![correlation as f32], None));
        }
        if let Some(element) = self.catalog.array_element(base) {
            slots.extend(self.element_slots(element, &values, extent.target));
        }
        ColumnStatistics { null_share, width, distinct: of_values.distinct as f32, slots }
    }

    fn length(&self) -> i16 {
        self.catalog.type_(self.column.ty).map_or(-1, |ty| ty.length)
    }

    /// The average size of values as PostgreSQL stores them.
    fn width(&self, values: &[Datum]) -> i32 {
        match self.length() {
            -1 => {
                let is_packed = self.column.storage != b'p';
                let size = |value: &Datum| match data_bytes(value) {
                    bytes if is_packed && bytes < SHORT_BYTES_MAX => bytes + 1,
                    bytes => bytes + HEADER_BYTES,
                };
                (values.iter().map(size).sum::<usize>() as f64 / values.len() as f64) as i32
            }
            -2 => (values.iter().map(|value| data_bytes(value) + 1).sum::<usize>() as f64 / values.len() as f64) as i32,
            length => length.into(),
        }
    }

    /// Types for which PostgreSQL collects other statistics, which Melba does not, and those without an equality.
    fn is_without_scalars(&self, base: Oid) -> bool {
        let is_range = |kind| matches!(kind, TypeKind::Range | TypeKind::Multirange);
        base == oids::TSVECTOR || base == oids::JSON || self.catalog.type_(base).is_some_and(|ty| is_range(ty.type_kind))
    }

    /// How values of a type are ordered, and the operators `<` and `=`; `None`: not, or by functions of users.
    fn order(&self, base: Oid) -> Option<(KeyPart, Oid, Oid)> {
        let class = self.catalog.default_operator_class(classes::BTREE, base)?;
        if self.catalog.ordering_function(base).is_some()
            || order::own_key_type(self.catalog, base, self.column.collation).is_err()
        {
            return None;
        }
        let operator =
            |strategy| self.catalog.access_methods().operator(class.family, class.input_type, class.input_type, strategy);
        Some((KeyPart::new(self.catalog, (base, self.column.collation), false, false), operator(LESS)?, operator(EQUAL)?))
    }

    /// Distinct values as segments or a unique index tell them.
    fn distinct_of_table(&self) -> Option<f64> {
        let is_key = self.table.indexes.iter().filter_map(|oid| self.catalog.relation(*oid)?.index.as_ref()).any(|index| {
            let number = self.place as i16 + 1;
            index.unique && index.valid && index.predicate.is_none() && index.keys.len() == 1 && index.keys[0].column == number
        });
        let estimate = self.engine.tree_column_estimate(self.tree, self.place);
        if is_key {
            return Some(self.rows * (1.0 - estimate.map_or(0.0, |estimate| estimate.null_share)));
        }
        let estimate = estimate.filter(|estimate| estimate.rows > 0.0)?;
        Some(estimate.distinct.min(self.rows))
    }

    fn element_slots(&self, element: Oid, values: &[Datum], target: usize) -> Vec<StatisticsSlot> {
        let base = self.catalog.base_type(element);
        let Some((key, _, equal)) = self.order(base) else { return Vec::new() };
        let arrays: Vec<&Arc<Array>> =
            values.iter().filter_map(|value| if let Datum::Array(array) = value { Some(array) } else { None }).collect();
        let found = elements::count(&arrays, &key, target);
        let slot =
            |kind, numbers, values| StatisticsSlot { kind, operator: equal, collation: self.column.collation, numbers, values };
        let mut slots = Vec::new();
        if !found.common.is_empty() {
            let listed = self.array(element, found.common);
            slots.push(slot(kinds::MOST_COMMON_ELEMENTS, found.shares, Some(listed)));
        }
        if !found.counts.is_empty() {
            slots.push(slot(kinds::ELEMENT_COUNTS, found.counts, None));
        }
        slots
    }

    fn array(&self, element_type: Oid, elements: Vec<Datum>) -> Datum {
        let dims = vec![ArrayDim { length: elements.len() as i32, lower_bound: 1 }];
        Datum::Array(Arc::new(Array { element_type, dims, elements }))
    }
}
