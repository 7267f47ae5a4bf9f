//! Privilege lists: the GRANT or REVOKE that changes one, and the list after it.

use std::sync::Arc;

use melba_catalog::acl::{GRANT_OPTION_SHIFT, NAMES};
use melba_catalog::grants::{ListChange, best_grantor, changed_list, given_to, merged, privilege_bit};
use melba_catalog::privileges::{AclKind, listed_privileges};
use melba_catalog::{Acl, AclItem, Relation};
use melba_parse::nodes::{inner, strings};
use melba_types::{Oid, Result, SqlState, bail, err};
use pg_query::protobuf::Node;
use pg_query::protobuf::node::Node as N;

use melba_definition::context::Ddl;
use melba_relation::constraint::row::column_numbers;

/// A GRANT or REVOKE, on any object.
pub struct Grant<'s> {
    pub is_grant: bool,
    pub grant_option: bool,
    pub cascade: bool,
    pub grantees: Vec<Oid>,
    /// Privileges by name, some of them on columns; none means all.
    pub privileges: &'s [Node],
}

/// The object of a list, for messages.
pub struct ListOf<'a> {
    pub kind: AclKind,
    pub owner: Oid,
    pub acl: &'a [AclItem],
    /// Another list with privileges on the same object: a column's table's.
    pub beside: &'a [AclItem],
    /// As in "permission denied for table t".
    pub described: String,
    /// As in "no privileges were granted for "t"".
    pub quoted: String,
}

/// PostgreSQL's word for an object in "invalid privilege type INSERT for schema".
fn kind_word(kind: AclKind) -> &'static str {
    match kind {
        AclKind::Table => "relation",
        AclKind::Column => "column",
        AclKind::Sequence => "sequence",
        AclKind::Database => "database",
        AclKind::Function => "function",
        AclKind::Language => "language",
        AclKind::Namespace => "schema",
        AclKind::Type => "type",
        AclKind::LargeObject => "large object",
        AclKind::Tablespace => "tablespace",
        AclKind::Parameter => "parameter",
        AclKind::ForeignDataWrapper => "foreign-data wrapper",
        AclKind::ForeignServer => "foreign server",
    }
}

impl Grant<'_> {
    /// The effect of DROP OWNED on a list: REVOKE ALL ... FROM role CASCADE.
    pub fn revoke_all(role: Oid) -> Grant<'static> {
        Grant { is_grant: false, grant_option: false, cascade: true, grantees: vec![role], privileges: &[] }
    }

    /// The privileges on the whole of an object, of all there are.
    ///
    /// # Errors
    /// 42601 for a word that is no privilege, 0LP01 for one that such objects do not have.
    pub fn whole(&self, all: u64, kind: AclKind) -> Result<u64> {
        if self.privileges.is_empty() {
            return Ok(all);
        }
        let mut bits = 0;
        for node in self.privileges {
            let N::AccessPriv(privilege) = inner(node)? else { continue };
            if privilege.cols.is_empty() {
                bits |= named_privilege(&privilege.priv_name, all, kind)?;
            } else if kind != AclKind::Table {
                bail!(INVALID_GRANT_OPERATION, "column privileges are only valid for relations");
            }
        }
        Ok(bits)
    }

    /// The same for a table, whose statement might have been meant for a sequence.
    pub fn whole_table(&self) -> Result<u64> {
        let all = AclKind::Table.all();
        if self.privileges.is_empty() {
            return Ok(all);
        }
        let bits = self.whole(all | AclKind::Sequence.all(), AclKind::Table)?;
        match NAMES.iter().enumerate().find(|(bit, _)| bits & !all & 1 << bit != 0) {
            Some((_, word)) => Err(err!(INVALID_GRANT_OPERATION, "invalid privilege type {word} for table")),
            None => Ok(bits),
        }
    }

    /// By place, the privileges on columns.
    pub fn of_columns(&self, relation: &Relation) -> Result<Vec<u64>> {
        let mut bits = vec![0; relation.columns.len()];
        for node in self.privileges {
            let N::AccessPriv(privilege) = inner(node)? else { continue };
            if privilege.cols.is_empty() {
                continue;
            }
            let named = named_privilege(&privilege.priv_name, AclKind::Column.all(), AclKind::Column)?;
            for number in column_numbers(relation, &strings(&privilege.cols), false)? {
                bits[number as usize - 1] |= named;
            }
        }
        Ok(bits)
    }
}

/// The bits of a privilege by name; of the empty name, which is ALL, all.
fn named_privilege(name: &str, all: u64, kind: AclKind) -> Result<u64> {
    if name.is_empty() {
        return Ok(all);
    }
    let bit = privilege_bit(name).ok_or_else(|| err!(SYNTAX_ERROR, "unrecognized privilege type \"{name}\""))?;
    if bit & all == 0 {
        let word = NAMES[bit.trailing_zeros() as usize];
        bail!(INVALID_GRANT_OPERATION, "invalid privilege type {word} for {}", kind_word(kind));
    }
    Ok(bit)
}

/// A list after the statement, of whose privileges the user may grant some or all.
///
/// # Errors
/// 42501 when the user has none on the object at all; see `Catalog::changed_list`.
pub fn changed_acl(ddl: &Ddl<'_>, grant: &Grant<'_>, on: &ListOf<'_>, privileges: u64) -> Result<Arc<[AclItem]>> {
    let catalog = ddl.catalog();
    let both = merged(on.beside, on.acl);
    let (grantor, grantable) = best_grantor(&catalog, &both, ddl.user(), on.owner, privileges);
    if grantable == 0 {
        let any = on.kind.all() | on.kind.all() << GRANT_OPTION_SHIFT;
        if listed_privileges(&catalog, &both, ddl.user(), on.owner) & any == 0 {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied for {}", on.described);
        }
    }
    let is_partial = grantable != privileges && !grant.privileges.is_empty();
    if grantable == 0 || is_partial {
        let some = if grantable == 0 { "no" } else { "not all" };
        let quoted = &on.quoted;
        let (state, message) = match grant.is_grant {
            true => (SqlState::WARNING_PRIVILEGE_NOT_GRANTED, format!("{some} privileges were granted for {quoted}")),
            false => (SqlState::WARNING_PRIVILEGE_NOT_REVOKED, format!("{some} privileges could be revoked for {quoted}")),
        };
        ddl.warning(state, message);
    }
    let change = ListChange {
        is_grant: grant.is_grant,
        grant_option: grant.grant_option,
        cascade: grant.cascade,
        owner: on.owner,
        grantor,
        privileges: grantable,
        grantees: &grant.grantees,
    };
    Ok(changed_list(&catalog, on.acl, &change)?.into())
}

/// The list of an object that has one list and no parts.
pub fn acl_after(
    ddl: &Ddl<'_>,
    grant: &Grant<'_>,
    kind: AclKind,
    owner: Oid,
    acl: Option<&[AclItem]>,
    what: &str,
    name: &str,
) -> Result<Arc<[AclItem]>> {
    let privileges = grant.whole(kind.all(), kind)?;
    let usual = kind.default_acl(owner);
    let on = ListOf {
        kind,
        owner,
        acl: acl.unwrap_or(&usual),
        beside: &[],
        described: format!("{what} {name}"),
        quoted: format!("\"{name}\""),
    };
    changed_acl(ddl, grant, &on, privileges)
}

/// A privilege list after a change of its object's owner.
pub fn given(acl: &Acl, old: Oid, new: Oid) -> Acl {
    acl.as_ref().map(|items| given_to(items, old, new).into())
}
