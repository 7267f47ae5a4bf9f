//! One relation: its columns, and below them its other parts.

use super::which::Listing;
use crate::Result;
use crate::scan::literal;
use crate::shell::Shell;

pub struct Relation {
    oid: String,
    schema: String,
    name: String,
    kind: char,
    is_unlogged: bool,
}

impl Relation {
    /// A row of the query that finds them.
    pub fn of(row: Vec<Option<String>>) -> Option<Relation> {
        let [oid, schema, name, kind, persistence] = <[Option<String>; 5]>::try_from(row).ok()?;
        let is_unlogged = persistence.as_deref() == Some("u");
        Some(Relation { oid: oid?, schema: schema?, name: name?, kind: kind?.chars().next()?, is_unlogged })
    }

    fn title(&self) -> String {
        let kind = match self.kind {
            'r' => "Table",
            'p' => "Partitioned table",
            'v' => "View",
            'm' => "Materialized view",
            'i' => "Index",
            'I' => "Partitioned index",
            'S' => "Sequence",
            'c' => "Composite type",
            'f' => "Foreign table",
            _ => "TOAST table",
        };
        let kind = if self.is_unlogged { format!("Unlogged {}", kind.to_lowercase()) } else { kind.to_owned() };
        format!("{kind} \"{}.{}\"", self.schema, self.name)
    }
}

/// A section below the columns: kinds of relations, whether with `+` only, a heading, and a query whose rows are its lines. A
/// heading without an end of line stands before its first line. `$oid` is the relation's.
struct Foot {
    kinds: &'static str,
    is_verbose: bool,
    heading: &'static str,
    sql: &'static str,
}

const fn foot(kinds: &'static str, heading: &'static str, sql: &'static str) -> Foot {
    Foot { kinds, is_verbose: false, heading, sql }
}

const fn verbose(kinds: &'static str, heading: &'static str, sql: &'static str) -> Foot {
    Foot { kinds, is_verbose: true, heading, sql }
}

/// The query for rules with a value of pg_rewrite.ev_enabled.
macro_rules! rules {
    ($enabled:literal) => {
        concat!(
            "SELECT '    ' || pg_catalog.substring(pg_catalog.rtrim(pg_catalog.pg_get_ruledef(oid, true), ';'), 13) \
             FROM pg_catalog.pg_rewrite WHERE ev_class = $oid AND rulename <> '_RETURN' AND ev_enabled = '",
            $enabled,
            "' ORDER BY rulename"
        )
    };
}

const FEET: &[Foot] = &[
    foot(
        "iI",
        "",
        "SELECT CASE WHEN x.indisprimary THEN 'primary key, ' WHEN x.indisunique THEN 'unique, ' ELSE '' END || am.amname || ', for table \"' \
         || n.nspname || '.' || t.relname || '\"' || COALESCE(', predicate (' || pg_catalog.pg_get_expr(x.indpred, x.indrelid, true) || ')', '') \
         || CASE WHEN x.indisclustered THEN ', clustered' ELSE '' END || CASE WHEN NOT x.indisvalid THEN ', invalid' ELSE '' END \
         || CASE WHEN x.indisreplident THEN ', replica identity' ELSE '' END \
         FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class c ON c.oid = x.indexrelid JOIN pg_catalog.pg_class t ON t.oid = x.indrelid \
         JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace JOIN pg_catalog.pg_am am ON am.oid = c.relam WHERE x.indexrelid = $oid",
    ),
    foot(
        "S",
        "",
        "SELECT CASE d.deptype WHEN 'i' THEN 'Sequence for identity column: ' ELSE 'Owned by: ' END || pg_catalog.quote_ident(n.nspname) || '.' \
         || pg_catalog.quote_ident(t.relname) || '.' || pg_catalog.quote_ident(a.attname) \
         FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class t ON t.oid = d.refobjid JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace \
         JOIN pg_catalog.pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid \
         WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
         AND d.objid = $oid AND d.objsubid = 0 AND d.deptype IN ('a', 'i')",
    ),
    verbose("vm", "View definition:\n", "SELECT pg_catalog.pg_get_viewdef($oid, true)"),
    foot(
        "rpf",
        "Partition of: ",
        "SELECT i.inhparent::pg_catalog.regclass || ' ' || pg_catalog.pg_get_expr(c.relpartbound, c.oid) \
         FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid WHERE c.oid = $oid AND c.relispartition",
    ),
    verbose(
        "rpf",
        "Partition constraint: ",
        "SELECT pg_catalog.pg_get_partition_constraintdef(c.oid) FROM pg_catalog.pg_class c WHERE c.oid = $oid AND c.relispartition",
    ),
    foot("p", "Partition key: ", "SELECT pg_catalog.pg_get_partkeydef($oid)"),
    foot(
        "rpmt",
        "Indexes:\n",
        "SELECT '    \"' || c.relname || '\"' || CASE WHEN k.contype = 'x' THEN ' ' || pg_catalog.pg_get_constraintdef(k.oid, true) ELSE \
         CASE WHEN x.indisprimary THEN ' PRIMARY KEY,' WHEN x.indisunique AND k.contype = 'u' THEN ' UNIQUE CONSTRAINT,' WHEN x.indisunique THEN ' UNIQUE,' ELSE '' END \
         || ' ' || pg_catalog.split_part(pg_catalog.pg_get_indexdef(x.indexrelid, 0, true), ' USING ', 2) \
         || CASE WHEN k.condeferrable THEN ' DEFERRABLE' ELSE '' END || CASE WHEN k.condeferred THEN ' INITIALLY DEFERRED' ELSE '' END END \
         || CASE WHEN x.indisclustered THEN ' CLUSTER' ELSE '' END || CASE WHEN NOT x.indisvalid THEN ' INVALID' ELSE '' END \
         || CASE WHEN x.indisreplident THEN ' REPLICA IDENTITY' ELSE '' END \
         FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class c ON c.oid = x.indexrelid \
         LEFT JOIN pg_catalog.pg_constraint k ON k.conindid = x.indexrelid AND k.conrelid = x.indrelid AND k.contype IN ('p', 'u', 'x') \
         WHERE x.indrelid = $oid ORDER BY x.indisprimary DESC, c.relname",
    ),
    foot(
        "rpf",
        "Check constraints:\n",
        "SELECT '    \"' || conname || '\" ' || pg_catalog.pg_get_constraintdef(oid, true) FROM pg_catalog.pg_constraint \
         WHERE conrelid = $oid AND contype = 'c' ORDER BY conname",
    ),
    foot(
        "rpf",
        "Foreign-key constraints:\n",
        "SELECT '    \"' || conname || '\" ' || pg_catalog.pg_get_constraintdef(oid, true) FROM pg_catalog.pg_constraint \
         WHERE conrelid = $oid AND contype = 'f' ORDER BY conname",
    ),
    foot(
        "rp",
        "Referenced by:\n",
        "SELECT '    TABLE \"' || conrelid::pg_catalog.regclass || '\" CONSTRAINT \"' || conname || '\" ' || pg_catalog.pg_get_constraintdef(oid, true) \
         FROM pg_catalog.pg_constraint WHERE confrelid = $oid AND contype = 'f' AND conparentid = 0 ORDER BY conname",
    ),
    verbose(
        "rp",
        "Not-null constraints:\n",
        "SELECT '    \"' || c.conname || '\" NOT NULL \"' || a.attname || '\"' || CASE WHEN c.connoinherit THEN ' NO INHERIT' ELSE '' END \
         FROM pg_catalog.pg_constraint c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] \
         WHERE c.conrelid = $oid AND c.contype = 'n' ORDER BY a.attnum",
    ),
    foot(
        "rp",
        "",
        "SELECT CASE WHEN relforcerowsecurity THEN 'Policies (forced row security enabled):' WHEN relrowsecurity THEN 'Policies:' \
         ELSE 'Policies (row security disabled):' END || COALESCE((SELECT pg_catalog.string_agg(E'\\n    POLICY \"' || p.polname || '\"' \
         || CASE WHEN NOT p.polpermissive THEN ' AS RESTRICTIVE' ELSE '' END \
         || CASE p.polcmd WHEN 'r' THEN ' FOR SELECT' WHEN 'a' THEN ' FOR INSERT' WHEN 'w' THEN ' FOR UPDATE' WHEN 'd' THEN ' FOR DELETE' ELSE '' END \
         || CASE WHEN p.polroles = '{0}' THEN '' ELSE E'\\n      TO ' || (SELECT pg_catalog.string_agg(r.rolname, ',' ORDER BY r.rolname) \
         FROM pg_catalog.pg_roles r WHERE r.oid = ANY (p.polroles)) END \
         || COALESCE(E'\\n      USING (' || pg_catalog.pg_get_expr(p.polqual, p.polrelid) || ')', '') \
         || COALESCE(E'\\n      WITH CHECK (' || pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid) || ')', ''), '' ORDER BY p.polname) \
         FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid), ' (none)') FROM pg_catalog.pg_class c WHERE c.oid = $oid \
         AND (c.relrowsecurity OR EXISTS (SELECT 1 FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid))",
    ),
    foot("rpv", "Rules:\n", rules!("O")),
    foot("rpv", "Disabled rules:\n", rules!("D")),
    foot("rpv", "Rules firing always:\n", rules!("A")),
    foot("rpv", "Rules firing on replica only:\n", rules!("R")),
    foot(
        "rpvf",
        "Triggers:\n",
        "SELECT '    ' || pg_catalog.substring(pg_catalog.pg_get_triggerdef(oid, true), ' TRIGGER (.*)$') \
         || CASE tgenabled WHEN 'D' THEN ' (disabled)' WHEN 'A' THEN ' (fires always)' WHEN 'R' THEN ' (fires on a replica only)' ELSE '' END \
         FROM pg_catalog.pg_trigger WHERE tgrelid = $oid AND NOT tgisinternal ORDER BY tgname",
    ),
    foot(
        "rpf",
        "Inherits: ",
        "SELECT pg_catalog.string_agg(i.inhparent::pg_catalog.regclass::pg_catalog.text, ', ' ORDER BY i.inhseqno) FROM pg_catalog.pg_inherits i \
         JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid WHERE i.inhrelid = $oid AND NOT c.relispartition HAVING pg_catalog.count(*) > 0",
    ),
    foot(
        "rp",
        "",
        "SELECT CASE WHEN c.relkind = 'p' THEN 'Number of partitions: ' ELSE 'Number of child tables: ' END || n \
         || CASE WHEN n > 0 THEN ' (Use \\d+ to list them.)' ELSE '' END FROM pg_catalog.pg_class c, \
         (SELECT pg_catalog.count(*) AS n FROM pg_catalog.pg_inherits WHERE inhparent = $oid) AS children WHERE c.oid = $oid AND (n > 0 OR c.relkind = 'p')",
    ),
    verbose(
        "rp",
        "",
        "SELECT '    ' || i.inhrelid::pg_catalog.regclass || COALESCE(' ' || pg_catalog.pg_get_expr(c.relpartbound, c.oid), '') \
         FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = $oid ORDER BY 1",
    ),
    verbose(
        "rpmi",
        "Access method: ",
        "SELECT am.amname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_am am ON am.oid = c.relam WHERE c.oid = $oid AND c.relkind <> 'i'",
    ),
    verbose(
        "rpvmi",
        "Options: ",
        "SELECT pg_catalog.array_to_string(reloptions, ', ') FROM pg_catalog.pg_class WHERE oid = $oid AND reloptions IS NOT NULL",
    ),
];

pub(super) fn relation(shell: &mut Shell, relation: &Relation, is_verbose: bool) -> Result<Listing> {
    let sql = columns(relation, is_verbose);
    let (columns, rows) = shell.table(&sql)?;
    let mut footers = Vec::new();
    for foot in FEET.iter().filter(|foot| foot.kinds.contains(relation.kind) && (is_verbose || !foot.is_verbose)) {
        let (_, lines) = shell.table(&foot.sql.replace("$oid", &relation.oid))?;
        let mut heading = foot.heading;
        for line in lines.into_iter().flatten().flatten() {
            // A list's hint how to see more is not for a list that shows more.
            let line = if is_verbose { line.replace(" (Use \\d+ to list them.)", "") } else { line };
            footers.push(format!("{heading}{line}"));
            heading = "";
        }
    }
    Ok(Listing { title: relation.title(), columns, rows, footers: Some(footers) })
}

/// The columns that `\d` shows of each column.
fn columns(relation: &Relation, is_verbose: bool) -> String {
    let oid = &relation.oid;
    if relation.kind == 'S' {
        return format!(
            "SELECT pg_catalog.format_type(seqtypid, NULL) AS \"Type\", seqstart AS \"Start\", seqmin AS \"Minimum\", seqmax AS \"Maximum\", \
             seqincrement AS \"Increment\", CASE WHEN seqcycle THEN 'yes' ELSE 'no' END AS \"Cycles?\", seqcache AS \"Cache\" \
             FROM pg_catalog.pg_sequence WHERE seqrelid = {oid}"
        );
    }
    let is_index = matches!(relation.kind, 'i' | 'I');
    let own = match is_index {
        true => format!(
            ", CASE WHEN a.attnum <= (SELECT i.indnkeyatts FROM pg_catalog.pg_index i WHERE i.indexrelid = {oid}) THEN 'yes' ELSE 'no' END AS \"Key?\", \
             pg_catalog.pg_get_indexdef(a.attrelid, a.attnum, true) AS \"Definition\""
        ),
        false => ", (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type t WHERE c.oid = a.attcollation AND t.oid = a.atttypid \
             AND a.attcollation <> t.typcollation) AS \"Collation\", CASE WHEN a.attnotnull THEN 'not null' ELSE '' END AS \"Nullable\", \
             CASE WHEN a.attidentity = 'a' THEN 'generated always as identity' WHEN a.attidentity = 'd' THEN 'generated by default as identity' \
             WHEN a.attgenerated = 's' THEN 'generated always as (' || pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) || ') stored' \
             WHEN a.attgenerated = 'v' THEN 'generated always as (' || pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) || ')' \
             ELSE COALESCE(pg_catalog.pg_get_expr(d.adbin, d.adrelid, true), '') END AS \"Default\""
            .to_owned(),
    };
    let storage = ", CASE a.attstorage WHEN 'p' THEN 'plain' WHEN 'e' THEN 'external' WHEN 'm' THEN 'main' WHEN 'x' THEN 'extended' END AS \"Storage\"";
    let compression = ", CASE a.attcompression WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' ELSE a.attcompression::pg_catalog.text END AS \"Compression\"";
    let description = ", pg_catalog.col_description(a.attrelid, a.attnum) AS \"Description\"";
    let more = match relation.kind {
        _ if !is_verbose => String::new(),
        'r' | 'p' | 'm' | 't' => format!("{storage}{compression}{description}"),
        'i' | 'I' => storage.to_owned(),
        _ => format!("{storage}{description}"),
    };
    format!(
        "SELECT a.attname AS \"Column\", pg_catalog.format_type(a.atttypid, a.atttypmod) AS \"Type\"{own}{more} \
         FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE a.attrelid = {} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        literal(oid)
    )
}
