-- subqueries of views that are changed are read with the privileges of the views' owners
create role view_owner;
create role view_inner;
create role view_user;
grant create, usage on schema play to view_owner, view_inner;
grant usage on schema play to view_user;
create table items (id int primary key, kind int, note text);
create table kinds (id int, name text);
insert into items values (1, 1, 'a'), (2, 2, 'b'), (3, 1, 'c');
insert into kinds values (1, 'seen'), (2, 'hidden');
grant select, insert, update, delete on items to view_owner, view_inner, view_user;
grant select on kinds to view_owner;
set role view_owner;
create view seen as select id, kind, note, (select count(*) from kinds) as n from items
  where kind in (select k.id from kinds k where name = 'seen') with check option;
grant all on seen to view_user, view_inner;
create view seen_by_user with (security_invoker) as select * from items i where exists (select from kinds k where k.id = i.kind and name = 'seen');
grant all on seen_by_user to view_user, view_inner;
set role view_user;
select * from kinds;
select id, n from seen order by 1;
update seen set note = 'x' where id = 1 returning id, note, n;
update seen set note = 'y' where n = 2 and id = 1 returning id;
delete from seen where id = 3;
insert into seen values (4, 1, 'd');
insert into seen values (5, 2, 'e');
select * from seen_by_user;
update seen_by_user set note = 'z';
delete from seen_by_user;
update seen set note = 'no' where exists (select from kinds);
reset role;

-- an invoker's view is the user's, also in views of others
set role view_owner;
create view over_invoker as select * from seen_by_user;
grant all on over_invoker to view_user;
set role view_inner;
create view over_invoker_too as select * from seen_by_user;
create view over_owner as select * from seen where exists (select from items);
grant all on over_invoker_too, over_owner to view_user;
set role view_user;
update over_invoker set note = 'through' where id = 1 returning *;
update over_invoker_too set note = 'through' where id = 1 returning *;
update over_owner set note = 'over' where id = 1 returning *;
reset role;

-- and by the policies for them
alter table kinds enable row level security;
create policy all_of_owner on kinds to view_owner using (true);
grant select on kinds to view_user;
set role view_user;
update seen set note = 'policy' where id = 1 returning *;
update seen_by_user set note = 'policy' where id = 1 returning *;
reset role;
select * from items order by 1;
drop view over_invoker, over_invoker_too, over_owner, seen, seen_by_user;
drop table items, kinds;
revoke create, usage on schema play from view_owner, view_inner, view_user;
drop role view_owner, view_inner, view_user;
