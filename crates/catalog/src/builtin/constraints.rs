//! Constraints of the system relations (keys, NOT NULL) and of information_schema's domains, and the system relations'
//! indexes. The indexes exist in name only: nothing is stored in them, and `Relation::indexes` does not list them.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use melba_types::Oid;

use super::relations::bare_relation;
use crate::classes;
use crate::objects::*;
use crate::seed::{Row, seed};
use crate::triggers::FIRES_ON_ORIGIN;

pub(super) fn constraints() -> Vec<Arc<Constraint>> {
    let constraint = |r: Row<'_>| Constraint {
        oid: r.oid("oid"),
        name: r.text("conname"),
        namespace: r.oid("connamespace"),
        kind: match r.char("contype") {
            b'p' => ConstraintKind::PrimaryKey,
            b'u' => ConstraintKind::Unique,
            b'n' => ConstraintKind::NotNull,
            _ => ConstraintKind::Check,
        },
        deferrable: false,
        initially_deferred: false,
        enforced: true,
        validated: true,
        relation: r.oid("conrelid"),
        domain: r.oid("contypid"),
        index: r.oid("conindid"),
        columns: r.numbers("conkey"),
        foreign_key: None,
        expression: r.optional("expression").map(Arc::from),
        operators: Vec::new(),
        local: true,
        inherited: 0,
        no_inherit: false,
        parent: Oid::INVALID,
        depends_on: Vec::new(),
        check_enabled: FIRES_ON_ORIGIN,
        action_enabled: FIRES_ON_ORIGIN,
    };
    seed!("pg_constraint").rows().map(|r| Arc::new(constraint(r))).collect()
}

/// A reference of columns of a system relation to another's (pg_get_catalog_foreign_keys). Nothing checks it.
pub struct CatalogForeignKey {
    pub table: Oid,
    pub columns: Vec<&'static str>,
    pub referenced_table: Oid,
    pub referenced_columns: Vec<&'static str>,
    /// The last of the columns is an array or vector of references.
    pub is_array: bool,
    /// 0 refers to nothing.
    pub is_optional: bool,
}

pub fn catalog_foreign_keys() -> Vec<CatalogForeignKey> {
    let names = |list: &'static str| list.trim_matches(['{', '}']).split(',').collect();
    let key = |r: Row<'_>| CatalogForeignKey {
        table: r.oid("fktable"),
        columns: names(r.str("fkcols")),
        referenced_table: r.oid("pktable"),
        referenced_columns: names(r.str("pkcols")),
        is_array: r.bool("is_array"),
        is_optional: r.bool("is_opt"),
    };
    seed!("foreign_keys").rows().map(key).collect()
}

/// OIDs of the constraints of each system relation.
pub(super) fn by_relation() -> HashMap<Oid, Vec<Oid>> {
    let mut all: HashMap<Oid, Vec<Oid>> = HashMap::new();
    for r in seed!("pg_constraint").rows().filter(|r| r.oid("conrelid").is_valid()) {
        all.entry(r.oid("conrelid")).or_default().push(r.oid("oid"));
    }
    all
}

/// The indexes of the system relations in `tables`. All are ascending B-trees over columns.
pub(super) fn indexes(tables: &BTreeMap<Oid, Arc<Relation>>) -> Vec<Arc<Relation>> {
    let constraints: HashMap<Oid, Oid> = seed!("pg_constraint").rows().map(|r| (r.oid("conindid"), r.oid("oid"))).collect();
    let mut all = Vec::new();
    for r in seed!("pg_index").rows() {
        let Some(table) = tables.get(&r.oid("indrelid")) else { continue };
        let (collations, classes) = (r.oids("indcollation"), r.oids("indclass"));
        let column = |n: i16| table.columns.get((n as usize).wrapping_sub(1));
        let key = |(at, n): (usize, i16)| IndexKey {
            column: n,
            expression: None,
            ty: column(n).map_or(Oid::INVALID, |c| c.ty),
            collation: collations.get(at).copied().unwrap_or_default(),
            natural_collation: column(n).map_or(Oid::INVALID, |c| c.collation),
            opclass: classes.get(at).copied().unwrap_or_default(),
            descending: false,
            nulls_first: false,
        };
        let oid = r.oid("indexrelid");
        let info = IndexInfo {
            table: table.oid,
            keys: r.numbers("indkey").into_iter().enumerate().map(key).collect(),
            include: Vec::new(),
            unique: r.bool("indisunique"),
            primary: r.bool("indisprimary"),
            nulls_not_distinct: false,
            valid: true,
            clustered: false,
            replica_identity: false,
            predicate: None,
            constraint: constraints.get(&oid).copied().unwrap_or_default(),
            deferrable: false,
        };
        all.push(Arc::new(Relation {
            kind: RelationKind::Index,
            index: Some(Arc::new(info)),
            access_method: classes::BTREE,
            file_node: r.oid("relfilenode"),
            ..bare_relation(oid, r.str("relname"), table.namespace)
        }));
    }
    all
}
