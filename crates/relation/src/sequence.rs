//! CREATE SEQUENCE, ALTER SEQUENCE, and the sequences behind serial and identity columns.

use std::sync::Arc;

use melba_catalog::{Object, ObjectAddress, Persistence, Relation, RelationKind, SequenceInfo, Storage, classes};
use melba_definition::context::Ddl;
use melba_definition::naming::unused_relation_name;
use melba_definition::words::plural;
use melba_engine::{RelationLockMode, SequenceDefinition, SequenceId, SequenceState};
use melba_parse::nodes::{option_bool, option_int, option_text, options, strings};
use melba_types::{DbError, Oid, Result, TreeId, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterSeqStmt, CreateSeqStmt, Node};

use crate::table::persistence::{engine_persistence, persistence};
use crate::table::relation::{bare_relation, new_column, put_relation, relation_exists};

/// The options of a sequence as written; missing ones have a default by type and direction.
#[derive(Clone, Debug, Default)]
pub struct SequenceOptions {
    pub ty: Option<Oid>,
    pub start: Option<i64>,
    pub increment: Option<i64>,
    /// `Some(None)`: NO MINVALUE.
    pub min: Option<Option<i64>>,
    pub max: Option<Option<i64>>,
    pub cache: Option<i64>,
    pub cycle: Option<bool>,
    /// RESTART: `Some(None)` from START.
    pub restart: Option<Option<i64>>,
    /// OWNED BY: empty for NONE.
    pub owned_by: Option<Vec<String>>,
    /// SEQUENCE NAME of an identity column.
    pub name: Option<Vec<String>>,
}

impl SequenceOptions {
    pub fn of_type(ty: Oid) -> SequenceOptions {
        SequenceOptions { ty: Some(ty), ..SequenceOptions::default() }
    }

    /// The complete definition, on top of `old` when altering.
    pub fn resolve(&self, old: Option<&SequenceInfo>) -> Result<SequenceInfo> {
        let ty = self.ty.or(old.map(|o| o.ty)).unwrap_or(oids::INT8);
        let (type_min, type_max) =
            type_range(ty).ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "sequence type must be smallint, integer, or bigint"))?;
        let increment = self.increment.or(old.map(|o| o.increment)).unwrap_or(1);
        if increment == 0 {
            bail!(INVALID_PARAMETER_VALUE, "INCREMENT must not be zero");
        }
        let old_range = old.and_then(|o| type_range(o.ty));
        // A bound that was the old type's becomes the new type's, whichever way the sequence counts.
        let follows = |bound: fn(&SequenceInfo) -> i64, of_type: fn((i64, i64)) -> i64| {
            self.ty.is_some() && old.zip(old_range).is_some_and(|(o, range)| bound(o) == of_type(range))
        };
        let (max_follows, min_follows) = (follows(|o| o.max, |r| r.1), follows(|o| o.min, |r| r.0));
        let default_max = if increment > 0 || max_follows { type_max } else { -1 };
        let default_min = if increment > 0 && !min_follows { 1 } else { type_min };
        let old_max = old.map(|o| o.max).filter(|_| !max_follows);
        let old_min = old.map(|o| o.min).filter(|_| !min_follows);
        let max = match self.max {
            Some(max) => max.unwrap_or(default_max),
            None => old_max.unwrap_or(default_max),
        };
        let min = match self.min {
            Some(min) => min.unwrap_or(default_min),
            None => old_min.unwrap_or(default_min),
        };
        let type_name = |ty| match ty {
            oids::INT2 => "smallint",
            oids::INT4 => "integer",
            _ => "bigint",
        };
        if max > type_max || max < type_min {
            bail!(INVALID_PARAMETER_VALUE, "MAXVALUE ({max}) is out of range for sequence data type {}", type_name(ty));
        }
        if min > type_max || min < type_min {
            bail!(INVALID_PARAMETER_VALUE, "MINVALUE ({min}) is out of range for sequence data type {}", type_name(ty));
        }
        if min >= max {
            bail!(INVALID_PARAMETER_VALUE, "MINVALUE ({min}) must be less than MAXVALUE ({max})");
        }
        let start = self.start.or(old.map(|o| o.start)).unwrap_or(if increment > 0 { min } else { max });
        if start < min {
            bail!(INVALID_PARAMETER_VALUE, "START value ({start}) cannot be less than MINVALUE ({min})");
        }
        if start > max {
            bail!(INVALID_PARAMETER_VALUE, "START value ({start}) cannot be greater than MAXVALUE ({max})");
        }
        let cache = self.cache.or(old.map(|o| o.cache)).unwrap_or(1);
        if cache <= 0 {
            bail!(INVALID_PARAMETER_VALUE, "CACHE ({cache}) must be greater than zero");
        }
        Ok(SequenceInfo {
            ty,
            start,
            increment,
            min,
            max,
            cache,
            cycle: self.cycle.or(old.map(|o| o.cycle)).unwrap_or(false),
            owned_by: old.and_then(|o| o.owned_by),
            identity: old.is_some_and(|o| o.identity),
        })
    }
}

fn type_range(ty: Oid) -> Option<(i64, i64)> {
    Some(match ty {
        oids::INT2 => (i16::MIN.into(), i16::MAX.into()),
        oids::INT4 => (i32::MIN.into(), i32::MAX.into()),
        oids::INT8 => (i64::MIN, i64::MAX),
        _ => return None,
    })
}

/// Whether sequences count in a type, and identity columns can be of it.
pub fn is_sequence_type(ty: Oid) -> bool {
    type_range(ty).is_some()
}

fn definition(info: &SequenceInfo) -> SequenceDefinition {
    SequenceDefinition { increment: info.increment, min: info.min, max: info.max, cycle: info.cycle }
}

/// Reads a sequence option list. `ty`: the column's type, for identity columns.
pub fn sequence_options(ddl: &Ddl<'_>, nodes: &[Node], ty: Option<Oid>) -> Result<SequenceOptions> {
    let mut out = SequenceOptions { ty, ..SequenceOptions::default() };
    let mut seen: Vec<&str> = Vec::new();
    for def in options(nodes) {
        let key = if def.defname == "minvalue" || def.defname == "maxvalue" { def.defname.as_str() } else { &def.defname };
        if seen.contains(&key) {
            return Err(err!(SYNTAX_ERROR, "conflicting or redundant options").at(def.location));
        }
        seen.push(key);
        let optional = |def| -> Result<Option<i64>> { option_text(def).map(|_| option_int(def)).transpose() };
        match def.defname.as_str() {
            "as" => match def.arg.as_ref().and_then(|a| a.node.as_ref()) {
                Some(N::TypeName(t)) => out.ty = Some(ddl.type_from_name(t)?.0),
                _ => bail!(SYNTAX_ERROR, "AS requires a type name"),
            },
            "start" => out.start = Some(option_int(def)?),
            "increment" => out.increment = Some(option_int(def)?),
            "minvalue" => out.min = Some(optional(def)?),
            "maxvalue" => out.max = Some(optional(def)?),
            "cache" => out.cache = Some(option_int(def)?),
            "cycle" => out.cycle = Some(option_bool(def)?),
            "restart" => out.restart = Some(optional(def)?),
            "owned_by" => out.owned_by = Some(name_list(def)),
            "sequence_name" => out.name = Some(name_list(def)),
            other => return Err(DbError::unsupported(format!("sequence option \"{other}\""))),
        }
    }
    Ok(out)
}

pub fn create_sequence_statement(ddl: &Ddl<'_>, s: &CreateSeqStmt) -> Result<()> {
    let name = s.sequence.as_ref().ok_or_else(|| DbError::internal("CREATE SEQUENCE without a name"))?;
    let (namespace, temporary) = ddl.relation_namespace(name)?;
    if relation_exists(ddl, namespace, &name.relname, s.if_not_exists)? {
        return Ok(());
    }
    let options = sequence_options(ddl, &s.options, None)?;
    let persistence = persistence(ddl, &name.relpersistence, temporary, "")?;
    let oid = put_sequence(ddl, namespace, &name.relname, persistence, options.resolve(None)?)?;
    if let Some(owner) = &options.owned_by {
        set_sequence_owner(ddl, oid, owner)?;
    }
    Ok(())
}

fn put_sequence(ddl: &Ddl<'_>, namespace: Oid, name: &str, persistence: Persistence, info: SequenceInfo) -> Result<Oid> {
    let state = SequenceState { last_value: info.start, is_called: false };
    let storage = new_sequence_storage(ddl, &info, state, persistence)?;
    let relation = Relation {
        storage: Storage::Sequence(TreeId(storage.0)),
        sequence: Some(Arc::new(info)),
        ..bare_relation(ddl, namespace, name, RelationKind::Sequence, persistence, sequence_columns(ddl)?)
    };
    let oid = relation.oid;
    ddl.tx().put(Object::Relation(Arc::new(relation)));
    Ok(oid)
}

/// A counter of the engine's.
pub fn new_sequence_storage(
    ddl: &Ddl<'_>,
    info: &SequenceInfo,
    state: SequenceState,
    persistence: Persistence,
) -> Result<SequenceId> {
    Ok(ddl.tx().engine.create_sequence(definition(info), state, engine_persistence(persistence))?)
}

/// The columns that SELECT FROM a sequence shows.
fn sequence_columns(ddl: &Ddl<'_>) -> Result<Vec<melba_catalog::Column>> {
    [("last_value", oids::INT8), ("log_cnt", oids::INT8), ("is_called", oids::BOOL)]
        .into_iter()
        .map(|(name, ty)| Ok(melba_catalog::Column { not_null: true, ..new_column(ddl, name, ty, -1)? }))
        .collect()
}

/// The sequence of a serial or identity column, and the column's default. `statement` is CREATE TABLE or ALTER TABLE.
pub fn create_owned_sequence(
    ddl: &Ddl<'_>,
    statement: &str,
    table: Oid,
    column: usize,
    options: SequenceOptions,
    identity: bool,
) -> Result<()> {
    let relation = ddl.relation(table)?;
    let catalog = ddl.catalog();
    let (namespace, name) = match &options.name {
        Some(names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (schema, name) = ddl.qualified(&names)?;
            (schema.map_or(Ok(relation.namespace), |s| Ok::<_, DbError>(ddl.namespace(s)?.oid))?, name.to_owned())
        }
        None => {
            let name =
                unused_relation_name(&catalog, relation.namespace, &relation.name, Some(&relation.columns[column].name), "seq");
            (relation.namespace, name)
        }
    };
    let place = format!("{}.{}", relation.name, relation.columns[column].name);
    ddl.debug(format!("{statement} will create implicit sequence \"{name}\" for serial column \"{place}\""));
    if identity && type_range(relation.columns[column].ty).is_none() {
        bail!(INVALID_PARAMETER_VALUE, "identity column type must be smallint, integer, or bigint");
    }
    let info = SequenceInfo { owned_by: Some((table, column as i16 + 1)), identity, ..options.resolve(None)? };
    let sequence = put_sequence(ddl, namespace, &name, relation.persistence, info)?;
    if !identity {
        let text = format!("nextval('{sequence}'::regclass)");
        let mut columns = relation.columns.to_vec();
        columns[column].default = Some(text.into());
        columns[column].default_oid = ddl.tx().new_oid();
        columns[column].default_depends_on = vec![ObjectAddress { class: classes::PG_CLASS, object: sequence, sub: 0 }];
        put_relation(ddl, Relation { columns: columns.into(), ..(*relation).clone() });
    }
    Ok(())
}

/// The definition of the sequence that a column owns, for LIKE INCLUDING IDENTITY.
pub fn owned_sequence_options(ddl: &Ddl<'_>, table: &Relation, column: &str) -> Result<SequenceOptions> {
    let sequence = owned_sequence(ddl, table, column).ok_or_else(|| DbError::internal("identity column without sequence"))?;
    let info = sequence.sequence.as_ref().ok_or_else(|| DbError::internal("sequence without definition"))?;
    Ok(SequenceOptions {
        ty: Some(info.ty),
        start: Some(info.start),
        increment: Some(info.increment),
        min: Some(Some(info.min)),
        max: Some(Some(info.max)),
        cache: Some(info.cache),
        cycle: Some(info.cycle),
        ..SequenceOptions::default()
    })
}

/// The sequence owned by a column.
pub fn owned_sequence(ddl: &Ddl<'_>, table: &Relation, column: &str) -> Option<Arc<Relation>> {
    let number = table.columns.iter().position(|c| *c.name == *column)? as i16 + 1;
    let catalog = ddl.catalog();
    let address = ObjectAddress { class: classes::PG_CLASS, object: table.oid, sub: 0 };
    catalog
        .dependents(address)
        .filter_map(|d| catalog.relation(d.dependent.object))
        .find(|r| r.sequence.as_ref().is_some_and(|s| s.owned_by == Some((table.oid, number))))
        .cloned()
}

fn set_sequence_owner(ddl: &Ddl<'_>, sequence: Oid, owner: &[String]) -> Result<()> {
    let relation = ddl.relation(sequence)?;
    let info = relation.sequence.as_ref().ok_or_else(|| DbError::internal("sequence without definition"))?;
    if info.identity {
        let catalog = ddl.catalog();
        let table = info.owned_by.and_then(|(table, _)| catalog.relation(table)).map_or("", |t| &t.name);
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot change ownership of identity sequence")
            .detail(format!("Sequence \"{}\" is linked to table \"{table}\".", relation.name)));
    }
    let owned_by = match owner {
        [none] if none == "none" => None,
        [] | [_] => {
            return Err(err!(SYNTAX_ERROR, "invalid OWNED BY option").hint("Specify OWNED BY table.column or OWNED BY NONE."));
        }
        [table @ .., column] => {
            let range = pg_query::protobuf::RangeVar {
                relname: table.last().cloned().unwrap_or_default(),
                schemaname: if table.len() > 1 { table[table.len() - 2].clone() } else { String::new() },
                location: -1,
                ..Default::default()
            };
            let table = ddl.open_relation(&range, RelationLockMode::AccessShare)?;
            if matches!(table.kind, RelationKind::Index | RelationKind::PartitionedIndex | RelationKind::Sequence) {
                return Err(err!(WRONG_OBJECT_TYPE, "sequence cannot be owned by relation \"{}\"", table.name)
                    .detail(format!("This operation is not supported for {}.", plural(table.kind))));
            }
            if table.owner != relation.owner {
                bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "sequence must have same owner as table it is linked to");
            }
            if table.namespace != relation.namespace {
                bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "sequence must be in same schema as table it is linked to");
            }
            let number = table
                .columns
                .iter()
                .position(|c| *c.name == **column && !c.dropped)
                .ok_or_else(|| err!(UNDEFINED_COLUMN, "column \"{column}\" of relation \"{}\" does not exist", table.name))?;
            Some((table.oid, number as i16 + 1))
        }
    };
    let info = SequenceInfo { owned_by, ..(**info).clone() };
    put_relation(ddl, Relation { sequence: Some(Arc::new(info)), ..(*relation).clone() });
    Ok(())
}

pub fn alter_sequence(ddl: &Ddl<'_>, s: &AlterSeqStmt) -> Result<()> {
    let name = s.sequence.as_ref().ok_or_else(|| DbError::internal("ALTER SEQUENCE without a name"))?;
    if s.missing_ok && ddl.find_relation(name)?.is_none() {
        ddl.notice(format!("relation \"{}\" does not exist, skipping", name.relname));
        return Ok(());
    }
    let relation = ddl.open_target(name)?;
    if relation.kind != RelationKind::Sequence {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a sequence", relation.name);
    }
    ddl.require_owner(relation.owner, "sequence", &relation.name)?;
    change_sequence(ddl, &relation, &sequence_options(ddl, &s.options, None)?)
}

/// Applies new options to a sequence.
pub fn change_sequence(ddl: &Ddl<'_>, relation: &Relation, options: &SequenceOptions) -> Result<()> {
    let (Some(old), Storage::Sequence(tree)) = (&relation.sequence, &relation.storage) else {
        return Err(DbError::internal("sequence without definition"));
    };
    let info = options.resolve(Some(old))?;
    let restart = options.restart.map(|r| r.unwrap_or(info.start));
    if let Some(value) = restart {
        if value < info.min {
            bail!(INVALID_PARAMETER_VALUE, "RESTART value ({value}) cannot be less than MINVALUE ({})", info.min);
        }
        if value > info.max {
            bail!(INVALID_PARAMETER_VALUE, "RESTART value ({value}) cannot be greater than MAXVALUE ({})", info.max);
        }
    }
    // As in PostgreSQL: the counter gets new storage, so that a rollback restores the old one.
    let old_id = SequenceId(tree.0);
    let state = match restart {
        Some(last_value) => SequenceState { last_value, is_called: false },
        None => ddl.tx().engine.sequence_state(old_id)?,
    };
    let storage = new_sequence_storage(ddl, &info, state, relation.persistence)?;
    ddl.tx().engine.drop_sequence(old_id)?;
    put_relation(
        ddl,
        Relation { sequence: Some(Arc::new(info)), storage: Storage::Sequence(TreeId(storage.0)), ..relation.clone() },
    );
    if let Some(owner) = &options.owned_by {
        set_sequence_owner(ddl, relation.oid, owner)?;
    }
    Ok(())
}

fn name_list(def: &pg_query::protobuf::DefElem) -> Vec<String> {
    match def.arg.as_ref().and_then(|a| a.node.as_ref()) {
        Some(N::List(l)) => strings(&l.items).into_iter().map(str::to_owned).collect(),
        _ => vec![],
    }
}
