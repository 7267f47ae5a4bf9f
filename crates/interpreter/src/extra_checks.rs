//! The checks of plpgsql.extra_errors and plpgsql.extra_warnings.

use melba_fmgr::Session as _;
use melba_settings::split_identifiers;
use melba_statement::context::StatementContext;
use melba_types::{DbError, Result, Severity, err};

use super::frame::Frame;
use super::misuse::misuse;

/// The setting that demands a check, and whether what it finds is an error.
pub fn demanded(context: &StatementContext, check: &str) -> Option<(&'static str, Severity)> {
    [("extra_errors", Severity::Error), ("extra_warnings", Severity::Warning)].into_iter().find(|(setting, _)| {
        let text = context.setting(&format!("plpgsql.{setting}")).unwrap_or_default();
        let names = |word: &String| word.eq_ignore_ascii_case(check) || word.eq_ignore_ascii_case("all");
        &*text != "none" && split_identifiers(&text).iter().any(names)
    })
}

/// Raises what a check has found, as an error or a warning.
///
/// # Errors
/// `found`, where it is to be an error.
pub fn report(frame: &Frame<'_>, found: DbError, severity: Severity) -> Result<()> {
    match severity {
        Severity::Error => Err(found),
        _ => {
            frame.context.session.warning(found.within(frame.place(frame.line, frame.statement)));
            Ok(())
        }
    }
}

/// strict_multi_assignment: as many targets as values.
///
/// # Errors
/// 42804 where the check is one for errors.
pub fn check_count(frame: &Frame<'_>, values: usize, targets: usize) -> Result<()> {
    const CHECK: &str = "strict_multi_assignment";
    if values == targets {
        return Ok(());
    }
    let Some((setting, severity)) = demanded(&frame.context, CHECK) else { return Ok(()) };
    let found = err!(DATATYPE_MISMATCH, "number of source and target fields in assignment does not match")
        .detail(format!("{CHECK} check of {setting} is active."))
        .hint("Make sure the query returns the exact list of columns.");
    report(frame, misuse(found), severity)
}
