//! Type names as written to (OID, type modifier).

use std::sync::Arc;

use melba_catalog::Type;
use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::context::Context;
use super::nodes;

impl Context<'_> {
    /// A type name to its type and type modifier; undefined types, shells and bad modifiers are errors.
    pub fn transform_type_name(&self, name: &pb::TypeName) -> Result<(Oid, i32)> {
        let Some(ty) = self.lookup_type_name(name)? else {
            let shown = self.type_name_text(name);
            return Err(err!(UNDEFINED_OBJECT, "type \"{shown}\" does not exist").at(name.location));
        };
        if !ty.defined {
            let shown = self.type_name_text(name);
            return Err(err!(UNDEFINED_OBJECT, "type \"{shown}\" is only a shell").at(name.location));
        }
        let typmod = self.type_modifier(name, &ty)?;
        Ok((ty.oid, typmod))
    }

    /// The type of a name, or none. Ignores modifiers.
    pub fn lookup_type_name(&self, name: &pb::TypeName) -> Result<Option<Arc<Type>>> {
        if name.names.is_empty() {
            return Ok(self.catalog.type_(Oid(name.type_oid)).cloned());
        }
        let names = nodes::strings(&name.names);
        let found = if name.pct_type {
            Some(self.percent_type(&names, name.location)?)
        } else {
            match names[..] {
                [name] => self.find_type(None, name)?,
                [schema, name] => self.find_type(Some(schema), name)?,
                [database, schema, name] => {
                    self.check_database(database, &names)?;
                    self.find_type(Some(schema), name)?
                }
                _ => return Err(err!(SYNTAX_ERROR, "improper qualified name (too many dotted names): {}", names.join("."))),
            }
        };
        let Some(found) = found else { return Ok(None) };
        if name.array_bounds.is_empty() {
            return Ok(Some(found.clone()));
        }
        Ok(self.catalog.type_(found.array).cloned())
    }

    pub fn check_database(&self, database: &str, names: &[&str]) -> Result<()> {
        if database == self.database {
            return Ok(());
        }
        let shown = names.join(".");
        Err(err!(FEATURE_NOT_SUPPORTED, "cross-database references are not implemented: {shown}"))
    }

    fn percent_type(&self, names: &[&str], location: i32) -> Result<&Arc<Type>> {
        let (schema, table, column) = match names {
            [table, column] => (None, *table, *column),
            [schema, table, column] => (Some(*schema), *table, *column),
            [_] => {
                let shown = names.join(".");
                return Err(err!(SYNTAX_ERROR, "improper %TYPE reference (too few dotted names): {shown}").at(location));
            }
            _ => {
                let shown = names.join(".");
                return Err(err!(SYNTAX_ERROR, "improper %TYPE reference (too many dotted names): {shown}").at(location));
            }
        };
        let relation = self.find_relation(schema, table).ok_or_else(|| missing_relation(schema, table))?;
        let found = relation.columns.iter().find(|c| !c.dropped && &*c.name == column);
        match found {
            Some(c) => self.ty(c.ty),
            None => Err(err!(UNDEFINED_COLUMN, "column \"{column}\" of relation \"{table}\" does not exist").at(location)),
        }
    }

    /// The name as messages have it, with its brackets.
    pub fn type_name_text(&self, name: &pb::TypeName) -> String {
        let mut out = if name.names.is_empty() { self.type_name(Oid(name.type_oid)) } else { nodes::dotted(&name.names) };
        if name.pct_type {
            out.push_str("%TYPE");
        }
        if !name.array_bounds.is_empty() {
            out.push_str("[]");
        }
        out
    }

    fn type_modifier(&self, name: &pb::TypeName, ty: &Type) -> Result<i32> {
        if name.typmods.is_empty() {
            return Ok(name.typemod);
        }
        let mut values = Vec::with_capacity(name.typmods.len());
        for node in &name.typmods {
            let text = match &node.node {
                Some(NodeEnum::AConst(c)) => match &c.val {
                    Some(pb::a_const::Val::Ival(i)) => Some(i.ival.to_string()),
                    // protobuf drops a zero integer's content but not its kind.
                    Some(pb::a_const::Val::Fval(f)) => Some(f.fval.clone()),
                    Some(pb::a_const::Val::Sval(s)) => Some(s.sval.clone()),
                    _ => None,
                },
                Some(NodeEnum::ColumnRef(c)) => match &c.fields[..] {
                    [field] => nodes::string(field).map(str::to_owned),
                    _ => None,
                },
                _ => None,
            };
            let Some(text) = text else {
                return Err(err!(SYNTAX_ERROR, "type modifiers must be simple constants or identifiers").at(name.location));
            };
            values.push(text);
        }
        let typmod_in = match self.catalog.array_element(ty.oid).filter(|_| ty.typmod_in.is_empty() || &*ty.typmod_in == "-") {
            Some(element) => self.ty(element)?.typmod_in.clone(),
            None => ty.typmod_in.clone(),
        };
        if typmod_in.is_empty() || &*typmod_in == "-" {
            let shown = self.type_name_text(name);
            return Err(err!(SYNTAX_ERROR, "type modifier is not allowed for type \"{shown}\"").at(name.location));
        }
        let mut numbers = Vec::with_capacity(values.len());
        for value in &values {
            let number = value.parse::<i32>().map_err(|_| {
                err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type integer: \"{value}\"").at(name.location)
            })?;
            numbers.push(number);
        }
        typmod_from(&typmod_in, &numbers).map_err(|e| e.at(name.location))
    }
}

/// 42P01 for a name that no relation has.
pub fn missing_relation(schema: Option<&str>, name: &str) -> DbError {
    match schema {
        Some(schema) => err!(UNDEFINED_TABLE, "relation \"{schema}.{name}\" does not exist"),
        None => err!(UNDEFINED_TABLE, "relation \"{name}\" does not exist"),
    }
}

/// The result of a type's typmod input function for the numbers.
pub fn typmod_from(function: &str, values: &[i32]) -> Result<i32> {
    match function {
        "varchartypmodin" => char_length(values, "varchar"),
        "bpchartypmodin" => char_length(values, "char"),
        "bittypmodin" => bit_length(values, "bit"),
        "varbittypmodin" => bit_length(values, "varbit"),
        "numerictypmodin" => numeric(values),
        "timetypmodin" => time_precision(values, "TIME", ""),
        "timetztypmodin" => time_precision(values, "TIME", " WITH TIME ZONE"),
        "timestamptypmodin" => time_precision(values, "TIMESTAMP", ""),
        "timestamptztypmodin" => time_precision(values, "TIMESTAMP", " WITH TIME ZONE"),
        "intervaltypmodin" => interval(values),
        other => Err(DbError::unsupported(format!("type modifier function {other}"))),
    }
}

fn char_length(values: &[i32], name: &str) -> Result<i32> {
    const LENGTH_MAX: i32 = 10_485_760;
    match values {
        [n] if *n < 1 => Err(err!(INVALID_PARAMETER_VALUE, "length for type {name} must be at least 1")),
        [n] if *n > LENGTH_MAX => Err(err!(INVALID_PARAMETER_VALUE, "length for type {name} cannot exceed {LENGTH_MAX}")),
        [n] => Ok(n + 4),
        _ => Err(err!(INVALID_PARAMETER_VALUE, "invalid type modifier")),
    }
}

fn bit_length(values: &[i32], name: &str) -> Result<i32> {
    const LENGTH_MAX: i32 = 83_886_080;
    match values {
        [n] if *n < 1 => Err(err!(INVALID_PARAMETER_VALUE, "length for type {name} must be at least 1")),
        [n] if *n > LENGTH_MAX => Err(err!(INVALID_PARAMETER_VALUE, "length for type {name} cannot exceed {LENGTH_MAX}")),
        [n] => Ok(*n),
        _ => Err(err!(INVALID_PARAMETER_VALUE, "invalid type modifier")),
    }
}

fn numeric(values: &[i32]) -> Result<i32> {
    let (precision, scale) = match values {
        [precision] => (*precision, 0),
        [precision, scale] => (*precision, *scale),
        _ => return Err(err!(INVALID_PARAMETER_VALUE, "invalid NUMERIC type modifier")),
    };
    if !(1..=1000).contains(&precision) {
        return Err(err!(INVALID_PARAMETER_VALUE, "NUMERIC precision {precision} must be between 1 and 1000"));
    }
    if !(-1000..=1000).contains(&scale) {
        return Err(err!(INVALID_PARAMETER_VALUE, "NUMERIC scale {scale} must be between -1000 and 1000"));
    }
    Ok(((precision << 16) | (scale & 0x7ff)) + 4)
}

fn time_precision(values: &[i32], name: &str, zone: &str) -> Result<i32> {
    match values {
        [n] if *n < 0 => Err(err!(INVALID_PARAMETER_VALUE, "{name}({n}){zone} precision must not be negative")),
        [n] => Ok((*n).min(6)),
        _ => Err(err!(INVALID_PARAMETER_VALUE, "invalid type modifier")),
    }
}

fn interval(values: &[i32]) -> Result<i32> {
    const FULL_RANGE: i32 = 0x7fff;
    const FULL_PRECISION: i32 = 0xffff;
    match values {
        [range] if *range == FULL_RANGE => Ok(-1),
        [range] => Ok((FULL_PRECISION) | (range << 16)),
        [_, precision] if *precision < 0 => {
            Err(err!(INVALID_PARAMETER_VALUE, "INTERVAL({precision}) precision must not be negative"))
        }
        [range, precision] => Ok((*precision).min(6) | (range << 16)),
        _ => Err(err!(INVALID_PARAMETER_VALUE, "invalid INTERVAL type modifier")),
    }
}

/// Whether a type may be a column of a table or the like; 42P16 otherwise.
pub fn is_pseudo(ty: Oid) -> bool {
    matches!(
        ty,
        oids::ANY
            | oids::ANYELEMENT
            | oids::ANYARRAY
            | oids::ANYNONARRAY
            | oids::ANYENUM
            | oids::ANYRANGE
            | oids::ANYMULTIRANGE
            | oids::ANYCOMPATIBLE
            | oids::ANYCOMPATIBLEARRAY
            | oids::ANYCOMPATIBLENONARRAY
            | oids::ANYCOMPATIBLERANGE
            | oids::ANYCOMPATIBLEMULTIRANGE
            | oids::RECORD
            | oids::VOID
            | oids::TRIGGER
            | oids::INTERNAL
            | oids::CSTRING
            | oids::UNKNOWN
    )
}
