//! Functions over the catalog: definitions of objects, visibility, comments, privileges.

mod acl_item;
mod collations;
mod comments;
mod definitions;
mod file_nodes;
mod index_properties;
mod information_schema;
mod partition_constraint;
mod partitions;
mod privileges;
mod sizes;
mod statistics;
mod statistics_import;
mod visibility;

use melba_fmgr::{CallInfo, ScalarFn, SetFn};
use melba_types::{Datum, Oid};

/// The scalar functions of the folder.
pub const TABLES: &[&[(&str, ScalarFn)]] = &[
    acl_item::FUNCTIONS,
    collations::FUNCTIONS,
    comments::FUNCTIONS,
    definitions::FUNCTIONS,
    file_nodes::FUNCTIONS,
    index_properties::FUNCTIONS,
    information_schema::FUNCTIONS,
    partitions::FUNCTIONS,
    privileges::FUNCTIONS,
    sizes::FUNCTIONS,
    statistics::FUNCTIONS,
    statistics_import::FUNCTIONS,
    visibility::FUNCTIONS,
];

/// Set-returning functions.
pub const SETS: &[(&str, SetFn)] = &[
    ("aclexplode", privileges::acl_explode),
    ("pg_stats_ext_mcvlist_items", statistics::mcv_list_items),
    ("pg_options_to_table", definitions::options_to_table),
    ("pg_partition_ancestors", partitions::partition_ancestors),
    ("pg_partition_tree", partitions::partition_tree),
    // Features that Melba does not have list nothing: extensions to install, replication slots and origins, shared memory and I/O queues
    // of PostgreSQL's kind.
    ("pg_available_extensions", nothing),
    ("pg_available_extension_versions", nothing),
    ("pg_get_aios", nothing),
    ("pg_get_replication_slots", nothing),
    ("pg_show_replication_origin_status", nothing),
    ("pg_get_shmem_allocations", nothing),
];

fn nothing(
    _: &CallInfo<'_>,
    _: &[Datum],
) -> melba_types::Result<Box<dyn Iterator<Item = melba_types::Result<Vec<Datum>>> + Send>> {
    Ok(Box::new(std::iter::empty()))
}

pub use acl_item::TYPES;
pub use statistics::TYPES as STATISTICS_TYPES;

fn oid_argument(args: &[Datum], at: usize) -> Oid {
    Oid(args[at].as_oid())
}

/// The role that the session acts as.
fn current_role(call: &CallInfo<'_>) -> melba_types::Result<Oid> {
    let name = call.session.system_function("current_user", call, &[])?;
    Ok(call.session.catalog().role_by_name(name.as_str()).map_or(Oid::INVALID, |r| r.oid))
}

#[cfg(test)]
mod tests;
