//! Literals.

use std::borrow::Cow;
use std::sync::Arc;

use melba_fmgr::io;
use melba_types::{Array, Datum, Oid, oids};

use super::{Masked, Printer};
use melba_tree::Const;

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

impl Printer<'_> {
    pub(super) fn constant(&mut self, c: &Const, show: ShowType) {
        if self.masked != Masked::Nothing {
            return self.mask(c.ty);
        }
        if c.value.is_null() {
            self.put("NULL");
            if show != ShowType::Never {
                let ty = self.type_name(c.ty, c.typmod);
                self.put(&format!("::{ty}"));
                self.collation_suffix(c);
            }
            return;
        }
        let mut text = Vec::new();
        let (ty, value) = self.written_as(c);
        if io::text_out(self.session, ty, &value, &mut text).is_err() {
            text = b"?".to_vec();
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut labelled = true;
        match (c.ty, &c.value) {
            (oids::INT4, Datum::Int4(v)) if *v >= 0 => {
                self.put(&text);
                labelled = false;
            }
            (oids::NUMERIC, _) if text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(['e', 'E', '.']) => {
                self.put(&text);
                labelled = c.typmod >= 0;
            }
            (oids::BOOL, Datum::Bool(v)) => {
                self.put(if *v { "true" } else { "false" });
                labelled = false;
            }
            (oids::UNKNOWN, _) => {
                self.literal(&text);
                labelled = false;
            }
            _ => self.literal(&text),
        }
        if show == ShowType::Always || labelled && show == ShowType::AsNeeded {
            let ty = self.type_name(c.ty, c.typmod);
            self.put(&format!("::{ty}"));
            self.collation_suffix(c);
        }
    }

    /// The value that a literal is the output of, and its type.
    fn written_as<'c>(&self, c: &'c Const) -> (Oid, Cow<'c, Datum>) {
        match &c.value {
            Datum::Oid(_) if self.oids && names_object(c.ty) => (oids::OID, Cow::Borrowed(&c.value)),
            Datum::Array(array) if self.oids && names_object(array.element_type) => {
                let numbers = Array { element_type: oids::OID, ..(**array).clone() };
                (oids::OID_ARRAY, Cow::Owned(Datum::Array(Arc::new(numbers))))
            }
            _ => (c.ty, Cow::Borrowed(&c.value)),
        }
    }

    /// A literal of a collation that is not its type's.
    fn collation_suffix(&mut self, c: &Const) {
        let of_type = self.catalog.type_(c.ty).map(|t| t.collation);
        if c.collation.is_valid() && of_type != Some(c.collation) {
            self.put(" COLLATE ");
            self.collation_name(c.collation);
        }
    }
}
