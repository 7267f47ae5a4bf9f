//! Literals.

use std::borrow::Cow;
use std::sync::Arc;

use melba_fmgr::io;
use melba_tree::Const;
use melba_types::{Array, Datum, Oid, oids};

use super::{Masked, Printer};

/// When a literal's type is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ShowType {
    Never,
    AsNeeded,
    Always,
}

/// Whether values of a type are objects that users can rename.
fn names_object(ty: Oid) -> bool {
    use oids::*;
    [
        REGPROC,
        REGPROCEDURE,
        REGOPER,
        REGOPERATOR,
        REGCLASS,
        REGTYPE,
        REGCOLLATION,
        REGNAMESPACE,
        REGROLE,
        REGCONFIG,
        REGDICTIONARY,
    ]
    .contains(&ty)
}

pub(super) fn constant(printer: &mut Printer<'_>, c: &Const, show: ShowType) {
    if printer.masked != Masked::Nothing {
        return printer.mask(c.ty);
    }
    if c.value.is_null() {
        printer.put("NULL");
        if show != ShowType::Never {
            let ty = printer.type_name(c.ty, c.typmod);
            printer.put(&format!("::{ty}"));
            collation_suffix(printer, c);
        }
        return;
    }
    let mut text = Vec::new();
    let (ty, value) = written_as(printer, c);
    if io::text_out(printer.session, ty, &value, &mut text).is_err() {
        text = b"?".to_vec();
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut labelled = true;
    match (c.ty, &c.value) {
        (oids::INT4, Datum::Int4(v)) if *v >= 0 => {
            printer.put(&text);
            labelled = false;
        }
        (oids::NUMERIC, _) if text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(['e', 'E', '.']) => {
            printer.put(&text);
            labelled = c.typmod >= 0;
        }
        (oids::BOOL, Datum::Bool(v)) => {
            printer.put(if *v { "true" } else { "false" });
            labelled = false;
        }
        (oids::UNKNOWN, _) => {
            printer.literal(&text);
            labelled = false;
        }
        _ => printer.literal(&text),
    }
    if show == ShowType::Always || labelled && show == ShowType::AsNeeded {
        let ty = printer.type_name(c.ty, c.typmod);
        printer.put(&format!("::{ty}"));
        collation_suffix(printer, c);
    }
}

/// The value that a literal is the output of, and its type.
fn written_as<'c>(printer: &Printer<'_>, c: &'c Const) -> (Oid, Cow<'c, Datum>) {
    match &c.value {
        Datum::Oid(_) if printer.oids && names_object(c.ty) => (oids::OID, Cow::Borrowed(&c.value)),
        Datum::Array(array) if printer.oids && names_object(array.element_type) => {
            let numbers = Array { element_type: oids::OID, ..(**array).clone() };
            (oids::OID_ARRAY, Cow::Owned(Datum::Array(Arc::new(numbers))))
        }
        _ => (c.ty, Cow::Borrowed(&c.value)),
    }
}

/// A literal of a collation that is not its type's.
fn collation_suffix(printer: &mut Printer<'_>, c: &Const) {
    let of_type = printer.catalog.type_(c.ty).map(|t| t.collation);
    if c.collation.is_valid() && of_type != Some(c.collation) {
        printer.put(" COLLATE ");
        printer.collation_name(c.collation);
    }
}
