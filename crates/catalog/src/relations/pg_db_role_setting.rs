//! pg_db_role_setting: ALTER ROLE ... SET and ALTER DATABASE ... SET.

use std::collections::BTreeMap;
use std::sync::Arc;

use melba_types::Oid;

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let mut all: BTreeMap<(Oid, Oid), Vec<Arc<str>>> = BTreeMap::new();
    if !s.catalog.settings_of_all().is_empty() {
        all.insert((Oid::INVALID, Oid::INVALID), s.catalog.settings_of_all().to_vec());
    }
    for database in s.catalog.databases().filter(|d| !d.settings.is_empty()) {
        all.insert((database.oid, Oid::INVALID), database.settings.clone());
    }
    for role in s.catalog.roles() {
        for (database, setting) in &role.settings {
            all.entry((*database, role.oid)).or_default().push(setting.clone());
        }
    }
    for ((database, role), settings) in all {
        push!(out, [oid(database), oid(role), texts_or_null(&settings)]);
    }
}
