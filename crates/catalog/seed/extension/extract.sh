#!/usr/bin/env bash
# Regenerates the seeds of extensions from a running PostgreSQL that has them: facts about their objects, one TSV file per system
# relation with the columns of the seed of the same name above. Usage: PGHOST=... PGPORT=... PGUSER=postgres extract.sh
#
# The database asked must be freshly created from template0. Objects get the OIDs FIRST + 1000 * (place of the extension) + their
# place among its objects. They are written into databases: an extension's place in the list must never change, nor an
# object's in its extension.
#
# Left out is what needs what Melba lacks: gist, text search, functions over `internal` but those of gin's operator classes, whose objects
# came later and are numbered from 500 on. Of btree_gist the operator classes are
# there, by which exclusion constraints find their operators, but not what its indexes keep, nor distances. Of pg_trgm's class of gist there is
# the function that makes the keys of a value. Estimators of intarray are those of arrays. Views are in views.tsv, written by hand;
# privileges and defaults of arguments are put into pg_proc.tsv by hand (pg_stat_statements_reset).
set -euo pipefail
cd "$(dirname "$0")"
database=${PGDATABASE:-melba_seed}
first=2147418112
extensions=(citext uuid-ossp pgcrypto unaccent hstore pg_stat_statements btree_gist pg_trgm fuzzystrmatch intarray file_fdw)

run() { psql -X -q -d "$database" -v ON_ERROR_STOP=1 "$@"; }

for extension in "${extensions[@]}"; do run -c "CREATE EXTENSION \"$extension\""; done
list=$(printf "'%s'," "${extensions[@]}")
run <<SQL
SET client_min_messages = error;
CREATE SCHEMA seed;
CREATE VIEW seed.member AS
  SELECT e.extname AS extension, array_position(ARRAY[${list%,}]::name[], e.extname) AS place, d.classid, d.objid
  FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
  WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = ANY (ARRAY[${list%,}]::name[]);
CREATE TABLE seed.object AS
  SELECT extension, place, classid, objid FROM seed.member m
  WHERE NOT EXISTS (SELECT FROM pg_proc p WHERE classid = 'pg_proc'::regclass AND p.oid = objid
      AND p.oid NOT IN (SELECT typreceive FROM pg_type)
      AND p.proname NOT LIKE 'gin%' AND p.proname <> 'gtrgm_compress'
      AND (ARRAY['internal', 'regdictionary', 'ghstore', 'gtrgm', 'intbig_gkey'] && (ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes) t) || format_type(prorettype, NULL))
        OR prosrc = 'hstore_subscript_handler'))
    AND (extension <> 'btree_gist' OR classid IN ('pg_opclass'::regclass, 'pg_opfamily'::regclass))
    AND NOT EXISTS (SELECT FROM pg_type t WHERE classid = 'pg_type'::regclass AND t.oid = objid AND (typname IN ('ghstore', '_ghstore', 'gtrgm', '_gtrgm', 'intbig_gkey', '_intbig_gkey') OR typname ~ '^_?pg_stat_statements'))
    AND NOT EXISTS (SELECT FROM pg_opclass c WHERE classid = 'pg_opclass'::regclass AND c.oid = objid AND opcmethod NOT IN (403, 405, 2742)
      AND extension NOT IN ('btree_gist', 'pg_trgm'))
    AND NOT EXISTS (SELECT FROM pg_opfamily f WHERE classid = 'pg_opfamily'::regclass AND f.oid = objid AND opfmethod NOT IN (403, 405, 2742)
      AND extension NOT IN ('btree_gist', 'pg_trgm'))
    AND classid NOT IN ('pg_ts_dict'::regclass, 'pg_ts_template'::regclass);
INSERT INTO seed.object
  SELECT extension, place, classid, typarray FROM seed.object JOIN pg_type t ON classid = 'pg_type'::regclass AND t.oid = objid
  WHERE typarray <> 0 AND typarray NOT IN (SELECT objid FROM seed.object WHERE classid = 'pg_type'::regclass);
INSERT INTO seed.object
  SELECT extension, place, 'pg_amop'::regclass, a.oid FROM seed.object JOIN pg_amop a
    ON classid = 'pg_opfamily'::regclass AND amopfamily = objid AND (extension NOT IN ('btree_gist', 'pg_trgm') OR amoppurpose = 's')
  UNION ALL SELECT extension, place, 'pg_amproc'::regclass, a.oid FROM seed.object JOIN pg_amproc a
    ON classid = 'pg_opfamily'::regclass AND amprocfamily = objid AND extension <> 'btree_gist'
    AND (amproc = 'gtrgm_compress'::regproc OR NOT EXISTS (SELECT FROM pg_opfamily f WHERE f.oid = objid AND opfmethod = 783));
CREATE TABLE seed.number AS
  WITH family AS (SELECT oid FROM pg_opfamily WHERE opfmethod = 2742),
    gin AS (SELECT 'pg_opfamily'::regclass AS classid, oid FROM family
      UNION ALL SELECT 'pg_opclass'::regclass, oid FROM pg_opclass WHERE opcmethod = 2742
      UNION ALL SELECT 'pg_amop'::regclass, oid FROM pg_amop WHERE amopfamily IN (SELECT oid FROM family)
      UNION ALL SELECT 'pg_amproc'::regclass, oid FROM pg_amproc WHERE amprocfamily IN (SELECT oid FROM family)
      UNION ALL SELECT 'pg_proc'::regclass, oid FROM pg_proc WHERE proname LIKE 'gin%'),
    placed AS (SELECT o.*, CASE WHEN (classid, objid) IN (SELECT * FROM gin) THEN 500 ELSE 0 END AS part FROM seed.object o)
  SELECT extension, classid, objid, $first + 1000 * (place - 1) + part
    + row_number() OVER (PARTITION BY place, part ORDER BY classid, objid) AS oid
  FROM placed;
CREATE FUNCTION seed.o(oid) RETURNS bigint LANGUAGE sql
  RETURN coalesce((SELECT n.oid FROM seed.number n WHERE n.objid = \$1), \$1::bigint);
CREATE FUNCTION seed.os(oid[]) RETURNS text LANGUAGE sql
  RETURN (SELECT '{' || string_agg(seed.o(x)::text, ',' ORDER BY n) || '}' FROM unnest(\$1) WITH ORDINALITY u(x, n));
SQL

# seed NAME QUERY: writes NAME.tsv.
seed() { run -c "SET search_path = pg_catalog, seed" -c "COPY ($2) TO STDOUT (FORMAT text, HEADER)" >"$1.tsv"; }
of() { echo "JOIN seed.number n ON n.classid = '$1'::regclass AND n.objid = x.oid ORDER BY n.oid"; }

seed extensions "SELECT e.extname AS name, e.extversion AS version, v.relocatable, v.trusted,
    obj_description(e.oid, 'pg_extension') AS comment
  FROM pg_extension e JOIN pg_available_extension_versions v ON v.name = e.extname AND v.version = e.extversion
  WHERE e.extname = ANY (ARRAY[${list%,}]::name[]) ORDER BY array_position(ARRAY[${list%,}]::name[], e.extname)"
seed pg_type "SELECT extension, n.oid, typname, 2200 AS typnamespace, typlen, typbyval, typtype, typcategory, typispreferred,
    typisdefined, typdelim, typrelid, CASE WHEN typelem = 0 THEN '-' ELSE typsubscript::text END AS typsubscript,
    o(typelem) AS typelem, o(typarray) AS typarray,
    replace(typinput::text, 'public.', '') AS typinput, replace(typoutput::text, 'public.', '') AS typoutput,
    replace(typreceive::text, 'public.', '') AS typreceive, replace(typsend::text, 'public.', '') AS typsend,
    typmodin, typmodout, typalign, typstorage, typnotnull, typbasetype, typtypmod, typcollation
  FROM pg_type x $(of pg_type)"
# Functions written in SQL are implemented natively under the name \`EXTENSION_name\`.
seed pg_proc "SELECT extension, n.oid, proname, 2200 AS pronamespace, CASE prolang WHEN 14 THEN 13 ELSE prolang END AS prolang, procost,
    prorows, provariadic, prokind, prosecdef, proleakproof, proisstrict, proretset, provolatile, proparallel,
    o(prorettype) AS prorettype, os(proargtypes::oid[]) AS proargtypes, os(proallargtypes) AS proallargtypes, proargmodes, proargnames,
    NULL AS proargdefaults, CASE prolang WHEN 14 THEN extension || '_' || proname ELSE prosrc END AS prosrc, NULL AS proacl
  FROM pg_proc x $(of pg_proc)"
seed pg_aggregate "SELECT extension, o(aggfnoid::oid) AS aggfnoid, aggkind, aggnumdirectargs, o(aggtransfn::oid) AS aggtransfn,
    o(aggfinalfn::oid) AS aggfinalfn, o(aggcombinefn::oid) AS aggcombinefn, o(aggserialfn::oid) AS aggserialfn,
    o(aggdeserialfn::oid) AS aggdeserialfn, o(aggmtransfn::oid) AS aggmtransfn, o(aggminvtransfn::oid) AS aggminvtransfn,
    o(aggmfinalfn::oid) AS aggmfinalfn, aggfinalextra, aggmfinalextra, aggfinalmodify, aggmfinalmodify, o(aggsortop) AS aggsortop,
    o(aggtranstype) AS aggtranstype, aggtransspace, o(aggmtranstype) AS aggmtranstype, aggmtransspace, agginitval, aggminitval FROM pg_aggregate x JOIN seed.number n ON n.classid = 'pg_proc'::regclass AND n.objid = aggfnoid ORDER BY n.oid"
seed pg_operator "SELECT extension, n.oid, oprname, 2200 AS oprnamespace, oprcanmerge, oprcanhash, o(oprleft) AS oprleft, o(oprright) AS oprright,
    o(oprresult) AS oprresult, o(oprcom) AS oprcom, o(oprnegate) AS oprnegate, o(oprcode::oid) AS oprcode,
    regexp_replace(regexp_replace(oprrest::text, '^public\._int_.*', 'arraycontsel'), '^arraycontsel$', CASE oprname WHEN '@@' THEN 'contsel' WHEN '~~' THEN 'contsel' ELSE 'arraycontsel' END) AS oprrest,
    regexp_replace(oprjoin::text, '^public\._int_.*', 'arraycontjoinsel') AS oprjoin
  FROM pg_operator x $(of pg_operator)"
seed pg_cast "SELECT extension, n.oid, o(castsource) AS castsource, o(casttarget) AS casttarget, o(castfunc) AS castfunc, castcontext,
    castmethod FROM pg_cast x $(of pg_cast)"
seed pg_foreign_data_wrapper "SELECT extension, n.oid, fdwname, o(fdwhandler) AS fdwhandler, o(fdwvalidator) AS fdwvalidator
  FROM pg_foreign_data_wrapper x $(of pg_foreign_data_wrapper)"
seed pg_opfamily "SELECT extension, n.oid, opfmethod, opfname, 2200 AS opfnamespace, 10 AS opfowner FROM pg_opfamily x $(of pg_opfamily)"
seed pg_opclass "SELECT extension, n.oid, opcmethod, opcname, 2200 AS opcnamespace, 10 AS opcowner, o(opcfamily) AS opcfamily,
    o(opcintype) AS opcintype, opcdefault, CASE WHEN opcmethod = 783 THEN 0 ELSE o(opckeytype) END AS opckeytype FROM pg_opclass x $(of pg_opclass)"
seed pg_amop "SELECT extension, n.oid, o(amopfamily) AS amopfamily, o(amoplefttype) AS amoplefttype, o(amoprighttype) AS amoprighttype,
    amopstrategy, amoppurpose, o(amopopr) AS amopopr, amopmethod, amopsortfamily FROM pg_amop x $(of pg_amop)"
seed pg_amproc "SELECT extension, n.oid, o(amprocfamily) AS amprocfamily, o(amproclefttype) AS amproclefttype,
    o(amprocrighttype) AS amprocrighttype, amprocnum, o(amproc::oid) AS amproc FROM pg_amproc x $(of pg_amproc)"
