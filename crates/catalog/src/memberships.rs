//! The effects of GRANT and REVOKE of roles on memberships.
//!
//! Invariants:
//! 1. A role has one membership for each pair of member and grantor.
//! 2. Every grantor but the bootstrap superuser has the role WITH ADMIN OPTION itself. A grantor that loses that option takes
//!    what it granted with it, so a chain of grants never outlives its beginning and is never a circle.

use melba_types::{Oid, Result, bail, err};

use crate::classes::POSTGRES_ROLE;
use crate::objects::Membership;
use crate::privileges::RoleUse;
use crate::snapshot::Catalog;

/// Membership in it is implicit: only the owner of the current database is a member.
pub const DATABASE_OWNER: Oid = Oid(6171);

/// One row of pg_auth_members.
#[derive(Clone, Copy, Debug)]
pub struct RoleGrant {
    pub member: Oid,
    pub membership: Membership,
}

/// WITH ADMIN, INHERIT and SET, or the options that REVOKE removes; `None` where the statement does not name the option.
#[derive(Clone, Copy, Debug, Default)]
pub struct GrantOptions {
    pub admin: Option<bool>,
    pub inherit: Option<bool>,
    pub set: Option<bool>,
}

/// The effect on a grant when others are revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Unchanged,
    WithoutAdmin,
    WithoutInherit,
    WithoutSet,
    Deleted,
}

/// All grants of one role, and the result of a REVOKE.
#[derive(Clone, Debug)]
pub struct Revocation {
    grants: Vec<(RoleGrant, Fate)>,
}

impl Revocation {
    /// Revokes the grant of `grantor` to `member`: the whole grant, or the one option that `options` names. False when there is
    /// no such grant.
    ///
    /// # Errors
    /// 2BP01 when others depend on it, without `cascade`.
    pub fn revoke(&mut self, member: Oid, grantor: Oid, options: &GrantOptions, cascade: bool) -> Result<bool> {
        let found = |(g, _): &(RoleGrant, Fate)| (g.member, g.membership.grantor) == (member, grantor);
        let Some(at) = self.grants.iter().position(found) else { return Ok(false) };
        if options.inherit.is_some() {
            self.grants[at].1 = Fate::WithoutInherit;
        } else if options.set.is_some() {
            self.grants[at].1 = Fate::WithoutSet;
        } else {
            self.revoke_at(at, options.admin.is_some(), cascade)?;
        }
        Ok(true)
    }

    fn revoke_at(&mut self, at: usize, admin_only: bool, cascade: bool) -> Result<()> {
        let (grant, fate) = self.grants[at];
        if fate == Fate::Deleted || admin_only && (fate == Fate::WithoutAdmin || !grant.membership.admin) {
            return Ok(());
        }
        self.grants[at].1 = if admin_only { Fate::WithoutAdmin } else { Fate::Deleted };
        if !grant.membership.admin || self.keeps_admin(grant.member) {
            return Ok(());
        }
        for next in 0..self.grants.len() {
            let (dependent, fate) = self.grants[next];
            if dependent.membership.grantor == grant.member && fate != Fate::Deleted {
                if !cascade {
                    let error = err!(DEPENDENT_OBJECTS_STILL_EXIST, "dependent privileges exist");
                    return Err(error.hint("Use CASCADE to revoke them too."));
                }
                self.revoke_at(next, false, cascade)?;
            }
        }
        Ok(())
    }

    fn keeps_admin(&self, member: Oid) -> bool {
        self.grants.iter().any(|(g, fate)| g.member == member && g.membership.admin && *fate == Fate::Unchanged)
    }

    /// The grants that change: with their new options, or `None` for those that are deleted.
    pub fn changes(&self) -> impl Iterator<Item = (RoleGrant, Option<Membership>)> + '_ {
        self.grants.iter().filter_map(|(grant, fate)| {
            let same = grant.membership;
            let after = match fate {
                Fate::Unchanged => return None,
                Fate::WithoutAdmin => Some(Membership { admin: false, ..same }),
                Fate::WithoutInherit => Some(Membership { inherit: false, ..same }),
                Fate::WithoutSet => Some(Membership { set: false, ..same }),
                Fate::Deleted => None,
            };
            Some((*grant, after))
        })
    }
}

fn grants_of_role(catalog: &Catalog, role: Oid) -> impl Iterator<Item = RoleGrant> + '_ {
    catalog.roles().flat_map(move |member| {
        let of_role = member.member_of.iter().filter(move |m| m.role == role);
        of_role.map(|m| RoleGrant { member: member.oid, membership: *m })
    })
}

pub fn revocation(catalog: &Catalog, role: Oid) -> Revocation {
    Revocation { grants: grants_of_role(catalog, role).map(|g| (g, Fate::Unchanged)).collect() }
}

fn has_admin_option(catalog: &Catalog, member: Oid, role: Oid) -> bool {
    catalog.role(member).is_some_and(|r| r.member_of.iter().any(|m| m.role == role && m.admin))
}

/// Whether `member` may grant and revoke `role`: as a superuser, or by an ADMIN OPTION of any role that it is a member of.
pub fn is_admin_of(catalog: &Catalog, member: Oid, role: Oid) -> bool {
    catalog.is_superuser(member)
        || member != role && catalog.roles_of(member, RoleUse::Member).iter().any(|r| has_admin_option(catalog, *r, role))
}

/// The role with ADMIN OPTION on `role` that is the fewest inherited memberships away from `member`.
pub fn nearest_admin(catalog: &Catalog, member: Oid, role: Oid) -> Option<Oid> {
    if member == role {
        return None;
    }
    catalog.roles_of(member, RoleUse::Inherit).into_iter().find(|r| has_admin_option(catalog, *r, role))
}

/// Whether `user` may change who has `role`.
///
/// # Errors
/// 42501 for a role that the user does not administer, 0A000 for pg_database_owner.
pub fn check_may_grant_role(catalog: &Catalog, user: Oid, role: Oid, is_grant: bool) -> Result<()> {
    let name = catalog.role(role).map_or_else(String::new, |r| r.name.to_string());
    let verb = if is_grant { "grant" } else { "revoke" };
    if is_grant && role == DATABASE_OWNER {
        bail!(FEATURE_NOT_SUPPORTED, "role \"{name}\" cannot have explicit members");
    }
    let denied = || err!(INSUFFICIENT_PRIVILEGE, "permission denied to {verb} role \"{name}\"");
    if catalog.is_superuser(role) {
        if !catalog.is_superuser(user) {
            let detail = format!("Only roles with the SUPERUSER attribute may {verb} roles with the SUPERUSER attribute.");
            return Err(denied().detail(detail));
        }
    } else if !is_admin_of(catalog, user, role) {
        return Err(denied().detail(format!("Only roles with the ADMIN option on role \"{name}\" may {verb} this role.")));
    }
    Ok(())
}

/// The role that is recorded as the grantor when `user` grants or revokes `role`; `named`: GRANTED BY.
///
/// # Errors
/// 42501 when the user may not act as the named role, or that role may not grant.
pub fn role_grantor(catalog: &Catalog, user: Oid, role: Oid, named: Option<Oid>, is_grant: bool) -> Result<Oid> {
    let name = |oid| catalog.role(oid).map_or_else(String::new, |r| r.name.to_string());
    let Some(grantor) = named else {
        if catalog.is_superuser(user) {
            return Ok(POSTGRES_ROLE);
        }
        // A role that is an admin only by memberships that are not inherited has no role to grant as.
        return nearest_admin(catalog, user, role).ok_or_else(|| err!(INTERNAL_ERROR, "no possible grantors"));
    };
    let as_whom = if is_grant { "grant privileges as role" } else { "revoke privileges granted by role" };
    let denied = || err!(INSUFFICIENT_PRIVILEGE, "permission denied to {as_whom} \"{}\"", name(grantor));
    if !catalog.has_role(user, grantor, RoleUse::Inherit) {
        let what = if is_grant { "grant privileges as" } else { "revoke privileges granted by" };
        let detail = format!("Only roles with privileges of role \"{}\" may {what} this role.", name(grantor));
        return Err(denied().detail(detail));
    }
    if is_grant && grantor != POSTGRES_ROLE && !has_admin_option(catalog, grantor, role) {
        return Err(denied().detail(format!("The grantor must have the ADMIN option on role \"{}\".", name(role))));
    }
    Ok(grantor)
}

/// Whether `members` may get `role` from `grantor`.
///
/// # Errors
/// 0LP01 for a circle of memberships or of ADMIN OPTIONs, 0A000 for pg_database_owner as a member.
pub fn check_new_members(catalog: &Catalog, role: Oid, members: &[Oid], grantor: Oid, options: &GrantOptions) -> Result<()> {
    let name = |oid| catalog.role(oid).map_or_else(String::new, |r| r.name.to_string());
    for member in members {
        if *member == DATABASE_OWNER {
            bail!(FEATURE_NOT_SUPPORTED, "role \"{}\" cannot be a member of any role", name(*member));
        }
        if catalog.has_role_by_grant(role, *member, RoleUse::Member) {
            bail!(INVALID_GRANT_OPERATION, "role \"{}\" is a member of role \"{}\"", name(role), name(*member));
        }
    }
    if options.admin != Some(true) || grantor == POSTGRES_ROLE {
        return Ok(());
    }
    // Would the grantor still be an admin without the grants of these members?
    let mut without = revocation(catalog, role);
    for at in 0..without.grants.len() {
        if members.contains(&without.grants[at].0.member) {
            without.revoke_at(at, false, true)?;
        }
    }
    if members.contains(&POSTGRES_ROLE) || !without.keeps_admin(grantor) {
        bail!(INVALID_GRANT_OPERATION, "ADMIN option cannot be granted back to your own grantor");
    }
    Ok(())
}
