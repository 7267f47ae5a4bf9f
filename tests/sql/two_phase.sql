-- Two-phase commit.
create table t (a int primary key, b text);
insert into t values (1, 'one'), (2, 'two');
begin;
insert into t values (3, 'three');
update t set b = 'zwei' where a = 2;
prepare transaction 'rows';
select * from t order by a;
select gid, owner = current_user own, database = current_database() here, transaction is not null id, prepared <= now() past
    from pg_prepared_xacts;
\set VERBOSITY sqlstate
set lock_timeout = '50ms';
insert into t values (3, 'x');
update t set b = 'x' where a = 2;
drop table t;
\set VERBOSITY default
begin;
insert into t values (4, 'four');
prepare transaction 'rows';
select * from t order by a;
begin;
savepoint s;
insert into t values (5, 'five');
rollback to s;
insert into t values (6, 'six');
prepare transaction 'other';
commit prepared 'none';
rollback prepared 'none';
begin;
commit prepared 'rows';
rollback;
create role someone login;
set session authorization someone;
commit prepared 'other';
reset session authorization;
drop role someone;
commit prepared 'rows';
rollback prepared 'other';
rollback prepared 'other';
select * from t order by a;
select count(*) from pg_prepared_xacts;
-- outside of a transaction, and in one that has failed
prepare transaction 'x';
begin;
select 1 / 0;
prepare transaction 'x';
begin;
create temp table own (a int);
prepare transaction 'x';
begin;
notify something;
prepare transaction 'x';
-- checks that wait for the commit
create table r (a int references t deferrable initially deferred);
begin;
insert into r values (77);
prepare transaction 'x';
begin;
insert into r values (1);
prepare transaction 'r';
delete from r;
select * from r;
commit prepared 'r';
select * from r;
-- a table that is made, and one that is dropped
begin;
create table made (a int generated always as identity, b text default 'x');
insert into made (b) values ('y');
create index on made (b);
drop table r;
prepare transaction 'ddl';
select to_regclass('made') is null, to_regclass('r') is not null;
commit prepared 'ddl';
insert into made default values;
select * from made order by a;
select to_regclass('r') is null;
drop table t, made;

-- A cursor WITH HOLD refuses it, also one that was read to its end.
begin;
declare c cursor with hold for select 1;
fetch all from c;
prepare transaction 'with_cursor';
rollback;
