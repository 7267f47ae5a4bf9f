//! The catalog: the objects of a database. Immutable snapshots, replaced as a whole when a transaction with DDL commits.
//!
//! A `Catalog` holds the built-in objects (PostgreSQL's own, with PostgreSQL's OIDs, from `seed/`) and the objects that users
//! created, which the engine stores in a separate table tree. The system relations (pg_class, pg_attribute, ...) are computed
//! from it (`relations/`, one file per system relation) and read by the executor like any other relation.
//!
//! Invariants:
//! 1. A snapshot never changes. A transaction's DDL works on a private snapshot (`Catalog::with`), which its commit turns
//!    into object changes on top of the newest committed one.
//! 2. Names resolve here and nowhere else; every object is referred to by OID above this crate.
//! 3. Snapshots share what did not change: the cost of `Catalog::with` is proportional to the change, not to the catalog.

pub mod acl;
mod addresses;
mod aggregates;
mod builtin;
mod builtin_comments;
pub mod classes;
mod cluster;
mod codec;
pub mod default_privileges;
pub mod definitions;
mod depend;
pub mod derived;
pub mod detaching;
pub mod event_triggers;
pub mod extended_statistics;
pub mod families;
pub mod foreign;
pub mod foreign_keys;
pub mod granted;
pub mod grants;
pub mod identity;
mod index_lists;
mod inheritance;
mod layered;
pub mod memberships;
mod naming;
pub mod objects;
mod operator_families;
mod operators;
mod partitioning;
mod placement;
pub mod plain;
pub mod privileges;
pub mod publications;
mod radix;
pub mod regs;
mod relation_kind;
pub mod relations;
pub mod role_uses;
pub mod row_security;
pub mod rules;
mod seed;
mod snapshot;
pub mod text_search;
pub mod text_search_options;
mod toast;
mod triggers;
mod views;

pub use builtin::{CatalogForeignKey, ExtensionDefinition, PLPGSQL, available_extensions, catalog_foreign_keys};
pub use cluster::ClusterCatalog;
pub use codec::{KEY_BYTES, StoredChange, decode_change, decode_mcv_list, encode_change, encode_mcv_list};
pub use depend::{Dependency, DependencyKind, dependencies, is_range_constructor};
pub use layered::Named;
pub use naming::{KeywordClass, format_type_modifier, keyword_class, keywords, quote_ident, quote_literal};
pub use objects::*;
pub use operator_families::{AccessMethods, OperatorFamilyMember};
pub use operators::{TypeOperators, TypeOrder};
pub use regs::{NameScope, parse_qualified_name, truncate};
pub use row_security::{RowSecurity, policy_commands};
pub use rules::{VIEW_RULE, rule_events};
pub use snapshot::{Catalog, ObjectChange};
pub use triggers::{FIRES_ON_ORIGIN, fires, trigger_events};
