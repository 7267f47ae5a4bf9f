-- What the tour of README.md leaves behind; the answers are in expected.txt.
select count(*), count(distinct url), min(id), max(id) from pages;
select sum(length(body)) from pages;
select bool_and(body like '<?xml%' and body like '%</html>%') from pages;
select url from pages where url like 'sql-create%' order by url limit 5;
select body like '%Melba%', body not like '%PostgreSQL%' from pages where url = 'sql-select.html';
select count(*), count(distinct page), min(page), max(page) from visits;
select max(at) - min(at) from visits;
select p.url, count(*) from visits v join pages p on p.id = v.page group by 1 order by 2 desc, 1 limit 5;
select count(*) from pages p where not exists (select from visits v where v.page = p.id);
select conname, contype from pg_constraint where conrelid in ('pages'::regclass, 'visits'::regclass) and contype <> 'n' order by 1;
select pg_total_relation_size('pages') > 0;
