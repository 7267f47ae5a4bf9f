//! The effects of GRANT, REVOKE and a change of owner on privilege lists.
//!
//! Invariants:
//! 1. A list has one item for each pair of grantee and grantor, and none without privileges.
//! 2. Every grantor except the owner holds the grant option of the privileges it has granted: when one loses it, its grants are
//!    removed too, or they prevent the loss. So a chain of grants never outlives its beginning and never is a circle.

use melba_types::{Oid, Result, bail, err};

use crate::acl::{GRANT_OPTION_SHIFT, NAMES};
use crate::objects::AclItem;
use crate::privileges::{RoleUse, listed_privileges};
use crate::snapshot::Catalog;

/// One GRANT or REVOKE by one grantor.
#[derive(Clone, Debug)]
pub struct ListChange<'a> {
    pub is_grant: bool,
    /// WITH GRANT OPTION, or GRANT OPTION FOR.
    pub grant_option: bool,
    /// REVOKE ... CASCADE.
    pub cascade: bool,
    pub owner: Oid,
    pub grantor: Oid,
    /// Without grant options.
    pub privileges: u64,
    pub grantees: &'a [Oid],
}

fn options_of(privileges: u64) -> u64 {
    privileges >> GRANT_OPTION_SHIFT
}

/// The role as which a role grants or revokes: the owner when it may act as one, else the one of its roles that may grant the
/// most of the privileges; and the privileges that this one may grant.
pub fn best_grantor(catalog: &Catalog, acl: &[AclItem], role: Oid, owner: Oid, privileges: u64) -> (Oid, u64) {
    if catalog.has_role(role, owner, RoleUse::Inherit) {
        return (owner, privileges);
    }
    let own = |role: Oid| {
        let items = acl.iter().filter(|i| i.grantee == role || !i.grantee.is_valid());
        items.fold(0, |held, i| held | options_of(i.privileges)) & privileges
    };
    let others = catalog.roles().map(|r| r.oid).filter(|r| *r != role && catalog.has_role(role, *r, RoleUse::Inherit));
    // Of several as good the first: the role itself.
    others
        .map(|r| (r, own(r)))
        .fold((role, own(role)), |best, next| if next.1.count_ones() > best.1.count_ones() { next } else { best })
}

/// A list after a change to it.
///
/// # Errors
/// 2BP01 when others depend on the revoked privileges, without CASCADE; 0LP01 for a grant option that would return to its
/// grantor, or be given to PUBLIC.
pub fn changed_list(catalog: &Catalog, acl: &[AclItem], change: &ListChange<'_>) -> Result<Vec<AclItem>> {
    let mut list = acl.to_vec();
    let options = change.privileges << GRANT_OPTION_SHIFT;
    for grantee in change.grantees {
        if change.is_grant && change.grant_option && !grantee.is_valid() {
            bail!(INVALID_GRANT_OPERATION, "grant options can only be granted to roles");
        }
        let privileges = match (change.is_grant, change.grant_option) {
            (true, true) | (false, false) => change.privileges | options,
            (true, false) => change.privileges,
            (false, true) => options,
        };
        let item = AclItem { grantee: *grantee, grantor: change.grantor, privileges };
        if change.is_grant {
            check_no_circle(catalog, &list, &item, change.owner)?;
            list = added(list, item);
        } else {
            list = revoked(catalog, list, item, change.owner, change.cascade)?;
        }
    }
    Ok(list)
}

/// Refuses a grant option for a role without whose own options the grantor would have none.
fn check_no_circle(catalog: &Catalog, acl: &[AclItem], item: &AclItem, owner: Oid) -> Result<()> {
    if options_of(item.privileges) == 0 || item.grantor == owner {
        return Ok(());
    }
    let mut without = acl.to_vec();
    let of_grantee = |i: &&AclItem| i.grantee == item.grantee && options_of(i.privileges) != 0;
    while let Some(found) = without.iter().find(of_grantee).copied() {
        without = revoked(catalog, without, found, owner, true)?;
    }
    let left = options_of(listed_privileges(catalog, &without, item.grantor, owner));
    match options_of(item.privileges) & !left {
        0 => Ok(()),
        _ => Err(err!(INVALID_GRANT_OPERATION, "grant options cannot be granted back to your own grantor")),
    }
}

/// The list without the item's privileges, and without the grants that depend on them.
fn revoked(catalog: &Catalog, mut list: Vec<AclItem>, item: AclItem, owner: Oid, cascade: bool) -> Result<Vec<AclItem>> {
    let Some(at) = list.iter().position(|i| (i.grantee, i.grantor) == (item.grantee, item.grantor)) else {
        return Ok(list);
    };
    let before = list[at].privileges;
    list[at].privileges = before & !item.privileges;
    let lost = options_of(before & item.privileges);
    if list[at].privileges == 0 {
        list.remove(at);
    }
    if lost == 0 || item.grantee == owner {
        return Ok(list);
    }
    // It may still have them from another grantor.
    let lost = lost & !options_of(listed_privileges(catalog, &list, item.grantee, owner));
    loop {
        let granted_on = |i: &&AclItem| i.grantor == item.grantee && i.privileges & (lost | lost << GRANT_OPTION_SHIFT) != 0;
        let Some(found) = list.iter().find(granted_on).copied() else { return Ok(list) };
        if !cascade {
            return Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "dependent privileges exist").hint("Use CASCADE to revoke them too."));
        }
        let privileges = lost | lost << GRANT_OPTION_SHIFT;
        list = revoked(catalog, list, AclItem { privileges, ..found }, owner, cascade)?;
    }
}

fn added(mut list: Vec<AclItem>, item: AclItem) -> Vec<AclItem> {
    match list.iter_mut().find(|i| (i.grantee, i.grantor) == (item.grantee, item.grantor)) {
        Some(same) => same.privileges |= item.privileges,
        None if item.privileges != 0 => list.push(item),
        None => {}
    }
    list
}

/// Two lists of one object as one.
pub fn merged(first: &[AclItem], second: &[AclItem]) -> Vec<AclItem> {
    second.iter().fold(first.to_vec(), |list, item| added(list, *item))
}

/// A list after a change of its object's owner.
pub fn given_to(acl: &[AclItem], old: Oid, new: Oid) -> Vec<AclItem> {
    let moved = |role: Oid| if role == old { new } else { role };
    let items = acl.iter().map(|i| AclItem { grantee: moved(i.grantee), grantor: moved(i.grantor), ..*i });
    items.fold(Vec::with_capacity(acl.len()), added)
}

/// The bit of a privilege by its word as GRANT takes it.
pub fn privilege_bit(word: &str) -> Option<u64> {
    let word = word.to_ascii_uppercase();
    let name = if word == "TEMP" { "TEMPORARY" } else { &word };
    NAMES.iter().position(|n| *n == name).map(|bit| 1 << bit)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::acl::{SELECT, UPDATE};
    use crate::objects::{Object, Role};
    use crate::snapshot::ObjectChange;

    const OWNER: Oid = Oid(20001);
    const ANN: Oid = Oid(20002);
    const BOB: Oid = Oid(20003);
    const CEE: Oid = Oid(20004);

    fn catalog() -> Catalog {
        let c = Catalog::default();
        let like = c.role_by_name("pg_monitor").expect("pg_monitor").clone();
        let role = |oid: &Oid| Role { oid: *oid, name: format!("r{oid}").into(), member_of: Vec::new(), ..(*like).clone() };
        let changes = [OWNER, ANN, BOB, CEE].map(|oid| ObjectChange::Put(Object::Role(Arc::new(role(&oid)))));
        c.with(&changes)
    }

    fn item(grantee: Oid, grantor: Oid, privileges: u64) -> AclItem {
        AclItem { grantee, grantor, privileges }
    }

    fn with_option(privileges: u64) -> u64 {
        privileges | privileges << GRANT_OPTION_SHIFT
    }

    fn change(is_grant: bool, grant_option: bool, cascade: bool, grantor: Oid, grantees: &[Oid]) -> ListChange<'_> {
        ListChange { is_grant, grant_option, cascade, owner: OWNER, grantor, privileges: SELECT, grantees }
    }

    /// The owner's SELECT to ann, hers to bob, his to cee.
    fn chain(c: &Catalog) -> Vec<AclItem> {
        let list = [item(OWNER, OWNER, SELECT | UPDATE)];
        let list = changed_list(c, &list, &change(true, true, false, OWNER, &[ANN])).expect("granted");
        let list = changed_list(c, &list, &change(true, true, false, ANN, &[BOB])).expect("granted");
        changed_list(c, &list, &change(true, false, false, BOB, &[CEE])).expect("granted")
    }

    #[test]
    fn a_chain_falls_with_its_beginning_or_holds_it() {
        let c = catalog();
        let list = chain(&c);
        assert_eq!(list.len(), 4);
        let error = changed_list(&c, &list, &change(false, false, false, OWNER, &[ANN])).expect_err("bob has it from ann");
        assert_eq!(error.message(), "dependent privileges exist");
        let left = changed_list(&c, &list, &change(false, false, true, OWNER, &[ANN])).expect("revoked");
        assert_eq!(left, [item(OWNER, OWNER, SELECT | UPDATE)]);
        // Only bob's option: cee's grant is removed, bob keeps the privilege.
        let left = changed_list(&c, &list, &change(false, true, true, ANN, &[BOB])).expect("revoked");
        assert_eq!(left[1..], [item(ANN, OWNER, with_option(SELECT)), item(BOB, ANN, SELECT)]);
    }

    #[test]
    fn privileges_from_another_grantor_stay() {
        let c = catalog();
        let list = changed_list(&c, &chain(&c), &change(true, true, false, OWNER, &[BOB])).expect("granted");
        let left = changed_list(&c, &list, &change(false, false, false, ANN, &[BOB])).expect("bob has it from the owner, too");
        assert!(left.contains(&item(CEE, BOB, SELECT)));
    }

    #[test]
    fn options_do_not_go_in_circles() {
        let c = catalog();
        let list = chain(&c);
        let back = changed_list(&c, &list, &change(true, true, false, BOB, &[ANN])).expect_err("a circle");
        assert_eq!(back.message(), "grant options cannot be granted back to your own grantor");
        let all = changed_list(&c, &list, &change(true, true, false, OWNER, &[Oid::INVALID])).expect_err("everybody");
        assert_eq!(all.message(), "grant options can only be granted to roles");
        assert!(changed_list(&c, &list, &change(true, false, false, BOB, &[ANN])).is_ok());
    }

    #[test]
    fn who_may_grant_most_does() {
        let c = catalog();
        let list = chain(&c);
        assert_eq!(best_grantor(&c, &list, OWNER, OWNER, SELECT | UPDATE), (OWNER, SELECT | UPDATE));
        assert_eq!(best_grantor(&c, &list, Oid(10), OWNER, SELECT), (OWNER, SELECT));
        assert_eq!(best_grantor(&c, &list, ANN, OWNER, SELECT | UPDATE), (ANN, SELECT));
        assert_eq!(best_grantor(&c, &list, CEE, OWNER, SELECT), (CEE, 0));
    }

    #[test]
    fn privileges_follow_the_owner() {
        let before = [item(OWNER, OWNER, 6), item(ANN, OWNER, 2), item(Oid::INVALID, OWNER, 2)];
        assert_eq!(given_to(&before, OWNER, ANN), [item(ANN, ANN, 6), item(Oid::INVALID, ANN, 2)]);
    }
}
