-- Arrays at the bounds of their subscripts.
select (array[1,2,3])[-2147483648:2147483647], ('[-2147483648:-2147483646]={1,2,3}'::int[])[:2147483647];
create temp table subscripts (a int[]);
insert into subscripts values ('{1,2,3}'), ('{}'), (null);
update subscripts set a[-2147483648:2147483647] = '{1,2}';
update subscripts set a[-2147483648:2147483647] = '{1,2}' where a = '{}';
update subscripts set a[2147483647] = 1 where a = '{}';
update subscripts set a[2147483646:2147483647] = '{1,2}' where a is null;
update subscripts set a[-2147483648] = 1 where a = '{1,2,3}';
update subscripts set a[3:2] = '{}' where a = '{1,2,3}';
update subscripts set a = '[2147483646:2147483646]={1}';
update subscripts set a[2147483647] = 7;
update subscripts set a[2147483644:2147483645] = '{8,9}';
select * from subscripts;
drop table subscripts;
