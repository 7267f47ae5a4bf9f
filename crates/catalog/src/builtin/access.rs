//! Operator families and classes that are built in or come with extensions.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_types::Oid;

use crate::classes::{MEMORY, PG_CATALOG, POSTGRES_ROLE};
use crate::operator_families::{AccessMethods, FamilyFunction, FamilyOperator, OperatorClass, OperatorFamily};
use crate::seed::seed;

pub(super) fn access_methods() -> AccessMethods {
    let mut methods: Vec<_> = seed!("pg_am").rows().map(|r| (r.oid("oid"), r.str("amname"))).collect();
    methods.push((MEMORY, "memory"));
    let mut all = AccessMethods::new(methods);
    let (mut operators, mut functions) = (operators(), functions());
    for r in seed!("pg_opfamily").rows().chain(seed!("extension/pg_opfamily").rows()) {
        let oid = r.oid("oid");
        all.add_family(Arc::new(OperatorFamily {
            oid,
            name: r.text("opfname"),
            namespace: PG_CATALOG,
            owner: POSTGRES_ROLE,
            method: r.oid("opfmethod"),
            operators: operators.remove(&oid).unwrap_or_default(),
            functions: functions.remove(&oid).unwrap_or_default(),
        }));
    }
    for r in seed!("pg_opclass").rows().chain(seed!("extension/pg_opclass").rows()) {
        all.add_class(Arc::new(OperatorClass {
            oid: r.oid("oid"),
            name: r.text("opcname"),
            namespace: PG_CATALOG,
            owner: POSTGRES_ROLE,
            method: r.oid("opcmethod"),
            family: r.oid("opcfamily"),
            input_type: r.oid("opcintype"),
            is_default: r.bool("opcdefault"),
            key_type: r.oid("opckeytype"),
        }));
    }
    all
}

/// By family.
fn operators() -> HashMap<Oid, Vec<FamilyOperator>> {
    let mut all: HashMap<Oid, Vec<FamilyOperator>> = HashMap::new();
    for r in seed!("pg_amop").rows().chain(seed!("extension/pg_amop").rows()) {
        all.entry(r.oid("amopfamily")).or_default().push(FamilyOperator {
            oid: r.oid("oid"),
            left: r.oid("amoplefttype"),
            right: r.oid("amoprighttype"),
            strategy: r.number("amopstrategy"),
            operator: r.oid("amopopr"),
            ordering: r.char("amoppurpose") == b'o',
            sort_family: r.oid("amopsortfamily"),
            class: Oid::INVALID,
        });
    }
    all
}

/// By family.
fn functions() -> HashMap<Oid, Vec<FamilyFunction>> {
    let mut all: HashMap<Oid, Vec<FamilyFunction>> = HashMap::new();
    for r in seed!("pg_amproc").rows().chain(seed!("extension/pg_amproc").rows()) {
        all.entry(r.oid("amprocfamily")).or_default().push(FamilyFunction {
            oid: r.oid("oid"),
            left: r.oid("amproclefttype"),
            right: r.oid("amprocrighttype"),
            number: r.number("amprocnum"),
            function: r.oid("amproc"),
            class: Oid::INVALID,
        });
    }
    all
}
