//! A large object beside its bytes: owner, privileges, size. A row of the metadata tree.

use std::sync::Arc;

use melba_catalog::{Acl, AclItem};
use melba_types::{Column, Datum, Oid};

/// Bytes of a privilege list's item: grantee u32, grantor u32, privileges u64, little-endian.
const ACL_ITEM_BYTES: usize = 16;

/// An object without its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    pub owner: Oid,
    pub acl: Acl,
    /// Where the last byte ends.
    pub size: i64,
}

impl Metadata {
    /// The row of the metadata tree.
    pub fn row(&self) -> [Datum; 3] {
        let acl = self.acl.as_ref().map_or(Datum::Null, |items| {
            let mut bytes = Vec::with_capacity(items.len() * ACL_ITEM_BYTES);
            for item in items.iter() {
                bytes.extend_from_slice(&item.grantee.0.to_le_bytes());
                bytes.extend_from_slice(&item.grantor.0.to_le_bytes());
                bytes.extend_from_slice(&item.privileges.to_le_bytes());
            }
            Datum::bytes(bytes)
        });
        [Datum::Oid(self.owner.0), acl, Datum::Int8(self.size)]
    }

    /// The metadata in row `row` of the metadata tree's columns.
    pub fn of_row(columns: &[Column], row: usize) -> Metadata {
        Metadata::of_values(&[columns[0].get(row), columns[1].get(row), columns[2].get(row)])
    }

    pub fn of_values(values: &[Datum; 3]) -> Metadata {
        Metadata { owner: Oid(values[0].as_oid()), acl: acl_of(&values[1]), size: values[2].as_i64() }
    }
}

/// The privilege list that a value of the second column holds.
pub fn acl_of(value: &Datum) -> Acl {
    let Datum::Bytes(bytes) = value else { return None };
    let item = |b: &[u8]| AclItem {
        grantee: Oid(u32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        grantor: Oid(u32::from_le_bytes([b[4], b[5], b[6], b[7]])),
        privileges: u64::from_le_bytes([b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]]),
    };
    let items: Arc<[AclItem]> = bytes.chunks_exact(ACL_ITEM_BYTES).map(item).collect();
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_back() {
        let item = AclItem { grantee: Oid::INVALID, grantor: Oid(10), privileges: 1 << 33 | 2 };
        for acl in [None, Some([].into()), Some([item].into())] {
            let metadata = Metadata { owner: Oid(16384), acl, size: 5_000_000_000 };
            assert_eq!(Metadata::of_values(&metadata.row()), metadata);
        }
    }
}
