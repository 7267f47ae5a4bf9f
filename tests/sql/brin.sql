-- BRIN indexes have no entries of their own: they are there for statements and tools that name them.
create table logs (at timestamptz not null, level int, message text, address inet, span int4range);
insert into logs select '2026-01-01 00:00+00'::timestamptz + i * interval '1 minute', i % 5, 'message ' || i, '10.0.0.0'::inet + i % 200, int4range(i, i + 5)
  from generate_series(1, 3000) i;
create index logs_at on logs using brin (at);
create index logs_many on logs using brin (at, level) with (pages_per_range = 16, autosummarize = on);
create index logs_classes on logs using brin (at timestamptz_minmax_multi_ops, message text_bloom_ops, address inet_inclusion_ops, span range_inclusion_ops);
create index logs_expression on logs using brin (lower(message), (level + 1)) where level > 2;
create index if not exists logs_at on logs using brin (at);
create unique index on logs using brin (at);
create index on logs using brin (at) include (level);
create index on logs using brin (at desc);
create index on logs using brin (at nulls first);
create index on logs using brin (at int4_minmax_ops);
create index on logs using brin (at no_such_ops);
create index on logs using brin (at) with (pages_per_range = 0);
create index on logs using brin (at) with (fillfactor = 50);
create table other (p json);
create index on other using brin (p);
alter table logs add exclude using brin (at with =);
cluster logs using logs_at;
select indexname, indexdef from pg_indexes where tablename = 'logs' order by 1;
select c.relname, amname, c.relkind, indisunique, indisvalid, reloptions from pg_class c join pg_index i on i.indexrelid = c.oid join pg_am a on a.oid = c.relam
  where indrelid = 'logs'::regclass order by 1;
\d logs
select count(*), min(at), max(level) from logs where at >= '2026-01-02 00:00+00' and at < '2026-01-02 01:00+00';
select count(*) from logs where message = 'message 77' or address = '10.0.0.9' and span @> 10;
select brin_summarize_new_values('logs_at'), brin_desummarize_range('logs_at', 0);
select brin_summarize_new_values('logs');
select brin_summarize_range('logs_at', -1);
select brin_summarize_new_values(1::oid::regclass);

-- The table changes, and so does the index.
update logs set at = at + interval '1 year' where level = 4;
delete from logs where level = 0;
select count(*) from logs where at > '2027-01-01 00:00+00';
alter index logs_at set (pages_per_range = 4);
alter index logs_many reset (autosummarize);
alter index logs_at set (fillfactor = 10);
alter index logs_at rename to logs_time;
alter table logs alter column level type bigint;
alter table logs alter column message type varchar(40);
select indexdef from pg_indexes where tablename = 'logs' order by 1;
reindex index logs_time;
reindex table logs;
vacuum analyze logs;
truncate logs;
insert into logs values ('2026-03-04 00:00+00', 1, 'again', null, null);
select message from logs where at = '2026-03-04 00:00+00';
create table logs_copy (like logs including all);
select indexdef from pg_indexes where tablename = 'logs_copy' order by 1;
begin;
create index logs_gone on logs using brin (level);
rollback;
drop index logs_many;
alter table logs drop column address;
select indexname from pg_indexes where tablename = 'logs' order by 1;
comment on index logs_time is 'by time';
select obj_description('logs_time'::regclass);
create materialized view logs_view as select * from logs;
create index on logs_view using brin (at);
refresh materialized view logs_view;
create index concurrently logs_later on logs using brin (level);

-- Partitions.
create table parted (id int, at date) partition by range (at);
create table parted_1 partition of parted for values from ('2026-01-01') to ('2026-02-01');
create index parted_at on parted using brin (at) with (pages_per_range = 8);
create table parted_2 partition of parted for values from ('2026-02-01') to ('2026-03-01');
create table parted_3 (id int, at date);
create index parted_3_own on parted_3 using brin (at);
alter table parted attach partition parted_3 for values from ('2026-03-01') to ('2026-04-01');
insert into parted select i, '2026-01-01'::date + i from generate_series(0, 80) i;
select tableoid::regclass, count(*) from parted where at between '2026-01-30' and '2026-03-02' group by 1 order by 1;
select indexdef from pg_indexes where tablename like 'parted%' order by 1;
select relname, relispartition from pg_class where relkind in ('i', 'I') and relname like 'parted%' order by 1;
drop index parted_at;
drop table parted, logs_copy, other;
drop materialized view logs_view;
drop table logs;
