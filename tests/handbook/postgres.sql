-- The PostgreSQL that the handbook's page about migration starts from: a shop.
create role shop_app login;
create database shop;
\c shop
create extension citext;
create type state as enum ('new', 'paid', 'sent');
create table customers (id int generated always as identity primary key, email citext unique, joined timestamptz default now());
create table orders (
    id bigserial primary key,
    customer int not null references customers on delete cascade,
    state state not null default 'new',
    total numeric(10, 2) check (total >= 0),
    details jsonb
);
create index on orders (customer);
create view open_orders as select * from orders where state <> 'sent';
create function touch() returns trigger language plpgsql as $$ begin new.joined := now(); return new; end $$;
create trigger touched before update on customers for each row execute function touch();
insert into customers (email) select 'c' || i || '@example.org' from generate_series(1, 100) i;
insert into orders (customer, state, total, details)
    select 1 + i % 100, (enum_range(null::state))[1 + i % 3], i, jsonb_build_object('item', i) from generate_series(1, 1000) i;
grant select, insert, update on all tables in schema public to shop_app;
