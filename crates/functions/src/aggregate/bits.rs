//! bool_and, bool_or, bit_and, bit_or, bit_xor.

use melba_fmgr::{Aggregate, AggregateFn, CallInfo};
use melba_types::{Datum, Result};

use super::{any, same};
use crate::bits;

macro_rules! folds {
    ($($name:literal: $variant:ident |$a:ident, $b:ident| $result:expr;)+ bits $($of_bits:literal: $function:expr,)+) => {
        pub const AGGREGATES: &[(&str, &str, AggregateFn)] = &[$(($name, "", |_| {
            Ok(Box::new(Fold {
                state: Datum::Null,
                step: |a, b| Ok(match (a, b) {
                    (Datum::$variant($a), Datum::$variant($b)) => Datum::$variant($result),
                    (a, _) => a.clone(),
                }),
            }))
        }),)+ $(($of_bits, "", |_| Ok(Box::new(Fold { state: Datum::Null, step: $function })))),+];
    };
}

folds! {
    "booland_statefunc": Bool |a, b| *a && *b;
    "boolor_statefunc": Bool |a, b| *a || *b;
    "int2and": Int2 |a, b| a & b;
    "int2or": Int2 |a, b| a | b;
    "int2xor": Int2 |a, b| a ^ b;
    "int4and": Int4 |a, b| a & b;
    "int4or": Int4 |a, b| a | b;
    "int4xor": Int4 |a, b| a ^ b;
    "int8and": Int8 |a, b| a & b;
    "int8or": Int8 |a, b| a | b;
    "int8xor": Int8 |a, b| a ^ b;
    bits
    "bit_and": |a, b| bits::combine(&[a.clone(), b.clone()], "AND", |x, y| x & y),
    "bit_or": |a, b| bits::combine(&[a.clone(), b.clone()], "OR", |x, y| x | y),
    "bitxor": |a, b| bits::combine(&[a.clone(), b.clone()], "XOR", |x, y| x ^ y),
}

/// A state of the input's type, null until the first input.
struct Fold {
    state: Datum,
    step: fn(&Datum, &Datum) -> Result<Datum>,
}

impl Fold {
    fn take(&mut self, v: &Datum) -> Result<()> {
        if self.state.is_null() {
            self.state = v.clone();
        } else if !v.is_null() {
            self.state = (self.step)(&self.state, v)?;
        }
        Ok(())
    }
}

impl Aggregate for Fold {
    fn add(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        self.take(&args[0])
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        self.take(&same::<Fold>(other)?.state)
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        Ok(self.state.clone())
    }

    fn combines(&self) -> bool {
        true
    }

    any!();
}
