-- Texts that differ in digits only, in blocks: each comparison answers as a comparison of texts.
create table phones (n int primary key, phone text, maybe varchar(20), day char(10), mixed text);
insert into phones
    select n, '13' || lpad((n * 499979::bigint % 1000000000)::text, 9, '0'),
        case when n % 7 <> 3 then 'no. ' || lpad((n * 7919 % 100000)::text, 5, '0') end,
        to_char(date '2000-01-01' + n % 4000, 'YYYY-MM-DD'),
        case when n = 20000 then 'withheld' else lpad((n * 31 % 1000)::text, 3, '0') end
    from generate_series(1, 40000) n;
checkpoint;

select count(*), min(phone), max(phone), sum(n) from phones where phone between '134' and '1355';
select count(*), min(phone), max(phone), sum(n) from phones where phone > '13500000000' and phone <= '13600000000';
select count(*) from phones where phone >= '13' and phone < '14';
select count(*) from phones where phone < '13';
select count(*) from phones where phone > '14';
select count(*) from phones where phone > '13:';
select count(*) from phones where phone < '13/';
select count(*) from phones where phone <> '13000499979';
select n, phone from phones where phone = '13000499979';
select n from phones where phone = '1300049997';
select n from phones where phone = '130004999790';
select n from phones where phone = '13000499979 ';
select n from phones where phone in ('13000499979', '13000999958', 'x', null) order by n;
select n from phones where phone = any (array['13001499937']) order by n;
select n from phones where phone = null;

-- Prefixes.
select count(*), sum(n) from phones where phone like '1344%';
select count(*), sum(n) from phones where phone like '1344%%';
select count(*), sum(n) from phones where phone like '1344_%';
select count(*), sum(n) from phones where phone like '134%9';
select count(*), sum(n) from phones where phone like '134';
select count(*), sum(n) from phones where phone like '12%';
select count(*), sum(n) from phones where phone like '13a%';
select count(*), sum(n) from phones where phone like '%';
select count(*), sum(n) from phones where phone like '\13%';
select count(*), sum(n) from phones where phone like '13%' escape '';
select count(*), sum(n) from phones where phone not like '134%';
select count(*), sum(n) from phones where phone ilike '1344%';
select count(*), sum(n) from phones where phone ~ '^1344';
select count(*), sum(n) from phones where phone ~ '^1344.*7$';
select count(*), sum(n) from phones where phone ~ '^(1344|1355)';
select count(*), sum(n) from phones where starts_with(phone, '1344');
select count(*), sum(n) from phones where phone like null;
prepare by_prefix(text) as select count(*), sum(n) from phones where phone like $1;
execute by_prefix('1344%');
execute by_prefix('%44');
execute by_prefix(null);
set plan_cache_mode = force_generic_plan;
execute by_prefix('1344%');
execute by_prefix('%44');
execute by_prefix(null);
reset plan_cache_mode;

-- Columns with nulls, of other types, and with one value that is no digits.
select count(*), min(maybe), max(maybe), sum(n) from phones where maybe >= 'no. 5' and maybe < 'no. 6';
select count(*) from phones where maybe is null;
select count(*), sum(n) from phones where maybe like 'no. 99%' or maybe is null;
select count(*), sum(n) from phones where not (maybe < 'no. 5');
select count(*), sum(n) from phones where day = '2005-05-05';
select count(*), sum(n) from phones where day = '2005-05-05  ';
select count(*), min(day), max(day) from phones where day between '2001-02-03' and '2002-03-04';
select count(*), min(day), max(day) from phones where day like '2001-02%';
select count(*), sum(n) from phones where mixed >= '9';
select count(*), sum(n) from phones where mixed like 'w%';

-- Several conditions, and such as would fail for rows that others leave out.
select count(*), sum(n) from phones where phone like '134%' and maybe > 'no. 5' and day < '2003';
select count(*), sum(n) from phones where phone like '134%' and n % 2 = 0;
select count(*), sum(n) from phones where n % 2 = 0 and phone like '134%';
select count(*), sum(n) from phones where n % 2 = 0 and phone >= '134' and n % 3 = 0 and phone < '135';
select count(*), sum(n) from phones where n % 2 = 0 and phone ~ '^134';
select count(*), sum(n) from phones where maybe <> 'no. 00001' and phone = any (array['13000999958']) and n % 2 = 0;
select count(*), sum(n) from phones where mixed > '5' and maybe like 'no. 9%' and n % 2 = 0 and phone like '134%' and day < '2003';
select count(*) from phones a join phones b on a.n = b.n where b.n % 2 = 0 and a.phone like '1344%';
select count(*) from phones where phone < '13' and 1 / (n - n) = 0;
select n, phone, maybe, day from phones where phone between '13000' and '130001' order by phone limit 5;
select phone from phones order by phone desc limit 3;
select phone from phones order by phone limit 3 offset 2;
select maybe from phones order by maybe desc limit 3;
select maybe from phones order by maybe desc nulls last limit 3;
select maybe from phones order by maybe limit 3;
select substr(phone, 1, 4) as start, count(*) from phones where phone < '1304' group by 1 order by 1;
select count(distinct phone), count(distinct maybe) from phones where phone like '13%';
select a.n, b.n from phones a join phones b on a.phone = b.phone where a.phone like '1300049%' order by 1;

-- After changes: newer rows are elsewhere.
delete from phones where n % 10 = 0;
update phones set phone = 'none' where n % 10 = 1;
select count(*), sum(n) from phones where phone like '134%';
select count(*), sum(n) from phones where phone > '139';
select count(*), sum(n) from phones where phone = 'none';
select count(*), count(maybe), sum(n) from phones where maybe >= 'no. 5';
checkpoint;
vacuum phones;
select count(*), sum(n) from phones where phone like '134%';
select count(*), sum(n) from phones where phone > '139';
select count(*), sum(n) from phones where phone = 'none';
begin;
insert into phones values (0, '13400000000', 'no. 00000', '2000-01-01', '000');
select count(*), sum(n) from phones where phone like '134%';
rollback;
select count(*), sum(n) from phones where phone like '134%';

-- Other collations.
create table names (n int, plain text, folded text collate "C");
insert into names select n, lpad((n * 7919 % 100000)::text, 5, '0'), lpad((n * 7919 % 100000)::text, 5, '0') from generate_series(1, 20000) n;
checkpoint;
select count(*), sum(n) from names where plain > '5' and plain < '6';
select count(*), sum(n) from names where folded > '5' and folded < '6';
select count(*), sum(n) from names where plain collate "C" > '5a';
select count(*), sum(n) from names where plain = '00042' collate "C";
drop table phones, names;
