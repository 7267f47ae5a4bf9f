-- macaddr and macaddr8: spellings, order, bits, conversion, keys.
select t, t::macaddr, t::macaddr8 from (values ('08:00:2b:01:02:03'), ('08-00-2B-01-02-03'), ('08002b:010203'), ('08002b-010203'),
  ('0800.2b01.0203'), ('0800-2b01-0203'), ('08002b010203'), (' 08:00:2b:01:02:03 ')) v(t);
select '8:0:2b:1:2:3'::macaddr;
select '8:0:2b:1:2:3'::macaddr8;
select '08:00:2b:01:02'::macaddr;
select '08:00:2b:01:02:03:04'::macaddr;
select '08:00:2b:01:02:0g'::macaddr;
select '08:00:2b:01:02:100'::macaddr;
select '08-00:2b:01:02:03'::macaddr;
select ''::macaddr;
select 'ä8:00:2b:01:02:03'::macaddr;
select t::macaddr8, t::macaddr8::macaddr from (values ('08:00:2b:ff:fe:01:02:03'), ('08002bfffe010203'), ('0800.2bff.fe01.0203'), (' 08002b:fffe010203 ')) v(t);
select '08:00:2b:01:02:03:04:05'::macaddr8::macaddr;
select '08:00:2b-01:02:03:04:05'::macaddr8;
select '08:00:2b:01:02:03:04:05:06'::macaddr8;
select '08:00:2b:01:02:03:04'::macaddr8;
select '0800.2b01.0203 x'::macaddr8;
select 'zz'::macaddr8;
select macaddr8_set7bit('00:08:2b:01:02:03'), trunc('12:34:56:78:90:ab'::macaddr), trunc('12:34:56:78:90:ab:cd:ef'::macaddr8);
select ~ m, m & '00:00:00:ff:ff:ff', m | '01:02:03:04:05:06', ~ m::macaddr8, m::macaddr8 & '00:00:00:ff:ff:ff:ff:ff',
  m::macaddr8 | '01:02:03:04:05:06:07:08' from (values ('12:34:56:78:90:ab'::macaddr)) v(m);
select a < b, a <= b, a = b, a <> b, a >= b, a > b, hashmacaddr(a), hashmacaddr8(a::macaddr8), hashmacaddrextended(a, 7), hashmacaddr8extended(b::macaddr8, 7)
  from (values ('00:00:00:00:00:ff'::macaddr, 'ff:00:00:00:00:00'::macaddr)) v(a, b);
select encode(macaddr_send('08:00:2b:01:02:03'), 'hex'), encode(macaddr8_send('08:00:2b:01:02:03'), 'hex');
create table cards (id int primary key, m macaddr, l macaddr[]);
insert into cards select i, ('08:00:2b:01:02:' || lpad(to_hex(i % 50), 2, '0'))::macaddr, array['08:00:2b:00:00:01', null]::macaddr[] from generate_series(1, 200) i;
create index on cards (m);
checkpoint;
select count(*), (array_agg(m order by m))[1] from cards where m >= '08:00:2b:01:02:20';
select id from cards where m = '08:00:2b:01:02:05' order by id;
select m, count(*) from cards where id < 60 group by m having count(*) > 1 order by m desc;
select l from cards where id = 1;
drop table cards;
