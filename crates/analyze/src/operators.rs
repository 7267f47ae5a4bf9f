//! Operators by name and operand types, and the expressions that call them.

use std::sync::Arc;

use melba_catalog::Operator;
use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::candidates::Candidate;
use super::coerce::{How, returns_set};
use super::context::Context;
use super::scope::ExprKind;
use super::{candidates, coerce, nodes, polymorphic};
use melba_tree::*;

#[derive(Clone)]
struct OperatorCandidate<'a> {
    operator: &'a Arc<Operator>,
    args: [Oid; 2],
    arity: usize,
}

impl Candidate for OperatorCandidate<'_> {
    fn args(&self) -> &[Oid] {
        &self.args[..self.arity]
    }
}

/// An operator's name, perhaps qualified.
#[derive(Clone, Copy)]
pub struct OperatorName<'n> {
    pub schema: Option<&'n str>,
    pub name: &'n str,
}

impl<'n> OperatorName<'n> {
    pub fn plain(name: &'n str) -> Self {
        OperatorName { schema: None, name }
    }

    pub fn from_nodes(names: &'n [pb::Node]) -> Self {
        let mut parts = names.iter().rev().filter_map(nodes::string);
        let name = parts.next().unwrap_or("");
        OperatorName { name, schema: parts.next() }
    }

    fn shown(&self) -> String {
        match self.schema {
            Some(schema) => format!("{schema}.{}", self.name),
            None => self.name.to_owned(),
        }
    }
}

impl<'a> Context<'a> {
    /// Calls `f` with every visible operator of a name, nearest schema first, until it returns something.
    fn operators_named<T>(&self, name: OperatorName<'_>, mut f: impl FnMut(&'a Arc<Operator>) -> Option<T>) -> Result<Option<T>> {
        let single;
        let namespaces: &[Oid] = match name.schema {
            Some(schema) => {
                single = [self.namespace(schema)?];
                &single
            }
            None => self.search_path,
        };
        for namespace in namespaces {
            if name.schema.is_none() && *namespace == self.temp_namespace {
                continue;
            }
            for operator in self.catalog.operators_by_name(*namespace, name.name) {
                // The lookup's iterator borrows the name; the operator itself lives as long as the catalog.
                let Some(operator) = self.catalog.operator(operator.oid) else { continue };
                if let Some(found) = f(operator) {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    fn exact_operator(&self, name: OperatorName<'_>, left: Oid, right: Oid) -> Result<Option<&'a Arc<Operator>>> {
        let exact = |namespace: Oid| {
            let mut named = self.catalog.operators_by_name(namespace, name.name);
            named.find(|o| o.left == left && o.right == right).map(|o| o.oid)
        };
        let found = match name.schema {
            Some(schema) => exact(self.namespace(schema)?),
            None => self.search_path.iter().filter(|n| **n != self.temp_namespace).find_map(|n| exact(*n)),
        };
        Ok(found.and_then(|oid| self.catalog.operator(oid)))
    }

    /// The operator with exactly these operand types, if any.
    pub fn operator_with(&self, name: &str, left: Oid, right: Oid) -> Option<&'a Arc<Operator>> {
        self.exact_operator(OperatorName::plain(name), left, right).ok().flatten()
    }

    /// The binary operator that PostgreSQL would use for operand types, if any.
    pub fn find_operator(&self, name: &str, left: Oid, right: Oid) -> Option<&'a Arc<Operator>> {
        self.operator_with(name, left, right).or_else(|| self.binary_operator_opt(OperatorName::plain(name), left, right))
    }

    fn candidates(&self, name: OperatorName<'_>, unary: bool) -> Result<Vec<OperatorCandidate<'a>>> {
        let mut all: Vec<OperatorCandidate<'a>> = Vec::new();
        self.operators_named(name, |operator| {
            if operator.left.is_valid() == unary {
                return None::<()>;
            }
            let (args, arity) = if unary { ([operator.right, Oid::INVALID], 1) } else { ([operator.left, operator.right], 2) };
            // One earlier in the search path hides the same signature later.
            if !all.iter().any(|c| c.args == args) {
                all.push(OperatorCandidate { operator, args, arity });
            }
            None
        })?;
        Ok(all)
    }

    /// The binary operator for operand types (PostgreSQL's oper()).
    pub fn binary_operator(&self, name: OperatorName<'_>, left: Oid, right: Oid, location: i32) -> Result<&'a Arc<Operator>> {
        if let Some(found) = self.binary_exact(name, left, right)? {
            return Ok(found);
        }
        // A literal of unknown type is resolved by the algorithm, but both unknown counts as text here as anywhere.
        self.choose(name, &[left, right], location)
    }

    /// Like `binary_operator`, none instead of an error when there is no such operator.
    pub fn binary_operator_opt(&self, name: OperatorName<'_>, left: Oid, right: Oid) -> Option<&'a Arc<Operator>> {
        self.binary_operator(name, left, right, -1).ok()
    }

    fn binary_exact(&self, name: OperatorName<'_>, left: Oid, right: Oid) -> Result<Option<&'a Arc<Operator>>> {
        let (mut l, mut r) = (left, right);
        let mut was_unknown = false;
        if l == oids::UNKNOWN && r.is_valid() {
            l = r;
            was_unknown = true;
        } else if r == oids::UNKNOWN && l.is_valid() {
            r = l;
            was_unknown = true;
        }
        if let Some(found) = self.exact_operator(name, l, r)? {
            return Ok(Some(found));
        }
        if was_unknown {
            let base = self.base_type(l);
            if base != l {
                return self.exact_operator(name, base, base);
            }
        }
        Ok(None)
    }

    pub fn prefix_operator(&self, name: OperatorName<'_>, right: Oid, location: i32) -> Result<&'a Arc<Operator>> {
        if let Some(found) = self.exact_operator(name, Oid::INVALID, right)? {
            return Ok(found);
        }
        self.choose(name, &[right], location)
    }

    fn choose(&self, name: OperatorName<'_>, inputs: &[Oid], location: i32) -> Result<&'a Arc<Operator>> {
        let all = self.candidates(name, inputs.len() == 1)?;
        // An unknown operand is assumed to have the other's type where that finds an operator.
        let matching = candidates::matching(self, inputs, &all);
        let ambiguous = matching.len() > 1;
        let chosen = if ambiguous { candidates::select_candidate(self, inputs, matching) } else { matching.into_iter().next() };
        match chosen {
            Some(c) => Ok(c.operator),
            None => Err(self.operator_error(name, inputs, ambiguous, location)),
        }
    }

    fn operator_error(&self, name: OperatorName<'_>, inputs: &[Oid], ambiguous: bool, location: i32) -> DbError {
        let shown = match inputs {
            [right] => format!("{} {}", name.shown(), self.type_name(*right)),
            _ => format!("{} {} {}", self.type_name(inputs[0]), name.shown(), self.type_name(inputs[1])),
        };
        let e = if ambiguous {
            err!(AMBIGUOUS_FUNCTION, "operator is not unique: {shown}")
                .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
        } else if inputs.len() == 1 {
            err!(UNDEFINED_FUNCTION, "operator does not exist: {shown}")
                .hint("No operator matches the given name and argument type. You might need to add an explicit type cast.")
        } else {
            err!(UNDEFINED_FUNCTION, "operator does not exist: {shown}")
                .hint("No operator matches the given name and argument types. You might need to add explicit type casts.")
        };
        e.at(location)
    }
}

/// An operator applied to one or two operands.
pub fn make_operator(
    analyzer: &mut Analyzer<'_, '_>,
    name: OperatorName<'_>,
    left: Option<Expr>,
    right: Expr,
    location: i32,
) -> Result<Expr> {
    let right_type = right.ty();
    let (operator, actual, args) = match left {
        Some(left) => {
            let left_type = left.ty();
            let operator = analyzer.cx().binary_operator(name, left_type, right_type, location)?;
            (operator, vec![left_type, right_type], vec![left, right])
        }
        None => (analyzer.cx().prefix_operator(name, right_type, location)?, vec![right_type], vec![right]),
    };
    refuse_shell(analyzer.cx(), operator, location)?;
    let mut declared = if actual.len() == 2 { vec![operator.left, operator.right] } else { vec![operator.right] };
    let ty = polymorphic::enforce_generic_consistency(analyzer.cx(), &actual, &mut declared, operator.result)
        .map_err(|e| e.at(location))?;
    let args = coerce_arguments(analyzer, args, &declared)?;
    let set = analyzer.cx().function(operator.function)?.returns_set;
    if set {
        check_set_returning(analyzer, location)?;
    }
    Ok(Expr::Operator(Box::new(OperatorCall {
        operator: operator.oid,
        function: operator.function,
        args,
        ty,
        collation: Oid::INVALID,
        input_collation: Oid::INVALID,
        returns_set: set,
        location,
    })))
}

fn refuse_shell(cx: &Context<'_>, operator: &Operator, location: i32) -> Result<()> {
    if operator.function.is_valid() {
        return Ok(());
    }
    let shown = operator_signature(cx, operator);
    Err(err!(UNDEFINED_FUNCTION, "operator is only a shell: {shown}").at(location))
}

/// Converts arguments to declared types.
pub fn coerce_arguments(analyzer: &mut Analyzer<'_, '_>, args: Vec<Expr>, declared: &[Oid]) -> Result<Vec<Expr>> {
    let mut out = Vec::with_capacity(args.len());
    for (arg, ty) in args.into_iter().zip(declared) {
        out.push(if arg.ty() == *ty { arg } else { coerce::to_type(analyzer, arg, *ty, -1, How::implicit())? });
    }
    Ok(out)
}

/// `scalar op ANY/ALL (array)`.
pub fn make_scalar_array(
    analyzer: &mut Analyzer<'_, '_>,
    name: OperatorName<'_>,
    any: bool,
    scalar: Expr,
    array: Expr,
    location: i32,
) -> Result<Expr> {
    let (scalar_type, array_type) = (scalar.ty(), array.ty());
    let element = if array_type == oids::UNKNOWN {
        oids::UNKNOWN
    } else {
        analyzer
            .cx()
            .catalog
            .array_element(array_type)
            .ok_or_else(|| err!(WRONG_OBJECT_TYPE, "op ANY/ALL (array) requires array on right side").at(location))?
    };
    let operator = analyzer.cx().binary_operator(name, scalar_type, element, location)?;
    refuse_shell(analyzer.cx(), operator, location)?;
    let mut declared = [operator.left, operator.right];
    let result = polymorphic::enforce_generic_consistency(analyzer.cx(), &[scalar_type, element], &mut declared, operator.result)
        .map_err(|e| e.at(location))?;
    if result != oids::BOOL {
        return Err(err!(WRONG_OBJECT_TYPE, "op ANY/ALL (array) requires operator to yield boolean").at(location));
    }
    if analyzer.cx().function(operator.function)?.returns_set {
        return Err(err!(WRONG_OBJECT_TYPE, "op ANY/ALL (array) requires operator not to return a set").at(location));
    }
    let target = if super::polymorphic::is_polymorphic(declared[1]) {
        array_type
    } else {
        analyzer.cx().catalog.array_of(declared[1]).ok_or_else(|| {
            let name = analyzer.cx().type_name(declared[1]);
            err!(UNDEFINED_OBJECT, "could not find array type for data type {name}").at(location)
        })?
    };
    let scalar = coerce::to_type(analyzer, scalar, declared[0], -1, How::implicit())?;
    let array = coerce::to_type(analyzer, array, target, -1, How::implicit())?;
    Ok(Expr::ScalarArray(Box::new(ScalarArrayExpr {
        operator: operator.oid,
        function: operator.function,
        any,
        scalar,
        array,
        input_collation: Oid::INVALID,
        location,
    })))
}

/// IS DISTINCT FROM and NULLIF, which are called by =.
pub fn make_distinct(analyzer: &mut Analyzer<'_, '_>, left: Expr, right: Expr, location: i32) -> Result<OperatorCall> {
    match make_operator(analyzer, OperatorName::plain("="), Some(left), right, location)? {
        Expr::Operator(call) => Ok(*call),
        other => Err(DbError::internal(format!("= made {other:?}"))),
    }
}

/// Row comparison, field by field.
pub fn make_row_comparison(
    analyzer: &mut Analyzer<'_, '_>,
    name: OperatorName<'_>,
    left: Vec<Expr>,
    right: Vec<Expr>,
    location: i32,
) -> Result<Expr> {
    if left.len() != right.len() {
        return Err(err!(SYNTAX_ERROR, "unequal number of entries in row expressions").at(location));
    }
    if left.is_empty() {
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot compare rows of zero length").at(location));
    }
    let mut calls = Vec::with_capacity(left.len());
    for (l, r) in left.into_iter().zip(right) {
        let call = match make_operator(analyzer, name, Some(l), r, location)? {
            Expr::Operator(call) => *call,
            other => return Err(DbError::internal(format!("row comparison made {other:?}"))),
        };
        if call.ty != oids::BOOL {
            let ty = analyzer.cx().type_name(call.ty);
            return Err(err!(DATATYPE_MISMATCH, "row comparison operator must yield type boolean, not type {ty}").at(location));
        }
        if returns_set(&Expr::Operator(Box::new(call.clone()))) {
            return Err(err!(DATATYPE_MISMATCH, "row comparison operator must not return a set").at(location));
        }
        calls.push(call);
    }
    if calls.len() == 1
        && let Some(call) = calls.pop()
    {
        return Ok(Expr::Operator(Box::new(call)));
    }
    let comparison = row_comparison_kind(analyzer.cx(), name, &calls, location)?;
    let wrap = |calls: Vec<OperatorCall>| calls.into_iter().map(|c| Expr::Operator(Box::new(c))).collect();
    Ok(match comparison {
        Comparison::Equal => Expr::And(wrap(calls)),
        Comparison::NotEqual => Expr::Or(wrap(calls)),
        _ => {
            let mut row = RowCompareExpr {
                comparison,
                operators: Vec::new(),
                left: Vec::new(),
                right: Vec::new(),
                input_collations: Vec::new(),
            };
            for call in calls {
                let mut args = call.args.into_iter();
                row.operators.push(call.operator);
                row.left.extend(args.next());
                row.right.extend(args.next());
                row.input_collations.push(Oid::INVALID);
            }
            Expr::RowCompare(Box::new(row))
        }
    })
}

/// The meaning of the operators in some B-tree family that all of them share.
fn row_comparison_kind(cx: &Context<'_>, name: OperatorName<'_>, calls: &[OperatorCall], location: i32) -> Result<Comparison> {
    let strategies = |operator: Oid| -> Vec<i16> {
        let members = cx.catalog.all_operator_members(operator).iter();
        let btree = |m: &&melba_catalog::OperatorFamilyMember| m.method == melba_catalog::classes::BTREE && !m.ordering;
        let mut found: Vec<i16> = members.filter(btree).map(|m| m.strategy).collect();
        if found.is_empty() {
            // <> is in no family, but its negator is.
            let negator = cx.catalog.operator(operator).map_or(Oid::INVALID, |o| o.negator);
            let mut members = cx.catalog.all_operator_members(negator).iter().filter(btree);
            if members.any(|m| m.strategy == 3) {
                found.push(6);
            }
        }
        found
    };
    let mut common = strategies(calls[0].operator);
    for call in &calls[1..] {
        let own = strategies(call.operator);
        common.retain(|s| own.contains(s));
    }
    let undetermined = || {
        err!(FEATURE_NOT_SUPPORTED, "could not determine interpretation of row comparison operator {}", name.name)
            .hint("Row comparison operators must be associated with btree operator families.")
            .at(location)
    };
    Ok(match common.first() {
        Some(1) => Comparison::Less,
        Some(2) => Comparison::LessEqual,
        Some(3) => Comparison::Equal,
        Some(4) => Comparison::GreaterEqual,
        Some(5) => Comparison::Greater,
        Some(6) => Comparison::NotEqual,
        _ => return Err(undetermined()),
    })
}

/// 0A000 where the place of the expression does not allow a set-returning function.
pub fn check_set_returning(analyzer: &mut Analyzer<'_, '_>, location: i32) -> Result<()> {
    let level = analyzer.level();
    let kind = level.kind.0;
    let forbidden = |text: &str| Err(err!(FEATURE_NOT_SUPPORTED, "{text}").at(location));
    match kind {
        ExprKind::None | ExprKind::Other => {}
        ExprKind::FromFunction => {}
        ExprKind::JoinOn | ExprKind::JoinUsing => {
            return forbidden("set-returning functions are not allowed in JOIN conditions");
        }
        ExprKind::SelectTarget | ExprKind::OrderBy | ExprKind::GroupBy | ExprKind::DistinctOn => {
            analyzer.level_mut().has_set_returning = true;
        }
        ExprKind::InsertTarget | ExprKind::ValuesSingle => analyzer.level_mut().has_set_returning = true,
        ExprKind::WindowPartition | ExprKind::WindowOrder => analyzer.level_mut().has_set_returning = true,
        ExprKind::WindowFrameRange | ExprKind::WindowFrameRows | ExprKind::WindowFrameGroups => {
            return forbidden("set-returning functions are not allowed in window definitions");
        }
        ExprKind::CheckConstraint | ExprKind::DomainCheck => {
            return forbidden("set-returning functions are not allowed in check constraints");
        }
        ExprKind::ColumnDefault | ExprKind::FunctionDefault => {
            return forbidden("set-returning functions are not allowed in DEFAULT expressions");
        }
        ExprKind::IndexExpression => return forbidden("set-returning functions are not allowed in index expressions"),
        ExprKind::IndexPredicate => return forbidden("set-returning functions are not allowed in index predicates"),
        ExprKind::AlterColumnTransform => {
            return forbidden("set-returning functions are not allowed in transform expressions");
        }
        ExprKind::ExecuteParameter => {
            return forbidden("set-returning functions are not allowed in EXECUTE parameters");
        }
        ExprKind::TriggerWhen => return forbidden("set-returning functions are not allowed in trigger WHEN conditions"),
        ExprKind::PartitionBound => return forbidden("set-returning functions are not allowed in partition bound"),
        ExprKind::PartitionExpression => {
            return forbidden("set-returning functions are not allowed in partition key expressions");
        }
        ExprKind::StatisticsExpression => return forbidden("set-returning functions are not allowed in statistics expressions"),
        ExprKind::CallArgument => return forbidden("set-returning functions are not allowed in CALL arguments"),
        ExprKind::CopyWhere => return forbidden("set-returning functions are not allowed in COPY FROM WHERE conditions"),
        ExprKind::GeneratedColumn => {
            return forbidden("set-returning functions are not allowed in column generation expressions");
        }
        ExprKind::MergeWhen => return forbidden("set-returning functions are not allowed in MERGE WHEN conditions"),
        ExprKind::Policy => return forbidden("set-returning functions are not allowed in policy expressions"),
        _ => {
            let name = kind.name();
            return forbidden(&format!("set-returning functions are not allowed in {name}"));
        }
    }
    Ok(())
}

/// `integer + integer`, as regoperator and messages show it.
/// The operator with exactly these operand types; invalid without one.
///
/// # Errors
/// 42501 or 3F000 for its schema.
pub fn exact_operator(cx: &Context<'_>, names: &[&str], left: Oid, right: Oid) -> Result<Oid> {
    let name = match names {
        [schema, name] => OperatorName { schema: Some(schema), name },
        _ => OperatorName::plain(names.last().copied().unwrap_or_default()),
    };
    Ok(cx.exact_operator(name, left, right)?.map_or(Oid::INVALID, |o| o.oid))
}

pub fn operator_signature(cx: &Context<'_>, operator: &Operator) -> String {
    let right = cx.type_name(operator.right);
    if operator.left.is_valid() {
        format!("{} {} {right}", cx.type_name(operator.left), operator.name)
    } else {
        format!("{} {right}", operator.name)
    }
}
