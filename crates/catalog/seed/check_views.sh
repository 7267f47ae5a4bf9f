#!/usr/bin/env bash
# Holds the built-in views' queries to a real PostgreSQL's views: creates ours beside its own in a scratch database with
# some objects in it, and prints every view whose columns or rows differ.
# Usage: PGHOST=... PGPORT=... PGUSER=postgres crates/catalog/seed/check_views.sh
set -euo pipefail
cd "$(dirname "$0")"
database=${PGDATABASE:-melba_check_views}
psql -X -q -d postgres -c "DROP DATABASE IF EXISTS $database" -c "CREATE DATABASE $database TEMPLATE template0"
export PGDATABASE=$database
psql -X -q -v ON_ERROR_STOP=1 <<'SQL'
CREATE SCHEMA ours;
CREATE DOMAIN positive AS numeric(10, 2) DEFAULT 1 NOT NULL CHECK (VALUE > 0);
CREATE TYPE pair AS (a int, b text COLLATE "C");
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE parent (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name varchar(20) NOT NULL UNIQUE, price positive,
    at timestamptz(3) DEFAULT now(), span interval day to second(2), tags text[], m mood, p pair, flag bit(3),
    twice int GENERATED ALWAYS AS (2) STORED, CHECK (name <> ''));
CREATE TABLE child (id serial, parent_id int REFERENCES parent ON DELETE CASCADE, a int, b int, UNIQUE (b, a),
    PRIMARY KEY (id, a));
CREATE TABLE grandchild (x int, y int, FOREIGN KEY (y, x) REFERENCES child (b, a) ON UPDATE SET NULL);
CREATE TABLE split (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE split_1 PARTITION OF split FOR VALUES FROM (0) TO (10);
CREATE INDEX ON split (k);
CREATE VIEW names AS SELECT id, upper(name) AS name FROM parent WHERE id > 0 WITH CHECK OPTION;
CREATE MATERIALIZED VIEW counts AS SELECT count(*) FROM child;
CREATE FUNCTION add(a int, INOUT b int DEFAULT 1, VARIADIC c int[] DEFAULT '{}') LANGUAGE sql AS 'SELECT 1';
CREATE PROCEDURE nothing(x text) LANGUAGE sql AS '';
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER t1 BEFORE INSERT OR UPDATE OF name ON parent FOR EACH ROW WHEN (NEW.id > 0) EXECUTE FUNCTION fire();
CREATE TRIGGER t2 AFTER DELETE ON parent FOR EACH STATEMENT EXECUTE FUNCTION fire();
CREATE RULE quiet AS ON INSERT TO child WHERE new.a < 0 DO INSTEAD NOTHING;
ALTER TABLE child ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON child FOR SELECT USING (a > 0);
CREATE SEQUENCE counter AS smallint INCREMENT 2 CYCLE;
GRANT SELECT, UPDATE (name) ON parent TO PUBLIC;
GRANT SELECT ON child TO pg_monitor WITH GRANT OPTION;
GRANT USAGE ON SEQUENCE counter TO pg_monitor;
SQL
{ echo "SET search_path = pg_catalog; SET client_min_messages = warning;"; ${CARGO:-cargo} run -q -p melba-catalog --example view_queries; } |
  psql -X -q -v ON_ERROR_STOP=0 2>&1 | grep -A3 ERROR || true
psql -X -At -F ' ' <<'SQL' | while read -r view; do
SELECT relname FROM pg_class WHERE relnamespace = 'ours'::regnamespace AND relkind = 'v' ORDER BY oid;
SQL
  psql -X -At -v view="$view" <<'SQL'
SELECT :'view' || ': columns ' || string_agg(DISTINCT coalesce(o.attname, t.attname), ', ')
FROM (SELECT * FROM pg_attribute WHERE attrelid = ('ours.' || quote_ident(:'view'))::regclass) o
    FULL JOIN (SELECT * FROM pg_attribute WHERE attrelid = :'view'::regclass) t USING (attnum)
WHERE (o.attname, o.atttypid, o.atttypmod) IS DISTINCT FROM (t.attname, t.atttypid, t.atttypmod) HAVING count(*) > 0;
SELECT format('SELECT %L || '': '' || count(*) || '' rows, e.g. '' || min(side || r) FROM (
    (SELECT ''ours '' AS side, r::text FROM ours.%I r EXCEPT ALL SELECT ''ours '', r::text FROM %3$s r)
    UNION ALL
    (SELECT ''theirs '', r::text FROM %3$s r EXCEPT ALL SELECT ''theirs '', r::text FROM ours.%2$I r)) d
    WHERE r !~ ''ours[.,]'' HAVING count(*) > 0',
    :'view', :'view', :'view') \gexec
SQL
done
