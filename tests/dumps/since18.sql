-- What PostgreSQL has since 16, 17 and 18.
create table app.since (
    a integer constraint a_is_there not null, twice integer generated always as (a * 2) stored, b integer,
    constraint b_is_positive check (b > 0) not enforced);
insert into app.since (a, b) values (1, -1), (2, 2);
alter table app.since add constraint b_is_there not null b not valid;
grant maintain on app.orders to dump_reader;
create table app.computed (
    a integer, thrice integer generated always as (a * 3) virtual, shown text generated always as (coalesce(a::text, 'none')),
    constraint thrice_is_small check (thrice < 1000));
insert into app.computed (a) values (1), (null), (300);
create view app.computed_shown as select shown, thrice from app.computed where thrice > 2;
create index since_twice on app.since (a) where b is null;
-- NOT NULLs that have names of their own, and go to partitions by them.
alter table families.o add primary key (id, v);
