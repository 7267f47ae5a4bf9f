//! Statistics objects (CREATE STATISTICS), with the data that ANALYZE has collected for them.

use std::fmt::Write;
use std::sync::Arc;

use melba_types::Oid;

use crate::objects::{ObjectAddress, Relation};
use crate::snapshot::Catalog;

/// The letters of pg_statistic_ext.stxkind.
pub mod statistics_kinds {
    pub const NDISTINCT: u8 = b'd';
    pub const DEPENDENCIES: u8 = b'f';
    pub const MCV: u8 = b'm';
    pub const EXPRESSIONS: u8 = b'e';
}

/// A row of pg_statistic_ext, with its rows of pg_statistic_ext_data.
#[derive(Clone, Debug)]
pub struct ExtendedStatistics {
    pub oid: Oid,
    pub name: Arc<str>,
    pub namespace: Oid,
    pub owner: Oid,
    pub table: Oid,
    /// Numbers of columns, in order.
    pub columns: Vec<i16>,
    pub expressions: Vec<Arc<str>>,
    /// `statistics_kinds`, in the order of pg_statistic_ext.stxkind.
    pub kinds: Vec<u8>,
    /// SET STATISTICS; `None`: default_statistics_target.
    pub target: Option<i16>,
    /// The objects that the expressions mention, columns of the table among them.
    pub depends_on: Vec<ObjectAddress>,
    pub data: Vec<StatisticsData>,
}

/// What ANALYZE found. Dimensions are numbers of columns, or -1, -2, ... for the expressions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatisticsData {
    /// Rows of children are among those that were read.
    pub inherited: bool,
    /// The number of distinct combinations of dimensions.
    pub ndistinct: Vec<(Vec<i16>, u64)>,
    /// The share of rows in which all dimensions but the last determine the last.
    pub dependencies: Vec<(Vec<i16>, f64)>,
    /// The most common combinations, most common first.
    pub mcv: Vec<McvItem>,
}

/// An item of a most-common-values list.
#[derive(Clone, Debug, PartialEq)]
pub struct McvItem {
    /// By dimension; `None`: NULL.
    pub values: Vec<Option<Arc<str>>>,
    /// The share of rows with this combination.
    pub frequency: f64,
    /// The share it would have if the dimensions were independent.
    pub base_frequency: f64,
}

impl StatisticsData {
    /// The text of a pg_ndistinct, as PostgreSQL 18 prints it.
    pub fn ndistinct_text(&self) -> String {
        let items = self.ndistinct.iter().map(|(dimensions, count)| format!("\"{}\": {count}", list(dimensions)));
        format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
    }

    /// The text of a pg_dependencies, as PostgreSQL 18 prints it.
    pub fn dependencies_text(&self) -> String {
        let mut out = String::new();
        for (dimensions, degree) in &self.dependencies {
            let Some((last, first)) = dimensions.split_last() else { continue };
            let comma = if out.is_empty() { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(out, "{comma}\"{} => {last}\": {degree:.6}", list(first));
        }
        format!("{{{out}}}")
    }
}

fn list(dimensions: &[i16]) -> String {
    dimensions.iter().map(i16::to_string).collect::<Vec<_>>().join(", ")
}

/// The statistics objects of a table, by OID.
pub fn statistics_of(catalog: &Catalog, table: Oid) -> Vec<&Arc<ExtendedStatistics>> {
    let address = ObjectAddress { class: crate::classes::PG_CLASS, object: table, sub: 0 };
    let mut oids: Vec<Oid> = catalog
        .dependents(address)
        .map(|d| d.dependent)
        .filter(|d| d.class == crate::classes::PG_STATISTIC_EXT)
        .map(|d| d.object)
        .collect();
    oids.dedup();
    let found = oids.into_iter().filter_map(|oid| catalog.statistics_object(oid));
    found.filter(|s| s.table == table).collect()
}

/// Whether a bare name finds a statistics object; those of temporary schemas are not searched.
pub fn statistics_are_visible(catalog: &Catalog, statistics: &ExtendedStatistics, path: &[Oid]) -> bool {
    let is_temporary = |n: &&Oid| catalog.namespace(**n).is_some_and(|n| n.name.starts_with("pg_temp_"));
    let found = path.iter().filter(|n| !is_temporary(n)).find_map(|n| catalog.statistics_object_by_name(*n, &statistics.name));
    found.is_some_and(|s| s.oid == statistics.oid)
}

/// The names of a statistics object's columns.
pub fn statistics_columns<'a>(statistics: &'a ExtendedStatistics, table: &'a Relation) -> impl Iterator<Item = &'a Arc<str>> {
    let column = |number: &i16| table.columns.get(usize::try_from(*number - 1).ok()?);
    statistics.columns.iter().filter_map(column).map(|c| &c.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_as_postgresql_prints_them() {
        let data = StatisticsData {
            ndistinct: vec![(vec![3, 4], 11), (vec![3, -1], 5)],
            dependencies: vec![(vec![3, 4], 1.0), (vec![3, 4, -1], 0.25)],
            ..StatisticsData::default()
        };
        assert_eq!(data.ndistinct_text(), r#"{"3, 4": 11, "3, -1": 5}"#);
        assert_eq!(data.dependencies_text(), r#"{"3 => 4": 1.000000, "3, 4 => -1": 0.250000}"#);
    }
}
