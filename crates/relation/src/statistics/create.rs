//! CREATE STATISTICS, and the copies that CREATE TABLE (LIKE ... INCLUDING STATISTICS) makes.

use std::sync::Arc;

use melba_catalog::extended_statistics::{statistics_columns, statistics_kinds as kinds, statistics_of};
use melba_catalog::{ExtendedStatistics, Object, ObjectAddress, Relation, RelationKind, classes};
use melba_definition::context::Ddl;
use melba_definition::expression::{Use, stored_expression};
use melba_definition::naming::{NAME_BYTES_MAX, clip, object_name};
use melba_definition::words::plural;
use melba_parse::nodes::{inner, string, strings};
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{CreateStatsStmt, Node};

use crate::constraint::row::is_system_column;

/// Most columns and expressions of a statistics object (PostgreSQL's STATS_MAX_DIMENSIONS).
const DIMENSIONS_MAX: usize = 8;

/// What a statistics object is about.
#[derive(Default)]
struct Dimensions {
    /// Names for the object's own name.
    names: Vec<String>,
    columns: Vec<i16>,
    expressions: Vec<Arc<str>>,
    depends_on: Vec<ObjectAddress>,
}

pub fn create_statistics(ddl: &Ddl<'_>, s: &CreateStatsStmt) -> Result<()> {
    let table = statistics_table(ddl, s)?;
    let names = strings(&s.defnames);
    let (schema, given) = if names.is_empty() { (None, None) } else { ddl.qualified(&names).map(|(s, n)| (s, Some(n)))? };
    let namespace = match given {
        Some(_) => ddl.namespace_for_creation(schema)?,
        None => table.namespace,
    };
    if let Some(name) = given
        && ddl.catalog().statistics_object_by_name(namespace, name).is_some()
    {
        let message = format!("statistics object \"{name}\" already exists");
        if s.if_not_exists {
            ddl.notice_of(SqlState::DUPLICATE_OBJECT, format!("{message}, skipping"));
            return Ok(());
        }
        bail!(DUPLICATE_OBJECT, "{message}");
    }
    if s.exprs.len() > DIMENSIONS_MAX {
        bail!(TOO_MANY_COLUMNS, "cannot have more than {DIMENSIONS_MAX} columns in statistics");
    }
    let mut of = Dimensions::default();
    for element in &s.exprs {
        of.add(ddl, &table, element, s.exprs.len())?;
    }
    let kinds = requested_kinds(s, &of)?;
    of.check()?;
    let name = match given {
        Some(name) => name.to_owned(),
        None => free_name(ddl, namespace, &table.name, &of.names),
    };
    put_statistics(
        ddl,
        ExtendedStatistics {
            oid: ddl.tx().new_oid(),
            name: name.into(),
            namespace,
            owner: ddl.user(),
            table: table.oid,
            columns: of.columns,
            expressions: of.expressions,
            kinds,
            target: None,
            depends_on: of.depends_on,
            data: Vec::new(),
        },
    );
    Ok(())
}

pub fn put_statistics(ddl: &Ddl<'_>, statistics: ExtendedStatistics) {
    ddl.tx().put(Object::ExtendedStatistics(Arc::new(statistics)));
}

fn statistics_table(ddl: &Ddl<'_>, s: &CreateStatsStmt) -> Result<Arc<Relation>> {
    let [from] = s.relations.as_slice() else {
        bail!(FEATURE_NOT_SUPPORTED, "only a single relation is allowed in CREATE STATISTICS");
    };
    let N::RangeVar(name) = inner(from)? else {
        bail!(FEATURE_NOT_SUPPORTED, "CREATE STATISTICS only supports relation names in the FROM clause");
    };
    let table = ddl.open_target(name)?;
    if table.foreign.is_some() {
        return Err(DbError::unsupported("extended statistics of foreign tables"));
    }
    if !matches!(table.kind, RelationKind::Table | RelationKind::MaterializedView | RelationKind::PartitionedTable) {
        return Err(err!(WRONG_OBJECT_TYPE, "cannot define statistics for relation \"{}\"", table.name)
            .detail(format!("This operation is not supported for {}.", plural(table.kind))));
    }
    if table.namespace == classes::PG_CATALOG {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied: \"{}\" is a system catalog", table.name);
    }
    ddl.require_own_relation(&table)?;
    Ok(table)
}

impl Dimensions {
    fn add(&mut self, ddl: &Ddl<'_>, table: &Relation, element: &Node, count: usize) -> Result<()> {
        let N::StatsElem(element) = inner(element)? else { return Err(DbError::internal("unexpected statistics element")) };
        let Some(node) = element.expr.as_deref() else {
            self.names.push(element.name.clone());
            return self.add_column(ddl, table, &element.name);
        };
        if let Some(name) = column_name(node).filter(|name| is_system_column(name)) {
            return self.add_column(ddl, table, name);
        }
        let stored = stored_expression(ddl, node, table, Use::Statistics, None)?;
        if let Some(column) = stored.column_only {
            let name = &table.columns[column as usize - 1].name;
            self.names.push(name.to_string());
            return self.add_column(ddl, table, name);
        }
        let mut system = false;
        stored.expr.visit_vars(&mut |v| system |= v.column <= 0);
        refuse_column(table, system, &stored.columns)?;
        if count > 1 && !has_order(ddl, stored.ty) {
            let ty = ddl.catalog().type_name(stored.ty, ddl.path());
            bail!(
                FEATURE_NOT_SUPPORTED,
                "expression cannot be used in multivariate statistics because its type {ty} has no default btree operator class"
            );
        }
        self.names.push("expr".to_owned());
        let read = stored.columns.iter();
        self.depends_on.extend(read.map(|c| ObjectAddress { class: classes::PG_CLASS, object: table.oid, sub: (*c).into() }));
        self.depends_on.extend(stored.depends_on);
        self.expressions.push(stored.text);
        Ok(())
    }

    fn add_column(&mut self, ddl: &Ddl<'_>, table: &Relation, name: &str) -> Result<()> {
        refuse_column(table, is_system_column(name), &[])?;
        let place = table.columns.iter().position(|c| !c.dropped && *c.name == *name);
        let place = place.ok_or_else(|| err!(UNDEFINED_COLUMN, "column \"{name}\" does not exist"))?;
        let number = place as i16 + 1;
        refuse_column(table, false, &[number])?;
        let ty = table.columns[place].ty;
        if !has_order(ddl, ty) {
            let ty = ddl.catalog().type_name(ty, ddl.path());
            bail!(
                FEATURE_NOT_SUPPORTED,
                "column \"{name}\" cannot be used in statistics because its type {ty} has no default btree operator class"
            );
        }
        self.columns.push(number);
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        let count = self.columns.len() + self.expressions.len();
        if count < 2 && self.expressions.len() != 1 {
            bail!(INVALID_OBJECT_DEFINITION, "extended statistics require at least 2 columns");
        }
        self.columns.sort_unstable();
        if self.columns.windows(2).any(|pair| pair[0] == pair[1]) {
            bail!(DUPLICATE_COLUMN, "duplicate column name in statistics definition");
        }
        if self.expressions.iter().enumerate().any(|(at, e)| self.expressions[..at].contains(e)) {
            bail!(DUPLICATE_COLUMN, "duplicate expression in statistics definition");
        }
        Ok(())
    }
}

/// The name of a column in parentheses.
fn column_name(node: &Node) -> Option<&str> {
    match &node.node {
        Some(N::ColumnRef(column)) => column.fields.last().and_then(string),
        _ => None,
    }
}

fn refuse_column(table: &Relation, system: bool, columns: &[i16]) -> Result<()> {
    if system {
        bail!(FEATURE_NOT_SUPPORTED, "statistics creation on system columns is not supported");
    }
    if columns.iter().any(|c| table.columns[*c as usize - 1].generated == b'v') {
        bail!(FEATURE_NOT_SUPPORTED, "statistics creation on virtual generated columns is not supported");
    }
    Ok(())
}

fn has_order(ddl: &Ddl<'_>, ty: Oid) -> bool {
    ddl.catalog().default_operator_class(classes::BTREE, ty).is_some()
}

fn requested_kinds(s: &CreateStatsStmt, of: &Dimensions) -> Result<Vec<u8>> {
    if s.exprs.len() == 1 && of.expressions.len() == 1 && !s.stat_types.is_empty() {
        let message = "when building statistics on a single expression, statistics kinds may not be specified";
        bail!(FEATURE_NOT_SUPPORTED, "{message}");
    }
    let mut requested = Vec::new();
    for kind in strings(&s.stat_types) {
        requested.push(match kind {
            "ndistinct" => kinds::NDISTINCT,
            "dependencies" => kinds::DEPENDENCIES,
            "mcv" => kinds::MCV,
            _ => bail!(SYNTAX_ERROR, "unrecognized statistics kind \"{kind}\""),
        });
    }
    let all = [kinds::NDISTINCT, kinds::DEPENDENCIES, kinds::MCV];
    let wanted = |kind: &u8| requested.contains(kind) || requested.is_empty() && s.exprs.len() >= 2;
    let mut chosen: Vec<u8> = all.into_iter().filter(wanted).collect();
    if !of.expressions.is_empty() {
        chosen.push(kinds::EXPRESSIONS);
    }
    Ok(chosen)
}

/// `table_column_column_stat`, numbered until nothing has it.
fn free_name(ddl: &Ddl<'_>, namespace: Oid, table: &str, columns: &[String]) -> String {
    let columns = columns.join("_");
    let columns = clip(&columns, NAME_BYTES_MAX);
    let catalog = ddl.catalog();
    let labels = std::iter::once("stat".to_owned()).chain((1..).map(|n: u32| format!("stat{n}")));
    let mut names = labels.map(|label| object_name(table, Some(columns), &label));
    names.find(|name| catalog.statistics_object_by_name(namespace, name).is_none()).unwrap_or_default()
}

/// LIKE ... INCLUDING STATISTICS; `number` maps the source's columns. Returns the copies beside their originals.
pub fn copy_statistics(ddl: &Ddl<'_>, table: Oid, source: &Relation, number: &dyn Fn(i16) -> i16) -> Result<Vec<(Oid, Oid)>> {
    let target = ddl.relation(table)?;
    let mut copies = Vec::new();
    for original in statistics_of(&ddl.catalog(), source.oid) {
        let mut columns: Vec<i16> = original.columns.iter().map(|c| number(*c)).collect();
        columns.sort_unstable();
        let mut names: Vec<String> = statistics_columns(original, source).map(|name| name.to_string()).collect();
        names.extend(original.expressions.iter().map(|_| "expr".to_owned()));
        let renumbered = |of: &ObjectAddress| match of.class == classes::PG_CLASS && of.object == source.oid && of.sub > 0 {
            true => ObjectAddress { object: table, sub: number(of.sub as i16).into(), ..*of },
            false => *of,
        };
        let oid = ddl.tx().new_oid();
        copies.push((original.oid, oid));
        put_statistics(
            ddl,
            ExtendedStatistics {
                oid,
                name: free_name(ddl, target.namespace, &target.name, &names).into(),
                namespace: target.namespace,
                owner: ddl.user(),
                table,
                columns,
                depends_on: original.depends_on.iter().map(renumbered).collect(),
                data: Vec::new(),
                ..(**original).clone()
            },
        );
    }
    Ok(copies)
}
