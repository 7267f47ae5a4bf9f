-- Frequent and rare values.
select count(*) from person where city = 'city 0';
select count(*) from person where city = 'city 150';
select count(*) from purchase where product = 0;
select count(*) from purchase where product in (0, 1, 2, 1500);
select count(*) from purchase where status = 'lost';
select count(*) from purchase where status <> 'done' and quantity > 10;
-- Columns that follow from each other.
select count(*) from person where zip = 0 and city = 'city 0' and country = 'country 0';
select count(*) from person where city = 'city 3' and country = 'country 0';
select count(*) from person where city = 'city 3' and country = 'country 5';
select count(*) from person where age > 60 and born < date '1964-01-01';
select count(*) from purchase where status = 'lost' and received is null;
select count(*) from purchase where shipped is null and received is null;
select count(*) from purchase where ordered >= date '2022-01-01' and received < date '2022-03-01';
-- Columns compared with each other, expressions, patterns.
select count(*) from purchase where received > shipped;
select count(*) from purchase where shipped - ordered > 10;
select count(*) from purchase where extract(year from ordered) = 2021;
select count(*) from purchase where amount > 1000 and quantity < 3;
select count(*) from person where name like 'Anna%';
select count(*) from person where note like '%complaint%';
select count(*) from person where name ~ '^(Carl|Dora) [A-C]';
select count(*) from person where city = 'city 0' or age < 20;
select count(*) from person where ended is not null and ended - joined < 100;
select count(*) from person where upper(name) = 'ANNA A1';
select count(*) from product where name like '%lamp%' and category = 'category 0';
-- Joins.
select count(*) from purchase join product on product.id = product where category = 'category 0';
select count(*) from purchase join person on person.id = person where status = 'sent' and age > 30;
select count(*) from purchase a join purchase b using (product) where a.status = 'lost' and b.status = 'lost';
select count(*) from person a join person b on a.city = b.city where a.note like 'praise%' and b.age > 70;
select count(*) from person where not exists (select from purchase where person = person.id);
select country, category, sum(amount) from purchase join person on person.id = person join product on product.id = product
  where ordered < date '2021-01-01' and quantity > 5 and person.name like '%B%' group by country, category;
select count(*) from person where id in (select person from purchase where status = 'lost');
select count(*) from person a, person b, purchase, product where a.zip = b.zip and b.id = purchase.person and product.id = product
  and a.note like 'question%' and b.ended is not null and status = 'sent' and price > 100;
