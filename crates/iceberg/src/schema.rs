//! The columns of a published table as Iceberg's: field ids are the numbers of the columns, which no change of the table gives again.

use std::sync::Arc;

use melba_fmgr::Session;
use melba_parquet::{Written, element_id, iceberg_type};
use melba_types::{Oid, oids};
use serde_json::{Value, json};

/// Iceberg's reserved field for a row's id. Files have it beside the table's columns.
pub const ROW_ID_FIELD: i32 = 2_147_483_540;
pub const ROW_ID_NAME: &str = "_melba_row_id";

/// A column that is published.
#[derive(Clone, Debug)]
pub struct PublishedColumn {
    /// pg_attribute.attnum.
    pub number: i32,
    pub name: Arc<str>,
    pub ty: Oid,
    pub typmod: i32,
    /// Rows that were written before the column was added have a value in it, which is not null.
    pub has_missing_value: bool,
}

/// The columns, and their form in metadata.
#[derive(Clone, Debug)]
pub struct Schema {
    pub columns: Vec<PublishedColumn>,
    /// Without its `schema-id`.
    fields: Value,
}

impl Schema {
    pub fn new(session: &dyn Session, columns: Vec<PublishedColumn>) -> Schema {
        let field = |column: &PublishedColumn| {
            let (name, is_list) = iceberg_type(session, column.ty, column.typmod);
            let ty = match is_list {
                true => {
                    json!({"type": "list", "element-id": element_id(column.number), "element": name, "element-required": false})
                }
                false => Value::String(name),
            };
            json!({"id": column.number, "name": &*column.name, "required": false, "type": ty})
        };
        let fields = Value::Array(columns.iter().map(field).collect());
        Schema { columns, fields }
    }

    /// The schema as metadata has it.
    pub fn described(&self, id: i64) -> Value {
        json!({"type": "struct", "schema-id": id, "fields": self.fields})
    }

    /// The greatest field id of all.
    pub fn last_column_id(&self) -> i32 {
        let id = |(column, field): (&PublishedColumn, &Value)| match field["type"].is_object() {
            true => element_id(column.number),
            false => column.number,
        };
        let fields = self.fields.as_array().into_iter().flatten();
        self.columns.iter().zip(fields).map(id).max().unwrap_or(0)
    }

    pub fn is(&self, described: &Value) -> bool {
        described["fields"] == self.fields
    }

    /// Whether files of another schema of the table have the values of this one: not for a type that has changed, and not for a
    /// column that is not null in rows before it. `last`: the greatest number of a column that any schema had before; one that is not
    /// greater may have values which these files lack.
    pub fn reads_files_of(&self, described: &Value, last: i64) -> bool {
        let before = described["fields"].as_array().map_or(&[][..], Vec::as_slice);
        let fields = self.fields.as_array().into_iter().flatten();
        self.columns.iter().zip(fields).all(|(column, field)| match before.iter().find(|b| b["id"] == field["id"]) {
            Some(before) => before["type"] == field["type"],
            None => !column.has_missing_value && i64::from(column.number) > last,
        })
    }

    /// The columns of data files, with their field ids.
    pub fn written(&self) -> (Vec<Written>, Vec<i32>) {
        let columns = self.columns.iter().map(|c| Written { name: c.name.clone(), ty: c.ty, typmod: c.typmod });
        let row_id = Written { name: ROW_ID_NAME.into(), ty: oids::INT8, typmod: -1 };
        let ids = self.columns.iter().map(|c| c.number).chain([ROW_ID_FIELD]).collect();
        (columns.chain([row_id]).collect(), ids)
    }
}
