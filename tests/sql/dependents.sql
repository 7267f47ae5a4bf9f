-- DROP: what goes along, what is in the way, and what is said of it.
create table p(id int primary key, u int unique);
create table c1(id int references p, v int references p(u));
create view vp as select id from p;
create view vvp as select id from vp;
drop table p;
alter table p drop column id;
alter table p drop constraint p_pkey;
alter table p drop constraint p_pkey cascade;
drop view vp;
drop table p cascade;
create table sn(id int primary key, parent int constraint snfk references sn);
alter table sn drop constraint snfk;
alter table sn add constraint again foreign key (parent) references sn;
alter table sn drop constraint sn_pkey;
drop table sn;
create table ix(a int, b int, c int);
create index on ix ((a + b));
create index on ix (c) where a > 0;
create index on ix (b);
create table ix2 (like ix including indexes);
alter table ix drop column a;
\d ix
alter table ix2 drop column b;
\d ix2
drop type ix;
drop type ix[];
create table idt(a int generated always as identity, b serial);
drop sequence idt_a_seq;
drop sequence idt_b_seq;
drop index ix_b_idx, missing;
drop index missing;
drop index if exists missing;
alter table idt alter b drop default;
drop sequence idt_b_seq;
create type ctx as (a int);
create table uctx (a ctx, b ctx[]);
alter type ctx alter attribute a type text;
drop type ctx;
drop type ctx cascade;
create type rowed as (a int, b int);
create table rower (c int default (row(1, 2)::rowed).a);
drop type rowed;
alter table rower alter c drop default, add check (c <> (row(1, 2)::rowed).b);
drop type rowed;
drop type rowed cascade;
\d rower
drop type int4;
drop schema pg_catalog;
drop function now();
create domain dd as int;
create table udd(a dd, b dd default 3);
create function fdd(dd) returns int language sql return 1;
drop domain dd;
drop domain dd cascade;
create table many0(id int primary key);
select format('create view mv%s as select id from many0', n) from generate_series(1, 102) n \gexec
drop table many0;
drop table many0 cascade;
create table r1(a int);
create view r2 as select * from r1;
create view r3 as select * from r1;
drop table r1, r2;
drop view r2, r3;
create schema q1;
create table q1.a(id serial primary key, x int unique);
create table q1.b(id int references q1.a);
create table outside(id int references q1.a);
create type q1.e as enum ('a');
create table uses_e (x q1.e, y int);
drop schema q1;
drop schema q1 cascade;
\d uses_e
\d outside
-- Temporary tables, from the first statement on.
\c
set search_path = play;
create temp table td (a int primary key, b int references td);
copy td to stdout;
copy pg_temp.td (a) to stdout;
\c
create domain pg_temp.x as int check (value > 0);
select 1::pg_temp.x, (-1)::pg_temp.x;
\c
set search_path = pg_temp, play;
create table goes_there (a int);
select relpersistence from pg_class where relname = 'goes_there';
create table play.stays (a int);
select relpersistence from pg_class where relname = 'stays';
\c
set search_path = play;
prepare pe(int) as select $1 as a, 'x'::varchar(3) as b;
create table pee as execute pe(4);
select * from pee;
create table pef(x) as execute pe(5) with no data;
\d pef
create temp table peg as execute pe(6);
create table peg as execute pe;
create table peg as execute missing;
