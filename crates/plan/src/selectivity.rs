//! Estimates the share of rows that pass a condition: by the columns' statistics, and by the condition's form where there are none.

use std::rc::Rc;

use melba_catalog::{Relation, Storage, relations};
use melba_engine::{ColumnEstimate, Point};
use melba_types::{Datum, Oid, oids};

use super::default_selectivity::{EQUAL, OTHER, RANGE};
use super::pattern::{like_exact, like_prefix, regex_exact, regex_prefix};
use super::planner::{Nothing, Planner};
use super::rels::{Rels, contains_sublink, rels_of};
use melba_expression::Compiler;
use melba_tree::{BooleanTest, Expr, OperatorCall, RangeKind, ScalarArray};

/// Both ends of a range, of which one is unknown: PostgreSQL's DEFAULT_RANGE_INEQ_SEL.
const BETWEEN: f64 = 0.005;
/// Of a pattern that begins with a wildcard: a word of a few letters.
const PATTERN: f64 = 0.05;
/// An IN list whose length is not known.
const LIST_ELEMENTS: f64 = 10.0;
/// Of an array in a system relation: the columns of a key most of all.
const CATALOG_ELEMENTS: f64 = 2.0;
/// Functions that return the first characters of a text: substr, substring, left.
const SUBSTR: Oid = Oid(877);
const SUBSTRING: Oid = Oid(936);
const LEFT: Oid = Oid(3060);
/// As many places a group as an aggregate has in an array at most.
const SPARSE_PLACES: f64 = 16.0;
/// Microseconds per day.
const DAY_MICROS: f64 = 86_400_000_000.0;

/// A comparison of a column with a value that is not of its relation.
struct Comparison<'e> {
    entry: usize,
    column: usize,
    value: &'e Expr,
    /// The column stands on the right.
    flipped: bool,
}

/// An entry and a column of it, counted from 0.
type ColumnPlace = (usize, usize);
/// A column of each of two entries, and the share of pairs of rows in which they are equal.
type EqualColumns = (usize, usize, f64);

/// The place of a constant, owned.
enum Place {
    Number(f64),
    Bytes(Vec<u8>),
}

impl Place {
    fn as_point(&self) -> Point<'_> {
        match self {
            Place::Number(number) => Point::Number(*number),
            Place::Bytes(bytes) => Point::Bytes(bytes),
        }
    }
}

impl Planner<'_> {
    /// The share of rows that pass one condition. Columns of other relations count as an unknown value.
    pub fn selectivity(&self, condition: &Expr) -> f64 {
        match condition {
            Expr::Operator(op) => self.operator_selectivity(op),
            Expr::ScalarArray(list) => self.list_selectivity(list),
            Expr::And(args) => self.conjunction(args),
            Expr::Or(args) => 1.0 - args.iter().map(|a| 1.0 - self.selectivity(a)).product::<f64>(),
            Expr::Not(arg) => 1.0 - self.selectivity(arg),
            Expr::NullTest { arg, is_null, row: false } => {
                let nulls = self.estimate_of(arg).map_or(EQUAL, |e| e.null_share);
                if *is_null { nulls } else { 1.0 - nulls }
            }
            Expr::NullTest { is_null, .. } => {
                if *is_null {
                    EQUAL
                } else {
                    1.0 - EQUAL
                }
            }
            Expr::BooleanTest { test: BooleanTest::Unknown, .. } => EQUAL,
            Expr::Var(_) => self.share_of_flag(condition).unwrap_or(OTHER),
            _ => OTHER,
        }
    }

    /// The share of rows that pass all conditions. They count as independent, except the two ends of one range.
    pub fn conjunction<'e>(&self, conditions: impl IntoIterator<Item = &'e Expr>) -> f64 {
        let mut share = 1.0;
        // The ends of ranges by column: whether any is unknown, the share below the upper one and below the lower one.
        let mut ranges: Vec<(ColumnPlace, Option<f64>, Option<f64>, bool)> = Vec::new();
        for condition in conditions {
            let end = if let Expr::Operator(op) = condition { self.range_end(op) } else { None };
            let Some((at, is_upper, below)) = end else {
                share *= self.selectivity(condition);
                continue;
            };
            let range = match ranges.iter_mut().position(|r| r.0 == at) {
                Some(i) => &mut ranges[i],
                None => {
                    ranges.push((at, None, None, false));
                    let last = ranges.len() - 1;
                    &mut ranges[last]
                }
            };
            let end = if is_upper { &mut range.1 } else { &mut range.2 };
            // Of two ends on one side the narrower counts.
            let narrower = |known: Option<f64>, new: f64| match known {
                Some(known) if is_upper => known.min(new),
                Some(known) => known.max(new),
                None => new,
            };
            match below {
                Some(below) => *end = Some(narrower(*end, below)),
                None => {
                    range.3 = true;
                    *end = Some(narrower(*end, if is_upper { RANGE } else { 1.0 - RANGE }));
                }
            }
        }
        for ((entry, column), upper, lower, unknown) in ranges {
            let values = 1.0 - self.estimate(entry, column).map_or(0.0, |e| e.null_share);
            share *= match (upper, lower) {
                (Some(_), Some(_)) if unknown => BETWEEN,
                (upper, lower) => values * (upper.unwrap_or(1.0) - lower.unwrap_or(0.0)).clamp(self.least(entry), 1.0),
            };
        }
        share
    }

    /// The share of pairs of rows that conditions between relations let through. `rows`: of the largest side, for columns without
    /// statistics.
    pub fn join_selectivity(&self, conditions: &[&Expr], rows: f64) -> f64 {
        let mut share = 1.0;
        // Equalities between two columns, by the two entries.
        let mut pairs: Vec<(usize, usize, Vec<EqualColumns>)> = Vec::new();
        for condition in conditions {
            match self.equal_columns(condition) {
                Some(((a, a_column), (b, b_column))) => {
                    let (a, a_column, b, b_column) = if a < b { (a, a_column, b, b_column) } else { (b, b_column, a, a_column) };
                    let of_one = self.equality_of_columns((a, a_column), (b, b_column), rows);
                    match pairs.iter_mut().find(|p| (p.0, p.1) == (a, b)) {
                        Some(pair) => pair.2.push((a_column, b_column, of_one)),
                        None => pairs.push((a, b, vec![(a_column, b_column, of_one)])),
                    }
                }
                None if self.is_equality(condition) => share *= self.equality_of_sides(condition, rows),
                None => {
                    share *=
                        if rels_of(condition).count_ones() > 1 { self.across(condition) } else { self.selectivity(condition) }
                }
            }
        }
        for (a, b, mut columns) in pairs {
            let key = self.key_rows(a, columns.iter().map(|c| c.0)).max(self.key_rows(b, columns.iter().map(|c| c.1)));
            columns.sort_by(|x, y| x.2.total_cmp(&y.2));
            // Columns of one pair of tables depend on each other. Exponential backoff: each further one gets half the exponent of
            // the one before.
            let backed_off: f64 = columns.iter().enumerate().map(|(i, c)| c.2.powf(0.5_f64.powi(i as i32))).product();
            share *= if key > 0.0 { 1.0 / key } else { backed_off };
        }
        share
    }

    /// The share of the left rows that have a partner on the right, of `right_rows` rows.
    pub fn match_share(&self, conditions: &[&Expr], left: Rels, right_rows: f64) -> f64 {
        let mut share: f64 = 1.0;
        let mut is_known = false;
        for condition in conditions {
            let Some((a, b)) = self.equal_columns(condition) else { continue };
            let (l, r) = if left >> a.0.min(127) & 1 != 0 { (a, b) } else { (b, a) };
            let (Some(l), r) = (self.distinct_values(l.0, l.1), self.distinct_values(r.0, r.1)) else { continue };
            // The expected number of distinct values among `right_rows` draws from the right side's values.
            let values = r.map_or(right_rows, |r| r * (1.0 - (-right_rows / r.max(1.0)).exp()));
            share = share.min((values / l.max(1.0)).min(1.0));
            is_known = true;
        }
        if is_known { share } else { OTHER }
    }

    /// How many groups rows make by expressions.
    pub fn groups_of(&self, exprs: &[Expr], rows: f64) -> f64 {
        let mut groups = 1.0;
        for expr in exprs {
            let mut of_one: f64 = 1.0;
            let mut is_known = true;
            // An expression has at most as many values as its columns have together.
            expr.visit_vars(&mut |v| {
                if let (0, Ok(column)) = (v.levels_up, usize::try_from(v.column - 1)) {
                    match self.distinct_values(v.entry, column) {
                        Some(distinct) => of_one *= distinct,
                        None => is_known = false,
                    }
                }
            });
            if let Some((entry, column, Some(characters))) = self.beginning_of(expr)
                && let Some(estimate) = self.estimate(entry, column)
            {
                of_one = of_one.min(estimate.distinct_beginnings(characters));
            }
            // Without statistics a tenth of the rows are assumed to be groups.
            groups *= if is_known { of_one.max(1.0) } else { (rows * 0.1).max(1.0) };
        }
        groups.clamp(1.0, rows.max(1.0))
    }

    /// The entry and the column whose values' first characters an expression returns, and how many, if that is known.
    pub fn beginning_of(&self, expr: &Expr) -> Option<(usize, usize, Option<usize>)> {
        let Expr::Function(call) = expr else { return None };
        let (of, characters) = match (call.function, &call.args[..]) {
            (SUBSTR | SUBSTRING, [of, from, characters]) if matches!(self.constant(from)?, Datum::Int4(1)) => (of, characters),
            (LEFT, [of, characters]) => (of, characters),
            _ => return None,
        };
        let (entry, column) = self.column_of(of)?;
        let known = self.constant(characters).and_then(|count| if let Datum::Int4(count) = count { Some(count) } else { None });
        Some((entry, column, known.and_then(|count| usize::try_from(count).ok())))
    }

    /// Whether a column of integers has its values in no order, and so far apart that they are no index of an array.
    pub fn is_sparse(&self, expr: &Expr) -> bool {
        self.estimate_of(expr).is_some_and(|estimate| estimate.is_sparse(SPARSE_PLACES))
    }

    /// Distinct values of a column; `None` when nothing is known.
    pub fn distinct_values(&self, entry: usize, column: usize) -> Option<f64> {
        let RangeKind::Relation { oid, .. } = self.level().entries.get(entry)?.kind else { return None };
        let relation = self.catalog().relation(oid)?;
        if matches!(relation.storage, Storage::System(_)) {
            return relations::distinct_values(relation, column, self.catalog());
        }
        let relation = self.table_of(entry)?;
        let is_key = self.key_rows(entry, [column].into_iter());
        if is_key > 0.0 {
            return Some(is_key);
        }
        let raw = self.table_rows(relation);
        let estimate = self.estimate(entry, column)?;
        // Statistics lack rows that are only in memory. So a column with 99 % distinct values counts as unique up to the table's rows.
        let unique = estimate.distinct >= estimate.rows * (1.0 - estimate.null_share) * 0.99;
        Some(if unique { raw } else { estimate.distinct }.clamp(1.0, raw))
    }

    fn operator_selectivity(&self, op: &OperatorCall) -> f64 {
        let Some(comparison) = self.comparison(&op.args) else {
            return if self.catalog().is_equality(op.operator) { EQUAL } else { OTHER };
        };
        if self.catalog().is_equality(op.operator) {
            return self.equal(&comparison);
        }
        if let Some((_, is_upper, below)) = self.range_end(op) {
            let values = 1.0 - self.estimate(comparison.entry, comparison.column).map_or(0.0, |e| e.null_share);
            return below.map_or(RANGE, |below| values * if is_upper { below } else { 1.0 - below });
        }
        if self.exact_match(op).is_some() {
            return self.equal(&comparison);
        }
        let source = self.catalog().function(op.function).map(|f| &*f.source);
        match source {
            Some("textlike" | "bpcharlike" | "namelike") => self.pattern(&comparison, like_prefix),
            Some("textnlike" | "bpcharnlike" | "namenlike") => 1.0 - self.pattern(&comparison, like_prefix),
            Some("textregexeq" | "bpcharregexeq" | "nameregexeq") => self.pattern(&comparison, regex_prefix),
            Some("textregexne" | "bpcharregexne" | "nameregexne") => 1.0 - self.pattern(&comparison, regex_prefix),
            _ if self.is_negated_equality(op) => 1.0 - self.equal(&comparison),
            _ => OTHER,
        }
    }

    fn list_selectivity(&self, list: &ScalarArray) -> f64 {
        let elements = self.elements(&list.array);
        let is_equality = self.catalog().is_equality(list.operator);
        let of_one = match (is_equality, self.column_of(&list.scalar)) {
            (true, Some((entry, column))) => self.share_of_value(entry, column),
            _ => EQUAL,
        };
        if list.any { (of_one * elements).min(1.0) } else { (1.0 - of_one * elements).max(0.0) }
    }

    /// About how many elements an array has.
    pub fn elements(&self, array: &Expr) -> f64 {
        match array {
            Expr::Array(array) => array.elements.len() as f64,
            other => match self.constant(other) {
                Some(Datum::Array(array)) => array.elements.len() as f64,
                _ if self.is_of_catalog(other) => CATALOG_ELEMENTS,
                _ => LIST_ELEMENTS,
            },
        }
    }

    fn equal(&self, comparison: &Comparison<'_>) -> f64 {
        let (entry, column) = (comparison.entry, comparison.column);
        if let Some(place) = self.place(entry, column, comparison.value)
            && self.estimate(entry, column).is_some_and(|e| e.excludes(place.as_point()))
        {
            return self.least(entry);
        }
        self.share_of_value(entry, column)
    }

    /// The share of rows that have one value of a column.
    pub(super) fn share_of_value(&self, entry: usize, column: usize) -> f64 {
        let values = 1.0 - self.estimate(entry, column).map_or(0.0, |e| e.null_share);
        self.distinct_values(entry, column).map_or(EQUAL, |distinct| values / distinct)
    }

    fn pattern(&self, comparison: &Comparison<'_>, prefix_of: fn(&str) -> String) -> f64 {
        let Some(Datum::Text(pattern)) = self.constant(comparison.value) else { return EQUAL };
        let prefix = prefix_of(&pattern).into_bytes();
        if prefix.is_empty() {
            return PATTERN;
        }
        let Some(estimate) = self.estimate(comparison.entry, comparison.column) else { return EQUAL };
        // Behind all texts with the prefix.
        let mut end = prefix.clone();
        if let Some(last) = end.last_mut() {
            *last = last.saturating_add(1);
        }
        match (estimate.share_below(Point::Bytes(&prefix)), estimate.share_below(Point::Bytes(&end))) {
            (Some(from), Some(to)) => (to - from).clamp(self.least(comparison.entry), 1.0),
            _ => EQUAL,
        }
    }

    /// The one text that passes a pattern.
    pub fn exact_match(&self, op: &OperatorCall) -> Option<String> {
        let exact = match &*self.catalog().function(op.function)?.source {
            "textlike" | "namelike" => like_exact,
            "textregexeq" | "nameregexeq" => regex_exact,
            _ => return None,
        };
        match self.constant(op.args.get(1)?)? {
            Datum::Text(pattern) => exact(&pattern),
            _ => None,
        }
    }

    /// An end of a range of a column: which column, whether it is the upper end, and the share of its values below.
    fn range_end(&self, op: &OperatorCall) -> Option<(ColumnPlace, bool, Option<f64>)> {
        let comparison = self.comparison(&op.args)?;
        let (_, strategy) = self.catalog().btree_strategy(op.operator)?;
        let is_upper = match (strategy, comparison.flipped) {
            (1 | 2, false) | (4 | 5, true) => true,
            (4 | 5, false) | (1 | 2, true) => false,
            _ => return None,
        };
        let at = (comparison.entry, comparison.column);
        let place = self.place(at.0, at.1, comparison.value);
        let below = place.and_then(|place| self.estimate(at.0, at.1)?.share_below(place.as_point()));
        Some((at, is_upper, below))
    }

    /// `<>`: its negator is an equality.
    fn is_negated_equality(&self, op: &OperatorCall) -> bool {
        self.catalog().operator(op.operator).is_some_and(|o| self.catalog().is_equality(o.negator))
    }

    /// Two operands of which one is a column and the other does not depend on its relation.
    fn comparison<'e>(&self, args: &'e [Expr]) -> Option<Comparison<'e>> {
        let [a, b] = args else { return None };
        for (side, value, flipped) in [(a, b, false), (b, a, true)] {
            if let Some((entry, column)) = self.column_of(side)
                && rels_of(value) >> entry.min(127) & 1 == 0
            {
                return Some(Comparison { entry, column, value, flipped });
            }
        }
        None
    }

    fn column_of(&self, expr: &Expr) -> Option<(usize, usize)> {
        match expr {
            Expr::Var(v) if v.levels_up == 0 && v.entry < self.level().entries.len() => {
                Some((v.entry, usize::try_from(v.column - 1).ok()?))
            }
            Expr::Relabel { arg, .. } => self.column_of(arg),
            _ => None,
        }
    }

    /// The columns that an equality compares, of two relations.
    fn equal_columns(&self, condition: &Expr) -> Option<(ColumnPlace, ColumnPlace)> {
        let Expr::Operator(op) = condition else { return None };
        let [a, b] = &op.args[..] else { return None };
        let (a, b) = (self.column_of(a)?, self.column_of(b)?);
        (a.0 != b.0 && self.catalog().is_equality(op.operator)).then_some((a, b))
    }

    fn is_equality(&self, condition: &Expr) -> bool {
        matches!(condition, Expr::Operator(op) if self.catalog().is_equality(op.operator))
    }

    fn equality_of_columns(&self, a: (usize, usize), b: (usize, usize), rows: f64) -> f64 {
        let most = match (self.distinct_values(a.0, a.1), self.distinct_values(b.0, b.1)) {
            (Some(a), Some(b)) => a.max(b),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => rows,
        };
        1.0 / most.max(1.0)
    }

    /// An equality of expressions, or of a column with one.
    fn equality_of_sides(&self, condition: &Expr, rows: f64) -> f64 {
        let Expr::Operator(op) = condition else { return EQUAL };
        let columns = op.args.iter().filter_map(|a| self.column_of(a));
        let known = columns.filter_map(|(entry, column)| self.distinct_values(entry, column)).reduce(f64::max);
        1.0 / known.unwrap_or(if rels_of(condition).count_ones() > 1 { rows.min(1.0 / EQUAL) } else { 1.0 / EQUAL }).max(1.0)
    }

    /// A condition between relations that is no equality. The conditions that an OR implies for single relations are counted there.
    fn across(&self, condition: &Expr) -> f64 {
        match condition {
            Expr::Or(_) => OTHER,
            Expr::Operator(op) if self.is_negated_equality(op) => 1.0 - EQUAL,
            Expr::Operator(op) if self.catalog().btree_strategy(op.operator).is_some() => RANGE,
            Expr::Not(arg) => 1.0 - self.across(arg),
            _ => OTHER,
        }
    }

    /// Rows of a table of which some of these columns are a key; 0 when they are none.
    fn key_rows(&self, entry: usize, columns: impl Iterator<Item = usize>) -> f64 {
        let Some(relation) = self.table_of(entry) else { return 0.0 };
        let columns: Vec<usize> = columns.collect();
        let is_key = relation.indexes.iter().filter_map(|oid| self.catalog().relation(*oid)?.index.as_ref()).any(|index| {
            let has = |key: &melba_catalog::IndexKey| usize::try_from(key.column - 1).is_ok_and(|c| columns.contains(&c));
            index.unique && index.valid && index.predicate.is_none() && index.keys.iter().all(has)
        });
        if is_key { self.table_rows(relation) } else { 0.0 }
    }

    /// The share of rows of a system relation in which a boolean column is true.
    fn share_of_flag(&self, column: &Expr) -> Option<f64> {
        let (entry, column) = self.column_of(column)?;
        let RangeKind::Relation { oid, .. } = self.level().entries[entry].kind else { return None };
        relations::share_of_flag(self.catalog().relation(oid)?, column)
    }

    fn is_of_catalog(&self, expr: &Expr) -> bool {
        let Some((entry, _)) = self.column_of(expr) else { return false };
        let RangeKind::Relation { oid, .. } = self.level().entries[entry].kind else { return false };
        self.catalog().relation(oid).is_some_and(|r| matches!(r.storage, Storage::System(_)))
    }

    /// The stored table that an entry is.
    fn table_of(&self, entry: usize) -> Option<&Relation> {
        let RangeKind::Relation { oid, .. } = self.level().entries.get(entry)?.kind else { return None };
        self.catalog().relation(oid).map(|r| &**r).filter(|r| matches!(r.storage, Storage::Tree(_)))
    }

    /// The least share of rows for a value that statistics do not have: half a row, so that it is not 0.
    fn least(&self, entry: usize) -> f64 {
        0.5 / self.table_of(entry).map_or(1.0 / EQUAL, |r| self.table_rows(r)).max(1.0)
    }

    fn estimate_of(&self, expr: &Expr) -> Option<Rc<ColumnEstimate>> {
        self.column_of(expr).and_then(|(entry, column)| self.estimate(entry, column))
    }

    /// A column's statistics over segments.
    pub fn estimate(&self, entry: usize, column: usize) -> Option<Rc<ColumnEstimate>> {
        if let Some(known) = self.level().estimates.borrow().get(&(entry, column)) {
            return known.clone();
        }
        let tree = match self.table_of(entry)?.storage {
            Storage::Tree(tree) => tree,
            _ => return None,
        };
        let found = self.context.statistics.column(tree, column).filter(|e| e.rows > 0.0).map(Rc::new);
        self.level().estimates.borrow_mut().insert((entry, column), found.clone());
        found
    }

    /// The value of an expression that can be computed now.
    pub fn constant(&self, expr: &Expr) -> Option<Datum> {
        match expr {
            Expr::Const(c) => Some(c.value.clone()),
            Expr::Param(_) | Expr::Var(_) => None,
            _ if rels_of(expr) != 0 || contains_sublink(expr) => None,
            _ => {
                let compiled = Compiler::new(self.context.catalog, Some(self.context.session), &mut Nothing).compile(expr);
                compiled.ok()?.as_const().cloned()
            }
        }
    }

    /// Where a constant lies among the values of a column.
    fn place(&self, entry: usize, column: usize, value: &Expr) -> Option<Place> {
        let ty = self.catalog().base_type(self.table_of(entry)?.columns.get(column)?.ty);
        place_among(ty, &self.constant(value)?, self.catalog().base_type(value.ty()))
    }
}

/// `ty`: of the column; `of`: of the value.
fn place_among(ty: Oid, value: &Datum, of: Oid) -> Option<Place> {
    let is_time = |ty| matches!(ty, oids::TIMESTAMP | oids::TIMESTAMPTZ);
    let number = match value {
        Datum::Bool(v) => f64::from(u8::from(*v)),
        Datum::Int2(v) => f64::from(*v),
        Datum::Int4(v) => f64::from(*v),
        Datum::Int8(v) => *v as f64,
        Datum::Float4(v) => f64::from(*v),
        Datum::Float8(v) => *v,
        Datum::Numeric(v) => v.to_f64(),
        Datum::Text(v) => return Some(Place::Bytes(v.as_bytes().to_vec())),
        Datum::Bytes(v) if ty == oids::BYTEA => return Some(Place::Bytes(v.to_vec())),
        _ => return None,
    };
    let number = match (ty == oids::DATE, of == oids::DATE) {
        (true, false) if is_time(of) => number / DAY_MICROS,
        (false, true) if is_time(ty) => number * DAY_MICROS,
        _ => number,
    };
    number.is_finite().then_some(Place::Number(number))
}
