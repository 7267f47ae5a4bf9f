-- What is too deep, too long or too complex is refused, as PostgreSQL refuses it.
\set VERBOSITY sqlstate
SELECT (repeat('[', 1000000) || repeat(']', 1000000))::json;
SELECT (repeat('[', 1000000) || repeat(']', 1000000))::jsonb;
SELECT ('$' || repeat('[0]', 100000))::jsonpath;
SELECT ('1' || repeat('+1', 100000))::jsonpath;
SELECT (repeat('{', 100000) || repeat('}', 100000))::int[];
SELECT length((repeat('[', 3000) || repeat(']', 3000))::jsonb::text);
SELECT 'a' ~ '((a{1,255}){1,255}){1,255}';
SELECT 'a' ~ (repeat('(', 100000) || 'a' || repeat(')', 100000));
SELECT repeat('abc', 2000000000);
SELECT lpad('x', 1000000000);
SELECT length(format('%2147483647s', 'x'));
SELECT length(replace(repeat('a', 100000), 'a', repeat('b', 20000)));
SELECT repeat('9', 1000000)::numeric;
SELECT count(*) FROM (SELECT x FROM (SELECT 1e100000::numeric AS x FROM generate_series(1, 2000)) q GROUP BY x) z;
SELECT length(1e100000::numeric::text), length((3e100000::numeric + 0)::text), 12e50::numeric, -5e40::numeric;
SELECT count(*), sum(length(repeat('x', 100000) || i)) FROM generate_series(1, 300) i;
SELECT pg_sleep('nan');

-- Values of functions.
SELECT to_timestamp('2018-11-02 12:34:56.123456', 'YYYY-MM-DD HH24:MI:SS.FF' || i) AT TIME ZONE current_setting('TimeZone')
  FROM generate_series(1, 6) i;
SELECT '12'::jsonb ->> 0, '12'::jsonb ->> -1, '12'::jsonb ->> 1, '"a"'::jsonb ->> 0, '[1]'::jsonb ->> 0;
SELECT '[2000-01-01,5874897-12-31]'::daterange;
SELECT '[2000-01-01,5874897-12-30]'::daterange;
SELECT min(i), max(i) FROM (VALUES ('10.0.0.1'::inet), ('192.168.1.0/24'), ('::1'), ('10.0.0.1/8')) v(i);
SELECT bit_and(b), bit_or(b), bit_xor(b) FROM (VALUES (B'1100'), (B'1010'), (NULL)) v(b);
SELECT bit_and(b) FROM (VALUES (B'1100'), (B'101')) v(b);
SELECT '10.0/16'::inet, '10/8'::inet, '10.1.2/24'::inet;
SELECT '10'::inet;
SELECT '10/16'::inet;
SELECT pg_size_bytes('1kB'), pg_size_bytes('1.5 GB'), pg_size_bytes('-.5 kb');
SELECT pg_size_bytes('1 AB');
SELECT current_query();
SELECT jsonb_path_query('["a.b", "pq", "abc"]', '$[*] ? (@ like_regex "^a\\.b")');
SELECT jsonb_path_query('["abc", "a\nb"]', '$[*] ? (@ like_regex "a.b")');
SELECT jsonb_path_query('["abc", "a\nb"]', '$[*] ? (@ like_regex "a.b" flag "s")');
SELECT jsonb_path_query('["a\nb"]', '$[*] ? (@ like_regex "^b" flag "m")');
SELECT jsonb_path_query('[null, 1, "a\b", "a\\b", "^a\\b$"]', 'lax $[*] ? (@ like_regex "^a\\b$" flag "q")');
SELECT '$ ? (@ like_regex "pattern" flag "xqi")'::jsonpath;
SELECT '$ ? (@ like_regex "(invalid pattern")'::jsonpath;
SELECT '$ ? (@ like_regex "pattern" flag "xsi")'::jsonpath;
