//! to_char, to_date, to_timestamp, to_number: values by template, PostgreSQL's way.
//!
//! A template is split into nodes (`template`); each node writes, or reads, its part of the text.

mod date_in;
mod date_out;
mod number;
mod number_in;
mod number_out;
mod template;

pub use date_in::{DateTimeFields, Standard, parse_standard, template_has_zone};

use melba_fmgr::ScalarFn;
use melba_types::{Datum, Numeric, Result};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("timestamp_to_char", |_, a| date_out::timestamp(a[0].as_i64(), None, a[1].as_str())),
    ("timestamptz_to_char", |c, a| {
        date_out::timestamp(a[0].as_i64(), Some(&crate::datetime::session_zone(c.session)), a[1].as_str())
    }),
    ("interval_to_char", |_, a| date_out::interval(a[0].as_interval(), a[1].as_str())),
    ("to_date", |c, a| date_in::to_date(c.session, a[0].as_str(), a[1].as_str())),
    ("to_timestamp", |c, a| date_in::to_timestamp(c.session, a[0].as_str(), a[1].as_str())),
    ("int4_to_char", |_, a| number_out::integer(i64::from(a[0].as_i32()), true, a[1].as_str())),
    ("int8_to_char", |_, a| number_out::integer(a[0].as_i64(), false, a[1].as_str())),
    ("float4_to_char", |_, a| number_out::double(f64::from(a[0].as_f32()), 6, a[1].as_str())),
    ("float8_to_char", |_, a| number_out::double(a[0].as_f64(), 15, a[1].as_str())),
    ("numeric_to_char", |_, a| number_out::numeric(a[0].as_numeric(), a[1].as_str())),
    ("numeric_to_number", |_, a| to_number(a[0].as_str(), a[1].as_str())),
];

fn to_number(text: &str, template: &str) -> Result<Datum> {
    if template.is_empty() {
        return Ok(Datum::Null);
    }
    let number: Numeric = number_in::to_number(text, template)?;
    Ok(Datum::Numeric(number))
}

#[cfg(test)]
mod tests;
