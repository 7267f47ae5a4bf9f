-- Row-level security: which rows are there for whom, and which may be written.
drop role if exists policy_ann, policy_bob, policy_boss, policy_team;
create role policy_ann;
create role policy_bob;
create role policy_boss bypassrls;
create role policy_team;
grant policy_team to policy_ann, policy_bob;
grant usage on schema play to public;

create table docs (id int primary key, owner name, level int, body text);
create table levels (who name primary key, most int);
insert into levels values ('policy_ann', 1), ('policy_bob', 2);
insert into docs values (1, 'policy_ann', 1, 'plain'), (2, 'policy_bob', 1, 'public'), (3, 'policy_bob', 2, 'secret'), (4, 'nobody', 3, 'top');
grant all on docs, levels to policy_team, policy_boss;
create function shout(text) returns boolean language plpgsql cost 0.0001 as $$ begin raise notice 'sees %', $1; return true; end $$;
create function rank() returns int language sql stable as 'select most from levels where who = current_user';
grant all on function shout(text), rank() to public;

-- without a policy nothing is there; the owner and bypassrls see all
alter table docs enable row level security;
set role policy_ann;
select * from docs;
insert into docs values (9, 'policy_ann', 1, 'no');
select row_security_active('docs'), count(*) from docs;
set role policy_boss;
select row_security_active('docs'), count(*) from docs;
reset role;

-- permissive ones are alternatives, restrictive ones all hold
create policy p_read on docs for select using (level <= (select most from levels where who = current_user));
create policy p_own on docs to policy_team using (owner = current_user) with check (owner = current_user and level < 3);
create policy p_not on docs as restrictive using (body <> 'plain' or true) with check (body not like 'bad%');
set role policy_ann;
select * from docs order by id;
select id from docs where shout(body) order by id;
select id from docs where shout(body) and id = 1;
select a.id, b.id from docs a join docs b using (owner) where shout(a.body) order by 1, 2;
select id from docs d where exists (select from docs e where e.id = d.id + 1) order by id;
update docs set body = body || '!' returning id, body;
update docs set body = 'x';
update docs set owner = 'policy_bob';
update docs set body = 'bad' where id = 1;
delete from docs where id > 1;
insert into docs values (10, 'policy_ann', 2, 'fine');
insert into docs values (10, 'policy_ann', 2, 'fine') returning id;
insert into docs values (11, 'policy_ann', 3, 'fine');
insert into docs values (11, 'policy_bob', 1, 'fine');
insert into docs values (11, 'policy_ann', 1, 'bad one');
insert into docs values (3, 'policy_ann', 1, 'a key that is taken');
insert into docs select g, 'policy_ann', 1, 'many' from generate_series(100, 1200) g;
insert into docs select g, 'policy_ann', g - 2000, 'many' from generate_series(2000, 2003) g;
select count(*) from docs where body = 'many';
delete from docs where body = 'many';

-- ON CONFLICT and MERGE raise errors where rows are hidden
insert into docs values (1, 'policy_ann', 1, 'again') on conflict (id) do update set body = excluded.body returning body;
insert into docs values (2, 'policy_ann', 1, 'again') on conflict (id) do update set body = excluded.body;
insert into docs values (3, 'policy_ann', 1, 'again') on conflict (id) do nothing;
insert into docs values (1, 'policy_ann', 1, 'again') on conflict (id) do update set level = 5;
merge into docs d using (values (1, 'merged'), (20, 'new')) v (id, body) on d.id = v.id
  when matched then update set body = v.body when not matched then insert values (v.id, 'policy_ann', 1, v.body);
merge into docs d using (values (2)) v (id) on d.id = v.id when matched then update set body = 'mine';
merge into docs d using (values (2)) v (id) on d.id = v.id when matched then delete;
merge into docs d using (values (21)) v (id) on d.id = v.id when not matched then insert values (21, 'policy_bob', 1, 'x');
select * from docs order by id;
select id from docs order by id for update;
select id from docs order by id for share;
reset role;
select * from docs order by id;

-- row_security off is an error where rows would be hidden
set role policy_ann;
set row_security = off;
select count(*) from docs;
update docs set body = 'x';
copy docs to stdout;
reset role;
select count(*) from docs;
set role policy_boss;
select count(*) from docs;
reset row_security;
copy (select id from docs order by id) to stdout;
set role policy_ann;
copy docs from stdin;
\.

-- prepared statements follow the role and the policies
prepare mine as select id from docs order by id;
execute mine;
set role policy_bob;
execute mine;
reset role;
execute mine;
set role policy_ann;
reset role;
alter policy p_own on docs using (owner = current_user or owner = 'nobody');
set role policy_ann;
execute mine;
reset role;
deallocate mine;
create function mine() returns setof int language plpgsql as $$ begin return query select id from docs order by id; end $$;
create function theirs() returns setof int language plpgsql security definer as $$ begin return query select id from docs order by id; end $$;
create function ours() returns setof int language sql stable as 'select id from docs order by id';
grant all on function mine(), theirs(), ours() to policy_team, policy_boss;
alter function theirs() owner to policy_boss;
set role policy_ann;
select array(select mine()), array(select theirs()), array(select ours()), array(select id from ours() v (id));
set role policy_bob;
select array(select mine()), array(select theirs()), array(select ours()), array(select id from ours() v (id));
set row_security = off;
select mine();
reset row_security;
reset role;
select array(select mine()), array(select theirs()), array(select ours()), array(select id from ours() v (id));
drop function mine(), theirs(), ours();

-- views: those of the owner, or of whoever asks
create view all_docs as select * from docs;
create view my_docs with (security_invoker) as select * from docs;
grant all on all_docs, my_docs to policy_team;
set role policy_bob;
select id from all_docs order by id;
select id from my_docs order by id;
update all_docs set body = 'by view' where id = 1;
update my_docs set body = 'by view' where id = 2;
update my_docs set owner = 'policy_ann' where id = 2;
insert into my_docs values (30, 'policy_ann', 1, 'x');
reset role;
alter view all_docs owner to policy_bob;
grant all on all_docs to policy_ann;
set role policy_ann;
select id from all_docs order by id;
select id from docs where level <= rank() order by id;
reset role;
drop view all_docs;

-- the owner, forced
alter table docs owner to policy_bob;
set role policy_bob;
select count(*) from docs;
alter table docs force row level security;
select count(*) from docs;
set row_security = off;
select count(*) from docs;
reset row_security;
alter table docs no force row level security;
reset role;

-- foreign keys look at all rows, and tell of none
create table notes (id int primary key, doc int references docs);
grant all on notes to policy_team;
alter table notes enable row level security;
create policy all_notes on notes using (doc > 0);
set role policy_ann;
explain (costs off) select * from notes where id = 1;
insert into notes values (1, 4);
reset role;
insert into notes values (5, null);
set role policy_ann;
copy notes to stdout;
insert into notes values (2, 40);
insert into notes values (1, 4);
reset role;
alter table docs force row level security;
set role policy_bob;
delete from docs where id = 4;
delete from docs where id = 3;
insert into docs values (null, 'policy_bob', 1, 'x');
reset role;

-- partitions: the policies of the table that is named
create table parts (a int, b text) partition by list (a);
create table parts_1 partition of parts for values in (1);
create table parts_2 partition of parts for values in (2);
grant all on parts, parts_1, parts_2 to policy_team;
insert into parts values (1, 'one'), (2, 'two'), (2, 'hidden');
alter table parts enable row level security;
alter table parts_2 enable row level security;
create policy p on parts using (b <> 'hidden');
set role policy_ann;
select * from parts order by b;
select * from parts_1;
select * from parts_2;
insert into parts values (1, 'new'), (2, 'newer');
insert into parts values (2, 'hidden');
update parts set a = 2 where b = 'one';
update parts set a = 1, b = 'hidden' where b = 'two';
select tableoid::regclass, * from parts order by b;
select id from (values (1), (2)) v (id) where id in (select a from parts where shout(b)) order by id;
reset role;

-- two policies that each read the other's table
create table one (a int);
create table two (a int);
create policy p on one using (a in (select a from two));
create policy p on two using (a in (select a from one));
alter table one enable row level security;
grant all on one, two to policy_team;
set role policy_ann;
select * from one;
reset role;
alter table two enable row level security;
set role policy_ann;
select * from one;
reset role;
alter table two disable row level security;
insert into one values (1), (2);
insert into two values (2);
set role policy_ann;
select * from one;
reset role;

-- definitions
select policyname, permissive, roles, cmd, qual, with_check from pg_policies where schemaname = 'play' order by tablename, policyname;
\d docs
alter table docs rename column level to height;
alter table levels rename to heights;
select qual, with_check from pg_policies where policyname in ('p_read', 'p_own') order by policyname;
alter table docs alter column height type bigint;
alter table docs drop column height;
drop table heights;
create policy p_read on docs using (true);
create policy bad on docs for select with check (true);
create policy bad on docs for insert using (true);
create policy bad on docs using (count(*) > 0);
create policy bad on docs using (id);
create policy bad on docs using (generate_series(1, 2) > 0);
create policy bad on my_docs using (true);
create policy bad on docs to policy_ann, public using (true);
create policy bad on docs to nobody_at_all using (true);
alter policy bad on docs rename to p_read;
alter policy bad on docs rename to good;
alter policy p_read on docs with check (true);
alter policy none on docs using (true);
alter policy good on docs to policy_ann, policy_bob;
comment on policy good on docs is 'fine';
comment on policy none on docs is 'none';
select obj_description(oid, 'pg_policy') from pg_policy where polname = 'good';
drop policy none on docs;
drop policy if exists none on docs;
drop policy if exists none on no_table;
alter view my_docs enable row level security;
drop role policy_ann;
drop owned by policy_ann;
select polname, (select array_agg(rolname order by 1) from pg_roles where oid = any (polroles)) from pg_policy where polname = 'good';
drop owned by policy_team;
select polname from pg_policy where polrelid = 'docs'::regclass order by 1;
set role policy_ann;
create policy no on docs using (true);
reset role;
alter table docs drop column height cascade;
select polname from pg_policy where polrelid = 'docs'::regclass order by 1;
drop table docs, heights, notes, parts, one, two cascade;
select count(*) from pg_policy where polrelid > 16384;
drop owned by policy_ann, policy_bob, policy_boss, policy_team;
drop role policy_ann, policy_bob, policy_boss, policy_team;
