//! The reg types: OIDs that are read and written as names. The catalog knows the names.

use melba_catalog::NameScope;
use melba_catalog::regs::parse_type;
use melba_fmgr::{CallInfo, ScalarFn, Session, TypeContext, TypeIo, type_io};
use melba_types::{Datum, Oid, Result, SqlState, oids};

/// The object of a name for a session, as reg type `ty` reads it.
///
/// # Errors
/// Those of `Catalog::reg_input`.
pub fn object_named(session: &dyn Session, ty: Oid, name: &str) -> Result<Oid> {
    within(session, |names| session.catalog().reg_input(ty, name, names))
}

/// The relation of a name for a session.
///
/// # Errors
/// Those of `Catalog::relation_input`.
pub fn relation_named(session: &dyn Session, name: &str) -> Result<Oid> {
    within(session, |names| session.catalog().relation_input(name, names))
}

/// The type of a name for a session.
///
/// # Errors
/// Those of `Catalog::parse_type`.
pub fn type_named(session: &dyn Session, name: &str) -> Result<Oid> {
    within(session, |names| parse_type(session.catalog(), name, names))
}

fn within(session: &dyn Session, find: impl FnOnce(&NameScope<'_>) -> Result<Oid>) -> Result<Oid> {
    let path = session.search_path();
    find(&NameScope { path: &path, user: session.user(), temporary: session.temporary_namespace() })
}

const REG: TypeIo = TypeIo {
    input: |c, s| object_named(c.session, c.type_oid, s).map(|oid| Datum::Oid(oid.0)),
    output: |c, v, out| {
        let text = c.session.catalog().reg_output(c.type_oid, Oid(v.as_oid()), &c.session.search_path());
        out.extend_from_slice(text.as_bytes());
        Ok(())
    },
    receive: |_, b| Ok(Datum::Oid(u32::from_be_bytes(type_io::fixed(b)?))),
    send,
};

fn send(_: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&v.as_oid().to_be_bytes());
    Ok(())
}

pub const TYPES: &[(Oid, TypeIo)] = &[
    (oids::REGPROC, REG),
    (oids::REGPROCEDURE, REG),
    (oids::REGOPER, REG),
    (oids::REGOPERATOR, REG),
    (oids::REGCLASS, REG),
    (oids::REGTYPE, REG),
    (oids::REGCONFIG, REG),
    (oids::REGDICTIONARY, REG),
    (oids::REGNAMESPACE, REG),
    (oids::REGROLE, REG),
    (oids::REGCOLLATION, REG),
];

/// The OID a name stands for, NULL when nothing has it. Text that is no type name at all is an error.
fn to_reg(call: &CallInfo<'_>, a: &[Datum], ty: Oid) -> Result<Datum> {
    match object_named(call.session, ty, a[0].as_str()) {
        Ok(oid) => Ok(Datum::Oid(oid.0)),
        Err(e) if [SqlState::SYNTAX_ERROR, SqlState::INSUFFICIENT_PRIVILEGE].contains(&e.sqlstate()) => Err(e),
        Err(_) => Ok(Datum::Null),
    }
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("text_regclass", |c, a| relation_named(c.session, a[0].as_str()).map(|oid| Datum::Oid(oid.0))),
    ("to_regclass", |c, a| to_reg(c, a, oids::REGCLASS)),
    ("pg_basetype", |c, a| {
        let (catalog, oid) = (c.session.catalog(), Oid(a[0].as_oid()));
        Ok(catalog.type_(oid).map_or(Datum::Null, |_| Datum::Oid(catalog.base_type(oid).0)))
    }),
    ("to_regtype", |c, a| to_reg(c, a, oids::REGTYPE)),
    ("to_regproc", |c, a| to_reg(c, a, oids::REGPROC)),
    ("to_regprocedure", |c, a| to_reg(c, a, oids::REGPROCEDURE)),
    ("to_regoper", |c, a| to_reg(c, a, oids::REGOPER)),
    ("to_regoperator", |c, a| to_reg(c, a, oids::REGOPERATOR)),
    ("to_regnamespace", |c, a| to_reg(c, a, oids::REGNAMESPACE)),
    ("to_regrole", |c, a| to_reg(c, a, oids::REGROLE)),
    ("to_regcollation", |c, a| to_reg(c, a, oids::REGCOLLATION)),
];
