//! Results of two numbers without a call's context: for expressions that are evaluated a row at a time, as in users' functions.
//!
//! Invariant: where one of these returns a value, the function of the same name returns the same. Where it returns none (NULL, an
//! overflow, operands of other kinds) the function is called.

use std::cmp::Ordering;

use melba_fmgr::QuickFn;
use melba_types::Datum;

macro_rules! integers {
    ($make:ident, $wide:ty, $operation:ident, $(($a:ident, $b:ident)),+) => {
        QuickFn::$make(|a: &Datum, b: &Datum| match (a, b) {
            $((Datum::$a(a), Datum::$b(b)) => <$wide>::from(*a).$operation(<$wide>::from(*b)),)+
            _ => None,
        })
    };
}

macro_rules! compares {
    ($($test:pat_param)|+, $(($a:ident, $b:ident)),+) => {
        QuickFn::Bool(|a: &Datum, b: &Datum| {
            let order = match (a, b) {
                $((Datum::$a(a), Datum::$b(b)) => i64::from(*a).cmp(&i64::from(*b)),)+
                _ => return None,
            };
            Some(matches!(order, $($test)|+))
        })
    };
}

macro_rules! floats {
    ($operation:tt) => {
        QuickFn::Float8(|a: &Datum, b: &Datum| match (a, b) {
            (Datum::Float8(a), Datum::Float8(b)) => {
                let value = a $operation b;
                // Infinities and underflows may be errors.
                (value.is_normal()).then_some(value)
            }
            _ => None,
        })
    };
}

macro_rules! compares_floats {
    ($operation:tt) => {
        QuickFn::Bool(|a: &Datum, b: &Datum| match (a, b) {
            (Datum::Float8(a), Datum::Float8(b)) if !a.is_nan() && !b.is_nan() => Some(a $operation b),
            _ => None,
        })
    };
}

/// One operation for all pairs of widths.
macro_rules! of_widths {
    ($name:literal, $operation:ident) => {
        &[
            (concat!("int4", $name), integers!(Int4, i32, $operation, (Int4, Int4))),
            (concat!("int8", $name), integers!(Int8, i64, $operation, (Int8, Int8))),
            (concat!("int84", $name), integers!(Int8, i64, $operation, (Int8, Int4))),
            (concat!("int48", $name), integers!(Int8, i64, $operation, (Int4, Int8))),
        ]
    };
}

macro_rules! comparison {
    ($name:literal, $($test:pat_param)|+) => {
        &[
            (concat!("int4", $name), compares!($($test)|+, (Int4, Int4))),
            (concat!("int8", $name), compares!($($test)|+, (Int8, Int8))),
            (concat!("int84", $name), compares!($($test)|+, (Int8, Int4))),
            (concat!("int48", $name), compares!($($test)|+, (Int4, Int8))),
        ]
    };
}

/// By pg_proc.prosrc.
pub const TABLES: &[&[(&str, QuickFn)]] = &[
    of_widths!("pl", checked_add),
    of_widths!("mi", checked_sub),
    of_widths!("mul", checked_mul),
    of_widths!("div", checked_div),
    comparison!("eq", Ordering::Equal),
    comparison!("ne", Ordering::Less | Ordering::Greater),
    comparison!("lt", Ordering::Less),
    comparison!("le", Ordering::Less | Ordering::Equal),
    comparison!("gt", Ordering::Greater),
    comparison!("ge", Ordering::Greater | Ordering::Equal),
    &[("int4mod", integers!(Int4, i32, checked_rem, (Int4, Int4))), ("int8mod", integers!(Int8, i64, checked_rem, (Int8, Int8)))],
    &[
        ("float8pl", floats!(+)),
        ("float8mi", floats!(-)),
        ("float8mul", floats!(*)),
        ("float8eq", compares_floats!(==)),
        ("float8ne", compares_floats!(!=)),
        ("float8lt", compares_floats!(<)),
        ("float8le", compares_floats!(<=)),
        ("float8gt", compares_floats!(>)),
        ("float8ge", compares_floats!(>=)),
    ],
];

#[cfg(test)]
mod tests {
    use melba_types::Oid;

    use super::*;
    use melba_fmgr::registry;

    use crate::testing::session;

    #[test]
    fn quick_functions_agree_with_those_of_their_name() {
        let session = session();
        let numbers = [0i64, 1, -1, 2, 7, -7, 1 << 20, i64::from(i32::MAX), i64::from(i32::MIN), i64::MAX, i64::MIN];
        let mut values: Vec<Datum> = numbers.iter().map(|n| Datum::Int8(*n)).collect();
        values.extend(numbers.iter().filter_map(|n| i32::try_from(*n).ok()).map(Datum::Int4));
        values.extend([0.0, -0.0, 1.5, -2.25, 1e308, 1e-308, f64::INFINITY, f64::NAN].map(Datum::Float8));
        values.push(Datum::Null);
        let mut compared = 0;
        for (name, quick) in TABLES.iter().copied().flatten().copied() {
            let function = registry::scalar(name).unwrap_or_else(|| panic!("{name} is no function"));
            for a in &values {
                for b in &values {
                    let Some(value) = quick.value(a, b) else { continue };
                    let slow =
                        function(&session.call(&[], Oid::INVALID), &[a.clone(), b.clone()]).expect("what is quick has no error");
                    assert_eq!(format!("{value:?}"), format!("{slow:?}"), "{name}({a:?}, {b:?})");
                    compared += 1;
                }
            }
        }
        assert!(compared > 1000);
    }
}
