//! Scans of most rows of a system relation: from columns that are computed whole and kept for the next scan (`derived`).

use std::sync::Arc;

use melba_types::{Batch, Column as Vector, ColumnData, Datum, Result};

use super::{Generator, GeneratorInput, RelationRows, Request, equal, rows_estimate, rows_per_value};
use crate::derived::{BYTES_MAX, Derivation};
use crate::objects::*;
use crate::snapshot::Catalog;

/// The size of a value, about, before it is computed.
const VALUE_BYTES: f64 = 16.0;
/// A relation of fewer rows is recomputed by each scan.
const ROWS_MIN: f64 = 100.0;
/// A lookup that finds a larger share of the rows does not pay compared with a scan of all.
const FOUND_SHARE_MAX: f64 = 0.25;
/// Values that `LiveInfo` has, and no snapshot: relpages and reltuples.
const LIVE: (&str, [usize; 2]) = ("pg_class", [9, 10]);

/// The requested rows, out of kept columns; `None` when computing those alone is less work.
pub(super) fn rows(
    relation: &Relation,
    source: &GeneratorInput<'_>,
    generator: Generator,
    request: &Request<'_>,
) -> Option<Result<Batch>> {
    let is_live = |at: usize| relation.storage == Storage::System(LIVE.0) && LIVE.1.contains(&at);
    let mut places: Vec<usize> = request.filters.iter().map(|f| f.column).collect();
    if places.iter().any(|at| is_live(*at)) || !is_for_most(relation, source.catalog, request) {
        return None;
    }
    places.extend(request.columns.iter().filter(|at| !is_live(**at)));
    places.sort_unstable();
    places.dedup();
    if places.is_empty() {
        return None;
    }
    let estimate = rows_estimate(relation, source.catalog) * places.len() as f64 * VALUE_BYTES;
    if estimate > (BYTES_MAX / 2) as f64 {
        return None;
    }
    Some(pick(relation, source, generator, request, &places))
}

/// Whether a request wants most rows of a relation with many, judged by the columns of its conditions.
fn is_for_most(relation: &Relation, catalog: &Catalog, request: &Request<'_>) -> bool {
    let all = rows_estimate(relation, catalog);
    let is_found = |column| rows_per_value(relation, column, catalog).is_some_and(|rows| rows <= all * FOUND_SHARE_MAX);
    all >= ROWS_MIN && request.any_of.is_none() && !request.filters.iter().any(|f| is_found(f.column))
}

fn pick(
    relation: &Relation,
    source: &GeneratorInput<'_>,
    generator: Generator,
    request: &Request<'_>,
    places: &[usize],
) -> Result<Batch> {
    let columns = columns(relation, source, generator, places)?;
    let column = |place: usize| places.binary_search(&place).ok().map(|at| &columns[at]);
    let mut picked: Vec<u32> = (0..columns[0].len() as u32).collect();
    for filter in request.filters {
        if let Some(column) = column(filter.column) {
            retain(column, &filter.value, &mut picked);
        }
    }
    if let Some(kept) = request.rows {
        let mut place = 0..;
        picked.retain(|_| place.next().is_some_and(|place| place < kept.len() && kept.get(place)));
    }
    let live: Vec<usize> = request.columns.iter().copied().filter(|place| column(*place).is_none()).collect();
    let mut others = Vec::new();
    if !live.is_empty() {
        let mut out = RelationRows::new(relation, &Request { columns: &live, ..*request });
        generator(source, &mut out);
        out.interrupt?;
        others = out.columns;
    }
    let mut others = others.into_iter();
    let of = |place: &usize| match column(*place) {
        Some(column) => Some(column.take(&picked)),
        None => others.next(),
    };
    Ok(Batch::new(request.columns.iter().filter_map(of).collect(), picked.len()))
}

/// Whole columns of a relation: kept ones, or computed now.
fn columns(relation: &Relation, source: &GeneratorInput<'_>, generator: Generator, places: &[usize]) -> Result<Vec<Arc<Vector>>> {
    let derived = source.catalog.derived();
    let kept = |place: &usize| derived.get::<Vector>(relation.oid, Derivation::Column(*place));
    let mut known: Vec<Option<Arc<Vector>>> = places.iter().map(kept).collect();
    let missing: Vec<usize> = places.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(place, _)| *place).collect();
    if !missing.is_empty() {
        let mut out = RelationRows::new(relation, &Request { columns: &missing, ..Request::default() });
        generator(&GeneratorInput { filters: &[], ..*source }, &mut out);
        out.interrupt?;
        let computed: Vec<Arc<Vector>> = out.columns.into_iter().map(Arc::new).collect();
        for (place, column) in missing.iter().zip(&computed) {
            derived.put(relation.oid, Derivation::Column(*place), column.clone(), column.memory_bytes());
        }
        let mut computed = computed.into_iter();
        known.iter_mut().filter(|known| known.is_none()).for_each(|known| *known = computed.next());
    }
    Ok(known.into_iter().flatten().collect())
}

/// Leaves the rows in which a column has a value, by the equality of `super::equal`.
fn retain(column: &Vector, value: &Datum, rows: &mut Vec<u32>) {
    let is = |row: &u32| !column.is_null(*row as usize);
    match (&column.data, value) {
        (ColumnData::Oid(v), Datum::Oid(value)) => rows.retain(|row| v[*row as usize] == *value && is(row)),
        (ColumnData::Bool(v), Datum::Bool(value)) => rows.retain(|row| v[*row as usize] == *value && is(row)),
        (ColumnData::Int2(v), Datum::Int2(value)) => rows.retain(|row| v[*row as usize] == *value && is(row)),
        (ColumnData::Int4(v), Datum::Int4(value)) => rows.retain(|row| v[*row as usize] == *value && is(row)),
        (ColumnData::Text(v), Datum::Text(value)) => rows.retain(|row| v.get(*row as usize) == value.as_bytes() && is(row)),
        (ColumnData::Datum(v), value) => rows.retain(|row| equal(&v[*row as usize], value)),
        _ => rows.clear(),
    }
}
