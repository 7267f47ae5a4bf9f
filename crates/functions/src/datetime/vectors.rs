//! Vector forms of functions that queries compute for every row: parts and truncations of timestamps.

use melba_fmgr::{CallInfo, Operand, VectorFn};
use melba_types::datetime::keywords::Unit;
use melba_types::datetime::{TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY};
use melba_types::{Column, ColumnData, Datum, Kind, Mantissas, Result};

use super::truncate::{truncate_local, truncation_unit};
use super::{integer_parts_of_dates, part_of_timestamp, timestamp_out_of_range};

pub const VECTORS: &[(&str, VectorFn)] =
    &[("timestamp_trunc", truncate_column), ("timestamp_part", part_column), ("extract_date", extract_column)];

/// The constant unit and the column of timestamps, when the call has that shape.
fn shape<'a>(operands: &'a [Operand<'a>]) -> Option<(&'a str, &'a [i64], &'a Column)> {
    match operands {
        [Operand::Scalar(Datum::Text(unit)), Operand::Column(column)] => match &column.data {
            ColumnData::Int8(values) => Some((unit, values, column)),
            _ => None,
        },
        _ => None,
    }
}

/// Row by row, through the scalar function.
fn fallback(call: &CallInfo<'_>, name: &str, operands: &[Operand<'_>], rows: usize, kind: Kind) -> Result<Column> {
    let function = melba_fmgr::registry::scalar(name).ok_or_else(|| melba_types::DbError::internal(name.to_string()))?;
    let mut out = Column::with_capacity(kind, rows);
    for row in 0..rows {
        let args: Vec<Datum> = operands
            .iter()
            .map(|operand| match operand {
                Operand::Column(column) => column.get(row),
                Operand::Scalar(value) => (*value).clone(),
            })
            .collect();
        if args.iter().any(Datum::is_null) {
            out.push_null();
        } else {
            out.push(function(call, &args)?);
        }
    }
    Ok(out)
}

fn truncate_column(call: &CallInfo<'_>, operands: &[Operand<'_>], rows: usize) -> Result<Column> {
    let Some((unit, values, column)) = shape(operands) else {
        return fallback(call, "timestamp_trunc", operands, rows, Kind::Int8);
    };
    let unit = truncation_unit(unit, "timestamp without time zone")?;
    let truncated = values.iter().map(|&value| match value {
        TIMESTAMP_INFINITY | TIMESTAMP_NEGATIVE_INFINITY => Ok(value),
        _ => truncate_local(unit, value).ok_or_else(timestamp_out_of_range),
    });
    let data = ColumnData::Int8(truncated.collect::<Result<_>>()?);
    Ok(Column { data, validity: column.validity.clone() })
}

fn part_column(call: &CallInfo<'_>, operands: &[Operand<'_>], rows: usize) -> Result<Column> {
    let fast = shape(operands).and_then(|(name, values, column)| {
        let unit = melba_types::datetime::keywords::unit(name)?;
        let common = matches!(unit, Unit::Year | Unit::Month | Unit::Day | Unit::Hour | Unit::Minute | Unit::Dow | Unit::Epoch);
        let finite = values.iter().all(|v| *v != TIMESTAMP_INFINITY && *v != TIMESTAMP_NEGATIVE_INFINITY);
        (common && finite).then_some((unit, values, column))
    });
    let Some((unit, values, column)) = fast else {
        return fallback(call, "timestamp_part", operands, rows, Kind::Float8);
    };
    let parts = values.iter().map(|&value| Ok(part_of_timestamp(unit, value, None)?.map_or(0.0, |part| part.double())));
    Ok(Column { data: ColumnData::Float8(parts.collect::<Result<_>>()?), validity: column.validity.clone() })
}

fn extract_column(call: &CallInfo<'_>, operands: &[Operand<'_>], rows: usize) -> Result<Column> {
    if let [Operand::Scalar(Datum::Text(unit)), Operand::Column(column)] = operands
        && let ColumnData::Int4(dates) = &column.data
        && let Some(words) = integer_parts_of_dates(unit, dates).and_then(|parts| Mantissas::new(parts, 0))
    {
        return Ok(Column { data: ColumnData::Numeric(words), validity: column.validity.clone() });
    }
    fallback(call, "extract_date", operands, rows, Kind::Numeric)
}

#[cfg(test)]
mod tests {
    use melba_types::datetime::{DATE_INFINITY, DATE_NEGATIVE_INFINITY};
    use melba_types::{Bitmap, oids};

    use super::*;

    #[test]
    fn parts_of_dates_are_those_of_each() {
        let session = crate::testing::session();
        let types = [oids::TEXT, oids::DATE];
        let call = session.call(&types, oids::NUMERIC);
        let scalar = melba_fmgr::registry::scalar("extract_date").expect("registered");
        let finite = vec![0, 0, -1, 8765, 8766, -730_500, -730_119, -2_451_545, 2_000_000, 59, 60, 365];
        let infinite = vec![8765, DATE_INFINITY, DATE_INFINITY, 1, DATE_NEGATIVE_INFINITY];
        for unit in ["year", "YEAR", "month", "day", "dow", "isodow", "doy", "week", "isoyear", "quarter", "decade", "century"]
            .into_iter()
            .chain(["millennium", "julian", "epoch", "hour", "second", "timezone", "nonsense"])
        {
            for dates in [&finite, &infinite] {
                let mut validity = Bitmap::filled(dates.len(), true);
                validity.set(1, false);
                let column = Column { data: ColumnData::Int4(dates.clone()), validity: Some(validity) };
                let name = Datum::text(unit);
                let of = |row: usize| match column.get(row) {
                    Datum::Null => Ok(Datum::Null),
                    date => scalar(&call, &[name.clone(), date]),
                };
                let expected: Result<Vec<Datum>> = (0..dates.len()).map(of).collect();
                let got = extract_column(&call, &[Operand::Scalar(&name), Operand::Column(&column)], dates.len());
                match (expected, got) {
                    (Ok(expected), Ok(got)) => {
                        let got: Vec<Datum> = (0..dates.len()).map(|row| got.get(row)).collect();
                        assert_eq!(format!("{got:?}"), format!("{expected:?}"), "{unit}");
                    }
                    (Err(expected), Err(got)) => assert_eq!(got.message(), expected.message()),
                    (expected, got) => panic!("{unit}: {expected:?} but {:?}", got.map(|_| "a column")),
                }
            }
        }
    }
}
