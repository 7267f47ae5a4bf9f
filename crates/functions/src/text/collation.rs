//! The collation of a call.

use std::sync::Arc;

use melba_collation::{Collator, Occurrences};
use melba_fmgr::CallInfo;
use melba_types::collate::Collate;
use melba_types::{DbError, Result, err};

/// The order by which a call compares texts; `None`: that of bytes.
///
/// # Errors
/// 42P22 when the collations of its operands conflict. `purpose`: what needs one.
pub fn collator<'c>(call: &'c CallInfo<'_>, purpose: &str) -> Result<Option<&'c Arc<Collator>>> {
    if !call.collation.is_valid() {
        return Err(err!(INDETERMINATE_COLLATION, "could not determine which collation to use for {purpose}")
            .hint("Use the COLLATE clause to set the collation explicitly."));
    }
    Ok(call.session.catalog().collator(call.collation))
}

/// The collation of a call, if it has different texts equal.
pub fn nondeterministic<'c>(call: &'c CallInfo<'_>) -> Option<&'c Collator> {
    call.session.catalog().collator(call.collation).map(|c| &**c).filter(|c| !c.is_deterministic())
}

/// # Errors
/// 0A000 for a collation that has different texts equal.
pub fn refuse_nondeterministic(call: &CallInfo<'_>, purpose: &str) -> Result<()> {
    match nondeterministic(call) {
        Some(_) => Err(DbError::new(
            melba_types::SqlState::FEATURE_NOT_SUPPORTED,
            format!("nondeterministic collations are not supported for {purpose}"),
        )),
        None => Ok(()),
    }
}

/// The fields between parts of a text.
pub fn fields_between<'s>(parts: Occurrences<'_>, s: &'s str) -> Result<Vec<&'s str>> {
    let (mut fields, mut start) = (Vec::new(), 0);
    for part in parts {
        let (at, end) = part?;
        fields.push(&s[start..at]);
        start = end;
    }
    fields.push(&s[start..]);
    Ok(fields)
}
