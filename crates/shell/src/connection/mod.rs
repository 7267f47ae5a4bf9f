//! A connection by PostgreSQL's protocol: statements as simple queries, and every message of their answers in order.
//!
//! The driver `postgres`, which the other tools use, returns neither command tags nor the types of a simple query's columns, and no
//! COPY in the middle of a script; a shell shows all of them. The messages themselves are `postgres-protocol`'s, the driver's codec.

mod cancel;
mod report;
mod session;
mod socket;
mod startup;
mod stream;
mod tls;

pub use cancel::CancelKey;
pub use report::{Failure, Report};
pub use session::{Column, Connection, Event, Table};
pub use startup::open;
