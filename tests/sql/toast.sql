-- Oversized values: their forms, and every way through a plan and into a table.
CREATE TABLE tbl (id int, col1 text COMPRESSION pglz, col2 text COMPRESSION lz4, col3 text);
INSERT INTO tbl VALUES (1, repeat('abc',1000), repeat('abc',1000), repeat('abc',1000));
ALTER TABLE tbl ALTER COLUMN col1 SET COMPRESSION lz4;
INSERT INTO tbl VALUES (2, repeat('abc',1000), repeat('abc',1000), repeat('abc',1000));
SELECT id, pg_column_compression(id) cid, pg_column_compression(col1) c1, pg_column_compression(col2) c2, pg_column_compression(col3) c3 FROM tbl;
SELECT id, pg_column_size(id), pg_column_size(col1), pg_column_size(col2), pg_column_size(col3), length(col1), octet_length(col2), md5(col3) from tbl order by 1;
create table e(id int primary key, a text, b bytea, c jsonb, d numeric, n text);
alter table e alter a set storage external;
insert into e select g, repeat('1234567890', 100000)||g, decode(repeat('00ff12', 20000), 'hex'), jsonb_build_object('k', repeat('x',5000)), 1.5, repeat('é', 300000) from generate_series(1,3) g;
select id, length(a), pg_column_size(a), pg_column_compression(a), octet_length(b), pg_column_size(d), length(n), octet_length(n), substr(a, 999990, 30), substr(n, 131070, 5), substr(n, 299998), left(a,5), substr(b, 59998, 10), md5(a) = md5(repeat('1234567890', 100000)||id), c->>'k' = repeat('x',5000) from e order by id;
update e set d = 2.5 where id=1;
select id, d, md5(a) = md5(repeat('1234567890', 100000)||id) from e order by id;
update e set a = 'short' where id = 2;
select id, d, length(a) from e order by id;
delete from e where id=3;
create table f as select * from e;
select id, length(a), pg_column_compression(n), md5(n)=md5(repeat('é',300000)) from f order by id;
insert into f select * from e;
select count(*), sum(length(a)), count(distinct md5(n)), max(length(n)) from f;
select id from f where n = repeat('é', 300000) order by n, id;
select distinct n is null, left(n, 2) from f group by n;
select e.id, length(f.a) from e join f on e.n = f.n and e.id = f.id order by 1,2;
select length((select a from e where id=1)), length((array(select a from e order by id))[2]), (e).id, length((e).a) from e order by id;
select length(row_to_json(e)::text) from e order by id;
select a from e where id = 2 union select 'x' order by 1;
begin; delete from e returning id, length(a), length(e::text); select count(*) from e; rollback;
alter table e add constraint ck check (length(a) < 1000001);
insert into e values (9, repeat('y', 2000000));
\copy (select id, length(a), a from e where id=2) to stdout
create index on e (left(a, 10)); create index ei on e(d);
select id from e where left(a,10) = '1234567890';
alter table f set unlogged; select id, length(a), md5(n)=md5(repeat('é',300000)) from f order by id;
select pg_table_size('e') > 0, pg_total_relation_size('e') >= pg_table_size('e');
-- update paths
create table u(id int primary key, a text, b text, c text);
insert into u select g, repeat(md5(g::text), 20000), repeat(md5((g+1)::text), 200), 'c' from generate_series(1,5) g;
select id, pg_column_compression(a), pg_column_compression(b), pg_column_size(b), length(a) from u order by id;
update u set a = b, b = a where id = 1;
select id, length(a), length(b), md5(a), md5(b) from u order by id;
update u set c = a where id = 2;
update u set a = null where id = 2;
select id, length(a), length(c), md5(c) from u where id = 2;
begin; savepoint s; update u set a = repeat('z', 5000000); rollback to s; update u set b = a || 'q'; commit;
select id, length(a), length(b), md5(b) from u order by id;
insert into u values (1, 'x', repeat('conflict', 100000), 'y') on conflict (id) do update set b = excluded.b || u.c returning id, length(b), md5(b);
merge into u using (values (2),(77)) v(i) on u.id = v.i when matched then update set b = repeat('m', 1000000) when not matched then insert values (v.i, repeat('n', 500000), null, null);
select id, length(a), length(b), length(c) from u order by id;
merge into u using (values (2),(77)) v(i) on u.id = v.i when matched then delete;
select count(*) from u;
-- sorts and windows keep values
select id, left(a, 4), row_number() over (order by b desc, id) from u order by a nulls last, id;
select a = lag(a) over (order by id) from u order by id;
with w as (update u set c = 'new' returning *) select id, length(a), c from w order by id;
with recursive r(n, t) as (select 1, (select b from u where id = 3) union select n+1, t from r where n < 3) select n, length(t) from r order by n;
select string_agg(left(t.x, 3), ',' order by t.x) from (select b as x from u union all select a from u) t;
select case when length(a) > 10 then substr(a, 3, 4) else a end, coalesce(a, 'none') = a from u order by id;
declare c cursor with hold for select b from u order by id; 
begin; declare c cursor with hold for select length(b), left(b,3), b = b from u order by id; commit; fetch 2 from c; close c;
create table k(a text primary key, b text); 
create table kc(a text references k on delete cascade on update cascade, filler text);
insert into k values (repeat('kk', 500), 'x'); insert into kc values (repeat('kk', 500), repeat('f', 3000));
select pg_column_compression(a), pg_column_compression(filler) from kc;
update k set a = 'short'; select a, length(filler) from kc; delete from k; select count(*) from kc;
create unique index on kc (filler); insert into kc values (null, repeat('f', 3000)); insert into kc values (null, repeat('f', 3000));
insert into kc values (null, repeat('g', 3000)), (null, repeat('h', 2700)); select left(filler, 2) from kc order by filler;
alter table kc alter filler set not null; insert into kc(filler) select null;
select (select filler from kc order by filler limit 1) = (select min(filler) from kc);
select count(*) from kc a where filler in (select filler from kc b); 
select count(*) from kc a where exists (select 1 from kc b where b.filler = a.filler);
create materialized view mv as select * from u; select id, length(a), length(b) from mv order by id; refresh materialized view mv; select sum(length(b)) from mv;
alter table u add column d text default repeat('d', 3000); select id, length(d), pg_column_compression(d) from u order by id; alter table u drop column a; update u set c = 'z'; select id, length(b), length(d), c from u order by id;
create table pl(a text, b text, c text, d text);
alter table pl alter a set storage plain, alter b set storage main, alter c set storage external;
insert into pl values (repeat('a', 5000), repeat('b',5000), repeat('c',5000), repeat('d', 5000));
select pg_column_size(a), pg_column_size(b), pg_column_size(c), pg_column_size(d), pg_column_compression(a), pg_column_compression(b), pg_column_compression(c), pg_column_compression(d) from pl;
insert into pl(b) select string_agg(md5(g::text),'') from generate_series(1,200) g;
insert into pl(b) select string_agg(md5(g::text),'') from generate_series(1,400) g;
insert into pl(d) select string_agg(md5(g::text),'') from generate_series(1,400) g;
insert into pl(b,d) select repeat('1234567890', 150), repeat('1234567890', 170);
select pg_column_size(b), pg_column_compression(b), pg_column_size(d), pg_column_compression(d) from pl;
\d+ pl
select pg_relation_size(reltoastrelid) > 0 from pg_class where relname = 'pl';
select relkind, relname = 'pg_toast_' || 'pl'::regclass::oid from pg_class where oid = (select reltoastrelid from pg_class where relname = 'pl');
set default_toast_compression = 'lz4';
insert into pl(d) values (repeat('e', 5000));
select pg_column_compression(d) from pl where d like 'e%';
create table pm (like tbl including compression including storage);
\d+ pm
-- values of outer rows in sub-queries
create table o(id int, v bytea, w text, x numeric[]);
alter table o alter v set storage external;
insert into o select g, decode(repeat('00ff12', 20000 * g), 'hex'), repeat('é', 100000), array(select x::numeric / 7 from generate_series(1, 2000) x) from generate_series(1, 2) g;
select (select octet_length(o.v)), (select md5(o.v)), (select count(*) from generate_series(1,3) g where g < pg_column_size(o.v)), (select substr(o.w, 99998)), (select sum(y) from unnest(o.x) y), (select length(o.w) + g from generate_series(7,7) g), exists (select 1 where o.v is null) from o order by id;
select (select pg_column_size(o.v)), (select pg_column_compression(o.w)), (select count(*) from o p where p.v = o.v), (select max(left(o.w, 2) || p.id) from o p) from o order by id;
-- what PostgreSQL keeps long values in
select oid::regclass as toast from pg_class where oid = (select reltoastrelid from pg_class where relname = 'o') \gset
select :'toast' = 'pg_toast.pg_toast_' || 'o'::regclass::oid, :'toast'::regclass::oid = reltoastrelid from pg_class where relname = 'o';
select attname, atttypid::regtype, attnum, attstorage, attnotnull from pg_attribute where attrelid = :'toast'::regclass and attnum > 0 order by attnum;
delete from o where id = 3; update o set w = 'short', x = null;
select count(*), sum(length(chunk_data)), max(length(chunk_data)), max(chunk_seq), count(distinct chunk_id) from :toast;
select count(*), min(chunk_seq) from :toast where chunk_seq > 30;
select (select md5(string_agg(chunk_data, '' order by chunk_seq)) from :toast where chunk_id = c.chunk_id) = (select md5(v) from o where octet_length(v) = c.n) from (select chunk_id, sum(length(chunk_data)) n from :toast group by chunk_id) c order by n;
select * from :toast where chunk_id = 0;
begin; delete from o where id = 1; select count(*), max(chunk_seq) from :toast; rollback; select count(*) from :toast;
\set VERBOSITY sqlstate
insert into :toast values (1, 2, 'x');
delete from :toast;
update :toast set chunk_seq = 1;
alter table :toast add column x int;
\set VERBOSITY default
select pg_relation_size(:'toast') > 0, pg_total_relation_size(:'toast') > 0, pg_indexes_size('o');
create view ov as select chunk_id, chunk_seq from :toast; select count(*) from ov; drop view ov;
truncate o; select count(*) from :toast;
drop table o; select to_regclass(:'toast');
-- changes of type that leave values as they are do not touch them
create table r(id int primary key, a text, b varchar(5), c int default 7);
create index on r(a); create index on r(b);
insert into r select g, repeat(md5(g::text), 1000), 'b' || g from generate_series(1, 3) g;
alter table r add d text default 'later';
create table node as select relfilenode from pg_class where relname = 'r';
alter table r alter a type varchar, alter b type varchar(7); alter table r alter b type text, alter d type varchar;
select count(*) from pg_class, node where relname = 'r' and pg_class.relfilenode = node.relfilenode;
select id, length(a), b, d from r where a = repeat(md5('2'), 1000) or b = 'b3' order by b;
insert into r values (4, 'short', 'longer than seven'); update r set d = 'now' where id = 1;
set enable_seqscan = off; select id, b, d from r where b > 'b2' order by b; select id from r where a = 'short'; reset enable_seqscan;
alter table r alter b type varchar(3);
alter table r alter b type varchar(20), alter c type bigint;
select count(*) from pg_class, node where relname = 'r' and pg_class.relfilenode = node.relfilenode;
select id, length(a), b, c, d from r order by id; select id from r where b = 'b2';
\d r
drop table node, r;
create materialized view named(x, y) as select col1, length(col2) from tbl;
select pg_get_viewdef('named') ~ 'col1 AS x', pg_get_viewdef('named') ~ 'AS y'; refresh materialized view named; select length(x), y from named order by 1;
drop materialized view named;
-- Many rows keep their methods as one does; views have none.
create table kept (id int, a text compression lz4, b text compression pglz); insert into kept select g, repeat('abc', 1000), repeat('abc', 100000) from generate_series(1, 3) g;
alter table kept alter a set compression pglz; alter table kept alter b set compression lz4;
create table given (like kept); insert into given select * from kept; insert into given select * from kept where id = 1;
select id, pg_column_compression(a), pg_column_compression(b), length(b) from given order by id;
create table made as select * from kept; select id, pg_column_compression(a), pg_column_compression(b), length(b) from made order by id;
create view seen as select * from kept;
alter view seen alter a set compression lz4; alter table seen alter a set storage main; alter table seen drop column a; alter table seen alter a set default 'x';
create materialized view copied as select * from kept;
alter materialized view copied alter a set compression pglz; alter table copied drop column a; alter materialized view copied alter a set not null;
select relname, attname, attcompression, attstorage from pg_attribute join pg_class on attrelid = pg_class.oid where relname in ('seen', 'copied') and attnum > 0 order by 1, 2;
-- What goes with a dropped column is its values alone.
begin; alter table kept drop column b; select id, length(a) from kept order by id; rollback;
select id, length(a), length(b) from kept order by id;
drop materialized view copied; drop view seen; alter table kept drop column b; update kept set a = a || 'x' where id = 1; delete from kept where id = 2;
select id, length(a) from kept order by id; alter table kept add b text default 'new'; select id, length(a), b from kept order by id;
drop table kept, given, made;
select U&'wrong: \061'; select E'wrong: \u061'; select U&'wrong: +0061' UESCAPE '+';
