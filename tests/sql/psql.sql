-- psql's own commands: each is a query on the catalogs.
create table customer (id int generated always as identity primary key, email varchar(40) not null unique, balance numeric(10, 2) default 0 check (balance >= 0), notes jsonb, tags text[], at timestamptz default now());
create table orders (id bigserial primary key, customer int not null references customer on delete cascade deferrable, total numeric, placed date default current_date);
create index orders_placed on orders (placed desc, total) where total > 0;
create index orders_half on orders ((total / 2), abs(total));
create view rich as select id, email from customer where balance > 1000;
create sequence lonely;
comment on table customer is 'who buys';
comment on column customer.email is 'lower case';
\d
\dt
\dt+ nothing
\dt c*
\di
\dv
\ds
\d customer
\d orders
\d orders_placed
\d rich
\d lonely
\d customer_pkey
\d missing
\dn
\du
\df lower
\df pg_catalog.pg_get_*def
\dd
\dp customer
\dC json
\db
\dg
\x on
select * from customer;
insert into customer (email) values ('a@x') returning id, email, balance;
\x off
select 1 as one \gset
\echo :one
select 'select ' || i from generate_series(1, 2) i \gexec
\pset null 'NIL'
select null as nothing, '' as empty;
\pset format csv
select 1 as a, 'x,y' as b;
\pset format aligned
\pset border 2
select 1 as a, 'x' as b;
\pset border 1
select 1 as a, 'x'::varchar(3) as b, now() as c \gdesc
\if true
\echo yes
\endif
select 'r' as r, 'c' as c, 5 as v \crosstabview
\encoding
show server_encoding;
