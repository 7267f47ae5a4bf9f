//! Values that are assigned to variables.

use std::sync::Arc;

use melba_analyze::coerce_for_variable;
use melba_expression::{Expression as Compiled, compile_for_table};
use melba_fmgr::io;
use melba_plpgsql::tree::{Expression, Target, VariableType};
use melba_tree::{Expr, OutputColumn, Var};
use melba_types::{Batch, Datum, DbError, Oid, Record, Result, bail, err, oids};

use super::super::outcome::ResultColumn;
use super::super::planning::analysis;
use super::expression::Wanted;
use super::frame::{Frame, Typed};

/// The columns of a query's rows, for records made of them.
pub(super) struct RowShape {
    pub columns: Vec<(Oid, i32)>,
    pub types: Arc<[Oid]>,
    pub names: Arc<[Arc<str>]>,
}

impl RowShape {
    pub fn of_result(columns: &[ResultColumn]) -> RowShape {
        RowShape {
            columns: columns.iter().map(|c| (c.ty, c.typmod)).collect(),
            types: columns.iter().map(|c| c.ty).collect(),
            names: columns.iter().map(|c| c.name.clone()).collect(),
        }
    }

    pub fn of(columns: &[OutputColumn]) -> RowShape {
        RowShape {
            columns: columns.iter().map(|c| (c.ty, c.typmod)).collect(),
            types: columns.iter().map(|c| c.ty).collect(),
            names: columns.iter().map(|c| c.name.clone()).collect(),
        }
    }
}

impl Frame<'_> {
    /// The value as one of another type, by assignment or through its text.
    pub fn cast(&self, from: Typed, ty: Oid, typmod: i32) -> Result<Datum> {
        if from.ty == ty && (typmod < 0 || from.typmod == typmod) {
            return if from.value.is_null() { self.check_null(ty) } else { Ok(from.value) };
        }
        let key = (from.ty, from.typmod, ty, typmod);
        let known = self.program.casts.lock().get(&key).cloned();
        let cast = match known {
            Some(cast) => cast,
            None => {
                let made = Arc::new(self.compile_cast(&from, ty, typmod)?);
                self.program.casts.lock().insert(key, made.clone());
                made
            }
        };
        let value = cast.eval_row(&self.evaluation, &[from.value])?;
        if value.is_null() { self.check_null(ty) } else { Ok(value) }
    }

    /// NULL as a value of a type, which a domain may refuse.
    fn check_null(&self, ty: Oid) -> Result<Datum> {
        if self.context.catalog.base_type(ty) == ty {
            return Ok(Datum::Null);
        }
        io::check_domain(&*self.context, ty, Datum::Null)
    }

    fn compile_cast(&self, from: &Typed, ty: Oid, typmod: i32) -> Result<Compiled> {
        let cx = analysis(&self.context);
        let value = Expr::Var(Var {
            entry: 0,
            column: 1,
            levels_up: 0,
            ty: from.ty,
            typmod: from.typmod,
            collation: cx.collation_of_type(from.ty),
            version: melba_tree::RowVersion::Default,
            location: -1,
        });
        let mut cast = coerce_for_variable(&cx, value, ty, typmod)?;
        melba_analyze::assign_collations(&cx, &mut cast)?;
        compile_for_table(&self.context.catalog, Some(&*self.context), &cast)
    }

    /// `target := expression`
    pub fn assign_expression(&mut self, target: &Target, e: &Expression) -> Result<()> {
        let Target::Variable(variable) = target else {
            if let Target::Field { record, name } = target {
                self.place_of_field(*record, name).map_err(|error| self.of_piece(e, error))?;
            }
            let value = self.evaluate(e, self.wanted_by(target))?;
            return self.assign(target, value);
        };
        let variable = *variable;
        let ty = self.types[variable];
        let value = self.evaluate(e, Wanted::Type(ty))?;
        // The most frequent statement: a value that has the variable's type already.
        if value.ty == ty.oid && ty.typmod < 0 && !ty.is_record && !self.program.tree.variables[variable].not_null {
            self.values[variable] = if value.value.is_null() { self.check_null(ty.oid)? } else { value.value };
            return Ok(());
        }
        self.assign(target, value)
    }

    pub fn assign(&mut self, target: &Target, value: Typed) -> Result<()> {
        match target {
            Target::Variable(variable) if self.types[*variable].is_record => self.assign_record(*variable, value),
            Target::Variable(variable) => {
                let ty = self.types[*variable];
                let value = self.cast(value, ty.oid, ty.typmod)?;
                self.set(*variable, value)
            }
            // The new value of the whole variable.
            Target::Part { variable, .. } => self.set(*variable, value.value),
            Target::Field { record, name } => self.assign_field(*record, name, value),
            Target::Row(_) => match value.value {
                Datum::Record(record) => {
                    let fields = self.record_fields(&record);
                    let columns: Vec<(Oid, i32)> = fields.iter().map(|(_, ty)| *ty).collect();
                    self.assign_fields(target, &columns, &record.fields)
                }
                Datum::Null => self.assign_fields(target, &[], &[]),
                _ => bail!(DATATYPE_MISMATCH, "cannot assign non-composite value to a row variable"),
            },
        }
    }

    fn set(&mut self, variable: usize, value: Datum) -> Result<()> {
        let declared = &self.program.tree.variables[variable];
        if declared.not_null && value.is_null() {
            bail!(NULL_VALUE_NOT_ALLOWED, "null value cannot be assigned to variable \"{}\" declared NOT NULL", declared.name);
        }
        self.values[variable] = value;
        Ok(())
    }

    fn assign_record(&mut self, variable: usize, value: Typed) -> Result<()> {
        let ty = self.types[variable];
        match value.value {
            Datum::Null => {
                let null = self.check_null(ty.oid)?;
                self.set(variable, null)
            }
            Datum::Record(record) => {
                let record = match ty.oid == oids::RECORD || record.type_oid == ty.oid {
                    true => record,
                    false => {
                        let fields = self.record_fields(&record);
                        let columns: Vec<(Oid, i32)> = fields.iter().map(|(_, ty)| *ty).collect();
                        self.record_of(ty, &columns, &record.fields)?
                    }
                };
                self.set(variable, Datum::Record(record))
            }
            _ => bail!(DATATYPE_MISMATCH, "cannot assign non-composite value to a record variable"),
        }
    }

    /// Values as a record of a declared type: column by column, NULL where there is none.
    pub fn record_of(&self, ty: VariableType, columns: &[(Oid, i32)], values: &[Datum]) -> Result<Arc<Record>> {
        let cx = analysis(&self.context);
        let relation = cx.row_relation(ty.oid).ok_or_else(|| DbError::internal("a record of an unknown type"))?.clone();
        let live: Vec<_> = relation.columns.iter().filter(|c| !c.dropped).collect();
        let mut fields = Vec::with_capacity(live.len());
        for (i, column) in live.iter().enumerate() {
            fields.push(match (columns.get(i), values.get(i)) {
                (Some((ty, typmod)), Some(value)) => {
                    let from = Typed { value: value.clone(), ty: *ty, typmod: *typmod };
                    self.cast(from, column.ty, column.typmod)?
                }
                // A field without a value is NULL, even if its domain forbids it.
                _ => Datum::Null,
            });
        }
        let record = Record {
            type_oid: self.context.catalog.base_type(ty.oid),
            field_types: live.iter().map(|c| c.ty).collect(),
            field_names: Some(live.iter().map(|c| c.name.clone()).collect()),
            fields,
        };
        let value = Datum::Record(Arc::new(record));
        match io::check_domain(&*self.context, ty.oid, value)? {
            Datum::Record(record) => Ok(record),
            _ => Err(DbError::internal("a record became something else")),
        }
    }

    fn assign_field(&mut self, variable: usize, name: &str, value: Typed) -> Result<()> {
        if self.values[variable].is_null() && self.types[variable].oid != oids::RECORD {
            self.values[variable] = Datum::Record(self.record_of(self.types[variable], &[], &[])?);
        }
        let (place, (ty, typmod)) = self.place_of_field(variable, name)?;
        let count = self.fields_of(variable)?.len();
        let value = self.cast(value, ty, typmod)?;
        let Datum::Record(record) = &mut self.values[variable] else {
            return Err(DbError::internal("a record variable without a record"));
        };
        let record = Arc::make_mut(record);
        if record.fields.len() <= place {
            record.fields.resize(count, Datum::Null);
        }
        record.fields[place] = value;
        let declared = self.types[variable].oid;
        if self.is_domain(self.types[variable]) {
            io::check_domain(&*self.context, declared, self.values[variable].clone())?;
        }
        Ok(())
    }

    /// Where a record's field is, and its type with its modifier.
    ///
    /// # Errors
    /// 42703 when there is no such field.
    pub fn place_of_field(&self, variable: usize, name: &str) -> Result<(usize, (Oid, i32))> {
        let fields = self.fields_of(variable)?;
        let place = fields.iter().position(|(n, _)| **n == *name).ok_or_else(|| {
            let record = &self.program.tree.variables[variable].name;
            err!(UNDEFINED_COLUMN, "record \"{record}\" has no field \"{name}\"")
        })?;
        Ok((place, fields[place].1))
    }

    /// Assigns a query's row to a target.
    pub fn assign_row(&mut self, target: &Target, shape: &RowShape, batch: &Batch, row: usize) -> Result<()> {
        let values: Vec<Datum> = batch.columns.iter().take(shape.columns.len()).map(|c| c.get(row)).collect();
        match target {
            Target::Variable(variable) if self.types[*variable].is_record => {
                let ty = self.types[*variable];
                let record = match ty.oid {
                    oids::RECORD => Arc::new(Record {
                        type_oid: oids::RECORD,
                        field_types: shape.types.clone(),
                        field_names: Some(shape.names.clone()),
                        fields: values,
                    }),
                    // One column that is the whole row.
                    _ => match (&shape.columns[..], &values[..]) {
                        ([(own, _)], [Datum::Record(record)]) if *own == ty.oid => record.clone(),
                        _ => self.record_of(ty, &shape.columns, &values)?,
                    },
                };
                self.set(*variable, Datum::Record(record))
            }
            target => self.assign_fields(target, &shape.columns, &values),
        }
    }

    /// Assigns values to a list of targets, one each; targets without one become NULL.
    fn assign_fields(&mut self, target: &Target, columns: &[(Oid, i32)], values: &[Datum]) -> Result<()> {
        let one;
        let targets = match target {
            Target::Row(targets) => targets,
            other => {
                one = vec![other.clone()];
                &one
            }
        };
        for (i, target) in targets.iter().enumerate() {
            let value = match (columns.get(i), values.get(i)) {
                (Some((ty, typmod)), Some(value)) => Typed { value: value.clone(), ty: *ty, typmod: *typmod },
                _ => Typed { value: Datum::Null, ty: oids::UNKNOWN, typmod: -1 },
            };
            self.assign(target, value)?;
        }
        Ok(())
    }

    /// There is no row: NULL everywhere, a record has the row's fields.
    pub fn assign_no_row(&mut self, target: &Target, shape: &RowShape) -> Result<()> {
        if let Target::Variable(variable) = target
            && self.types[*variable].oid == oids::RECORD
        {
            let record = Record {
                type_oid: oids::RECORD,
                field_types: shape.types.clone(),
                field_names: Some(shape.names.clone()),
                fields: vec![Datum::Null; shape.types.len()],
            };
            return self.set(*variable, Datum::Record(Arc::new(record)));
        }
        self.assign_fields(target, &[], &[])
    }

    /// The value as text, as messages and dynamic statements show it.
    pub fn text_of(&self, value: &Typed) -> Result<String> {
        io::text_of(&*self.context, value.ty, &value.value)
    }
}
