//! 42703 and 42P01: unknown names, and suggestions of the intended ones.

use melba_types::{DbError, err};

use super::analyzer::Analyzer;
use super::items;
use super::items::relation_oid;
use melba_tree::*;

const DISTANCE_MAX: usize = 3;

/// The result of a search for similar columns.
#[derive(Default)]
struct Similar {
    exact: Vec<(String, usize)>,
    distance: usize,
    first: Option<(String, String)>,
    second: Option<(String, String)>,
}

/// The columns of a view that is changed.
fn is_view(entry: &RangeEntry) -> bool {
    matches!(entry.kind, RangeKind::Join { .. }) && !entry.in_from
}

/// The table of such a view, whose names are not visible.
fn is_below_view(table: &[RangeEntry], entry: usize) -> bool {
    table.get(entry + 1).is_some_and(is_view)
}

/// A column that is not there.
pub fn missing_column(analyzer: &Analyzer<'_, '_>, relation: Option<&str>, name: &str, location: i32) -> DbError {
    let e = match relation {
        Some(relation) => err!(UNDEFINED_COLUMN, "column {relation}.{name} does not exist"),
        None => err!(UNDEFINED_COLUMN, "column \"{name}\" does not exist"),
    }
    .routine("errorMissingColumn")
    .at(location);
    let similar = similar_columns(analyzer, relation, name);
    match &similar.exact[..] {
        [] => {}
        [(table, entry)] => {
            let e = e.detail(format!(
                    "There is a column named \"{name}\" in table \"{table}\", but it cannot be referenced from this part of the query."
                ));
            return exact_hint(analyzer, e, *entry, relation);
        }
        _ => {
            let e = e.detail(format!(
                    "There are columns named \"{name}\", but they are in tables that cannot be referenced from this part of the query."
                ));
            return if relation.is_none() { e.hint("Try using a table-qualified name.") } else { e };
        }
    }
    match (similar.first, similar.second) {
        (Some((t, c)), None) => e.hint(format!("Perhaps you meant to reference the column \"{t}.{c}\".")),
        (Some((t1, c1)), Some((t2, c2))) => {
            e.hint(format!("Perhaps you meant to reference the column \"{t1}.{c1}\" or the column \"{t2}.{c2}\"."))
        }
        _ => e,
    }
}

fn exact_hint(analyzer: &Analyzer<'_, '_>, e: DbError, entry: usize, relation: Option<&str>) -> DbError {
    let (mut lateral, mut qualified) = (false, false);
    if let Some(level) = analyzer.levels().next() {
        for item in level.namespace.iter().filter(|i| i.entry == entry) {
            lateral |= item.lateral_only && !level.lateral_active && item.lateral_ok;
            qualified |= item.relation_visible && !item.columns_visible && !item.lateral_only;
        }
    }
    for level in analyzer.levels().skip(1) {
        lateral |= level.namespace.iter().any(|i| {
            i.entry == entry && i.lateral_only && !level.lateral_active && i.lateral_ok && level.range_table.len() > entry
        });
    }
    if lateral {
        e.hint("To reference that column, you must mark this subquery with LATERAL.")
    } else if relation.is_none() && qualified {
        e.hint("To reference that column, you must use a table-qualified name.")
    } else {
        e
    }
}

fn similar_columns(analyzer: &Analyzer<'_, '_>, relation: Option<&str>, name: &str) -> Similar {
    let mut similar = Similar { distance: DISTANCE_MAX + 1, ..Similar::default() };
    for level in analyzer.levels() {
        for (index, entry) in level.range_table.iter().enumerate() {
            let is_unnamed = matches!(entry.kind, RangeKind::Join { .. } | RangeKind::Result) && !is_view(entry);
            if is_unnamed || is_below_view(&level.range_table, index) {
                continue;
            }
            let penalty = relation.map_or(0, |r| levenshtein(r, &entry.name));
            let lacks_them = level.namespace.iter().any(|item| item.entry == index && !item.system_columns);
            let system = matches!(entry.kind, RangeKind::Relation { .. }) && !lacks_them;
            if system && penalty == 0 && super::scope::SYSTEM_COLUMNS.iter().any(|c| c.0 == name) {
                similar.exact.push((entry.name.to_string(), index));
            }
            for column in entry.columns.iter().filter(|c| c.ty.is_valid()) {
                if &*column.name == name && penalty == 0 {
                    similar.exact.push((entry.name.to_string(), index));
                } else {
                    similar.consider(&entry.name, &column.name, name, penalty);
                }
            }
        }
    }
    similar
}

/// A table that is not in FROM, or not visible.
pub fn missing_range(analyzer: &Analyzer<'_, '_>, schema: Option<&str>, name: &str, location: i32) -> DbError {
    let hidden = hidden_entry(analyzer, schema, name);
    let Some((entry, lateral)) = hidden else {
        let shown = schema.map_or(name.to_owned(), |s| format!("{s}.{name}"));
        return err!(UNDEFINED_TABLE, "missing FROM-clause entry for table \"{shown}\"").at(location);
    };
    let shown = schema.map_or(name.to_owned(), |s| format!("{s}.{name}"));
    let e = err!(UNDEFINED_TABLE, "invalid reference to FROM-clause entry for table \"{shown}\"").at(location);
    if entry.alias.is_some()
        && &*entry.name != name
        && items::find_item(analyzer, None, &entry.name, location).is_ok_and(|f| f.is_some())
    {
        return e.hint(format!("Perhaps you meant to reference the table alias \"{}\".", entry.name));
    }
    let e = e.detail(format!(
        "There is an entry for table \"{}\", but it cannot be referenced from this part of the query.",
        entry.name
    ));
    if lateral { e.hint("To reference that table, you must mark this subquery with LATERAL.") } else { e }
}

fn hidden_entry<'e>(analyzer: &'e Analyzer<'_, '_>, schema: Option<&str>, name: &str) -> Option<(&'e RangeEntry, bool)> {
    let oid = analyzer.cx().find_relation(schema, name).map(|r| r.oid);
    for level in analyzer.levels() {
        for (index, entry) in level.range_table.iter().enumerate() {
            let is_unnamed = matches!(entry.kind, RangeKind::Join { .. }) && entry.alias.is_none();
            if is_unnamed || is_below_view(&level.range_table, index) {
                continue;
            }
            let same = oid.is_some() && relation_oid(entry) == oid || schema.is_none() && &*entry.name == name;
            if same {
                let lateral =
                    level.namespace.iter().any(|i| i.entry == index && i.lateral_only && !level.lateral_active && i.lateral_ok);
                return Some((entry, lateral));
            }
        }
    }
    None
}

impl Similar {
    fn consider(&mut self, table: &str, column: &str, wanted: &str, penalty: usize) {
        if penalty > self.distance {
            return;
        }
        let own = levenshtein(column, wanted);
        if own > wanted.len() / 2 {
            return;
        }
        let distance = own + penalty;
        let found = Some((table.to_owned(), column.to_owned()));
        if distance < self.distance {
            self.distance = distance;
            self.first = found;
            self.second = None;
        } else if distance == self.distance && self.first.is_some() {
            if self.second.is_some() {
                // Too many equally good ones: none is offered.
                self.first = None;
                self.second = None;
                self.distance = distance.saturating_sub(1);
            } else {
                self.second = found;
            }
        }
    }
}

/// How many characters one text has to change, add or lose to become the other.
pub fn levenshtein(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut previous = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = previous + usize::from(ca != *cb);
            previous = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(previous + 1);
        }
    }
    row[b.len()]
}
