-- Statistics objects: what CREATE, ALTER and DROP STATISTICS accept, what ANALYZE collects, how the catalog shows it.
create table t (a int, b int, c text, p point);
create view tv as select * from t;
create statistics s (foo) on a, b from t;
create statistics s on a, b from t, t t2;
create statistics s on a, b from (select 1) x;
create statistics s on a, b from tv;
create statistics s on a, b from nosuch;
create statistics s on relname, relkind from pg_class;
create statistics s on a from t;
create statistics s on (a) from t;
create statistics s on a, a from t;
create statistics s on a, nosuch from t;
create statistics s on a, (nosuch + 1) from t;
create statistics s on a, p from t;
create statistics s on a, ctid from t;
create statistics s on a, (ctid) from t;
create statistics s on a, (tableoid::int + 1) from t;
create statistics s on a, (b + 1), (b + 1) from t;
create statistics s (mcv) on (a + 1) from t;
create statistics s on (sum(a)), b from t;
create statistics s on (generate_series(1, a)), b from t;
create statistics s on ((select 1)), b from t;
create statistics s on (row_number() over ()), b from t;
create statistics nosuch.s on a, b from t;
create statistics s on a, b, c, (a + 1), (a + 2), (a + 3), (a + 4), (a + 5), (a + 6) from t;
create statistics t_ab on a, b from t;
create statistics t_ab on a, b from t;
create statistics if not exists t_ab on a, b from t;
create statistics t_a_b_stat on a, b from t;
create statistics t_many (ndistinct, dependencies) on c, b, a, (a + b + 1), (lower(c)) from t;
create statistics t_mcv (mcv) on a, b from t;
create statistics t_expr on (a * 2) from t;
create statistics "Odd name" (mcv) on a, b, (case when a > 1 then 2 end) from t;
select stxname, stxkeys, stxkind, coalesce(stxstattarget, -1) as target, stxexprs is not null as has_expressions from pg_statistic_ext order by oid;
select pg_get_statisticsobjdef(oid), pg_get_statisticsobjdef_columns(oid), pg_get_statisticsobjdef_expressions(oid),
    pg_statistics_obj_is_visible(oid) from pg_statistic_ext order by oid;
select count(*) from pg_statistic_ext_data;

-- Changes
alter statistics t_ab set statistics 20000;
alter statistics t_ab set statistics -2;
select stxstattarget from pg_statistic_ext where stxname = 't_ab';
alter statistics t_ab set statistics -1;
alter statistics if exists nosuch set statistics 3;
alter statistics nosuch set statistics 3;
alter statistics nosuch.s set statistics 3;
alter statistics t_ab rename to "Odd name";
alter statistics t_ab rename to t_ab2;
create schema other;
alter statistics t_ab2 set schema other;
alter statistics t_ab2 set schema public;
alter statistics other.t_ab2 set schema other;
comment on statistics other.t_ab2 is 'two columns';
select obj_description(oid, 'pg_statistic_ext') from pg_statistic_ext where stxname = 't_ab2';
comment on statistics nosuch is 'x';
create role statistics_role;
alter statistics other.t_ab2 owner to statistics_role;
set role statistics_role;
alter statistics other.t_ab2 set statistics 3;
create statistics s on a, b from t;
drop statistics "Odd name";
reset role;
grant create, usage on schema other to statistics_role;
alter statistics other.t_ab2 owner to statistics_role;
select pg_get_userbyid(stxowner) from pg_statistic_ext where stxname = 't_ab2';
drop role statistics_role;
reassign owned by statistics_role to current_user;
drop owned by statistics_role;
drop role statistics_role;
drop statistics nosuch;
drop statistics if exists nosuch, nosuch.s;
drop statistics nosuch.s;

-- Names in expressions follow; columns take their statistics with them
alter table t rename a to aa;
select pg_get_statisticsobjdef(oid) from pg_statistic_ext order by oid;
alter table t alter b type bigint;
alter table t alter aa type text;
alter table t drop column c;
select stxname, stxkeys from pg_statistic_ext order by oid;
create table copied (like t including statistics including comments);
select stxname, pg_get_statisticsobjdef(oid) from pg_statistic_ext where stxrelid = 'copied'::regclass order by stxname;
create table plain (like t);
select count(*) from pg_statistic_ext where stxrelid = 'plain'::regclass;
drop schema other;
drop schema other cascade;
drop table t, copied, plain cascade;
select count(*) from pg_statistic_ext;

-- What ANALYZE collects
create table d (a int, b int, c text, x int);
insert into d select i % 20, i % 10, case when i % 5 > 0 then 'v' || i % 5 end, i from generate_series(1, 1000) i;
create statistics d_all on a, b, c, (x / 100) from d;
create statistics d_mcv (mcv) on b, c from d;
create statistics d_one on (x % 7) from d;
analyze d;
select stxname, stxdinherit, stxdndistinct, stxddependencies, stxdmcv is not null as has_mcv
    from pg_statistic_ext join pg_statistic_ext_data on stxoid = oid order by stxname;
select m.* from pg_statistic_ext join pg_statistic_ext_data on stxoid = oid, pg_mcv_list_items(stxdmcv) m where stxname = 'd_mcv';
select statistics_name, attnames, exprs, kinds, inherited, n_distinct, dependencies, most_common_freqs
    from pg_stats_ext where tablename = 'd' order by 1;
select statistics_name, expr from pg_stats_ext_exprs where tablename = 'd' order by 1, 2;
update d set b = a;
analyze d (a);
alter statistics d_all set statistics 0;
analyze d;
select stxname, stxdndistinct from pg_statistic_ext join pg_statistic_ext_data on stxoid = oid order by stxname;
alter table d alter b type bigint;
select stxname from pg_statistic_ext join pg_statistic_ext_data on stxoid = oid order by stxname;
select '{}'::pg_ndistinct;
select ''::pg_dependencies;
select '\x'::pg_mcv_list;

create temporary table temp (a int, b int);
create statistics temp_ab on a, b from temp;
drop statistics temp_ab;
select pg_statistics_obj_is_visible(oid) from pg_statistic_ext where stxname = 'temp_ab';
drop statistics pg_temp.temp_ab;

-- Of families
create table parent (a int, b int);
create table child () inherits (parent);
insert into parent select 1, i % 3 from generate_series(1, 30) i;
insert into child select 2, i % 5 from generate_series(1, 30) i;
create statistics parent_ab (ndistinct, dependencies) on a, b from parent;
analyze parent;
select stxdinherit, stxdndistinct, stxddependencies from pg_statistic_ext_data join pg_statistic_ext on oid = stxoid
    where stxname = 'parent_ab' order by 1;
create table parts (a int, b int) partition by list (a);
create table part1 partition of parts for values in (1);
create table part2 (b int, a int);
alter table parts attach partition part2 for values in (2);
insert into parts select i % 2 + 1, i % 4 from generate_series(1, 40) i;
create statistics parts_ab on a, b from parts;
analyze parts;
select stxdinherit, stxdndistinct, stxddependencies from pg_statistic_ext_data join pg_statistic_ext on oid = stxoid
    where stxname = 'parts_ab';
create materialized view mv as select * from d;
create statistics mv_ab on a, b from mv;
analyze mv;
select stxdndistinct from pg_statistic_ext_data join pg_statistic_ext on oid = stxoid where stxname = 'mv_ab';
begin;
truncate d;
analyze d;
select stxname, stxdndistinct from pg_statistic_ext join pg_statistic_ext_data on stxoid = oid where stxname like 'd%' order by 1;
rollback;
