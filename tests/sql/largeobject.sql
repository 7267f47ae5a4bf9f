-- Large objects: functions, descriptors, privileges, comments, the two relations.
\! rm -f /tmp/lo_compare.txt /tmp/lo_compare_2.txt
set bytea_output to hex;
create role lo_owner;
create role lo_reader;

-- Creating.
select lo_create(4711);
select lo_create(4711);
select lo_from_bytea(4712, 'hello, world');
select lo_create(0) >= 16384 as chosen, lo_creat(-1) > 0 as created \gset
\echo :chosen :created
select oid, lomowner::regrole, lomacl from pg_largeobject_metadata where oid in (4711, 4712) order by oid;
select loid, pageno, data from pg_largeobject where loid in (4711, 4712) order by 1, 2;
select lo_get(4712), lo_get(4712, 7, 3), lo_get(4712, 7, 100), lo_get(4712, 100, 5), lo_get(4711);
select lo_get(4712, 0, -1);
select lo_get(99);
select lo_put(4712, 7, 'WORLD'), lo_put(4712, 4100, 'far');
select lo_get(4712, 0, 14), length(lo_get(4712)), lo_get(4712, 4098, 10);
select pageno, length(data) from pg_largeobject where loid = 4712 and pageno > 0;
select lo_put(4712, -1, 'x');
select lo_put(4712, 0, '');

-- Descriptors.
select lo_open(4712, x'60000'::int);
select lo_close(0);
begin;
select lo_open(4712, x'60000'::int), lo_open(4711, x'40000'::int);
select loread(0, 5), loread(0, 7), lo_tell(0), lo_tell64(0);
select lowrite(0, '!!'), lo_tell(0);
select lo_lseek(0, -2, 1), loread(0, 4), lo_lseek(0, -3, 2), loread(0, 10), loread(0, 10);
select lo_lseek64(0, 4294967296, 0), lowrite(0, 'beyond'), lo_tell64(0);
savepoint a;
select lo_tell(0);
rollback to a;
select lo_lseek(0, 0, 2);
rollback to a;
select lo_lseek(0, 0, 7);
rollback to a;
select lo_lseek(0, -1, 0);
rollback to a;
select lo_lseek64(0, 4398046509057, 0);
rollback to a;
select lowrite(1, 'x');
rollback to a;
select lo_truncate(1, 1);
rollback to a;
select loread(7, 1);
rollback to a;
select lo_open(4712, 0);
rollback to a;
select lo_open(99, x'40000'::int);
rollback to a;
select lo_open(4711, x'20000'::int), lo_close(2);
select lo_truncate64(0, 5000000000), lo_lseek64(0, 0, 2);
select count(*), min(pageno), max(pageno), sum(length(data)) from pg_largeobject where loid = 4712;
select lo_truncate(0, 3), lo_lseek(0, 0, 0), loread(0, 10);
select lo_truncate(0, 2048), lo_lseek(0, 0, 2);
select pageno, length(data) from pg_largeobject where loid = 4712 order by 1;
select lo_truncate(0, -1);
rollback;
select lo_tell(0);
select length(lo_get(4712));

-- A read-only descriptor uses the snapshot of its statement; one for writing sees later changes.
begin;
select lo_open(4711, x'40000'::int), lo_open(4711, x'20000'::int);
select lowrite(1, 'written');
select loread(0, 10), lo_lseek(1, 0, 0), loread(1, 10), lo_get(4711);
select lo_unlink(4711);
select lo_lseek(1, 0, 0);
rollback;
select lo_get(4711);

-- Savepoints undo writes and close descriptors.
begin;
select lo_create(4713);
savepoint a;
select lo_put(4713, 0, 'first');
select lo_open(4713, x'40000'::int);
savepoint b;
select lo_put(4713, 0, 'FIRST, second'), lo_create(4714);
rollback to b;
select lo_get(4713);
select loread(0, 10);
rollback to a;
select lo_get(4713), (select count(*) from pg_largeobject_metadata where oid in (4713, 4714));
select loread(0, 10);
rollback;
begin;
select lo_unlink(4712);
select lo_create(4712);
select lo_get(4712), (select count(*) from pg_largeobject where loid = 4712);
rollback;
select lo_get(4712, 0, 5);
select lo_unlink(99);

-- Privileges.
alter large object 4712 owner to lo_owner;
grant select on large object 4712, 4711 to lo_reader;
grant select on large object 99 to lo_reader;
grant usage on large object 4712 to lo_reader;
select oid, lomowner::regrole, lomacl from pg_largeobject_metadata where oid in (4711, 4712) order by oid;
set session authorization lo_reader;
select lo_get(4712, 0, 5);
select lo_put(4712, 0, 'x');
select lo_unlink(4712);
alter large object 4712 owner to lo_reader;
comment on large object 4712 is 'mine';
grant update on large object 4712 to lo_reader;
select data from pg_largeobject where loid = 4712;
select count(*) > 1 from pg_largeobject_metadata;
select lo_import('/etc/passwd');
select lo_export(4712, '/tmp/nowhere');
select pg_read_file('/etc/passwd');
select lo_create(4715), lo_put(4715, 0, 'by the reader');
set session authorization lo_owner;
select lo_put(4712, 0, 'H'), lo_get(4712, 0, 5);
grant update, select on large object 4712 to public;
revoke select on large object 4712 from lo_reader;
comment on large object 4712 is 'the owner''s';
select lo_get(4715);
reset session authorization;
select oid, lomowner::regrole, lomacl from pg_largeobject_metadata where oid in (4712, 4715) order by oid;
select obj_description(4712, 'pg_largeobject'), obj_description(4711, 'pg_largeobject');
begin;
set local lo_compat_privileges = on;
set local session authorization lo_owner;
select lo_get(4715);
select lo_unlink(4715);
rollback;
security label on large object 4712 is 'secret';
drop role lo_reader;

-- Reading in read-only transactions.
begin read only;
select lo_get(4712, 0, 5);
select lo_open(4712, x'40000'::int), loread(0, 5);
rollback;

-- Files.
select lo_import('/nowhere/at all');
select lo_export(4712, '/nowhere/at all');
select lo_export(4712, '/tmp/lo_compare.txt'), pg_read_file('/tmp/lo_compare.txt', 0, 5);
select lo_import('/tmp/lo_compare.txt', 4716), lo_import('/tmp/lo_compare.txt', 4712);
select lo_import('/tmp/lo_compare.txt', 4716);
select lo_get(4716, 0, 12), lo_get(4716) = lo_get(4712);
select pg_read_binary_file('/tmp/lo_compare.txt', -3, 2), length(pg_read_binary_file('/tmp/lo_compare.txt'));
select pg_read_file('/nowhere'), 1;
select pg_read_file('/nowhere', 0, 1, true) is null, pg_read_file('/tmp/lo_compare.txt', 0, -1);
select size, isdir, creation from pg_stat_file('/tmp/lo_compare.txt');
select isdir from pg_stat_file('/tmp');
select pg_stat_file('/nowhere');
select * from pg_stat_file('/nowhere', true);
select name from pg_ls_dir('/tmp') name where name = 'lo_compare.txt';
select pg_ls_dir('/nowhere');
select count(*) from pg_ls_dir('/nowhere', true, false);

-- psql's own.
\lo_unlink 4716
\lo_import /tmp/lo_compare.txt 'imported by psql'
select lo_get(:LASTOID, 0, 5), obj_description(:LASTOID, 'pg_largeobject');
\lo_export :LASTOID /tmp/lo_compare_2.txt
select pg_read_binary_file('/tmp/lo_compare.txt') = pg_read_binary_file('/tmp/lo_compare_2.txt');
\lo_unlink :LASTOID
select count(*) from pg_largeobject where loid = :LASTOID;
select obj_description(:LASTOID, 'pg_largeobject');

-- The published example: dropping a table leaves its objects.
create table image (name text, raster oid);
insert into image (name, raster) values ('picture', lo_import('/tmp/lo_compare.txt', 4717));
drop table image;
select loid, pageno, length(data) from pg_largeobject where loid = 4717 order by 2;
select lo_unlink(4717);

-- Many.
select count(lo_create(oid::oid)) from generate_series(100001, 102000) oid;
select count(*), min(oid), max(oid) from pg_largeobject_metadata where oid between 100000 and 200000;
select sum(length(lo_get(lo_from_bytea((200000 + n)::oid, repeat('x', n)::bytea)))) from generate_series(1, 3) n;
select count(lo_from_bytea((200000 + n)::oid, convert_to(repeat(n::text, n % 50), 'utf8'))) from generate_series(1, 2000) n;
select count(*), sum(length(data)) from pg_largeobject where loid > 200000;
select lo_get(201999);
-- PostgreSQL holds a lock for each object that goes.
select count(lo_unlink(oid)) from pg_largeobject_metadata where oid between 100001 and 102000;
select count(lo_unlink(oid)) from pg_largeobject_metadata where oid between 200001 and 202000;
select count(*), min(oid) from pg_largeobject_metadata where oid > 100000;
select count(*), min(loid) from pg_largeobject where loid > 100000;

select lo_unlink(4711), lo_unlink(4712), lo_unlink(4715);
drop role lo_reader;
drop role lo_owner;
\! rm -f /tmp/lo_compare.txt /tmp/lo_compare_2.txt
-- Made in one statement, and in a block without a look between.
select count(lo_create(4800 + i)) from generate_series(1, 20) i;
select count(*) from pg_largeobject_metadata where oid between 4801 and 4820;
begin;
select lo_create(4821);
select lo_create(4822);
commit;
select count(lo_unlink(oid)) from pg_largeobject_metadata where oid between 4801 and 4822;
-- Ranges of objects, however they are said.
select count(lo_create(i)) from generate_series(4901, 4950) i;
select count(lo_put(i::oid, 0, 'x')) from generate_series(4901, 4950) i;
select count(*) from pg_largeobject_metadata where oid > 4910 and oid <= 4920;
select count(*), min(oid) from pg_largeobject_metadata where 4940 <= oid and oid < 10000 and oid <> 4941;
select count(*) from pg_largeobject where loid >= 4945 and loid < 4951 and pageno = 0;
select count(*) from pg_largeobject_metadata where oid > 4910 and oid < 4911;
select count(*) from pg_largeobject_metadata where oid between 4901 and 4950 and oid > null;
select count(*) from pg_largeobject_metadata where oid between 4901 and 4294967295 and oid < 5000;
select n, (select count(*) from pg_largeobject_metadata where oid between 4901 and n) from (values (4900::oid), (4905), (4906)) v(n);
select count(lo_unlink(oid)) from pg_largeobject_metadata where oid between 4901 and 4950;

-- What is removed within a statement is gone for the functions that follow in it, and can be made again.
select lo_from_bytea(5001, 'first'), lo_put(5001, 70000, 'far') is not null as put;
select lo_unlink(5001), lo_create(5001), lo_unlink(5001), lo_from_bytea(5001, 'again');
select loid, pageno, data from pg_largeobject where loid = 5001 order by 2;
select lo_unlink(5001), lo_unlink(5001);
select lo_unlink(5001), lo_put(5001, 0, 'gone');
begin;
select lo_open(5001, x'60000'::int), lo_unlink(5001);
select lowrite(0, 'x');
rollback;
begin;
savepoint a;
select lo_unlink(5001);
rollback to a;
select lo_get(5001);
select lo_unlink(5001);
commit;
select count(*) from pg_largeobject_metadata where oid = 5001;
select count(*) from pg_largeobject where loid = 5001;
