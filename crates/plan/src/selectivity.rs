//! Estimates the share of rows that pass a condition: by the columns' statistics, and by the condition's form where there are none.

use std::rc::Rc;

use melba_catalog::extended_statistics::statistics_of;
use melba_catalog::{Relation, StatisticsData, Storage, relations};
use melba_engine::{ColumnEstimate, Point};
use melba_types::{Datum, Oid, oids};

use super::correlation::dependence;
use super::default_selectivity::{EQUAL, OTHER, RANGE};
use super::pattern::{like_exact, like_prefix, regex_exact, regex_prefix};
use super::planner::{Nothing, Planner};
use super::rels::{Rels, contains_sublink, rels_of};
use super::sampled::{Passing, frequent, passing};
use melba_expression::Compiler;
use melba_tree::{BooleanTest, Expr, OperatorCall, RangeKind, RowCompareExpr, ScalarArrayExpr};

/// Both ends of a range, of which one is unknown: PostgreSQL's DEFAULT_RANGE_INEQ_SEL.
const BETWEEN: f64 = 0.005;
/// Of an array that contains elements, or of a document that contains keys: DEFAULT_CONTAIN_SEL, DEFAULT_MATCHING_SEL.
const CONTAINS: f64 = 0.005;
const MATCHING: f64 = 0.01;
/// Of a document that matches a text search: DEFAULT_TS_MATCH_SEL.
const TEXT_SEARCH: f64 = 0.005;
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
/// Of smaller tables the rules are good enough.
pub const SAMPLED_ROWS_MIN: f64 = 500.0;
/// Microseconds per day.
const DAY_MICROS: f64 = 86_400_000_000.0;

/// A comparison of a column with a value that is not of its relation.
struct ColumnComparison<'e> {
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

/// A condition, and the sampled rows that pass it.
type Sampled<'e> = (&'e Expr, Rc<Passing>);

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

/// The share of rows that pass one condition. Columns of other relations count as an unknown value.
fn selectivity(planner: &Planner<'_>, condition: &Expr) -> f64 {
    match condition {
        Expr::Operator(op) => operator_selectivity(planner, op),
        Expr::RowCompare(row) => operator_selectivity(planner, &first_comparison(row)),
        Expr::ScalarArray(list) => list_selectivity(planner, list),
        Expr::And(args) => conjunction(planner, args),
        Expr::Or(args) => 1.0 - args.iter().map(|a| 1.0 - selectivity(planner, a)).product::<f64>(),
        Expr::Not(arg) => 1.0 - selectivity(planner, arg),
        Expr::NullTest { arg, is_null, row: false } => {
            let nulls = estimate_of(planner, arg).map_or(EQUAL, |e| e.null_share);
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
        Expr::Var(_) => share_of_flag(planner, condition).unwrap_or(OTHER),
        _ => OTHER,
    }
}

/// The comparison that decides most of one of rows.
fn first_comparison(row: &RowCompareExpr) -> OperatorCall {
    OperatorCall {
        operator: row.operators[0],
        function: Oid::INVALID,
        args: vec![row.left[0].clone(), row.right[0].clone()],
        ty: oids::BOOL,
        collation: Oid::INVALID,
        input_collation: row.input_collations[0],
        returns_set: false,
        location: -1,
    }
}

/// The share of rows that pass all conditions. Those on one table are evaluated for sampled rows, as far as possible.
pub fn conjunction<'e>(planner: &Planner<'_>, conditions: impl IntoIterator<Item = &'e Expr>) -> f64 {
    let conditions: Vec<&Expr> = conditions.into_iter().collect();
    if let Some(share) = share_of_key(planner, &conditions) {
        return share;
    }
    let mut rest = Vec::new();
    let mut by_entry: Vec<(usize, Vec<Sampled<'_>>)> = Vec::new();
    for condition in &conditions {
        let Some((entry, passing)) = sampled(planner, condition, &conditions) else {
            rest.push(*condition);
            continue;
        };
        match by_entry.iter_mut().find(|(of, _)| *of == entry) {
            Some((_, all)) => all.push((condition, passing)),
            None => by_entry.push((entry, vec![(condition, passing)])),
        }
    }
    let shares = by_entry.iter().map(|(_, all)| sampled_share(planner, all));
    shares.product::<f64>() * by_rules(planner, rest)
}

/// The share of one row, where conditions on a table find it by a key: nothing else need be known of it.
fn share_of_key(planner: &Planner<'_>, conditions: &[&Expr]) -> Option<f64> {
    let mut equal = conditions.iter().filter_map(|condition| equal_column(planner, condition)).peekable();
    let (entry, _) = *equal.peek()?;
    let rows = key_rows(planner, entry, equal.filter(|(of, _)| *of == entry).map(|(_, column)| column));
    let is_own = |condition: &&Expr| rels_of(condition) >> entry.min(127) & 1 != 0;
    (rows > 0.0 && conditions.iter().all(is_own)).then(|| 1.0 / rows)
}

/// The sampled rows that pass a condition on one table, where the rules are no better: they suffice when a row is found by a key,
/// or no value is frequent, or when a range is of a column that the table is in the order of.
fn sampled(planner: &Planner<'_>, condition: &Expr, all: &[&Expr]) -> Option<(usize, Rc<Passing>)> {
    let rels = rels_of(condition);
    let entry = (rels.count_ones() == 1).then(|| rels.trailing_zeros() as usize).filter(|entry| *entry < 127)?;
    let equal_to_value = all.iter().filter_map(|c| equal_column(planner, c)).filter(|(of, _)| *of == entry);
    if table_rows(planner, table_of(planner, entry)?) < SAMPLED_ROWS_MIN
        || key_rows(planner, entry, equal_to_value.map(|(_, column)| column)) > 0.0
    {
        return None;
    }
    let is_even = match condition {
        Expr::Operator(op) if planner.catalog().is_equality(op.operator) => {
            equal_column(planner, condition).is_some_and(|at| frequent(planner, at).is_some_and(|f| f.shares.is_empty()))
        }
        Expr::Operator(op) => range_end(planner, op).is_some_and(|(at, _, below)| {
            below.is_some() && estimate(planner, at.0, at.1).is_some_and(|estimate| estimate.is_ordered())
        }),
        _ => false,
    };
    if is_even { None } else { Some((entry, passing(planner, entry, condition)?)) }
}

/// The share of a table's rows that pass some conditions. The sample decides; where few of its rows pass, it bounds the product of the
/// single shares.
fn sampled_share(planner: &Planner<'_>, conditions: &[Sampled<'_>]) -> f64 {
    let [(first, all), others @ ..] = conditions else { return 1.0 };
    if others.is_empty() {
        return all.share(by_rules(planner, [*first]));
    }
    let is_range = |condition: &Expr| matches!(condition, Expr::Operator(op) if range_end(planner, op).is_some());
    let (sure, unsure): (Vec<_>, Vec<_>) = conditions.iter().partition(|(c, passing)| passing.is_sure() && !is_range(c));
    let expected = sure.iter().map(|(_, passing)| passing.share(1.0)).product::<f64>()
        * by_rules(planner, unsure.iter().map(|(condition, _)| *condition));
    let both = others.iter().skip(1).fold(all.and(&others[0].1), |both, (_, passing)| both.and(passing));
    both.share(expected)
}

/// The share of rows that pass all conditions, by rules. They count as independent, except the two ends of one range and equalities on
/// columns whose dependence ANALYZE has measured for a statistics object.
fn by_rules<'e>(planner: &Planner<'_>, conditions: impl IntoIterator<Item = &'e Expr>) -> f64 {
    let mut share = 1.0;
    // The ends of ranges by column: whether any is unknown, the share below the upper one and below the lower one.
    let mut ranges: Vec<(ColumnPlace, Option<f64>, Option<f64>, bool)> = Vec::new();
    let mut equalities: Vec<(usize, i16, f64)> = Vec::new();
    for condition in conditions {
        let end = if let Expr::Operator(op) = condition { range_end(planner, op) } else { None };
        let Some((at, is_upper, below)) = end else {
            let of_one = selectivity(planner, condition);
            share *= of_one;
            equalities.extend(equal_column(planner, condition).map(|(entry, column)| (entry, column as i16 + 1, of_one)));
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
        let values = 1.0 - estimate(planner, entry, column).map_or(0.0, |e| e.null_share);
        share *= match (upper, lower) {
            (Some(_), Some(_)) if unknown => BETWEEN,
            (upper, lower) => values * (upper.unwrap_or(1.0) - lower.unwrap_or(0.0)).clamp(least(planner, entry), 1.0),
        };
    }
    (share * dependence_of(planner, &equalities)).min(1.0)
}

/// How much more rows pass equalities, given by entry, column and share, than if all columns were independent.
fn dependence_of(planner: &Planner<'_>, equalities: &[(usize, i16, f64)]) -> f64 {
    if equalities.len() < 2 {
        return 1.0;
    }
    let mut entries: Vec<usize> = equalities.iter().map(|e| e.0).collect();
    entries.sort_unstable();
    entries.dedup();
    let of_entry = |entry: usize| {
        let shares: Vec<(i16, f64)> = equalities.iter().filter(|e| e.0 == entry).map(|e| (e.1, e.2)).collect();
        dependence(&collected(planner, entry), &shares)
    };
    entries.into_iter().map(of_entry).product()
}

/// The column that an equality compares with a value.
fn equal_column(planner: &Planner<'_>, condition: &Expr) -> Option<ColumnPlace> {
    let Expr::Operator(op) = condition else { return None };
    let comparison = comparison(planner, &op.args).filter(|_| planner.catalog().is_equality(op.operator))?;
    Some((comparison.entry, comparison.column))
}

/// What ANALYZE has collected for the statistics objects of a table.
pub fn collected<'p>(planner: &'p Planner<'_>, entry: usize) -> Vec<&'p StatisticsData> {
    let Some(table) = table_of(planner, entry) else { return Vec::new() };
    let objects = statistics_of(planner.catalog(), table.oid);
    objects.into_iter().filter_map(|s| s.data.iter().find(|d| d.inherited == table.is_partitioned())).collect()
}

/// The share of pairs of rows that conditions between relations let through. `rows`: of the largest side, for columns without
/// statistics.
pub fn join_selectivity(planner: &Planner<'_>, conditions: &[&Expr], rows: f64) -> f64 {
    let mut share = 1.0;
    // Equalities between two columns, by the two entries.
    let mut pairs: Vec<(usize, usize, Vec<EqualColumns>)> = Vec::new();
    for condition in conditions {
        match equal_columns(planner, condition) {
            Some(((a, a_column), (b, b_column))) => {
                let (a, a_column, b, b_column) = if a < b { (a, a_column, b, b_column) } else { (b, b_column, a, a_column) };
                let of_one = equality_of_columns(planner, (a, a_column), (b, b_column), rows);
                match pairs.iter_mut().find(|p| (p.0, p.1) == (a, b)) {
                    Some(pair) => pair.2.push((a_column, b_column, of_one)),
                    None => pairs.push((a, b, vec![(a_column, b_column, of_one)])),
                }
            }
            None if is_equality(planner, condition) => share *= equality_of_sides(planner, condition, rows),
            None => {
                share *=
                    if rels_of(condition).count_ones() > 1 { across(planner, condition) } else { selectivity(planner, condition) }
            }
        }
    }
    for (a, b, mut columns) in pairs {
        let key = key_rows(planner, a, columns.iter().map(|c| c.0)).max(key_rows(planner, b, columns.iter().map(|c| c.1)));
        columns.sort_by(|x, y| x.2.total_cmp(&y.2));
        // Columns of one pair of tables depend on each other. Exponential backoff: each further one gets half the exponent of
        // the one before.
        let backed_off: f64 = columns.iter().enumerate().map(|(i, c)| c.2.powf(0.5_f64.powi(i as i32))).product();
        share *= if key > 0.0 { 1.0 / key } else { backed_off };
    }
    share
}

/// The share of the left rows that have a partner on the right, of `right_rows` rows.
pub fn match_share(planner: &Planner<'_>, conditions: &[&Expr], left: Rels, right_rows: f64) -> f64 {
    let mut share: f64 = 1.0;
    let mut is_known = false;
    for condition in conditions {
        let Some((a, b)) = equal_columns(planner, condition) else { continue };
        let (l, r) = if left >> a.0.min(127) & 1 != 0 { (a, b) } else { (b, a) };
        let (Some(l), r) = (distinct_values(planner, l.0, l.1), distinct_values(planner, r.0, r.1)) else { continue };
        // The expected number of distinct values among `right_rows` draws from the right side's values.
        let values = r.map_or(right_rows, |r| r * (1.0 - (-right_rows / r.max(1.0)).exp()));
        share = share.min((values / l.max(1.0)).min(1.0));
        is_known = true;
    }
    if is_known { share } else { OTHER }
}

/// The entry and the column whose values' first characters an expression returns, and how many, if that is known.
pub fn beginning_of(planner: &Planner<'_>, expr: &Expr) -> Option<(usize, usize, Option<usize>)> {
    let Expr::Function(call) = expr else { return None };
    let (of, characters) = match (call.function, &call.args[..]) {
        (SUBSTR | SUBSTRING, [of, from, characters]) if matches!(constant(planner, from)?, Datum::Int4(1)) => (of, characters),
        (LEFT, [of, characters]) => (of, characters),
        _ => return None,
    };
    let (entry, column) = column_of(planner, of)?;
    let known = constant(planner, characters).and_then(|count| if let Datum::Int4(count) = count { Some(count) } else { None });
    Some((entry, column, known.and_then(|count| usize::try_from(count).ok())))
}

/// Whether a column of integers has its values in no order, and so far apart that they are no index of an array.
pub fn is_sparse(planner: &Planner<'_>, expr: &Expr) -> bool {
    estimate_of(planner, expr).is_some_and(|estimate| estimate.is_sparse(SPARSE_PLACES))
}

/// Distinct values of a column; `None` when nothing is known.
pub fn distinct_values(planner: &Planner<'_>, entry: usize, column: usize) -> Option<f64> {
    let RangeKind::Relation { oid, .. } = planner.level().entries.get(entry)?.kind else { return None };
    let relation = planner.catalog().relation(oid)?;
    if matches!(relation.storage, Storage::System(_)) {
        return relations::distinct_values(relation, column, planner.catalog());
    }
    let relation = table_of(planner, entry)?;
    let is_key = key_rows(planner, entry, [column].into_iter());
    if is_key > 0.0 {
        return Some(is_key);
    }
    let raw = table_rows(planner, relation);
    let estimate = estimate(planner, entry, column)?;
    // Statistics lack rows that are only in memory. So a column with 99 % distinct values counts as unique up to the table's rows.
    let unique = estimate.distinct >= estimate.rows * (1.0 - estimate.null_share) * 0.99;
    Some(if unique { raw } else { estimate.distinct }.clamp(1.0, raw))
}

/// As PostgreSQL's get_variable_numdistinct has it: ctid is unique, and a table has one tableoid.
pub fn distinct_of_system_column(planner: &Planner<'_>, entry: usize, column: i16) -> Option<f64> {
    match column {
        -1 => Some(table_rows(planner, table_of(planner, entry)?)),
        -6 => Some(1.0),
        _ => None,
    }
}

fn operator_selectivity(planner: &Planner<'_>, op: &OperatorCall) -> f64 {
    if let Some(share) = default_of_estimator(planner, op) {
        return share;
    }
    let Some(comparison) = comparison(planner, &op.args) else {
        return if planner.catalog().is_equality(op.operator) { EQUAL } else { OTHER };
    };
    if planner.catalog().is_equality(op.operator) {
        return equal(planner, &comparison);
    }
    if let Some((_, is_upper, below)) = range_end(planner, op) {
        let values = 1.0 - estimate(planner, comparison.entry, comparison.column).map_or(0.0, |e| e.null_share);
        return below.map_or(RANGE, |below| values * if is_upper { below } else { 1.0 - below });
    }
    if exact_match(planner, op).is_some() {
        return equal(planner, &comparison);
    }
    let source = planner.catalog().function(op.function).map(|f| &*f.source);
    match source {
        Some("textlike" | "bpcharlike" | "namelike") => pattern(planner, &comparison, like_prefix),
        Some("textnlike" | "bpcharnlike" | "namenlike") => 1.0 - pattern(planner, &comparison, like_prefix),
        Some("textregexeq" | "bpcharregexeq" | "nameregexeq") => pattern(planner, &comparison, regex_prefix),
        Some("textregexne" | "bpcharregexne" | "nameregexne") => 1.0 - pattern(planner, &comparison, regex_prefix),
        _ if is_negated_equality(planner, op) => 1.0 - equal(planner, &comparison),
        _ => OTHER,
    }
}

/// PostgreSQL's share without statistics, for operators over many-valued types.
fn default_of_estimator(planner: &Planner<'_>, op: &OperatorCall) -> Option<f64> {
    match &*planner.catalog().operator(op.operator)?.restrict {
        "arraycontsel" => Some(CONTAINS),
        "matchingsel" => Some(MATCHING),
        "tsmatchsel" => Some(TEXT_SEARCH),
        _ => None,
    }
}

fn list_selectivity(planner: &Planner<'_>, list: &ScalarArrayExpr) -> f64 {
    let elements = elements(planner, &list.array);
    let is_equality = planner.catalog().is_equality(list.operator);
    let of_one = match (is_equality, column_of(planner, &list.scalar)) {
        (true, Some((entry, column))) => share_of_value(planner, entry, column),
        _ => EQUAL,
    };
    if list.any { (of_one * elements).min(1.0) } else { (1.0 - of_one * elements).max(0.0) }
}

/// About how many elements an array has.
pub fn elements(planner: &Planner<'_>, array: &Expr) -> f64 {
    match array {
        Expr::Array(array) => array.elements.len() as f64,
        other => match constant(planner, other) {
            Some(Datum::Array(array)) => array.elements.len() as f64,
            _ if is_of_catalog(planner, other) => CATALOG_ELEMENTS,
            _ => LIST_ELEMENTS,
        },
    }
}

fn equal(planner: &Planner<'_>, comparison: &ColumnComparison<'_>) -> f64 {
    let (entry, column) = (comparison.entry, comparison.column);
    if let Some(place) = place(planner, entry, column, comparison.value)
        && estimate(planner, entry, column).is_some_and(|e| e.excludes(place.as_point()))
    {
        return least(planner, entry);
    }
    if constant(planner, comparison.value).is_none() {
        return share_of_value(planner, entry, column);
    }
    // The value counts as none of the frequent ones: for those it is evaluated.
    match (frequent(planner, (entry, column)), distinct_values(planner, entry, column)) {
        (Some(frequent), Some(distinct)) if !frequent.shares.is_empty() => {
            let others = (distinct - frequent.shares.len() as f64).max(1.0);
            ((1.0 - frequent.nulls - frequent.share()) / others).max(least(planner, entry))
        }
        _ => share_of_value(planner, entry, column),
    }
}

/// The share of rows that have one value of a column.
pub fn share_of_value(planner: &Planner<'_>, entry: usize, column: usize) -> f64 {
    let values = 1.0 - estimate(planner, entry, column).map_or(0.0, |e| e.null_share);
    distinct_values(planner, entry, column).map_or(EQUAL, |distinct| values / distinct)
}

fn pattern(planner: &Planner<'_>, comparison: &ColumnComparison<'_>, prefix_of: fn(&str) -> String) -> f64 {
    let Some(Datum::Text(pattern)) = constant(planner, comparison.value) else { return EQUAL };
    let prefix = prefix_of(&pattern).into_bytes();
    if prefix.is_empty() {
        return PATTERN;
    }
    let Some(estimate) = estimate(planner, comparison.entry, comparison.column) else { return EQUAL };
    // Behind all texts with the prefix.
    let mut end = prefix.clone();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    match (estimate.share_below(Point::Bytes(&prefix)), estimate.share_below(Point::Bytes(&end))) {
        (Some(from), Some(to)) => (to - from).clamp(least(planner, comparison.entry), 1.0),
        _ => EQUAL,
    }
}

/// The one text that passes a pattern.
pub fn exact_match(planner: &Planner<'_>, op: &OperatorCall) -> Option<String> {
    let exact = match &*planner.catalog().function(op.function)?.source {
        "textlike" | "namelike" => like_exact,
        "textregexeq" | "nameregexeq" => regex_exact,
        _ => return None,
    };
    match constant(planner, op.args.get(1)?)? {
        Datum::Text(pattern) => exact(&pattern),
        _ => None,
    }
}

/// An end of a range of a column: which column, whether it is the upper end, and the share of its values below.
fn range_end(planner: &Planner<'_>, op: &OperatorCall) -> Option<(ColumnPlace, bool, Option<f64>)> {
    let comparison = comparison(planner, &op.args)?;
    let (_, strategy) = planner.catalog().btree_strategy(op.operator)?;
    let is_upper = match (strategy, comparison.flipped) {
        (1 | 2, false) | (4 | 5, true) => true,
        (4 | 5, false) | (1 | 2, true) => false,
        _ => return None,
    };
    let at = (comparison.entry, comparison.column);
    let place = place(planner, at.0, at.1, comparison.value);
    let below = place.and_then(|place| estimate(planner, at.0, at.1)?.share_below(place.as_point()));
    Some((at, is_upper, below))
}

/// `<>`: its negator is an equality.
fn is_negated_equality(planner: &Planner<'_>, op: &OperatorCall) -> bool {
    planner.catalog().operator(op.operator).is_some_and(|o| planner.catalog().is_equality(o.negator))
}

/// Two operands of which one is a column and the other does not depend on its relation.
fn comparison<'e>(planner: &Planner<'_>, args: &'e [Expr]) -> Option<ColumnComparison<'e>> {
    let [a, b] = args else { return None };
    for (side, value, flipped) in [(a, b, false), (b, a, true)] {
        if let Some((entry, column)) = column_of(planner, side)
            && rels_of(value) >> entry.min(127) & 1 == 0
        {
            return Some(ColumnComparison { entry, column, value, flipped });
        }
    }
    None
}

pub fn column_of(planner: &Planner<'_>, expr: &Expr) -> Option<(usize, usize)> {
    match expr {
        Expr::Var(v) if v.levels_up == 0 && v.entry < planner.level().entries.len() => {
            Some((v.entry, usize::try_from(v.column - 1).ok()?))
        }
        Expr::Relabel { arg, .. } => column_of(planner, arg),
        _ => None,
    }
}

/// The columns that an equality compares, of two relations.
fn equal_columns(planner: &Planner<'_>, condition: &Expr) -> Option<(ColumnPlace, ColumnPlace)> {
    let Expr::Operator(op) = condition else { return None };
    let [a, b] = &op.args[..] else { return None };
    let (a, b) = (column_of(planner, a)?, column_of(planner, b)?);
    (a.0 != b.0 && planner.catalog().is_equality(op.operator)).then_some((a, b))
}

fn is_equality(planner: &Planner<'_>, condition: &Expr) -> bool {
    matches!(condition, Expr::Operator(op) if planner.catalog().is_equality(op.operator))
}

fn equality_of_columns(planner: &Planner<'_>, a: (usize, usize), b: (usize, usize), rows: f64) -> f64 {
    let distinct = (distinct_values(planner, a.0, a.1), distinct_values(planner, b.0, b.1));
    let most = match distinct {
        (Some(a), Some(b)) => a.max(b),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => rows,
    };
    let values = |(entry, column)| 1.0 - estimate(planner, entry, column).map_or(0.0, |e| e.null_share);
    let even = values(a) * values(b) / most.max(1.0);
    // Of a key, every value is as frequent as any other.
    let is_key = |(entry, column): ColumnPlace| key_rows(planner, entry, [column].into_iter()) > 0.0;
    let (Some(a_distinct), Some(b_distinct)) = distinct else { return even };
    if is_key(a) || is_key(b) || column_type(planner, a) != column_type(planner, b) {
        return even;
    }
    match (frequent(planner, a), frequent(planner, b)) {
        (Some(of_a), Some(of_b)) if !of_a.shares.is_empty() && !of_b.shares.is_empty() => {
            of_a.equal_pairs(&of_b, (a_distinct, b_distinct)).max(1.0 / (rows * rows).max(1.0))
        }
        _ => even,
    }
}

fn column_type(planner: &Planner<'_>, (entry, column): ColumnPlace) -> Option<Oid> {
    Some(planner.catalog().base_type(table_of(planner, entry)?.columns.get(column)?.ty))
}

/// An equality of expressions, or of a column with one.
fn equality_of_sides(planner: &Planner<'_>, condition: &Expr, rows: f64) -> f64 {
    let Expr::Operator(op) = condition else { return EQUAL };
    let columns = op.args.iter().filter_map(|a| column_of(planner, a));
    let known = columns.filter_map(|(entry, column)| distinct_values(planner, entry, column)).reduce(f64::max);
    1.0 / known.unwrap_or(if rels_of(condition).count_ones() > 1 { rows.min(1.0 / EQUAL) } else { 1.0 / EQUAL }).max(1.0)
}

/// A condition between relations that is no equality. The conditions that an OR implies for single relations are counted there.
fn across(planner: &Planner<'_>, condition: &Expr) -> f64 {
    match condition {
        Expr::Or(_) => OTHER,
        Expr::Operator(op) if is_negated_equality(planner, op) => 1.0 - EQUAL,
        Expr::Operator(op) if planner.catalog().btree_strategy(op.operator).is_some() => RANGE,
        Expr::Not(arg) => 1.0 - across(planner, arg),
        _ => OTHER,
    }
}

/// Rows of a table of which some of these columns are a key; 0 when they are none.
fn key_rows(planner: &Planner<'_>, entry: usize, columns: impl Iterator<Item = usize>) -> f64 {
    let Some(relation) = table_of(planner, entry) else { return 0.0 };
    let columns: Vec<usize> = columns.collect();
    let is_key = relation.indexes.iter().filter_map(|oid| planner.catalog().relation(*oid)?.index.as_ref()).any(|index| {
        let has = |key: &melba_catalog::IndexKey| usize::try_from(key.column - 1).is_ok_and(|c| columns.contains(&c));
        index.unique && index.valid && index.predicate.is_none() && index.keys.iter().all(has)
    });
    if is_key { table_rows(planner, relation) } else { 0.0 }
}

/// The share of rows of a system relation in which a boolean column is true.
fn share_of_flag(planner: &Planner<'_>, column: &Expr) -> Option<f64> {
    let (entry, column) = column_of(planner, column)?;
    let RangeKind::Relation { oid, .. } = planner.level().entries[entry].kind else { return None };
    relations::share_of_flag(planner.catalog().relation(oid)?, column)
}

fn is_of_catalog(planner: &Planner<'_>, expr: &Expr) -> bool {
    let Some((entry, _)) = column_of(planner, expr) else { return false };
    let RangeKind::Relation { oid, .. } = planner.level().entries[entry].kind else { return false };
    planner.catalog().relation(oid).is_some_and(|r| matches!(r.storage, Storage::System(_)))
}

/// The stored table that an entry is.
pub fn table_of<'p>(planner: &'p Planner<'_>, entry: usize) -> Option<&'p Relation> {
    let RangeKind::Relation { oid, .. } = planner.level().entries.get(entry)?.kind else { return None };
    planner.catalog().relation(oid).map(|r| &**r).filter(|r| matches!(r.storage, Storage::Tree(_)))
}

/// The least share of rows for a value that statistics do not have: half a row, so that it is not 0.
fn least(planner: &Planner<'_>, entry: usize) -> f64 {
    0.5 / table_of(planner, entry).map_or(1.0 / EQUAL, |r| table_rows(planner, r)).max(1.0)
}

fn estimate_of(planner: &Planner<'_>, expr: &Expr) -> Option<Rc<ColumnEstimate>> {
    column_of(planner, expr).and_then(|(entry, column)| estimate(planner, entry, column))
}

/// A column's statistics over segments.
pub fn estimate(planner: &Planner<'_>, entry: usize, column: usize) -> Option<Rc<ColumnEstimate>> {
    if let Some(known) = planner.level().estimates.columns.borrow().get(&(entry, column)) {
        return known.clone();
    }
    let tree = match table_of(planner, entry)?.storage {
        Storage::Tree(tree) => tree,
        _ => return None,
    };
    let found = planner.inputs.statistics.column(tree, column).filter(|e| e.rows > 0.0).map(Rc::new);
    planner.level().estimates.columns.borrow_mut().insert((entry, column), found.clone());
    found
}

/// The value of an expression that can be computed now.
pub fn constant(planner: &Planner<'_>, expr: &Expr) -> Option<Datum> {
    match expr {
        Expr::Const(c) => Some(c.value.clone()),
        Expr::Param(_) | Expr::Var(_) => None,
        _ if rels_of(expr) != 0 || contains_sublink(expr) => None,
        _ => {
            let compiled = Compiler::new(planner.inputs.catalog, Some(planner.inputs.session), &mut Nothing).compile(expr);
            compiled.ok()?.as_const().cloned()
        }
    }
}

/// Where a constant lies among the values of a column.
fn place(planner: &Planner<'_>, entry: usize, column: usize, value: &Expr) -> Option<Place> {
    let ty = planner.catalog().base_type(table_of(planner, entry)?.columns.get(column)?.ty);
    place_among(ty, &constant(planner, value)?, planner.catalog().base_type(value.ty()))
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

/// Rows of a table, roughly: as many as an UPDATE of pg_class has stated, or as the storage knows.
pub fn table_rows(planner: &Planner<'_>, relation: &Relation) -> f64 {
    // -1 stands for a table that was never counted.
    if let Some(stated) = relation.stated.filter(|stated| stated.rows >= 0.0) {
        return f64::from(stated.rows).max(1.0);
    }
    match relation.storage {
        Storage::Tree(tree) => planner.inputs.statistics.rows(tree).max(1.0),
        _ => relations::rows_estimate(relation, planner.catalog()),
    }
}
