-- What only Melba has.
create table app.compressed (id integer primary key, z text compression zstd);
insert into app.compressed select n, repeat('zstd ' || n, 800) from generate_series(1, 10) n;
create table app.volatile (id integer primary key, note text) using memory;
insert into app.volatile values (1, 'in memory');
create publication lake for table app.compressed, app.types with (format = 'iceberg', location = 'file:///nonexistent/it''s a lake', snapshot_interval = '0', keep = '1d');
create publication "odd, ""publication""" with (publish = 'insert, delete');
alter publication "odd, ""publication""" add tables in schema app;
comment on publication lake is 'for readers of Iceberg';
create foreign table app.objects (id integer, line jsonb) server files options (filename '/nonexistent/rows*.json', format 'json');
