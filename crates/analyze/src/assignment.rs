//! Assignment to the columns of a target, and to parts of columns and variables.

use std::sync::Arc;

use melba_catalog::rules::rules_for;
use melba_catalog::{Relation, RelationKind};
use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::coerce::{CoercionContext, How};
use super::scope::{ExprKind, Layer, NsItem};
use super::values::column_var;
use super::{coerce, expression, from, nodes, subscript, view_target};
use melba_tree::*;

/// The relation that a statement names as its target.
pub fn open_target(analyzer: &Analyzer<'_, '_>, name: &pb::RangeVar) -> Result<Arc<Relation>> {
    if name.schemaname.is_empty() && analyzer.levels().any(|l| l.ctes.iter().any(|c| *c.name == *name.relname)) {
        let shown = &name.relname;
        if analyzer.cx().find_relation(None, shown).is_none() {
            return Err(
                err!(WRONG_OBJECT_TYPE, "relation \"{shown}\" cannot be the target of a modifying statement").at(name.location)
            );
        }
    }
    if name.schemaname.is_empty() && analyzer.cx().session.transition_table(&name.relname).is_some() {
        let shown = &name.relname;
        return Err(
            err!(WRONG_OBJECT_TYPE, "relation \"{shown}\" cannot be the target of a modifying statement").at(name.location)
        );
    }
    from::open_relation(analyzer, name)
}

/// Opens the target relation of a command and adds its range entry. `commands`: those of MERGE's actions, else the command.
pub fn target_relation<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    name: &'p pb::RangeVar,
    command: Command,
    commands: &[Command],
) -> Result<Arc<Relation>> {
    let relation = open_target(analyzer, name)?;
    let shown = &relation.name;
    if command == Command::Merge {
        super::updatable::refuse_merge(analyzer.cx(), &relation)?;
    }
    match relation.kind {
        RelationKind::Sequence => return Err(err!(WRONG_OBJECT_TYPE, "cannot change sequence \"{shown}\"")),
        RelationKind::MaterializedView => {
            return Err(err!(WRONG_OBJECT_TYPE, "cannot change materialized view \"{shown}\""));
        }
        RelationKind::ForeignTable => return Err(super::updatable::unchangeable(analyzer.cx(), &relation, command)),
        RelationKind::Toast => return Err(err!(WRONG_OBJECT_TYPE, "cannot change TOAST relation \"{shown}\"")),
        RelationKind::View if remains_target(analyzer, &relation, commands) => {
            triggered_view(analyzer, &relation, name, command)?;
            require(analyzer, command);
            return Ok(relation);
        }
        RelationKind::View => {
            let table = view_target::open_view(analyzer, &relation, name, command, commands)?;
            require(analyzer, command);
            return Ok(table);
        }
        _ => {}
    }
    let entry = from::relation_entry(analyzer, &relation, name)?;
    let range = &mut analyzer.level_mut().range_table[entry];
    range.required.select = false;
    let item = NsItem::new(entry, range.name.clone());
    analyzer.level_mut().target = Some(item);
    require(analyzer, command);
    Ok(relation)
}

/// Whether triggers or rules of a view do what commands say.
fn remains_target(analyzer: &Analyzer<'_, '_>, view: &Relation, commands: &[Command]) -> bool {
    let cx = analyzer.cx();
    let has_rules = |event| !rules_for(cx.catalog, view.oid, event, cx.session.is_replica()).is_empty();
    analyzer.is_action()
        || super::updatable::has_triggers(cx, view, commands)
        || commands.iter().filter_map(|command| super::trigger::event_of(*command)).any(has_rules)
}

/// Makes a view the target whose triggers or rules change something. As existing rows, they see the view's rows.
pub fn triggered_view<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    view: &Arc<Relation>,
    name: &'p pb::RangeVar,
    command: Command,
) -> Result<()> {
    let entry = from::relation_entry(analyzer, view, name)?;
    let range = &mut analyzer.level_mut().range_table[entry];
    if command == Command::Insert {
        range.kind = RangeKind::Relation { oid: view.oid, inherit: true, sample: None };
    }
    range.required.select = false;
    let item = NsItem::new(entry, range.name.clone());
    analyzer.level_mut().target = Some(item);
    Ok(())
}

/// Notes the privilege that a command needs on its target.
pub fn require(analyzer: &mut Analyzer<'_, '_>, command: Command) {
    let Some(entry) = analyzer.target_entry() else { return };
    let required = &mut analyzer.level_mut().range_table[entry].required;
    match command {
        Command::Insert => required.insert = true,
        Command::Update => required.update = true,
        Command::Delete => required.delete = true,
        // DO NOTHING.
        Command::Select => required.select = true,
        Command::Merge => {}
    }
}

pub fn assigned_column(analyzer: &Analyzer<'_, '_>, relation: &Relation, name: &str, location: i32) -> Result<usize> {
    if let Some(index) = view_target::view_column(analyzer, name, location)? {
        return Ok(index);
    }
    if let Some(i) = relation.columns.iter().position(|c| !c.dropped && &*c.name == name) {
        return Ok(i);
    }
    if super::scope::SYSTEM_COLUMNS.iter().any(|c| c.0 == name) {
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot assign to system column \"{name}\"").at(location));
    }
    let table = &relation.name;
    Err(err!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{table}\" does not exist").at(location))
}

/// The expression for a column, converted to its type.
pub fn assigned_expression<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    e: Expr,
    relation: &Arc<Relation>,
    column: &Assigned<'p>,
    base: Option<Expr>,
    insert: bool,
) -> Result<Expr> {
    let c = &relation.columns[column.index];
    let number = column.index as i16 + 1;
    if let Some(entry) = analyzer.target_entry() {
        let required = &mut analyzer.level_mut().range_table[entry].required;
        let list = if insert { &mut required.inserted } else { &mut required.updated };
        if !list.contains(&number) {
            list.push(number);
        }
    }
    if matches!(e, Expr::Default { .. }) {
        if let Some(step) = column.indirection.first() {
            let what = if matches!(step.node, Some(NodeEnum::AIndices(_))) { "an array element" } else { "a subfield" };
            return Err(err!(FEATURE_NOT_SUPPORTED, "cannot set {what} to DEFAULT").at(column.location));
        }
        return Ok(Expr::Default { ty: c.ty, typmod: c.typmod });
    }
    if !column.indirection.is_empty() {
        let container = match base {
            Some(e) => e,
            None if insert => Expr::null(c.ty, c.typmod, c.collation),
            None => target_column(analyzer, column.index)?,
        };
        return assign_into(analyzer, container, c.ty, c.typmod, column.indirection, e, &c.name, column.location);
    }
    let (from, location) = (e.ty(), e.location());
    match coerce::to_target(analyzer, e, c.ty, c.typmod, How::assignment())? {
        Some(e) => Ok(e),
        None => {
            let (to, from) = (analyzer.cx().type_name(c.ty), analyzer.cx().type_name(from));
            Err(err!(DATATYPE_MISMATCH, "column \"{}\" is of type {to} but expression is of type {from}", c.name)
                .routine("transformAssignedExpr")
                .hint("You will need to rewrite or cast the expression.")
                .at(location))
        }
    }
}

pub fn target_column(analyzer: &mut Analyzer<'_, '_>, index: usize) -> Result<Expr> {
    let entry = analyzer.target_entry().ok_or_else(|| DbError::internal("assignment without a target"))?;
    let range = &mut analyzer.level_mut().range_table[entry];
    super::scope::note_selected(range, index as i16 + 1);
    Ok(column_var(entry, index, &range.columns[index]))
}

/// The name that messages use for an assigned field: PL/pgSQL's name the variable, because it treats a field as a variable.
pub fn name_of_part<'n>(analyzer: &Analyzer<'_, '_>, name: &'n str, field: &'n str, rest: &[pb::Node]) -> &'n str {
    let is_field = matches!(rest.first(), Some(pb::Node { node: Some(NodeEnum::String(_)) }));
    if analyzer.assigns_through_text() && is_field { name } else { field }
}

/// `container.path := value`: the container with the part replaced.
#[allow(clippy::too_many_arguments)]
pub fn assign_into<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    container: Expr,
    ty: Oid,
    typmod: i32,
    path: &'p [pb::Node],
    value: Expr,
    name: &str,
    location: i32,
) -> Result<Expr> {
    let Some(first) = path.first() else {
        let from = value.ty();
        return coerce_assigned(analyzer, value, ty, typmod)?.ok_or_else(|| {
            let (to, from) = (analyzer.cx().type_name(ty), analyzer.cx().type_name(from));
            err!(DATATYPE_MISMATCH, "subfield \"{name}\" is of type {to} but expression is of type {from}")
                .hint("You will need to rewrite or cast the expression.")
                .at(location)
        });
    };
    match &first.node {
        Some(NodeEnum::AIndices(_)) => {
            let count = path.iter().take_while(|s| matches!(s.node, Some(NodeEnum::AIndices(_)))).count();
            let steps: Vec<&'p pb::AIndices> = path[..count]
                .iter()
                .filter_map(|s| match &s.node {
                    Some(NodeEnum::AIndices(i)) => Some(&**i),
                    _ => None,
                })
                .collect();
            assign_subscript(analyzer, container, ty, typmod, &steps, &path[count..], value, name, location)
        }
        Some(NodeEnum::String(field)) => {
            assign_field(analyzer, container, ty, typmod, &field.sval, &path[1..], value, name, location)
        }
        _ => Err(DbError::internal("unrecognized assignment target")),
    }
}

#[allow(clippy::too_many_arguments)]
pub fn assign_field<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    container: Expr,
    ty: Oid,
    typmod: i32,
    field: &str,
    rest: &'p [pb::Node],
    value: Expr,
    name: &str,
    location: i32,
) -> Result<Expr> {
    let shown = || analyzer.cx().type_name(ty);
    let relation = analyzer.cx().row_relation(ty).ok_or_else(|| {
        let (to, ty) = (format!("cannot assign to field \"{field}\" of column \"{name}\""), shown());
        err!(DATATYPE_MISMATCH, "{to} because its type {ty} is not a composite type").at(location)
    })?;
    let index = relation.columns.iter().position(|c| !c.dropped && *c.name == *field).ok_or_else(|| {
        let (to, ty) = (format!("cannot assign to field \"{field}\" of column \"{name}\""), shown());
        err!(UNDEFINED_COLUMN, "{to} because there is no such column in data type {ty}").at(location)
    })?;
    let c = relation.columns[index].clone();
    // A domain over a row is checked once all fields have their values.
    let (base, base_typmod) = analyzer.cx().catalog.base_type_and_typmod(ty, typmod);
    let container = undecided(container, ty, base, base_typmod);
    let number = index as i16 + 1;
    let inner = match rest {
        [] => Expr::null(c.ty, c.typmod, c.collation),
        _ => stored_field(&container, number).unwrap_or_else(|| Expr::FieldSelect {
            arg: Box::new(container.clone()),
            field: number,
            ty: c.ty,
            typmod: c.typmod,
            collation: c.collation,
        }),
    };
    let name = name_of_part(analyzer, name, field, rest);
    let new = assign_into(analyzer, inner, c.ty, c.typmod, rest, value, name, location)?;
    let store = match container {
        // Several fields of one value become one store.
        Expr::FieldStore { arg, mut values, ty } => {
            values.retain(|(stored, _)| *stored != number);
            values.push((number, new));
            Expr::FieldStore { arg, values, ty }
        }
        container => Expr::FieldStore { arg: Box::new(container), values: vec![(number, new)], ty: base },
    };
    as_domain(analyzer, store, ty, typmod, location)
}

/// A value built as the base type of a domain becomes a value of the domain.
pub fn as_domain(analyzer: &mut Analyzer<'_, '_>, value: Expr, ty: Oid, typmod: i32, location: i32) -> Result<Expr> {
    if value.ty() == ty {
        return Ok(value);
    }
    let how = How { context: CoercionContext::Assignment, form: CoercionForm::ImplicitCast, location };
    let coerced = coerce::to_target(analyzer, value, ty, typmod, how)?;
    coerced.ok_or_else(|| DbError::internal("cannot convert a value to its domain"))
}

#[allow(clippy::too_many_arguments)]
pub fn assign_subscript<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    container: Expr,
    ty: Oid,
    typmod: i32,
    steps: &[&'p pb::AIndices],
    rest: &'p [pb::Node],
    value: Expr,
    name: &str,
    location: i32,
) -> Result<Expr> {
    let (base, base_typmod) = analyzer.cx().catalog.base_type_and_typmod(ty, typmod);
    let container = undecided(container, ty, base, base_typmod);
    let template = subscript::subscripts(analyzer, container.clone(), steps, None)?;
    let Expr::Subscript(mut subscript) = template else { return Err(DbError::internal("subscript expected")) };
    let part = if subscript.slice { base } else { subscript.ty };
    let assigned = if rest.is_empty() {
        let from = value.ty();
        let coerced = coerce_assigned(analyzer, value, part, subscript.typmod)?;
        coerced.ok_or_else(|| {
            let (to, from) = (analyzer.cx().type_name(part), analyzer.cx().type_name(from));
            err!(DATATYPE_MISMATCH, "subscripted assignment to \"{name}\" requires type {to} but expression is of type {from}")
                .hint("You will need to rewrite or cast the expression.")
                .at(location)
        })?
    } else {
        let element = Expr::Subscript(subscript.clone());
        assign_into(analyzer, element, part, -1, rest, value, name, location)?
    };
    subscript.assign = Some(assigned);
    subscript.ty = subscript.container_type;
    as_domain(analyzer, Expr::Subscript(subscript), ty, typmod, location)
}

pub fn default_or_null(analyzer: &mut Analyzer<'_, '_>, relation: &Arc<Relation>, index: usize) -> Result<Expr> {
    let c = &relation.columns[index];
    let null = Expr::null(c.ty, c.typmod, c.collation);
    Ok(inserted_default(analyzer, relation, index)?.unwrap_or(null))
}

pub fn through_text(analyzer: &mut Analyzer<'_, '_>, e: Expr, ty: Oid, typmod: i32) -> Result<Expr> {
    let collation = analyzer.cx().collation_of_type(ty);
    let through = Expr::CoerceViaIo { arg: Box::new(e), ty, collation, form: CoercionForm::ImplicitCast };
    let coerced = coerce::to_target(analyzer, through.clone(), ty, typmod, How::assignment())?;
    Ok(coerced.unwrap_or(through))
}

/// A value assigned to a part of a column or variable.
pub fn coerce_assigned(analyzer: &mut Analyzer<'_, '_>, value: Expr, ty: Oid, typmod: i32) -> Result<Option<Expr>> {
    let coerced = coerce::to_target(analyzer, value.clone(), ty, typmod, How::assignment())?;
    match coerced {
        None if analyzer.assigns_through_text() => through_text(analyzer, value, ty, typmod).map(Some),
        coerced => Ok(coerced),
    }
}

/// The assignments of SET.
pub fn set_clause<'p>(analyzer: &mut Analyzer<'_, 'p>, list: &'p [pb::Node], relation: &Arc<Relation>) -> Result<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::with_capacity(list.len());
    for node in list {
        let Some(NodeEnum::ResTarget(item)) = &node.node else { continue };
        let value = item.val.as_deref().ok_or_else(|| DbError::internal("SET without a value"))?;
        let is_default = nodes::is_default(value);
        let e = if is_default {
            Expr::Default { ty: oids::UNKNOWN, typmod: -1 }
        } else {
            analyzer.expression(value, ExprKind::UpdateSource)?
        };
        let is_default = is_default || matches!(e, Expr::Default { .. });
        let index = assigned_column(analyzer, relation, &item.name, item.location).map_err(|e| set_hint(analyzer, e, item))?;
        let column = Assigned { index, name: &item.name, indirection: &item.indirection, location: item.location };
        // A view has its own defaults; an UPDATE of it does not use the table's.
        let of_view = analyzer.level().view_target.is_some();
        check_updatable(relation, index, is_default && !of_view)?;
        let previous = targets.iter().position(|t| t.column as usize == index + 1);
        let base = match previous {
            Some(i) if !item.indirection.is_empty() && is_partial(&targets[i].expr) => Some(targets.remove(i).expr),
            Some(_) => {
                return Err(err!(SYNTAX_ERROR, "multiple assignments to same column \"{}\"", relation.columns[index].name));
            }
            None => None,
        };
        let e = analyzer.with_kind(ExprKind::UpdateTarget, |a| assigned_expression(a, e, relation, &column, base, false))?;
        let e = match e {
            Expr::Default { .. } if of_view => view_default(analyzer, relation, index, &item.name)?,
            Expr::Default { .. } => default_or_null(analyzer, relation, index)?,
            e => e,
        };
        targets.push(assigned_target(relation, index, e));
    }
    targets.sort_by_key(|t| t.column);
    Ok(targets)
}

pub fn view_default(analyzer: &mut Analyzer<'_, '_>, table: &Relation, index: usize, name: &str) -> Result<Expr> {
    let view = analyzer.level().view_target.as_ref().map(|target| target.view.clone());
    let default = match view.and_then(|v| Some((v.columns.iter().position(|c| &*c.name == name)?, v))) {
        Some((at, view)) => expression::column_default(analyzer.cx(), &view, at)?,
        None => None,
    };
    let c = &table.columns[index];
    Ok(default.unwrap_or_else(|| Expr::null(c.ty, c.typmod, c.collation)))
}

pub fn set_hint(analyzer: &Analyzer<'_, '_>, e: DbError, item: &pb::ResTarget) -> DbError {
    let target = analyzer.level().target.as_ref().map(|t| t.name.clone());
    if !item.indirection.is_empty() && target.as_deref() == Some(&item.name) {
        return e.hint("SET target columns cannot be qualified with the relation name.");
    }
    e
}

pub fn check_updatable(relation: &Relation, index: usize, is_default: bool) -> Result<()> {
    let c = &relation.columns[index];
    let name = &c.name;
    if is_default {
        return Ok(());
    }
    let refused = err!(GENERATED_ALWAYS, "column \"{name}\" can only be updated to DEFAULT");
    if c.identity == b'a' {
        return Err(refused.detail(format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.")));
    }
    if c.generated != 0 {
        return Err(refused.detail(format!("Column \"{name}\" is a generated column.")));
    }
    Ok(())
}

/// The value of a column of the target to which an INSERT assigns nothing.
pub fn inserted_default(analyzer: &mut Analyzer<'_, '_>, relation: &Arc<Relation>, index: usize) -> Result<Option<Expr>> {
    match default_by_view(analyzer, relation, index)? {
        Some(default) => {
            // It is a value as any other.
            check_assignable(relation, index, false, Overriding::System)?;
            Ok(Some(default))
        }
        None => expression::column_default(analyzer.cx(), relation, index),
    }
}

/// 428C9 for a column to which only DEFAULT may be assigned.
pub fn check_assignable(relation: &Relation, index: usize, is_default: bool, overriding: Overriding) -> Result<()> {
    let c = &relation.columns[index];
    let name = &c.name;
    if is_default {
        return Ok(());
    }
    let refused = err!(GENERATED_ALWAYS, "cannot insert a non-DEFAULT value into column \"{name}\"");
    if c.generated != 0 {
        return Err(refused.detail(format!("Column \"{name}\" is a generated column.")));
    }
    if c.identity == b'a' && overriding == Overriding::None {
        return Err(refused
            .detail(format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS."))
            .hint("Use OVERRIDING SYSTEM VALUE to override."));
    }
    Ok(())
}

/// The default that a view has for a column of the table, as an expression of its type.
pub fn default_by_view(analyzer: &mut Analyzer<'_, '_>, table: &Relation, index: usize) -> Result<Option<Expr>> {
    let Some(target) = &analyzer.level().view_target else { return Ok(None) };
    let of_layer = |layer: &Layer| {
        let at = layer.columns.iter().position(|c| matches!(c, Ok(at) if *at == index))?;
        layer.view.columns[at].default.is_some().then(|| (layer.view.clone(), at))
    };
    let Some((view, at)) = target.layers.iter().find_map(of_layer) else { return Ok(None) };
    let fits = view.columns[at].ty == table.columns[index].ty;
    if fits { expression::column_default(analyzer.cx(), &view, at) } else { Ok(None) }
}

/// A column being assigned: its place and the text after its name.
pub struct Assigned<'p> {
    /// Index into the relation's columns.
    pub index: usize,
    /// As written; empty where it was not.
    pub name: &'p str,
    pub indirection: &'p [pb::Node],
    pub location: i32,
}

/// A value that is assigned into, of a domain: as the base type, before the domain was checked, for there is more to come.
fn undecided(container: Expr, ty: Oid, base: Oid, typmod: i32) -> Expr {
    match container {
        container if ty == base => container,
        Expr::CoerceToDomain { arg, ty: to, .. } if to == ty && is_partial(&arg) => *arg,
        container => super::coerce::relabel(container, base, typmod, CoercionForm::ImplicitCast),
    }
}

/// The value that a field was given before.
fn stored_field(container: &Expr, number: i16) -> Option<Expr> {
    let Expr::FieldStore { values, .. } = container else { return None };
    values.iter().find(|(stored, _)| *stored == number).map(|(_, value)| value.clone())
}

/// The value that an assignment into a part assigns.
pub fn assigned_part(e: Expr) -> Expr {
    match e {
        Expr::CoerceToDomain { arg, .. } if is_partial(&arg) => assigned_part(*arg),
        Expr::FieldStore { mut values, .. } if values.len() == 1 => assigned_part(values.remove(0).1),
        Expr::Subscript(subscript) if subscript.assign.is_some() => {
            subscript.assign.map_or_else(|| Expr::null(oids::UNKNOWN, -1, Oid::INVALID), assigned_part)
        }
        e => e,
    }
}

pub fn assigned_target(relation: &Relation, index: usize, expr: Expr) -> Target {
    Target {
        expr,
        name: relation.columns[index].name.clone(),
        junk: false,
        reference: 0,
        column: index as i16 + 1,
        origin: (Oid::INVALID, 0),
    }
}

/// An assignment to a part of the column, to which another part can be added.
pub(super) fn is_partial(e: &Expr) -> bool {
    match e {
        Expr::FieldStore { .. } => true,
        Expr::Subscript(s) => s.assign.is_some(),
        Expr::CoerceToDomain { arg, .. } => is_partial(arg),
        _ => false,
    }
}
