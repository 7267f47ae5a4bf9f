//! Regular expressions of names with a leading slash, by PostgreSQL's rules.

use melba_regexp::{Flags, Regexp};

/// # Errors
/// PostgreSQL's reason for an invalid pattern.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    Regexp::get(pattern, Flags::default()).map(|_| ()).map_err(|e| {
        let reason = e.message().strip_prefix("invalid regular expression: ").unwrap_or(e.message());
        format!("invalid regular expression \"{pattern}\": {reason}")
    })
}

/// Whether the text has a match. An undecidable pattern does not match.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    Regexp::get(pattern, Flags::default()).and_then(|regexp| regexp.is_match(text)).unwrap_or(false)
}

/// The first match's first group, which may be missing; `None` without a match.
pub(super) fn first_group<'t>(pattern: &str, text: &'t str) -> Option<Option<&'t str>> {
    let regexp = Regexp::get(pattern, Flags::default()).ok()?;
    let captures = regexp.captures_at(text, 0).ok()??;
    Some(captures.get(1).cloned().flatten().map(|range| &text[range]))
}
