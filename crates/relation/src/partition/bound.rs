//! Partition keys and bounds: PARTITION BY, FOR VALUES.

use std::sync::Arc;

use melba_analyze::{Expected, ExprKind};
use melba_catalog::detaching::{detaching_partition, with_attached};
use melba_catalog::{
    ObjectAddress, PartitionBound, PartitionColumn, PartitionKey, PartitionStrategy, PartitionValues, RangeDatum, Relation,
    TypeKind, classes,
};
use melba_definition::context::Ddl;
use melba_definition::expression::{Use, stored_expression};
use melba_expression::compile_for_table;
use melba_fmgr::io::plain_literal;
use melba_parse::nodes::{inner, strings};
use melba_table::PartitionMap;
use melba_tree::Expr;
use melba_types::{Datum, DbError, Oid, Result, bail, err};
use pg_query::protobuf as pb;
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{Node, PartitionBoundSpec, PartitionElem, PartitionSpec};

use crate::constraint::row::is_system_column;
use crate::index::build::{accepting_class, require_key_order};
use crate::index::request::AccessMethod;
use crate::operator_class::named_class;
use crate::partition::identity::inherit_identity;
use crate::table::relation::put_relation;
use crate::table::rows::{exec_context, scan_rows, table_target};

/// Most columns of a partition key (PostgreSQL's PARTITION_MAX_KEYS).
const KEYS_MAX: usize = 32;

/// PARTITION BY.
pub fn set_partition_key(ddl: &Ddl<'_>, table: Oid, spec: &PartitionSpec) -> Result<()> {
    let relation = ddl.relation(table)?;
    let strategy = match spec.strategy() {
        pb::PartitionStrategy::List => PartitionStrategy::List,
        pb::PartitionStrategy::Range => PartitionStrategy::Range,
        _ => PartitionStrategy::Hash,
    };
    if !relation.is_partition() && !relation.parents.is_empty() {
        bail!(INVALID_OBJECT_DEFINITION, "cannot create partitioned table as inheritance child");
    }
    if relation.persistence == melba_catalog::Persistence::Unlogged {
        bail!(FEATURE_NOT_SUPPORTED, "partitioned tables cannot be unlogged");
    }
    if spec.part_params.len() > KEYS_MAX {
        bail!(TOO_MANY_COLUMNS, "cannot partition using more than {KEYS_MAX} columns");
    }
    if strategy == PartitionStrategy::List && spec.part_params.len() != 1 {
        bail!(INVALID_OBJECT_DEFINITION, "cannot use \"list\" partition strategy with more than one column");
    }
    let (mut columns, mut needed) = (Vec::new(), Vec::new());
    for node in &spec.part_params {
        if let N::PartitionElem(element) = inner(node)? {
            columns.push(partition_column(ddl, &relation, strategy, element, &mut needed)?);
        }
    }
    for (at, column) in columns.iter().enumerate() {
        let pseudo = ddl.catalog().type_(column.ty).is_some_and(|t| t.type_kind == TypeKind::Pseudo);
        if column.column == 0 && pseudo {
            let name = ddl.catalog().type_name(column.ty, ddl.path());
            bail!(INVALID_OBJECT_DEFINITION, "partition key column {} has pseudo-type {name}", at + 1);
        }
    }
    let mut depends_on = relation.depends_on.clone();
    depends_on.extend(needed.into_iter().filter(|a: &ObjectAddress| a.object != table));
    let key = Arc::new(PartitionKey { strategy, columns });
    // Refused here rather than when the first row comes.
    PartitionMap::empty(&ddl.catalog(), &key)?;
    put_relation(ddl, Relation { partition_key: Some(key), depends_on, ..(*ddl.relation(table)?).clone() });
    Ok(())
}

fn partition_column(
    ddl: &Ddl<'_>,
    relation: &Relation,
    strategy: PartitionStrategy,
    element: &PartitionElem,
    needed: &mut Vec<ObjectAddress>,
) -> Result<PartitionColumn> {
    let (column, expression, ty, typmod, natural) = match element.expr.as_deref() {
        None => named_partition_column(relation, element)?,
        Some(node) => {
            let stored = stored_expression(ddl, node, relation, Use::PartitionKey, None)?;
            needed.extend(stored.depends_on.iter().copied());
            match stored.column_only {
                Some(number) => {
                    refuse_generated(relation, &[number]).map_err(|e| e.at(element.location))?;
                    let c = &relation.columns[number as usize - 1];
                    (number, None, c.ty, c.typmod, c.collation)
                }
                None if is_constant(&stored.expr) => {
                    bail!(INVALID_OBJECT_DEFINITION, "cannot use constant expression as partition key")
                }
                None => {
                    refuse_generated(relation, &stored.columns).map_err(|e| e.at(element.location))?;
                    (0, Some(stored.text), stored.ty, -1, stored.collation)
                }
            }
        }
    };
    let collation = match element.collation.is_empty() {
        true => natural,
        false => ddl.collation(&strings(&element.collation), ty, element.location)?,
    };
    let method = if strategy == PartitionStrategy::Hash { classes::HASH } else { classes::BTREE };
    let opclass = partition_opclass(ddl, element, ty, method)?;
    Ok(PartitionColumn { column, expression, ty, typmod, collation, natural_collation: natural, opclass })
}

#[allow(clippy::type_complexity)]
fn named_partition_column(relation: &Relation, element: &PartitionElem) -> Result<(i16, Option<Arc<str>>, Oid, i32, Oid)> {
    let name = &element.name;
    if is_system_column(name) {
        return Err(err!(INVALID_OBJECT_DEFINITION, "cannot use system column \"{name}\" in partition key").at(element.location));
    }
    let Some(at) = relation.columns.iter().position(|c| !c.dropped && *c.name == **name) else {
        return Err(err!(UNDEFINED_COLUMN, "column \"{name}\" named in partition key does not exist").at(element.location));
    };
    refuse_generated(relation, &[at as i16 + 1]).map_err(|e| e.at(element.location))?;
    let c = &relation.columns[at];
    Ok((at as i16 + 1, None, c.ty, c.typmod, c.collation))
}

fn partition_opclass(ddl: &Ddl<'_>, element: &PartitionElem, ty: Oid, method: Oid) -> Result<Oid> {
    let catalog = ddl.catalog();
    let word = if method == classes::HASH { "hash" } else { "btree" };
    let class = match element.opclass.is_empty() {
        false => {
            let class = named_class(ddl, &strings(&element.opclass), AccessMethod::of_oid(&catalog, method))?;
            accepting_class(ddl, class.oid, ty)?;
            class
        }
        true => catalog.default_operator_class(method, ty).cloned().ok_or_else(|| {
            let name = catalog.type_name(ty, ddl.path());
            err!(UNDEFINED_OBJECT, "data type {name} has no default operator class for access method \"{word}\"").hint(format!(
                "You must specify a {word} operator class or define a default {word} operator class for the data type."
            ))
        })?,
    };
    require_key_order(&catalog, &class, ty)?;
    Ok(class.oid)
}

/// FOR VALUES of a table that already has its parent; the caller checks existing rows. `attached`: the table existed before.
pub fn set_partition_bound(
    ddl: &Ddl<'_>,
    table: Oid,
    parent: &Relation,
    spec: &PartitionBoundSpec,
    attached: bool,
) -> Result<()> {
    let relation = ddl.relation(table)?;
    let values = partition_values(ddl, parent, spec)?;
    check_partition_bound(ddl, &relation, parent, &values, spec)?;
    let key = parent.partition_key.as_ref().ok_or_else(|| DbError::internal("a parent that is not partitioned"))?;
    let text = bound_text(ddl, key, &values);
    let partition_bound = Some(Arc::new(PartitionBound { values, text: text.into() }));
    put_relation(ddl, Relation { partition_bound, ..(*relation).clone() });
    inherit_identity(ddl, table, parent)?;
    check_default_rows(ddl, table, parent, attached)
}

fn partition_values(ddl: &Ddl<'_>, parent: &Relation, spec: &PartitionBoundSpec) -> Result<PartitionValues> {
    let key = parent.partition_key.as_ref().ok_or_else(|| DbError::internal("a parent that is not partitioned"))?;
    if spec.is_default {
        if key.strategy == PartitionStrategy::Hash {
            bail!(INVALID_TABLE_DEFINITION, "a hash-partitioned table may not have a default partition");
        }
        return Ok(PartitionValues::Default);
    }
    if spec.strategy.as_bytes().first() != Some(&key.strategy.letter()) {
        let word = key.strategy.word().to_lowercase();
        return Err(err!(INVALID_TABLE_DEFINITION, "invalid bound specification for a {word} partition").at(spec.location));
    }
    match key.strategy {
        PartitionStrategy::Hash => {
            let (modulus, remainder) = (spec.modulus, spec.remainder);
            if modulus <= 0 {
                bail!(INVALID_TABLE_DEFINITION, "modulus for hash partition must be an integer value greater than zero");
            }
            if remainder < 0 {
                bail!(
                    INVALID_TABLE_DEFINITION,
                    "remainder for hash partition must be an integer value greater than or equal to zero"
                );
            }
            if remainder >= modulus {
                bail!(INVALID_TABLE_DEFINITION, "remainder for hash partition must be less than modulus");
            }
            Ok(PartitionValues::Hash { modulus, remainder })
        }
        PartitionStrategy::List => {
            let mut values: Vec<Datum> = Vec::new();
            let map = PartitionMap::empty(&ddl.catalog(), key)?;
            for node in &spec.listdatums {
                let value = bound_value(ddl, parent, &key.columns[0], node)?;
                if !values.iter().any(|v| map.value_key(v) == map.value_key(&value)) {
                    values.push(value);
                }
            }
            Ok(PartitionValues::List(values))
        }
        PartitionStrategy::Range => {
            for (word, list) in [("FROM", &spec.lowerdatums), ("TO", &spec.upperdatums)] {
                if list.len() != key.columns.len() {
                    bail!(INVALID_TABLE_DEFINITION, "{word} must specify exactly one value per partitioning column");
                }
            }
            let lower = range_bound(ddl, parent, key, &spec.lowerdatums)?;
            Ok(PartitionValues::Range(lower, range_bound(ddl, parent, key, &spec.upperdatums)?))
        }
    }
}

fn range_bound(ddl: &Ddl<'_>, parent: &Relation, key: &PartitionKey, nodes: &[Node]) -> Result<Vec<RangeDatum>> {
    let mut out: Vec<RangeDatum> = Vec::new();
    for (node, column) in nodes.iter().zip(&key.columns) {
        let datum = match unbounded(node) {
            Some(datum) => datum,
            None => match bound_value(ddl, parent, column, node)? {
                Datum::Null => bail!(INVALID_TABLE_DEFINITION, "cannot specify NULL in range bound"),
                value => RangeDatum::Value(value),
            },
        };
        let after = |word: &str| {
            let location = location_of(node);
            err!(DATATYPE_MISMATCH, "every bound following {word} must also be {word}").at(location)
        };
        match (out.last(), &datum) {
            (Some(RangeDatum::MinValue), RangeDatum::Value(_) | RangeDatum::MaxValue) => return Err(after("MINVALUE")),
            (Some(RangeDatum::MaxValue), RangeDatum::Value(_) | RangeDatum::MinValue) => return Err(after("MAXVALUE")),
            _ => out.push(datum),
        }
    }
    Ok(out)
}

/// A bound's value, as the type of the key's column.
fn bound_value(ddl: &Ddl<'_>, parent: &Relation, column: &PartitionColumn, node: &Node) -> Result<Datum> {
    let name = match column.column {
        0 => column.expression.as_deref().unwrap_or_default(),
        n => &parent.columns[n as usize - 1].name,
    };
    let expected = Expected { ty: column.ty, typmod: column.typmod, column: name };
    let expr =
        ddl.with_context(|c| melba_analyze::analyze_expression(c, node, None, ExprKind::PartitionBound, Some(expected)))?;
    let compiled = compile_for_table(&ddl.catalog(), Some(ddl.session()), &expr)?;
    compiled.eval_row(&exec_context(ddl), &[])
}

fn bound_text(ddl: &Ddl<'_>, key: &PartitionKey, values: &PartitionValues) -> String {
    let range = |bound: &[RangeDatum]| range_text(ddl, key, bound);
    match values {
        PartitionValues::Default => "DEFAULT".into(),
        PartitionValues::List(values) => {
            let shown: Vec<String> = values.iter().map(|v| plain_literal(ddl.session(), key.columns[0].ty, v)).collect();
            format!("FOR VALUES IN ({})", shown.join(", "))
        }
        PartitionValues::Range(from, to) => format!("FOR VALUES FROM {} TO {}", range(from), range(to)),
        PartitionValues::Hash { modulus, remainder } => {
            format!("FOR VALUES WITH (modulus {modulus}, remainder {remainder})")
        }
    }
}

fn range_text(ddl: &Ddl<'_>, key: &PartitionKey, bound: &[RangeDatum]) -> String {
    let one = |(datum, column): (&RangeDatum, &PartitionColumn)| match datum {
        RangeDatum::MinValue => "MINVALUE".to_owned(),
        RangeDatum::MaxValue => "MAXVALUE".to_owned(),
        RangeDatum::Value(v) => plain_literal(ddl.session(), column.ty, v),
    };
    let shown: Vec<String> = bound.iter().zip(&key.columns).map(one).collect();
    format!("({})", shown.join(", "))
}

/// Raises 42P17 where a bound is empty, or another partition has some of its rows.
fn check_partition_bound(
    ddl: &Ddl<'_>,
    relation: &Relation,
    parent: &Relation,
    values: &PartitionValues,
    spec: &PartitionBoundSpec,
) -> Result<()> {
    let catalog = ddl.catalog();
    // As long as its detach is pending, a partition keeps its rows.
    let map = match detaching_partition(&catalog, parent.oid) {
        Some(partition) => PartitionMap::new(&with_attached(&catalog, &[partition]), parent)?,
        None => PartitionMap::new(&catalog, parent)?,
    };
    let name_of = |oid: Oid| catalog.relation(oid).map_or_else(String::new, |r| r.name.to_string());
    let name = &relation.name;
    let overlap = match values {
        PartitionValues::Default => {
            let Some(other) = map.default() else { return Ok(()) };
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "partition \"{name}\" conflicts with existing default partition \"{}\"",
                name_of(other)
            )
            .at(spec.location));
        }
        PartitionValues::List(values) => {
            values.iter().zip(&spec.listdatums).find_map(|(value, node)| Some((map.list_partition(value)?, location_of(node))))
        }
        PartitionValues::Range(from, to) => {
            let (lower, upper) = (map.bound_key(from), map.bound_key(to));
            if lower >= upper {
                let key = map.key();
                return Err(err!(INVALID_OBJECT_DEFINITION, "empty range bound specified for partition \"{name}\"")
                    .detail(format!(
                        "Specified lower bound {} is greater than or equal to upper bound {}.",
                        range_text(ddl, key, from),
                        range_text(ddl, key, to)
                    ))
                    .at(spec.lowerdatums.first().map_or(spec.location, location_of)));
            }
            map.ranges_between(&lower, &upper).next().map(|r| {
                let bound = if *r.lower <= lower[..] { &spec.lowerdatums } else { &spec.upperdatums };
                (r.partition, bound.first().map_or(spec.location, location_of))
            })
        }
        PartitionValues::Hash { modulus, remainder } => {
            check_modulus(ddl, &map, *modulus, *remainder)?;
            map.overlapping_hash(*modulus, *remainder).map(|partition| (partition, spec.location))
        }
    };
    match overlap {
        None => Ok(()),
        Some((other, location)) => {
            Err(err!(INVALID_OBJECT_DEFINITION, "partition \"{name}\" would overlap partition \"{}\"", name_of(other))
                .at(location))
        }
    }
}

/// Of any two moduli, one divides the other.
fn check_modulus(ddl: &Ddl<'_>, map: &PartitionMap, modulus: i32, remainder: i32) -> Result<()> {
    let catalog = ddl.catalog();
    let refused = |detail: String| {
        Err(err!(INVALID_OBJECT_DEFINITION, "every hash partition modulus must be a factor of the next larger modulus")
            .detail(detail))
    };
    let name_of = |oid: Oid| catalog.relation(oid).map_or_else(String::new, |r| r.name.to_string());
    let (below, above) = map.hash_neighbours(modulus, remainder);
    if let Some(other) = below.filter(|other| modulus % other.modulus != 0) {
        return refused(format!(
            "The new modulus {modulus} is not divisible by {}, the modulus of existing partition \"{}\".",
            other.modulus,
            name_of(other.partition)
        ));
    }
    if let Some(other) = above.filter(|other| other.modulus % modulus != 0) {
        return refused(format!(
            "The new modulus {modulus} is not a factor of {}, the modulus of existing partition \"{}\".",
            other.modulus,
            name_of(other.partition)
        ));
    }
    Ok(())
}

/// The default partition must have no row that now belongs to a new one.
fn check_default_rows(ddl: &Ddl<'_>, table: Oid, parent: &Relation, attached: bool) -> Result<()> {
    let default = PartitionMap::new(&ddl.catalog(), parent)?.default();
    let Some(default) = default.filter(|d| *d != table) else { return Ok(()) };
    let Some(leaf) = leaf_beyond_bounds(ddl, default)? else { return Ok(()) };
    // PostgreSQL names the leaf only for ATTACH PARTITION.
    let name = if attached { leaf.name.clone() } else { ddl.relation(default)?.name.clone() };
    bail!(CHECK_VIOLATION, "updated partition constraint for default partition \"{name}\" would be violated by some row")
}

/// The first leaf of a partition with a row beyond its bounds. The leaves are locked: nobody may be writing other rows to them.
pub fn leaf_beyond_bounds(ddl: &Ddl<'_>, partition: Oid) -> Result<Option<Arc<Relation>>> {
    for leaf in ddl.catalog().descendants(partition) {
        ddl.lock_relation(leaf, melba_engine::RelationLockMode::AccessExclusive)?;
        let relation = ddl.relation(leaf)?;
        if relation.is_partitioned() {
            continue;
        }
        let (target, ctx) = (table_target(ddl, leaf)?, exec_context(ddl));
        let (view, _pin) = ddl.tx().engine.latest_view();
        let mut rows = scan_rows(ddl, target.tree, relation.columns.len(), &target.missing, view)?;
        while let Some(batch) = rows.next_batch()? {
            ctx.check_interrupt()?;
            for (_, row) in batch {
                for check in &target.partition {
                    if !check.holds(&ctx, &row)? {
                        return Ok(Some(relation));
                    }
                }
            }
        }
    }
    Ok(None)
}

/// Raises 42P16 for a column of a partition key.
pub fn refuse_partition_column(ddl: &Ddl<'_>, relation: &Relation, at: usize, verb: &str) -> Result<()> {
    let Some(key) = &relation.partition_key else { return Ok(()) };
    let number = at as i16 + 1;
    let name = &relation.columns[at].name;
    let in_expression = |c: &PartitionColumn| {
        let text = c.expression.as_deref()?;
        let node = melba_parse::parse_expression(text).ok()?;
        let stored = stored_expression(ddl, &node, relation, Use::PartitionKey, None).ok()?;
        stored.columns.contains(&number).then_some(())
    };
    if key.columns.iter().any(|c| c.column == number || in_expression(c).is_some()) {
        bail!(
            INVALID_OBJECT_DEFINITION,
            "cannot {verb} column \"{name}\" because it is part of the partition key of relation \"{}\"",
            relation.name
        );
    }
    Ok(())
}

fn is_constant(expr: &Expr) -> bool {
    let mut reads = false;
    expr.visit_vars(&mut |_| reads = true);
    !reads
}

/// MINVALUE and MAXVALUE, which the grammar takes for columns.
fn unbounded(node: &Node) -> Option<RangeDatum> {
    let Some(N::ColumnRef(column)) = &node.node else { return None };
    match strings(&column.fields).as_slice() {
        ["minvalue"] => Some(RangeDatum::MinValue),
        ["maxvalue"] => Some(RangeDatum::MaxValue),
        _ => None,
    }
}

fn location_of(node: &Node) -> i32 {
    match &node.node {
        Some(N::AConst(c)) => c.location,
        Some(N::ColumnRef(c)) => c.location,
        Some(N::TypeCast(c)) => c.arg.as_deref().map_or(c.location, location_of),
        Some(N::FuncCall(c)) => c.location,
        Some(N::AExpr(c)) => c.location,
        _ => -1,
    }
}

fn refuse_generated(relation: &Relation, columns: &[i16]) -> Result<()> {
    let generated = columns.iter().map(|n| &relation.columns[*n as usize - 1]).find(|c| c.generated != 0);
    match generated {
        None => Ok(()),
        Some(c) => Err(err!(INVALID_OBJECT_DEFINITION, "cannot use generated column in partition key")
            .detail(format!("Column \"{}\" is a generated column.", c.name))),
    }
}
