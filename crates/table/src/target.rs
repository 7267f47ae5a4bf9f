//! A table compiled for writing.

use std::borrow::Cow;
use std::sync::Arc;

use melba_catalog::classes::GIST;
use melba_catalog::foreign_keys::foreign_keys;
use melba_catalog::trigger_events::UPDATE;
use melba_catalog::{Catalog, Constraint, ConstraintKind, Relation, RelationKind, Storage};
use melba_engine::Transaction;
use melba_fmgr::{GinColumn, Session};
use melba_types::row::RowLayout;
use melba_types::{Datum, DbError, Kind, Oid, Result, RowId, TreeId};

use super::exclusion::Exclusion;
use super::part_source::PartSource;
use super::partition::PartitionCheck;
use super::referencing::keys_of_leaves;
use super::routing::Routing;
use super::toast::ToastTarget;
use super::trigger::{Moment, Triggers, compile_condition, spell_out};
use melba_analyze::{Context, Expected, analyze_stored_expression, stored_trigger_condition};
use melba_expression::Evaluation;
use melba_expression::key::KeyPart;
use melba_expression::{Expression, Node, compile_for_table};
use melba_tree::Expr;

/// The tree of a table whose rows are in its partitions, of a view, whose triggers know where they are, and of a system catalog.
const NO_TREE: TreeId = TreeId(0);

/// A table to write to.
#[derive(Debug)]
pub struct TableTarget {
    pub relation: Arc<Relation>,
    pub tree: TreeId,
    pub layout: RowLayout,
    /// Values of columns in rows older than the column.
    pub missing: Vec<Datum>,
    /// Columns that must not be null.
    pub not_null: Vec<usize>,
    pub checks: Vec<CheckTarget>,
    /// Stored generated columns: position and expression.
    pub generated: Vec<(usize, Expression)>,
    /// Virtual generated columns: null in stored rows, computed when they are read.
    pub virtuals: Vec<VirtualColumn>,
    pub indexes: Vec<IndexTarget>,
    /// Columns that indexes and foreign keys read.
    pub key_columns: Vec<usize>,
    pub toast: ToastTarget,
    /// Foreign keys of this table.
    pub references: Vec<Arc<Constraint>>,
    /// Foreign keys of others (or its own) that refer to this table (`referencing`).
    pub referenced_by: Vec<Arc<Constraint>>,
    /// Of a partition: its bound, and those of the partitions that contain it, which its rows must satisfy.
    pub partition: Vec<PartitionCheck>,
    /// Of a partitioned table, which has no tree: the routing of its rows.
    pub routing: Option<Arc<Routing>>,
    pub triggers: Option<Arc<Triggers>>,
    /// Attribute numbers of columns that the statement writes, whose values its user knows.
    pub written: Vec<i16>,
    /// Those that an UPDATE assigns, with the generated ones that are computed from them.
    pub updated: Vec<i16>,
}

impl TableTarget {
    /// The generated columns that an UPDATE of some columns changes: all where triggers may change any column before it.
    pub fn computed_from(&self, updated: &[i16]) -> Vec<i16> {
        if updated.is_empty() {
            return Vec::new();
        }
        let changes_any = self.triggers.as_ref().is_some_and(|t| t.has(Moment::BeforeRow, UPDATE));
        let reads = |e: &Expression| e.any(&mut |e| matches!(e.node, Node::Column(at) if updated.contains(&(at as i16 + 1))));
        let stored = self.generated.iter().map(|(column, expression)| (*column, expression));
        let all = stored.chain(self.virtuals.iter().map(|v| (v.column, &v.expression)));
        all.filter(|(_, e)| changes_any || reads(e)).map(|(column, _)| column as i16 + 1).collect()
    }
}

#[derive(Debug)]
pub struct VirtualColumn {
    pub column: usize,
    pub expression: Expression,
    /// A check or NOT NULL reads it.
    pub checked: bool,
}

#[derive(Debug)]
pub struct CheckTarget {
    pub name: Arc<str>,
    pub condition: Expression,
}

/// An index to keep.
#[derive(Debug)]
pub struct IndexTarget {
    pub oid: Oid,
    pub name: Arc<str>,
    pub tree: TreeId,
    pub parts: Vec<IndexPart>,
    pub predicate: Option<Expression>,
    /// Equal keys are kept out; what a key WITHOUT OVERLAPS keeps out is in `exclusion`.
    pub unique: bool,
    pub nulls_not_distinct: bool,
    /// The constraint's name, when one owns the index.
    pub constraint: Option<Arc<str>>,
    /// Keys are checked after the statement, or at the end of the transaction.
    pub deferrable: bool,
    pub constraint_oid: Oid,
    /// Of an exclusion constraint's index.
    pub exclusion: Option<Exclusion>,
    /// Of a GIN index, which has several entries a row (`gin`): its columns.
    pub gin: Vec<GinColumn>,
}

/// One column of an index key.
#[derive(Debug)]
pub struct IndexPart {
    /// Its column's place in the index. The parts of an exclusion constraint's key have another order (`Exclusion::order`).
    pub place: usize,
    pub source: PartSource,
    pub key: KeyPart,
}

impl TableTarget {
    /// Fills virtual columns into a row in stored form.
    pub fn compute_virtuals(&self, ctx: &Evaluation, row: &mut [Datum]) -> Result<()> {
        for v in &self.virtuals {
            row[v.column] = v.expression.eval_row(ctx, row)?;
        }
        Ok(())
    }

    /// A row in stored form with its virtual columns.
    pub fn with_virtuals<'a>(&self, ctx: &Evaluation, row: &'a [Datum]) -> Result<Cow<'a, [Datum]>> {
        if self.virtuals.is_empty() {
            return Ok(Cow::Borrowed(row));
        }
        let mut row = row.to_vec();
        self.compute_virtuals(ctx, &mut row)?;
        Ok(Cow::Owned(row))
    }

    /// Decodes a stored row.
    pub fn decode(&self, row: &[u8]) -> Vec<Datum> {
        match self.layout.view(row) {
            Some(view) => self.missing.iter().enumerate().map(|(i, missing)| view.datum(i, missing)).collect(),
            None => vec![Datum::Null; self.missing.len()],
        }
    }

    /// The row with the values of key columns expanded.
    pub fn with_plain_keys<'a>(&self, ctx: &Evaluation, row: &'a [Datum]) -> Result<Cow<'a, [Datum]>> {
        let is_stored = |c: &usize| matches!(row[*c], Datum::Stored(_));
        if !self.key_columns.iter().any(is_stored) {
            return Ok(Cow::Borrowed(row));
        }
        let mut plain = row.to_vec();
        for &column in self.key_columns.iter().filter(|c| is_stored(c)) {
            plain[column] = ctx.expand(row[column].clone(), self.toast.columns[column].kind)?;
        }
        Ok(Cow::Owned(plain))
    }
}

impl IndexTarget {
    /// Appends the row's key to `out`; false when the index leaves the row out.
    pub fn key(&self, ctx: &Evaluation, row: &[Datum], out: &mut Vec<u8>) -> Result<bool> {
        if !self.has_row(ctx, row)? {
            return Ok(false);
        }
        for part in &self.parts {
            match &part.source {
                PartSource::Column(column) => part.key.encode(&row[*column], out),
                PartSource::Expression(expression) => part.key.encode(&expression.eval_row(ctx, row)?, out),
            }
        }
        Ok(true)
    }

    /// Whether the row satisfies the predicate.
    pub fn has_row(&self, ctx: &Evaluation, row: &[Datum]) -> Result<bool> {
        self.predicate.as_ref().map_or(Ok(true), |predicate| predicate.holds(ctx, row))
    }

    /// Whether no other row may have the row's key, in a unique index: nulls are no key, unless they are not distinct.
    pub fn must_be_unique(&self, ctx: &Evaluation, row: &[Datum]) -> Result<bool> {
        if self.nulls_not_distinct {
            return Ok(true);
        }
        for part in &self.parts {
            let null = match &part.source {
                PartSource::Column(column) => row[*column].is_null(),
                PartSource::Expression(expression) => expression.eval_row(ctx, row)?.is_null(),
            };
            if null {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the same key is certain for two versions of a row without making keys of them.
    pub fn is_untouched(&self, old: &[Datum], new: &[Datum]) -> bool {
        let same = |part: &IndexPart| match &part.source {
            PartSource::Column(column) => is_identical(&old[*column], &new[*column]),
            PartSource::Expression(_) => false,
        };
        self.predicate.is_none() && self.parts.iter().all(same)
    }

    /// The values of the key of a row, in its newest state; `None`: it was deleted.
    pub fn values_of_row(
        &self,
        ctx: &Evaluation,
        txn: &Arc<Transaction>,
        target: &TableTarget,
        row: RowId,
    ) -> Result<Option<Vec<Datum>>> {
        let Some(bytes) = txn.get_latest(target.tree, row)?.row else { return Ok(None) };
        let row = target.decode(&bytes);
        self.values(ctx, &target.with_plain_keys(ctx, &row)?).map(Some)
    }

    /// The values of the row's key.
    pub fn values(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Vec<Datum>> {
        let value = |part: &IndexPart| match &part.source {
            PartSource::Column(column) => Ok(row[*column].clone()),
            PartSource::Expression(expression) => expression.eval_row(ctx, row),
        };
        self.parts.iter().map(value).collect()
    }
}

/// Whether two values are the same, by a quick comparison.
fn is_identical(a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Null, Datum::Null) => true,
        (Datum::Bool(a), Datum::Bool(b)) => a == b,
        (Datum::Int2(a), Datum::Int2(b)) => a == b,
        (Datum::Int4(a), Datum::Int4(b)) => a == b,
        (Datum::Int8(a), Datum::Int8(b)) => a == b,
        (Datum::Oid(a), Datum::Oid(b)) => a == b,
        (Datum::Uuid(a), Datum::Uuid(b)) => a == b,
        (Datum::Text(a), Datum::Text(b)) => a == b,
        (Datum::Bytes(a), Datum::Bytes(b)) => a == b,
        (Datum::Array(a), Datum::Array(b)) => {
            Arc::ptr_eq(a, b) || a.dims == b.dims && a.elements.iter().zip(&b.elements).all(|(a, b)| is_identical(a, b))
        }
        _ => false,
    }
}

/// Columns of a key, and how each is encoded.
pub type PlainParts<'a> = Vec<(usize, &'a KeyPart)>;

/// The columns of an index without expressions and predicate, and their keys; `None` for a GIN index.
pub fn plain_parts(index: &IndexTarget) -> Option<PlainParts<'_>> {
    let plain = |part: &IndexPart| match &part.source {
        PartSource::Column(column) => Some(*column),
        PartSource::Expression(_) => None,
    };
    match &index.predicate {
        _ if !index.gin.is_empty() => None,
        Some(_) => None,
        None => index.parts.iter().map(|part| plain(part).map(|column| (column, &part.key))).collect(),
    }
}

/// Columns of keys.
fn key_columns(catalog: &Catalog, relation: &Relation, constraints: &[&Arc<Constraint>]) -> Vec<usize> {
    let kept = relation.indexes.iter().filter_map(|i| catalog.relation(*i)).filter(|i| i.has_entries());
    let indexes = kept.filter_map(|i| i.index.as_ref());
    let indexed = indexes.flat_map(|i| i.keys.iter().map(|k| k.column));
    let referencing = constraints.iter().filter(|c| c.foreign_key.is_some()).flat_map(|c| c.columns.iter().copied());
    let referenced = catalog.referencing_constraints(relation.oid);
    let referenced = referenced.iter().filter_map(|c| c.foreign_key.as_ref()).flat_map(|f| f.referenced_columns.iter().copied());
    let mut columns: Vec<usize> =
        indexed.chain(referencing).chain(referenced).filter(|n| *n > 0).map(|n| n as usize - 1).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// Compiles targets.
pub struct TargetBuilder<'a> {
    pub catalog: &'a Arc<Catalog>,
    pub session: &'a dyn Session,
}

impl TargetBuilder<'_> {
    /// The target for a table.
    ///
    /// # Errors
    /// XX000 when the catalog contradicts itself.
    pub fn table(&self, oid: Oid) -> Result<TableTarget> {
        let relation = self
            .catalog
            .relation(oid)
            .cloned()
            .ok_or_else(|| DbError::internal(format!("could not open relation with OID {oid}")))?;
        let tree = match relation.storage {
            Storage::Tree(tree) => tree,
            Storage::None if relation.is_partitioned() || relation.kind == RelationKind::View => NO_TREE,
            Storage::System(_) => NO_TREE,
            _ => return Err(DbError::internal(format!("relation \"{}\" has no storage", relation.name))),
        };
        let kinds: Vec<Kind> = relation.columns.iter().map(|c| c.kind).collect();
        let live = || relation.columns.iter().enumerate().filter(|(_, c)| !c.dropped);
        let mut generated = Vec::new();
        for (at, column) in live().filter(|(_, c)| c.generated == b's') {
            if let Some(text) = &column.default {
                generated.push((at, self.compile(text, &relation, Some(at))?));
            }
        }
        let mut virtuals = Vec::new();
        for (column, described) in live().filter(|(_, c)| c.generated == b'v') {
            let expression = compile_for_table(self.catalog, Some(self.session), &self.generation(&relation, column, oid)?)?;
            let number = column as i16 + 1;
            let has_check = |c: &Arc<Constraint>| c.kind == ConstraintKind::Check && c.columns.contains(&number);
            let checked = relation.constraints.iter().filter_map(|c| self.catalog.constraint(*c)).any(has_check);
            virtuals.push(VirtualColumn { column, expression, checked: checked || described.not_null });
        }
        let constraints: Vec<&Arc<Constraint>> =
            relation.constraints.iter().filter_map(|c| self.catalog.constraint(*c)).collect();
        let mut checks = Vec::new();
        for constraint in constraints.iter().filter(|c| c.kind == ConstraintKind::Check && c.enforced) {
            if let Some(text) = &constraint.expression {
                let condition = self.compile(text, &relation, None)?;
                checks.push(CheckTarget { name: constraint.name.clone(), condition });
            }
        }
        // PostgreSQL checks in the order of the names.
        checks.sort_by(|a, b| a.name.cmp(&b.name));
        let (indexes, routing) = match relation.is_partitioned() {
            true => (vec![], Some(Arc::new(Routing::new(self, &relation)?))),
            false => {
                let kept = relation.indexes.iter().filter(|i| self.catalog.relation(**i).is_none_or(|i| i.has_entries()));
                (kept.map(|i| self.index(&relation, *i)).collect::<Result<_>>()?, None)
            }
        };
        Ok(TableTarget {
            partition: self.partition_checks(&relation)?,
            routing,
            triggers: self.triggers(&relation)?,
            written: Vec::new(),
            updated: Vec::new(),
            tree,
            layout: RowLayout::new(kinds),
            key_columns: key_columns(self.catalog, &relation, &constraints),
            toast: ToastTarget::new(self.catalog, &relation, tree),
            missing: relation.columns.iter().map(|c| c.missing.clone()).collect(),
            not_null: live().filter(|(_, c)| c.not_null).map(|(at, _)| at).collect(),
            checks,
            generated,
            virtuals,
            indexes,
            references: foreign_keys(self.catalog, &relation).filter(|c| c.enforced).cloned().collect(),
            referenced_by: keys_of_leaves(self.catalog, oid),
            relation: relation.clone(),
        })
    }

    fn triggers(&self, relation: &Arc<Relation>) -> Result<Option<Arc<Triggers>>> {
        if relation.triggers.is_empty() {
            return Ok(None);
        }
        let mut all = Vec::with_capacity(relation.triggers.len());
        for trigger in relation.triggers.iter().filter_map(|t| self.catalog.trigger(*t)) {
            let when = self.with_context(relation, |cx| stored_trigger_condition(cx, trigger, relation))?;
            let when = when.map(|e| compile_condition(self.catalog, self.session, e, relation)).transpose()?;
            all.push((trigger.clone(), when));
        }
        Ok(Some(Arc::new(Triggers::new(relation, all))))
    }

    /// The bounds that the rows of a partition satisfy, its own first.
    fn partition_checks(&self, relation: &Arc<Relation>) -> Result<Vec<PartitionCheck>> {
        let mut checks = Vec::new();
        let mut partition = relation;
        while partition.is_partition()
            && let Some(parent) = partition.parents.first().and_then(|p| self.catalog.relation(*p))
        {
            let key = self.partition_key(parent, relation)?;
            checks.push(PartitionCheck::new(self.catalog, parent, partition, key)?);
            partition = parent;
        }
        Ok(checks)
    }

    /// A partition key in terms of the columns of `over`, which is in the same hierarchy: columns have the same names there.
    pub fn partition_key(&self, parent: &Relation, over: &Arc<Relation>) -> Result<Vec<PartSource>> {
        let key = parent.partition_key.as_ref().map_or(&[][..], |k| &k.columns);
        let one = |column: &melba_catalog::PartitionColumn| match &column.expression {
            Some(text) => Ok(PartSource::Expression(self.compile(text, over, None)?)),
            None => {
                let name = &parent.columns[column.column as usize - 1].name;
                let found = over.columns.iter().position(|c| !c.dropped && c.name == *name);
                let at = found.ok_or_else(|| DbError::internal(format!("column \"{name}\" is missing in a partition")))?;
                Ok(PartSource::Column(at))
            }
        };
        key.iter().map(one).collect()
    }

    /// The target for one index of a table.
    pub fn index(&self, table: &Arc<Relation>, oid: Oid) -> Result<IndexTarget> {
        let missing = || DbError::internal(format!("could not open index with OID {oid}"));
        let index = self.catalog.relation(oid).ok_or_else(missing)?;
        let info = index.index.as_ref().ok_or_else(missing)?;
        let Storage::Tree(tree) = index.storage else { return Err(missing()) };
        let constraint = self.catalog.constraint(info.constraint);
        let excludes = constraint.filter(|c| !c.operators.is_empty());
        let order = excludes.map_or_else(|| (0..info.keys.len()).collect(), |c| Exclusion::order(self.catalog, c).0);
        let mut parts = Vec::with_capacity(info.keys.len());
        for place in order {
            let key = &info.keys[place];
            let source = match &key.expression {
                Some(text) => PartSource::Expression(self.compile(text, table, None)?),
                None => PartSource::Column(key.column as usize - 1),
            };
            let key = KeyPart::of_index(self.catalog, key);
            parts.push(IndexPart { place, source, key });
        }
        let predicate = match &info.predicate {
            Some(text) => Some(self.compile(text, table, None)?),
            None => None,
        };
        let gin = if info.is_inverted(index.access_method) { GinColumn::of_index(self.catalog, info)? } else { Vec::new() };
        Ok(IndexTarget {
            oid,
            name: index.name.clone(),
            tree,
            parts,
            predicate,
            unique: info.unique && index.access_method != GIST,
            nulls_not_distinct: info.nulls_not_distinct,
            constraint: constraint.map(|c| c.name.clone()),
            exclusion: excludes.map(|c| Exclusion::new(self.catalog, c, info)).transpose()?,
            gin,
            deferrable: info.deferrable,
            constraint_oid: info.constraint,
        })
    }

    /// A column's default, compiled; `None` when it has none.
    pub fn default(&self, relation: &Arc<Relation>, column: usize) -> Result<Option<Expression>> {
        match &relation.columns[column].default {
            Some(text) if relation.columns[column].generated == 0 => Ok(Some(self.compile(text, relation, Some(column))?)),
            _ => Ok(None),
        }
    }

    /// The expression of a generated column of a row that is in `table`: the relation, or one that inherits from it.
    pub fn generation(&self, relation: &Arc<Relation>, column: usize, table: Oid) -> Result<Expr> {
        let text = relation.columns[column].default.as_ref();
        let text = text.ok_or_else(|| DbError::internal("a generated column without its expression"))?;
        let mut expression = self.analyze(text, relation, Some(column))?;
        expression.visit_mut(0, &mut |e, _| spell_out(e, relation, table));
        Ok(expression)
    }

    fn compile(&self, text: &str, relation: &Arc<Relation>, column: Option<usize>) -> Result<Expression> {
        let mut expression = self.analyze(text, relation, column)?;
        expression.visit_mut(0, &mut |e, _| spell_out(e, relation, relation.oid));
        compile_for_table(self.catalog, Some(self.session), &expression)
    }

    fn analyze(&self, text: &str, relation: &Arc<Relation>, column: Option<usize>) -> Result<Expr> {
        let expected = column.map(|at| {
            let c = &relation.columns[at];
            Expected { ty: c.ty, typmod: c.typmod, column: &c.name }
        });
        self.with_context(relation, |context| analyze_stored_expression(context, text, Some(relation), expected))
    }

    /// Runs `f` with a context that analyzes the texts in the catalog about a table.
    fn with_context<T>(&self, relation: &Relation, f: impl FnOnce(&Context<'_>) -> Result<T>) -> Result<T> {
        f(&Context {
            catalog: self.catalog,
            session: self.session,
            search_path: &[],
            temp_namespace: Oid::INVALID,
            database: "",
            user: relation.owner,
        })
    }
}
