//! Tables and sequences; indexes and constraints, which come after the rows.

use super::{Reader, USER, foreign};
use crate::Result;
use crate::archive::{Entry, Section};

/// A sequence's options, of the alias `s`.
const SEQUENCE_OPTIONS: &str =
    "format('START WITH %s INCREMENT BY %s MINVALUE %s MAXVALUE %s CACHE %s%s', s.seqstart, s.seqincrement,
    s.seqmin, s.seqmax, s.seqcache, CASE WHEN s.seqcycle THEN ' CYCLE' ELSE '' END)";

/// Statements for tables and sequences after their creation.
pub fn before(reader: &mut Reader) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    for sql in [partitions(), inherited_defaults(), columns(), typed_tables(), identities(), owned_sequences()] {
        all.extend(reader.entries(Section::Before, &sql)?);
    }
    Ok(all)
}

pub fn after(reader: &mut Reader) -> Result<Vec<Entry>> {
    let mut all = sequence_values(reader)?;
    for sql in [indexes(), constraints(), attached_indexes(), index_marks()] {
        all.extend(reader.entries(Section::After, &sql)?);
    }
    Ok(all)
}

pub fn sequences() -> String {
    format!(
        "SELECT 'r' || c.oid, 'SEQUENCE', n.nspname, c.relname, format('CREATE %sSEQUENCE %I.%I AS %s %s;',
            CASE c.relpersistence WHEN 'u' THEN 'UNLOGGED ' ELSE '' END, n.nspname, c.relname, format_type(s.seqtypid, NULL), {SEQUENCE_OPTIONS})
         FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE {USER} AND c.relpersistence <> 't' AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i') ORDER BY c.oid"
    )
}

pub fn tables() -> String {
    let column = format!("format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod))
        || coalesce(' COMPRESSION ' || CASE a.attcompression WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' WHEN 'z' THEN 'zstd' WHEN 'd' THEN 'dense' END, '')
        || {}
        || coalesce((SELECT format(' COLLATE %I.%I', m.nspname, l.collname) FROM pg_catalog.pg_collation l
            JOIN pg_catalog.pg_namespace m ON m.oid = l.collnamespace JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
            WHERE l.oid = a.attcollation AND a.attcollation <> t.typcollation), '')
        || coalesce((SELECT format(CASE a.attgenerated WHEN 's' THEN ' GENERATED ALWAYS AS (%s) STORED'
                WHEN 'v' THEN ' GENERATED ALWAYS AS (%s)' ELSE ' DEFAULT %s' END, pg_get_expr(f.adbin, f.adrelid))
            FROM pg_catalog.pg_attrdef f WHERE f.adrelid = a.attrelid AND f.adnum = a.attnum), '')
        || coalesce((SELECT format(' CONSTRAINT %I NOT NULL', o.conname) FROM pg_catalog.pg_constraint o
            WHERE o.conrelid = a.attrelid AND o.contype = 'n' AND o.conkey[1] = a.attnum AND o.convalidated AND {OWN_CONSTRAINT}),
            CASE WHEN a.attnotnull AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint o WHERE o.conrelid = a.attrelid AND o.contype = 'n' AND o.conkey[1] = a.attnum)
            THEN ' NOT NULL' ELSE '' END)", foreign::options("a.attfdwoptions"));
    let pieces = format!(
        "SELECT a.attnum::int AS position, {column} AS piece FROM pg_catalog.pg_attribute a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND (a.attislocal OR c.relispartition)
         UNION ALL SELECT 10000 + row_number() OVER (ORDER BY o.conname)::int, format('CONSTRAINT %I %s', o.conname, pg_get_constraintdef(o.oid))
            FROM pg_catalog.pg_constraint o WHERE o.conrelid = c.oid AND o.convalidated AND {OWN_CONSTRAINT}
            AND (o.contype = 'c' OR o.contype = 'n' AND NOT c.relispartition AND EXISTS (SELECT FROM pg_catalog.pg_attribute a
                WHERE a.attrelid = c.oid AND a.attnum = o.conkey[1] AND NOT a.attislocal))"
    );
    let parents =
        "SELECT string_agg(format('%I.%I', pn.nspname, pc.relname), ', ' ORDER BY h.inhseqno) FROM pg_catalog.pg_inherits h
        JOIN pg_catalog.pg_class pc ON pc.oid = h.inhparent JOIN pg_catalog.pg_namespace pn ON pn.oid = pc.relnamespace
        WHERE h.inhrelid = c.oid AND NOT c.relispartition";
    let options = foreign::options("t.ftoptions");
    format!(
        "SELECT 'r' || c.oid, 'TABLE', n.nspname, c.relname, format('CREATE %sTABLE %I.%I (%s)%s%s%s%s%s;',
            CASE WHEN c.relkind = 'f' THEN 'FOREIGN ' WHEN c.relpersistence = 'u' THEN 'UNLOGGED ' ELSE '' END, n.nspname, c.relname,
            (SELECT string_agg(p.piece, ', ' ORDER BY p.position) FROM ({pieces}) p),
            coalesce(' INHERITS (' || ({parents}) || ')', ''), coalesce(' PARTITION BY ' || pg_get_partkeydef(c.oid), ''),
            CASE WHEN m.amname <> 'heap' THEN format(' USING %I', m.amname) ELSE '' END,
            coalesce((SELECT ' WITH (' || string_agg(CASE WHEN o ~ '^[^=]*=([a-z_]+|[0-9]+([.][0-9]+)?)$' THEN o
                    ELSE split_part(o, '=', 1) || '=' || quote_literal(substr(o, strpos(o, '=') + 1)) END, ', ' ORDER BY n) || ')'
                FROM unnest(c.reloptions) WITH ORDINALITY u(o, n)), ''),
            coalesce((SELECT format(' SERVER %I%s', s.srvname, {options}) FROM pg_catalog.pg_foreign_table t
                JOIN pg_catalog.pg_foreign_server s ON s.oid = t.ftserver WHERE t.ftrelid = c.oid), ''))
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am m ON m.oid = c.relam
         WHERE c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't' AND {USER} ORDER BY c.oid"
    )
}

/// A constraint, of the alias `o`, that its table `c` does not only inherit. A partition is made with all of its constraints, before
/// it is attached.
const OWN_CONSTRAINT: &str = "(o.conislocal OR c.relispartition)";

/// Partitions are created as separate tables, so that their columns keep their order.
fn partitions() -> String {
    format!(
        "SELECT 'TABLE ATTACH', n.nspname, c.relname, format('ALTER TABLE ONLY %I.%I ATTACH PARTITION %I.%I %s;',
            pn.nspname, pc.relname, n.nspname, c.relname, pg_get_expr(c.relpartbound, c.oid))
         FROM pg_catalog.pg_inherits h JOIN pg_catalog.pg_class c ON c.oid = h.inhrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         JOIN pg_catalog.pg_class pc ON pc.oid = h.inhparent JOIN pg_catalog.pg_namespace pn ON pn.oid = pc.relnamespace
         WHERE c.relispartition AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND {USER} ORDER BY c.oid"
    )
}

/// A child may have another default than its parents, or none.
fn inherited_defaults() -> String {
    format!(
        "SELECT 'DEFAULT', n.nspname, c.relname, format('ALTER TABLE ONLY %I.%I ALTER COLUMN %I %s;', n.nspname, c.relname, a.attname,
            coalesce('SET DEFAULT ' || pg_get_expr(f.adbin, f.adrelid), 'DROP DEFAULT'))
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND NOT a.attislocal AND a.attgenerated = ''
         LEFT JOIN pg_catalog.pg_attrdef f ON f.adrelid = c.oid AND f.adnum = a.attnum
         WHERE c.relkind IN ('r', 'f') AND NOT c.relispartition AND c.relpersistence <> 't' AND {USER}
            AND (f.oid IS NOT NULL OR EXISTS (SELECT FROM pg_catalog.pg_inherits h
                JOIN pg_catalog.pg_attribute pa ON pa.attrelid = h.inhparent AND pa.attname = a.attname
                WHERE h.inhrelid = c.oid AND pa.atthasdef)) ORDER BY c.oid, a.attnum"
    )
}

/// Typed tables are made as others, so that their columns may have defaults.
fn typed_tables() -> String {
    format!(
        "SELECT 'TABLE', n.nspname, c.relname, format('ALTER TABLE %I.%I OF %s;', n.nspname, c.relname, c.reloftype::regtype)
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND c.reloftype <> 0 AND {USER} ORDER BY c.oid"
    )
}

/// The options that ALTER COLUMN ... SET takes; a server may keep other notes beside them.
const IS_OPTION: &str = "o LIKE 'n\\_distinct%'";

/// Column properties that CREATE TABLE lacks.
fn columns() -> String {
    let from = format!(
        "FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
         WHERE c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't' AND a.attnum > 0 AND NOT a.attisdropped AND {USER}"
    );
    let alter = "'ALTER TABLE ONLY %I.%I ALTER COLUMN %I SET";
    format!(
        "SELECT 'COLUMN', n.nspname, c.relname, format({alter} STORAGE %s;', n.nspname, c.relname, a.attname,
            CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END)
            {from} AND a.attstorage <> t.typstorage
         UNION ALL SELECT 'COLUMN', n.nspname, c.relname, format({alter} (%s);', n.nspname, c.relname, a.attname,
            (SELECT string_agg(o, ', ') FROM unnest(a.attoptions) o WHERE {IS_OPTION})) {from}
            AND EXISTS (SELECT FROM unnest(a.attoptions) o WHERE {IS_OPTION})
         UNION ALL SELECT 'COLUMN', n.nspname, c.relname, format({alter} STATISTICS %s;', n.nspname, c.relname, a.attname,
            a.attstattarget) {from} AND a.attstattarget >= 0"
    )
}

fn identities() -> String {
    format!(
        "SELECT 'IDENTITY', n.nspname, t.relname, format('ALTER TABLE %I.%I ALTER COLUMN %I ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %I.%I %s);',
            n.nspname, t.relname, a.attname, CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, m.nspname, c.relname, {SEQUENCE_OPTIONS})
         FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid JOIN pg_catalog.pg_namespace m ON m.oid = c.relnamespace
         JOIN pg_catalog.pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'i'
         JOIN pg_catalog.pg_class t ON t.oid = d.refobjid JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
         JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
         WHERE {USER} AND t.relpersistence <> 't' ORDER BY c.oid"
    )
}

fn owned_sequences() -> String {
    format!(
        "SELECT 'SEQUENCE OWNED BY', m.nspname, c.relname, format('ALTER SEQUENCE %I.%I OWNED BY %I.%I.%I;', m.nspname, c.relname, n.nspname, t.relname, a.attname)
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace m ON m.oid = c.relnamespace
         JOIN pg_catalog.pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'a'
         JOIN pg_catalog.pg_class t ON t.oid = d.refobjid JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
         JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
         WHERE c.relkind = 'S' AND c.relpersistence <> 't' AND {USER} ORDER BY c.oid"
    )
}

/// The value of each sequence, which only the sequence itself has.
fn sequence_values(reader: &mut Reader) -> Result<Vec<Entry>> {
    let names = format!(
        "SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'S' AND c.relpersistence <> 't' AND {USER} ORDER BY c.oid"
    );
    let mut all = Vec::new();
    for row in reader.rows(&names)? {
        let [schema, name, quoted] = <[_; 3]>::try_from(row).map_err(|_| "a sequence without a name".to_owned())?;
        let (Some(name), Some(quoted)) = (name, quoted) else { continue };
        let literal = quoted.replace('\'', "''");
        let value =
            format!("SELECT format('SELECT pg_catalog.setval(%L, %s, %L);', '{literal}', last_value, is_called) FROM {quoted}");
        let sql = reader.rows(&value)?.into_iter().flatten().flatten().collect::<String>();
        all.push(Entry { section: Section::After, kind: "SEQUENCE SET".to_owned(), schema, name, sql });
    }
    Ok(all)
}

fn indexes() -> String {
    format!(
        "SELECT 'INDEX', n.nspname, t.relname, pg_get_indexdef(i.indexrelid) || ';'
         FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
         JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
         WHERE {USER} AND t.relkind IN ('r', 'p') AND t.relpersistence <> 't'
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint o WHERE o.conindid = c.oid AND o.contype IN ('p', 'u', 'x')) ORDER BY c.oid"
    )
}

/// Keys first: foreign keys need them. Those of partitioned tables reach their partitions, which are attached by then.
fn constraints() -> String {
    format!(
        "SELECT CASE o.contype WHEN 'f' THEN 'FK CONSTRAINT' ELSE 'CONSTRAINT' END, n.nspname, c.relname,
            format('ALTER TABLE %s%I.%I ADD CONSTRAINT %I %s;', CASE WHEN o.contype IN ('c', 'n') OR c.relkind = 'p' AND o.contype = 'f' THEN '' ELSE 'ONLY ' END,
                n.nspname, c.relname, o.conname, pg_get_constraintdef(o.oid))
         FROM pg_catalog.pg_constraint o JOIN pg_catalog.pg_class c ON c.oid = o.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE {USER} AND c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't'
            AND (o.contype IN ('p', 'u', 'x') OR o.contype = 'f' AND o.conparentid = 0 OR o.contype IN ('c', 'n') AND NOT o.convalidated AND o.conislocal)
         ORDER BY o.contype = 'f', o.oid"
    )
}

/// Indexes of partitions become parts of their parents'.
fn attached_indexes() -> String {
    format!(
        "SELECT 'INDEX ATTACH', n.nspname, c.relname, format('ALTER INDEX %I.%I ATTACH PARTITION %I.%I;', pn.nspname, pc.relname, n.nspname, c.relname)
         FROM pg_catalog.pg_inherits h JOIN pg_catalog.pg_class c ON c.oid = h.inhrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         JOIN pg_catalog.pg_class pc ON pc.oid = h.inhparent JOIN pg_catalog.pg_namespace pn ON pn.oid = pc.relnamespace
         WHERE c.relkind IN ('i', 'I') AND c.relpersistence <> 't' AND {USER} ORDER BY c.oid"
    )
}

/// The index on which a table is clustered, and its replica identity.
fn index_marks() -> String {
    let from = format!(
        "FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
         JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace WHERE {USER} AND t.relpersistence <> 't'"
    );
    format!(
        "SELECT 'CLUSTER', n.nspname, t.relname, format('ALTER TABLE %I.%I CLUSTER ON %I;', n.nspname, t.relname, c.relname) {from} AND i.indisclustered
         UNION ALL SELECT 'REPLICA IDENTITY', n.nspname, t.relname,
            format('ALTER TABLE ONLY %I.%I REPLICA IDENTITY USING INDEX %I;', n.nspname, t.relname, c.relname) {from} AND i.indisreplident
         UNION ALL SELECT 'REPLICA IDENTITY', n.nspname, t.relname,
            format('ALTER TABLE ONLY %I.%I REPLICA IDENTITY %s;', n.nspname, t.relname, CASE t.relreplident WHEN 'n' THEN 'NOTHING' ELSE 'FULL' END)
            FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
            WHERE {USER} AND t.relkind IN ('r', 'p') AND t.relpersistence <> 't' AND t.relreplident IN ('n', 'f')"
    )
}
