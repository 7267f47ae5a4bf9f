use super::*;

fn n(text: &str) -> Numeric {
    Numeric::parse(text).expect(text)
}

#[test]
fn a_numeric_is_16_bytes() {
    assert_eq!(std::mem::size_of::<Numeric>(), 16);
}

#[test]
fn text_is_kept_with_its_scale() {
    for (text, shown) in [
        ("1.50", "1.50"),
        ("-0.00", "0.00"),
        (" +007 ", "7"),
        ("1e3", "1000"),
        ("1.5e-3", "0.0015"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1_000.000_1", "1000.0001"),
        ("0xff", "255"),
        ("-0b_101", "-5"),
        ("123456789012345678901234567890.5", "123456789012345678901234567890.5"),
        ("-inf", "-Infinity"),
        ("nan", "NaN"),
    ] {
        assert_eq!(n(text).to_string(), shown, "{text}");
    }
    for bad in ["", ".", "1e", "1__0", "_1", "1_", "1._5", "-nan", "0x", "1 2", "e5"] {
        assert!(Numeric::parse(bad).is_err(), "{bad}");
    }
    assert_eq!(Numeric::parse("1e131073").expect_err("large").message(), "value overflows numeric format");
}

/// Results of PostgreSQL 18.
#[test]
fn arithmetic_has_postgresql_scales() {
    for (a, op, b, result) in [
        ("1", '/', "3", "0.33333333333333333333"),
        ("10", '/', "2", "5.0000000000000000"),
        ("1.0", '/', "7", "0.14285714285714285714"),
        ("12345678901234567890", '/', "7", "1763668414462081127"),
        ("1e-10", '/', "3", "0.0000000000333333333333333333"),
        ("2", '*', "1.50", "3.00"),
        ("9223372036854775807", '+', "1", "9223372036854775808"),
        ("-9223372036854775808", '-', "0.5", "-9223372036854775808.5"),
        ("-7.5", '%', "2", "-1.5"),
        ("2", '^', "0.5", "1.4142135623730950"),
        ("2", '^', "-3", "0.1250000000000000"),
        ("1.1", '^', "100", "13780.612339822270"),
        ("-2", '^', "3", "-8.0000000000000000"),
        ("2", 'l', "100", "6.6438561897747247"),
    ] {
        let (a, b) = (n(a), n(b));
        let r = match op {
            '+' => a.add(&b),
            '-' => a.sub(&b),
            '*' => a.mul(&b),
            '/' => a.div(&b),
            '%' => a.rem(&b),
            '^' => a.power(&b),
            _ => b.log(&a),
        };
        assert_eq!(r.expect("in range").to_string(), result, "{a} {op} {b}");
    }
}

#[test]
fn functions_have_postgresql_scales() {
    assert_eq!(n("2").sqrt().expect("sqrt").to_string(), "1.414213562373095");
    assert_eq!(n("1e20").sqrt().expect("sqrt").to_string(), "10000000000.00000");
    assert_eq!(n("1").exp().expect("exp").to_string(), "2.7182818284590452");
    assert_eq!(n("10").ln().expect("ln").to_string(), "2.3025850929940457");
    assert_eq!(n("2.5").round(0).expect("round").to_string(), "3");
    assert_eq!(n("-1234.56").round(-2).expect("round").to_string(), "-1200");
    assert_eq!(n("-1.5").floor().expect("floor").to_string(), "-2");
    assert_eq!(n("-1.5").ceil().expect("ceil").to_string(), "-1");
    assert_eq!(n("1.500").trim_scale().expect("trim").to_string(), "1.5");
    assert_eq!(n("12.30").gcd(&n("4.1")).expect("gcd").to_string(), "4.10");
    assert_eq!(functions::factorial(25, || Ok(())).expect("factorial").to_string(), "15511210043330985984000000");
}

#[test]
fn type_modifiers_round_and_refuse() {
    assert_eq!(n("12.345").apply_typmod(convert::typmod(4, 2)).expect("fits").to_string(), "12.35");
    assert_eq!(n("1250").apply_typmod(convert::typmod(2, -2)).expect("fits").to_string(), "1300");
    let e = n("99.999").apply_typmod(convert::typmod(4, 2)).expect_err("overflows");
    assert_eq!(
        e.fields().detail.as_deref(),
        Some("A field with precision 4, scale 2 must round to an absolute value less than 10^2.")
    );
}

#[test]
fn bytes_come_back_and_equal_values_hash_alike() {
    use std::hash::{BuildHasher, RandomState};
    let state = RandomState::new();
    let values = ["0", "0.00", "-1", "127", "128", "-129", "1.50", "1.5000000000000000000000", "9223372036854775807"];
    let more = ["9223372036854775808", "-9223372036854775808", "1e50", "1e-50", "NaN", "Infinity", "-Infinity"];
    for text in values.into_iter().chain(more) {
        let value = n(text);
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        assert_eq!(Numeric::decode(&bytes).expect(text).to_string(), value.to_string());
        bytes.clear();
        value.write_wire(&mut bytes);
        assert_eq!(Numeric::read_wire(&bytes).expect(text).to_string(), value.to_string());
        for other in ["1.5", "1.50000000000000000000000000", "0", "100e48"] {
            if n(other) == value {
                assert_eq!(state.hash_one(n(other)), state.hash_one(&value), "{other} {text}");
            }
        }
    }
    assert_eq!(n("1.5"), n("1.5000000000000000000000"));
    assert!(n("NaN") > n("Infinity") && n("-1e50") < n("-1") && n("-Infinity") < n("-1e50"));
}

/// Sums and differences of long numbers check the limits: a series of a hundred thousand of them must end in time.
#[test]
fn operations_on_long_numbers_can_be_interrupted() {
    struct Raised;
    impl crate::limits::Interruptible for Raised {
        fn check(&self) -> crate::Result<()> {
            Err(crate::err!(QUERY_CANCELED, "canceling statement due to user request"))
        }
    }
    let (long, one) = (Numeric::parse(&"7".repeat(5000)).expect("parses"), Numeric::ONE);
    crate::limits::run(std::sync::Arc::new(Raised), || {
        for operation in [Numeric::add, Numeric::sub, Numeric::mul, Numeric::div, Numeric::div_trunc, Numeric::rem, Numeric::lcm]
        {
            let error = operation(&long, &one).expect_err("is to end");
            assert_eq!(error.sqlstate(), crate::SqlState::QUERY_CANCELED);
            assert!(operation(&one, &one).is_ok(), "short ones need no look");
        }
    });
}

#[test]
fn numbers_of_all_sizes_and_scales_compare_by_value() {
    let long = format!("1{}", "0".repeat(300));
    let texts = [
        &*format!("-{long}.5"),
        "-10.1",
        "-10.09",
        "-9.999999999999999999999999",
        "-0.00000000000000000000000000000000001",
        "0.000",
        "1e-300",
        "2e-300",
        "0.1000000000000000000000000000000000001",
        "0.5",
        "1.00000000000000000000000001",
        "1.9999999999999999999999999",
        "2",
        "9.99999999999999999999999999999",
        "10.00000000000000000000000000001",
        &long,
        &format!("{long}.5"),
        &format!("9{long}"),
    ];
    let numbers = texts.map(|text| Numeric::parse(text).expect("parses"));
    for (i, a) in numbers.iter().enumerate() {
        for (j, b) in numbers.iter().enumerate() {
            assert_eq!(a.cmp(b), i.cmp(&j), "{} {}", texts[i], texts[j]);
        }
    }
    let zero = Numeric::parse("0.00000000000000000000000000000").expect("parses");
    assert!(
        zero == Numeric::ZERO
            && Numeric::parse("1.50000000000000000000000000").expect("parses") == Numeric::parse("1.5").expect("parses")
    );
}

#[test]
fn a_long_and_a_short_number_have_a_divisor_at_once() {
    let long = Numeric::parse(&"7".repeat(131_000)).expect("parses");
    let start = std::time::Instant::now();
    assert_eq!(
        long.gcd(&Numeric::parse("1e-16000").expect("parses"))
            .expect("answers")
            .cmp(&Numeric::parse("1e-16000").expect("parses")),
        std::cmp::Ordering::Equal
    );
    assert_eq!(long.gcd(&Numeric::from(14)).expect("answers"), Numeric::from(7));
    assert_eq!(Numeric::from(0).gcd(&Numeric::from(-6)).expect("answers"), Numeric::from(6));
    assert_eq!(Numeric::from(-6).gcd(&Numeric::from(0)).expect("answers"), Numeric::from(6));
    assert!(start.elapsed() < std::time::Duration::from_secs(3), "{:?}", start.elapsed());
}

#[test]
fn results_have_no_more_digits_than_the_format() {
    let most = "9".repeat(131_072);
    for (number, step) in [(most.clone(), "1"), (format!("-{most}.25"), "-0.75"), (format!("{most}.{}", "9".repeat(16_383)), "1")]
    {
        let error = n(&number).add(&n(step)).expect_err("one digit more");
        assert_eq!(error.sqlstate().as_str(), "22003");
        assert!(n(&number).sub(&n(step)).is_ok());
    }
    assert!(n("1e131071").mul(&n("10")).is_err());
    assert!(n("1e131069").mul(&n("1e10")).is_err());
    assert_eq!(n("1e131069").mul(&n("-99.99")).expect("the largest").to_string().len(), 131_075);
}
