#!/usr/bin/env bash
# Regenerates the seeds from a running PostgreSQL: facts about its built-in objects, one TSV file (COPY text format with
# a header line) per system relation. Usage: PGHOST=... PGPORT=... PGUSER=postgres crates/catalog/seed/extract.sh
#
# The database asked must be freshly created from template0. Function bodies, comments and view texts are not taken.
# Rows of Melba's own objects, whose OIDs PostgreSQL leaves to forks (9950 to 9999), must be put back afterwards: `git diff` shows them.
set -euo pipefail
cd "$(dirname "$0")"
database=${PGDATABASE:-melba_seed}

# seed NAME QUERY: writes NAME.tsv. OIDs are written as numbers, reg types the query casts to text as names.
seed() {
  psql -X -q -d "$database" -v ON_ERROR_STOP=1 -c "SET search_path = pg_catalog" -c "SET extra_float_digits = 1" \
    -c "COPY ($2) TO STDOUT (FORMAT text, HEADER)" >"$1.tsv"
}

# Every column of a relation whose rows Melba never changes, reg types as OIDs.
verbatim() {
  local columns
  columns=$(psql -X -At -d "$database" -c "
    SELECT string_agg(CASE WHEN atttypid = 'regproc'::regtype THEN format('%1\$I::oid AS %1\$I', attname)
                           ELSE quote_ident(attname) END, ', ' ORDER BY attnum)
    FROM pg_attribute WHERE attrelid = 'pg_catalog.$1'::regclass AND attnum > 0 AND NOT attisdropped")
  seed "$1" "SELECT $columns FROM pg_catalog.$1 ORDER BY 1"
}

relations="SELECT oid FROM pg_class WHERE oid < 16384 AND relkind IN ('r', 'v')"

seed relations "SELECT c.oid, relname, relnamespace, relkind, reltype, relfilenode, relisshared, relreplident, relacl, reloptions
  FROM pg_class c WHERE oid IN ($relations) ORDER BY oid"
seed columns "SELECT attrelid, attname, atttypid, atttypmod, attnotnull, attcollation, attacl
  FROM pg_attribute WHERE attrelid IN ($relations) AND attnum > 0 ORDER BY attrelid, attnum"
seed pg_type "SELECT oid, typname, typnamespace, typlen, typbyval, typtype, typcategory, typispreferred, typisdefined, typdelim,
    typrelid, typsubscript, typelem, typarray, typinput, typoutput, typreceive, typsend, typmodin, typmodout, typanalyze,
    typalign, typstorage, typnotnull, typbasetype, typtypmod, typcollation
  FROM pg_type t WHERE oid < 16384 AND typnamespace <> 'pg_toast'::regnamespace
    AND (typrelid = 0 OR typrelid IN ($relations))
    AND (typelem = 0 OR typcategory <> 'A'
      OR (SELECT e.typrelid = 0 OR e.typrelid IN ($relations) FROM pg_type e WHERE e.oid = t.typelem)) ORDER BY oid"
# Functions written in SQL are implemented natively under the name \`name_oid\`.
seed pg_proc "SELECT oid, proname, pronamespace, CASE prolang WHEN 14 THEN 12 ELSE prolang END AS prolang, procost, prorows,
    provariadic, prosupport, prokind, prosecdef, proleakproof, proisstrict, proretset, provolatile, proparallel, prorettype,
    proargtypes, proallargtypes, proargmodes, proargnames,
    (SELECT array_agg(pg_get_function_arg_default(p.oid, n) ORDER BY n) FROM generate_series(1, pronargs) n
       WHERE pg_get_function_arg_default(p.oid, n) IS NOT NULL) AS proargdefaults,
    CASE prolang WHEN 14 THEN proname || '_' || oid ELSE prosrc END AS prosrc, probin, proacl
  FROM pg_proc p WHERE oid < 16384 ORDER BY oid"
seed pg_aggregate "SELECT aggfnoid::oid, aggkind, aggnumdirectargs, aggtransfn::oid, aggfinalfn::oid, aggcombinefn::oid,
    aggserialfn::oid, aggdeserialfn::oid, aggmtransfn::oid, aggminvtransfn::oid, aggmfinalfn::oid, aggfinalextra,
    aggmfinalextra, aggfinalmodify, aggmfinalmodify, aggsortop, aggtranstype, aggtransspace, aggmtranstype, aggmtransspace,
    agginitval, aggminitval FROM pg_aggregate ORDER BY 1"
seed pg_operator "SELECT oid, oprname, oprnamespace, oprkind, oprcanmerge, oprcanhash, oprleft, oprright, oprresult, oprcom,
    oprnegate, oprcode::oid, oprrest, oprjoin FROM pg_operator WHERE oid < 16384 ORDER BY oid"
seed pg_cast "SELECT * FROM pg_cast WHERE oid < 16384 ORDER BY oid"
seed pg_range "SELECT rngtypid, rngsubtype, rngmultitypid, rngcollation, rngsubopc, rngcanonical, rngsubdiff
  FROM pg_range WHERE rngtypid < 16384 ORDER BY 1"
seed pg_collation "SELECT oid, collname, collnamespace, collprovider, collisdeterministic, collencoding, collcollate, collctype,
    colllocale, collicurules FROM pg_collation
  WHERE oid < 16384 AND collencoding IN (-1, 6) ORDER BY oid"
seed pg_namespace "SELECT oid, nspname, nspowner, nspacl FROM pg_namespace WHERE oid < 16384 ORDER BY oid"
seed pg_authid "SELECT oid, rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication,
    rolbypassrls FROM pg_authid WHERE oid < 16384 ORDER BY oid"
seed pg_auth_members "SELECT * FROM pg_auth_members WHERE oid < 16384 ORDER BY oid"
seed pg_constraint "SELECT oid, conname, connamespace, contype, conrelid, contypid, conindid, conkey,
    CASE WHEN contypid <> 0 THEN pg_get_expr(conbin, 0) END AS expression
  FROM pg_constraint WHERE oid < 16384 AND (contypid <> 0 OR conrelid IN ($relations)) ORDER BY oid"
seed pg_index "SELECT indexrelid, c.relname, relfilenode, indrelid, indisunique, indisprimary, indkey, indcollation, indclass
  FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid WHERE indrelid IN ($relations) ORDER BY 1"
seed keywords "SELECT word, catcode, barelabel FROM pg_get_keywords() ORDER BY word"
seed foreign_keys "SELECT fktable::oid AS fktable, fkcols, pktable::oid AS pktable, pkcols, is_array, is_opt
  FROM pg_get_catalog_foreign_keys()"

for relation in pg_am pg_amop pg_amproc pg_opclass pg_opfamily pg_language pg_conversion pg_tablespace \
  pg_extension pg_ts_config pg_ts_config_map pg_ts_dict pg_ts_parser pg_ts_template; do
  verbatim "$relation"
done

# Stop words of the Snowball dictionaries. SHAREDIR: where the server's share files are, by default those of pg_config.
cp "${SHAREDIR:-$(pg_config --sharedir)}"/tsearch_data/*.stop ../../tsearch/stopwords/
