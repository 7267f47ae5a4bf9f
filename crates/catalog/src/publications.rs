//! Publications, and the tables and schemas that belong to them.

use std::sync::Arc;

use melba_types::Oid;

use crate::classes;
use crate::objects::*;
use crate::snapshot::Catalog;

/// A row of pg_publication.
#[derive(Clone, Debug)]
pub struct Publication {
    pub oid: Oid,
    pub name: Arc<str>,
    pub owner: Oid,
    pub all_tables: bool,
    /// Which operations are published: letters of `ALL_OPERATIONS`. They are for subscribers, of which there are none.
    pub operations: Arc<str>,
    pub via_root: bool,
    /// pg_publication.pubgencols.
    pub generated: u8,
    /// Its format, location and the like: `name=value`, by name.
    pub options: Vec<Arc<str>>,
}

/// Insert, update, delete, truncate.
pub const ALL_OPERATIONS: &str = "iudt";

/// A table or a schema that belongs to a publication: a row of pg_publication_rel or pg_publication_namespace.
#[derive(Clone, Debug)]
pub struct PublicationMember {
    pub oid: Oid,
    pub publication: Oid,
    /// pg_class or pg_namespace.
    pub class: Oid,
    pub object: Oid,
}

impl Publication {
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }
}

impl PublicationMember {
    pub fn address(&self) -> ObjectAddress {
        let class = if self.class == classes::PG_CLASS { classes::PG_PUBLICATION_REL } else { classes::PG_PUBLICATION_NAMESPACE };
        ObjectAddress { class, object: self.oid, sub: 0 }
    }
}

/// Whether a publication can have a table's rows: not of system, temporary and unlogged ones.
pub fn is_publishable(catalog: &Catalog, relation: &Relation) -> bool {
    matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable)
        && relation.oid.0 >= classes::FIRST_USER_OID
        && relation.persistence == Persistence::Permanent
        && catalog.namespace(relation.namespace).is_some_and(|n| !n.name.starts_with("pg_temp"))
}

pub fn publication(catalog: &Catalog, oid: Oid) -> Option<&Arc<Publication>> {
    catalog.publications.get(oid)
}

pub fn publication_by_name<'a>(catalog: &'a Catalog, name: &str) -> Option<&'a Arc<Publication>> {
    let oid = catalog.publications.named(Oid::INVALID, name).next()?.oid;
    catalog.publications.get(oid)
}

/// In OID order.
pub fn publications(catalog: &Catalog) -> impl Iterator<Item = &Arc<Publication>> {
    catalog.publications.iter()
}

pub fn publication_member(catalog: &Catalog, oid: Oid) -> Option<&Arc<PublicationMember>> {
    catalog.publication_members.get(oid)
}

/// In OID order.
pub fn publication_members(catalog: &Catalog) -> impl Iterator<Item = &Arc<PublicationMember>> {
    catalog.publication_members.iter()
}

/// The tables that a publication has the rows of, in the order of their OIDs: of a partitioned table, its partitions.
pub fn published_tables(catalog: &Catalog, publication: &Publication) -> Vec<Arc<Relation>> {
    let members: Vec<_> = publication_members(catalog).filter(|m| m.publication == publication.oid).collect();
    let has = |class: Oid, object: Oid| members.iter().any(|m| (m.class, m.object) == (class, object));
    let mut named: Vec<Oid> = members.iter().filter(|m| m.class == classes::PG_CLASS).map(|m| m.object).collect();
    // Tables that inherit are members themselves.
    let is_divided = |table: &&Oid| catalog.relation(**table).is_some_and(|r| r.kind == RelationKind::PartitionedTable);
    let parts: Vec<Oid> = named.iter().filter(is_divided).flat_map(|table| catalog.descendants(*table)).collect();
    named.extend(parts);
    let is_published = |r: &Relation| publication.all_tables || has(classes::PG_NAMESPACE, r.namespace) || named.contains(&r.oid);
    let all = catalog.user_relations();
    let wanted = all.filter(|r| r.kind == RelationKind::Table && is_publishable(catalog, r) && is_published(r));
    let mut tables: Vec<Arc<Relation>> = wanted.cloned().collect();
    tables.sort_by_key(|table| table.oid);
    tables
}

/// A span of time such as `10s` or `1 d`, in microseconds.
pub fn parse_span(text: &str) -> Option<i64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit: i64 = match unit.trim() {
        "ms" => 1000,
        "" | "s" => 1_000_000,
        "min" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units() {
        assert_eq!((parse_span("10s"), parse_span(" 2 d "), parse_span("0")), (Some(10_000_000), Some(172_800_000_000), Some(0)));
        assert!(
            [parse_span("s"), parse_span("1 week"), parse_span("-1s"), parse_span("9999999999999d")].iter().all(Option::is_none)
        );
    }
}
