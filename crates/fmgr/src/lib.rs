//! How functions are called and found. The crates above implement them.
//!
//! A function is found by its implementation name, pg_proc.prosrc (`int4pl`, `text_substr`): one implementation serves every
//! pg_proc row that names it. Functions that PostgreSQL defines in SQL are registered as `name_oid`. Before the first session the
//! tables of all crates of functions are installed (`melba_builtins::install`), so that callers of functions do not depend on
//! them.
//!
//! Invariants:
//! 1. A scalar function of a strict pg_proc row is never called with a NULL argument.
//! 2. Functions reach the session (settings, clock, sequences, catalogs) only through `CallInfo`.

mod aggregate;
mod call;
pub mod files;
pub mod gin;
mod gin_column;
pub mod integer;
pub mod io;
pub mod lookup;
mod macros;
pub mod order;
pub mod registry;
mod table;
pub mod testing;
mod trigger;
pub mod type_functions;
pub mod type_io;
pub mod value_order;
pub mod varlena;

pub use aggregate::{Aggregate, AggregateFn, GroupedAggregate, MakeAggregate, TakenRows};
pub use call::{CallInfo, FormatSettings, PureRoutine, QueryRows, RoutineCall, RoutineRows, RowColumn, Session};
pub use files::{FileBound, FileRequest, FileRows, FileTable, NamedFiles};
pub use gin_column::GinColumn;
pub use melba_types::datetime::{DateOrder, DateStyle, IntervalStyle};
pub use table::{AggregateEntry, Operand, Partition, QuickFn, ScalarFn, SetFn, Sink, Tables, VectorFn, WindowFn};
pub use trigger::{PureTrigger, TransitionTable, TriggerCall};
pub use type_io::{InputFn, OutputFn, ReceiveFn, SendFn, TypeContext, TypeIo};
