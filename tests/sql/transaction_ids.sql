-- pg_snapshot and the ids of transactions.
select '12:13:'::pg_snapshot;
select '12:18:14,16'::pg_snapshot;
select '12:16:14,14'::pg_snapshot;
select '31:12:'::pg_snapshot;
select '0:1:'::pg_snapshot;
select '12:13:0'::pg_snapshot;
select '12:16:14,13'::pg_snapshot;
select '12:16:14,'::pg_snapshot;
select ''::pg_snapshot;
select '1:2'::pg_snapshot;
select '12:13:'::txid_snapshot, '12:x:'::txid_snapshot;
create table snapshot_test (nr integer, snap pg_snapshot);
insert into snapshot_test values (1, '12:13:'), (2, '12:20:13,15,18'), (3, '100:150:101,102,103');
select snap from snapshot_test order by nr;
select nr, pg_snapshot_xmin(snap), pg_snapshot_xmax(snap), array(select pg_snapshot_xip(snap)) from snapshot_test order by nr;
select id, pg_visible_in_snapshot(id::text::xid8, snap) from snapshot_test, generate_series(11, 21) id where nr = 2;
select txid_snapshot_xmin('12:20:13,15,18'), txid_snapshot_xmax('12:20:13,15,18'), array(select txid_snapshot_xip('12:20:13,15,18')), txid_visible_in_snapshot(13, '12:20:13,15,18');
select pg_current_xact_id() >= pg_snapshot_xmin(pg_current_snapshot());
select pg_visible_in_snapshot(pg_current_xact_id(), pg_current_snapshot());
select txid_current() >= txid_snapshot_xmin(txid_current_snapshot()), txid_visible_in_snapshot(txid_current(), txid_current_snapshot());
begin;
select pg_current_xact_id_if_assigned() is null;
select pg_current_xact_id() \gset
select pg_current_xact_id_if_assigned() is not distinct from xid8 :'pg_current_xact_id';
select txid_current_if_assigned() = :'pg_current_xact_id', txid_status(txid_current());
commit;
select pg_xact_status(:'pg_current_xact_id'), pg_visible_in_snapshot(:'pg_current_xact_id', pg_current_snapshot());
begin;
insert into snapshot_test values (4, pg_current_snapshot());
select pg_current_xact_id_if_assigned() is not null;
select pg_current_xact_id() as rolled \gset
rollback;
select pg_xact_status(:'rolled');
begin;
select pg_current_xact_id() as inprogress \gset
select pg_xact_status(:'inprogress');
select pg_current_xact_id() = :'inprogress', pg_current_xact_id() > :'rolled';
commit;
select pg_xact_status('0'), pg_xact_status('1'), pg_xact_status('2'), pg_xact_status('3');
begin isolation level repeatable read;
select pg_current_snapshot() as s \gset
select pg_current_snapshot()::text = :'s';
select pg_xact_status(pg_current_xact_id());
select pg_current_snapshot()::text = :'s';
commit;
prepare p as select pg_snapshot_xmin(pg_current_snapshot()) <= pg_snapshot_xmax(pg_current_snapshot());
execute p;
execute p;
select '12:16:,'::pg_snapshot;
drop table snapshot_test;
