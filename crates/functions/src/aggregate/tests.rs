use melba_fmgr::TakenRows;
use melba_fmgr::io::text_of;
use melba_fmgr::registry::aggregate;
use melba_types::{Column, Datum, Kind, Numeric, Oid, oids};

fn numeric(text: &str) -> Datum {
    Datum::Numeric(Numeric::parse(text).expect("numeric"))
}

/// Runs an aggregate over values of one type, at once, as batches and merged, and returns the text of its result.
fn run(source: (&str, &str), ty: Oid, result: Oid, kind: Kind, values: &[Datum]) -> String {
    let session = crate::testing::session();
    let types = [ty];
    let call = session.call(&types, result);
    let make = aggregate(source.0, source.1).expect("registered");
    let mut one = make(&call).expect("state");
    for v in values {
        one.add(&call, std::slice::from_ref(v)).expect("add");
    }
    let text = |v: Datum| if v.is_null() { "NULL".to_string() } else { text_of(&session, result, &v).expect("output") };
    let expected = text(one.finish(&call).expect("finish"));
    let mut column = Column::with_capacity(kind, values.len());
    values.iter().for_each(|v| column.push(v.clone()));
    let rows: Vec<u32> = (0..values.len() as u32).collect();
    let mut batched = make(&call).expect("state");
    let mut second = make(&call).expect("state");
    let (a, b) = rows.split_at(rows.len() / 3);
    batched.add_batch(&call, &[&column], a).expect("batch");
    second.add_batch(&call, &[&column], b).expect("batch");
    batched.merge(second).expect("merge");
    assert_eq!(text(batched.finish(&call).expect("finish")), expected, "{source:?} by batches");
    if let Some(mut grouped) = one.grouped() {
        // Every other row belongs to a group of the same values, and group 1 stays empty.
        let places: Vec<u32> = rows.iter().map(|row| row % 2 * 2).collect();
        grouped.resize(2);
        grouped.resize(3);
        let of =
            |group: u32, some: &[u32]| some.iter().copied().filter(|row| places[*row as usize] == group).collect::<Vec<u32>>();
        grouped.add(&call, &[&column], Some(a), &places).expect("some rows");
        // The other rows in separate states, with the groups in another order.
        let mut others = one.grouped().expect("grouped as well");
        others.resize(3);
        let mut apart = one.grouped().expect("grouped as well");
        apart.resize(3);
        let mut whole = one.grouped().expect("grouped as well");
        whole.resize(3);
        for group in 0..3 {
            let of_group = of(group, &rows);
            apart.add_to(&call, &[&column], group as usize, TakenRows::These(&of_group)).expect("rows of one group");
            let taken = column.take(&of_group);
            whole.add_to(&call, &[&taken], group as usize, TakenRows::All(of_group.len())).expect("all rows of a batch");
        }
        let rest: Vec<u32> = b.iter().map(|row| 2 - places[*row as usize]).collect();
        others.add(&call, &[&column.take(b)], None, &rest).expect("all rows");
        grouped.merge(&*others, &[0, 1, 2], &[2, 1, 0]).expect("merge");
        for group in 0..3 {
            let mut state = make(&call).expect("state");
            state.add_batch(&call, &[&column], &of(group, &rows)).expect("batch");
            let expected = text(state.finish(&call).expect("finish"));
            assert_eq!(text(grouped.finish(&call, group as usize).expect("finish")), expected, "{source:?} group {group}");
            assert_eq!(text(apart.finish(&call, group as usize).expect("finish")), expected, "{source:?} group {group} alone");
            assert_eq!(text(whole.finish(&call, group as usize).expect("finish")), expected, "{source:?} group {group} whole");
        }
    }
    expected
}

#[test]
fn aggregates_of_integers() {
    let values: Vec<Datum> = [3, 1, 4, 1, 5, 9, 2, 6].iter().map(|&v| Datum::Int4(v)).chain([Datum::Null]).collect();
    let of = |t, f, result| run((t, f), oids::INT4, result, Kind::Int4, &values);
    assert_eq!(of("int8inc_any", "", oids::INT8), "8");
    assert_eq!(of("int4_sum", "", oids::INT8), "31");
    assert_eq!(of("int4_avg_accum", "int8_avg", oids::NUMERIC), "3.8750000000000000");
    assert_eq!(of("int4larger", "", oids::INT4), "9");
    assert_eq!(of("int4smaller", "", oids::INT4), "1");
    assert_eq!(of("int4_accum", "numeric_poly_stddev_samp", oids::NUMERIC), "2.7483761439387129");
    assert_eq!(of("int4_accum", "numeric_poly_var_pop", oids::NUMERIC), "6.6093750000000000");
    assert_eq!(run(("int4_sum", ""), oids::INT4, oids::INT8, Kind::Int4, &[Datum::Null]), "NULL");
}

#[test]
fn aggregates_of_numerics_keep_the_largest_scale() {
    let values = ["1.5", "2.25", "-1e30", "9223372036854775807", "0.000000000000000001", "1e30", "3"].map(numeric);
    let of = |t, f| run((t, f), oids::NUMERIC, oids::NUMERIC, Kind::Numeric, &values);
    let prices = ["1.50", "-2.25", "1e3", "7.00", "0.01", "92233720368547758.07"].map(numeric);
    assert_eq!(
        run(("numeric_avg_accum", "numeric_sum"), oids::NUMERIC, oids::NUMERIC, Kind::Numeric, &prices),
        "92233720368548764.33"
    );
    assert_eq!(of("numeric_avg_accum", "numeric_sum"), "9223372036854775813.750000000000000001");
    assert_eq!(of("numeric_smaller", ""), "-1000000000000000000000000000000");
    let nan = [numeric("1"), numeric("NaN"), numeric("Infinity")];
    assert_eq!(run(("numeric_avg_accum", "numeric_avg"), oids::NUMERIC, oids::NUMERIC, Kind::Numeric, &nan), "NaN");
}

#[test]
fn a_sum_that_moves_takes_values_out_again() {
    let session = crate::testing::session();
    let types = [oids::NUMERIC];
    let call = session.call(&types, oids::NUMERIC);
    let mut sum = aggregate("numeric_avg_accum", "numeric_sum").expect("registered")(&call).expect("state");
    for v in ["1.25", "2.5", "3"] {
        sum.add(&call, &[numeric(v)]).expect("add");
    }
    // 1.25 is the only value of scale 2: the sum without it has scale 1, which only a recount can find.
    assert!(!sum.remove(&call, &[numeric("1.25")]).expect("remove"));
    assert!(sum.remove(&call, &[numeric("2.5")]).expect("remove"));
    assert_eq!(sum.finish(&call).expect("finish").as_numeric().to_string(), "4.25");
}

#[test]
fn aggregates_of_floats() {
    let values: Vec<Datum> = [1.5, 2.5, 4.0, -1.0].iter().map(|&v| Datum::Float8(v)).collect();
    let of = |t, f| run((t, f), oids::FLOAT8, oids::FLOAT8, Kind::Float8, &values);
    assert_eq!(of("float8pl", ""), "7");
    assert_eq!(of("float8_accum", "float8_avg"), "1.75");
    assert_eq!(of("float8_accum", "float8_var_pop"), "3.3125");
    assert_eq!(of("float8larger", ""), "4");
}
