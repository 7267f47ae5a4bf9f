//! Large objects over an engine, without sessions: cases that scripts cannot show.

use std::cell::Cell;
use std::sync::Arc;

use melba_engine::{Durability, Engine, EngineOptions, Isolation, Transaction};
use melba_toast::Method;
use melba_types::{Column, Oid, Result, SqlState};
use melba_vfs::{Directory, MemoryDirectory, OsClock};

use super::extent::Extent;
use super::*;

const OBJECT: Oid = Oid(4711);

fn open(directory: &Arc<MemoryDirectory>) -> Arc<Engine> {
    let directory = Arc::clone(directory) as Arc<dyn Directory>;
    Engine::open(EngineOptions::default(), directory, Arc::new(OsClock::new())).expect("opens")
}

/// An engine with trees, and the object in it.
fn with_object(directory: &Arc<MemoryDirectory>) -> (Arc<Engine>, Trees) {
    let engine = open(directory);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let trees = Trees::create(&t, Oid(5)).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    let mut client = Client::new(&engine, trees, Isolation::ReadCommitted);
    client.run(|lo| lo.create(OBJECT, Oid(10), None, || Oid(0)).map(drop)).expect("creates");
    client.commit();
    (engine, trees)
}

/// One transaction with its buffer.
struct Client {
    transaction: Arc<Transaction>,
    objects: LargeObjects,
    trees: Trees,
}

impl Client {
    fn new(engine: &Engine, trees: Trees, isolation: Isolation) -> Client {
        let transaction = engine.begin(isolation).expect("begins");
        transaction.statement_view();
        Client { transaction, objects: LargeObjects::default(), trees }
    }

    fn run<T>(&mut self, f: impl FnOnce(&mut LargeObjectAccess<'_>) -> Result<T>) -> Result<T> {
        f(&mut LargeObjectAccess::new(&mut self.objects, &self.transaction, self.trees, Method::Lz4))
    }

    fn write(&mut self, offset: i64, data: &[u8]) -> Result<()> {
        self.run(|lo| lo.write(OBJECT, offset, data))
    }

    fn read(&mut self, offset: i64, length: usize) -> Vec<u8> {
        let read = |lo: &mut LargeObjectAccess<'_>| {
            let size = lo.existing(Sight::Newest, OBJECT)?.size;
            lo.read(Sight::Newest, OBJECT, size, offset, length)
        };
        self.run(read).expect("reads")
    }

    fn commit(mut self) {
        self.objects.flush(&self.transaction).expect("flushes");
        self.transaction.commit(Durability::Sync).expect("commits");
    }
}

/// Bytes that no codec makes smaller.
fn noise(length: usize) -> Vec<u8> {
    let mut x = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn sparse_objects_reach_four_terabytes() {
    let directory = MemoryDirectory::new();
    let (engine, trees) = with_object(&directory);
    let mut client = Client::new(&engine, trees, Isolation::ReadCommitted);
    client.write(SIZE_MAX - 5, b"last!").expect("writes");
    client.write(1 << 40, b"in the middle").expect("writes");
    let refused = client.write(SIZE_MAX - 5, b"beyond").expect_err("is too far");
    assert_eq!(refused.message(), "invalid large object write request size: 6");
    client.commit();
    assert!(engine.tree_bytes(trees.data) < 4096);
    let mut client = Client::new(&engine, trees, Isolation::ReadCommitted);
    assert_eq!(client.read(SIZE_MAX - 6, 100), b"\0last!");
    assert_eq!(client.read((1 << 40) - 2, 15), b"\0\0in the middle");
    // Visits the existing extents, not all possible ones.
    client.run(|lo| lo.truncate(OBJECT, 1 << 40)).expect("truncates");
    client.run(|lo| lo.unlink(OBJECT)).expect("unlinks");
    client.commit();
    engine.checkpoint().expect("flushes");
    engine.merge_all().expect("merges");
    assert_eq!((engine.tree_rows_estimate(trees.data), engine.tree_bytes(trees.data)), (0, 0));
}

#[test]
fn more_than_the_buffer_holds_goes_through_segments() {
    let directory = MemoryDirectory::new();
    let (engine, trees) = with_object(&directory);
    let content = noise(40 << 20);
    let log = engine.log_statistics().bytes;
    let mut client = Client::new(&engine, trees, Isolation::ReadCommitted);
    for (number, piece) in content.chunks(100_000).enumerate() {
        client.write(number as i64 * 100_000, piece).expect("writes");
    }
    // A flushed extent is changed again: once in the buffer, once after that was flushed too.
    client.write(10, b"changed").expect("writes");
    client.objects.flush(&client.transaction).expect("flushes");
    client.write(17, b" twice").expect("writes");
    assert_eq!(client.read(8, 17), [&content[8..10], b"changed twice", &content[23..25]].concat());
    client.commit();
    assert!(engine.log_statistics().bytes - log < 200_000, "the bytes are in segments");
    drop(engine);
    let engine = open(&directory.after_power_cut(&mut || false));
    for merged in [false, true] {
        let mut client = Client::new(&engine, trees, Isolation::ReadCommitted);
        assert_eq!(client.read(0, 25), [&content[..10], b"changed twice", &content[23..25]].concat());
        assert!(client.read(25, content.len()) == content[25..]);
        if !merged {
            engine.checkpoint().expect("flushes");
            engine.merge_all().expect("merges");
        }
    }
    // One version of everything.
    assert!(engine.tree_bytes(trees.data) < 42 << 20);
}

#[test]
fn writers_of_one_extent_wait_and_lose_nothing() {
    let directory = MemoryDirectory::new();
    let (engine, trees) = with_object(&directory);
    let mut first = Client::new(&engine, trees, Isolation::ReadCommitted);
    first.write(0, b"0123456789").expect("writes");
    first.commit();
    let mut first = Client::new(&engine, trees, Isolation::ReadCommitted);
    first.write(2, b"ab").expect("writes");
    let mut one_snapshot = Client::new(&engine, trees, Isolation::RepeatableRead);
    let writer = {
        let engine = Arc::clone(&engine);
        std::thread::spawn(move || {
            let mut second = Client::new(&engine, trees, Isolation::ReadCommitted);
            second.write(6, b"cd").expect("writes");
            second.commit();
        })
    };
    first.commit();
    writer.join().expect("writes");
    assert_eq!(Client::new(&engine, trees, Isolation::ReadCommitted).read(0, 10), b"01ab45cd89");
    let failed = one_snapshot.write(0, b"x").expect_err("is too late");
    assert_eq!(failed.fields().sqlstate, SqlState::T_R_SERIALIZATION_FAILURE);
}

#[test]
fn free_oids_are_found_behind_taken_ones() {
    let directory = MemoryDirectory::new();
    let (engine, trees) = with_object(&directory);
    let mut client = Client::new(&engine, trees, Isolation::ReadCommitted);
    for oid in 20_000..30_000 {
        client.run(|lo| lo.create(Oid(oid), Oid(10), None, || Oid(0))).expect("creates");
    }
    let taken = client.run(|lo| lo.create(Oid(20_000), Oid(10), None, || Oid(0))).expect_err("is taken");
    assert_eq!(taken.fields().sqlstate, SqlState::UNIQUE_VIOLATION);
    // As after a restart: the counter begins where the objects do.
    let counter = Cell::new(20_000);
    let next = || Oid(counter.replace(counter.get() + 1));
    let found = client.run(|lo| lo.create(Oid(0), Oid(10), None, next)).expect("creates");
    assert!(found.0 >= 30_000 && found.0 < 50_000, "{found}");
}

#[test]
fn very_many_objects_take_few_locks() {
    let directory = MemoryDirectory::new();
    let (engine, trees) = with_object(&directory);
    let mut client = Client::new(&engine, trees, Isolation::ReadCommitted);
    let mut other = Client::new(&engine, trees, Isolation::ReadCommitted);
    other.write(0, b"in the first block").expect("writes");
    for oid in 100_000..120_000 {
        client.run(|lo| lo.create(Oid(oid), Oid(10), None, || Oid(0))).expect("creates");
    }
    assert!(engine.locks().len() < 2100, "{}", engine.locks().len());
    // The other one finds an OID past the block.
    let counter = Cell::new(110_000);
    let found = other.run(|lo| lo.create(Oid(0), Oid(10), None, || Oid(counter.replace(counter.get() + 1)))).expect("creates");
    assert!(found.0 >= 131_072, "{found}");
    client.commit();
    other.run(|lo| lo.unlink(Oid(110_000))).expect("unlinks");
    other.commit();
}

/// Near-copies: a text that all share, and some bytes of an object's own.
fn near_copy(n: u64) -> Vec<u8> {
    let noise = |seed: u64, bytes: u64| {
        (0..bytes)
            .map(move |i| ((i + seed * 7919).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(31) >> 40) as u8)
    };
    noise(1, 50_000).chain(noise(100 + n, 500)).chain(noise(2, 20_000)).collect()
}

#[test]
fn dense_objects_are_stored_against_each_other() {
    let disk = MemoryDirectory::new();
    let (engine, trees) = with_object(&disk);
    let objects = 40;
    for n in 0..objects {
        let mut client = Client::new(&engine, trees, Isolation::ReadCommitted);
        let write = |lo: &mut LargeObjectAccess<'_>| {
            lo.create(Oid(9000 + n), Oid(10), None, || Oid(0))?;
            lo.write(Oid(9000 + n), 0, &near_copy(n.into()))
        };
        let access = &mut LargeObjectAccess::new(&mut client.objects, &client.transaction, client.trees, Method::Dense);
        write(access).expect("writes");
        client.commit();
    }
    engine.checkpoint().expect("flushes");
    let before = engine.tree_bytes(trees.data);
    engine.merge_all().expect("merges");
    let after = engine.tree_bytes(trees.data);
    assert!(after * 8 < before, "{before} bytes became {after}");
    let reopened = open(&disk);
    let mut client = Client::new(&reopened, trees, Isolation::ReadCommitted);
    for n in 0..objects {
        let read = |lo: &mut LargeObjectAccess<'_>| {
            let size = lo.existing(Sight::Newest, Oid(9000 + n))?.size;
            lo.read(Sight::Newest, Oid(9000 + n), size, 0, 100_000)
        };
        assert_eq!(client.run(read).expect("reads"), near_copy(n.into()), "object {n}");
    }
}

#[test]
fn the_document_says_how_rows_look() {
    let document = include_str!("../../../docs/design/largeobject.md");
    for constant in [format!("{EXTENT_BYTES} bytes, a page {PAGE_BYTES}"), "items of 16 bytes".to_owned()] {
        assert!(document.contains(&constant), "{constant}");
    }
    let rows = document.split("```text").nth(1).and_then(|rest| rest.split("```").next()).expect("an annotated object");
    let written: Vec<Vec<u8>> = rows
        .lines()
        .filter_map(|line| line.split_once('|'))
        .map(|(bytes, _)| {
            bytes.split_whitespace().filter_map(|b| u8::from_str_radix(b, 16).ok().filter(|_| b.len() == 2)).collect()
        })
        .collect();
    let metadata = Metadata { owner: Oid(10), acl: None, size: 3 }.row();
    let mut extent = Extent::default();
    extent.write(1, b"ab");
    let mut columns: Vec<Column> = DATA_KINDS.iter().map(|k| Column::with_capacity(*k, 1)).collect();
    extent.push_to(Method::Lz4, &mut columns);
    let data: Vec<_> = columns.iter().map(|c| c.get(0)).collect();
    assert!(metadata[1].is_null() && data[0].is_null());
    let held = [
        metadata[0].as_oid().to_le_bytes().to_vec(),
        vec![],
        metadata[2].as_i64().to_le_bytes().to_vec(),
        vec![],
        data[1].as_i32().to_le_bytes().to_vec(),
        data[2].as_bytes().to_vec(),
    ];
    assert_eq!(written, held);
}
