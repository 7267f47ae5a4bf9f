//! pg_ident.conf: maps names of the system, or of certificates, to roles.

use super::file::FileLine;
use super::matching::is_role;
use super::pattern;
use super::tokenizer::Token;

#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub map: String,
    pub(super) system_user: Token,
    pub(super) role: Token,
}

impl Mapping {
    /// # Errors
    /// The pg_ident_file_mappings text of an invalid line.
    pub(super) fn parse(line: &FileLine) -> Result<Mapping, String> {
        let mut fields = line.fields.iter();
        let mut one = || match fields.next().map(Vec::as_slice) {
            None => Err("missing entry at end of line".to_owned()),
            Some([one]) => Ok(one.clone()),
            Some(_) => Err("multiple values in ident field".to_owned()),
        };
        let (map, system_user, role) = (one()?.text, one()?, one()?);
        [&system_user, &role].into_iter().filter_map(|token| token.pattern()).try_for_each(pattern::check)?;
        Ok(Mapping { map, system_user, role })
    }

    /// # Errors
    /// The line refers to a group that its expression lacks.
    fn allows(&self, system_user: &str, role: &str, is_member_of: &dyn Fn(&str) -> bool) -> Result<bool, String> {
        let Some(pattern) = self.system_user.pattern() else {
            return Ok(self.system_user.text == system_user && is_role(&self.role, role, is_member_of));
        };
        let Some(group) = pattern::first_group(pattern, system_user) else { return Ok(false) };
        let wanted = &self.role;
        if wanted.group().is_some() || wanted.pattern().is_some() || !wanted.text.contains("\\1") {
            return Ok(is_role(wanted, role, is_member_of));
        }
        let group = group.ok_or_else(|| {
            format!("regular expression \"{pattern}\" has no subexpressions as requested by backreference in \"{}\"", wanted.text)
        })?;
        // Compared literally: a system user called "all" does not match every role.
        Ok(wanted.text.replacen("\\1", group, 1) == role)
    }
}

/// Whether a name of the system may be a role, by a map or, without one, by its own name.
///
/// # Errors
/// Why not, for the server's log.
pub(crate) fn check_map(
    mappings: &[Mapping],
    map: Option<&str>,
    system_user: &str,
    role: &str,
    is_member_of: &dyn Fn(&str) -> bool,
) -> Result<(), String> {
    let Some(map) = map.filter(|map| !map.is_empty()) else {
        return match system_user == role {
            true => Ok(()),
            false => Err(format!("provided user name ({role}) and authenticated user name ({system_user}) do not match")),
        };
    };
    for mapping in mappings.iter().filter(|mapping| mapping.map == map) {
        if mapping.allows(system_user, role, is_member_of)? {
            return Ok(());
        }
    }
    Err(format!("no match in usermap \"{map}\" for user \"{role}\" authenticated as \"{system_user}\""))
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::line;
    use super::*;

    fn allowed(text: &str, system_user: &str, role: &str) -> Result<(), String> {
        let mappings: Vec<Mapping> = text.lines().map(|l| Mapping::parse(&line(l)).expect("a mapping")).collect();
        check_map(&mappings, Some("m"), system_user, role, &|group| group == "staff" && role == "ann")
    }

    #[test]
    fn names_are_mapped_as_postgresql_maps_them() {
        for (text, system_user, role, expected) in [
            ("m root postgres", "root", "postgres", true),
            ("m root postgres", "root", "ann", false),
            ("other root postgres", "root", "postgres", false),
            ("m root x\nm root ann", "root", "ann", true),
            ("m root all", "root", "anybody", true),
            ("m root \"all\"", "root", "anybody", false),
            ("m root +staff", "root", "ann", true),
            ("m root +staff", "root", "bob", false),
            ("m root /^a", "root", "ann", true),
            (r"m /^(.*)@x\.org$ \1", "ann@x.org", "ann", true),
            (r"m /^(.*)@x\.org$ \1", "ann@y.org", "ann", false),
            (r"m /^(.*)@x\.org$ u_\1", "ann@x.org", "u_ann", true),
            (r"m /^(.*)@x\.org$ \1", "all@x.org", "ann", false),
            ("m /^an guest", "ann", "guest", true),
        ] {
            assert_eq!(allowed(text, system_user, role).is_ok(), expected, "{text}: {system_user} as {role}");
        }
        let missing = allowed(r"m /^ann$ \1", "ann", "ann").expect_err("there is no group");
        assert_eq!(missing, r#"regular expression "^ann$" has no subexpressions as requested by backreference in "\1""#);
    }

    #[test]
    fn without_a_map_the_names_are_equal() {
        assert!(check_map(&[], None, "ann", "ann", &|_| false).is_ok());
        assert!(check_map(&[], None, "ann", "bob", &|_| true).is_err());
        assert!(check_map(&[], Some(""), "ann", "ann", &|_| false).is_ok());
    }

    #[test]
    fn lines_have_three_fields() {
        for (text, expected) in [
            ("m", "missing entry at end of line"),
            ("m a", "missing entry at end of line"),
            ("m a,b c", "multiple values in ident field"),
            ("m /( c", "invalid regular expression \"(\": parentheses () not balanced"),
        ] {
            assert_eq!(Mapping::parse(&line(text)).err().as_deref(), Some(expected), "{text}");
        }
    }
}
