-- CREATE, ALTER and DROP TEXT SEARCH CONFIGURATION and DICTIONARY

CREATE SCHEMA ts_schema;
CREATE ROLE ts_role;
CREATE TEXT SEARCH DICTIONARY ts_simple (TEMPLATE = simple, STOPWORDS = english, Accept = false);
CREATE TEXT SEARCH DICTIONARY ts_schema.ts_stem (TEMPLATE = pg_catalog.snowball, Language = english);
\set VERBOSITY terse
CREATE TEXT SEARCH DICTIONARY ts_simple (TEMPLATE = simple);
\set VERBOSITY default
CREATE TEXT SEARCH DICTIONARY ts_wrong (STOPWORDS = english);
CREATE TEXT SEARCH DICTIONARY ts_wrong (TEMPLATE = nosuch);
CREATE TEXT SEARCH DICTIONARY ts_wrong (TEMPLATE = simple, nosuch = 1);
CREATE TEXT SEARCH DICTIONARY ts_wrong (TEMPLATE = snowball);
CREATE TEXT SEARCH DICTIONARY ts_wrong (TEMPLATE = snowball, language = klingon);
CREATE TEXT SEARCH DICTIONARY ts_wrong (TEMPLATE = snowball, language = english, language = german);
SELECT dictname, nspname, tmplname, dictinitoption FROM pg_ts_dict JOIN pg_namespace n ON n.oid = dictnamespace JOIN pg_ts_template t ON t.oid = dicttemplate
WHERE dictname ~ '^ts_' ORDER BY 1;
SELECT ts_lexize('ts_simple', 'The'), ts_lexize('ts_simple', 'cats') IS NULL, ts_lexize('ts_schema.ts_stem', 'the cats');
ALTER TEXT SEARCH DICTIONARY ts_simple (Accept);
ALTER TEXT SEARCH DICTIONARY ts_simple (StopWords = german, accept = true);
SELECT dictinitoption FROM pg_ts_dict WHERE dictname = 'ts_simple';
SELECT ts_lexize('ts_simple', 'The'), ts_lexize('ts_simple', 'Der');
ALTER TEXT SEARCH DICTIONARY ts_simple (nosuch = 1);
ALTER TEXT SEARCH DICTIONARY nosuch (StopWords);
CREATE TEXT SEARCH CONFIGURATION ts_config (PARSER = "default");
CREATE TEXT SEARCH CONFIGURATION ts_copy (COPY = pg_catalog.english);
\set VERBOSITY terse
CREATE TEXT SEARCH CONFIGURATION ts_copy (COPY = english);
\set VERBOSITY default
CREATE TEXT SEARCH CONFIGURATION ts_wrong (COPY = english, PARSER = pg_catalog.default);
CREATE TEXT SEARCH CONFIGURATION ts_wrong (COPY = nosuch);
CREATE TEXT SEARCH CONFIGURATION ts_wrong (nosuch = 1);
CREATE TEXT SEARCH CONFIGURATION ts_wrong ();
SELECT to_tsvector('ts_config', 'the cats'), to_tsvector('ts_copy', 'the cats run');
ALTER TEXT SEARCH CONFIGURATION ts_config ADD MAPPING FOR asciiword, word WITH ts_simple, ts_schema.ts_stem;
\set VERBOSITY terse
ALTER TEXT SEARCH CONFIGURATION ts_config ADD MAPPING FOR asciiword WITH simple;
\set VERBOSITY default
ALTER TEXT SEARCH CONFIGURATION ts_config ADD MAPPING FOR nosuch WITH simple;
ALTER TEXT SEARCH CONFIGURATION ts_config ADD MAPPING FOR uint WITH nosuch;
ALTER TEXT SEARCH DICTIONARY ts_simple (StopWords = english, accept = false);
SELECT to_tsvector('ts_config', 'the cats 12 run'), 'ts_config'::regconfig, 'ts_schema.ts_stem'::regdictionary;
ALTER TEXT SEARCH CONFIGURATION ts_config ALTER MAPPING REPLACE ts_schema.ts_stem WITH simple;
SELECT to_tsvector('ts_config', 'the cats 12 run');
ALTER TEXT SEARCH CONFIGURATION ts_config ALTER MAPPING FOR word REPLACE simple WITH english_stem;
ALTER TEXT SEARCH CONFIGURATION ts_config ALTER MAPPING FOR asciiword, uint WITH german_stem, simple;
SELECT alias, m.mapseqno, m.mapdict::regdictionary FROM pg_ts_config_map m, ts_token_type('default') t WHERE mapcfg = 'ts_config'::regconfig AND tokid = maptokentype ORDER BY 1, 2;
ALTER TEXT SEARCH CONFIGURATION ts_config DROP MAPPING FOR uint;
ALTER TEXT SEARCH CONFIGURATION ts_config DROP MAPPING FOR uint;
ALTER TEXT SEARCH CONFIGURATION ts_config DROP MAPPING IF EXISTS FOR uint;
SELECT * FROM ts_debug('ts_config', 'cats 12');
COMMENT ON TEXT SEARCH CONFIGURATION ts_config IS 'a configuration';
COMMENT ON TEXT SEARCH DICTIONARY ts_simple IS 'a dictionary';
SELECT obj_description('ts_config'::regconfig::oid, 'pg_ts_config'), obj_description('ts_simple'::regdictionary::oid, 'pg_ts_dict');
ALTER TEXT SEARCH CONFIGURATION ts_copy RENAME TO ts_config;
ALTER TEXT SEARCH CONFIGURATION ts_copy RENAME TO ts_renamed;
ALTER TEXT SEARCH DICTIONARY ts_simple SET SCHEMA ts_schema;
ALTER TEXT SEARCH DICTIONARY ts_schema.ts_simple OWNER TO ts_role;
ALTER TEXT SEARCH CONFIGURATION ts_renamed OWNER TO ts_role;
SELECT dictname, dictowner::regrole, dictnamespace::regnamespace FROM pg_ts_dict WHERE dictname = 'ts_simple';
SELECT pg_describe_object('pg_ts_dict'::regclass, 'ts_schema.ts_simple'::regdictionary, 0), pg_describe_object('pg_ts_config'::regclass, 'ts_config'::regconfig, 0);
\dF ts_*
\dF+ ts_config
\dFd ts_schema.*
DROP ROLE ts_role;
DROP TEXT SEARCH DICTIONARY nosuch;
DROP TEXT SEARCH DICTIONARY IF EXISTS nosuch, nosuch.nosuch;
DROP TEXT SEARCH DICTIONARY ts_schema.ts_stem;
ALTER TEXT SEARCH CONFIGURATION ts_config ALTER MAPPING FOR word WITH ts_schema.ts_simple;
DROP TEXT SEARCH DICTIONARY ts_schema.ts_simple;
DROP TEXT SEARCH CONFIGURATION IF EXISTS ts_config, nosuch;
BEGIN;
CREATE TEXT SEARCH CONFIGURATION ts_gone (COPY = simple);
ROLLBACK;
SELECT count(*) FROM pg_ts_config WHERE cfgname ~ '^ts_';
SET default_text_search_config = ts_renamed;
SHOW default_text_search_config;
SELECT to_tsvector('the cats');
RESET default_text_search_config;
DROP SCHEMA ts_schema CASCADE;
DROP OWNED BY ts_role;
DROP ROLE ts_role;
SELECT count(*) FROM pg_ts_config WHERE cfgname ~ '^ts_';
