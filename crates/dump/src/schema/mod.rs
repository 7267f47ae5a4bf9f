//! The objects of a database, as statements that recreate them, read from PostgreSQL's catalogs by plain queries.
//!
//! The connection's search_path is empty, so that every name is qualified. Objects are created in the order of their OIDs within
//! a kind, each after those it needs.

mod conversions;
mod event_triggers;
mod foreign;
mod functions;
mod order;
mod policies;
mod properties;
mod publications;
mod relations;
mod rules;
mod statistics;
mod triggers;
mod types;
mod views;

use order::Definition;
use postgres::{Client, SimpleQueryMessage};

use crate::Result;
use crate::archive::{Entry, Section};

/// Namespaces that belong to users, of the alias `n`.
const USER: &str = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'";

/// Functions, of the alias `p`, that belong neither to an extension nor to a range type: those are created with it.
const OWN_FUNCTION: &str = "NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
    WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype IN ('e', 'i'))";

/// A connection for queries of the catalogs.
pub struct Reader<'a> {
    pub client: &'a mut Client,
}

/// Rows as text.
pub type Rows = Vec<Vec<Option<String>>>;

impl Reader<'_> {
    pub fn rows(&mut self, sql: &str) -> Result<Rows> {
        let messages = self.client.simple_query(sql).map_err(|e| format!("{}, in {sql}", crate::connection::describe(&e)))?;
        let row = |m: SimpleQueryMessage| match m {
            SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect()),
            _ => None,
        };
        Ok(messages.into_iter().filter_map(row).collect())
    }

    /// Entries of a query that returns (kind, schema, name, statement).
    fn entries(&mut self, section: Section, sql: &str) -> Result<Vec<Entry>> {
        let entry = |row: Vec<Option<String>>| {
            let [kind, schema, name, sql] = <[_; 4]>::try_from(row).ok()?;
            Some(Entry { section, kind: kind?, schema, name: name?, sql: sql? })
        };
        let rows = self.rows(sql)?;
        let count = rows.len();
        let entries: Vec<Entry> = rows.into_iter().filter_map(entry).collect();
        if entries.len() == count { Ok(entries) } else { Err(format!("the catalogs hold what cannot be dumped: {sql}")) }
    }

    /// Definitions of a query that returns (key, kind, schema, name, statement).
    fn definitions(&mut self, sql: &str) -> Result<Vec<Definition>> {
        let definition = |row: Vec<Option<String>>| {
            let [key, kind, schema, name, sql] = <[_; 5]>::try_from(row).ok()?;
            let entry = Entry { section: Section::Before, kind: kind?, schema, name: name?, sql: sql? };
            Some(Definition { key: key?, entry, refresh: None })
        };
        let rows = self.rows(sql)?;
        let count = rows.len();
        let all: Vec<Definition> = rows.into_iter().filter_map(definition).collect();
        if all.len() == count { Ok(all) } else { Err(format!("the catalogs hold what cannot be dumped: {sql}")) }
    }
}

/// All entries in the order in which they are to be restored.
pub fn entries(reader: &mut Reader) -> Result<Vec<Entry>> {
    refuse_unsupported(reader)?;
    let mut all = types::schemas(reader)?;
    all.extend(types::extensions(reader)?);
    all.extend(types::shells(reader)?);
    let mut definitions = Vec::new();
    let foreign = [foreign::wrappers(), foreign::servers()];
    let others = [types::types(), types::base_types(), relations::sequences(), functions::functions(), relations::tables()];
    for sql in foreign.iter().chain(&others) {
        definitions.extend(reader.definitions(sql)?);
    }
    definitions.extend(views::definitions(reader)?);
    let early = views::early_keys(reader)?;
    for key in &early {
        if let Some(table) = definitions.iter_mut().find(|d| d.key == key.table) {
            table.entry.sql = format!("{}\n{}", table.entry.sql, key.statement);
        }
    }
    let (made, refreshes) = order::entries(reader, definitions)?;
    all.extend(made);
    all.extend(reader.entries(Section::Before, &foreign::mappings())?);
    all.extend(relations::before(reader)?);
    let later = relations::after(reader)?.into_iter().filter(|e| !early.iter().any(|key| key.statement == e.sql));
    all.extend(later);
    all.extend(views::with_keys(reader)?);
    all.extend(refreshes);
    all.extend(views::after(reader)?);
    all.extend(policies::entries(reader)?);
    all.extend(rules::after(reader)?);
    all.extend(statistics::after(reader)?);
    all.extend(triggers::after(reader)?);
    all.extend(conversions::after(reader)?);
    all.extend(properties::entries(reader)?);
    all.extend(publications::entries(reader)?);
    all.extend(event_triggers::last(reader)?);
    all.sort_by_key(|e| e.section);
    Ok(all)
}

/// A table whose rows are to be dumped.
pub struct Table {
    pub schema: String,
    pub name: String,
    /// `schema.table (columns)`, quoted: the target of COPY.
    pub target: String,
    pub is_unlogged: bool,
    pub bytes: u64,
}

/// The tables with rows, largest first, so that the last worker does not end long after the others.
pub fn tables(reader: &mut Reader) -> Result<Vec<Table>> {
    let sql = format!(
        "SELECT n.nspname, c.relname, format('%I.%I (%s)', n.nspname, c.relname,
            (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '')),
            c.relpersistence, pg_catalog.pg_table_size(c.oid)
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND {USER} ORDER BY 5 DESC, c.oid"
    );
    let table = |row: Vec<Option<String>>| {
        let [schema, name, target, persistence, bytes] = <[_; 5]>::try_from(row).ok()?;
        // A table without a column that can be given has no rows that could differ.
        Some(Table {
            schema: schema?,
            name: name?,
            target: target.filter(|t| !t.ends_with("()"))?,
            is_unlogged: persistence.as_deref() == Some("u"),
            bytes: bytes?.parse().ok()?,
        })
    };
    Ok(reader.rows(&sql)?.into_iter().filter_map(table).collect())
}

/// Objects that we could not recreate are refused, not left out.
fn refuse_unsupported(reader: &mut Reader) -> Result<()> {
    let sql = format!(
        "SELECT 'partition ' || c.oid::regclass || ', which is a foreign table' FROM pg_catalog.pg_class c
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE {USER} AND c.relkind = 'f' AND c.relispartition
         UNION ALL SELECT 'collation ' || c.collname FROM pg_catalog.pg_collation c
            JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace WHERE {USER}
         UNION ALL SELECT 'operator ' || o.oprname FROM pg_catalog.pg_operator o
            JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace WHERE {USER} AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                WHERE d.classid = 'pg_catalog.pg_operator'::regclass AND d.objid = o.oid AND d.deptype = 'e')
         UNION ALL SELECT 'operator family ' || o.opfname FROM pg_catalog.pg_opfamily o
            JOIN pg_catalog.pg_namespace n ON n.oid = o.opfnamespace WHERE {USER} AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                WHERE d.classid = 'pg_catalog.pg_opfamily'::regclass AND d.objid = o.oid AND d.deptype = 'e')
         UNION ALL SELECT 'cast from ' || c.castsource::regtype FROM pg_catalog.pg_cast c WHERE c.oid >= 16384
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                WHERE d.classid = 'pg_catalog.pg_cast'::regclass AND d.objid = c.oid AND d.deptype IN ('e', 'i'))
         UNION ALL SELECT 'transform for ' || t.trftype::regtype FROM pg_catalog.pg_transform t WHERE t.oid >= 16384
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                WHERE d.classid = 'pg_catalog.pg_transform'::regclass AND d.objid = t.oid AND d.deptype = 'e')
         UNION ALL SELECT 'aggregate ' || p.oid::regprocedure FROM pg_catalog.pg_proc p
            JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE {USER} AND p.prokind = 'a' AND {OWN_FUNCTION}"
    );
    let found: Vec<String> = reader.rows(&sql)?.into_iter().flatten().flatten().collect();
    match found.first() {
        None => Ok(()),
        Some(first) => Err(format!("melba dump does not know how to dump {first} ({} such objects); use pg_dump", found.len())),
    }
}
