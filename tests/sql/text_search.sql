-- tsvector and tsquery, the parser, dictionaries, ranks, headlines

-- input and output
SELECT '1 2 1:3a,2B 3:7,7c,1 '' a'':9 b\ c d:99999'::tsvector;
SELECT 'a:1 a:2A a:2'::tsvector, 'b a c'::tsvector = 'a b c'::tsvector AS same, ''::tsvector AS empty;
SELECT 'a:0'::tsvector;
SELECT '''a'::tsvector;
SELECT 'a & b | !c'::tsquery, '!(a & b) <-> c'::tsquery, 'a <3> (b <-> c):A'::tsquery;
SELECT 'a:*AB & ''b c'':d | a\:b'::tsquery, plainto_tsquery('') AS empty;
SELECT 'a &'::tsquery;
SELECT '(a'::tsquery;
SELECT 'a b'::tsquery;
SELECT 'a <99999> b'::tsquery;
SELECT tsvectorsend('a:1A b:2,3'), tsquerysend('a:*B & !b <2> c');
SELECT v FROM (VALUES ('b:2'::tsvector), ('a:1'), ('a'), ('aaa'), ('a b'), ('a:1A'), ('a:1,2')) AS x(v) ORDER BY v;
SELECT q FROM (VALUES ('b'::tsquery), ('a'), ('a & b'), ('a | b'), ('!a'), ('aaa'), ('a <-> b'), ('a <2> b')) AS x(q) ORDER BY q;
SELECT 'a'::tsvector < 'b'::tsvector, 'a:1'::tsvector <> 'a', 'a'::tsquery >= 'b', max(v) FROM (VALUES ('x'), ('y')) AS x(v);
CREATE TABLE ts_copy (v tsvector, q tsquery, c regconfig, d regdictionary);
INSERT INTO ts_copy VALUES ('a:1B b', 'a <-> b:*', 'english', 'simple'), (NULL, '!a', 'pg_catalog.simple', 'english_stem');
COPY ts_copy TO stdout;
CREATE INDEX ON ts_copy (v);
SELECT * FROM ts_copy WHERE v = 'a:1B b';
DROP TABLE ts_copy;

-- functions of vectors
SELECT setweight('a:1 b:2B c'::tsvector, 'A'), setweight('a:1 b:2'::tsvector, 'c', '{b,x,NULL}'), strip('a:1 b:2A'::tsvector);
SELECT 'a:1 b:2A c'::tsvector || 'a:1B d:2 e'::tsvector, length('a:1 b:2A c'::tsvector);
SELECT ts_delete('a:1 b:2 c'::tsvector, 'b'), ts_delete('a:1 b:2 c'::tsvector, '{a,c,x}'), ts_filter('a:1A,2 b:2B c'::tsvector, '{a,b}');
SELECT tsvector_to_array('b:1 a:2'::tsvector), array_to_tsvector('{b,a,b}');
SELECT array_to_tsvector('{a,NULL}');
SELECT array_to_tsvector('{a,""}');
SELECT * FROM unnest('a:1A,3 b'::tsvector);
SELECT 'a:1 b:2'::tsvector @@ 'a <-> b', 'a:1 b:3'::tsvector @@ 'a <-> b', 'a b'::tsvector @@ 'a <-> b', 'a:1 b:3'::tsvector @@ 'a <2> b';
SELECT 'a:1A'::tsvector @@ 'a:B', 'a:1A'::tsvector @@ 'a:AB', 'a'::tsvector @@ 'a:B', 'abc:1'::tsvector @@ 'ab:*', 'a'::tsvector @@ plainto_tsquery('');
SELECT 'a:1 b:2 c:3'::tsvector @@ q AS matches, q FROM unnest('{a & !x,!a | c,!a <-> b,!x <-> b,a <-> !c,a <-> (b & c),a <-> (b | x) <-> c,
  (a <-> b) & !(b <-> a),!!a,x:* | c:*,a <2> c <0> c}'::tsquery[]) AS q;
SELECT q @@@ v FROM (VALUES ('a:1'::tsvector, 'a'::tsquery)) AS x(v, q);

-- functions of queries
SELECT 'a'::tsquery && 'b | c', 'a'::tsquery || 'b & c', !!'a & b'::tsquery, 'a'::tsquery <-> 'b <2> c', tsquery_phrase('a', 'b', 5);
SELECT 'a'::tsquery && e, e || 'b', !!e, numnode(e), querytree(e), ts_rewrite('a | b', 'b', e), ts_rewrite('a', 'a', e) FROM plainto_tsquery('') AS e;
SELECT tsquery_phrase('a', 'b', -1);
SELECT numnode('a & !b | c'::tsquery), querytree('a & !b'::tsquery), querytree('!a'::tsquery), querytree('a | !b'::tsquery);
SELECT 'a & b'::tsquery @> 'a', 'a'::tsquery <@ 'a | b', 'a'::tsquery @> 'b';
SELECT ts_rewrite('a & b & c', 'c & a', 'x | y'), ts_rewrite('!a & (b | c)', 'c | b', 'd <-> e');
SELECT ts_rewrite('a & b & c & d & e', 'x', 'y'), ts_rewrite('d | c | b | a', 'a', 'z & y');

-- the parser
SELECT tokid, alias, description FROM ts_token_type('default');
SELECT tokid, token FROM ts_parse('default', '345 qwe@efd.r '' http://www.com/ http://aew.werc.ewr/?ad=qwe&dw 1aew.werc.ewr/?ad=qwe&dw 2aew.werc.ewr
  http://3aew.werc.ewr/?ad=qwe&dw http://4aew.werc.ewr http://5aew.werc.ewr:8100/? ad=qwe&dw 6aew.werc.ewr:8100/?ad=qwe&dw +4.0e-10 qwe qwe qwqwe 234.435 455
  5.005 teodor@stack.net qwe-wer asdf <fr>qwer jf sdjk<we hjwer <werrwe> ewr1> ewri2 <a href="qwe<qwe>"> /usr/local/fff /awdf/dwqe/4325 rewt/ewr
  wefjn /wqe-324/ewr gist.h gist.h.c gist.c. readline 4.2 4.2. 4.2, readline-4.2 readline-4.2. 234 <i <b> wow < jqw <> qwerty');
SELECT tokid, token FROM ts_parse(3722, 'a-b-c a1-b foo-12 12-foo -1 -1.5 -1.2.3 1.2.3.4 1e5 1e a_b a.b.c ../x/y ./z ~/w /tmp/a.b x@y.zz &amp; &#12; &#xff;');
SELECT tokid, token FROM ts_parse('default', '<script type="a">b c</script> <!-- d --> <?xml v="1"?> <!DOCTYPE e> <f/> </g> <h i=j>');
SELECT * FROM ts_parse('nosuch', 'a');

-- documents and queries of configurations
SELECT to_tsvector('english', 'The quick brown foxes jumped over the lazy dogs, and ran away from it'), to_tsvector('simple', 'The QUICK foxes');
SELECT to_tsvector('skies sky skying'), to_tsvector('pg_catalog.german', 'Die Häuser und der schöne Garten'), to_tsvector('');
SELECT to_tsquery('english', 'cats & !the | dogs:*A'), to_tsquery('the <-> quick <-> a <-> fox'), to_tsquery('foo-bar'), to_tsquery('the');
SELECT plainto_tsquery('The fat & rats'), phraseto_tsquery('the fat and the rats'), plainto_tsquery('simple', 'a a'), phraseto_tsquery('');
SELECT websearch_to_tsquery(q) FROM unnest('{fat rat,"\"fat rat\" or cat",fat -rat,"\"a big\" -dog or \"the",or or or,"fat or","fat - rat",":a (b) & c"}'::text[]) AS q;
SELECT to_tsvector('nosuch', 'a');
SELECT 'fat cats'::text @@ 'cat'::text, 'fat cats'::text @@ 'cat & rat'::tsquery;
SELECT ts_lexize('english_stem', 'running'), ts_lexize('english_stem', 'the'), ts_lexize('simple', 'The');
SELECT * FROM ts_debug('english', 'a fox-hunt 12');
SELECT get_current_ts_config();
SET default_text_search_config = simple;
SHOW default_text_search_config;
SELECT to_tsvector('the cats'), get_current_ts_config();
SET default_text_search_config = nosuch;
RESET default_text_search_config;
SELECT to_tsvector('english', '{"a": "cats", "b": [1, true, {"c": "dogs"}]}'::json), to_tsvector('english', '{"b": "cats", "a": [1, true, {"c": "dogs"}]}'::jsonb);
SELECT json_to_tsvector('english', '{"a": "cats", "b": [1, true]}', '["string", "numeric"]'), jsonb_to_tsvector('english', '{"a": "cats", "b": [1, true]}', '"all"');
SELECT jsonb_to_tsvector('english', '{}', '"x"');
SELECT jsonb_to_tsvector('english', '{}', '{}');

-- ranks
SELECT ts_rank(v, q), ts_rank(v, q, 1), ts_rank(v, q, 2|8|16|32), ts_rank('{0.1, 0.2, 0.3, 0.4}', v, q), ts_rank_cd(v, q), ts_rank_cd(v, q, 63), ts_rank_cd('{0.1,-1,0.3,0.4}', v, q, 4)
FROM (VALUES ('a:1,5,9A b:3 c:2B,12 d'::tsvector)) AS x(v), unnest('{a,a & b,a | b,a <2> b,a & c & b,d & a,x,a:* & !b,(a | c) & b}'::tsquery[]) AS q;
SELECT ts_rank('{1,2,3,4}', 'a:1', 'a');
SELECT ts_rank('{0.1}', 'a:1', 'a');

-- headlines
SELECT ts_headline('english', 'A document about cats and dogs, and about the <b>cat</b> that sat on a foo-bar mat', 'cat & mat'::tsquery);
SELECT ts_headline('english', repeat('word ', 50) || 'cats and dogs ' || repeat('other ', 50) || 'a dog', 'cat & dog'::tsquery, 'MaxWords=12, MinWords=4');
SELECT ts_headline('english', repeat('word ', 50) || 'cats and dogs ' || repeat('other ', 50) || 'a dog', 'cat | dog'::tsquery,
  'MaxFragments=3, MaxWords=6, MinWords=2, StartSel=[, StopSel="]", FragmentDelimiter='' ## ''');
SELECT ts_headline('cats', 'dog'::tsquery), ts_headline('cats and <i>dogs</i>', 'dog'::tsquery, 'HighlightAll=true'), ts_headline('', 'dog'::tsquery);
SELECT ts_headline('english', '{"a": "cats and dogs", "b": [1, "a dog"]}'::json, 'dog'::tsquery), ts_headline('english', '{"b": "cats and dogs"}'::jsonb, 'cat'::tsquery);
SELECT ts_headline('a', 'a'::tsquery, 'Nosuch=5');
SELECT ts_headline('a', 'a'::tsquery, 'x');

-- triggers and generated columns
CREATE TABLE ts_post (id int, title text, body varchar, config regconfig, v tsvector, w tsvector GENERATED ALWAYS AS (to_tsvector('english', title)) STORED);
CREATE TRIGGER by_name BEFORE INSERT OR UPDATE ON ts_post FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger(v, 'pg_catalog.english', title, body);
INSERT INTO ts_post VALUES (1, 'Fat cats', NULL), (2, 'The rats', 'sat on mats');
UPDATE ts_post SET v = NULL WHERE id = 1;
UPDATE ts_post SET title = title WHERE id = 2;
SELECT * FROM ts_post ORDER BY id;
DROP TRIGGER by_name ON ts_post;
CREATE TRIGGER by_column BEFORE INSERT OR UPDATE ON ts_post FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger_column(v, config, title);
UPDATE ts_post SET title = 'the cats', config = 'simple' WHERE id = 1;
UPDATE ts_post SET title = 'the cats' WHERE id = 2;
SELECT id, v FROM ts_post ORDER BY id;
DROP TRIGGER by_column ON ts_post;
CREATE TRIGGER wrong BEFORE INSERT ON ts_post FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger(v, 'english', title);
INSERT INTO ts_post VALUES (3, 'x');
DROP TRIGGER wrong ON ts_post;
CREATE TRIGGER wrong BEFORE INSERT ON ts_post FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger(v, 'pg_catalog.english', id);
INSERT INTO ts_post VALUES (3, 'x');
DROP TABLE ts_post;
