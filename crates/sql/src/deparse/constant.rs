//! Literals.

use melba_functions::io;
use melba_types::{Datum, oids};

use super::Printer;
use crate::tree::Const;

/// When a literal's type is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ShowType {
    Never,
    AsNeeded,
    Always,
}

impl Printer<'_> {
    pub(super) fn constant(&mut self, c: &Const, show: ShowType) {
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
        if io::text_out(self.session, c.ty, &c.value, &mut text).is_err() {
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

    /// A literal of a collation that is not its type's.
    fn collation_suffix(&mut self, c: &Const) {
        let of_type = self.catalog.type_(c.ty).map(|t| t.collation);
        if c.collation.is_valid() && of_type != Some(c.collation) {
            self.put(" COLLATE ");
            self.collation_name(c.collation);
        }
    }
}
