use melba_fmgr::registry::{scalar, vector};
use melba_fmgr::{Operand, Session};
use melba_types::{Column, ColumnData, Datum, Kind, Mantissas, Numeric, Oid, oids};

use super::TABLES;
use crate::testing::FixedSession;

/// Edge values of a kind, chosen by a number; now and then a null.
fn value(kind: Kind, n: u64) -> Datum {
    let pick = (n >> 8) as usize;
    if n.is_multiple_of(11) {
        return Datum::Null;
    }
    match kind {
        Kind::Bool => Datum::Bool(pick.is_multiple_of(2)),
        Kind::Int2 => Datum::Int2([0, 1, -1, 7, i16::MIN, i16::MAX][pick % 6]),
        Kind::Int4 => Datum::Int4([0, 1, -1, 7, i32::MIN, i32::MAX][pick % 6]),
        Kind::Int8 => Datum::Int8([0, 1, -1, 7, i64::MIN, i64::MAX][pick % 6]),
        Kind::Oid => Datum::Oid([0, 1, u32::MAX][pick % 3]),
        Kind::Float4 => Datum::Float4([0.0, -0.0, 1.5, f32::NAN, f32::INFINITY, f32::MAX, 1e-30][pick % 7]),
        Kind::Float8 => Datum::Float8([0.0, -0.0, 1.5, f64::NAN, f64::NEG_INFINITY, f64::MAX, 1e-300][pick % 7]),
        Kind::Text => {
            let texts =
                ["", "a", "ab", "abc", "b%", "a_c", "%b%", "a%", "_", "añ", "a\\", "a ", "  ", "a%c", "%a%%c%", "ab%bc", "%ñ"];
            Datum::text(texts[pick % texts.len()])
        }
        Kind::Bytes => Datum::bytes([&b""[..], b"\0", b"ab", b"\xff"][pick % 4]),
        Kind::Numeric => {
            let texts = ["0", "1.50", "-1.5", "NaN", "Infinity", "-Infinity", "9223372036854775807", "0.0000000001", "-7e30"];
            Datum::Numeric(Numeric::parse(texts[pick % texts.len()]).expect("a number"))
        }
        other => panic!("no values of {other:?}"),
    }
}

/// A column of edge values; numerics often as words of one scale.
fn column(session: &FixedSession, kind: Kind, rows: usize) -> Column {
    let mut column = Column::with_capacity(kind, rows);
    let n = session.random_u64();
    if kind == Kind::Numeric && !n.is_multiple_of(3) {
        let scale = [0, 0, 1, 2, 9, 18][(n >> 8) as usize % 6];
        column.data = ColumnData::Numeric(Mantissas::new(Vec::new(), scale).expect("an inline scale"));
        for _ in 0..rows {
            let mantissa =
                [0, 1, -1, 150, -2_500_000_000, 1 << 40, i64::MIN.into(), i64::MAX.into()][session.random_u64() as usize % 8];
            match session.random_u64() % 8 {
                0 => column.push_null(),
                _ => column.push(Datum::Numeric(Numeric::from_parts(mantissa, scale))),
            }
        }
        return column;
    }
    (0..rows).for_each(|_| column.push(value(kind, session.random_u64())));
    column
}

/// Kinds of a function's arguments and result, by its pg_proc row.
fn signature(session: &FixedSession, name: &str) -> Option<(Vec<Oid>, Vec<Kind>, Kind)> {
    let function = session.catalog().functions().find(|f| &*f.source == name && f.arg_types.len() >= 2)?;
    let kind = |ty: Oid| session.catalog().kind_of(ty);
    let args = function.arg_types.iter().map(|&ty| kind(ty)).collect::<Option<Vec<_>>>()?;
    Some((function.arg_types.clone(), args, kind(function.return_type)?))
}

/// The results of the scalar function over all rows, or the message of its first error.
fn by_rows(
    session: &FixedSession,
    name: &str,
    types: &[Oid],
    operands: &[Operand<'_>],
    rows: usize,
) -> Result<Vec<String>, String> {
    let call = session.call(types, oids::BOOL);
    let function = scalar(name).expect(name);
    let at = |operand: &Operand<'_>, row| match operand {
        Operand::Column(column) => column.get(row),
        Operand::Scalar(value) => (*value).clone(),
    };
    let one = |row| {
        let args: Vec<Datum> = operands.iter().map(|operand| at(operand, row)).collect();
        if args.iter().any(Datum::is_null) {
            return Ok("Null".to_string());
        }
        function(&call, &args).map(|v| format!("{v:?}")).map_err(|e| e.message().to_string())
    };
    (0..rows).map(one).collect()
}

#[test]
fn a_vector_function_agrees_with_its_scalar_function() {
    let session = crate::testing::session();
    let mut tested = 0;
    for (name, function) in TABLES.iter().flat_map(|t| t.iter()) {
        let Some((types, kinds, result)) = signature(&session, name) else { panic!("{name} is in no pg_proc row") };
        // Small batches, so that most of them raise no error.
        for round in 0..200 {
            let rows = 1 + round % 5;
            let columns: Vec<Column> = kinds.iter().map(|kind| column(&session, *kind, rows)).collect();
            let scalars: Vec<Datum> = kinds.iter().map(|kind| value(*kind, session.random_u64())).collect();
            let operand = |side: usize, constant: bool| {
                if constant { Operand::Scalar(&scalars[side]) } else { Operand::Column(&columns[side]) }
            };
            let shape = round % (1 << kinds.len());
            let operands: Vec<Operand<'_>> = (0..kinds.len()).map(|side| operand(side, shape >> side & 1 != 0)).collect();
            let expected = by_rows(&session, name, &types, &operands, rows);
            let call = session.call(&types, oids::BOOL);
            let got = function(&call, &operands, rows).map_err(|e| e.message().to_string());
            match (expected, got) {
                (Ok(expected), Ok(column)) => {
                    assert_eq!(column.len(), rows, "{name}");
                    let is_numeric = result == Kind::Numeric && matches!(column.data, ColumnData::Numeric(_));
                    let expected_kind = Column::with_capacity(result, 0).kind_name();
                    assert!(is_numeric || expected_kind == column.kind_name(), "{name}");
                    let got: Vec<String> = (0..rows).map(|row| format!("{:?}", column.get(row))).collect();
                    assert_eq!(got, expected, "{name}");
                }
                (Err(_), Err(_)) => {}
                (expected, got) => panic!("{name}: {expected:?} but {:?}", got.map(|_| "a column")),
            }
            tested += 1;
        }
        assert!(vector(name).is_some());
    }
    assert!(tested > 1000);
}

/// The variant of a column's data.
trait KindName {
    fn kind_name(&self) -> std::mem::Discriminant<melba_types::ColumnData>;
}

impl KindName for Column {
    fn kind_name(&self) -> std::mem::Discriminant<melba_types::ColumnData> {
        std::mem::discriminant(&self.data)
    }
}
