-- What a kept directory holds. Statements that a version lacks are not here: all versions hold the same.
create role reader;
create schema shop;
create type shop.state as enum ('new', 'paid', 'sent');
create domain shop.price as numeric(10,2) check (value >= 0);
create table shop.customers (id int generated always as identity primary key, name text not null unique, since date default '2024-01-01');
create table shop.orders (
    id bigint primary key,
    customer int not null references shop.customers (id) on delete cascade,
    state shop.state not null default 'new',
    total shop.price,
    at timestamptz,
    tags text[],
    details jsonb,
    check (id > 0)
);
create index orders_by_customer on shop.orders (customer, at desc);
create index orders_unsent on shop.orders ((total * 2)) where state <> 'sent';
create table shop.pages (id int primary key, body text, picture bytea);
create table shop.events (at date not null, n int) partition by range (at);
create table shop.events_2024 partition of shop.events for values from ('2024-01-01') to ('2025-01-01');
create table shop.events_rest partition of shop.events default;
create view shop.open_orders as select c.name, count(*) as orders, sum(o.total) as total
    from shop.orders o join shop.customers c on c.id = o.customer where o.state <> 'sent' group by c.name;
create sequence shop.numbers start 100 increment 5;
create function shop.twice(n int) returns int language sql immutable as 'select n * 2';
comment on table shop.orders is 'what customers want';
grant select on shop.orders to reader;
insert into shop.customers (name) select 'customer ' || n from generate_series(1, 50) n;
insert into shop.orders
    select n, n % 50 + 1, (array['new', 'paid', 'sent'])[n % 3 + 1]::shop.state, n * 1.25, timestamptz '2024-03-01 00:00+00' + n * interval '1 hour',
        array['t' || n % 7, null], case when n % 11 <> 0 then jsonb_build_object('n', n, 'even', n % 2 = 0) end
    from generate_series(1, 600) n;
insert into shop.pages select n, repeat('page ' || n || ' ', 2000), decode(repeat(md5(n::text), 200), 'hex') from generate_series(1, 12) n;
insert into shop.events select date '2023-12-01' + n, n from generate_series(1, 300) n;
select nextval('shop.numbers'), nextval('shop.numbers');
checkpoint;
-- Behind the segments: what only the log has.
update shop.orders set total = total + 1 where id % 100 = 0;
delete from shop.orders where id % 250 = 0;
insert into shop.customers (name, since) values ('the last one', null);
