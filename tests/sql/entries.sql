-- Conditions that a column's dictionary decides.
create table coded (id int primary key, kind text, code char(4), note varchar(10), bits bytea, same text);
insert into coded
select i, 'kind ' || i % 7, 'c' || i % 3, case when i % 5 > 0 then 'n' || i % 11 end, decode(lpad(to_hex(i % 4), 2, '0'), 'hex'), 'same'
from generate_series(1, 30000) i;
insert into coded values (30001, 'x', 'gone', '12a', null, null), (30002, '5', 'c', '7', null, null);
checkpoint;
-- Deleted rows, and versions in memory.
delete from coded where id = 30001;
update coded set kind = 'kind 9' where id = 77;
insert into coded values (30003, 'kind 3', 'c1', 'n1', null, 'other');
select count(*) from coded where kind = 'kind 3';
select count(*) from coded where kind in ('kind 3', 'kind 9');
select count(*) from coded where kind like '%3' and code = 'c1';
select count(*) from coded where kind > 'kind 4' and code <> 'c1  ' and id < 1000;
select count(*) from coded where note is null;
select count(*) from coded where note is null or note = 'n4';
select count(*) from coded where note not in ('n1', 'n2');
select count(*) from coded where coalesce(note, 'n1') = 'n1' and same = 'same';
select count(*), min(id), max(id) from coded where same <> 'same';
select count(*) from coded where bits = '\x03' and length(note) = 2;
select count(*) from coded where bits is distinct from '\x03';
select id, kind, note from coded where id between 70 and 80 and note ~ 'n[0-5]' order by id;
select code, count(*), count(note) from coded where kind between 'kind 2' and 'kind 4' group by code order by code;
-- What fails for an entry need not fail for a row.
select count(*) from coded where id > 30000 and kind::int > 3;
select id from coded where id = 30002 and note::int = 7;
select count(*) from coded where id > 29999 and same is null and note::int = 7;
select count(*) from coded where 1 / (length(code) - 1) = 0 and id = 30002;
select count(*) from coded where kind::int > 3 and id = 4;
-- With parameters whose values change.
prepare p(text) as select count(*) from coded where kind = $1;
execute p('kind 3');
execute p('kind 4');
execute p(null);
select k, (select count(*) from coded where kind = k) from (values ('kind 1'), ('kind 5'), ('none'), (null)) v(k);
select k, n from (values ('kind 1'), ('kind 5')) v(k), lateral (select count(*) as n from coded where kind like k || '%' and code = 'c2' limit 1) x;
-- A column that the segments do not have.
alter table coded add column late text default 'late';
select count(*) from coded where late = 'late' and kind = 'kind 1';
drop table coded;
