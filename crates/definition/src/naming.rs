//! Names that PostgreSQL generates: constraints, indexes, sequences.

use melba_catalog::Catalog;
use melba_types::{Oid, Result, err};
use pg_query::protobuf::RangeVar;

/// Longest identifier, in bytes (NAMEDATALEN - 1).
pub const NAME_BYTES_MAX: usize = 63;

/// `name1_name2_label`, the names shortened evenly until it fits (PostgreSQL's makeObjectName).
pub fn object_name(name1: &str, name2: Option<&str>, label: &str) -> String {
    let overhead = label.len() + 1 + usize::from(name2.is_some());
    let room = NAME_BYTES_MAX.saturating_sub(overhead);
    let (mut len1, mut len2) = (name1.len(), name2.map_or(0, str::len));
    while len1 + len2 > room {
        if len1 > len2 { len1 -= 1 } else { len2 -= 1 }
    }
    let mut out = clip(name1, len1).to_owned();
    if let Some(name2) = name2 {
        out.push('_');
        out.push_str(clip(name2, len2));
    }
    out.push('_');
    out.push_str(label);
    out
}

/// The longest prefix of at most `bytes` that ends between characters.
pub fn clip(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Column names joined by `_` for an index or constraint name.
pub fn column_part(columns: &[&str]) -> String {
    clip(&columns.join("_"), NAME_BYTES_MAX).to_owned()
}

/// A relation name not in use in the namespace.
pub fn unused_relation_name(catalog: &Catalog, namespace: Oid, name1: &str, name2: Option<&str>, label: &str) -> String {
    numbered(label, |label| {
        let name = object_name(name1, name2, label);
        let taken =
            catalog.relation_by_name(namespace, &name).is_some() || catalog.constraint_by_name(namespace, &name).is_some();
        (!taken).then_some(name)
    })
}

/// A constraint name not in use on the relation or, as PostgreSQL has it, in its namespace.
pub fn unused_constraint_name(
    catalog: &Catalog,
    namespace: Oid,
    also_taken: &[String],
    name1: &str,
    name2: Option<&str>,
    label: &str,
) -> String {
    numbered(label, |label| {
        let name = object_name(name1, name2, label);
        let taken = catalog.constraint_by_name(namespace, &name).is_some() || also_taken.contains(&name);
        (!taken).then_some(name)
    })
}

fn numbered(label: &str, mut attempt: impl FnMut(&str) -> Option<String>) -> String {
    if let Some(name) = attempt(label) {
        return name;
    }
    let mut n = 1;
    loop {
        if let Some(name) = attempt(&format!("{label}{n}")) {
            return name;
        }
        n += 1;
    }
}

/// Names that users' schemas cannot have.
pub fn refuse_reserved_schema(name: &str) -> Result<()> {
    match name.starts_with("pg_") {
        true => Err(err!(RESERVED_NAME, "unacceptable schema name \"{name}\"")
            .detail("The prefix \"pg_\" is reserved for system schemas.")),
        false => Ok(()),
    }
}

/// The relation that a list of names stands for.
///
/// # Errors
/// 42601 for more than three names.
pub fn range_var(names: &[&str]) -> Result<RangeVar> {
    let (database, schema, name) = match names {
        [name] => ("", "", *name),
        [schema, name] => ("", *schema, *name),
        [database, schema, name] => (*database, *schema, *name),
        _ => return Err(err!(SYNTAX_ERROR, "improper relation name (too many dotted names): {}", names.join("."))),
    };
    Ok(RangeVar {
        catalogname: database.to_owned(),
        schemaname: schema.to_owned(),
        relname: name.to_owned(),
        inh: true,
        relpersistence: "p".into(),
        location: -1,
        ..RangeVar::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened_evenly() {
        assert_eq!(object_name("t", Some("a"), "key"), "t_a_key");
        assert_eq!(object_name("t", None, "pkey"), "t_pkey");
        let long = object_name(&"x".repeat(60), Some(&"y".repeat(60)), "fkey");
        assert_eq!(long.len(), NAME_BYTES_MAX);
        assert!(long.ends_with("y_fkey"));
    }
}
