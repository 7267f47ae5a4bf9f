//! Built-in types.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use melba_types::{Kind, Oid};

use crate::classes;
use crate::objects::*;
use crate::seed::{Row, Seed, seed};

/// All built-in types by OID.
pub(super) fn types() -> BTreeMap<Oid, Arc<Type>> {
    let mut ranges = HashMap::new();
    for r in seed!("pg_range").rows() {
        let info = Arc::new(RangeInfo {
            range: r.oid("rngtypid"),
            subtype: r.oid("rngsubtype"),
            multirange: r.oid("rngmultitypid"),
            collation: r.oid("rngcollation"),
            opclass: r.oid("rngsubopc"),
            canonical: r.text("rngcanonical"),
            subtype_diff: r.text("rngsubdiff"),
        });
        ranges.insert(r.oid("rngtypid"), info.clone());
        // A multirange finds its range through the same row.
        ranges.insert(info.multirange, info);
    }
    let mut constraints: HashMap<Oid, Vec<Oid>> = HashMap::new();
    for r in seed!("pg_constraint").rows().filter(|r| r.oid("contypid").is_valid()) {
        constraints.entry(r.oid("contypid")).or_default().push(r.oid("oid"));
    }
    let mut types = BTreeMap::new();
    for r in seed!("pg_type").rows() {
        let ty = read_type(&r, &ranges, &mut constraints);
        types.insert(ty.oid, Arc::new(ty));
    }
    // A domain is held as its base type, which may come later in the file.
    let domains: Vec<(Oid, Kind)> =
        types.values().filter_map(|t| Some((t.oid, types.get(&t.domain.as_ref()?.base)?.kind))).collect();
    for (oid, kind) in domains {
        if let Some(ty) = types.get_mut(&oid) {
            Arc::make_mut(ty).kind = kind;
        }
    }
    types
}

/// Types that users could have made: no ranges, no domains.
pub(super) fn plain_types(seed: &Seed) -> Vec<Arc<Type>> {
    seed.rows().map(|r| Arc::new(read_type(&r, &HashMap::new(), &mut HashMap::new()))).collect()
}

fn read_type(r: &Row<'_>, ranges: &HashMap<Oid, Arc<RangeInfo>>, constraints: &mut HashMap<Oid, Vec<Oid>>) -> Type {
    let oid = r.oid("oid");
    let type_kind = match r.char("typtype") {
        b'c' => TypeKind::Composite,
        b'd' => TypeKind::Domain,
        b'e' => TypeKind::Enum,
        b'p' => TypeKind::Pseudo,
        b'r' => TypeKind::Range,
        b'm' => TypeKind::Multirange,
        _ => TypeKind::Base,
    };
    let subscript = r.text("typsubscript");
    let domain = (type_kind == TypeKind::Domain).then(|| {
        Arc::new(DomainInfo {
            base: r.oid("typbasetype"),
            typmod: r.number("typtypmod"),
            dimensions: 0,
            not_null: r.bool("typnotnull"),
            // information_schema.time_stamp is the one built-in domain with a default.
            default: (r.str("typname") == "time_stamp").then(|| "CURRENT_TIMESTAMP(2)".into()),
            constraints: constraints.remove(&oid).unwrap_or_default(),
        })
    });
    Type {
        oid,
        name: r.text("typname"),
        namespace: r.oid("typnamespace"),
        owner: classes::POSTGRES_ROLE,
        type_kind,
        category: r.char("typcategory"),
        preferred: r.bool("typispreferred"),
        length: r.number("typlen"),
        by_value: r.bool("typbyval"),
        align: r.char("typalign"),
        storage: r.char("typstorage"),
        delimiter: r.char("typdelim"),
        defined: r.bool("typisdefined"),
        element: r.oid("typelem"),
        array: r.oid("typarray"),
        collation: r.oid("typcollation"),
        input: r.text("typinput"),
        output: r.text("typoutput"),
        receive: r.text("typreceive"),
        send: r.text("typsend"),
        typmod_in: r.text("typmodin"),
        typmod_out: r.text("typmodout"),
        kind: kind(oid, type_kind, &subscript),
        subscript,
        relation: r.oid("typrelid"),
        domain,
        labels: Vec::new(),
        range: ranges.get(&oid).cloned(),
        acl: None,
        depends_on: Vec::new(),
        base: None,
    }
}

/// The physical form of a type's values. Values of most pseudo-types do not exist; they get the form that their text needs.
fn kind(oid: Oid, type_kind: TypeKind, subscript: &str) -> Kind {
    if let Some(kind) = Kind::of_builtin(oid) {
        return kind;
    }
    match type_kind {
        _ if subscript == "array_subscript_handler" => Kind::Array,
        TypeKind::Composite => Kind::Record,
        TypeKind::Enum => Kind::Oid,
        TypeKind::Range => Kind::Range,
        TypeKind::Multirange => Kind::Multirange,
        TypeKind::Pseudo | TypeKind::Domain => Kind::Text,
        TypeKind::Base => Kind::Bytes,
    }
}
