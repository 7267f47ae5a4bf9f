//! Expressions outside queries: checks, defaults, index expressions, and everything stored as text.

use std::sync::Arc;

use melba_catalog::{ObjectAddress, Relation, classes, quote_literal};
use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::coerce::{CoercionContext, How};
use super::context::Context;
use super::scope::{ExprKind, NsItem};
use super::volatility::is_mutable;
use super::{Params, coerce};
use melba_tree::*;

/// The type an expression is wanted in.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'n> {
    pub ty: Oid,
    pub typmod: i32,
    /// The column (or parameter) it is for, for messages.
    pub column: &'n str,
}

/// Analyzes an expression that DDL or COPY writes, over the columns of `relation` (entry 0).
///
/// The kind decides its allowed content and its value's type: conditions are made boolean, defaults and generation expressions
/// are coerced to the expected type.
pub fn analyze_expression(
    cx: &Context<'_>,
    node: &pb::Node,
    relation: Option<&Arc<Relation>>,
    kind: ExprKind,
    expected: Option<Expected<'_>>,
) -> Result<Expr> {
    let mut analyzer = Analyzer::new(cx, Params::none());
    let e = analyzer.with_level(|a| {
        if let Some(relation) = relation {
            add_relation(a, relation);
        }
        let e = a.expression(node, kind)?;
        let mut e = fit(a, e, kind, expected)?;
        super::collate::assign(cx, &mut e)?;
        Ok(e)
    })?;
    check_kind(cx, &e, relation, kind)?;
    Ok(e)
}

/// Analyzes an expression stored as text; locations in it are removed, because they have no meaning.
pub fn analyze_stored_expression(
    cx: &Context<'_>,
    text: &str,
    relation: Option<&Arc<Relation>>,
    expected: Option<Expected<'_>>,
) -> Result<Expr> {
    let node = melba_parse::parse_expression(text).map_err(without_position)?;
    let stored = cx.stored();
    let mut e = analyze_expression(&stored, &node, relation, ExprKind::None, expected).map_err(without_position)?;
    e.clear_locations();
    Ok(e)
}

/// A domain's check: VALUE stands for the value of the base type.
pub fn analyze_domain_check(cx: &Context<'_>, node: &pb::Node, base: Oid, typmod: i32) -> Result<Expr> {
    let mut analyzer = Analyzer::new(cx, Params::none());
    analyzer.with_level(|a| {
        a.level_mut().domain_value = Some((base, typmod, cx.collation_of_type(base)));
        let e = a.expression(node, ExprKind::DomainCheck)?;
        let mut e = coerce::to_boolean(a, e, "CHECK")?;
        super::collate::assign(cx, &mut e)?;
        Ok(e)
    })
}

/// A stored domain check.
pub fn analyze_stored_domain_check(cx: &Context<'_>, text: &str, base: Oid, typmod: i32) -> Result<Expr> {
    let node = melba_parse::parse_expression(text).map_err(without_position)?;
    let mut e = analyze_domain_check(&cx.stored(), &node, base, typmod).map_err(without_position)?;
    e.clear_locations();
    Ok(e)
}

/// The default of a function's argument, converted to the argument's type where that is not polymorphic.
pub(super) fn analyze_default_argument(cx: &Context<'_>, text: &str, ty: Oid) -> Result<Expr> {
    let polymorphic = super::polymorphic::is_polymorphic(ty) || ty == oids::ANY;
    let expected = Expected { ty, typmod: -1, column: "" };
    analyze_stored_expression(cx, text, None, (!polymorphic).then_some(expected))
}

/// A view's query.
pub fn analyze_view(cx: &Context<'_>, view: &Relation) -> Result<Query> {
    let text = view.view_query.as_deref().ok_or_else(|| DbError::internal("view without a query"))?;
    let parsed = melba_parse::parse(text).map_err(without_position)?;
    let statement = parsed.statements.first().ok_or_else(|| DbError::internal("view with an empty query"))?;
    let stored = cx.stored();
    let mut analyzer = Analyzer::new(&stored, Params::none());
    let mut query = analyzer.statement(&statement.node).map_err(without_position)?;
    query.clear_locations();
    Ok(query)
}

/// The default of a column (by index) as an expression of its type; none when the column has none.
pub fn column_default(cx: &Context<'_>, relation: &Arc<Relation>, index: usize) -> Result<Option<Expr>> {
    let c = &relation.columns[index];
    if c.generated != 0 {
        return Ok(None);
    }
    if c.identity != 0 {
        let sequence = identity_sequence(cx, relation, index)
            .ok_or_else(|| DbError::internal(format!("no owned sequence found for column \"{}\"", c.name)))?;
        return Ok(Some(Expr::NextValue { sequence, ty: c.ty }));
    }
    let ty = cx.catalog.type_(c.ty);
    let domain = ty.and_then(|t| t.domain.clone());
    if let (None, Some(text)) = (&c.default, ty.and_then(|t| t.base.as_ref()?.default.as_deref())) {
        let expected = Expected { ty: c.ty, typmod: c.typmod, column: &c.name };
        return analyze_stored_expression(cx, &quote_literal(text), None, Some(expected)).map(Some);
    }
    let text = match (&c.default, domain.as_ref().and_then(|d| d.default.as_ref())) {
        (Some(text), _) | (None, Some(text)) => text,
        (None, None) => {
            if domain.is_none() {
                return Ok(None);
            }
            // A domain may refuse NULL.
            let (base, typmod) = cx.catalog.base_type_and_typmod(c.ty, c.typmod);
            let null = Expr::null(base, typmod, cx.collation_of_type(base));
            return Ok(Some(Expr::CoerceToDomain {
                arg: Box::new(null),
                ty: c.ty,
                typmod: -1,
                collation: c.collation,
                form: CoercionForm::ImplicitCast,
            }));
        }
    };
    let expected = Expected { ty: c.ty, typmod: c.typmod, column: &c.name };
    analyze_stored_expression(cx, text, None, Some(expected)).map(Some)
}

/// The sequence behind an identity column.
pub fn identity_sequence(cx: &Context<'_>, relation: &Relation, index: usize) -> Option<Oid> {
    if let (true, [parent]) = (relation.is_partition(), &relation.parents[..]) {
        let parent = cx.catalog.relation(*parent)?;
        let above = parent.columns.iter().position(|c| !c.dropped && c.name == relation.columns[index].name)?;
        return identity_sequence(cx, parent, above);
    }
    let number = index as i16 + 1;
    let owned = |oid: Oid| {
        let sequence = cx.catalog.relation(oid)?.sequence.as_ref()?;
        (sequence.owned_by == Some((relation.oid, number))).then_some(oid)
    };
    let direct = relation.columns[index].default_depends_on.iter().find_map(|d| owned(d.object));
    direct.or_else(|| {
        let table = ObjectAddress { class: classes::PG_CLASS, object: relation.oid, sub: 0 };
        let column = ObjectAddress { sub: i32::from(number), ..table };
        let dependents = cx.catalog.dependents(column).chain(cx.catalog.dependents(table));
        let found = dependents.filter(|d| d.dependent.class == classes::PG_CLASS).find_map(|d| owned(d.dependent.object));
        found.or_else(|| cx.catalog.relations().find_map(|r| r.sequence.as_ref().and_then(|_| owned(r.oid))))
    })
}

fn add_relation(analyzer: &mut Analyzer<'_, '_>, relation: &Relation) {
    let entry = analyzer.add_entry(RangeEntry {
        kind: RangeKind::Relation { oid: relation.oid, inherit: true, sample: None },
        alias: None,
        name: relation.name.clone(),
        columns: super::range_columns::relation_columns(relation),
        ..RangeEntry::default()
    });
    let item = NsItem::new(entry, relation.name.clone());
    analyzer.level_mut().namespace.push(item);
}

/// Coerces the value to the type that its place needs.
fn fit(analyzer: &mut Analyzer<'_, '_>, e: Expr, kind: ExprKind, expected: Option<Expected<'_>>) -> Result<Expr> {
    match kind {
        ExprKind::CheckConstraint => return coerce::to_boolean(analyzer, e, "CHECK"),
        ExprKind::IndexPredicate | ExprKind::CopyWhere => return coerce::to_boolean(analyzer, e, "WHERE"),
        ExprKind::TriggerWhen => return coerce::to_boolean(analyzer, e, "WHEN"),
        ExprKind::Policy => return coerce::to_boolean(analyzer, e, "POLICY"),
        _ => {}
    }
    let Some(expected) = expected else {
        return coerce::resolve_unknown(analyzer, e);
    };
    if kind == ExprKind::FunctionDefault {
        return coerce::to_specific(analyzer, e, expected.ty, "DEFAULT");
    }
    let (from, location) = (e.ty(), e.location());
    if let Some(e) = coerce::to_target(analyzer, e, expected.ty, expected.typmod, How::assignment())? {
        return Ok(e);
    }
    let (to, from) = (analyzer.cx().type_name(expected.ty), analyzer.cx().type_name(from));
    let column = expected.column;
    Err(match kind {
        ExprKind::AlterColumnTransform => {
            err!(DATATYPE_MISMATCH, "result of USING clause for column \"{column}\" cannot be cast automatically to type {to}")
                .hint("You might need to add an explicit cast.")
        }
        ExprKind::PartitionBound => {
            err!(DATATYPE_MISMATCH, "specified value cannot be cast to type {to} for column \"{column}\"").at(location)
        }
        ExprKind::ExecuteParameter => {
            err!(DATATYPE_MISMATCH, "parameter {column} of type {from} cannot be coerced to the expected type {to}")
                .hint("You will need to rewrite or cast the expression.")
                .at(location)
        }
        _ => err!(DATATYPE_MISMATCH, "column \"{column}\" is of type {to} but default expression is of type {from}")
            .hint("You will need to rewrite or cast the expression.")
            .at(location),
    })
}

/// Refuses content that the finished expression must not have.
fn check_kind(cx: &Context<'_>, e: &Expr, relation: Option<&Arc<Relation>>, kind: ExprKind) -> Result<()> {
    // Functions LANGUAGE sql count by their content, where that is visible.
    let immutable = |message: &str| {
        let mut inlined = e.clone();
        Analyzer::inline_routines(cx, &mut inlined)?;
        if is_mutable(cx, &inlined) { Err(err!(INVALID_OBJECT_DEFINITION, "{message}")) } else { Ok(()) }
    };
    match kind {
        ExprKind::IndexExpression => immutable("functions in index expression must be marked IMMUTABLE"),
        ExprKind::IndexPredicate => immutable("functions in index predicate must be marked IMMUTABLE"),
        ExprKind::PartitionExpression => immutable("functions in partition key expression must be marked IMMUTABLE"),
        ExprKind::CopyWhere => {
            let mut generated = None;
            e.visit_vars(&mut |v| {
                let column = v.column.checked_sub(1).and_then(|i| relation?.columns.get(i as usize));
                if let Some(c) = column.filter(|c| c.generated != 0) {
                    generated.get_or_insert(c.name.clone());
                }
            });
            match generated {
                Some(name) => {
                    Err(err!(INVALID_COLUMN_REFERENCE, "generated columns are not supported in COPY FROM WHERE conditions")
                        .detail(format!("Column \"{name}\" is a generated column.")))
                }
                None => Ok(()),
            }
        }
        ExprKind::GeneratedColumn => {
            let mut generated = None;
            e.visit_vars(&mut |v| {
                let column = v.column.checked_sub(1).and_then(|i| relation?.columns.get(i as usize));
                if let Some(c) = column.filter(|c| c.generated != 0) {
                    generated.get_or_insert((c.name.clone(), v.location));
                }
            });
            if let Some((name, location)) = generated {
                return Err(err!(
                    INVALID_OBJECT_DEFINITION,
                    "cannot use generated column \"{name}\" in column generation expression"
                )
                .detail("A generated column cannot reference another generated column.")
                .at(location));
            }
            immutable("generation expression is not immutable")
        }
        _ => Ok(()),
    }
}

fn without_position(mut e: DbError) -> DbError {
    e.fields_mut().position = None;
    e
}

/// Converts an analyzed expression by assignment, for ALTER COLUMN TYPE without USING; none when there is no such cast.
pub fn coerce_for_assignment(cx: &Context<'_>, e: Expr, ty: Oid, typmod: i32) -> Result<Option<Expr>> {
    let mut analyzer = Analyzer::new(cx, Params::none());
    let how = How { context: CoercionContext::Assignment, form: CoercionForm::ImplicitCast, location: -1 };
    coerce::to_target(&mut analyzer, e, ty, typmod, how)
}
