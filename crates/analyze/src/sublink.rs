//! Subqueries in expressions.

use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::operators::OperatorName;
use super::scope::ExprKind;
use super::{nodes, operators, row};
use melba_tree::*;

/// The value of a query of one column.
pub fn scalar_sublink(query: Query, location: i32) -> Result<Expr> {
    let target = query.targets.first().ok_or_else(|| DbError::internal("a scalar subquery without a target"))?;
    let (ty, typmod, collation) = (target.expr.ty(), target.expr.typmod(), target.expr.collation());
    let (kind, test, operator) = (SublinkKind::Expr, None, None);
    Ok(Expr::Sublink(Box::new(Sublink { kind, query, test, operator, view: Oid::INVALID, ty, typmod, collation, location })))
}

pub fn sublink_expression<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::SubLink) -> Result<Expr> {
    use pb::SubLinkType as T;
    check_place(analyzer, n.location)?;
    let query = sublink_query(analyzer, &n.subselect)?;
    let kind = T::try_from(n.sub_link_type).unwrap_or(T::Undefined);
    let (kind, ty, typmod, collation) = match kind {
        T::ExistsSublink => (SublinkKind::Exists, oids::BOOL, -1, Oid::INVALID),
        T::ExprSublink | T::ArraySublink => {
            let column = single_column(&query, n.location)?;
            let (ty, typmod, collation) = (column.expr.ty(), column.expr.typmod(), column.expr.collation());
            if kind == T::ExprSublink {
                (SublinkKind::Expr, ty, typmod, collation)
            } else {
                let array =
                    analyzer.cx().catalog.array_of(ty).or(analyzer.cx().catalog.array_element(ty).map(|_| ty)).ok_or_else(
                        || {
                            let name = analyzer.cx().type_name(ty);
                            err!(UNDEFINED_OBJECT, "could not find array type for data type {name}").at(n.location)
                        },
                    )?;
                (SublinkKind::Array, array, typmod, collation)
            }
        }
        T::AnySublink | T::AllSublink => {
            let kind = if kind == T::AnySublink { SublinkKind::Any } else { SublinkKind::All };
            return comparison_sublink(analyzer, kind, &n.testexpr, query, &n.oper_name, n.location);
        }
        T::MultiexprSublink => (SublinkKind::MultiExpr, oids::RECORD, -1, Oid::INVALID),
        _ => return Err(DbError::internal("unrecognized sublink type")),
    };
    Ok(Expr::Sublink(Box::new(Sublink {
        kind,
        query,
        test: None,
        operator: None,
        view: Oid::INVALID,
        ty,
        typmod,
        collation,
        location: n.location,
    })))
}

fn sublink_query<'p>(analyzer: &mut Analyzer<'_, 'p>, node: &'p Option<Box<pb::Node>>) -> Result<Query> {
    let node = node.as_deref().and_then(|n| n.node.as_ref());
    let node = node.ok_or_else(|| DbError::internal("sublink without a query"))?;
    analyzer.level_mut().has_sublinks = true;
    let query = analyzer.statement(node)?;
    if query.command != Command::Select {
        return Err(DbError::internal("unexpected non-SELECT command in SubLink"));
    }
    Ok(query)
}

/// `(a, b) op (SELECT ...)`.
pub fn row_comparison<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    left: &'p pb::Node,
    n: &'p pb::SubLink,
    names: &'p [pb::Node],
    location: i32,
) -> Result<Expr> {
    check_place(analyzer, n.location)?;
    let query = sublink_query(analyzer, &n.subselect)?;
    let left = test_expressions(analyzer, left)?;
    let name = OperatorName::from_nodes(names);
    finish_comparison(analyzer, SublinkKind::RowCompare, left, query, name, None, location)
}

fn comparison_sublink<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    kind: SublinkKind,
    test: &'p Option<Box<pb::Node>>,
    query: Query,
    names: &'p [pb::Node],
    location: i32,
) -> Result<Expr> {
    let test = test.as_deref().ok_or_else(|| DbError::internal("sublink without a test expression"))?;
    let left = test_expressions(analyzer, test)?;
    let (name, written) = if names.is_empty() {
        (OperatorName::plain("="), None)
    } else {
        let name = OperatorName::from_nodes(names);
        (name, Some(name.name))
    };
    finish_comparison(analyzer, kind, left, query, name, written, location)
}

fn test_expressions<'p>(analyzer: &mut Analyzer<'_, 'p>, test: &'p pb::Node) -> Result<Vec<Expr>> {
    match &test.node {
        Some(NodeEnum::RowExpr(row)) => analyzer.expression_list(&row.args),
        _ => Ok(vec![analyzer.expr(test)?]),
    }
}

fn finish_comparison<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    kind: SublinkKind,
    left: Vec<Expr>,
    query: Query,
    name: OperatorName<'p>,
    written: Option<&str>,
    location: i32,
) -> Result<Expr> {
    let columns: Vec<&Target> = query.targets.iter().filter(|t| !t.junk).collect();
    // A single row-valued expression against several columns.
    let left = match (left.len(), columns.len()) {
        (1, n) if n > 1 => match left.into_iter().next() {
            Some(Expr::Row(row)) => row.fields,
            Some(other) => vec![other],
            None => Vec::new(),
        },
        _ => left,
    };
    if left.len() < columns.len() {
        return Err(err!(SYNTAX_ERROR, "subquery has too many columns").at(location));
    }
    if left.len() > columns.len() {
        return Err(err!(SYNTAX_ERROR, "subquery has too few columns").at(location));
    }
    let right = columns
        .iter()
        .enumerate()
        .map(|(i, t)| {
            Expr::Param(Param {
                kind: ParamKind::Executor,
                number: i,
                ty: t.expr.ty(),
                typmod: t.expr.typmod(),
                collation: t.expr.collation(),
                location: -1,
            })
        })
        .collect();
    let test = operators::make_row_comparison(analyzer, name, left, right, location)?;
    Ok(Expr::Sublink(Box::new(Sublink {
        kind,
        query,
        test: Some(test),
        operator: if kind == SublinkKind::RowCompare { Some(name.name.into()) } else { written.map(Into::into) },
        view: Oid::INVALID,
        ty: oids::BOOL,
        typmod: -1,
        collation: Oid::INVALID,
        location,
    })))
}

pub fn check_place(analyzer: &Analyzer<'_, '_>, location: i32) -> Result<()> {
    let text = match analyzer.level().kind.0 {
        ExprKind::CheckConstraint | ExprKind::DomainCheck => "cannot use subquery in check constraint",
        ExprKind::ColumnDefault | ExprKind::FunctionDefault => "cannot use subquery in DEFAULT expression",
        ExprKind::IndexExpression => "cannot use subquery in index expression",
        ExprKind::IndexPredicate => "cannot use subquery in index predicate",
        ExprKind::AlterColumnTransform => "cannot use subquery in transform expression",
        ExprKind::ExecuteParameter => "cannot use subquery in EXECUTE parameter",
        ExprKind::TriggerWhen => "cannot use subquery in trigger WHEN condition",
        ExprKind::PartitionBound => "cannot use subquery in partition bound",
        ExprKind::PartitionExpression => "cannot use subquery in partition key expression",
        ExprKind::StatisticsExpression => "cannot use subquery in statistics expression",
        ExprKind::CallArgument => "cannot use subquery in CALL argument",
        ExprKind::CopyWhere => "cannot use subquery in COPY FROM WHERE condition",
        ExprKind::GeneratedColumn => "cannot use subquery in column generation expression",
        _ => return Ok(()),
    };
    Err(err!(FEATURE_NOT_SUPPORTED, "{text}").at(location))
}

/// `(a, b) = (SELECT ...)` or `= ROW(...)` in SET: one column of the source.
pub fn multi_assign<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::MultiAssignRef) -> Result<Expr> {
    let source = n.source.as_deref().ok_or_else(|| DbError::internal("multiple assignment without a source"))?;
    let column = n.colno as usize;
    match source.node.as_ref() {
        Some(NodeEnum::SubLink(s)) if s.sub_link_type == pb::SubLinkType::ExprSublink as i32 => {
            // The source is analyzed with its first column; the others refer to it.
            if column == 1 {
                let query = sublink_query(analyzer, &s.subselect)?;
                let visible = query.targets.iter().filter(|t| !t.junk).count();
                if visible != n.ncolumns as usize {
                    return Err(err!(SYNTAX_ERROR, "number of columns does not match number of values").at(s.location));
                }
                let link = Expr::Sublink(Box::new(Sublink {
                    kind: SublinkKind::MultiExpr,
                    query,
                    test: None,
                    operator: None,
                    view: Oid::INVALID,
                    ty: oids::RECORD,
                    typmod: -1,
                    collation: Oid::INVALID,
                    location: s.location,
                }));
                analyzer.level_mut().multi_assign.push(link);
            }
            let link = analyzer.level().multi_assign.last().cloned();
            let Some(Expr::Sublink(link)) = link else { return Err(DbError::internal("no source for assignment")) };
            let target = link.query.targets.iter().filter(|t| !t.junk).nth(column - 1);
            let target = target.ok_or_else(|| DbError::internal("multiple assignment out of range"))?;
            let (ty, typmod, collation) = (target.expr.ty(), target.expr.typmod(), target.expr.collation());
            let arg = Box::new(Expr::Sublink(link));
            Ok(Expr::FieldSelect { arg, field: column as i16, ty, typmod, collation })
        }
        Some(NodeEnum::RowExpr(row)) => {
            // The source is analyzed with its first column; the others refer to it.
            if column == 1 {
                let e = row::row_expression(analyzer, row, true)?;
                analyzer.level_mut().multi_assign.push(e);
            }
            let fields = match analyzer.level().multi_assign.last() {
                Some(Expr::Row(row)) => row.fields.clone(),
                _ => return Err(DbError::internal("no source for assignment")),
            };
            if fields.len() != n.ncolumns as usize {
                return Err(err!(SYNTAX_ERROR, "number of columns does not match number of values").at(row.location));
            }
            Ok(fields[column - 1].clone())
        }
        _ => {
            Err(err!(FEATURE_NOT_SUPPORTED, "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression")
                .at(nodes::location(source)))
        }
    }
}

fn single_column(query: &Query, location: i32) -> Result<&Target> {
    let mut visible = query.targets.iter().filter(|t| !t.junk);
    match (visible.next(), visible.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(err!(SYNTAX_ERROR, "subquery must return only one column").at(location)),
    }
}
