//! Restoring large objects: one thread reads them from the dump and puts them into batches, workers create them.
//!
//! 1. Batches are bounded in objects and bytes, and so are the batches that wait: memory does not grow with the dump.
//! 2. What belongs to one object goes to one worker, in its order.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use postgres::Client;
use postgres::types::Oid;

use crate::Result;
use crate::connection::{Source, describe, execute};
use crate::large_objects::{Lines, Object, Run, Runs, object};
use crate::privileges::quoted;

/// Large objects are created this many, or this many bytes, at a time.
const BATCH_OBJECTS: usize = 4096;
const BATCH_BYTES: usize = 1 << 20;
/// Batches that wait for a worker.
const WAITING: usize = 1;

/// What a worker does at a time, in one transaction.
#[derive(Default)]
struct Batch {
    /// New objects with their first bytes.
    oids: Vec<Oid>,
    contents: Vec<Vec<u8>>,
    /// Bytes behind an object's first run.
    puts: Vec<Run>,
    bytes: usize,
    /// Owners and privileges that differ from a new object's.
    properties: String,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.oids.len() >= BATCH_OBJECTS || self.bytes >= BATCH_BYTES
    }
}

/// Restores what the two streams hold: objects, and their pages, both in the order of OIDs.
pub fn restore<B, I>(target: &Source, workers: usize, objects: B, pages: I) -> Result<()>
where
    B: Iterator<Item = Result<Vec<u8>>>,
    I: Iterator<Item = Result<Vec<u8>>>,
{
    let mut client = target.connect()?;
    // Owns what it creates.
    let user = client.query_one("SELECT current_user::text", &[]).map_err(|e| describe(&e))?.get::<_, String>(0);
    drop(client);
    std::thread::scope(|scope| {
        let (senders, threads): (Vec<_>, Vec<_>) = (0..workers)
            .map(|_| {
                let (sender, batches) = sync_channel(WAITING);
                (sender, scope.spawn(move || work(target, &batches)))
            })
            .unzip();
        let mut out = Sorter { senders, worker: 0, batch: Batch::default(), user };
        let read = out.read(Lines::new(objects), Runs::new(pages));
        drop(out);
        // A worker's own words say more than that it has gone.
        let join =
            |t: std::thread::ScopedJoinHandle<'_, Result<()>>| t.join().unwrap_or_else(|_| Err("a worker panicked".to_owned()));
        let worked: Vec<Result<()>> = threads.into_iter().map(join).collect();
        worked.into_iter().collect::<Result<()>>().and(read)
    })
}

/// Cuts the streams into batches and deals them out.
struct Sorter {
    senders: Vec<SyncSender<Batch>>,
    worker: usize,
    batch: Batch,
    user: String,
}

impl Sorter {
    /// An object's line is followed by its pages.
    fn read<B, I>(&mut self, mut lines: Lines<B>, mut runs: Runs<I>) -> Result<()>
    where
        B: Iterator<Item = Result<Vec<u8>>>,
        I: Iterator<Item = Result<Vec<u8>>>,
    {
        let mut run = runs.next()?;
        while let Some(line) = lines.next()? {
            let object = object(line)?;
            let first = match run.take_if(|r| r.oid == object.oid && r.offset == 0) {
                Some(first) => {
                    run = runs.next()?;
                    first.bytes
                }
                None => Vec::new(),
            };
            self.create(&object, first)?;
            while let Some(more) = run.take_if(|r| r.oid == object.oid) {
                self.put(more)?;
                run = runs.next()?;
            }
            if self.batch.is_full() {
                self.send()?;
                self.worker = (self.worker + 1) % self.senders.len();
            }
        }
        self.send()?;
        match run {
            None => Ok(()),
            Some(run) => Err(format!("the dump has contents of large object {}, which it does not list", run.oid)),
        }
    }

    fn create(&mut self, object: &Object, contents: Vec<u8>) -> Result<()> {
        let batch = &mut self.batch;
        batch.bytes += contents.len();
        batch.oids.push(object.oid);
        batch.contents.push(contents);
        if object.owner != self.user {
            batch.properties += &format!("ALTER LARGE OBJECT {} OWNER TO {};", object.oid, quoted(&object.owner));
        }
        if let Some(acl) = &object.acl {
            batch.properties += &object.privileges(acl)?;
        }
        Ok(())
    }

    fn put(&mut self, run: Run) -> Result<()> {
        self.batch.bytes += run.bytes.len();
        self.batch.puts.push(run);
        if self.batch.is_full() { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.senders[self.worker].send(batch).map_err(|_| "a worker has ended".to_owned())
    }
}

fn work(target: &Source, batches: &Receiver<Batch>) -> Result<()> {
    let mut client = target.connect()?;
    // The last batch's commit makes all of them durable.
    execute(&mut client, "SET synchronous_commit = off")?;
    let mut last = batches.recv();
    while let Ok(batch) = last {
        last = batches.recv();
        if last.is_err() {
            execute(&mut client, "SET synchronous_commit = on")?;
        }
        make(&mut client, &batch)?;
    }
    Ok(())
}

const CREATE: &str = "SELECT count(pg_catalog.lo_from_bytea(o, b)) FROM unnest($1::oid[], $2::bytea[]) AS u(o, b)";
const PUT: &str = "SELECT pg_catalog.lo_put($1, $2, $3)";

fn make(client: &mut Client, batch: &Batch) -> Result<()> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |e: postgres::Error| format!("{}, in {what}", describe(&e))
    };
    let mut transaction = client.transaction().map_err(failed("BEGIN"))?;
    if !batch.oids.is_empty() {
        transaction.execute(CREATE, &[&batch.oids, &batch.contents]).map_err(failed(CREATE))?;
    }
    for run in &batch.puts {
        transaction.execute(PUT, &[&run.oid, &(run.offset as i64), &run.bytes]).map_err(failed(PUT))?;
    }
    if !batch.properties.is_empty() {
        transaction.batch_execute(&batch.properties).map_err(failed("the properties of large objects"))?;
    }
    transaction.commit().map_err(failed("COMMIT"))
}
