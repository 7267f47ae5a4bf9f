//! Functions over statistics objects, and the types of what ANALYZE collects for them.

use std::sync::Arc;

use melba_catalog::definitions::{Style, statistics_definition, statistics_definition_columns};
use melba_catalog::extended_statistics::statistics_are_visible;
use melba_catalog::{Catalog, decode_mcv_list};
use melba_fmgr::{CallInfo, ScalarFn, TypeIo};
use melba_types::{Array, ArrayDim, Datum, DbError, Oid, Result, err, oids};

use super::definitions::{styled, text_or_null};
use super::oid_argument;
use crate::bytea::bytea_out;

/// A type whose values are held as the bytes of their text and are not read from clients.
macro_rules! text_io {
    ($name:literal) => {
        TypeIo {
            input: |_, _| Err(unreadable($name)),
            output: |_, value, out| {
                out.extend_from_slice(value.as_bytes());
                Ok(())
            },
            receive: |_, _| Err(unreadable($name)),
            send: |_, value, out| {
                out.extend_from_slice(value.as_bytes());
                Ok(())
            },
        }
    };
}

pub const TYPES: &[(Oid, TypeIo)] = &[
    (oids::PG_NDISTINCT, text_io!("pg_ndistinct")),
    (oids::PG_DEPENDENCIES, text_io!("pg_dependencies")),
    (
        oids::PG_MCV_LIST,
        TypeIo {
            input: |_, _| Err(unreadable("pg_mcv_list")),
            output: bytea_out,
            receive: |_, _| Err(unreadable("pg_mcv_list")),
            send: |_, value, out| {
                out.extend_from_slice(value.as_bytes());
                Ok(())
            },
        },
    ),
];

fn unreadable(name: &str) -> DbError {
    err!(FEATURE_NOT_SUPPORTED, "cannot accept a value of type {name}")
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_get_statisticsobjdef", |c, a| Ok(on_one_line(c, |k, s| statistics_definition(k, oid_argument(a, 0), s)))),
    ("pg_get_statisticsobjdef_columns", |c, a| {
        Ok(on_one_line(c, |k, s| statistics_definition_columns(k, oid_argument(a, 0), s)))
    }),
    ("pg_get_statisticsobjdef_expressions", expressions),
    ("pg_statistics_obj_is_visible", |c, a| {
        let catalog = c.session.catalog();
        Ok(match catalog.statistics_object(oid_argument(a, 0)) {
            Some(s) => Datum::Bool(statistics_are_visible(catalog, s, &c.session.search_path())),
            None => Datum::Null,
        })
    }),
];

/// A definition with few parentheses, whose expressions are not broken into lines.
fn on_one_line(call: &CallInfo<'_>, definition: impl FnOnce(&Catalog, &Style<'_>) -> Option<String>) -> Datum {
    styled(call, Some(&Datum::Bool(true)), |catalog, style| {
        let expression = |text: &str, relation| joined_lines(&(style.expression)(text, relation));
        text_or_null(definition(catalog, &Style { path: style.path, pretty: true, expression: &expression }))
    })
}

/// The text with a space for each line break and the indentation behind it, except within quotes.
fn joined_lines(text: &str) -> String {
    let (mut out, mut quote, mut is_indentation) = (String::with_capacity(text.len()), None, true);
    for c in text.chars() {
        match (quote, c) {
            (Some(q), _) if q == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '\n') => {
                if !out.is_empty() && !is_indentation {
                    out.push(' ');
                }
                is_indentation = true;
                continue;
            }
            (None, ' ') if is_indentation => continue,
            _ => {}
        }
        is_indentation = false;
        out.push(c);
    }
    out
}

fn expressions(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let found = call.session.catalog().statistics_object(oid_argument(args, 0));
    let Some(statistics) = found.filter(|s| !s.expressions.is_empty()) else { return Ok(Datum::Null) };
    let shown = |text: &Arc<str>| {
        let shown = call.session.shown_expression(text, statistics.table, false);
        Datum::text(shown.unwrap_or_else(|_| text.to_string()))
    };
    Ok(array(oids::TEXT, statistics.expressions.iter().map(shown).collect()))
}

fn array(element_type: Oid, elements: Vec<Datum>) -> Datum {
    let dims = vec![ArrayDim { length: elements.len() as i32, lower_bound: 1 }];
    Datum::Array(Arc::new(Array { element_type, dims, elements }))
}

/// pg_mcv_list_items: index, values, which are NULL, frequency, base frequency.
pub fn mcv_list_items(_: &CallInfo<'_>, args: &[Datum]) -> Result<Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>> {
    if args[0].is_null() {
        return Ok(Box::new(std::iter::empty()));
    }
    let items = decode_mcv_list(args[0].as_bytes()).ok_or_else(|| err!(DATA_CORRUPTED, "invalid most-common-values list"))?;
    Ok(Box::new(items.into_iter().enumerate().map(|(at, item)| {
        let nulls = item.values.iter().map(|v| Datum::Bool(v.is_none())).collect();
        let values = item.values.into_iter().map(|v| v.map_or(Datum::Null, Datum::Text)).collect();
        Ok(vec![
            Datum::Int4(at as i32),
            array(oids::TEXT, values),
            array(oids::BOOL, nulls),
            Datum::Float8(item.frequency),
            Datum::Float8(item.base_frequency),
        ])
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_within_quotes_stay() {
        let text = "\nCASE\n    WHEN a = 'x\n  y' THEN 1\n    ELSE 2\nEND";
        assert_eq!(joined_lines(text), "CASE WHEN a = 'x\n  y' THEN 1 ELSE 2 END");
    }
}
