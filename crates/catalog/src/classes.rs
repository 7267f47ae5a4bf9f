//! OIDs of the system relations that have the rows of objects, and of a few built-in objects that code refers to.

use melba_types::Oid;

pub const PG_DEFAULT_ACL: Oid = Oid(826);
pub const PG_TABLESPACE: Oid = Oid(1213);
pub const PG_TYPE: Oid = Oid(1247);
pub const PG_DB_ROLE_SETTING: Oid = Oid(2964);
pub const PG_ATTRIBUTE: Oid = Oid(1249);
pub const PG_PROC: Oid = Oid(1255);
pub const PG_CLASS: Oid = Oid(1259);
pub const PG_AUTHID: Oid = Oid(1260);
pub const PG_DATABASE: Oid = Oid(1262);
pub const PG_AUTH_MEMBERS: Oid = Oid(1261);
pub const PG_FOREIGN_SERVER: Oid = Oid(1417);
pub const PG_FOREIGN_TABLE: Oid = Oid(3118);
pub const PG_USER_MAPPING: Oid = Oid(1418);
pub const PG_FOREIGN_DATA_WRAPPER: Oid = Oid(2328);
pub const PG_AM: Oid = Oid(2601);
pub const PG_AMOP: Oid = Oid(2602);
pub const PG_AMPROC: Oid = Oid(2603);
pub const PG_ATTRDEF: Oid = Oid(2604);
pub const PG_CAST: Oid = Oid(2605);
pub const PG_CONSTRAINT: Oid = Oid(2606);
pub const PG_CONVERSION: Oid = Oid(2607);
pub const PG_DESCRIPTION: Oid = Oid(2609);
pub const PG_LANGUAGE: Oid = Oid(2612);
pub const PG_LARGEOBJECT: Oid = Oid(2613);
pub const PG_NAMESPACE: Oid = Oid(2615);
pub const PG_OPCLASS: Oid = Oid(2616);
pub const PG_OPERATOR: Oid = Oid(2617);
pub const PG_REWRITE: Oid = Oid(2618);
pub const PG_TRIGGER: Oid = Oid(2620);
pub const PG_POLICY: Oid = Oid(3256);
pub const PG_OPFAMILY: Oid = Oid(2753);
pub const PG_EXTENSION: Oid = Oid(3079);
pub const PG_LARGEOBJECT_METADATA: Oid = Oid(2995);
pub const PG_COLLATION: Oid = Oid(3456);
pub const PG_STATISTIC_EXT: Oid = Oid(3381);
pub const PG_EVENT_TRIGGER: Oid = Oid(3466);
pub const PG_TRANSFORM: Oid = Oid(3576);
pub const PG_TS_DICT: Oid = Oid(3600);
pub const PG_TS_PARSER: Oid = Oid(3601);
pub const PG_TS_CONFIG: Oid = Oid(3602);
pub const PG_TS_TEMPLATE: Oid = Oid(3764);
pub const PG_SUBSCRIPTION: Oid = Oid(6100);
pub const PG_PUBLICATION: Oid = Oid(6104);
pub const PG_PUBLICATION_REL: Oid = Oid(6106);
pub const PG_PUBLICATION_NAMESPACE: Oid = Oid(6237);
pub const PG_PARAMETER_ACL: Oid = Oid(6243);

/// Namespaces.
pub const PG_CATALOG: Oid = Oid(11);
pub const PG_TOAST: Oid = Oid(99);
pub const PUBLIC: Oid = Oid(2200);

/// Access methods.
pub const HEAP: Oid = Oid(2);
pub const BTREE: Oid = Oid(403);
pub const HASH: Oid = Oid(405);
pub const GIST: Oid = Oid(783);
pub const GIN: Oid = Oid(2742);
pub const BRIN: Oid = Oid(3580);
/// Melba's own: tables whose rows never touch the disk.
pub const MEMORY: Oid = Oid(9900);

/// The role whose members may run CHECKPOINT.
pub const PG_CHECKPOINT: Oid = Oid(4544);
/// The superuser that every cluster starts with.
pub const POSTGRES_ROLE: Oid = Oid(10);
/// The database that every cluster starts with.
pub const POSTGRES_DATABASE: Oid = Oid(5);

/// Languages.
pub const INTERNAL_LANGUAGE: Oid = Oid(12);
pub const C_LANGUAGE: Oid = Oid(13);
pub const SQL_LANGUAGE: Oid = Oid(14);
pub const PLPGSQL_LANGUAGE: Oid = Oid(13682);

/// Whether functions of a language are texts that users wrote, rather than names of built-in functions.
pub fn is_written_language(language: Oid) -> bool {
    !matches!(language, INTERNAL_LANGUAGE | C_LANGUAGE)
}

/// Collations.
pub const DEFAULT_COLLATION: Oid = Oid(100);
pub const C_COLLATION: Oid = Oid(950);
pub const UNICODE_FAST_COLLATION: Oid = Oid(6411);

/// The first OID of objects that users create.
pub const FIRST_USER_OID: u32 = 16384;
/// The first OID of the members of extensions, which are the same in every database; none is assigned from here to `Oid::TOAST`.
pub const FIRST_EXTENSION_OID: u32 = 0x7fff_0000;

/// Whether all databases share the objects of a class.
pub(crate) fn is_shared(class: Oid) -> bool {
    [PG_AUTHID, PG_DATABASE, PG_DB_ROLE_SETTING, PG_PARAMETER_ACL, PG_TABLESPACE].contains(&class)
}
