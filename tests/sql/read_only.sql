-- What a read-only transaction and a function that is not VOLATILE refuse to change, however it is written.
create table ro (id int primary key, v text);
insert into ro values (1, 'a'), (2, 'b');
create temp table own (id int, v text);
prepare changing(int) as delete from ro where id = $1;
create function deleting() returns bigint language sql as 'with gone as (delete from ro returning id) select count(*) from gone';
create function stable_sql() returns bigint language sql stable as 'with gone as (delete from ro returning id) select count(*) from gone';
create function stable_plpgsql() returns bigint language plpgsql stable as $$
begin
  return (select 1);
end $$;
create function stable_with() returns bigint language plpgsql stable as $$
declare n bigint;
begin
  with gone as (delete from ro returning id) select count(*) into n from gone;
  return n;
end $$;
create function stable_execute() returns bigint language plpgsql stable as $$
declare n bigint;
begin
  execute 'with gone as (delete from ro returning id) select count(*) from gone' into n;
  return n;
end $$;
create view seen as select * from ro;

begin read only;
\set ON_ERROR_ROLLBACK on
insert into ro values (3, 'c');
update ro set v = 'x';
delete from ro;
update seen set v = 'x';
merge into ro using (select 1 as id) s on ro.id = s.id when matched then delete;
with gone as (delete from ro returning id) select * from gone;
with gone as (delete from ro returning id) insert into own select id from gone;
explain (costs off) delete from ro;
explain (analyze, costs off, timing off, summary off) delete from ro;
explain (analyze, costs off, timing off, summary off) with gone as (delete from ro returning id) select * from gone;
execute changing(1);
explain (analyze, costs off, timing off, summary off) execute changing(1);
copy (delete from ro returning id) to stdout;
copy (with gone as (delete from ro returning id) select * from gone) to stdout;
select deleting();
insert into missing values (1);
insert into ro (nothing) values (1);
-- Temporary tables may be changed.
insert into own select * from ro;
update own set v = 'changed' where id = 1;
with gone as (delete from own where id = 2 returning id) select * from gone;
select * from own;
commit;
select stable_sql();
select stable_plpgsql();
select stable_with();
select stable_execute();
select * from ro order by id;
