//! The reg types: OIDs that are read and written as names. The catalog knows the names.

use melba_types::{Datum, Oid, Result, SqlState, oids};

use crate::io::{self, TypeContext, TypeIo};
use crate::{CallContext, ScalarFn};

const REG: TypeIo = TypeIo {
    input: |c, s| c.session.catalog().reg_input(c.type_oid, s, &c.session.search_path()).map(|oid| Datum::Oid(oid.0)),
    output: |c, v, out| {
        let text = c.session.catalog().reg_output(c.type_oid, Oid(v.as_oid()), &c.session.search_path());
        out.extend_from_slice(text.as_bytes());
        Ok(())
    },
    receive: |_, b| Ok(Datum::Oid(u32::from_be_bytes(io::fixed(b)?))),
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
fn to_reg(call: &CallContext<'_>, a: &[Datum], ty: Oid) -> Result<Datum> {
    match call.session.catalog().reg_input(ty, a[0].as_str(), &call.session.search_path()) {
        Ok(oid) => Ok(Datum::Oid(oid.0)),
        Err(e) if e.sqlstate() == SqlState::SYNTAX_ERROR => Err(e),
        Err(_) => Ok(Datum::Null),
    }
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("text_regclass", |c, a| {
        let oid = c.session.catalog().reg_input(oids::REGCLASS, a[0].as_str(), &c.session.search_path())?;
        Ok(Datum::Oid(oid.0))
    }),
    ("to_regclass", |c, a| to_reg(c, a, oids::REGCLASS)),
    ("to_regtype", |c, a| to_reg(c, a, oids::REGTYPE)),
    ("to_regproc", |c, a| to_reg(c, a, oids::REGPROC)),
    ("to_regprocedure", |c, a| to_reg(c, a, oids::REGPROCEDURE)),
    ("to_regoper", |c, a| to_reg(c, a, oids::REGOPER)),
    ("to_regoperator", |c, a| to_reg(c, a, oids::REGOPERATOR)),
    ("to_regnamespace", |c, a| to_reg(c, a, oids::REGNAMESPACE)),
    ("to_regrole", |c, a| to_reg(c, a, oids::REGROLE)),
    ("to_regcollation", |c, a| to_reg(c, a, oids::REGCOLLATION)),
];
