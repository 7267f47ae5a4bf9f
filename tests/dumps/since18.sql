-- What PostgreSQL has since 16, 17 and 18.
create table app.since (
    a integer constraint a_is_there not null, twice integer generated always as (a * 2) stored, b integer,
    constraint b_is_positive check (b > 0) not enforced);
insert into app.since (a, b) values (1, -1), (2, 2);
alter table app.since add constraint b_is_there not null b not valid;
grant maintain on app.orders to dump_reader;
create index since_twice on app.since (a) where b is null;
