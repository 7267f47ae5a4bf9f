-- String literals by standard_conforming_strings, escape_string_warning and backslash_quote.
\pset null <null>
show standard_conforming_strings;
select 'a\b', 'it\\''s', E'tab\there';
create view strings_shown as select 'a\b'::text as x, E'c\\d' as y;
select pg_get_viewdef('strings_shown');
set standard_conforming_strings = off;
select 'a\b', 'a\\b', 'tab\there', '\'', '\u00e4', '\x41\101', E'\t', $$a\b$$, b'1', x'1f', "x\".q" from (values (1)) as "x\"(q);
-- The same text is another statement now; one that differs in its literals only shares its plan.
select 'a\b', 'it\\''s', E'tab\there';
select 'ab', 5;
select 'cd', 6;
select 'a\\b', 5;
select 'c\\d', 6;
select pg_get_viewdef('strings_shown');
select n'a\tb', 'x' -- goes on
 'y\n';
select '\
';
select 'abc' like 'a\\bc', 'a\\bc' like 'a\\\\bc', quote_literal('a\\b'), quote_ident('a\\b'), quote_nullable('\\');
-- Stored expressions have the same meaning under both settings.
create temp table strings (a text default 'x\\y' check (a <> 'q\\r'));
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'strings'::regclass;
insert into strings default values;
insert into strings values ('q\\r');
set standard_conforming_strings = on;
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'strings'::regclass;
select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'strings'::regclass and contype = 'c';
insert into strings default values;
insert into strings values ('q\r');
select * from strings;
select * from strings_shown;
drop view strings_shown;
-- Errors: no warning of what comes after them.
set standard_conforming_strings = off;
insert into nosuch values ('a\'b');
select '\\', 'a', from from '\\';
\set VERBOSITY terse
select U&'\0061';
\set VERBOSITY default
set backslash_quote = off;
select 'a\'b';
select E'a\'b', 1;
set standard_conforming_strings = on;
select E'a\'b', 1;
select 'a\', 1;
reset backslash_quote;
select E'a\'b', 1;
-- Prepared and local.
set escape_string_warning = off;
set standard_conforming_strings = off;
prepare p as select 'a\\b', '\\';
set standard_conforming_strings = on;
execute p;
begin;
set local standard_conforming_strings = off;
select 'a\tb';
rollback;
select 'a\tb';
set standard_conforming_strings = off; select 'still\the old way';
select 'now\tthe new way';
reset standard_conforming_strings;
-- A function's text is read when it runs.
create function strings_read() returns text language sql as $$ select 'a\\b'::text $$;
select strings_read();
set standard_conforming_strings = off;
set escape_string_warning = off;
select strings_read();
reset standard_conforming_strings;
select strings_read();
drop function strings_read();

-- Padding to any length.
select length('a'::char(100000) || '|'), octet_length('ä'::char(70000));

-- Names that are too long are cut, and told of where they are read.
create table a_name_that_has_more_than_sixty_three_letters_and_is_therefore_cut_somewhere (b int);
select "B"."b" as "a name of sixty-three characters, spaces and signs included: cut"
from a_name_that_has_more_than_sixty_three_letters_and_is_THEREFORE_cut_somewhere as "B";
select 1 as "äöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöü", 'a_string_of_more_than_sixty_three_letters_is_no_name_and_is_never_cut';
-- not behind an error, nor where nobody wants to know
select 1 2 a_name_that_has_more_than_sixty_three_letters_and_is_therefore_cut_somewhere;
set client_min_messages = warning;
drop table a_name_that_has_more_than_sixty_three_letters_and_is_therefore_cut_somewhere;
reset client_min_messages;
