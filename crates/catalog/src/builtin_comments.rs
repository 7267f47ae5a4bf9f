//! The comments on built-in objects that snapshots begin with: seed/descriptions.tsv, and text search by language.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use melba_types::Oid;

use crate::classes;
use crate::objects::{Description, ObjectAddress};
use crate::radix::RadixMap;
use crate::seed::{Row, Seed, seed};

type Descriptions = RadixMap<Vec<Arc<Description>>>;

/// A class whose objects have names of their own.
struct NamedClass {
    name: &'static str,
    oid: Oid,
    objects: fn() -> Seed,
    /// The column of the name.
    column: &'static str,
}

impl NamedClass {
    const fn new(name: &'static str, oid: Oid, objects: fn() -> Seed, column: &'static str) -> NamedClass {
        NamedClass { name, oid, objects, column }
    }
}

const CLASSES: [NamedClass; 7] = [
    NamedClass::new("pg_namespace", classes::PG_NAMESPACE, || seed!("pg_namespace"), "nspname"),
    NamedClass::new("pg_language", classes::PG_LANGUAGE, || seed!("pg_language"), "lanname"),
    NamedClass::new("pg_extension", classes::PG_EXTENSION, || seed!("pg_extension"), "extname"),
    NamedClass::new("pg_am", classes::PG_AM, || seed!("pg_am"), "amname"),
    NamedClass::new("pg_type", classes::PG_TYPE, || seed!("pg_type"), "typname"),
    NamedClass::new("pg_ts_parser", classes::PG_TS_PARSER, || seed!("pg_ts_parser"), "prsname"),
    NamedClass::new("pg_ts_template", classes::PG_TS_TEMPLATE, || seed!("pg_ts_template"), "tmplname"),
];

static DESCRIPTIONS: LazyLock<Descriptions> = LazyLock::new(|| {
    let mut all = Descriptions::default();
    let mut describe = |class: Oid, object: Oid, text: &str| {
        let address = ObjectAddress { class, object, sub: 0 };
        all.entry(object.0, Vec::new).push(Arc::new(Description { address, text: text.into() }));
    };
    let texts = seed!("descriptions");
    // By class and name: the type of the left operand, and the text.
    let known: HashMap<(&str, &str), (&str, &str)> =
        texts.rows().map(|row| ((row.str("class"), row.str("name")), (row.str("of"), row.str("description")))).collect();
    for class in CLASSES {
        let objects = (class.objects)();
        for row in objects.rows() {
            if let Some((_, text)) = known.get(&(class.name, row.str(class.column))) {
                describe(class.oid, row.oid("oid"), text);
            }
        }
    }
    let types = seed!("pg_type");
    let types: HashMap<Oid, &str> = types.rows().map(|row| (row.oid("oid"), row.str("typname"))).collect();
    let is_of = |row: &Row<'_>, of: &str| of.is_empty() || types.get(&row.oid("oprleft")) == Some(&of);
    for row in seed!("pg_operator").rows() {
        if let Some((of, text)) = known.get(&("pg_operator", row.str("oprname")))
            && is_of(&row, of)
        {
            describe(classes::PG_OPERATOR, row.oid("oid"), text);
        }
    }
    for row in seed!("pg_ts_config").rows() {
        describe(classes::PG_TS_CONFIG, row.oid("oid"), &of_language("documents", row.str("cfgname")));
    }
    for row in seed!("pg_ts_dict").rows() {
        describe(classes::PG_TS_DICT, row.oid("oid"), &of_language("words", row.str("dictname").trim_end_matches("_stem")));
    }
    all
});

/// `simple` knows no language.
fn of_language(what: &str, language: &str) -> String {
    match language.split_at_checked(1) {
        Some((first, rest)) if language != "simple" => format!("{what} in {}{rest}", first.to_uppercase()),
        _ => format!("{what} in any language"),
    }
}

/// The comments that every database has.
pub(crate) fn builtin_descriptions() -> Descriptions {
    DESCRIPTIONS.clone()
}

/// Whether a comment is one of those.
pub(crate) fn is_builtin(comment: &Description) -> bool {
    let of_object = DESCRIPTIONS.get(comment.address.object.0);
    of_object.is_some_and(|all| all.iter().any(|known| known.address == comment.address && known.text == comment.text))
}
