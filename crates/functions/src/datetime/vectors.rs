//! Vector forms of functions that queries compute for every row: parts and truncations of timestamps.

use melba_fmgr::{CallContext, Operand, VectorFn};
use melba_types::datetime::keywords::Unit;
use melba_types::datetime::{TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY};
use melba_types::{Column, ColumnData, Datum, Kind, Result};

use super::truncate::{truncate_local, truncation_unit};
use super::{part_of_timestamp, timestamp_out_of_range};

pub const VECTORS: &[(&str, VectorFn)] = &[("timestamp_trunc", truncate_column), ("timestamp_part", part_column)];

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
fn fallback(call: &CallContext<'_>, name: &str, operands: &[Operand<'_>], rows: usize, kind: Kind) -> Result<Column> {
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

fn truncate_column(call: &CallContext<'_>, operands: &[Operand<'_>], rows: usize) -> Result<Column> {
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

fn part_column(call: &CallContext<'_>, operands: &[Operand<'_>], rows: usize) -> Result<Column> {
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
