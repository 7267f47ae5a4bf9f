//! pg_partitioned_table.

use melba_types::{Datum, Oid};

use super::{Rows, Source, values::*};
use crate::naming::quote_ident;
use crate::objects::*;

pub(super) fn rows(s: &Source<'_>, out: &mut Rows<'_>) {
    for table in s.by_oid(|oid| s.catalog.relation(oid), s.catalog.user_relations()) {
        let Some(key) = &table.partition_key else { continue };
        let strategy = key.bytes().next().map_or(b'r', |c| c.to_ascii_lowercase());
        let columns = key_columns(table, key);
        let column = |number: &i16| table.columns.get(usize::try_from(*number).ok()?.checked_sub(1)?);
        let opclass = |c: &Column| s.catalog.default_operator_class(crate::classes::BTREE, c.ty).map_or(Oid::INVALID, |o| o.oid);
        let known: Vec<_> = columns.iter().map(column).collect();
        let default = s.catalog.children(table.oid).into_iter().find(|oid| is_default(s, *oid));
        let has_expression = columns.contains(&0);
        out.push([
            oid(table.oid),
            char(strategy),
            int2(columns.len()),
            oid(default.unwrap_or_default()),
            int2vector(columns.iter().copied()),
            oidvector(known.iter().map(|c| c.map_or(Oid::INVALID, opclass))),
            oidvector(known.iter().map(|c| c.map_or(Oid::INVALID, |c| c.collation))),
            if has_expression { text(key) } else { Datum::Null },
        ]);
    }
}

fn is_default(s: &Source<'_>, partition: Oid) -> bool {
    s.catalog.relation(partition).is_some_and(|p| p.partition_bound.as_deref() == Some("DEFAULT"))
}

/// The numbers of the columns in `RANGE (a, lower(b))`; 0 for what is no plain column.
fn key_columns(table: &Relation, key: &str) -> Vec<i16> {
    let list = key.split_once('(').map_or("", |(_, list)| list.trim_end().strip_suffix(')').unwrap_or(list));
    let mut items = vec![String::new()];
    let mut depth = 0;
    for c in list.chars() {
        match c {
            ',' if depth == 0 => items.push(String::new()),
            c => {
                depth += i32::from(c == '(') - i32::from(c == ')');
                items.last_mut().expect("starts with one item").push(c);
            }
        }
    }
    let number = |item: &String| {
        // A collation or operator class may follow the name.
        let is = |c: &Column| item.split_whitespace().next() == Some(&*quote_ident(&c.name)) || item.trim() == &*c.name;
        table.columns.iter().position(|c| !c.dropped && is(c)).map_or(0, |i| i as i16 + 1)
    };
    items.iter().map(number).collect()
}
