//! Prepared transactions: they have voted for their commit (PREPARE TRANSACTION), and another statement ends them, possibly after
//! a restart of the server.
//!
//! ```text
//! key    u32 4294967295, the identifier               a row of the catalog tree, beside those of objects
//! value  u8 version (2), owner, database, i64 time, catalog changes (count; database, key, u8 has value, value), the engine's bytes
//! ```
//!
//! Numbers are LEB128, except the time. The engine's bytes of version 1, which is still read, list no values of unique keys. Invariants:
//! 1. The row is durable before PREPARE TRANSACTION returns. The transaction's commit removes it, so that after a crash either
//!    the row exists and the transaction waits for its end, or the transaction has ended.
//! 2. A restart restores all of them, with their locks, before any other session begins a transaction. One that cannot be restored
//!    keeps the locks that it has got, and can only be rolled back.
//! 3. A row has no changes of tables that a restart has emptied: the start replaces it by one without them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use melba_catalog::{ObjectAddress, ObjectChange, classes, decode_change, encode_change};
use melba_engine::{Durability, Engine, Isolation, PreparedBytes, Transaction};
use melba_types::bytes::{ByteReader, put_bytes, put_i64, put_varint};
use melba_types::row::RowLayout;
use melba_types::{Datum, DbError, Oid, Result, RowId, bail, err};
use parking_lot::Mutex;

use crate::tree::{CATALOG_KINDS, CATALOG_TREE};

/// No database has this OID.
const MARK: [u8; 4] = [u8::MAX; 4];
const VERSION: u8 = 2;
/// Without values of unique keys.
const OLD_VERSION: u8 = 1;

/// A prepared transaction as pg_prepared_xacts shows it.
#[derive(Clone, Debug)]
pub struct PreparedTransaction {
    pub identifier: String,
    pub xid: u64,
    pub owner: Oid,
    pub database: Oid,
    /// Microseconds since 2000-01-01.
    pub at: i64,
}

/// A transaction that waits for its end.
#[derive(Clone)]
pub(crate) struct Voted {
    pub engine: Arc<Transaction>,
    pub changes: Vec<(Oid, ObjectChange)>,
    /// Where it is in the catalog tree.
    pub row: RowId,
    /// The row's value.
    pub value: Arc<[u8]>,
}

/// A transaction that could not be restored.
pub(crate) struct Damaged {
    /// Holds the locks that it has got.
    pub engine: Arc<Transaction>,
    pub row: RowId,
    pub cause: DbError,
}

/// What ends a prepared transaction takes.
pub(crate) enum Taken {
    Voted(Voted),
    Damaged(Damaged),
}

struct PreparedEntry {
    shown: PreparedTransaction,
    /// `None`: it is being prepared, or ended.
    taken: Option<Taken>,
}

/// The user and database of a session that ends a prepared transaction.
pub struct Finisher {
    pub user: Oid,
    pub superuser: bool,
    pub database: Oid,
}

/// All prepared transactions of a server.
#[derive(Default)]
pub struct PreparedTransactions {
    all: Mutex<BTreeMap<String, PreparedEntry>>,
    limit: AtomicUsize,
}

impl PreparedTransactions {
    /// max_prepared_transactions.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// 55000 where none can be prepared.
    pub fn check_enabled(&self) -> Result<()> {
        match self.limit.load(Ordering::Relaxed) {
            0 => Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "prepared transactions are disabled")
                .hint("Set \"max_prepared_transactions\" to a nonzero value.")),
            _ => Ok(()),
        }
    }

    /// Those that wait for their end, in the order of their identifiers.
    pub fn list(&self) -> Vec<PreparedTransaction> {
        self.all.lock().values().filter(|e| e.taken.is_some()).map(|e| e.shown.clone()).collect()
    }

    /// The identifiers of those that could not be restored, with the causes.
    pub fn damaged(&self) -> Vec<(String, String)> {
        let all = self.all.lock();
        let cause = |entry: &PreparedEntry| match &entry.taken {
            Some(Taken::Damaged(damaged)) => Some(damaged.cause.message().to_owned()),
            _ => None,
        };
        all.iter().filter_map(|(identifier, entry)| Some((identifier.clone(), cause(entry)?))).collect()
    }

    /// How many a database has.
    pub fn count_in(&self, database: Oid) -> usize {
        self.all.lock().values().filter(|e| e.shown.database == database).count()
    }

    /// Takes the identifier of one that is to be prepared.
    pub(crate) fn reserve(&self, shown: PreparedTransaction) -> Result<()> {
        let limit = self.limit.load(Ordering::Relaxed);
        let mut all = self.all.lock();
        let identifier = shown.identifier.clone();
        if all.contains_key(&identifier) {
            bail!(DUPLICATE_OBJECT, "transaction identifier \"{identifier}\" is already in use");
        }
        if all.len() >= limit {
            return Err(err!(OUT_OF_MEMORY, "maximum number of prepared transactions reached")
                .hint(format!("Increase \"max_prepared_transactions\" (currently {limit}).")));
        }
        all.insert(identifier, PreparedEntry { shown, taken: None });
        Ok(())
    }

    /// One that was found when the server started: there may be more than the limit.
    pub(crate) fn add(&self, shown: PreparedTransaction, taken: Taken) {
        self.all.lock().insert(shown.identifier.clone(), PreparedEntry { shown, taken: Some(taken) });
    }

    /// Takes one to end it, with its id.
    pub(crate) fn take(&self, identifier: &str, who: &Finisher) -> Result<(Taken, u64)> {
        let mut all = self.all.lock();
        let Some(PreparedEntry { shown, taken }) = all.get_mut(identifier) else {
            bail!(UNDEFINED_OBJECT, "prepared transaction with identifier \"{identifier}\" does not exist");
        };
        if taken.is_none() {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "prepared transaction with identifier \"{identifier}\" is busy");
        }
        if shown.owner != who.user && !who.superuser {
            return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to finish prepared transaction")
                .hint("Must be superuser or the user that prepared the transaction."));
        }
        if shown.database != who.database && shown.database != Oid(0) {
            return Err(err!(FEATURE_NOT_SUPPORTED, "prepared transaction belongs to another database")
                .hint("Connect to the database where the transaction was prepared to finish it."));
        }
        let xid = shown.xid;
        taken.take().map(|taken| (taken, xid)).ok_or_else(|| err!(INTERNAL_ERROR, "a prepared transaction vanished"))
    }

    pub(crate) fn forget(&self, identifier: &str) {
        self.all.lock().remove(identifier);
    }

    pub(crate) fn wait(&self, identifier: &str, taken: Taken) {
        if let Some(entry) = self.all.lock().get_mut(identifier) {
            entry.taken = Some(taken);
        }
    }
}

/// The key of a prepared transaction's row.
fn key_of(identifier: &str) -> Vec<u8> {
    [&MARK[..], identifier.as_bytes()].concat()
}

/// The identifier of a prepared transaction, if the row of the catalog tree is of one.
pub(crate) fn identifier_of(key: &[u8]) -> Option<String> {
    key.strip_prefix(&MARK).map(|identifier| String::from_utf8_lossy(identifier).into_owned())
}

/// A prepared transaction's row of the catalog tree.
pub(crate) fn row_of(identifier: &str, value: &[u8]) -> Vec<u8> {
    RowLayout::new(CATALOG_KINDS.to_vec()).encode_row(&[Datum::bytes(key_of(identifier)), Datum::bytes(value)])
}

/// The value of a prepared transaction's row.
pub(crate) fn value_of(shown: &PreparedTransaction, changes: &[(Oid, ObjectChange)], engine: &Transaction) -> Result<Vec<u8>> {
    let mut out = vec![VERSION];
    put_varint(shown.owner.0.into(), &mut out);
    put_varint(shown.database.0.into(), &mut out);
    put_i64(shown.at, &mut out);
    put_varint(changes.len() as u64, &mut out);
    for (database, change) in changes {
        let stored = encode_change(*database, change);
        put_varint(database.0.into(), &mut out);
        put_bytes(&stored.key, &mut out);
        out.push(stored.value.is_some().into());
        stored.value.iter().for_each(|value| put_bytes(value, &mut out));
    }
    out.extend(engine.two_phase().to_bytes()?);
    Ok(out)
}

/// Makes the transaction again that a row is of. `reopened`: the row is of an earlier life of the server.
pub(crate) fn restore(
    engine: &Engine,
    identifier: String,
    (row, value): (RowId, Arc<[u8]>),
    reopened: bool,
) -> Result<(PreparedTransaction, Taken)> {
    let transaction = engine.begin(Isolation::ReadCommitted)?;
    let mut r = ByteReader::new(&value);
    let (shown, restored) = match read_value(&mut r, identifier.clone()) {
        Some((version, shown, changes)) => {
            let bytes = r.take(r.remaining()).unwrap_or_default();
            let from = PreparedBytes { bytes, lists_keys: version != OLD_VERSION, reopened };
            let restored = restore_changes(&transaction, from).map(|left_out| (changes, left_out));
            (shown, restored)
        }
        None => {
            // Shown as the bootstrap user's, of no database.
            let cause = err!(DATA_CORRUPTED, "catalog row {row} of a prepared transaction cannot be read");
            (PreparedTransaction { identifier, xid: 0, owner: classes::POSTGRES_ROLE, database: Oid(0), at: 0 }, Err(cause))
        }
    };
    let (changes, left_out) = match restored {
        Ok(restored) => restored,
        Err(cause) => {
            transaction.two_phase().set_aside();
            return Ok((shown, Taken::Damaged(Damaged { engine: transaction, row, cause })));
        }
    };
    let value = if left_out { replace_row(engine, row, &shown, &changes, &transaction)? } else { value };
    transaction.delete(CATALOG_TREE, row)?;
    transaction.two_phase().set_aside();
    Ok((shown, Taken::Voted(Voted { engine: transaction, changes, row, value })))
}

fn restore_changes(transaction: &Transaction, from: PreparedBytes<'_>) -> Result<bool> {
    Ok(transaction.two_phase().restore(from)?)
}

/// Replaces the row of a transaction by one without the changes that were left out.
fn replace_row(
    engine: &Engine,
    row: RowId,
    shown: &PreparedTransaction,
    changes: &[(Oid, ObjectChange)],
    transaction: &Transaction,
) -> Result<Arc<[u8]>> {
    let value: Arc<[u8]> = value_of(shown, changes, transaction)?.into();
    let writer = engine.begin(Isolation::ReadCommitted)?;
    writer.update(CATALOG_TREE, row, &row_of(&shown.identifier, &value))?;
    writer.commit(Durability::Sync)?;
    Ok(value)
}

type ReadValue = (u8, PreparedTransaction, Vec<(Oid, ObjectChange)>);

/// The version, and all but the engine's bytes.
fn read_value(r: &mut ByteReader<'_>, identifier: String) -> Option<ReadValue> {
    let version = r.u8().filter(|version| [VERSION, OLD_VERSION].contains(version))?;
    let oid = |n: u64| u32::try_from(n).ok().map(Oid);
    let (owner, database, at) = (oid(r.varint()?)?, oid(r.varint()?)?, r.i64()?);
    let mut changes = Vec::new();
    for _ in 0..r.varint()? {
        let home = oid(r.varint()?)?;
        let key = r.bytes()?;
        let change = match r.u8()? {
            0 => removal(key)?,
            _ => decode_change(key, r.bytes()?)?.1,
        };
        changes.push((home, change));
    }
    Some((version, PreparedTransaction { identifier, xid: 0, owner, database, at }, changes))
}

/// The change for a key without a value, as `encode_change` has made it.
fn removal(key: &[u8]) -> Option<ObjectChange> {
    let number = |at: usize| Some(u32::from_be_bytes(key.get(at..at + 4)?.try_into().ok()?));
    let address = ObjectAddress { class: Oid(number(5)?), object: Oid(number(9)?), sub: number(13)? as i32 };
    Some(match key.get(4)? {
        0 => ObjectChange::Remove(address),
        _ => ObjectChange::RemoveDescription(address),
    })
}
