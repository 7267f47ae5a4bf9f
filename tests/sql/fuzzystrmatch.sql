-- fuzzystrmatch: distances of texts, codes of sounds.
create extension fuzzystrmatch;
select levenshtein('kitten', 'sitting'), levenshtein('', 'abc'), levenshtein('abc', ''), levenshtein('', ''), levenshtein('été', 'ete'), levenshtein('kitten', 'sitting', 2, 1, 1), levenshtein('kitten', 'sitting', 1, 1, 5), levenshtein('abc', '', 1, 7, 1), levenshtein(null, 'a');
select levenshtein_less_equal('kitten', 'sitting', 2), levenshtein_less_equal('kitten', 'sitting', 3), levenshtein_less_equal('kitten', 'sitting', -1), levenshtein_less_equal('', 'sitting', 3),
  levenshtein_less_equal('kitten', 'sitting', 4, 5, 6, 10), levenshtein_less_equal('kitten', 'sitting', 0, 0, 1, 0);
select levenshtein(repeat('a', 256), 'b');
select levenshtein(repeat('a', 255), 'b'), levenshtein(repeat('a', 256), '');
select soundex(w), text_soundex(w), difference(w, 'Robert'), w from unnest(array['Robert', 'Rupert', 'Ashcraft', 'Tymczak', 'o''Hara', '', '12', ' x', 'Pfister', 'Honeyman', 'élan']) w;
select metaphone(w, 10), metaphone(w, 3), w from unnest(array['Thompson', 'Knight', 'Wright', 'school', 'Schwarz', 'Xavier', 'rough', 'bough', 'signed', 'sign', 'gnome', 'aether', 'fox', 'nation', 'musician', 'science', 'edge', 'dumb', 'yes', 'why', '', '12', 'a b']) w;
select metaphone('abc', 0);
select metaphone('abc', 256);
select metaphone(repeat('a', 256), 4);
select metaphone('', 0);
select dmetaphone(w), dmetaphone_alt(w), w from unnest(array['Smith', 'Schmidt', 'Xavier', 'Caesar', 'McHugh', 'Gough', 'Filipowicz', 'Thomas', 'Jose', 'Michael', 'Edge', 'Island', 'Bajador', 'Breaux', 'Zhao', 'Arnow', 'Cabrillo', 'Wachtler', 'Accident', 'Bacchus', 'Rogier', 'Schenker', '', '12']) w;
select w from unnest(array['Anne', 'Andrew', 'Margaret', 'Ana']) w where soundex(w) = soundex('Ann') order by levenshtein(w, 'Ann'), w;
select proname, proargtypes::regtype[], provolatile from pg_proc where proname ~ '^(levenshtein|.*soundex|difference|d?metaphone)' order by 1, 2;
drop extension fuzzystrmatch;
