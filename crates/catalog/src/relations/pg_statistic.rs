//! pg_statistic: what is known of columns. The catalog holds nothing of it: `LiveInfo` computes it when the relation is read.

use std::sync::Arc;

use melba_types::{Datum, oids};

use super::{GeneratorInput, RelationRows, values::*};
use crate::objects::{Relation, Storage};

/// The slots of a row.
const SLOTS: usize = 5;

/// A row of pg_statistic, without its key.
#[derive(Clone, Debug, Default)]
pub struct ColumnStatistics {
    pub null_share: f32,
    /// Average bytes of a value.
    pub width: i32,
    /// Distinct values; negative: minus their share of the rows; 0: unknown.
    pub distinct: f32,
    /// At most five.
    pub slots: Vec<StatisticsSlot>,
}

/// What a row of pg_statistic says in one form.
#[derive(Clone, Debug)]
pub struct StatisticsSlot {
    /// Of `statistic_kinds`.
    pub kind: i16,
    pub operator: melba_types::Oid,
    pub collation: melba_types::Oid,
    pub numbers: Vec<f32>,
    /// An array.
    pub values: Option<Datum>,
}

/// The values of pg_statistic.stakind1 and its like.
pub mod statistic_kinds {
    pub const MOST_COMMON: i16 = 1;
    pub const HISTOGRAM: i16 = 2;
    pub const CORRELATION: i16 = 3;
    pub const MOST_COMMON_ELEMENTS: i16 = 4;
    pub const ELEMENT_COUNTS: i16 = 5;
}

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let tables: Vec<&Arc<Relation>> = match s.oid(0) {
        Some(table) => s.catalog.relation(table).into_iter().collect(),
        None => s.catalog.user_relations().collect(),
    };
    let column = s.filters.iter().find(|f| f.column == 1).and_then(|f| match f.value {
        Datum::Int2(number) => usize::try_from(number - 1).ok(),
        _ => None,
    });
    for table in tables.into_iter().filter(|table| matches!(table.storage, Storage::Tree(_)) && table.index.is_none()) {
        let known = match s.live.column_statistics(s.catalog, table, column) {
            Ok(known) => known,
            Err(error) => return out.interrupt = Err(error),
        };
        for (place, statistics) in &known {
            push_row(table, *place, statistics, out);
        }
        if out.interrupt.is_err() {
            return;
        }
    }
}

fn push_row(table: &Relation, place: usize, statistics: &ColumnStatistics, out: &mut RelationRows<'_>) {
    out.push(|column| match column {
        0 => oid(table.oid),
        1 => int2(place + 1),
        2 => bool(false),
        3 => Datum::Float4(statistics.null_share),
        4 => Datum::Int4(statistics.width),
        5 => Datum::Float4(statistics.distinct),
        _ => of_slot(statistics.slots.get((column - 6) % SLOTS), (column - 6) / SLOTS),
    });
}

/// A column of a slot: stakind, staop, stacoll, stanumbers, stavalues, in this order.
fn of_slot(slot: Option<&StatisticsSlot>, part: usize) -> Datum {
    match (part, slot) {
        (0, slot) => Datum::Int2(slot.map_or(0, |slot| slot.kind)),
        (1, slot) => oid(slot.map_or_else(Default::default, |slot| slot.operator)),
        (2, slot) => oid(slot.map_or_else(Default::default, |slot| slot.collation)),
        (3, Some(slot)) if !slot.numbers.is_empty() => float4s(&slot.numbers),
        (4, Some(slot)) => slot.values.clone().unwrap_or(Datum::Null),
        _ => Datum::Null,
    }
}

fn float4s(numbers: &[f32]) -> Datum {
    array_of(oids::FLOAT4, numbers.iter().map(|number| Datum::Float4(*number)).collect())
}
