//! Transactions whose effect is known, and the check of their effects after a crash.
//!
//! Each of several sessions changes its own data (rows that refer to each other, tables, large objects) and moves amounts between
//! accounts that all of them share. Each transaction also inserts a row into `ledger`, so that afterwards the database tells
//! which transactions it has; a model derives the rest of its contents from them (`State`). A deferred trigger copies that row to
//! `journal` at the commit, with the number of children that the session has then. This crate does not know how statements reach
//! a server (`Connection`), nor how the server ends.
//!
//! Invariant: a session runs its transactions one after the other, and chooses the next one from the state that those before it have left.

mod generate;
mod history;
mod judge;
mod operation;
mod state;

pub use generate::Transaction;
pub use history::{Attempt, Session};
pub use judge::{Found, Verdict, judge, read};
pub use operation::{Operation, Statement};
pub use state::State;

/// A row of an answer in text form.
pub type Row = Vec<Option<String>>;

/// Why a statement has no answer.
#[derive(Debug)]
pub struct Failure {
    /// SQLSTATE; empty: the server has disconnected.
    pub state: String,
    pub message: String,
}

/// A session of a server.
pub trait Connection {
    /// Runs a statement; the rows of its answer.
    fn ask(&mut self, statement: &str) -> Result<Vec<Row>, Failure>;
}

/// Accounts that all sessions share, and the initial amount of each.
pub const ACCOUNTS: i32 = 6;
pub const BALANCE: i64 = 1_000_000;

/// The statements that create the tables.
pub fn schema() -> Vec<String> {
    let mut statements: Vec<String> = [
        "create sequence tickets",
        "create table ledger (session int, n int, ticket bigint not null unique, primary key (session, n))",
        "create table account (id int primary key, balance bigint not null check (balance > 0))",
        "create table parent (id bigint generated always as identity primary key, session int not null, k int not null,
            unique (session, k))",
        "create table child (id serial primary key, parent bigint not null references parent on delete cascade,
            session int not null, k int not null, note text not null check (length(note) > 0), unique (session, k))",
        "create index child_parent on child (parent)",
        "create unlogged table scratch (session int, n int, primary key (session, n))",
        "create table journal (session int, n int, ticket bigint not null, children bigint not null, primary key (session, n))",
        // Runs at the commit: it sees later changes of the same transaction.
        "create function keep_journal() returns trigger language plpgsql as $$
            begin
                insert into journal values (new.session, new.n, new.ticket, (select count(*) from child where session = new.session));
                return null;
            end $$",
        "create constraint trigger journal after insert on ledger deferrable initially deferred
            for each row when (new.n >= 0) execute function keep_journal()",
    ]
    .map(str::to_owned)
    .into();
    statements.push(format!("insert into account select g, {BALANCE} from generate_series(1, {ACCOUNTS}) g"));
    statements
}
