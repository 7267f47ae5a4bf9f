//! Restoring large objects: a range of OIDs from its two streams, in batches that are bounded in objects and bytes, so that
//! memory does not grow with the dump.

use postgres::Client;
use postgres::types::Oid;

use crate::Result;
use crate::connection::{describe, execute};
use crate::large_objects::{Lines, Object, Run, Runs, object};
use crate::privileges::quoted;

/// Large objects are created this many, or this many bytes, at a time.
const BATCH_OBJECTS: usize = 4096;
const BATCH_BYTES: usize = 1 << 20;

/// The objects of one transaction.
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

/// Restores the two streams: objects, and their pages, both in the order of OIDs. `user` owns the objects that the client creates.
pub fn restore<B, I>(client: &mut Client, user: &str, objects: B, pages: I) -> Result<()>
where
    B: Iterator<Item = Result<Vec<u8>>>,
    I: Iterator<Item = Result<Vec<u8>>>,
{
    // The last batch's commit makes all of them durable.
    execute(client, "SET synchronous_commit = off")?;
    let mut out = Maker { client, user, batch: Batch::default() };
    out.read(Lines::new(objects), Runs::new(pages))?;
    execute(out.client, "RESET synchronous_commit")?;
    out.make()
}

/// Puts objects into batches.
struct Maker<'a> {
    client: &'a mut Client,
    user: &'a str,
    batch: Batch,
}

impl Maker<'_> {
    /// An object's line is followed by its pages.
    fn read<B, I>(&mut self, mut lines: Lines<B>, mut runs: Runs<I>) -> Result<()>
    where
        B: Iterator<Item = Result<Vec<u8>>>,
        I: Iterator<Item = Result<Vec<u8>>>,
    {
        let mut run = runs.next()?;
        while let Some(line) = lines.next()? {
            if self.batch.is_full() {
                self.make()?;
            }
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
                if self.batch.is_full() {
                    self.make()?;
                }
                self.batch.bytes += more.bytes.len();
                self.batch.puts.push(more);
                run = runs.next()?;
            }
        }
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

    /// Creates the gathered objects.
    fn make(&mut self) -> Result<()> {
        make(self.client, &std::mem::take(&mut self.batch))
    }
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
