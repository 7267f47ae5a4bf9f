-- Skewed and correlated data for `cargo xtask estimates`: frequencies by Zipf's law, columns that follow from others, dates in order, NULLs.
-- scatter(i, n): a number from 0 to 1 without an order, the same each time.
create function scatter(i bigint, n bigint) returns float8 language sql immutable as
  $$ select (hashint8(i * 16 + n)::float8 + 2147483648) / 4294967296 $$;
-- One of n values, 0 first; the k-th is about 1 / k times as frequent as the first.
create function zipf(u float8, n bigint) returns int language sql immutable as $$ select floor(exp(u * ln(n)))::int - 1 $$;

create table product (id int primary key, name text not null, category text not null, price numeric(8, 2) not null);
insert into product select i, (array['small', 'large', 'old', 'new'])[1 + i % 4] || ' ' || (array['chair', 'table', 'lamp'])[1 + i % 3] || ' ' || i,
  'category ' || zipf(scatter(i, 1), 40), round((5 + 2000 / (1 + i % 100))::numeric, 2) from generate_series(0, 1999) i;

create table person (id int primary key, zip int not null, city text not null, country text not null, age int not null, born date not null,
  joined date not null, ended date, name text not null, note text);
insert into person select i, z, 'city ' || z / 10, 'country ' || z / 100, age, date '2024-01-01' - age * 365, joined,
  case when scatter(i, 5) < 0.2 then joined + (scatter(i, 6) * 400)::int end,
  (array['Anna', 'Bela', 'Carl', 'Dora', 'Emil'])[1 + zipf(scatter(i, 7), 5)] || ' ' || chr(65 + zipf(scatter(i, 8), 26)) || i % 977,
  case when scatter(i, 9) < 0.1 then (array['complaint about the delivery', 'praise', 'question'])[1 + (scatter(i, 10) * 3)::int] end
from (select i, zipf(scatter(i, 1), 2000) z, 18 + (60 * scatter(i, 2) * scatter(i, 3))::int age,
  date '2015-01-01' + i / 20 + (scatter(i, 4) * 30)::int joined from generate_series(0, 59999) i) p;

create table purchase (id int primary key, person int not null, product int not null, quantity int not null, amount numeric(10, 2) not null,
  ordered date not null, shipped date, received date, status text not null);
insert into purchase select i, zipf(scatter(i, 1), 60000), product, quantity, quantity * round((5 + 2000 / (1 + product % 100))::numeric, 2), ordered,
  case when not lost then ordered + delay end, case when not lost and scatter(i, 6) < 0.97 then ordered + delay + (scatter(i, 7) * 10)::int end,
  case when lost then 'lost' when scatter(i, 6) < 0.97 then 'done' else 'sent' end
from (select i, zipf(scatter(i, 2), 2000) product, 1 + zipf(scatter(i, 3), 50) quantity, date '2020-01-01' + i / 150 ordered,
  zipf(scatter(i, 4), 30) delay, scatter(i, 5) < 0.02 lost from generate_series(0, 199999) i) p;
