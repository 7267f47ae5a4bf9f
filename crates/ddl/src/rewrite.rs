//! DDL that reads or rewrites a table's rows: filling indexes, validating constraints, changing columns.

use std::sync::Arc;

use melba_catalog::{Column, Constraint, ConstraintKind, Persistence, Relation, RelationKind, Storage};
use melba_engine::{ReadView, TableScan};
use melba_types::{ColumnData, Datum, DbError, Kind, Oid, Result, RowId, SqlState, TreeId, err, oids};
use pg_query::protobuf::Node;

use super::Ddl;
use super::expression::{Stored, Use};
use super::persistence::{access_method, engine_persistence};
use melba_expression::{Evaluation, NoSubPlans};
use melba_expression::{Expression, compile_for_table};
use melba_table::{RowCopier, TableTarget, TargetBuilder, check_existing, forget_value};
use melba_tree::Expr;

/// The change of one column by ALTER COLUMN TYPE.
pub struct TypeChange {
    pub at: usize,
    pub column: Column,
    pub using: Option<Node>,
}

/// Rows with their ids.
pub(super) type RowBatch = Vec<(RowId, Vec<Datum>)>;

/// Rows of a table as datums, a batch at a time.
pub(super) struct TableRows {
    scan: TableScan,
}

impl TableRows {
    pub(super) fn next(&mut self) -> Result<Option<RowBatch>> {
        let Some(batch) = self.scan.next()? else { return Ok(None) };
        let row = |i: usize| batch.columns.iter().map(|c| c.get(i)).collect();
        Ok(Some(batch.row_ids.iter().enumerate().map(|(i, id)| (*id, row(i))).collect()))
    }
}

impl Ddl<'_> {
    /// An evaluation context over the present catalog.
    pub fn exec_context(&self) -> Evaluation<NoSubPlans> {
        Evaluation::plain((self.session_for)(self.catalog()), &self.tx.engine)
    }

    pub(super) fn target(&self, table: Oid) -> Result<TableTarget> {
        let catalog = self.catalog();
        TargetBuilder { catalog: &catalog, session: self.session }.table(table)
    }

    /// All present rows, our own changes included.
    pub(super) fn rows(&self, tree: TreeId, columns: usize, missing: &[Datum], view: ReadView) -> Result<TableRows> {
        let projection: Vec<usize> = (0..columns).collect();
        Ok(TableRows { scan: self.tx.engine.scan(view, tree, &projection, missing, &[], None)? })
    }

    /// Raises 23502 when a column holds a null.
    pub fn check_no_nulls(&self, table: Oid, column: usize) -> Result<()> {
        if self.catalog().is_never_null(&*self.relation(table)?, column) { Ok(()) } else { self.look_for_nulls(table, column) }
    }

    /// The same, for any mark of the column.
    pub fn look_for_nulls(&self, table: Oid, column: usize) -> Result<()> {
        let relation = self.relation(table)?;
        let Storage::Tree(tree) = relation.storage else { return Ok(()) };
        let null = || {
            let name = &relation.columns[column].name;
            err!(NOT_NULL_VIOLATION, "column \"{name}\" of relation \"{}\" contains null values", relation.name)
                .table(&*relation.name)
                .column(&**name)
        };
        let (view, _pin) = self.tx.engine.latest_view();
        if relation.columns[column].generated == b'v' {
            let (target, ctx) = (self.target(table)?, self.exec_context());
            let mut rows = self.rows(tree, relation.columns.len(), &target.missing, view)?;
            while let Some(batch) = rows.next()? {
                for (_, mut row) in batch {
                    target.compute_virtuals(&ctx, &mut row)?;
                    if row[column].is_null() {
                        return Err(null());
                    }
                }
            }
            return Ok(());
        }
        let missing: Vec<Datum> = relation.columns.iter().map(|c| c.missing.clone()).collect();
        let mut scan = self.tx.engine.scan(view, tree, &[column], &missing, &[], None)?;
        while let Some(batch) = scan.next()? {
            if (0..batch.row_ids.len()).any(|i| batch.columns[0].is_null(i)) {
                return Err(null());
            }
        }
        Ok(())
    }

    /// Raises 23514 when a row fails a check.
    pub fn check_existing_rows(&self, constraint: &Constraint) -> Result<()> {
        let target = self.target(constraint.relation)?;
        if target.relation.is_partitioned() {
            return Ok(());
        }
        let Some(check) = target.checks.iter().find(|c| c.name == constraint.name) else { return Ok(()) };
        let ctx = self.exec_context();
        let (view, _pin) = self.tx.engine.latest_view();
        let mut rows = self.rows(target.tree, target.relation.columns.len(), &target.missing, view)?;
        while let Some(batch) = rows.next()? {
            ctx.check_interrupt()?;
            for (_, mut row) in batch {
                target.compute_virtuals(&ctx, &mut row)?;
                if matches!(check.condition.eval_row(&ctx, &row)?, Datum::Bool(false)) {
                    return Err(err!(
                        CHECK_VIOLATION,
                        "check constraint \"{}\" of relation \"{}\" is violated by some row",
                        constraint.name,
                        target.relation.name
                    )
                    .table(&*target.relation.name)
                    .constraint(&*constraint.name));
                }
            }
        }
        Ok(())
    }

    /// Raises 23503 when a row refers to nothing.
    pub fn validate_foreign_key(&self, constraint: Oid) -> Result<()> {
        let catalog = self.catalog();
        let row = catalog.constraint(constraint).ok_or_else(|| DbError::internal("missing constraint"))?;
        if row.kind != ConstraintKind::ForeignKey {
            return Ok(());
        }
        // Of a partitioned table the partitions' rows are checked, by their own keys.
        if self.relation(row.relation)?.is_partitioned() {
            return Ok(());
        }
        let target = Arc::new(self.target(row.relation)?);
        check_existing(&self.exec_context(), &self.tx.engine, &target, row)
    }

    /// Sets the default of a column just added in existing rows: without touching them when it is the same for all.
    pub fn fill_new_column(&self, table: Oid, column: usize) -> Result<()> {
        let relation = self.relation(table)?;
        let definition = &relation.columns[column];
        if definition.generated == b'v' || relation.is_partitioned() {
            return Ok(());
        }
        let catalog = self.catalog();
        let is_domain = catalog.type_(definition.ty).is_some_and(|t| t.domain.is_some());
        if definition.default.is_none() && definition.identity == 0 && !is_domain {
            return Ok(());
        }
        let builder = TargetBuilder { catalog: &catalog, session: self.session };
        let target = builder.table(table)?;
        if is_domain && self.rows(target.tree, 0, &[], self.tx.engine.latest_view().0)?.next()?.is_none() {
            // A domain may refuse a value that no row gets.
            return Ok(());
        }
        let generated = target.generated.iter().find(|(at, _)| *at == column).map(|(_, e)| e.clone());
        let default = match generated {
            Some(expression) => Some(expression),
            // A domain may have a default, and may refuse NULL.
            None if is_domain && definition.identity == 0 => {
                let default = self.with_context(|c| melba_analyze::column_default(c, &relation, column))?;
                default.map(|e| compile_for_table(&catalog, Some(self.session), &e)).transpose()?
            }
            None => builder.default(&relation, column)?,
        };
        let ctx = self.exec_context();
        if let Some(expression) = &default
            && definition.generated == 0
            && !expression.is_volatile()
        {
            let value = expression.eval_row(&ctx, &[])?;
            let mut columns = relation.columns.to_vec();
            columns[column].missing = value;
            self.put_relation(Relation { columns: columns.into(), ..(*relation).clone() });
            return Ok(());
        }
        let sequence = self.owned_sequence(&*self.topmost(&relation)?, &definition.name);
        let (view, _pin) = self.tx.engine.latest_view();
        let mut rows = self.rows(target.tree, relation.columns.len(), &target.missing, view)?;
        while let Some(batch) = rows.next()? {
            for (id, mut row) in batch {
                row[column] = match (&default, &sequence) {
                    (Some(expression), _) => expression.eval_row(&ctx, &row)?,
                    (None, Some(sequence)) => self.next_identity(sequence, definition.kind)?,
                    (None, None) => Datum::Null,
                };
                self.tx.engine.update(target.tree, id, &target.layout.encode_row(&row))?;
            }
        }
        Ok(())
    }

    fn next_identity(&self, sequence: &Relation, kind: Kind) -> Result<Datum> {
        let Storage::Sequence(id) = sequence.storage else {
            return Err(DbError::internal("sequence without storage"));
        };
        let value = self.tx.engine.nextval(melba_engine::SequenceId(id.0))?;
        let out_of_range = |_| err!(NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
        Ok(match kind {
            Kind::Int2 => Datum::Int2(i16::try_from(value).map_err(out_of_range)?),
            Kind::Int4 => Datum::Int4(i32::try_from(value).map_err(out_of_range)?),
            _ => Datum::Int8(value),
        })
    }

    /// Removes the long values of a dropped column: merges free their space. Values within rows are removed when the rows are
    /// rewritten.
    pub fn release_column(&self, relation: &Relation, column: usize) -> Result<()> {
        let Storage::Tree(tree) = relation.storage else { return Ok(()) };
        if !relation.columns[column].kind.is_toastable() {
            return Ok(());
        }
        let ctx = self.exec_context();
        let (view, _pin) = self.tx.engine.latest_view();
        // Most tables have no long values, and their rows need not be read.
        if self.tx.engine.scan(view, tree.toast(), &[], &[], &[], None)?.next()?.is_none() {
            return Ok(());
        }
        let mut scan = self.tx.engine.scan(view, tree, &[column], &[Datum::Null], &[], None)?;
        while let Some(batch) = scan.next()? {
            ctx.check_interrupt()?;
            let ColumnData::Stored(values) = &batch.columns[0].data else { continue };
            values.iter().try_for_each(|value| forget_value(&self.tx.engine, tree.toast(), value))?;
        }
        Ok(())
    }

    /// ALTER COLUMN TYPE: passes every row through the USING expressions (or the assignment casts), all of which see the row as
    /// it was, into new storage, unless all values stay as they are. Returns whether they did not: then the indexes are empty.
    pub fn change_types(&self, table: Oid, changes: &[TypeChange]) -> Result<bool> {
        let relation = self.relation(table)?;
        self.refuse_used_row_type(&relation)?;
        let mut columns = relation.columns.to_vec();
        let mut transforms: Vec<(usize, Expr)> = Vec::new();
        for TypeChange { at, column, using } in changes {
            let (at, old) = (*at, &relation.columns[*at]);
            columns[at] = column.clone();
            if relation.kind == RelationKind::Composite {
                continue;
            }
            if old.generated != 0 {
                let stored = self.generation_of_type(&relation, at, column)?;
                columns[at].default = Some(stored.text);
                transforms.extend((old.generated == b's').then_some((at, stored.expr)));
                continue;
            }
            let transform = self.transform_expression(&relation, at, column, using.as_ref())?;
            columns[at].default = self.converted_default(&relation, at, column)?;
            if !keeps_values(&transform, at, old, column) && !is_wider_varchar(using.as_ref(), old, column) {
                transforms.push((at, transform));
            }
        }
        if transforms.is_empty() || relation.is_partitioned() {
            self.put_relation(Relation { columns: columns.into(), ..(*relation).clone() });
            return Ok(false);
        }
        let catalog = self.catalog();
        let mut compiled: Vec<(usize, Expression)> = Vec::with_capacity(transforms.len());
        for (at, transform) in &transforms {
            compiled.push((*at, compile_for_table(&catalog, Some(self.session), transform)?));
        }
        let before = self.target(table)?;
        self.rebuild(&before, columns, relation.persistence, &compiled)?;
        Ok(true)
    }

    /// A generated column's expression, with its value of the column's new type.
    fn generation_of_type(&self, relation: &Relation, at: usize, column: &Column) -> Result<Stored> {
        let text = relation.columns[at].default.as_deref().unwrap_or_default();
        let node = melba_parse::parse_expression(text)?;
        self.stored_expression(&node, relation, Use::Generated, Some(column)).map_err(|_| {
            let ty = self.catalog().format_type(column.ty, Some(column.typmod), self.path);
            let message =
                format!("generation expression for column \"{}\" cannot be cast automatically to type {ty}", column.name);
            err!(DATATYPE_MISMATCH, "{message}")
        })
    }

    fn transform_expression(&self, relation: &Relation, at: usize, column: &Column, using: Option<&Node>) -> Result<Expr> {
        let name = &relation.columns[at].name;
        let own_reference;
        let node = match using {
            Some(node) => node,
            None => {
                own_reference = melba_parse::parse_expression(&melba_catalog::quote_ident(name))?;
                &own_reference
            }
        };
        match self.stored_expression(node, relation, Use::Transform, Some(column)) {
            Ok(stored) => Ok(stored.expr),
            Err(_) if using.is_none() => {
                let ty = self.catalog().format_type(column.ty, Some(column.typmod), self.path);
                Err(err!(DATATYPE_MISMATCH, "column \"{name}\" cannot be cast automatically to type {ty}")
                    .hint(format!("You might need to specify \"USING {}::{ty}\".", melba_catalog::quote_ident(name))))
            }
            Err(error) if error.sqlstate() == SqlState::DATATYPE_MISMATCH && error.message().starts_with("column ") => {
                let ty = self.catalog().format_type(column.ty, Some(column.typmod), self.path);
                let message = format!("result of USING clause for column \"{name}\" cannot be cast automatically to type {ty}");
                Err(err!(DATATYPE_MISMATCH, "{message}").hint("You might need to add an explicit cast."))
            }
            Err(error) => Err(error),
        }
    }

    fn converted_default(&self, relation: &Relation, at: usize, column: &Column) -> Result<Option<Arc<str>>> {
        let Some(text) = &relation.columns[at].default else { return Ok(None) };
        let node = melba_parse::parse_expression(text)?;
        let ty = || self.catalog().format_type(column.ty, Some(column.typmod), self.path);
        let stored = self.stored_expression(&node, relation, Use::Default, Some(column)).map_err(|_| {
            err!(DATATYPE_MISMATCH, "default for column \"{}\" cannot be cast automatically to type {}", column.name, ty())
        })?;
        Ok(Some(stored.text))
    }

    /// Copies a table into new storage with other columns; indexes are filled again. Returns the new descriptor.
    pub fn rebuild(
        &self,
        before: &TableTarget,
        columns: Vec<Column>,
        persistence: Persistence,
        transforms: &[(usize, Expression)],
    ) -> Result<Arc<Relation>> {
        let oid = before.relation.oid;
        let kinds: Vec<Kind> = columns.iter().map(|c| c.kind).collect();
        let columns: Vec<Column> = columns.into_iter().map(|c| Column { missing: Datum::Null, ..c }).collect();
        let tree = self.tx.engine.create_table_tree(&kinds, engine_persistence(persistence))?;
        let (view, _pin) = self.tx.engine.latest_view();
        let mut rows = self.rows(before.tree, before.relation.columns.len(), &before.missing, view)?;
        self.put_relation(Relation {
            columns: columns.into(),
            storage: Storage::Tree(tree),
            file_node: self.tx.new_oid(),
            persistence,
            access_method: access_method(persistence),
            ..(*before.relation).clone()
        });
        for index in &before.relation.indexes {
            let index = self.relation(*index)?;
            if let Storage::Tree(old) = index.storage {
                self.tx.engine.drop_tree(old)?;
            }
            let storage = Storage::Tree(self.tx.engine.create_index_tree(tree, engine_persistence(persistence))?);
            self.put_relation(Relation { storage, persistence, file_node: self.tx.new_oid(), ..(*index).clone() });
        }
        let ctx = self.exec_context();
        let mut copier = RowCopier::new(ctx.catalog(), &*self.relation(oid)?, tree);
        while let Some(batch) = rows.next()? {
            ctx.check_interrupt()?;
            for (_, mut row) in batch {
                let dropped = before.relation.columns.iter().enumerate().filter(|(_, c)| c.dropped);
                dropped.for_each(|(at, _)| row[at] = Datum::Null);
                let mut changed: Vec<(usize, Datum)> = Vec::with_capacity(transforms.len());
                for (at, expression) in transforms {
                    changed.push((*at, expression.eval_row(&ctx, &row)?));
                }
                changed.into_iter().for_each(|(at, value)| row[at] = value);
                copier.insert(&ctx, &row)?;
            }
        }
        self.tx.engine.drop_tree(before.tree)?;
        let relation = self.relation(oid)?;
        if transforms.is_empty() {
            for index in &relation.indexes {
                self.fill_index(*index)?;
            }
        }
        Ok(relation)
    }
}

/// Whether the expression is the column itself, and its values and their order are the same in both types.
fn keeps_values(transform: &Expr, at: usize, old: &Column, new: &Column) -> bool {
    let mut expression = transform;
    while let Expr::Relabel { arg, .. } = expression {
        expression = arg;
    }
    let is_column = matches!(expression, Expr::Var(var) if var.column as usize == at + 1);
    is_column && old.kind == new.kind && old.collation == new.collation
}

/// Whether a varchar only gets longer.
fn is_wider_varchar(using: Option<&Node>, old: &Column, new: &Column) -> bool {
    let varchars = old.ty == oids::VARCHAR && new.ty == oids::VARCHAR && old.collation == new.collation;
    using.is_none() && varchars && old.typmod >= 0 && (new.typmod < 0 || new.typmod >= old.typmod)
}
