//! UNION, INTERSECT, EXCEPT.

use melba_types::{DbError, Oid, Result, err, limits, oids};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::coerce::{CoercionContext, How};
use super::collate::{CollationState, Strength};
use super::scope::{ExprKind, NsItem};
use super::values::column_var;
use super::{clauses, coerce, collate, cte, limit, sort_key};
use melba_tree::*;

/// A side of a set operation with the columns it returns.
struct Side {
    input: SetInput,
    columns: Vec<OutputColumn>,
    /// Where its columns are written, for messages.
    locations: Vec<i32>,
}

pub fn set_operation_statement<'p>(analyzer: &mut Analyzer<'_, 'p>, s: &'p pb::SelectStmt) -> Result<Query> {
    let mut q = Query::new(Command::Select);
    let leftmost = leftmost(s);
    if let Some(into) = &leftmost.into_clause
        && analyzer.depth() > 1
    {
        return Err(err!(SYNTAX_ERROR, "SELECT ... INTO is not allowed here").at(into.rel.as_ref().map_or(-1, |r| r.location)));
    }
    if !s.locking_clause.is_empty() {
        let strength = super::locking::strength_text_of(&s.locking_clause);
        return Err(err!(FEATURE_NOT_SUPPORTED, "{strength} is not allowed with UNION/INTERSECT/EXCEPT"));
    }
    q.recursive = cte::with_clause(analyzer, s.with_clause.as_ref())?;
    let tree = set_tree(analyzer, s, true)?;
    let locations = tree.locations;
    let SetInput::Tree(mut tree) = tree.input else {
        return Err(DbError::internal("set operation without operands"));
    };
    let columns = tree.columns.clone();
    coerce_arms(analyzer, &mut tree, &columns)?;
    let mut first = &tree.left;
    let first_entry = loop {
        match first {
            SetInput::Leaf(entry) => break *entry,
            SetInput::Tree(inner) => first = &inner.left,
        }
    };
    let mut namespace_columns = Vec::with_capacity(tree.columns.len());
    for (i, column) in tree.columns.iter().enumerate() {
        let column = OutputColumn { name: leaf_column_name(analyzer, first_entry, i), ..column.clone() };
        let mut var = column_var(first_entry, i, &column);
        if let Expr::Var(v) = &mut var {
            v.location = locations[i];
        }
        q.targets.push(super::targets::target(var, column.name.clone()));
        namespace_columns.push(column);
    }
    if !s.sort_clause.is_empty() {
        q.order_by = set_order_by(analyzer, s, &mut q.targets, first_entry, namespace_columns)?;
    }
    limit::limits(analyzer, s, &mut q)?;
    q.set_operation = Some(*tree);
    collate::assign_query(analyzer.cx(), &mut q)?;
    Ok(q)
}

fn leaf_column_name(analyzer: &Analyzer<'_, '_>, entry: usize, i: usize) -> std::sync::Arc<str> {
    analyzer.level().range_table[entry].columns[i].name.clone()
}

/// ORDER BY sees the output columns only.
fn set_order_by<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    s: &'p pb::SelectStmt,
    targets: &mut Vec<Target>,
    entry: usize,
    columns: Vec<OutputColumn>,
) -> Result<Vec<SortGroup>> {
    // Names resolve to output columns through a namespace of just them.
    let saved_columns = std::mem::replace(&mut analyzer.level_mut().range_table[entry].columns, columns);
    let mut item = NsItem::new(entry, "*SELECT* 1".into());
    item.relation_visible = false;
    let saved = std::mem::replace(&mut analyzer.level_mut().namespace, vec![item]);
    let count = targets.len();
    let result = clauses::sort_list(analyzer, &s.sort_clause, targets, ExprKind::OrderBy);
    let level = analyzer.level_mut();
    level.namespace = saved;
    level.range_table[entry].columns = saved_columns;
    let keys = result?;
    if targets.len() != count {
        return Err(err!(FEATURE_NOT_SUPPORTED, "invalid UNION/INTERSECT/EXCEPT ORDER BY clause")
            .detail("Only result column names can be used, not expressions or functions.")
            .hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.")
            .at(targets[count].expr.location()));
    }
    Ok(keys)
}

fn set_tree<'p>(analyzer: &mut Analyzer<'_, 'p>, s: &'p pb::SelectStmt, top: bool) -> Result<Side> {
    limits::check_stack()?;
    limits::check_interrupt()?;
    let has_own_clauses = !s.sort_clause.is_empty()
        || s.limit_offset.is_some()
        || s.limit_count.is_some()
        || !s.locking_clause.is_empty()
        || s.with_clause.is_some();
    let (Some(left), Some(right)) = (&s.larg, &s.rarg) else { return set_leaf(analyzer, s) };
    if !top && has_own_clauses {
        return set_leaf(analyzer, s);
    }
    let (operation, name) = match pb::SetOperation::try_from(s.op) {
        Ok(pb::SetOperation::SetopUnion) => (SetOperation::Union, "UNION"),
        Ok(pb::SetOperation::SetopIntersect) => (SetOperation::Intersect, "INTERSECT"),
        _ => (SetOperation::Except, "EXCEPT"),
    };
    let left = set_tree(analyzer, left, false)?;
    if top {
        cte::note_recursive_columns(analyzer, &left.columns);
    }
    let right = set_tree(analyzer, right, false)?;
    if left.columns.len() != right.columns.len() {
        return Err(err!(SYNTAX_ERROR, "each {name} query must have the same number of columns").at(right
            .locations
            .first()
            .copied()
            .unwrap_or(-1)));
    }
    combine(analyzer, operation, s.all, name, left, right)
}

fn combine(
    analyzer: &mut Analyzer<'_, '_>,
    operation: SetOperation,
    all: bool,
    name: &str,
    left: Side,
    right: Side,
) -> Result<Side> {
    let mut columns = Vec::with_capacity(left.columns.len());
    let mut keys = Vec::new();
    let pairs = left.columns.iter().zip(&right.columns).enumerate();
    for (i, (l, r)) in pairs {
        let location = if left.locations[i] >= 0 { left.locations[i] } else { right.locations[i] };
        let ty = analyzer.cx().common_type(&[l.ty, r.ty]).map_err(|(a, b)| {
            let (a, b) = (analyzer.cx().type_name(a), analyzer.cx().type_name(b));
            err!(DATATYPE_MISMATCH, "{name} types {a} and {b} cannot be matched").at(right.locations[i])
        })?;
        for (side, own) in [(&left, l), (&right, r)] {
            coerce_set_column(analyzer, side, i, own.ty, ty, name)?;
        }
        let typmod = if l.ty == ty && r.ty == ty && l.typmod == r.typmod { l.typmod } else { -1 };
        let collation = match analyzer.cx().collation_of_type(ty) {
            own if own.is_valid() => {
                let states = (column_state(analyzer, &left, i)?, column_state(analyzer, &right, i)?);
                collate::of_set(analyzer.cx(), states.0, states.1, operation == SetOperation::Union && all)?
            }
            none => none,
        };
        columns.push(OutputColumn { name: l.name.clone(), ty, typmod, collation });
        if !(operation == SetOperation::Union && all) {
            let key = sort_key::group_key(analyzer.cx(), ty, location)?;
            keys.push(SortGroup {
                reference: i as u32 + 1,
                equal: key.equal,
                sort: key.sort,
                descending: false,
                nulls_first: false,
                hashable: key.hashable,
                using: false,
            });
        }
    }
    let locations = left.locations.clone();
    let tree = SetTree { operation, all, left: left.input, right: right.input, columns: columns.clone(), keys };
    Ok(Side { input: SetInput::Tree(Box::new(tree)), columns, locations })
}

/// The collation of an operand's column: explicit if a SELECT says so.
fn column_state(analyzer: &Analyzer<'_, '_>, side: &Side, i: usize) -> Result<CollationState> {
    if let SetInput::Leaf(entry) = side.input
        && let RangeKind::Subquery { query, .. } = &analyzer.level().range_table[entry].kind
        && let Some(target) = query.targets.iter().filter(|t| !t.junk).nth(i)
    {
        return collate::state_of(analyzer.cx(), &target.expr);
    }
    let collation = side.columns[i].collation;
    let strength = if collation.is_valid() { Strength::Implicit } else { Strength::None };
    Ok(CollationState::new(collation, strength, side.locations[i]))
}

/// 42846 for a column that cannot be converted; literals of a leaf take the common type at once, so that the other
/// operands see it.
fn coerce_set_column(analyzer: &mut Analyzer<'_, '_>, side: &Side, i: usize, from: Oid, to: Oid, name: &str) -> Result<()> {
    if from == to {
        return Ok(());
    }
    if !analyzer.cx().can_coerce_one(from, to, CoercionContext::Implicit) {
        let (from, to) = (analyzer.cx().type_name(from), analyzer.cx().type_name(to));
        return Err(err!(CANNOT_COERCE, "{name} could not convert type {from} to {to}").at(side.locations[i]));
    }
    if let SetInput::Leaf(entry) = side.input
        && from == oids::UNKNOWN
    {
        coerce_leaf_column(analyzer, entry, i, to)?;
    }
    Ok(())
}

/// Makes every arm return the columns' final types.
fn coerce_arms(analyzer: &mut Analyzer<'_, '_>, tree: &mut SetTree, wanted: &[OutputColumn]) -> Result<()> {
    for (i, (wanted, column)) in wanted.iter().zip(&mut tree.columns).enumerate() {
        if column.ty != wanted.ty
            && let Some(key) = tree.keys.iter_mut().find(|k| k.reference as usize == i + 1)
        {
            let new = sort_key::group_key(analyzer.cx(), wanted.ty, -1)?;
            (key.equal, key.sort, key.hashable) = (new.equal, new.sort, new.hashable);
        }
        (column.ty, column.typmod, column.collation) = (wanted.ty, wanted.typmod, wanted.collation);
    }
    for input in [&mut tree.left, &mut tree.right] {
        match input {
            SetInput::Tree(inner) => coerce_arms(analyzer, inner, wanted)?,
            SetInput::Leaf(entry) => coerce_leaf(analyzer, *entry, wanted)?,
        }
    }
    Ok(())
}

fn coerce_leaf(analyzer: &mut Analyzer<'_, '_>, entry: usize, wanted: &[OutputColumn]) -> Result<()> {
    let differ: Vec<usize> = {
        let columns = &analyzer.level().range_table[entry].columns;
        (0..wanted.len()).filter(|i| columns[*i].ty != wanted[*i].ty).collect()
    };
    if differ.is_empty() {
        return Ok(());
    }
    let RangeKind::Subquery { query, .. } = &mut analyzer.level_mut().range_table[entry].kind else { return Ok(()) };
    let visible: Vec<&Target> = query.targets.iter().filter(|t| !t.junk).collect();
    // A sorted or grouped column must stay unchanged: the conversion is applied around the query.
    if query.set_operation.is_some() || differ.iter().any(|i| visible[*i].reference != 0) {
        let inner = std::mem::replace(&mut **query, Query::new(Command::Select));
        **query = wrapped(inner);
    }
    differ.into_iter().try_for_each(|i| coerce_leaf_column(analyzer, entry, i, wanted[i].ty))
}

fn coerce_leaf_column(analyzer: &mut Analyzer<'_, '_>, entry: usize, i: usize, to: Oid) -> Result<()> {
    let taken = {
        let RangeKind::Subquery { query, .. } = &mut analyzer.level_mut().range_table[entry].kind else { return Ok(()) };
        let Some(target) = query.targets.iter_mut().filter(|t| !t.junk).nth(i) else { return Ok(()) };
        std::mem::replace(&mut target.expr, Expr::MergeAction)
    };
    let mut coerced = coerce::to_type(analyzer, taken, to, -1, How::implicit())?;
    super::collate::assign(analyzer.cx(), &mut coerced)?;
    let (ty, typmod, collation) = (coerced.ty(), coerced.typmod(), coerced.collation());
    let entry = &mut analyzer.level_mut().range_table[entry];
    if let RangeKind::Subquery { query, .. } = &mut entry.kind
        && let Some(target) = query.targets.iter_mut().filter(|t| !t.junk).nth(i)
    {
        target.expr = coerced;
    }
    let column = &mut entry.columns[i];
    (column.ty, column.typmod, column.collation) = (ty, typmod, collation);
    Ok(())
}

/// One arm, a separate query.
fn set_leaf<'p>(analyzer: &mut Analyzer<'_, 'p>, s: &'p pb::SelectStmt) -> Result<Side> {
    if s.into_clause.is_some() {
        return Err(err!(SYNTAX_ERROR, "INTO is only allowed on first SELECT of UNION/INTERSECT/EXCEPT").at(s
            .into_clause
            .as_ref()
            .and_then(|i| i.rel.as_ref())
            .map_or(-1, |r| r.location)));
    }
    let namespace = std::mem::take(&mut analyzer.level_mut().namespace);
    let result = analyzer.with_level(|a| {
        // Literals stay unknown until the common type is chosen, except those of VALUES, which has chosen one.
        a.level_mut().is_insert_select = s.values_lists.is_empty();
        let mut query = a.select_statement(s)?;
        a.take_level(&mut query);
        Ok(query)
    });
    analyzer.level_mut().namespace = namespace;
    let query = result?;
    let mut outer = None;
    query.visit(0, &mut |e, level| {
        if let Expr::Var(v) = e
            && v.levels_up == level + 1
        {
            outer.get_or_insert(v.location);
        }
        true
    });
    if let Some(location) = outer {
        return Err(err!(
            INVALID_COLUMN_REFERENCE,
            "UNION/INTERSECT/EXCEPT member statement cannot refer to other relations of same query level"
        )
        .at(location));
    }
    let columns = query.output_columns();
    let locations = query.output().iter().filter(|t| !t.junk).map(|t| t.expr.location()).collect();
    let number = analyzer.level().range_table.len() + 1;
    let entry = analyzer.add_entry(RangeEntry {
        kind: RangeKind::Subquery { query: Box::new(query), view: Oid::INVALID },
        alias: None,
        name: format!("*SELECT* {number}").into(),
        columns: columns.clone(),
        in_from: false,
        ..RangeEntry::default()
    });
    Ok(Side { input: SetInput::Leaf(entry), columns, locations })
}

/// `SELECT * FROM (query)`.
fn wrapped(mut inner: Query) -> Query {
    inner.shift_levels(1);
    let columns = inner.output_columns();
    let mut outer = Query::new(Command::Select);
    outer.targets =
        columns.iter().enumerate().map(|(i, c)| super::targets::target(column_var(0, i, c), c.name.clone())).collect();
    outer.range_table.push(RangeEntry {
        kind: RangeKind::Subquery { query: Box::new(inner), view: Oid::INVALID },
        alias: None,
        name: "unnamed_subquery".into(),
        columns,
        ..RangeEntry::default()
    });
    outer.from.push(FromItem::Range(0));
    outer
}

fn leftmost(s: &pb::SelectStmt) -> &pb::SelectStmt {
    let mut s = s;
    while let Some(left) = &s.larg {
        s = left;
    }
    s
}

/// The SELECT that a node is.
pub fn as_select(node: Option<&pb::Node>) -> Option<&pb::SelectStmt> {
    match node.and_then(|n| n.node.as_ref()) {
        Some(NodeEnum::SelectStmt(s)) => Some(s),
        _ => None,
    }
}
