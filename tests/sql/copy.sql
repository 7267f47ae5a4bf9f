-- COPY and its options.
create table t (a int, b text, c numeric default 7);
copy t from stdin;
1	one	1.5
2	tab\there\\ \x41\101\n	\N
\.
\copy t (a, b) from program 'printf "3,\"quoted, \"\"text\"\"\nand a line\"\n4,\n5,\"\"\n"' (format csv)
\copy t from program 'printf "a;b;c\n6;~x;y~;nil\nnil;nil;nil\n"' with (format csv, header, delimiter ';', null 'nil', quote '~')
\copy t from program 'printf "\"10\",\"a\"\"b\"\r\n11,\"x\r\ny\"\r\n"' (format csv)
\copy t (a, b) from program 'printf "12,e\\\\\"e\n13,\"a\\\\\"b\"\n"' (format csv, escape '\')
copy t (b, a) from stdin (delimiter '|', null '');
seven|7
|8
\.
select * from t order by a, b;
copy t to stdout;
copy t to stdout (format csv);
copy t to stdout (format csv, header, force_quote *);
copy t (b, a) to stdout (format csv, force_quote (a), delimiter E'\t', null 'NULL');
copy (select a, b from t where a < 3 order by a desc) to stdout with (delimiter ',', null '~');
copy t to stdout csv quote '"' escape '\';
copy t from stdin;
x	y	z
\.
copy t from stdin;
1	2
\.
copy t from stdin;
1	2	3	4
\.
\copy t from program 'printf "1,\"unterminated\n"' (format csv)
\copy t from program 'printf "20,,\"\"\n"' (format csv, force_not_null (b), force_null (c))
select a, b is null, c is null from t where a = 20;
copy t from stdin where a > 30;
30	no	1
31	yes	1
\.
select a from t where a >= 30;
copy t from stdin (header match);
a	b	wrong
\.
\copy t from program 'printf "a,b,c\n40,x,1\n"' (format csv, header match)
copy t (a, a) from stdin;
\.
copy t (missing) from stdin;
\.
copy missing from stdin;
\.
copy t from stdin (delimiter 'ab');
\.
copy t from stdin (format nothing);
\.
copy t from stdin (delimiter E'\n');
\.
copy t from stdin (format csv, quote ',');
\.
copy t from stdin (null E'\n');
\.
copy t to stdout (format csv, header match);
create table strict (id int primary key, v int not null check (v > 0), at timestamptz, j jsonb, l int[]);
copy strict from stdin;
1	1	2024-01-01 00:00:00+00	{"a": "b\\nc"}	{1,2}
2	2	\N	\N	{}
\.
copy strict to stdout;
copy strict from stdin;
3	3	\N	\N	\N
1	1	\N	\N	\N
\.
copy strict from stdin;
3	0	\N	\N	\N
\.
copy strict from stdin;
3	\N	\N	\N	\N
\.
select count(*) from strict;
copy (insert into strict values (9, 9) returning id, v) to stdout;
copy (select 1; select 2) to stdout;
begin;
copy t (a) from stdin;
99
\.
rollback;
select count(*) from t where a = 99;
create view v as select * from t;
copy v to stdout;
copy (select * from v where a = 1) to stdout (format csv);
-- Lines of CSV that are taken together, and those between them that are not.
create table csv_lines (a int, b text, c bigint);
\copy csv_lines from program 'printf "1,one,10\n2,,\n3,\\\\.,30\n4,\"four,\n4\",40\n5,a\\tb,-50\n,\"\",\n7,seven\"\"7\",70\r\n8,eight,80\n"' (format csv)
\copy csv_lines from program 'printf "1,nil,10\n2,n,20\nnil,nil,nil\n3,\"nil\",30\n"' (format csv, null 'nil')
\copy csv_lines from program 'printf "9,nil,10\n9,n,20\n"' (format csv, null 'nil', force_not_null (b))
\copy csv_lines (c, a) from program 'printf "c,a\n11,1\n12,2\n"' (format csv, header)
\copy csv_lines from program 'printf "1,one,10\n2,two,20\n3,three,x\n4,four,40\n"' (format csv)
\copy csv_lines from program 'printf "1,one,10\n2,two\n3,three,30\n"' (format csv)
\copy csv_lines from program 'printf "1,one,10\n2,two,20,x\n"' (format csv)
\copy csv_lines from program 'printf "1,one,10\n2,\"two,20\n"' (format csv)
select a, b, b is null as is_null, c from csv_lines order by c, a, b;
drop table csv_lines;
