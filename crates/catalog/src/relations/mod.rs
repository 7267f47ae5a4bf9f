//! The rows of the system relations, computed from a catalog snapshot: one file per relation, `plain` for
//! those of plain objects, `EMPTY` for those without rows in Melba yet.
//!
//! Rows come in the order of their OIDs. A scan may pass equality conditions: a generator uses those by which it can find
//! objects, and `RelationRows` drops rows that do not match, so every row that is returned satisfies them all.

mod access;
mod kept;
mod pg_aggregate;
mod pg_attrdef;
mod pg_attribute;
mod pg_auth_members;
mod pg_authid;
mod pg_cast;
mod pg_class;
mod pg_collation;
mod pg_constraint;
mod pg_database;
mod pg_db_role_setting;
mod pg_default_acl;
mod pg_depend;
mod pg_description;
mod pg_enum;
mod pg_event_trigger;
mod pg_extension;
mod pg_foreign;
mod pg_index;
mod pg_inherits;
mod pg_init_privs;
mod pg_namespace;
mod pg_operator;
mod pg_parameter_acl;
mod pg_partitioned_table;
mod pg_policy;
mod pg_proc;
mod pg_publication;
mod pg_range;
mod pg_rewrite;
mod pg_sequence;
mod pg_shdepend;
mod pg_shdescription;
mod pg_statistic;
mod pg_statistic_ext;
mod pg_trigger;
mod pg_type;
mod plain;
mod text_search;
mod values;

use melba_types::limits::Ticker;
use melba_types::{Batch, Bitmap, Column as Vector, Datum, DbError, Kind, Oid, Result};

pub use pg_class::FIRST_NORMAL_XID;
pub use pg_statistic::{ColumnStatistics, StatisticsSlot, statistic_kinds};

use crate::objects::*;
use crate::snapshot::Catalog;

/// `column = value`, by the column's place (0-based).
#[derive(Clone, Debug)]
pub struct EqFilter {
    pub column: usize,
    pub value: Datum,
}

/// The request of a scan of a system relation.
#[derive(Clone, Copy, Default)]
pub struct Request<'a> {
    /// Every row has all of these values.
    pub filters: &'a [EqFilter],
    /// The rows wanted have one of these distinct values in a column. Others may come as well.
    pub any_of: Option<(usize, &'a [Datum])>,
    /// Of the rows that a scan with the same `filters` and `any_of` returns, those to return now, by their places.
    pub rows: Option<&'a Bitmap>,
    /// The columns of the batch, in this order, by their places in the relation.
    pub columns: &'a [usize],
}

/// Data of the system relations that the catalog does not have. Implemented by the SQL layer.
pub trait LiveInfo {
    /// A relation's size and number of rows at the last count; `None`: never counted.
    fn relation_estimate(&self, _relation: &Relation) -> Option<RelationEstimate> {
        None
    }

    /// What is known of a table's columns, or of one, for pg_statistic: by their places, ascending.
    fn column_statistics(
        &self,
        _catalog: &Catalog,
        _table: &Relation,
        _column: Option<usize>,
    ) -> Result<Vec<(usize, ColumnStatistics)>> {
        Ok(Vec::new())
    }
}

/// For pg_class.relpages and reltuples.
#[derive(Clone, Copy, Debug)]
pub struct RelationEstimate {
    pub pages: i32,
    pub rows: f32,
}

/// Knows nothing: for tests and for a database that is not running.
#[derive(Debug)]
pub struct NoLiveInfo;

impl LiveInfo for NoLiveInfo {}

/// The inputs of a generator.
#[derive(Clone, Copy)]
struct GeneratorInput<'a> {
    catalog: &'a Catalog,
    live: &'a dyn LiveInfo,
    filters: &'a [EqFilter],
}

impl GeneratorInput<'_> {
    /// The OID that the scan requires of a column, if any.
    fn oid(&self, column: usize) -> Option<Oid> {
        self.filters.iter().find(|f| f.column == column).and_then(|f| match f.value {
            Datum::Oid(oid) => Some(Oid(oid)),
            _ => None,
        })
    }

    /// The text that the scan requires of a column, if any.
    fn text(&self, column: usize) -> Option<&str> {
        self.filters.iter().find(|f| f.column == column).and_then(|f| match &f.value {
            Datum::Text(text) => Some(&**text),
            _ => None,
        })
    }

    /// The one object with the OID in column 0, or all of them.
    fn by_oid<'a, T>(&self, one: impl Fn(Oid) -> Option<&'a T>, all: impl Iterator<Item = &'a T>) -> Vec<&'a T> {
        match self.oid(0) {
            Some(oid) => one(oid).into_iter().collect(),
            None => all.collect(),
        }
    }
}

/// Rows on their way to being a batch.
struct RelationRows<'a> {
    /// The columns of the batch, by their places in the relation.
    places: &'a [usize],
    columns: Vec<Vector>,
    filters: Vec<EqFilter>,
    /// Rows that have satisfied the filters, and the selection of those for the batch.
    matched: usize,
    kept: Option<&'a Bitmap>,
    rows: usize,
    ticker: Ticker,
    /// The error that ended the scan: a cancel request, a timeout.
    interrupt: Result<()>,
}

/// Adds a row given as expressions, one a column. Only those of columns that a filter or the batch has are computed, and the
/// latter only if the filters let the row through.
macro_rules! push {
    ($out:expr, [$($value:expr),* $(,)?]) => {
        $out.push(|wanted: usize| {
            let mut at = 0..;
            $(if at.next() == Some(wanted) { return $value; })*
            melba_types::Datum::Null
        })
    };
}
use push;

impl<'a> RelationRows<'a> {
    fn new(relation: &Relation, request: &Request<'a>) -> RelationRows<'a> {
        let columns = request.columns.iter().map(|at| Vector::with_capacity(relation.columns[*at].kind, 0)).collect();
        RelationRows {
            places: request.columns,
            columns,
            filters: request.filters.to_vec(),
            matched: 0,
            kept: request.rows,
            rows: 0,
            ticker: Ticker::default(),
            interrupt: Ok(()),
        }
    }

    /// Adds a row, given as the value of each of the relation's columns, unless a filter is against it.
    fn push(&mut self, value: impl Fn(usize) -> Datum) {
        if self.interrupt.is_ok() {
            self.interrupt = self.ticker.step();
        }
        if self.interrupt.is_err() || !self.filters.iter().all(|f| equal(&value(f.column), &f.value)) {
            return;
        }
        self.matched += 1;
        if self.kept.is_some_and(|kept| self.matched > kept.len() || !kept.get(self.matched - 1)) {
            return;
        }
        for (column, place) in self.columns.iter_mut().zip(self.places) {
            column.push(value(*place));
        }
        self.rows += 1;
    }
}

/// Equality of values of the types by which system relations are looked up; other types never match, nor does NULL.
fn equal(a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Oid(a), Datum::Oid(b)) => a == b,
        (Datum::Text(a), Datum::Text(b)) => a == b,
        (Datum::Char(a), Datum::Char(b)) => a == b,
        (Datum::Bool(a), Datum::Bool(b)) => a == b,
        (Datum::Int2(a), Datum::Int2(b)) => a == b,
        (Datum::Int4(a), Datum::Int4(b)) => a == b,
        _ => false,
    }
}

/// Whether `rows` can apply an equality on a column of a kind.
pub fn can_filter(kind: Kind) -> bool {
    matches!(kind, Kind::Oid | Kind::Text | Kind::Char | Kind::Bool | Kind::Int2 | Kind::Int4)
}

/// The kind of a column's values.
#[derive(Clone, Copy)]
enum Values {
    /// So many rows have one value, about.
    Rows(f64),
    /// They are schemas.
    Schemas,
    /// They are the tables or indexes to which foreign keys refer.
    Referenced,
    /// They are objects on which others depend.
    DependedOn,
}

/// Columns that a generator finds rows by without making all of them.
const LOOKUPS: &[(&str, &[(usize, Values)])] = {
    use Values::{DependedOn, Referenced, Rows, Schemas};
    &[
        ("pg_attrdef", &[(0, Rows(1.0)), (1, Rows(2.0))]),
        ("pg_attribute", &[(0, Rows(10.0))]),
        ("pg_authid", &[(0, Rows(1.0))]),
        ("pg_cast", &[(0, Rows(1.0)), (1, Rows(5.0))]),
        ("pg_class", &[(0, Rows(1.0)), (1, Rows(1.0)), (2, Schemas), (3, Rows(1.0))]),
        ("pg_collation", &[(0, Rows(1.0))]),
        ("pg_constraint", &[(0, Rows(1.0)), (2, Schemas), (8, Rows(5.0)), (9, Rows(2.0)), (10, Referenced), (12, Referenced)]),
        ("pg_database", &[(0, Rows(1.0))]),
        ("pg_depend", &[(1, Rows(3.0)), (4, DependedOn)]),
        ("pg_description", &[(0, Rows(1.0))]),
        ("pg_enum", &[(1, Rows(5.0))]),
        ("pg_index", &[(0, Rows(1.0)), (1, Rows(2.0))]),
        ("pg_inherits", &[(0, Rows(1.0)), (1, Rows(5.0))]),
        ("pg_namespace", &[(0, Rows(1.0)), (1, Rows(1.0))]),
        ("pg_operator", &[(0, Rows(1.0))]),
        ("pg_partitioned_table", &[(0, Rows(1.0))]),
        ("pg_policy", &[(0, Rows(1.0)), (2, Rows(2.0))]),
        ("pg_proc", &[(0, Rows(1.0)), (1, Rows(2.0)), (2, Schemas)]),
        ("pg_range", &[(0, Rows(1.0))]),
        ("pg_rewrite", &[(0, Rows(1.0)), (2, Rows(1.0))]),
        ("pg_sequence", &[(0, Rows(1.0))]),
        ("pg_statistic", &[(0, Rows(8.0))]),
        ("pg_statistic_ext", &[(0, Rows(1.0)), (1, Rows(2.0))]),
        ("pg_statistic_ext_data", &[(0, Rows(1.0))]),
        ("pg_trigger", &[(0, Rows(1.0)), (1, Rows(2.0))]),
        ("pg_type", &[(0, Rows(1.0)), (1, Rows(1.0)), (2, Schemas), (11, Rows(1.0))]),
    ]
};

/// About how many rows of a system relation have one value of a column, where a lookup finds these; `None`: all rows are scanned.
pub fn rows_per_value(relation: &Relation, column: usize, catalog: &Catalog) -> Option<f64> {
    let Storage::System(name) = relation.storage else { return None };
    let at = LOOKUPS.binary_search_by_key(&name, |l| l.0).ok()?;
    let of = |values: usize| rows_estimate(relation, catalog) / values.max(1) as f64;
    Some(match LOOKUPS[at].1.iter().find(|(c, _)| *c == column)?.1 {
        Values::Rows(rows) => rows,
        Values::Schemas => of(catalog.namespace_count()).max(largest_schema(name, catalog) as f64),
        Values::Referenced => of(catalog.referenced_count()),
        Values::DependedOn => of(catalog.depended_on_count()),
    })
}

/// How many objects the largest of the users' schemas has, which is the one usually queried.
fn largest_schema(name: &str, catalog: &Catalog) -> usize {
    match name {
        "pg_class" => catalog.relations_of_largest_schema(),
        "pg_type" => catalog.types_of_largest_schema(),
        "pg_constraint" => catalog.constraints_of_largest_schema(),
        _ => 0,
    }
}

/// About how many values a column of a system relation has; `None`: unknown.
pub fn distinct_values(relation: &Relation, column: usize, catalog: &Catalog) -> Option<f64> {
    if let Some(rows) = rows_per_value(relation, column, catalog) {
        return Some((rows_estimate(relation, catalog) / rows).max(1.0));
    }
    let column = relation.columns.get(column)?;
    match column.kind {
        Kind::Oid if &*column.name == "oid" => Some(rows_estimate(relation, catalog)),
        // The system relations that objects are rows of.
        Kind::Oid if column.name.ends_with("classid") || column.name.ends_with("classoid") => Some(10.0),
        Kind::Bool => Some(2.0),
        // The number of kinds of one relation's parts.
        Kind::Char => Some(4.0),
        // Numbers of columns.
        Kind::Int2 | Kind::Int4 => Some(10.0),
        _ => None,
    }
}

/// The share of rows of a system relation in which a flag is true; `None`: unknown.
pub fn share_of_flag(relation: &Relation, column: usize) -> Option<f64> {
    let is_system = matches!(relation.storage, Storage::System(_));
    (is_system && &*relation.columns.get(column)?.name == "attisdropped").then_some(0.01)
}

/// About how many rows a system relation has.
pub fn rows_estimate(relation: &Relation, catalog: &Catalog) -> f64 {
    let Storage::System(name) = relation.storage else { return 100.0 };
    let count = match name {
        "pg_class" => catalog.relation_count(),
        "pg_attribute" | "pg_statistic" => catalog.relation_count() * 8,
        "pg_index" | "pg_attrdef" | "pg_inherits" | "pg_sequence" => catalog.relation_count() / 3,
        "pg_type" => catalog.type_count(),
        "pg_proc" => catalog.function_count(),
        "pg_constraint" => catalog.constraint_count(),
        "pg_depend" => 5 * catalog.relation_count(),
        "pg_description" => catalog.description_count(),
        "pg_namespace" => catalog.namespace_count(),
        "pg_operator" => 800,
        "pg_am" | "pg_database" | "pg_language" | "pg_tablespace" => 4,
        "pg_amop" | "pg_amproc" => 800,
        "pg_rewrite" | "pg_trigger" | "pg_policy" => catalog.relation_count() / 10,
        _ => 100,
    };
    count.max(1) as f64
}

/// A privilege list as a value of type aclitem[].
pub fn acl_datum(acl: &Acl, catalog: &Catalog) -> Datum {
    values::acl(acl, catalog)
}

type Generator = fn(&GeneratorInput<'_>, &mut RelationRows<'_>);

/// Relations whose rows the catalog has.
const GENERATORS: &[(&str, Generator)] = &[
    ("pg_aggregate", pg_aggregate::rows),
    ("pg_amop", access::operator_rows),
    ("pg_amproc", access::function_rows),
    ("pg_attrdef", pg_attrdef::rows),
    ("pg_attribute", pg_attribute::rows),
    ("pg_auth_members", pg_auth_members::rows),
    ("pg_authid", pg_authid::rows),
    ("pg_cast", pg_cast::rows),
    ("pg_class", pg_class::rows),
    ("pg_collation", pg_collation::rows),
    ("pg_constraint", pg_constraint::rows),
    ("pg_database", pg_database::rows),
    ("pg_db_role_setting", pg_db_role_setting::rows),
    ("pg_default_acl", pg_default_acl::rows),
    ("pg_depend", pg_depend::rows),
    ("pg_description", pg_description::rows),
    ("pg_enum", pg_enum::rows),
    ("pg_event_trigger", pg_event_trigger::rows),
    ("pg_extension", pg_extension::rows),
    ("pg_foreign_data_wrapper", pg_foreign::wrapper_rows),
    ("pg_foreign_server", pg_foreign::server_rows),
    ("pg_foreign_table", pg_foreign::table_rows),
    ("pg_index", pg_index::rows),
    ("pg_inherits", pg_inherits::rows),
    ("pg_init_privs", pg_init_privs::rows),
    ("pg_namespace", pg_namespace::rows),
    ("pg_opclass", access::class_rows),
    ("pg_operator", pg_operator::rows),
    ("pg_opfamily", access::family_rows),
    ("pg_parameter_acl", pg_parameter_acl::rows),
    ("pg_partitioned_table", pg_partitioned_table::rows),
    ("pg_policy", pg_policy::rows),
    ("pg_proc", pg_proc::rows),
    ("pg_publication", pg_publication::rows),
    ("pg_publication_namespace", pg_publication::schema_rows),
    ("pg_publication_rel", pg_publication::table_rows),
    ("pg_range", pg_range::rows),
    ("pg_rewrite", pg_rewrite::rows),
    ("pg_sequence", pg_sequence::rows),
    ("pg_shdepend", pg_shdepend::rows),
    ("pg_shdescription", pg_shdescription::rows),
    ("pg_statistic", pg_statistic::rows),
    ("pg_statistic_ext", pg_statistic_ext::rows),
    ("pg_statistic_ext_data", pg_statistic_ext::data_rows),
    ("pg_trigger", pg_trigger::rows),
    ("pg_ts_config", text_search::config_rows),
    ("pg_ts_config_map", text_search::map_rows),
    ("pg_ts_dict", text_search::dictionary_rows),
    ("pg_type", pg_type::rows),
    ("pg_user_mapping", pg_foreign::mapping_rows),
];

/// Relations of features that Melba does not have, and those whose rows scans of trees give.
const EMPTY: &[&str] = &[
    "pg_largeobject",
    "pg_largeobject_metadata",
    "pg_replication_origin",
    "pg_seclabel",
    "pg_shseclabel",
    "pg_subscription",
    "pg_subscription_rel",
    // The standard's assessment of a product's features: no query needs it.
    "sql_features",
    "sql_implementation_info",
    "sql_parts",
    "sql_sizing",
];

/// Whether a relation's rows depend only on the catalog, so that two scans by one snapshot find the same rows.
pub fn is_of_snapshot(relation: &Relation) -> bool {
    let Storage::System(name) = relation.storage else { return false };
    name != "pg_statistic" && GENERATORS.binary_search_by_key(&name, |g| g.0).is_ok()
}

/// The requested rows of a system relation (`Storage::System`).
///
/// # Errors
/// XX000 when `relation` is no system relation; 57014 and others when the statement is interrupted; any error of `live`.
pub fn rows(relation: &Relation, catalog: &Catalog, live: &dyn LiveInfo, request: &Request<'_>) -> Result<Batch> {
    let Storage::System(name) = relation.storage else {
        return Err(DbError::internal(format!("\"{}\" is not a system relation", relation.name)));
    };
    let mut out = RelationRows::new(relation, request);
    if request.filters.iter().any(|f| f.value.is_null()) {
        return Ok(Batch::new(out.columns, 0));
    }
    if let Ok(at) = GENERATORS.binary_search_by_key(&name, |g| g.0) {
        let (generator, source) = (GENERATORS[at].1, GeneratorInput { catalog, live, filters: request.filters });
        if is_of_snapshot(relation)
            && let Some(batch) = kept::rows(relation, &source, generator, request)
        {
            return batch;
        }
        generate(generator, source, request, &mut out);
    } else if !EMPTY.contains(&name) && !plain::rows(name, relation, catalog, &mut out) {
        return Err(DbError::internal(format!("system relation \"{name}\" has no generator")));
    }
    out.interrupt?;
    Ok(Batch::new(out.columns, out.rows))
}

/// Runs a generator, once for each value that a column may have.
fn generate(generator: Generator, source: GeneratorInput<'_>, request: &Request<'_>, out: &mut RelationRows<'_>) {
    let Some((column, values)) = request.any_of else { return generator(&source, out) };
    for value in values {
        let filters: Vec<EqFilter> = request.filters.iter().cloned().chain([EqFilter { column, value: value.clone() }]).collect();
        out.filters.clone_from(&filters);
        generator(&GeneratorInput { filters: &filters, ..source }, out);
    }
}

#[cfg(test)]
mod tests;
