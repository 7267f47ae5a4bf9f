-- Values that are looked up in tables without an index: row groups are left out by the filters of their chunks.
create table f (id int, uid bigint, phone text, tag uuid, part int);
-- Loaded rows go to segments, some row groups of them.
insert into f
select i, (i * 7919::bigint * 1000003) % 1000000007 * 1000 + i % 7, '+49 ' || lpad(((i * 48271::bigint) % 2147483647)::text, 11, '0'),
       md5(i::text)::uuid, i % 10
from generate_series(1, 200000) i;
select id from f where phone = (select phone from f where id = 77777);
select id, part from f where uid = (123456 * 7919::bigint * 1000003) % 1000000007 * 1000 + 123456 % 7;
select id from f where tag = md5('199999')::uuid;
select count(*) from f where phone = '+49 00000000000';
select count(*) from f where uid = 17;
select count(*) from f where uid = 17::smallint or uid = -1;
-- Lists, with NULL and with values that are not there.
select id from f where tag in (md5('5')::uuid, md5('100000')::uuid, md5('none')::uuid, null) order by id;
select id from f where uid = any (array[(5 * 7919::bigint * 1000003) % 1000000007 * 1000 + 5, 1, 2, null]) order by id;
select count(*) from f where uid = any ('{}'::bigint[]);
select count(*) from f where uid = any (null::bigint[]);
select count(*) from f where uid = all (array[1, 1]);
prepare by_phone (text) as select id from f where phone = $1;
execute by_phone('+49 00000048271');
execute by_phone('+49 00000096542');
execute by_phone(null);
prepare by_two (text, text) as select id from f where phone in ($1, $2) order by id;
execute by_two('+49 00000048271', '+49 00000096542');
execute by_two('+49 00000048271', null);
-- By a join with few rows.
create table few (uid bigint, phone text);
insert into few select uid, phone from f where id in (1, 65536, 65537, 150000);
insert into few values (1, 'nobody'), (null, null);
select f.id from f join few using (uid) order by 1;
select f.id from f join few using (phone) order by 1;
select count(*) from f where uid in (select uid from few);
select count(*) from f where phone in (select phone from few) and part = 0;
-- Changed rows are found by their new values and not by the old.
update f set phone = 'changed', uid = -5 where id = 65536;
delete from f where id = 150000;
select id from f where phone = 'changed';
select id, phone from f where uid = -5;
select f.id from f join few using (uid) order by 1;
select count(*) from f where phone = (select phone from few offset 1 limit 1);
insert into f values (200001, 17, 'new', null, 1);
select id from f where uid = 17 or phone = 'new' order by 1;
select id from f where uid = 17;
vacuum f;
select id from f where uid = 17;
select id from f where phone = 'changed';
select count(*) from f where tag is null;
-- Integers and numbers of other widths in comparisons.
create table n as select (i * 7919) % 1000003 * 2000 + 1 as a, ((i * 7919) % 1000003)::real as r, ((i * 7919) % 1000003) * 0.5::float8 as d
from generate_series(1, 100000) i;
select count(*) from n where a = 15838001::bigint;
select count(*) from n where a = 99999999999;
select count(*) from n where a < 100000::bigint;
select count(*) from n where r = 7919::float8;
select count(*) from n where d > 499000::real;
select count(*) from n where 7919::float8 = r and d = 3959.5::real;
-- Other types keep their own equality.
create table c as select ((i * 7919) % 1000003 || repeat(' ', i % 3))::char(12) as b, (i * 7919 % 1000003)::numeric(20, 2) as m
from generate_series(1, 30000) i;
select count(*) from c where b = '7919';
select count(*) from c where b = '7919   ';
select count(*) from c where m = 7919;
select count(*) from c where m in (7919.0, 15838.00);
drop table f, few, n, c;
