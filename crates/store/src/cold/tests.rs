//! Tests of `cold` over files that are no segments: 100 kB, of which the ends are kept.

use melba_segment::ColdLayout;
use melba_threads::OwnThreads;
use melba_types::TreeId;
use melba_vfs::{ManualClock, MemoryDirectory, MemoryObjects, SeededRandom, StoreFault};

use super::*;

const BYTES: u64 = 100_000;
const FILE: u64 = 7;

struct World {
    disk: Arc<MemoryDirectory>,
    objects: Arc<MemoryObjects>,
    cold: Arc<ColdDirectory>,
}

fn content() -> Vec<u8> {
    (0..BYTES).map(|i| (i * 7 % 253) as u8).collect()
}

fn layout() -> ColdLayout {
    ColdLayout { kept: vec![0..16, 90_000..BYTES], ends: vec![20_000, 40_000, 60_000, 90_000, BYTES] }
}

impl World {
    fn over(disk: Arc<MemoryDirectory>, objects: Arc<MemoryObjects>) -> World {
        let segments = disk.subdirectory("segments").expect("makes");
        let cold = ColdDirectory::new(segments, Arc::clone(&disk) as Arc<dyn Directory>);
        // Two runs of a server draw different numbers.
        let random = SeededRandom::new(objects.written().len() as u64);
        cold.set_objects(Arc::clone(&objects) as Arc<dyn Objects>, Arc::new(random), Arc::new(OwnThreads));
        World { disk, objects, cold }
    }

    fn new() -> World {
        let world = World::over(MemoryDirectory::new(), Arc::default());
        world.create(FILE);
        world
    }

    fn create(&self, file: u64) {
        let file = self.cold.create(&segment_name(file)).expect("creates");
        file.write_at(&content(), 0).and_then(|()| file.sync()).and_then(|()| self.cold.sync_names()).expect("writes");
        self.disk.sync_names().expect("syncs");
    }

    fn move_out(&self) -> io::Result<()> {
        self.cold.remove_old_object(FILE).and_then(|()| self.cold.move_out(FILE, "s3://b/", layout()))
    }

    fn ask(&self, work: impl FnOnce(&mut Asking<'_>)) -> Result<(), ColdFailure> {
        let (clock, may_ask) = (ManualClock::new(), |_: &ColdSource| true);
        let mut asking = Asking::new(&may_ask, &clock);
        work(&mut asking);
        asking.failures.pop().map_or(Ok(()), Err)
    }

    fn sweep(&self) -> Result<(), ColdFailure> {
        self.ask(|asking| self.cold.sweep(asking))
    }

    fn open(&self) -> Arc<dyn File> {
        self.cold.open_on_demand(&segment_name(FILE)).expect("opens")
    }

    fn local_bytes(&self) -> u64 {
        let segments = self.disk.subdirectory("segments").expect("there");
        let bytes = |name: &String| segments.open(name).and_then(|file| file.len()).expect("there");
        segments.list().expect("lists").iter().map(bytes).sum()
    }
}

fn read(file: &dyn File, range: Range<u64>) -> io::Result<bool> {
    let mut out = vec![0; (range.end - range.start) as usize];
    file.read_at(&mut out, range.start)?;
    Ok(out == content()[range.start as usize..range.end as usize])
}

#[test]
fn a_file_stays_readable_wherever_it_is() {
    let world = World::new();
    let before = world.open();
    world.move_out().expect("moves");
    assert!(world.cold.is_cold(FILE) && world.local_bytes() < 12_000 && world.objects.urls().len() == 1);
    let gets = world.objects.gets();
    for file in [before, world.open()] {
        assert!(read(&*file, 0..16).expect("reads") && read(&*file, 95_000..BYTES).expect("reads"));
        assert_eq!(world.objects.gets(), gets, "what is kept needs no request");
        assert_eq!((file.len().expect("known"), file.sync().is_ok(), file.write_at(&[1], 0).is_ok()), (BYTES, true, false));
    }
    let file = world.open();
    assert!(read(&*file, 30_000..30_100).expect("reads") && read(&*file, 20_000..39_999).expect("reads"));
    assert_eq!(world.objects.gets(), gets + 1, "one request, and then the cache");
    assert!(read(&*file, 10..BYTES).expect("reads"), "across all parts");
    assert!(read(&*file, 99_000..BYTES + 1).is_err());
    let counts = world.cold.counts();
    assert!(counts.hits >= 1 && counts.read_bytes >= 90_000 && counts.cache_bytes == 90_000);
    world.cold.bring_back(FILE).expect("comes back");
    world.objects.set_fault(Some(StoreFault::Refuses));
    assert!(read(&*file, 0..BYTES).expect("reads") && !world.cold.is_cold(FILE));
    world.cold.give_up_object(FILE).expect("gives up");
    assert!(world.sweep().is_err() && world.objects.urls().len() == 1);
    world.objects.set_fault(None);
    world.sweep().expect("sweeps");
    assert!(world.objects.urls().is_empty() && !world.cold.is_used() && read(&*world.open(), 0..BYTES).expect("reads"));
}

#[test]
fn scans_ask_for_more_and_more() {
    let world = World::new();
    let layout = ColdLayout { kept: vec![0..16, 99_000..BYTES], ends: (1..=99).map(|i| i * 1000).chain([BYTES]).collect() };
    world.cold.move_out(FILE, "s3://b/", layout).expect("moves");
    let (file, before) = (world.open(), world.objects.gets());
    (0..99).for_each(|i| assert!(read(&*file, i * 1000..(i + 1) * 1000).expect("reads")));
    assert!(world.objects.gets() - before <= 8, "{}", world.objects.gets() - before);
    let before = world.objects.gets();
    (0..99).for_each(|i| assert!(read(&*file, i * 1000..(i + 1) * 1000).expect("reads")));
    assert_eq!(world.objects.gets(), before);
}

#[test]
fn a_store_that_fails_takes_nothing_away() {
    for fault in [StoreFault::Refuses, StoreFault::WritesHalf, StoreFault::LosesAnswers] {
        let world = World::new();
        world.objects.set_fault(Some(fault));
        assert!(world.move_out().is_err(), "{fault:?}");
        assert!(!world.cold.is_cold(FILE) && read(&*world.open(), 0..BYTES).expect("reads"));
        world.objects.set_fault(None);
        world.sweep().expect("sweeps");
        assert!(world.objects.urls().is_empty(), "{fault:?}");
        world.move_out().expect("moves");
        assert!(read(&*world.open(), 0..BYTES).expect("reads"));
    }
}

#[test]
fn objects_that_are_gone_or_changed_are_errors_of_their_rows_only() {
    let world = World::new();
    world.move_out().expect("moves");
    let url = world.objects.urls().remove(0);
    world.objects.change(|objects| objects.clear());
    let file = world.open();
    assert!(read(&*file, 50_000..50_010).is_err() && read(&*file, 91_000..92_000).expect("reads"));
    world.objects.change(|objects| drop(objects.insert(url, content()[..50_000].to_vec())));
    assert!(read(&*file, 10_000..10_010).expect("reads") && read(&*file, 50_000..50_010).is_err());
    assert!(world.cold.bring_back(FILE).is_err() && world.cold.is_cold(FILE));
    assert!(world.cold.give_up_object(FILE).is_err(), "nothing else has it");
}

#[test]
fn a_removed_segment_takes_its_object_along() {
    let world = World::new();
    world.move_out().expect("moves");
    let names = world.cold.list().expect("lists");
    assert_eq!(names, [segment_name(FILE)]);
    world.cold.remove(&segment_name(FILE)).expect("removes");
    assert_eq!(world.objects.urls().len(), 1, "nobody waits for the store");
    assert!(world.cold.open_on_demand(&segment_name(FILE)).is_err_and(|e| e.kind() == io::ErrorKind::NotFound));
    world.sweep().expect("sweeps");
    assert!(world.objects.urls().is_empty() && world.cold.list().expect("lists").is_empty());
}

/// Cuts the power at every sync of a file's way out and back, with none, all and some of what was not synced.
#[test]
fn power_cuts_lose_neither_bytes_nor_objects() {
    for cut in 0..20 {
        for keep in 0..4 {
            let world = World::new();
            world.disk.cut_power_at_sync(world.disk.syncs() + cut);
            let _ = world.move_out().and_then(|()| world.cold.bring_back(FILE)).and_then(|()| world.cold.give_up_object(FILE));
            let _ = world.sweep();
            let mut n = keep;
            let after = world.disk.after_power_cut(&mut || {
                n += 1;
                keep == 1 || keep > 1 && n % keep == 0
            });
            let world = World::over(after, Arc::clone(&world.objects));
            assert_eq!(world.cold.list().expect("lists").iter().filter(|n| segment_number(n).is_some()).count(), 1);
            assert!(read(&*world.open(), 0..BYTES).expect("reads"), "cut {cut}, keep {keep}");
            world.sweep().expect("sweeps");
            assert_eq!(world.objects.urls().len(), usize::from(world.cold.is_used()), "cut {cut}, keep {keep}");
            assert!(read(&*world.open(), 0..BYTES).expect("reads"), "cut {cut}, keep {keep}, swept");
            if !world.cold.is_cold(FILE) {
                world.move_out().expect("moves");
            }
            assert!(read(&*world.open(), 0..BYTES).expect("reads") && world.cold.is_cold(FILE));
            world.cold.remove(&segment_name(FILE)).expect("removes");
            world.sweep().expect("sweeps");
            assert!(world.objects.urls().is_empty(), "cut {cut}, keep {keep}");
        }
    }
}

#[test]
fn names_are_never_used_twice_so_late_removals_take_nothing() {
    let world = World::new();
    let mut seen = Vec::new();
    for _ in 0..3 {
        world.move_out().expect("moves");
        assert!(read(&*world.open(), 0..BYTES).expect("reads"));
        // A merge wanted it: the object is the same, and nothing is written.
        world.cold.bring_back(FILE).and_then(|()| world.move_out()).expect("goes again");
        assert_eq!(world.objects.written().len(), seen.len() + 1);
        seen = world.objects.written();
        world.cold.bring_back(FILE).and_then(|()| world.cold.give_up_object(FILE)).expect("comes back");
        world.sweep().expect("sweeps");
    }
    world.objects.set_fault(Some(StoreFault::LosesAnswers));
    assert!(world.move_out().is_err());
    world.objects.set_fault(None);
    world.move_out().expect("moves");
    let removed = world.objects.written();
    assert_eq!(removed.len(), 5);
    let live = world.objects.urls();
    removed.iter().filter(|url| !live.contains(url)).for_each(|url| world.objects.remove(url).expect("removes"));
    assert!(live.len() == 1 && read(&*world.open(), 0..BYTES).expect("reads"));
}

#[test]
fn a_file_whose_object_was_lost_meanwhile_gets_another_one() {
    let world = World::new();
    world.move_out().and_then(|()| world.cold.bring_back(FILE)).expect("moves");
    world.objects.change(|objects| objects.clear());
    assert!(world.move_out().is_err() && !world.cold.is_cold(FILE));
    world.move_out().expect("moves");
    assert!(read(&*world.open(), 0..BYTES).expect("reads") && world.cold.is_cold(FILE));
}

#[test]
fn a_store_that_does_not_answer_has_not_lost_its_object() {
    let world = World::new();
    world.move_out().and_then(|()| world.cold.bring_back(FILE)).expect("moves");
    world.objects.set_fault(Some(StoreFault::Refuses));
    assert!(world.move_out().is_err() && matches!(world.cold.place(FILE), Ok(ColdPlace::Both { .. })));
    world.objects.set_fault(None);
    world.move_out().expect("goes again");
    assert!(world.cold.is_cold(FILE) && world.objects.written().len() == 1);
}

#[test]
fn an_object_that_cannot_be_removed_keeps_no_others() {
    let world = World::new();
    (0..6).for_each(|file| world.create(file));
    for (file, folder) in
        [(0, "s3://b/kept/"), (1, "s3://b/kept/"), (2, "s3://b/"), (3, "s3://other/"), (4, "s3://b/"), (5, "s3://b/")]
    {
        world.cold.move_out(file, folder, layout()).and_then(|()| world.cold.remove(&segment_name(file))).expect("moves");
    }
    world.objects.lock(Some("s3://b/kept/"));
    let failure = world.sweep().expect_err("the first of them stays");
    assert_eq!(failure.source, Some(ColdSource::Removals("s3://b".into())));
    assert_eq!(world.objects.urls().len(), 5, "another store is not concerned");
    assert!(world.sweep().is_err(), "the second, too");
    assert!(world.sweep().is_err() && world.objects.urls().len() == 2, "all others, and the first again");
    world.objects.lock(None);
    world.sweep().expect("sweeps");
    assert!(world.objects.urls().is_empty());
    // A segment does not move before its older object is gone.
    world.objects.lock(Some("s3://b/"));
    world.move_out().and_then(|()| world.cold.bring_back(FILE)).and_then(|()| world.cold.give_up_object(FILE)).expect("returns");
    assert!(
        world.cold.move_out(FILE, "s3://other/", layout()).is_err() && world.cold.old_object(FILE).is_ok_and(|url| url.is_some())
    );
    assert!(read(&*world.open(), 0..BYTES).expect("reads") && world.objects.written().len() == 7);
}

#[test]
fn a_lost_object_that_a_merge_wants_is_a_failure_of_its_table_and_keeps_no_others() {
    let world = World::new();
    world.create(FILE + 1);
    world.move_out().expect("moves");
    let lost = world.objects.urls().remove(0);
    world.cold.move_out(FILE + 1, "s3://b/", layout()).expect("moves");
    world.objects.change(|objects| drop(objects.remove(&lost)));
    assert!(!world.cold.pin(vec![FILE, FILE + 1]));
    let table_of = |file| (file == FILE).then_some(TreeId(5));
    let failure = world.ask(|asking| world.cold.bring_wanted(asking, &table_of)).expect_err("it is lost");
    assert_eq!((failure.source, failure.table), (Some(ColdSource::Object(lost)), Some(TreeId(5))));
    assert!(world.cold.is_cold(FILE) && !world.cold.is_cold(FILE + 1));
}

#[test]
fn damaged_answers_are_fetched_again_and_never_cached() {
    let world = World::new();
    world.move_out().expect("moves");
    let file = world.open();
    world.objects.set_fault(Some(StoreFault::Garbles(1)));
    assert!(read(&*file, 30_000..30_100).expect("the second answer is right"));
    world.objects.set_fault(Some(StoreFault::Garbles(2)));
    let error = read(&*file, 50_000..50_100).expect_err("both are damaged");
    assert_eq!((error.kind(), world.cold.counts().failures), (OF_OBJECT, 1));
    assert!(read(&*file, 0..BYTES).expect("nothing bad stays"));
    world.objects.set_fault(Some(StoreFault::Refuses));
    assert!(read(&*file, 0..BYTES).expect("all is cached"));
}
