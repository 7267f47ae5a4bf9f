//! The rights of roles: membership in roles, default privileges, checks against privilege lists.

use std::sync::Arc;

use melba_types::{Oid, Result, bail};

use crate::acl::*;
use crate::classes;
use crate::memberships::DATABASE_OWNER;
use crate::objects::*;
use crate::snapshot::Catalog;

/// Predefined roles that checks know.
const READ_ALL_DATA: Oid = Oid(6181);
const WRITE_ALL_DATA: Oid = Oid(6182);
const MAINTAIN: Oid = Oid(6337);

/// How a role must have another one to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleUse {
    /// A member, directly or through other roles, whatever rights it has as one.
    Member,
    /// Has its privileges without SET ROLE.
    Inherit,
    /// May SET ROLE to it.
    Set,
}

/// The object kind of a privilege list, for objects without a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclKind {
    Table,
    Column,
    Sequence,
    Database,
    Function,
    Language,
    Namespace,
    Type,
    LargeObject,
    Tablespace,
    Parameter,
    ForeignDataWrapper,
    ForeignServer,
}

impl AclKind {
    /// The letter that acldefault() takes.
    pub fn from_letter(letter: u8) -> Option<AclKind> {
        Some(match letter {
            b'r' => AclKind::Table,
            b'c' => AclKind::Column,
            b's' => AclKind::Sequence,
            b'd' => AclKind::Database,
            b'f' => AclKind::Function,
            b'l' => AclKind::Language,
            b'n' => AclKind::Namespace,
            b'T' => AclKind::Type,
            b'L' => AclKind::LargeObject,
            b't' => AclKind::Tablespace,
            b'p' => AclKind::Parameter,
            b'F' => AclKind::ForeignDataWrapper,
            b'S' => AclKind::ForeignServer,
            _ => return None,
        })
    }

    /// The kind of objects that a row of pg_default_acl is of.
    pub fn of_default_acl_letter(letter: u8) -> Option<AclKind> {
        AclKind::from_letter(if letter == b'S' { b's' } else { letter })
    }

    /// All privileges there are on such an object.
    pub fn all(self) -> u64 {
        use crate::acl::*;
        match self {
            AclKind::Table => INSERT | SELECT | UPDATE | DELETE | TRUNCATE | REFERENCES | TRIGGER | crate::acl::MAINTAIN,
            AclKind::Column => INSERT | SELECT | UPDATE | REFERENCES,
            AclKind::Sequence => USAGE | SELECT | UPDATE,
            AclKind::Database => CREATE | TEMPORARY | CONNECT,
            AclKind::Function => EXECUTE,
            AclKind::Language | AclKind::Type | AclKind::ForeignDataWrapper | AclKind::ForeignServer => USAGE,
            AclKind::Namespace => USAGE | CREATE,
            AclKind::LargeObject => SELECT | UPDATE,
            AclKind::Tablespace => CREATE,
            AclKind::Parameter => SET | ALTER_SYSTEM,
        }
    }

    /// PUBLIC's privileges when nothing was granted or revoked.
    pub fn public(self) -> u64 {
        use crate::acl::*;
        match self {
            AclKind::Database => TEMPORARY | CONNECT,
            AclKind::Function => EXECUTE,
            AclKind::Language | AclKind::Type => USAGE,
            _ => 0,
        }
    }

    /// acldefault(): the list that stands for "never granted or revoked".
    pub fn default_acl(self, owner: Oid) -> Vec<AclItem> {
        let mut items = Vec::new();
        if self.public() != 0 {
            items.push(AclItem { grantee: Oid::INVALID, grantor: owner, privileges: self.public() });
        }
        if !matches!(self, AclKind::Column) {
            items.push(AclItem { grantee: owner, grantor: owner, privileges: self.all() });
        }
        items
    }
}

/// Reads a list as has_table_privilege takes it: `SELECT, UPDATE WITH GRANT OPTION`. Each item is a set of bits of which
/// all must be had; any item is enough.
///
/// # Errors
/// 22023 for a word that is no privilege of such an object.
pub fn parse_privileges(kind: AclKind, text: &str) -> Result<Vec<u64>> {
    const NAMES: [(&str, u64); 17] = [
        ("INSERT", INSERT),
        ("SELECT", SELECT),
        ("UPDATE", UPDATE),
        ("DELETE", DELETE),
        ("TRUNCATE", TRUNCATE),
        ("REFERENCES", REFERENCES),
        ("TRIGGER", TRIGGER),
        ("EXECUTE", EXECUTE),
        ("USAGE", USAGE),
        ("CREATE", CREATE),
        ("TEMPORARY", TEMPORARY),
        ("TEMP", TEMPORARY),
        ("CONNECT", CONNECT),
        ("SET", SET),
        ("ALTER SYSTEM", ALTER_SYSTEM),
        ("MAINTAIN", crate::acl::MAINTAIN),
        ("RULE", 0),
    ];
    let mut out = Vec::new();
    for item in text.split(',') {
        let word = item.trim().to_ascii_uppercase();
        let (name, grant) = match word.strip_suffix(" WITH GRANT OPTION") {
            Some(name) => (name.trim_end(), true),
            None => (&*word, false),
        };
        let found = NAMES.iter().find(|(n, _)| *n == name).map(|(_, bit)| *bit);
        match found.filter(|bit| kind.all() & bit == *bit && (*bit != 0 || kind == AclKind::Table)) {
            Some(bit) if grant => out.push(bit << GRANT_OPTION_SHIFT),
            Some(bit) => out.push(bit),
            None => bail!(INVALID_PARAMETER_VALUE, "unrecognized privilege type: \"{}\"", item.trim()),
        }
    }
    Ok(out)
}

impl Catalog {
    pub fn granted(&self, oid: Oid) -> Option<&Arc<Granted>> {
        self.parameter_acls.get(oid)
    }

    /// Of a setting.
    pub fn granted_by_name(&self, name: &str) -> Option<&Arc<Granted>> {
        let oid = self.parameter_acls.named(classes::PG_PARAMETER_ACL, name).next()?.oid;
        self.parameter_acls.get(oid)
    }

    /// The rows of pg_parameter_acl.
    pub fn parameter_acls(&self) -> impl Iterator<Item = &Arc<Granted>> {
        self.parameter_acls.iter()
    }

    /// The list of a setting, by name; `None`: what is usual.
    pub fn granted_acl(&self, name: &str) -> Acl {
        self.granted_by_name(name).and_then(|g| g.acl.clone())
    }

    /// Whether a role has all of the privileges on a language or a setting.
    pub fn may_use(&self, role: Oid, class: Oid, name: &str, privileges: u64) -> bool {
        let language = self.plain_object_by_name(class, Oid::INVALID, name);
        match language.filter(|_| class == classes::PG_LANGUAGE) {
            Some(language) => self.has_privileges(role, AclKind::Language, language.owner, &language.acl, privileges),
            None => self.has_privileges(role, AclKind::Parameter, classes::POSTGRES_ROLE, &self.granted_acl(name), privileges),
        }
    }

    /// A language by name: internal, c, sql, plpgsql.
    pub fn language_by_name(&self, name: &str) -> Option<Oid> {
        self.plain_object_by_name(classes::PG_LANGUAGE, Oid::INVALID, name).map(|language| language.oid)
    }

    pub fn language_name(&self, oid: Oid) -> Option<&str> {
        self.plain_object(classes::PG_LANGUAGE, oid).map(|language| &*language.name)
    }

    /// The settings of all roles in all databases, as `name=value`.
    pub fn settings_of_all(&self) -> &[Arc<str>] {
        self.plain_object(classes::PG_DB_ROLE_SETTING, classes::PG_DB_ROLE_SETTING).map_or(&[], |row| &row.options)
    }

    pub fn is_superuser(&self, role: Oid) -> bool {
        self.role(role).is_some_and(|r| r.superuser)
    }

    /// Whether `member` is or has `role` (superusers have every role).
    pub fn has_role(&self, member: Oid, role: Oid, how: RoleUse) -> bool {
        member == role || self.is_superuser(member) || self.has_role_by_grant(member, role, how)
    }

    /// `has_role` through memberships only.
    pub fn has_role_by_grant(&self, member: Oid, role: Oid, how: RoleUse) -> bool {
        member == role || self.roles_of(member, how).contains(&role)
    }

    /// A role and those that it has by memberships, nearest first.
    pub(crate) fn roles_of(&self, member: Oid, how: RoleUse) -> Vec<Oid> {
        let mut seen = vec![member];
        let mut at = 0;
        while let Some(current) = seen.get(at).copied() {
            at += 1;
            let memberships = self.role(current).map_or(&[][..], |r| &r.member_of);
            for m in memberships {
                let counts = match how {
                    RoleUse::Member => true,
                    RoleUse::Inherit => m.inherit,
                    RoleUse::Set => m.set,
                };
                if counts && !seen.contains(&m.role) {
                    seen.push(m.role);
                }
            }
            let owns_database = self.database(self.database_oid()).is_some_and(|d| d.owner == current);
            if owns_database && !seen.contains(&DATABASE_OWNER) {
                seen.push(DATABASE_OWNER);
            }
        }
        seen
    }

    /// Whether a role has all of the privileges `mask` (grant options in the upper half) on an object.
    pub fn has_privileges(&self, role: Oid, kind: AclKind, owner: Oid, acl: &Acl, mask: u64) -> bool {
        if self.is_superuser(role) {
            return true;
        }
        let held = match acl {
            Some(items) => listed_privileges(self, items, role, owner),
            None => listed_privileges(self, &kind.default_acl(owner), role, owner),
        };
        (held | self.predefined_privileges(role, kind)) & mask == mask
    }

    /// The privileges of pg_read_all_data and similar roles.
    fn predefined_privileges(&self, role: Oid, kind: AclKind) -> u64 {
        let has = |predefined| self.has_role(role, predefined, RoleUse::Inherit);
        let mut held = 0;
        match kind {
            AclKind::Table | AclKind::Column | AclKind::Sequence => {
                if has(READ_ALL_DATA) {
                    held |= SELECT;
                }
                if has(WRITE_ALL_DATA) {
                    held |= (INSERT | UPDATE | DELETE) & kind.all();
                }
                if kind == AclKind::Table && has(MAINTAIN) {
                    held |= crate::acl::MAINTAIN;
                }
            }
            AclKind::Namespace if has(READ_ALL_DATA) || has(WRITE_ALL_DATA) => held |= USAGE,
            _ => {}
        }
        held
    }

    /// The privileges on a relation.
    pub fn has_relation_privileges(&self, role: Oid, relation: &Relation, mask: u64) -> bool {
        let kind = if relation.kind == RelationKind::Sequence { AclKind::Sequence } else { AclKind::Table };
        self.has_privileges(role, kind, relation.owner, &relation.acl, mask)
    }

    /// The privileges on a column, or on its whole relation.
    pub fn has_column_privileges(&self, role: Oid, relation: &Relation, column: &Column, mask: u64) -> bool {
        let by_column = column.acl.is_some() && self.has_privileges(role, AclKind::Column, relation.owner, &column.acl, mask);
        by_column || self.has_relation_privileges(role, relation, mask)
    }
}

/// The privileges that a list gives a role, directly and by membership; grant options in the upper half. Owners have all of those.
pub fn listed_privileges(catalog: &Catalog, acl: &[AclItem], role: Oid, owner: Oid) -> u64 {
    let counts = |i: &&AclItem| !i.grantee.is_valid() || catalog.has_role(role, i.grantee, RoleUse::Inherit);
    let held = acl.iter().filter(counts).fold(0, |held, i| held | i.privileges);
    match catalog.has_role(role, owner, RoleUse::Inherit) {
        true => held | u64::MAX << GRANT_OPTION_SHIFT,
        false => held,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::snapshot::ObjectChange;

    #[test]
    fn privileges_come_by_grant_role_and_ownership() {
        let c = Catalog::default();
        let monitor = c.role_by_name("pg_monitor").expect("pg_monitor").clone();
        let role = |name: &str, member_of: Vec<Membership>| {
            Arc::new(Role { oid: c.allocate_oid(), name: name.into(), member_of, ..(*monitor).clone() })
        };
        let group = role("group", Vec::new());
        let of_group = Membership { oid: Oid(1), role: group.oid, grantor: Oid(10), admin: false, inherit: true, set: false };
        let (owner, anna) = (role("owner", Vec::new()), role("anna", vec![of_group]));
        let changes = [&group, &owner, &anna].map(|r| ObjectChange::Put(Object::Role(r.clone())));
        let c = c.with(&changes);
        assert!(c.has_role(anna.oid, group.oid, RoleUse::Inherit) && !c.has_role(anna.oid, group.oid, RoleUse::Set));

        let has = |role: Oid, acl: &Acl, mask| c.has_privileges(role, AclKind::Table, owner.oid, acl, mask);
        assert!(has(owner.oid, &None, SELECT | UPDATE) && !has(anna.oid, &None, SELECT));
        let granted = AclItem { grantee: group.oid, grantor: owner.oid, privileges: SELECT | UPDATE };
        let acl: Acl = Some([granted].into());
        assert!(has(anna.oid, &acl, SELECT | UPDATE) && !has(anna.oid, &acl, SELECT | DELETE));
        // A list without the owner takes everything from it but the right to grant.
        assert!(!has(owner.oid, &acl, SELECT) && has(owner.oid, &acl, SELECT << GRANT_OPTION_SHIFT));
        assert!(has(Oid(10), &acl, DELETE));
    }

    #[test]
    fn privilege_lists_are_read() {
        let read = |text| parse_privileges(AclKind::Table, text);
        assert_eq!(read("select, Update with grant option").expect("a list"), [SELECT, UPDATE << GRANT_OPTION_SHIFT]);
        assert_eq!(read("usage").expect_err("not a table's").message(), "unrecognized privilege type: \"usage\"");
    }
}
