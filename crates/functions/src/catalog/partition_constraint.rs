//! The condition of a partition's bounds as text: pg_get_partition_constraintdef.

use melba_catalog::{PartitionBound, PartitionColumn, PartitionKey, PartitionValues, RangeDatum, Relation, quote_ident};
use melba_fmgr::{Session, io, order};
use melba_types::key::{KeyColumn, KeyType};
use melba_types::{Datum, Kind};

/// The condition of a partition, with those of the partitions that it is in. `None` when it is no partition, or when every row is
/// its.
pub fn definition(session: &dyn Session, partition: &Relation) -> Option<String> {
    let mut parts = Vec::new();
    collect(session, partition, &mut parts);
    (!parts.is_empty()).then(|| conjunction(&parts))
}

fn collect(session: &dyn Session, partition: &Relation, out: &mut Vec<String>) {
    let catalog = session.catalog();
    let Some(bound) = &partition.partition_bound else { return };
    let Some(parent) = partition.parents.first().and_then(|p| catalog.relation(*p)) else { return };
    collect(session, parent, out);
    let Some(key) = &parent.partition_key else { return };
    let names: Vec<String> = key.columns.iter().map(|c| column_text(session, parent, c)).collect();
    let own = Condition { session, parent, key, names };
    out.extend(own.parts(bound));
}

fn column_text(session: &dyn Session, table: &Relation, column: &PartitionColumn) -> String {
    match &column.expression {
        Some(text) => {
            let shown = session.shown_expression(text, table.oid, false);
            shown.unwrap_or_else(|_| text.to_string())
        }
        None => table.columns.get(column.column as usize - 1).map_or_else(String::new, |c| quote_ident(&c.name).into_owned()),
    }
}

struct Condition<'a> {
    session: &'a dyn Session,
    parent: &'a Relation,
    key: &'a PartitionKey,
    names: Vec<String>,
}

impl Condition<'_> {
    /// The conditions that hold together.
    fn parts(&self, bound: &PartitionBound) -> Vec<String> {
        match &bound.values {
            PartitionValues::List(values) => self.list(values),
            PartitionValues::Range(from, to) => {
                let mut parts: Vec<String> = self.names.iter().map(|n| format!("({n} IS NOT NULL)")).collect();
                parts.extend(self.range(from, to));
                parts
            }
            PartitionValues::Hash { modulus, remainder } => {
                let keys = self.names.join(", ");
                vec![format!("satisfies_hash_partition('{}'::oid, {modulus}, {remainder}, {keys})", self.parent.oid)]
            }
            PartitionValues::Default => self.default(),
        }
    }

    /// The condition for values that no other partition has.
    fn default(&self) -> Vec<String> {
        let catalog = self.session.catalog();
        let siblings = catalog.children(self.parent.oid);
        let bounds = siblings.iter().filter_map(|s| catalog.relation(*s)?.partition_bound.as_ref());
        let mut values: Vec<Datum> = Vec::new();
        let mut ranges: Vec<String> = Vec::new();
        for bound in bounds {
            match &bound.values {
                PartitionValues::List(own) => values.extend(own.iter().cloned()),
                PartitionValues::Range(from, to) => ranges.push(conjunction(&self.range(from, to))),
                _ => {}
            }
        }
        if !ranges.is_empty() {
            let mut not_null: Vec<String> = self.names.iter().map(|n| format!("({n} IS NOT NULL)")).collect();
            not_null.push(disjunction(&ranges));
            return vec![format!("(NOT {})", conjunction(&not_null))];
        }
        match values.is_empty() {
            true => vec![],
            false => {
                self.sort(&mut values);
                vec![format!("(NOT {})", conjunction(&self.list(&values)))]
            }
        }
    }

    /// In the order of the key's column.
    fn sort(&self, values: &mut [Datum]) {
        let ty = order::catalog_key_type(self.session.catalog(), self.key.columns[0].ty, self.key.columns[0].collation);
        let column = KeyColumn { ty: ty.unwrap_or(KeyType::Plain(Kind::Text)), descending: false, nulls_first: false };
        values.sort_by_cached_key(|value| {
            let mut key = Vec::new();
            melba_types::key::encode(&column, value, &mut key);
            key
        });
    }

    fn list(&self, values: &[Datum]) -> Vec<String> {
        let name = &self.names[0];
        let literals: Vec<String> = values.iter().filter(|v| !v.is_null()).map(|v| self.literal(0, v)).collect();
        let is_one = match &literals[..] {
            [] => None,
            [one] => Some(format!("({name} = {one})")),
            many => Some(format!("({name} = ANY (ARRAY[{}]))", many.join(", "))),
        };
        match (is_one, values.iter().any(Datum::is_null)) {
            (Some(is_one), false) => vec![format!("({name} IS NOT NULL)"), is_one],
            (Some(is_one), true) => vec![format!("(({name} IS NULL) OR {is_one})")],
            (None, _) => vec![format!("({name} IS NULL)")],
        }
    }

    fn range(&self, from: &[RangeDatum], to: &[RangeDatum]) -> Vec<String> {
        let mut parts = Vec::new();
        let mut at = 0;
        // Columns in which both bounds agree.
        while let (Some(RangeDatum::Value(low)), Some(RangeDatum::Value(high))) = (from.get(at), to.get(at)) {
            let (low, high) = (self.literal(at, low), self.literal(at, high));
            if low != high || at + 1 == from.len() {
                break;
            }
            parts.push(format!("({} = {low})", self.names[at]));
            at += 1;
        }
        parts.extend(self.side(from, at, ">", ">="));
        parts.extend(self.side(to, at, "<", "<"));
        parts
    }

    /// The condition of one bound for the columns from `first` on.
    fn side(&self, bound: &[RangeDatum], first: usize, strict: &str, last: &str) -> Option<String> {
        let mut arms = Vec::new();
        let mut equal: Vec<String> = Vec::new();
        for (at, datum) in bound.iter().enumerate().skip(first) {
            let RangeDatum::Value(value) = datum else {
                // All beyond it, or nothing: rows that agree in the columns before it are in, or out.
                let all = matches!((datum, strict), (RangeDatum::MinValue, ">") | (RangeDatum::MaxValue, "<"));
                if all && equal.is_empty() {
                    return None;
                }
                if all {
                    arms.push(conjunction(&equal));
                }
                break;
            };
            let value = self.literal(at, value);
            let operator = if at + 1 == bound.len() { last } else { strict };
            let mut arm = equal.clone();
            arm.push(format!("({} {operator} {value})", self.names[at]));
            arms.push(conjunction(&arm));
            equal.push(format!("({} = {value})", self.names[at]));
        }
        Some(disjunction(&arms))
    }

    /// A value of a column of the key.
    fn literal(&self, column: usize, value: &Datum) -> String {
        let column = &self.key.columns[column];
        let text = io::plain_literal(self.session, column.ty, value);
        if !text.ends_with('\'') {
            return text;
        }
        let path = self.session.search_path();
        format!("{text}::{}", self.session.catalog().format_type(column.ty, Some(column.typmod), &path))
    }
}

fn conjunction(parts: &[String]) -> String {
    joined(parts, " AND ")
}

fn disjunction(parts: &[String]) -> String {
    joined(parts, " OR ")
}

fn joined(parts: &[String], word: &str) -> String {
    match parts {
        [one] => one.clone(),
        many => format!("({})", many.join(word)),
    }
}
