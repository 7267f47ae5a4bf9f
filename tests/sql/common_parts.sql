-- Parts that arguments of aggregates have in common.
create table bought (customer int, part int, line int not null, price numeric(10,2), discount numeric(4,2), primary key (customer, part, line));
insert into bought select i % 47, i % 13, i, i * 1.25, (i % 7) / 100.0 from generate_series(1, 600) i;
select customer % 3, sum(price * (1 - discount)), sum(price * (1 - discount) * (1 + discount)), avg(price * (1 - discount)), count(*)
    from bought group by 1 order by 1;
select sum(price * (1 - discount)) filter (where price > 300), sum(price * (1 - discount) + 1), max(price * (1 - discount)) from bought;
select sum(case when part = 3 then price * (1 - discount) else 0 end), sum(price * (1 - discount)) from bought;
select count(distinct price * 2), sum(price * 2), sum(distinct price * 2) from bought;
select part, array_agg(price * 2 order by price * 2, line) from bought where line < 30 group by part order by part;
-- What only some rows compute raises no error in others.
select sum(case when discount > 0 then 1 / discount end), sum(case when discount > 0 then 2 / discount + 1 / discount end) from bought;
select sum(1 / discount) filter (where discount > 0), sum(2 * (1 / discount)) filter (where discount > 0.02) from bought;
select sum(1 / discount) filter (where discount > 0), sum(2 * (1 / discount)) from bought;
select count(random() + line), count(random() + line) from bought;
select customer, sum(price + line) + max(price + line) as both from bought group by customer having sum(price + line) > 6000 order by 2, 1;
select sum(n) over (order by part), part from (select part, sum(price * 3) + max(price * 3) n from bought group by part) p order by part;
