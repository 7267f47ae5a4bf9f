//! The names of conditions in EXCEPTION and RAISE.

use melba_types::SqlState;

/// Names that do not follow from the code's own.
const IRREGULAR: &[(&str, &str)] = &[
    ("L_E_INVALID_SPECIFICATION", "invalid_locator_specification"),
    ("S_E_INVALID_SPECIFICATION", "invalid_savepoint_specification"),
    ("DUPLICATE_PSTATEMENT", "duplicate_prepared_statement"),
    ("INVALID_PSTATEMENT_DEFINITION", "invalid_prepared_statement_definition"),
    ("INVALID_ARGUMENT_FOR_LOG", "invalid_argument_for_logarithm"),
    ("INVALID_ARGUMENT_FOR_NTH_VALUE", "invalid_argument_for_nth_value_function"),
    ("INVALID_ARGUMENT_FOR_NTILE", "invalid_argument_for_ntile_function"),
    ("T_R_INTEGRITY_CONSTRAINT_VIOLATION", "transaction_integrity_constraint_violation"),
];

/// Prefixes of the constants' names that the conditions' names lack.
const PREFIXES: &[&str] = &["WARNING_", "E_R_I_E_", "E_R_E_", "S_R_E_", "T_R_"];

fn is_called(constant: &str, name: &str) -> bool {
    if let Some((_, known)) = IRREGULAR.iter().find(|(c, _)| *c == constant) {
        return *known == name;
    }
    let rest = PREFIXES.iter().find_map(|prefix| constant.strip_prefix(prefix)).unwrap_or(constant);
    rest.eq_ignore_ascii_case(name) || constant.eq_ignore_ascii_case(name)
}

/// The SQLSTATEs of a condition's name; several have the same.
pub fn by_name(name: &str) -> impl Iterator<Item = SqlState> {
    let lower = !name.bytes().any(|b| b.is_ascii_uppercase());
    let all = SqlState::ALL.iter().filter(move |_| lower);
    all.filter(move |(constant, state)| *state != SqlState::SUCCESSFUL_COMPLETION && is_called(constant, name))
        .map(|(_, state)| *state)
}

/// The SQLSTATE that five digits and upper-case letters stand for.
pub fn by_code(code: &str) -> Option<SqlState> {
    let bytes: [u8; 5] = code.as_bytes().try_into().ok()?;
    bytes.iter().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()).then_some(SqlState(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_found_by_name() {
        let codes = |name: &str| by_name(name).map(|s| s.to_string()).collect::<Vec<_>>();
        assert_eq!(codes("division_by_zero"), ["22012"]);
        assert_eq!(codes("serialization_failure"), ["40001"]);
        assert_eq!(codes("string_data_right_truncation"), ["01004", "22001"]);
        assert_eq!(codes("invalid_argument_for_logarithm"), ["2201E"]);
        assert!(codes("no_such_condition").is_empty() && codes("DIVISION_BY_ZERO").is_empty());
    }
}
