//! CREATE DOMAIN and ALTER DOMAIN.

use std::sync::Arc;

use melba_catalog::default_privileges::initial_acl;
use melba_catalog::privileges::AclKind;
use melba_catalog::{
    Constraint as Row, ConstraintKind, DomainInfo, Object, ObjectAddress, Persistence, Relation, RelationKind, Type, TypeKind,
    classes, quote_literal,
};
use melba_definition::context::Ddl;
use melba_definition::expression::{domain_default, stored_domain_check};
use melba_definition::naming::unused_constraint_name;
use melba_parse::nodes::{inner, strings};
use melba_relation::constraint::row::bare_constraint;
use melba_relation::table::relation::{bare_relation, new_column};
use melba_routine::array::{new_type_name, put_array_type};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterDomainStmt, ConstrType, Constraint, CreateDomainStmt, RenameStmt};

use crate::types::domain_columns::check_domain_columns;
use crate::types::named::{open_type_named, type_named};

pub fn create_domain(ddl: &Ddl<'_>, s: &CreateDomainStmt) -> Result<()> {
    let (namespace, name, shell) = new_type_name(ddl, &strings(&s.domainname))?;
    let type_name = s.type_name.as_ref().ok_or_else(|| DbError::internal("domain without a type"))?;
    let (base, typmod) = ddl.usable_type(type_name)?;
    let of = ddl.catalog().type_(base).cloned().ok_or_else(|| DbError::internal("missing type"))?;
    if of.type_kind == TypeKind::Pseudo {
        return Err(err!(DATATYPE_MISMATCH, "\"{}\" is not a valid base type for a domain", of.name).at(type_name.location));
    }
    // The base type's default is the domain's, unless it has its own.
    let of_base = || of.base.as_ref().and_then(|base| Some(quote_literal(base.default.as_deref()?).into()));
    let default = of.domain.as_ref().and_then(|d| d.default.clone()).or_else(of_base);
    let depends_on = if default.is_some() { of.depends_on.clone() } else { vec![] };
    let info = DomainInfo { base, typmod, dimensions: 0, not_null: false, default, constraints: vec![] };
    let collation = match &s.coll_clause {
        Some(clause) => ddl.collation(&strings(&clause.collname), base, type_name.location)?,
        None => of.collation,
    };
    let domain = Type {
        oid: shell.unwrap_or_else(|| ddl.tx().new_oid()),
        name: name.into(),
        namespace,
        owner: ddl.user(),
        type_kind: TypeKind::Domain,
        preferred: false,
        array: Oid::INVALID,
        element: Oid::INVALID,
        subscript: "-".into(),
        collation,
        input: "domain_in".into(),
        receive: "domain_recv".into(),
        typmod_in: "-".into(),
        typmod_out: "-".into(),
        domain: Some(Arc::new(info)),
        depends_on,
        labels: vec![],
        base: None,
        acl: initial_acl(&ddl.catalog(), AclKind::Type, ddl.user(), namespace),
        ..(*of).clone()
    };
    let (domain, rows) = with_domain_constraints(ddl, domain, s)?;
    let array = put_array_type(ddl, name, namespace, domain.oid, of.align)?;
    ddl.tx().put(Object::Type(Arc::new(Type { array, ..domain })));
    rows.into_iter().for_each(|row| ddl.tx().put(Object::Constraint(Arc::new(row))));
    Ok(())
}

fn with_domain_constraints(ddl: &Ddl<'_>, mut domain: Type, s: &CreateDomainStmt) -> Result<(Type, Vec<Row>)> {
    let Some(mut info) = domain.domain.as_deref().cloned() else { return Ok((domain, vec![])) };
    let (mut rows, mut nullable, mut has_default) = (Vec::new(), false, false);
    for node in &s.constraints {
        let N::Constraint(c) = inner(node)? else { continue };
        let conflict = || err!(SYNTAX_ERROR, "conflicting NULL/NOT NULL constraints").at(c.location);
        match c.contype() {
            ConstrType::ConstrNull if info.not_null => return Err(conflict()),
            ConstrType::ConstrNotnull if nullable => return Err(conflict()),
            ConstrType::ConstrNotnull if info.not_null => {
                return Err(err!(INVALID_OBJECT_DEFINITION, "redundant NOT NULL constraint definition").at(c.location));
            }
            ConstrType::ConstrNull => nullable = true,
            ConstrType::ConstrDefault if has_default => {
                return Err(err!(SYNTAX_ERROR, "multiple default expressions").at(c.location));
            }
            ConstrType::ConstrDefault => {
                has_default = true;
                (info.default, domain.depends_on) = new_domain_default(ddl, &domain, c.raw_expr.as_deref())?;
            }
            _ => {
                domain_constraint_kind(c).map_err(|e| e.at(c.location))?;
                let row = domain_constraint(ddl, c, &domain, &rows)?;
                info.not_null |= row.kind == ConstraintKind::NotNull;
                rows.push(row);
            }
        }
    }
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    info.constraints = rows.iter().map(|row| row.oid).collect();
    Ok((Type { domain: Some(Arc::new(info)), ..domain }, rows))
}

/// The default of a domain, and its dependencies.
fn new_domain_default(
    ddl: &Ddl<'_>,
    domain: &Type,
    node: Option<&pg_query::protobuf::Node>,
) -> Result<(Option<Arc<str>>, Vec<ObjectAddress>)> {
    let (Some(info), Some(node)) = (&domain.domain, node) else { return Ok((None, vec![])) };
    let column = new_column(ddl, &domain.name, info.base, info.typmod)?;
    let (text, mentioned) = domain_default(ddl, node, &shown_domain(ddl, domain), &column)?;
    Ok((Some(text), mentioned))
}

/// A domain as relations are described.
fn shown_domain(ddl: &Ddl<'_>, domain: &Type) -> Relation {
    bare_relation(ddl, domain.namespace, &domain.name, RelationKind::Composite, Persistence::Permanent, vec![])
}

/// A constraint of a domain, beside new ones.
fn domain_constraint(ddl: &Ddl<'_>, c: &Constraint, domain: &Type, others: &[Row]) -> Result<Row> {
    let (kind, label) = domain_constraint_kind(c)?;
    let catalog = ddl.catalog();
    let name = match c.conname.as_str() {
        "" => {
            let taken: Vec<String> = others.iter().map(|o| o.name.to_string()).collect();
            unused_constraint_name(&catalog, domain.namespace, &taken, &domain.name, None, label)
        }
        name => name.to_owned(),
    };
    let info = domain.domain.as_ref().ok_or_else(|| DbError::internal("domain without definition"))?;
    let known = info.constraints.iter().filter_map(|c| catalog.constraint(*c)).map(|c| &c.name);
    if known.chain(others.iter().map(|c| &c.name)).any(|n| **n == *name) {
        bail!(DUPLICATE_OBJECT, "constraint \"{name}\" for domain \"{}\" already exists", domain.name);
    }
    let (mut expression, mut depends_on) = (None, Vec::new());
    if kind == ConstraintKind::Check {
        let node = c.raw_expr.as_deref().ok_or_else(|| DbError::internal("check without an expression"))?;
        let (text, mentioned) = stored_domain_check(ddl, node, info.base, info.typmod)?;
        (expression, depends_on) = (Some(text), mentioned);
    }
    Ok(Row {
        relation: Oid::INVALID,
        domain: domain.oid,
        expression,
        depends_on,
        validated: !c.skip_validation,
        ..bare_constraint(ddl, &shown_domain(ddl, domain), &name, kind)?
    })
}

/// ALTER DOMAIN, except the forms that other objects share.
pub fn alter_domain(ddl: &Ddl<'_>, s: &AlterDomainStmt) -> Result<()> {
    let domain = open_domain(ddl, &strings(&s.type_name))?;
    ddl.require_type_owner(&domain)?;
    let info = domain.domain.as_deref().cloned().ok_or_else(|| DbError::internal("domain without definition"))?;
    match s.subtype.as_str() {
        "T" => {
            let (default, depends_on) = new_domain_default(ddl, &domain, s.def.as_deref())?;
            put_domain(ddl, &Type { depends_on, ..(*domain).clone() }, DomainInfo { default, ..info });
            Ok(())
        }
        "N" if !info.not_null => Ok(()),
        "N" => drop_domain_constraint(ddl, &domain, |c| c.kind == ConstraintKind::NotNull).map(drop),
        "O" => {
            let not_null = Constraint { contype: ConstrType::ConstrNotnull as i32, ..Constraint::default() };
            add_domain_constraint(ddl, &domain, &not_null)
        }
        "C" => match s.def.as_deref().and_then(|n| n.node.as_ref()) {
            Some(N::Constraint(c)) => add_domain_constraint(ddl, &domain, c),
            _ => Err(DbError::internal("ADD CONSTRAINT without a constraint")),
        },
        "X" => {
            let (found, name) = (drop_domain_constraint(ddl, &domain, |c| *c.name == *s.name)?, &s.name);
            let missing = format!("constraint \"{name}\" of domain \"{}\" does not exist", domain.name);
            match found {
                false if s.missing_ok => ddl.notice(format!("{missing}, skipping")),
                false => bail!(UNDEFINED_OBJECT, "{missing}"),
                true => {}
            }
            Ok(())
        }
        "V" => validate_domain_constraint(ddl, &domain, &s.name),
        _ => Err(DbError::unsupported("this form of ALTER DOMAIN")),
    }
}

/// The domain of a name.
pub fn domain_by_name(ddl: &Ddl<'_>, names: &[&str]) -> Result<Arc<Type>> {
    require_domain(ddl, type_named(ddl, names)?)
}

/// The same; others cannot change or drop it until the transaction ends.
fn open_domain(ddl: &Ddl<'_>, names: &[&str]) -> Result<Arc<Type>> {
    require_domain(ddl, open_type_named(ddl, names)?)
}

fn require_domain(ddl: &Ddl<'_>, ty: Arc<Type>) -> Result<Arc<Type>> {
    match ty.domain {
        Some(_) => Ok(ty),
        None => bail!(WRONG_OBJECT_TYPE, "{} is not a domain", ddl.catalog().type_name(ty.oid, ddl.path())),
    }
}

/// A constraint of a domain.
pub fn domain_constraint_by_name(ddl: &Ddl<'_>, domain: &Type, name: &str) -> Result<Arc<Row>> {
    let catalog = ddl.catalog();
    let all = domain.domain.iter().flat_map(|d| &d.constraints).filter_map(|c| catalog.constraint(*c));
    let found = all.into_iter().find(|c| *c.name == *name).cloned();
    found.ok_or_else(|| {
        let shown = catalog.type_name(domain.oid, ddl.path());
        err!(UNDEFINED_OBJECT, "constraint \"{name}\" for domain {shown} does not exist")
    })
}

/// RENAME CONSTRAINT of a domain.
pub fn rename_domain_constraint(ddl: &Ddl<'_>, s: &RenameStmt) -> Result<()> {
    let names = match s.object.as_deref().and_then(|n| n.node.as_ref()) {
        Some(N::List(list)) => strings(&list.items),
        _ => vec![],
    };
    let domain = open_domain(ddl, &names)?;
    ddl.require_type_owner(&domain)?;
    let row = domain_constraint_by_name(ddl, &domain, &s.subname)?;
    if let Ok(taken) = domain_constraint_by_name(ddl, &domain, &s.newname) {
        bail!(DUPLICATE_OBJECT, "constraint \"{}\" for domain {} already exists", taken.name, domain.name);
    }
    ddl.tx().put(Object::Constraint(Arc::new(Row { name: s.newname.as_str().into(), ..(*row).clone() })));
    let info = domain.domain.as_deref().cloned().ok_or_else(|| DbError::internal("domain without definition"))?;
    put_domain(ddl, &domain, info);
    Ok(())
}

/// Its constraints are in the order of their names, in which they are checked.
fn put_domain(ddl: &Ddl<'_>, domain: &Type, mut info: DomainInfo) {
    let catalog = ddl.catalog();
    info.constraints.sort_by_key(|c| catalog.constraint(*c).map(|c| c.name.clone()));
    ddl.tx().put(Object::Type(Arc::new(Type { domain: Some(Arc::new(info)), ..domain.clone() })));
}

fn add_domain_constraint(ddl: &Ddl<'_>, domain: &Type, c: &Constraint) -> Result<()> {
    let mut info = domain.domain.as_deref().cloned().ok_or_else(|| DbError::internal("domain without definition"))?;
    if c.contype() == ConstrType::ConstrNotnull && info.not_null {
        return Ok(());
    }
    let row = domain_constraint(ddl, c, domain, &[])?;
    if row.validated {
        check_domain_columns(ddl, domain, &row)?;
    }
    info.not_null |= row.kind == ConstraintKind::NotNull;
    info.constraints.push(row.oid);
    ddl.tx().put(Object::Constraint(Arc::new(row)));
    put_domain(ddl, domain, info);
    Ok(())
}

/// Drops a constraint of a domain; whether there is one.
fn drop_domain_constraint(ddl: &Ddl<'_>, domain: &Type, is_it: impl Fn(&Row) -> bool) -> Result<bool> {
    let catalog = ddl.catalog();
    let info = domain.domain.as_deref().cloned().ok_or_else(|| DbError::internal("domain without definition"))?;
    let Some(row) = info.constraints.iter().filter_map(|c| catalog.constraint(*c)).find(|c| is_it(c)) else {
        return Ok(false);
    };
    let constraints = info.constraints.iter().copied().filter(|c| *c != row.oid).collect();
    let not_null = info.not_null && row.kind != ConstraintKind::NotNull;
    put_domain(ddl, domain, DomainInfo { constraints, not_null, ..info });
    ddl.tx().remove(ObjectAddress { class: classes::PG_CONSTRAINT, object: row.oid, sub: 0 });
    Ok(true)
}

fn validate_domain_constraint(ddl: &Ddl<'_>, domain: &Type, name: &str) -> Result<()> {
    let catalog = ddl.catalog();
    let all = domain.domain.iter().flat_map(|d| &d.constraints).filter_map(|c| catalog.constraint(*c));
    let Some(row) = all.into_iter().find(|c| *c.name == *name) else {
        bail!(UNDEFINED_OBJECT, "constraint \"{name}\" of domain \"{}\" does not exist", domain.name);
    };
    if row.kind != ConstraintKind::Check {
        bail!(WRONG_OBJECT_TYPE, "constraint \"{name}\" of domain \"{}\" is not a check constraint", domain.name);
    }
    check_domain_columns(ddl, domain, row)?;
    ddl.tx().put(Object::Constraint(Arc::new(Row { validated: true, ..(**row).clone() })));
    Ok(())
}

/// The kind of a domain's constraint, and the end of its name.
fn domain_constraint_kind(c: &Constraint) -> Result<(ConstraintKind, &'static str)> {
    use ConstrType::*;
    let impossible = |what: &str| err!(SYNTAX_ERROR, "{what} constraints not possible for domains");
    let inherited = |what: &str| err!(INVALID_OBJECT_DEFINITION, "{what} constraints for domains cannot be marked NO INHERIT");
    let unsupported = |what: &str| err!(FEATURE_NOT_SUPPORTED, "specifying {what} not supported for domains");
    Err(match c.contype() {
        ConstrNotnull if c.is_no_inherit => inherited("not-null"),
        ConstrCheck if c.is_no_inherit => inherited("check"),
        ConstrNotnull => return Ok((ConstraintKind::NotNull, "not_null")),
        ConstrCheck => return Ok((ConstraintKind::Check, "check")),
        ConstrUnique => impossible("unique"),
        ConstrPrimary => impossible("primary key"),
        ConstrExclusion => impossible("exclusion"),
        ConstrForeign => impossible("foreign key"),
        ConstrAttrDeferrable | ConstrAttrNotDeferrable | ConstrAttrDeferred | ConstrAttrImmediate => {
            unsupported("constraint deferrability")
        }
        ConstrIdentity | ConstrGenerated => unsupported("GENERATED"),
        ConstrAttrEnforced | ConstrAttrNotEnforced => unsupported("constraint enforceability"),
        _ => DbError::internal("unrecognized constraint of a domain"),
    })
}
