//! Segments that move into a store and back while they are read, merged, backed up and dropped.

use std::sync::Arc;

use melba_store::segment_name;
use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{Directory, MemoryDirectory, MemoryObjects, OsClock, OsRandom, StoreFault};

use crate::*;

const KINDS: [Kind; 2] = [Kind::Int4, Kind::Text];
const ROWS: i32 = 20_000;

struct World {
    disk: Arc<MemoryDirectory>,
    objects: Arc<MemoryObjects>,
    engine: Arc<Engine>,
}

fn target() -> ColdTarget {
    ColdTarget { store: "s3://bucket/cold".into(), after: 0 }
}

fn open(disk: &Arc<MemoryDirectory>, objects: &Arc<MemoryObjects>) -> Arc<Engine> {
    let options =
        EngineOptions { memory_bytes: 4 << 20, wal_file_bytes: 64 << 10, segment_bytes: 1 << 20, ..EngineOptions::default() };
    let engine = Engine::open(options, Arc::clone(disk) as Arc<dyn Directory>, Arc::new(OsClock::new())).expect("opens");
    engine.set_objects(Arc::clone(objects) as Arc<dyn Objects>, Arc::new(OsRandom));
    engine
}

fn text(number: i32) -> String {
    format!("row {number} {:x}", number.wrapping_mul(0x9E37_79B9_u32 as i32))
}

fn encoded(number: i32) -> Vec<u8> {
    RowLayout::new(KINDS.to_vec()).encode_row(&[Datum::Int4(number), Datum::text(text(number))])
}

impl World {
    fn new() -> World {
        let (disk, objects) = (MemoryDirectory::new(), Arc::<MemoryObjects>::default());
        let engine = open(&disk, &objects);
        World { disk, objects, engine }
    }

    /// A table with rows in segments that the manifest names.
    fn table(&self) -> TreeId {
        let t = self.engine.begin(Isolation::ReadCommitted).expect("begins");
        let tree = t.create_table_tree(&KINDS, Persistence::Logged).expect("creates");
        for number in 0..ROWS {
            t.insert(tree, &encoded(number)).expect("inserts");
        }
        t.commit(Durability::Sync).expect("commits");
        self.flush();
        tree
    }

    fn flush(&self) {
        self.engine.checkpoint().expect("flushes");
        while self.engine.run_step(BackgroundStep::Merge) {}
    }

    fn cool(&self, tree: TreeId) -> Result<()> {
        move_cold(&self.engine, tree, Some(&target()))
    }

    fn local_bytes(&self) -> u64 {
        let segments = self.disk.subdirectory("segments").expect("there");
        let bytes = |name: &String| segments.open(name).and_then(|file| file.len()).expect("there");
        segments.list().expect("lists").iter().map(bytes).sum()
    }

    fn again(&mut self) {
        self.engine.shutdown().expect("stops");
        self.disk = self.disk.after_power_cut(&mut || true);
        self.engine = open(&self.disk, &self.objects);
    }
}

fn move_cold(engine: &Engine, tree: TreeId, target: Option<&ColdTarget>) -> Result<()> {
    ask(engine, |asking| engine.move_cold(tree, target, asking))
}

/// What the server's thread does besides; the first failure.
fn tend_cold(engine: &Engine) -> Result<()> {
    ask(engine, |asking| engine.bring_wanted(asking)).and_then(|()| ask(engine, |asking| engine.sweep_cold(asking)))
}

fn ask(engine: &Engine, work: impl FnOnce(&mut Asking<'_>)) -> Result<()> {
    let mut asking = engine.ask_stores(&|_| true);
    work(&mut asking);
    asking.failures.into_iter().next().map_or(Ok(()), |failure| Err(failure.error))
}

fn rows(engine: &Engine, tree: TreeId) -> Result<Vec<(i32, String)>> {
    let t = engine.begin(Isolation::ReadCommitted)?;
    let mut scan = t.scan(t.statement_view(), tree, &[0, 1], &[], &[], None)?;
    let mut out = Vec::new();
    while let Some(batch) = scan.next()? {
        let row = |i| (batch.columns[0].get(i).as_i32(), batch.columns[1].get(i).as_str().to_owned());
        out.extend((0..batch.row_ids.len()).map(row));
    }
    out.sort_unstable();
    Ok(out)
}

fn expected(numbers: impl Iterator<Item = i32>) -> Vec<(i32, String)> {
    numbers.map(|number| (number, text(number))).collect()
}

#[test]
fn rows_in_a_store_are_read_and_changed_as_others() {
    let mut world = World::new();
    let tree = world.table();
    let before = world.local_bytes();
    world.cool(tree).expect("moves");
    let found = world.engine.cold_use(tree).expect("known");
    assert!(found.cold_files > 0 && found.local_files == 0 && world.local_bytes() < before / 2, "{found:?} {before}");
    assert_eq!(world.engine.cold_tables(), [tree]);
    assert_eq!(rows(&world.engine, tree).expect("reads"), expected(0..ROWS));
    world.again();
    assert_eq!(rows(&world.engine, tree).expect("reads"), expected(0..ROWS));
    // Rows above cold ones.
    let t = world.engine.begin(Isolation::ReadCommitted).expect("begins");
    (1..=5000).for_each(|row| t.delete(tree, RowId(row)).expect("deletes"));
    t.commit(Durability::Sync).expect("commits");
    world.flush();
    assert_eq!(rows(&world.engine, tree).expect("reads"), expected(5000..ROWS));
    // The merge waits for its inputs, not for the store.
    world.objects.set_fault(Some(StoreFault::Refuses));
    world.flush();
    assert!(tend_cold(&world.engine).is_err());
    world.objects.set_fault(None);
    tend_cold(&world.engine).expect("brings back");
    world.flush();
    assert_eq!(rows(&world.engine, tree).expect("reads"), expected(5000..ROWS));
    tend_cold(&world.engine).expect("sweeps");
    world.cool(tree).expect("moves");
    tend_cold(&world.engine).expect("sweeps");
    let found = world.engine.cold_use(tree).expect("known");
    // Files that came back for a merge keep theirs for a while.
    let (objects, files) = (world.objects.urls().len() as u64, found.cold_files + found.local_files);
    assert!(found.cold_files > 0 && objects <= files, "merged segments took their objects along: {objects} {found:?}");
    assert_eq!(rows(&world.engine, tree).expect("reads"), expected(5000..ROWS));
}

#[test]
fn a_point_read_asks_once() {
    let world = World::new();
    let tree = world.table();
    world.cool(tree).expect("moves");
    let t = world.engine.begin(Isolation::ReadCommitted).expect("begins");
    let gets = world.objects.gets();
    let read = || t.fetch_row(t.statement_view(), tree, RowId(777), &[0, 1], &[]).expect("reads").expect("there");
    let row = read();
    assert_eq!((row[0].get(0).as_i32(), row[1].get(0).as_str()), (776, &*text(776)));
    assert_eq!(world.objects.gets(), gets + 1);
    read();
    assert_eq!(world.objects.gets(), gets + 1, "and then never");
}

#[test]
fn a_store_that_fails_fails_only_reads_of_its_rows() {
    let world = World::new();
    let (cold, warm) = (world.table(), world.table());
    world.cool(cold).expect("moves");
    world.objects.set_fault(Some(StoreFault::Refuses));
    let error = rows(&world.engine, cold).expect_err("nothing comes");
    assert_eq!(melba_types::DbError::from(error).sqlstate(), melba_types::SqlState::IO_ERROR);
    assert_eq!(rows(&world.engine, warm).expect("reads"), expected(0..ROWS));
    assert!(world.cool(warm).is_err());
    assert_eq!(rows(&world.engine, warm).expect("reads"), expected(0..ROWS), "nothing was taken away");
    // Writes need no store.
    let t = world.engine.begin(Isolation::ReadCommitted).expect("begins");
    t.insert(cold, &encoded(ROWS)).expect("inserts");
    t.commit(Durability::Sync).expect("commits");
    world.flush();
    world.objects.set_fault(None);
    assert_eq!(rows(&world.engine, cold).expect("reads"), expected(0..=ROWS));
}

#[test]
fn objects_go_with_their_table_and_data_comes_back_without_a_store() {
    let world = World::new();
    let (dropped, returned) = (world.table(), world.table());
    world.cool(dropped).and_then(|()| world.cool(returned)).expect("moves");
    let other = ColdTarget { store: "s3://other".into(), after: 0 };
    move_cold(&world.engine, returned, Some(&other)).expect("comes back");
    move_cold(&world.engine, returned, Some(&other)).expect("moves");
    assert!(world.objects.urls().iter().any(|url| url.starts_with("s3://other/")));
    let t = world.engine.begin(Isolation::ReadCommitted).expect("begins");
    t.drop_tree(dropped).expect("drops");
    t.commit(Durability::Sync).expect("commits");
    world.flush();
    tend_cold(&world.engine).expect("sweeps");
    let urls = world.objects.urls();
    assert!(!urls.is_empty() && urls.iter().all(|url| url.starts_with("s3://other/")), "{urls:?}");
    move_cold(&world.engine, returned, None).expect("comes back");
    tend_cold(&world.engine).expect("sweeps");
    assert!(world.objects.urls().is_empty() && world.engine.cold_tables().is_empty());
    assert_eq!(rows(&world.engine, returned).expect("reads"), expected(0..ROWS));
}

#[test]
fn a_backup_has_what_is_in_a_store() {
    let world = World::new();
    let tree = world.table();
    world.cool(tree).expect("moves");
    let backup = world.engine.begin_backup().expect("begins");
    let copy: Arc<dyn Directory> = MemoryDirectory::new();
    let folder = copy.subdirectory("segments").expect("makes");
    for segment in &backup.segments {
        let file = folder.create(&segment_name(segment.file)).expect("creates");
        file.write_at(&backup.read_segment(segment.file, 0, segment.bytes as usize).expect("reads"), 0).expect("writes");
    }
    let log = backup.read_log(backup.state.replay, 1 << 30).expect("reads");
    let state = ManifestState::from_bytes(&backup.state.to_bytes()).expect("its own bytes");
    restore(&copy, state, &mut std::iter::once(Ok(log)), (backup.end, None), 77).expect("restores");
    let restored = Engine::open(EngineOptions::default(), copy, Arc::new(OsClock::new())).expect("opens");
    assert_eq!(rows(&restored, tree).expect("reads"), expected(0..ROWS));
    assert!(restored.cold_tables().is_empty(), "all of it is in the copy");
}

#[test]
fn a_store_that_may_not_be_asked_is_left_alone() {
    let world = World::new();
    let tree = world.table();
    let asked = std::cell::RefCell::new(Vec::new());
    let refuse = |source: &ColdSource| {
        asked.borrow_mut().push(source.clone());
        false
    };
    let bucket = ColdSource::Store("s3://bucket".into());
    let mut asking = world.engine.ask_stores(&refuse);
    world.engine.move_cold(tree, Some(&target()), &mut asking);
    assert!(asking.failures.is_empty() && world.objects.written().is_empty() && !asked.borrow().is_empty());
    world.cool(tree).expect("moves");
    world.engine.move_cold(tree, None, &mut asking);
    assert!(asking.failures.is_empty() && asking.waits_for.as_ref() == Some(&bucket));
    assert_eq!(world.engine.cold_use(tree).expect("known").local_files, 0);
    assert!(asked.borrow().iter().all(|source| *source == bucket));
    world.objects.set_fault(Some(StoreFault::Refuses));
    let mut asking = world.engine.ask_stores(&|_| true);
    world.engine.move_cold(tree, None, &mut asking);
    let failures: Vec<_> = asking.failures.iter().map(|failure| (failure.source.as_ref(), failure.table)).collect();
    assert_eq!(failures, [(Some(&bucket), Some(tree))], "asked once");
}

#[test]
fn a_lost_object_keeps_no_other_segment_from_coming_back() {
    let world = World::new();
    let tree = world.table();
    world.cool(tree).expect("moves");
    let files = world.engine.cold_use(tree).expect("known").cold_files;
    assert!(files > 1, "{files}");
    let lost = world.objects.urls().remove(0);
    world.objects.change(|objects| drop(objects.remove(&lost)));
    let mut asking = world.engine.ask_stores(&|_| true);
    world.engine.move_cold(tree, None, &mut asking);
    let sources: Vec<_> = asking.failures.iter().map(|failure| failure.source.clone()).collect();
    assert_eq!(sources, [Some(ColdSource::Object(lost))]);
    assert_eq!(world.engine.cold_use(tree).expect("known").cold_files, 1);
    let disk = Arc::clone(&world.disk) as Arc<dyn Directory>;
    assert_eq!(Engine::count_cold_segments(&disk).expect("lists"), 1);
}

#[test]
fn a_store_that_removes_nothing_is_no_failure_of_the_next_one() {
    let world = World::new();
    let (old, new) = (world.table(), world.table());
    world.cool(old).expect("moves");
    world.objects.lock(Some("s3://bucket/"));
    let other = ColdTarget { store: "s3://other".into(), after: 0 };
    move_cold(&world.engine, old, Some(&other)).expect("comes back");
    let mut asking = world.engine.ask_stores(&|_| true);
    [old, new].iter().for_each(|table| world.engine.move_cold(*table, Some(&other), &mut asking));
    let failures: Vec<_> = asking.failures.iter().map(|failure| (failure.source.clone(), failure.table)).collect();
    assert_eq!(failures, [(Some(ColdSource::Removals("s3://bucket".into())), Some(old))]);
    let is_cold = |table| world.engine.cold_use(table).expect("known").cold_files > 0;
    assert!(!is_cold(old) && is_cold(new), "its objects are to be removed first");
    world.objects.lock(None);
    move_cold(&world.engine, old, Some(&other)).expect("moves");
    assert!(is_cold(old) && world.objects.urls().iter().all(|url| url.starts_with("s3://other/")));
}

/// The power fails at each sync of moves between a flush and a merge.
#[test]
fn power_cuts_lose_no_row() {
    for cut in 0..24 {
        let mut world = World::new();
        let tree = world.table();
        world.disk.cut_power_at_sync(world.disk.syncs() + cut);
        let _ = world.cool(tree).and_then(|()| move_cold(&world.engine, tree, None));
        let _ = tend_cold(&world.engine);
        let mut n = cut;
        world.disk = world.disk.after_power_cut(&mut || {
            n += 1;
            n % 3 > 0
        });
        world.engine = open(&world.disk, &world.objects);
        assert_eq!(rows(&world.engine, tree).expect("reads"), expected(0..ROWS), "cut {cut}");
        tend_cold(&world.engine).expect("sweeps");
        assert_eq!(rows(&world.engine, tree).expect("reads"), expected(0..ROWS), "cut {cut}, swept");
        world.cool(tree).expect("moves");
        assert_eq!(rows(&world.engine, tree).expect("reads"), expected(0..ROWS), "cut {cut}, moved");
        let found = world.engine.cold_use(tree).expect("known");
        tend_cold(&world.engine).expect("sweeps");
        assert_eq!(world.objects.urls().len() as u64, found.cold_files, "cut {cut}");
    }
}
