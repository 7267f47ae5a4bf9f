//! The exclusion constraint of an index: which columns are compared by equality, and the operators of the others.

use melba_catalog::{Catalog, Constraint, IndexInfo, TypeKind};
use melba_expression::compile::call_of;
use melba_expression::{Call, Evaluation};
use melba_types::{Datum, DbError, Oid, Result};

/// The exclusion constraint of an index.
#[derive(Debug)]
pub struct Exclusion {
    /// How many parts of the key, from the first one on, are compared by equality.
    pub equal: usize,
    pub search: GroupSearch,
    /// The operators of the other parts.
    others: Vec<Call>,
    /// WITHOUT OVERLAPS: the last part is never empty.
    is_period: bool,
}

/// The search for a row of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupSearch {
    /// There is no other column: any row.
    Any,
    /// One column of a range type, by `&&`.
    Overlap,
    /// One column, by `<>`.
    Different,
    /// Compares all rows.
    All,
}

impl Exclusion {
    /// The order of an index's columns in its keys: those compared by equality first.
    pub fn order(catalog: &Catalog, constraint: &Constraint) -> (Vec<usize>, usize) {
        let is_equal = |at: &usize| catalog.is_equality(constraint.operators[*at]);
        let (equal, others): (Vec<usize>, Vec<usize>) = (0..constraint.operators.len()).partition(is_equal);
        let count = equal.len();
        (equal.into_iter().chain(others).collect(), count)
    }

    pub fn new(catalog: &Catalog, constraint: &Constraint, info: &IndexInfo) -> Result<Exclusion> {
        let (order, equal) = Exclusion::order(catalog, constraint);
        let mut others = Vec::new();
        let mut search = if order.len() == equal { GroupSearch::Any } else { GroupSearch::All };
        for &at in &order[equal..] {
            let (oid, key) = (constraint.operators[at], &info.keys[at]);
            let missing = || DbError::internal(format!("could not find operator {oid}"));
            let operator = catalog.operator(oid).ok_or_else(missing)?;
            let call = call_of(catalog, operator.function, vec![], operator.result, key.collation, false, -1)?;
            others.push(Call { arg_types: [key.ty, key.ty].into(), ..call });
            if order.len() == equal + 1 {
                search = GroupSearch::of(catalog, oid, key.ty);
            }
        }
        Ok(Exclusion { equal, search, others, is_period: constraint.is_without_overlaps() })
    }

    /// Whether a key WITHOUT OVERLAPS has no range.
    pub fn is_empty_period(&self, values: &[Datum]) -> bool {
        let is_empty = match values.last() {
            Some(Datum::Range(range)) => range.empty,
            Some(Datum::Multirange(ranges)) => ranges.ranges.is_empty(),
            _ => false,
        };
        self.is_period && is_empty
    }

    /// Whether a value stands in the way of no other.
    pub fn is_free(&self, values: &[Datum]) -> bool {
        let is_empty = |value: &Datum| matches!(value, Datum::Range(range) if range.empty);
        values.iter().any(Datum::is_null) || self.search == GroupSearch::Overlap && is_empty(&values[self.equal])
    }

    /// Whether two rows of a group exclude each other.
    pub fn excludes(&self, ctx: &Evaluation, existing: &[Datum], new: &[Datum]) -> Result<bool> {
        for (at, operator) in (self.equal..).zip(&self.others) {
            if operator.compare(ctx, existing[at].clone(), new[at].clone())? != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl GroupSearch {
    fn of(catalog: &Catalog, operator: Oid, ty: Oid) -> GroupSearch {
        let is_range = catalog.type_(catalog.base_type(ty)).is_some_and(|t| t.type_kind == TypeKind::Range);
        let Some(operator) = catalog.operator(operator) else { return GroupSearch::All };
        match &*operator.name {
            "&&" if is_range && operator.oid.0 < melba_catalog::classes::FIRST_USER_OID => GroupSearch::Overlap,
            "<>" if catalog.is_equality(operator.negator) => GroupSearch::Different,
            _ => GroupSearch::All,
        }
    }
}
