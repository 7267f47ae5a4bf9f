//! The rows by which implementations are found: functions of each kind, and input and output of types.
//!
//! A crate of built-ins has one `Tables`. To add a function, add a row to the table of its module.

use std::ops::Range;

use melba_types::{Column, Datum, Oid, Result};

use crate::gin::GinSupport;
use crate::{AggregateFn, CallInfo, TypeIo};

/// One call, one value.
pub type ScalarFn = fn(&CallInfo<'_>, &[Datum]) -> Result<Datum>;

/// An operand of a vector call.
pub enum Operand<'a> {
    Column(&'a Column),
    /// The same value for every row.
    Scalar(&'a Datum),
}

/// One call, `rows` values. Strict: rows where an operand is null yield null. Must return exactly the results of the scalar function.
pub type VectorFn = fn(&CallInfo<'_>, &[Operand<'_>], usize) -> Result<Column>;

/// The value of two operands of fixed width, if they are plain ones: where it returns one, the function of its name returns the same.
/// By the type of the value, which registers hold: a datum would be written to memory and copied.
#[derive(Clone, Copy)]
pub enum QuickFn {
    Bool(fn(&Datum, &Datum) -> Option<bool>),
    Int4(fn(&Datum, &Datum) -> Option<i32>),
    Int8(fn(&Datum, &Datum) -> Option<i64>),
    Float8(fn(&Datum, &Datum) -> Option<f64>),
}

impl QuickFn {
    #[inline]
    pub fn value(self, a: &Datum, b: &Datum) -> Option<Datum> {
        match self {
            QuickFn::Bool(function) => function(a, b).map(Datum::Bool),
            QuickFn::Int4(function) => function(a, b).map(Datum::Int4),
            QuickFn::Int8(function) => function(a, b).map(Datum::Int8),
            QuickFn::Float8(function) => function(a, b).map(Datum::Float8),
        }
    }
}

/// A set-returning function: all its rows, each row's columns in order.
pub type SetFn = fn(&CallInfo<'_>, &[Datum]) -> Result<Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>>;

/// A partition, its rows in window order, as a window function sees it.
pub trait Partition {
    fn rows(&self) -> usize;
    /// Argument number `argument` evaluated at a row.
    fn argument(&self, row: usize, argument: usize) -> Result<Datum>;
    /// Number of arguments of the call.
    fn arguments(&self) -> usize;
    /// The rows that are equal to `row` in window order (`row` included).
    fn peers(&self, row: usize) -> Result<Range<usize>>;
    /// The rows of the frame of `row`, in order: up to three ranges, for EXCLUDE leaves holes.
    fn frame(&self, row: usize) -> Result<[Range<usize>; 3]>;
}

/// Takes the results for rows 0 to `rows()` of the partition, in order.
pub type Sink<'a> = &'a mut dyn FnMut(Datum) -> Result<()>;

/// A window function: computes its result for every row of a partition.
pub type WindowFn = fn(&CallInfo<'_>, &dyn Partition, Sink<'_>) -> Result<()>;

/// An aggregate: pg_proc.prosrc of its transition and of its final function ("" when there is none), its implementation.
pub type AggregateEntry = (&'static str, &'static str, AggregateFn);

/// All tables of one crate of functions, by module. Functions are keyed by pg_proc.prosrc.
pub struct Tables {
    pub scalars: &'static [&'static [&'static [(&'static str, ScalarFn)]]],
    /// Keyed like the scalar function that each equals.
    pub vectors: &'static [&'static [&'static [(&'static str, VectorFn)]]],
    /// Keyed the same way.
    pub quick: &'static [&'static [(&'static str, QuickFn)]],
    pub sets: &'static [&'static [(&'static str, SetFn)]],
    pub windows: &'static [&'static [(&'static str, WindowFn)]],
    pub aggregates: &'static [&'static [&'static [AggregateEntry]]],
    /// Type families that users extend are keyed by their pseudo-type: ANYARRAY, ANYENUM, ANYRANGE, ANYMULTIRANGE, RECORD.
    pub types: &'static [&'static [(Oid, TypeIo)]],
    /// Operator classes of GIN, by pg_proc.prosrc of their functions extractValue.
    pub gin: &'static [&'static [(&'static str, GinSupport)]],
}

impl Tables {
    pub const NONE: Tables =
        Tables { scalars: &[], vectors: &[], quick: &[], sets: &[], windows: &[], aggregates: &[], types: &[], gin: &[] };
}
