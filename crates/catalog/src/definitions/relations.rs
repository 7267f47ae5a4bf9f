//! Indexes, constraints, triggers, partition keys.

use std::fmt::Write;
use std::sync::Arc;

use melba_types::Oid;

use super::{Style, literal, options};
use crate::classes::PG_CATALOG;
use crate::naming::quote_ident;
use crate::objects::*;
use crate::snapshot::Catalog;
use crate::triggers::trigger_events::{BEFORE, DELETE, INSERT, INSTEAD, ROW, TRUNCATE, UPDATE};

/// pg_get_indexdef: the whole CREATE INDEX.
pub fn index_definition(catalog: &Catalog, oid: Oid, style: &Style<'_>) -> Option<String> {
    let relation = catalog.relation(oid)?;
    let index = relation.index.as_ref()?;
    let table = catalog.relation(index.table)?;
    let only = if table.kind == RelationKind::PartitionedTable { "ONLY " } else { "" };
    let mut out = format!(
        "CREATE {}INDEX {} ON {only}{} USING {} (",
        if index.unique { "UNIQUE " } else { "" },
        quote_ident(&relation.name),
        table_name(catalog, table, style),
        quote_ident(catalog.access_methods().method_name(relation.access_method).unwrap_or("btree")),
    );
    out.push_str(&index_keys(catalog, index, table, &[], style));
    out.push(')');
    index_tail(relation, index, table, style, &mut out);
    Some(out)
}

/// pg_get_indexdef with a column: that column's name or expression alone, from 1.
pub fn index_column_definition(catalog: &Catalog, oid: Oid, column: usize, style: &Style<'_>) -> Option<String> {
    let index = catalog.relation(oid)?.index.as_ref()?;
    let table = catalog.relation(index.table)?;
    let at = column.checked_sub(1)?;
    match index.keys.get(at) {
        Some(key) => Some(key_text(key, table, style)),
        None => Some(column_name(table, *index.include.get(at - index.keys.len())?)),
    }
}

fn table_name(catalog: &Catalog, table: &Relation, style: &Style<'_>) -> String {
    catalog.qualified(style.pretty && catalog.relation_is_visible(table, style.path), table.namespace, &table.name)
}

/// The columns of an index with the options of each that are not the default; `operators` are an exclusion constraint's.
fn index_keys(catalog: &Catalog, index: &IndexInfo, table: &Relation, operators: &[Oid], style: &Style<'_>) -> String {
    let one = |(at, key): (usize, &IndexKey)| {
        let mut out = key_text(key, table, style);
        key_modifiers(catalog, (key.collation, key.natural_collation), key.opclass, key.ty, style, &mut out);
        match (key.descending, key.nulls_first) {
            (false, true) => out.push_str(" NULLS FIRST"),
            (true, false) => out.push_str(" DESC NULLS LAST"),
            (true, true) => out.push_str(" DESC"),
            (false, false) => {}
        }
        if let Some(operator) = operators.get(at).and_then(|o| catalog.operator(*o)) {
            let _ = write!(out, " WITH {}", operator.name);
        }
        out
    };
    index.keys.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
}

/// COLLATE and the operator class of a key's column, where they are not its defaults.
fn key_modifiers(catalog: &Catalog, collations: (Oid, Oid), opclass: Oid, ty: Oid, style: &Style<'_>, out: &mut String) {
    if let Some(collation) = catalog.collation(collations.0).filter(|c| c.oid != collations.1) {
        let visible = catalog.collation_is_visible(collation, style.path);
        let _ = write!(out, " COLLATE {}", catalog.qualified(visible, collation.namespace, &collation.name));
    }
    if let Some(class) = catalog.access_methods().class(opclass)
        && catalog.default_operator_class(class.method, ty).is_none_or(|d| d.oid != class.oid)
    {
        let namespace = catalog.class_namespace(class).unwrap_or(PG_CATALOG);
        let found = catalog.find_operator_class(style.path, class.method, &class.name);
        let visible = namespace == PG_CATALOG || found.is_some_and(|f| f.oid == class.oid);
        let _ = write!(out, " {}", catalog.qualified(visible, namespace, &class.name));
    }
}

fn index_tail(relation: &Relation, index: &IndexInfo, table: &Relation, style: &Style<'_>, out: &mut String) {
    if !index.include.is_empty() {
        let _ = write!(out, " INCLUDE ({})", column_names(table, &index.include));
    }
    if index.nulls_not_distinct {
        out.push_str(" NULLS NOT DISTINCT");
    }
    if !relation.options.is_empty() {
        let _ = write!(out, " WITH ({})", options(&relation.options));
    }
    if let Some(predicate) = &index.predicate {
        let _ = write!(out, " WHERE {}", (style.expression)(predicate, table.oid));
    }
}

/// pg_get_constraintdef.
pub fn constraint_definition(catalog: &Catalog, oid: Oid, style: &Style<'_>) -> Option<String> {
    let c = catalog.constraint(oid)?;
    let table = catalog.relation(c.relation);
    let columns = || table.map_or_else(String::new, |t| column_names(t, &c.columns));
    let mut out = match c.kind {
        ConstraintKind::Check => {
            let of = if c.domain.is_valid() { c.domain } else { c.relation };
            let text = (style.expression)(c.expression.as_deref().unwrap_or(""), of);
            format!("CHECK ({text}){}", if c.no_inherit { " NO INHERIT" } else { "" })
        }
        ConstraintKind::NotNull if c.domain.is_valid() => "NOT NULL".to_owned(),
        ConstraintKind::NotNull => {
            format!("NOT NULL {}{}", columns(), if c.no_inherit { " NO INHERIT" } else { "" })
        }
        ConstraintKind::PrimaryKey | ConstraintKind::Unique => {
            let index = catalog.relation(c.index).and_then(|i| i.index.as_ref());
            let mut out = if c.kind == ConstraintKind::PrimaryKey { "PRIMARY KEY " } else { "UNIQUE " }.to_owned();
            if index.is_some_and(|i| i.nulls_not_distinct) {
                out.push_str("NULLS NOT DISTINCT ");
            }
            let period = if c.is_without_overlaps() { " WITHOUT OVERLAPS" } else { "" };
            let _ = write!(out, "({}{period})", columns());
            if let (Some(index), Some(table)) = (index.filter(|i| !i.include.is_empty()), table) {
                let _ = write!(out, " INCLUDE ({})", column_names(table, &index.include));
            }
            out
        }
        ConstraintKind::ForeignKey => foreign_key_definition(catalog, c, style)?,
        ConstraintKind::Exclusion => {
            let relation = catalog.relation(c.index)?;
            let index = relation.index.as_ref()?;
            let method = catalog.access_methods().method_name(relation.access_method).unwrap_or("gist");
            let keys = index_keys(catalog, index, table?, &c.operators, style);
            let mut out = format!("EXCLUDE USING {} ({keys})", quote_ident(method));
            index_tail(relation, &IndexInfo { predicate: None, ..(**index).clone() }, table?, style, &mut out);
            if let Some(predicate) = &index.predicate {
                let _ = write!(out, " WHERE ({})", (style.expression)(predicate, c.relation));
            }
            out
        }
        ConstraintKind::Trigger => "TRIGGER".to_owned(),
    };
    if c.deferrable {
        out.push_str(" DEFERRABLE");
    }
    if c.initially_deferred {
        out.push_str(" INITIALLY DEFERRED");
    }
    if !c.enforced {
        out.push_str(" NOT ENFORCED");
    } else if !c.validated {
        out.push_str(" NOT VALID");
    }
    Some(out)
}

fn foreign_key_definition(catalog: &Catalog, c: &Constraint, style: &Style<'_>) -> Option<String> {
    let key = c.foreign_key.as_ref()?;
    let referenced = catalog.relation(key.referenced_table)?;
    let columns = |table: &Relation, columns: &[i16]| match columns.split_last() {
        Some((period, others)) if key.has_period() => {
            format!("{}, PERIOD {}", column_names(table, others), column_names(table, &[*period]))
        }
        _ => column_names(table, columns),
    };
    let mut out = format!(
        "FOREIGN KEY ({}) REFERENCES {}({})",
        catalog.relation(c.relation).map_or_else(String::new, |table| columns(table, &c.columns)),
        catalog.relation_name(referenced, style.path),
        columns(referenced, &key.referenced_columns),
    );
    match key.match_type {
        b'f' => out.push_str(" MATCH FULL"),
        b'p' => out.push_str(" MATCH PARTIAL"),
        _ => {}
    }
    let action = |letter| match letter {
        b'r' => Some("RESTRICT"),
        b'c' => Some("CASCADE"),
        b'n' => Some("SET NULL"),
        b'd' => Some("SET DEFAULT"),
        _ => None,
    };
    if let Some(action) = action(key.on_update) {
        let _ = write!(out, " ON UPDATE {action}");
    }
    if let Some(action) = action(key.on_delete) {
        let _ = write!(out, " ON DELETE {action}");
    }
    if !key.delete_set_columns.is_empty() {
        let _ = write!(out, " ({})", column_names(catalog.relation(c.relation)?, &key.delete_set_columns));
    }
    Some(out)
}

/// pg_get_partkeydef.
pub fn partition_key_definition(catalog: &Catalog, oid: Oid, style: &Style<'_>) -> Option<String> {
    let table = catalog.relation(oid)?;
    let key = table.partition_key.as_ref()?;
    let column = |c: &PartitionColumn| {
        let mut out = match &c.expression {
            Some(expression) => expression_key_text(expression, table, style),
            None => column_name(table, c.column),
        };
        key_modifiers(catalog, (c.collation, c.natural_collation), c.opclass, c.ty, style, &mut out);
        out
    };
    let columns: Vec<String> = key.columns.iter().map(column).collect();
    Some(format!("{} ({})", key.strategy.word(), columns.join(", ")))
}

/// pg_get_triggerdef.
pub fn trigger_definition(catalog: &Catalog, oid: Oid, style: &Style<'_>) -> Option<String> {
    let t = catalog.trigger(oid)?;
    let table = catalog.relation(t.table)?;
    let is = |bit: i16| t.events & bit != 0;
    let time = if is(BEFORE) {
        "BEFORE"
    } else if is(INSTEAD) {
        "INSTEAD OF"
    } else {
        "AFTER"
    };
    let mut events = Vec::new();
    for (bit, name) in [(INSERT, "INSERT"), (DELETE, "DELETE"), (UPDATE, "UPDATE"), (TRUNCATE, "TRUNCATE")] {
        if is(bit) {
            let of = bit == UPDATE && !t.columns.is_empty();
            events.push(if of { format!("UPDATE OF {}", column_names(table, &t.columns)) } else { name.to_owned() });
        }
    }
    let constraint = t.constraint.is_valid();
    let mut out = format!(
        "CREATE {}TRIGGER {} {time} {} ON {} ",
        if constraint { "CONSTRAINT " } else { "" },
        quote_ident(&t.name),
        events.join(" OR "),
        table_name(catalog, table, style),
    );
    if constraint {
        if let Some(from) = catalog.relation(t.constraint_table) {
            let _ = write!(out, "FROM {} ", catalog.relation_name(from, style.path));
        }
        out.push_str(if t.deferrable { "DEFERRABLE " } else { "NOT DEFERRABLE " });
        out.push_str(if t.initially_deferred { "INITIALLY DEFERRED " } else { "INITIALLY IMMEDIATE " });
    }
    if t.old_table.is_some() || t.new_table.is_some() {
        out.push_str("REFERENCING ");
        for (which, name) in [("OLD", &t.old_table), ("NEW", &t.new_table)] {
            if let Some(name) = name {
                let _ = write!(out, "{which} TABLE AS {} ", quote_ident(name));
            }
        }
    }
    out.push_str(if is(ROW) { "FOR EACH ROW " } else { "FOR EACH STATEMENT " });
    if let Some(when) = &t.when {
        let _ = write!(out, "WHEN ({}) ", (style.expression)(when, t.oid));
    }
    let arguments: Vec<_> = t.arguments.iter().map(|a| literal(a)).collect();
    let function = catalog.function(t.function)?;
    let visible = catalog.function_is_visible(function, style.path);
    let name = catalog.qualified(visible, function.namespace, &function.name);
    let _ = write!(out, "EXECUTE FUNCTION {name}({})", arguments.join(", "));
    Some(out)
}

/// pg_get_serial_sequence: the sequence that a column owns.
pub fn owned_sequence(catalog: &Catalog, table: Oid, column: i16) -> Option<&Arc<Relation>> {
    let address = ObjectAddress { class: crate::classes::PG_CLASS, object: table, sub: i32::from(column) };
    let owned = |r: &&Arc<Relation>| r.sequence.as_ref().is_some_and(|s| s.owned_by == Some((table, column)));
    catalog.dependents(address).filter_map(|d| catalog.relation(d.dependent.object)).find(owned)
}

/// An index column's name or expression, which needs parentheses unless it is a function call.
fn key_text(key: &IndexKey, table: &Relation, style: &Style<'_>) -> String {
    match &key.expression {
        Some(expression) => expression_key_text(expression, table, style),
        None => column_name(table, key.column),
    }
}

/// An expression among columns: in parentheses, unless it is one call.
pub(super) fn expression_key_text(expression: &str, table: &Relation, style: &Style<'_>) -> String {
    let text = (style.expression)(expression, table.oid);
    if is_function_call(&text) { text } else { format!("({text})") }
}

/// Whether an expression is one call: a name, and parentheses from there to the end.
fn is_function_call(text: &str) -> bool {
    let Some(open) = text.find('(') else { return false };
    let name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '"');
    if open == 0 || !text[..open].chars().all(name) {
        return false;
    }
    let (mut depth, mut quote) = (0, None);
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < open) {
        match (quote, c) {
            (Some(q), _) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => {
                depth -= 1;
                if depth == 0 {
                    return at + 1 == text.len();
                }
            }
            _ => {}
        }
    }
    false
}

fn column_name(table: &Relation, number: i16) -> String {
    let column = usize::try_from(number).ok().and_then(|n| table.columns.get(n.checked_sub(1)?));
    column.map_or_else(String::new, |c| quote_ident(&c.name).into_owned())
}

fn column_names(table: &Relation, numbers: &[i16]) -> String {
    numbers.iter().map(|n| column_name(table, *n)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_need_no_parentheses() {
        assert!(is_function_call("lower((a)::text)") && is_function_call("s.\"F\"(')', 1)"));
        assert!(!is_function_call("(a + b)") && !is_function_call("f(a) + g(b)") && !is_function_call("a"));
    }
}
