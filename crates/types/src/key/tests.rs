use super::*;

fn column(ty: KeyType, descending: bool) -> KeyColumn {
    KeyColumn { ty, descending, nulls_first: descending }
}

fn key(c: &KeyColumn, v: &Datum) -> Vec<u8> {
    let mut out = Vec::new();
    encode(c, v, &mut out);
    out
}

fn numeric(text: &str) -> Datum {
    Datum::Numeric(Numeric::parse(text).expect("numeric"))
}

fn array(elements: Vec<Datum>) -> Datum {
    let dims = if elements.is_empty() { vec![] } else { vec![ArrayDim { length: elements.len() as i32, lower_bound: 1 }] };
    Datum::Array(Arc::new(Array { element_type: oids::INT4, dims, elements }))
}

/// Values of each type in ascending order, all different.
fn ordered() -> Vec<(KeyType, Vec<Datum>)> {
    let f = |v: f64| Datum::Float8(v);
    let t = |v: &str| Datum::text(v);
    let i = |v: i32| Datum::Int4(v);
    let interval = |months, days, micros| Datum::Interval(Interval { months, days, micros });
    let timetz = |micros, zone_seconds_west| Datum::TimeTz(TimeTz { micros, zone_seconds_west });
    let range = |lower: Option<i32>, inclusive, upper: Option<i32>| {
        Datum::Range(Arc::new(Range {
            type_oid: oids::INT4RANGE,
            empty: false,
            lower: lower.map(Datum::Int4),
            upper: upper.map(Datum::Int4),
            lower_inclusive: inclusive,
            upper_inclusive: false,
        }))
    };
    let plain = KeyType::Plain;
    vec![
        (plain(Kind::Bool), vec![Datum::Bool(false), Datum::Bool(true)]),
        (plain(Kind::Int2), [i16::MIN, -1, 0, 1, i16::MAX].map(Datum::Int2).into()),
        (plain(Kind::Int4), [i32::MIN, -256, -1, 0, 255, i32::MAX].map(i).into()),
        (plain(Kind::Int8), [i64::MIN, -1, 0, 1, i64::MAX].map(Datum::Int8).into()),
        (plain(Kind::Float8), [f64::NEG_INFINITY, -1.5, -1e-300, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN].map(f).into()),
        (plain(Kind::Text), ["", "a", "a\u{1}", "ab", "b", "é"].map(t).into()),
        (plain(Kind::Bytes), [&b""[..], b"\0", b"\0\0", b"\0\x01", b"\x01", b"\xff"].map(Datum::bytes).into()),
        (
            plain(Kind::Numeric),
            [
                "-Infinity",
                "-1e50",
                "-12.5",
                "-12",
                "-0.001",
                "0",
                "1e-40",
                "0.5",
                "0.51",
                "9",
                "10",
                "123.4",
                "1e50",
                "Infinity",
                "NaN",
            ]
            .map(numeric)
            .into(),
        ),
        (
            plain(Kind::Interval),
            vec![interval(0, -1, 0), interval(0, 0, -1), interval(0, 29, 0), interval(1, 0, 1), interval(0, 31, 0)],
        ),
        (plain(Kind::TimeTz), vec![timetz(0, -3600), timetz(0, 0), timetz(7_200_000_000, -3600), timetz(3_600_000_000, 0)]),
        (KeyType::Bpchar, ["", "a", "a b"].map(t).into()),
        (KeyType::Unsigned, [0, 1, i64::MAX, i64::MIN, -1].map(Datum::Int8).into()),
        (KeyType::Enum([7, 3, 5].into()), [7, 3, 5].map(Datum::Oid).into()),
        (
            KeyType::array_of_builtin(oids::INT4).expect("built in"),
            vec![array(vec![]), array(vec![i(1)]), array(vec![i(1), i(2)]), array(vec![i(1), Datum::Null]), array(vec![i(2)])],
        ),
        (
            KeyType::of_builtin(oids::INT4RANGE).expect("built in"),
            vec![
                Datum::Range(Arc::new(Range {
                    type_oid: oids::INT4RANGE,
                    empty: true,
                    lower: None,
                    upper: None,
                    lower_inclusive: false,
                    upper_inclusive: false,
                })),
                range(None, false, Some(3)),
                range(None, false, None),
                range(Some(1), true, Some(3)),
                range(Some(1), true, None),
                range(Some(1), false, Some(3)),
            ],
        ),
    ]
}

#[test]
fn keys_sort_as_values_do_and_come_back() {
    for (ty, values) in ordered() {
        for descending in [false, true] {
            let c = column(ty.clone(), descending);
            let keys: Vec<Vec<u8>> = values.iter().map(|v| key(&c, v)).collect();
            for (i, (a, x)) in values.iter().zip(&keys).enumerate() {
                for (j, (b, y)) in values.iter().zip(&keys).enumerate() {
                    let expected = i.cmp(&j);
                    assert_eq!(compare(&ty, a, b), expected, "{a:?} {b:?}");
                    assert_eq!(x.cmp(y), if descending { expected.reverse() } else { expected }, "{a:?} {b:?}");
                }
                let null = key(&c, &Datum::Null);
                assert_eq!(null < *x, descending);
                let mut longer = x.clone();
                longer.extend_from_slice(b"rest");
                let (back, taken) = decode(&c, &longer).expect("a key");
                assert_eq!((compare(&ty, &back, a), taken), (Ordering::Equal, x.len()), "{a:?}");
            }
        }
    }
}

#[test]
fn equal_values_have_equal_keys_and_hashes() {
    use std::hash::{BuildHasher, RandomState};
    let state = RandomState::new();
    let interval = |months, days| Datum::Interval(Interval { months, days, micros: 0 });
    for (ty, a, b) in [
        (KeyType::Plain(Kind::Numeric), numeric("1.5"), numeric("1.500000000000000000000000")),
        (KeyType::Plain(Kind::Float8), Datum::Float8(0.0), Datum::Float8(-0.0)),
        (KeyType::Plain(Kind::Float4), Datum::Float4(f32::NAN), Datum::Float4(-f32::NAN)),
        (KeyType::Bpchar, Datum::text("a"), Datum::text("a  ")),
        (KeyType::Plain(Kind::Interval), interval(1, 0), interval(0, 30)),
    ] {
        let c = column(ty.clone(), false);
        assert_eq!(key(&c, &a), key(&c, &b));
        let hashed = |v: &Datum| {
            let mut h = state.build_hasher();
            hash(&ty, v, &mut h);
            h.finish()
        };
        assert_eq!(hashed(&a), hashed(&b));
    }
}

#[test]
fn a_prefix_range_holds_the_values_that_start_with_it() {
    for descending in [false, true] {
        let c = column(KeyType::Plain(Kind::Text), descending);
        let (from, to) = prefix_range(&c, "ab");
        let to = to.expect("not all 0xff");
        for (text, inside) in [("a", false), ("ab", true), ("abz", true), ("ab\u{10ffff}", true), ("ac", false), ("aa", false)] {
            let k = key(&c, &Datum::text(text));
            assert_eq!(k >= from && k < to, inside, "{text} {descending}");
        }
    }
    assert_eq!(prefix_end(&[1, 0xff]), Some(vec![2]));
    assert_eq!(prefix_end(&[0xff]), None);
}

#[test]
fn keys_of_rows_are_those_of_their_values() {
    use crate::column::Column;
    for (kind, values) in [
        (Kind::Int2, vec![Datum::Int2(-3), Datum::Null]),
        (Kind::Int4, vec![Datum::Int4(i32::MIN), Datum::Int4(7)]),
        (Kind::Int8, vec![Datum::Int8(i64::MAX), Datum::Int8(-1)]),
        (Kind::Text, vec![Datum::text(""), Datum::text("melba "), Datum::Null]),
        (Kind::Float8, vec![Datum::Float8(-0.5)]),
        (Kind::Uuid, vec![Datum::Uuid([7; 16]), Datum::Null]),
    ] {
        let mut column = Column::with_capacity(kind, values.len());
        values.iter().for_each(|v| column.push(v.clone()));
        for ty in [KeyType::Plain(kind), if kind == Kind::Text { KeyType::Bpchar } else { KeyType::Plain(kind) }] {
            for (descending, nulls_first) in [(false, false), (true, true)] {
                let key = KeyColumn { ty: ty.clone(), descending, nulls_first };
                for (i, value) in values.iter().enumerate() {
                    let (mut a, mut b) = (vec![9], vec![9]);
                    encode(&key, value, &mut a);
                    encode_at(&key, &column, i, &mut b);
                    assert_eq!(a, b, "{key:?} {value:?}");
                }
            }
        }
    }
}

#[test]
fn numerics_in_words_have_the_keys_of_their_digits() {
    let mut random = 1u64;
    let edges = [0, 1, 9, 10, 11, 99, 100, 101, 1_000_000, i64::MAX, i64::MIN, i64::MAX - 7, -1, -10, 123_450_000];
    let scattered = (0..2000).map(|i| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random as i64) >> (i % 64)
    });
    for mantissa in edges.into_iter().chain(scattered.collect::<Vec<i64>>()) {
        for scale in [0, 1, 2, 9, 18] {
            let value = Numeric::from_parts(i128::from(mantissa), scale);
            let mut found = Vec::new();
            encode_mantissa(mantissa.unsigned_abs(), i32::from(scale), &mut found);
            let mut expected = Vec::new();
            if let Some((exponent, digits)) = value.scientific() {
                expected.extend_from_slice(&((exponent + EXPONENT_BIAS) as u32).to_be_bytes()[1..]);
                expected.extend(digits.chunks(2).map(|pair| pair[0] * 10 + pair.get(1).copied().unwrap_or(0) + 1));
                expected.push(0);
            }
            assert_eq!(found, expected, "{mantissa} at {scale}");
        }
    }
}
