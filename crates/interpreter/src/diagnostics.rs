//! GET DIAGNOSTICS.

use melba_plpgsql::tree::{Diagnostic, Target};
use melba_statement::error_context;
use melba_types::{Datum, DbError, Result, SqlState, oids};

use super::frame::{Frame, Typed};
use super::value;

pub fn get_diagnostics(frame: &mut Frame<'_>, stacked: bool, items: &[(Target, Diagnostic)]) -> Result<()> {
    if stacked && frame.handled.is_none() {
        let message = "GET STACKED DIAGNOSTICS cannot be used outside an exception handler";
        return Err(DbError::new(SqlState::STACKED_DIAGNOSTICS_ACCESSED_WITHOUT_ACTIVE_HANDLER, message));
    }
    for (target, item) in items {
        let value = diagnostic(frame, *item);
        value::assign(frame, target, value)?;
    }
    Ok(())
}

fn diagnostic(frame: &Frame<'_>, item: Diagnostic) -> Typed {
    let text = |value: String| Typed { value: Datum::text(value), ty: oids::TEXT, typmod: -1 };
    let context = || {
        let own = frame.place(frame.line, frame.statement);
        match error_context::lines() {
            Some(lines) => format!("{own}\n{lines}"),
            None => own,
        }
    };
    let Some(fields) = frame.handled.as_ref().map(|e| e.fields()) else {
        return match item {
            Diagnostic::RowCount => Typed { value: Datum::Int8(frame.row_count as i64), ty: oids::INT8, typmod: -1 },
            Diagnostic::RoutineOid => Typed { value: Datum::Oid(frame.program.oid.0), ty: oids::OID, typmod: -1 },
            _ => text(context()),
        };
    };
    let optional = |value: &Option<String>| text(value.clone().unwrap_or_default());
    match item {
        Diagnostic::RowCount => Typed { value: Datum::Int8(frame.row_count as i64), ty: oids::INT8, typmod: -1 },
        Diagnostic::RoutineOid => Typed { value: Datum::Oid(frame.program.oid.0), ty: oids::OID, typmod: -1 },
        Diagnostic::Context => text(context()),
        // The error's own lines end at this function; its callers are those of now.
        Diagnostic::ErrorContext => {
            let lines = fields.context.clone().into_iter().chain(error_context::lines());
            text(lines.collect::<Vec<_>>().join("\n"))
        }
        Diagnostic::ErrorDetail => optional(&fields.detail),
        Diagnostic::ErrorHint => optional(&fields.hint),
        Diagnostic::ReturnedSqlstate => text(fields.sqlstate.to_string()),
        Diagnostic::ColumnName => optional(&fields.column),
        Diagnostic::ConstraintName => optional(&fields.constraint),
        Diagnostic::DatatypeName => optional(&fields.data_type),
        Diagnostic::MessageText => text(fields.message.clone()),
        Diagnostic::TableName => optional(&fields.table),
        Diagnostic::SchemaName => optional(&fields.schema),
    }
}
