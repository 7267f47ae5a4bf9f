//! INSERT, and assignment to columns.

use std::sync::Arc;

use melba_catalog::{Relation, RelationKind, trigger_events};
use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::coerce::{CoercionContext, How};
use super::scope::{ExprKind, NsItem};
use super::update::is_partial;
use super::values::column_var;
use super::{Analyzer, nodes};
use melba_tree::*;

/// A column being assigned: its place and the text after its name.
pub struct Assigned<'p> {
    /// Index into the relation's columns.
    pub index: usize,
    /// As written; empty where it was not.
    pub name: &'p str,
    pub indirection: &'p [pb::Node],
    pub location: i32,
}

/// As triggers know a command; MERGE may be several.
fn event_of(command: Command) -> i16 {
    match command {
        Command::Insert => trigger_events::INSERT,
        Command::Update => trigger_events::UPDATE,
        Command::Delete => trigger_events::DELETE,
        Command::Merge | Command::Select => 0,
    }
}

impl<'p> Analyzer<'_, 'p> {
    pub fn insert_statement(&mut self, s: &'p pb::InsertStmt) -> Result<Query> {
        let mut q = Query::new(Command::Insert);
        q.recursive = self.with_clause(s.with_clause.as_ref())?;
        let overriding = match pb::OverridingKind::try_from(s.r#override) {
            Ok(pb::OverridingKind::OverridingUserValue) => Overriding::User,
            Ok(pb::OverridingKind::OverridingSystemValue) => Overriding::System,
            _ => Overriding::None,
        };
        let name = s.relation.as_ref().ok_or_else(|| DbError::internal("INSERT without a table"))?;
        let select = super::set_operation::as_select(s.select_stmt.as_deref());
        // The source is analyzed before the target is visible to anything.
        let source = match select {
            Some(select) if is_general(select) => Some(self.insert_source(s.select_stmt.as_deref(), select)?),
            _ => None,
        };
        let relation = self.target_relation(name, Command::Insert, Command::Insert)?;
        let width = match (&source, select) {
            (Some(query), _) => query.output_columns().len(),
            (None, select) => select.and_then(|s| s.values_lists.first()).map_or(0, |list| nodes::list(list).len()),
        };
        let columns = self.insert_columns(&relation, &s.cols, width)?;
        let mut info = InsertInfo { source: None, written: Vec::new(), overriding, on_conflict: None };
        match (source, select) {
            (Some(query), _) => {
                let (entry, values) = self.source_entry(query);
                info.source = Some(entry);
                q.from.push(FromItem::Range(entry));
                q.targets = self.insert_row(values, &relation, &columns, s, &[])?;
                self.type_source_parameters(entry);
            }
            (None, Some(select)) if select.values_lists.len() > 1 => {
                let (entry, targets) = self.insert_values(select, &relation, &columns, s, overriding)?;
                info.source = Some(entry);
                q.from.push(FromItem::Range(entry));
                q.targets = targets;
            }
            (None, Some(select)) => {
                let list = select.values_lists.first().map_or(&[][..], nodes::list);
                let row = self.with_kind(ExprKind::ValuesSingle, |a| a.values_row(list))?;
                q.targets = self.insert_row(row, &relation, &columns, s, list)?;
            }
            (None, None) => {}
        }
        info.written = q.targets.iter().map(|t| t.column).collect();
        q.targets = self.complete_insert(std::mem::take(&mut q.targets), &relation, overriding)?;
        let target = self.level().target.clone();
        q.result = self.target_entry();
        if let Some(clause) = &s.on_conflict_clause {
            info.on_conflict = Some(self.on_conflict(clause, &relation)?);
        }
        q.insert = Some(info);
        if s.returning_clause.is_some() {
            if let Some(item) = target {
                self.level_mut().namespace.clear();
                self.level_mut().namespace.push(item);
            }
            self.returning_clause(s.returning_clause.as_ref(), &mut q, ExprKind::Returning)?;
        }
        self.assign_query_collations(&mut q)?;
        Ok(q)
    }

    fn insert_source(&mut self, node: Option<&'p pb::Node>, _select: &'p pb::SelectStmt) -> Result<Query> {
        let node = node.and_then(|n| n.node.as_ref()).ok_or_else(|| DbError::internal("INSERT without a source"))?;
        self.with_level(|a| {
            a.level_mut().is_insert_select = true;
            a.statement_here(node)
        })
    }

    /// The subquery's range entry and, for each of its columns, the expression to assign.
    fn source_entry(&mut self, query: Query) -> (usize, Vec<Expr>) {
        let columns = query.output_columns();
        let literals: Vec<Option<Expr>> = query
            .targets
            .iter()
            .filter(|t| !t.junk)
            .map(|t| match &t.expr {
                e @ (Expr::Const(_) | Expr::Param(_)) if e.ty() == oids::UNKNOWN => Some(e.clone()),
                _ => None,
            })
            .collect();
        let locations: Vec<i32> = query.targets.iter().filter(|t| !t.junk).map(|t| t.expr.location()).collect();
        let entry = self.add_entry(RangeEntry {
            kind: RangeKind::Subquery { query: Box::new(query), view: Oid::INVALID },
            alias: None,
            name: "*SELECT*".into(),
            columns: columns.clone(),
            in_from: false,
            ..RangeEntry::default()
        });
        let var = |(i, c): (usize, &OutputColumn)| {
            let mut var = column_var(entry, i, c);
            if let Expr::Var(v) = &mut var {
                v.location = locations[i];
            }
            literals[i].clone().unwrap_or(var)
        };
        (entry, columns.iter().enumerate().map(var).collect())
    }

    /// A parameter that is a whole column of the source has its type by the column it is assigned to: in the source, too.
    fn type_source_parameters(&mut self, entry: usize) {
        let Some(level) = self.levels.last_mut() else { return };
        let RangeKind::Subquery { query, .. } = &mut level.range_table[entry].kind else { return };
        for target in &mut query.targets {
            if let Expr::Param(param) = &mut target.expr {
                self.params.set_type(self.cx, param);
            }
        }
    }

    /// Opens the target relation of a command and adds its range entry. `first`: MERGE's first command, else the command.
    pub fn target_relation(&mut self, name: &'p pb::RangeVar, command: Command, first: Command) -> Result<Arc<Relation>> {
        if name.schemaname.is_empty() && self.levels.iter().any(|l| l.ctes.iter().any(|c| *c.name == *name.relname)) {
            let shown = &name.relname;
            if self.cx.find_relation(None, shown).is_none() {
                return Err(err!(WRONG_OBJECT_TYPE, "relation \"{shown}\" cannot be the target of a modifying statement")
                    .at(name.location));
            }
        }
        if name.schemaname.is_empty() && self.cx.session.transition_table(&name.relname).is_some() {
            let shown = &name.relname;
            return Err(
                err!(WRONG_OBJECT_TYPE, "relation \"{shown}\" cannot be the target of a modifying statement").at(name.location)
            );
        }
        let relation = self.open_relation(name)?;
        let shown = &relation.name;
        match relation.kind {
            RelationKind::Sequence => return Err(err!(WRONG_OBJECT_TYPE, "cannot change sequence \"{shown}\"")),
            RelationKind::MaterializedView => {
                return Err(err!(WRONG_OBJECT_TYPE, "cannot change materialized view \"{shown}\""));
            }
            RelationKind::Toast => return Err(err!(WRONG_OBJECT_TYPE, "cannot change TOAST relation \"{shown}\"")),
            RelationKind::View if self.cx.catalog.has_instead_trigger(&relation, event_of(command)) => {
                self.triggered_view(&relation, name, command)?;
                self.require(command);
                return Ok(relation);
            }
            RelationKind::View => {
                let table = self.view_target(&relation, name, command, first)?;
                self.require(command);
                return Ok(table);
            }
            _ => {}
        }
        let entry = self.relation_entry(&relation, name)?;
        let range = &mut self.level_mut().range_table[entry];
        range.required.select = false;
        let item = NsItem::new(entry, range.name.clone());
        self.level_mut().target = Some(item);
        self.require(command);
        Ok(relation)
    }

    /// Makes a view with INSTEAD OF triggers the target. As existing rows, they see the view's rows.
    fn triggered_view(&mut self, view: &Arc<Relation>, name: &'p pb::RangeVar, command: Command) -> Result<()> {
        let entry = self.relation_entry(view, name)?;
        let range = &mut self.level_mut().range_table[entry];
        if command == Command::Insert {
            range.kind = RangeKind::Relation { oid: view.oid, inherit: true, sample: None };
        }
        range.required.select = false;
        let item = NsItem::new(entry, range.name.clone());
        self.level_mut().target = Some(item);
        Ok(())
    }

    /// Notes the privilege that a command needs on its target.
    pub fn require(&mut self, command: Command) {
        let Some(entry) = self.target_entry() else { return };
        let required = &mut self.level_mut().range_table[entry].required;
        match command {
            Command::Insert => required.insert = true,
            Command::Update => required.update = true,
            Command::Delete => required.delete = true,
            Command::Merge | Command::Select => {}
        }
    }

    /// The columns an INSERT names, or all of them. `width`: how many values there are, as far as is known.
    pub fn insert_columns(&mut self, relation: &Relation, list: &'p [pb::Node], width: usize) -> Result<Vec<Assigned<'p>>> {
        if list.is_empty()
            && let Some(target) = &self.level().view_target
        {
            let names: Vec<_> = target.view.columns.iter().map(|c| c.name.clone()).collect();
            let column = |name: Arc<str>| {
                let index = self.view_column(&name, -1)?.unwrap_or(0);
                Ok(Assigned { index, name: "", indirection: &[], location: -1 })
            };
            // A column without a value need not be a column of the table.
            let columns = names.into_iter().enumerate().filter(|(at, name)| *at < width || self.is_assignable(name));
            return columns.map(|(_, name)| name).collect::<Vec<_>>().into_iter().map(column).collect();
        }
        if list.is_empty() {
            let visible = relation.columns.iter().enumerate().filter(|(_, c)| !c.dropped);
            return Ok(visible.map(|(index, _)| Assigned { index, name: "", indirection: &[], location: -1 }).collect());
        }
        let mut columns: Vec<Assigned<'p>> = Vec::with_capacity(list.len());
        for node in list {
            let Some(NodeEnum::ResTarget(target)) = &node.node else { continue };
            let index = self.assigned_column(relation, &target.name, target.location)?;
            let whole = target.indirection.is_empty();
            // Two columns of a view may be one of its table.
            let is_same = |c: &Assigned<'p>| c.index == index && c.name == target.name;
            if columns.iter().any(|c| is_same(c) && (whole || c.indirection.is_empty())) {
                return Err(err!(DUPLICATE_COLUMN, "column \"{}\" specified more than once", target.name).at(target.location));
            }
            columns.push(Assigned { index, name: &target.name, indirection: &target.indirection, location: target.location });
        }
        Ok(columns)
    }

    pub fn assigned_column(&self, relation: &Relation, name: &str, location: i32) -> Result<usize> {
        if let Some(index) = self.view_column(name, location)? {
            return Ok(index);
        }
        if let Some(i) = relation.columns.iter().position(|c| !c.dropped && &*c.name == name) {
            return Ok(i);
        }
        if super::columns::SYSTEM_COLUMNS.iter().any(|c| c.0 == name) {
            return Err(err!(FEATURE_NOT_SUPPORTED, "cannot assign to system column \"{name}\"").at(location));
        }
        let table = &relation.name;
        Err(err!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{table}\" does not exist").at(location))
    }

    /// A row of VALUES in which DEFAULT is allowed.
    pub fn values_row(&mut self, list: &'p [pb::Node]) -> Result<Vec<Expr>> {
        if !list.iter().any(nodes::is_default) {
            return self.expression_list(list);
        }
        let mut row = Vec::with_capacity(list.len());
        for node in list {
            if nodes::is_default(node) {
                row.push(Expr::Default { ty: oids::UNKNOWN, typmod: -1 });
            } else {
                row.extend(self.expression_list(std::slice::from_ref(node))?);
            }
        }
        Ok(row)
    }

    fn check_row_width(&self, row: &[Expr], columns: &[Assigned<'p>], s: &pb::InsertStmt, list: &[pb::Node]) -> Result<()> {
        if row.len() > columns.len() {
            // DEFAULT has no position in the expression.
            let written = if list.len() == row.len() { nodes::location(&list[columns.len()]) } else { -1 };
            let location = if written >= 0 { written } else { row[columns.len()].location() };
            return Err(err!(SYNTAX_ERROR, "INSERT has more expressions than target columns").at(location));
        }
        if !s.cols.is_empty() && row.len() < columns.len() {
            let e = err!(SYNTAX_ERROR, "INSERT has more target columns than expressions").at(columns[row.len()].location);
            let one_row = matches!(row, [Expr::Row(r)] if r.fields.len() == columns.len());
            return Err(if one_row {
                e.hint(
                    "The insertion source is a row expression containing the same number of columns expected by the \
                     INSERT. Did you accidentally use extra parentheses?",
                )
            } else {
                e
            });
        }
        Ok(())
    }

    fn insert_row(
        &mut self,
        row: Vec<Expr>,
        relation: &Arc<Relation>,
        columns: &[Assigned<'p>],
        s: &pb::InsertStmt,
        list: &[pb::Node],
    ) -> Result<Vec<Target>> {
        self.check_row_width(&row, columns, s, list)?;
        let mut targets: Vec<Target> = Vec::with_capacity(relation.columns.len());
        for (e, column) in row.into_iter().zip(columns) {
            let previous = targets.iter().position(|t| t.column as usize == column.index + 1);
            if previous.is_some() && column.indirection.is_empty() {
                return Err(err!(
                    SYNTAX_ERROR,
                    "multiple assignments to same column \"{}\"",
                    relation.columns[column.index].name
                ));
            }
            let base = previous.map(|i| targets.remove(i).expr);
            let expr = self.assigned_expression(e, relation, column, base, true)?;
            targets.push(assigned_target(relation, column.index, expr));
        }
        Ok(targets)
    }

    /// Several rows of VALUES: a range entry whose columns have the target's types.
    fn insert_values(
        &mut self,
        select: &'p pb::SelectStmt,
        relation: &Arc<Relation>,
        columns: &[Assigned<'p>],
        s: &pb::InsertStmt,
        overriding: Overriding,
    ) -> Result<(usize, Vec<Target>)> {
        let mut rows: Vec<Vec<Expr>> = Vec::with_capacity(select.values_lists.len());
        let mut width = None;
        for list in &select.values_lists {
            let items = nodes::list(list);
            let row = self.with_kind(ExprKind::Values, |a| a.values_row(items))?;
            if *width.get_or_insert(row.len()) != row.len() {
                return Err(
                    err!(SYNTAX_ERROR, "VALUES lists must all be the same length").at(items.first().map_or(-1, nodes::location))
                );
            }
            if let Some(e) = row.iter().find(|e| super::coerce::returns_set(e)) {
                return Err(err!(FEATURE_NOT_SUPPORTED, "set-returning functions are not allowed in VALUES").at(e.location()));
            }
            self.check_row_width(&row, columns, s, items)?;
            let mut out = Vec::with_capacity(row.len());
            for (e, column) in row.into_iter().zip(columns) {
                let is_default = matches!(e, Expr::Default { .. });
                self.check_assignable(relation, column.index, is_default, overriding)?;
                let plain = Assigned { index: column.index, name: column.name, indirection: &[], location: column.location };
                let e = match is_default || column.indirection.is_empty() {
                    true => self.assigned_expression(e, relation, &plain, None, true)?,
                    // As the part's type; all rows have the same one.
                    false => assigned_part(self.assigned_expression(e, relation, column, None, true)?),
                };
                out.push(match e {
                    Expr::Default { .. } => self.default_or_null(relation, column.index)?,
                    e => e,
                });
            }
            rows.push(out);
        }
        for row in &mut rows {
            super::collate::assign_list(self.cx, row)?;
        }
        let mut shape = Vec::with_capacity(columns.len());
        for (i, e) in rows.first().map_or(&[][..], |r| r).iter().enumerate() {
            let own = columns[i].indirection.is_empty();
            let c = &relation.columns[columns[i].index];
            let (ty, typmod) = if own { (c.ty, c.typmod) } else { (e.ty(), e.typmod()) };
            let collation = if own { c.collation } else { e.collation() };
            shape.push(OutputColumn { name: format!("column{}", i + 1).into(), ty, typmod, collation });
        }
        let entry = self.add_entry(RangeEntry {
            kind: RangeKind::Values { rows },
            alias: None,
            name: "*VALUES*".into(),
            columns: shape.clone(),
            in_from: false,
            ..RangeEntry::default()
        });
        let vars: Vec<Expr> = shape.iter().enumerate().map(|(i, c)| column_var(entry, i, c)).collect();
        let targets = self.insert_row(vars, relation, columns, s, &[])?;
        Ok((entry, targets))
    }

    /// The expression for a column, converted to its type.
    pub fn assigned_expression(
        &mut self,
        e: Expr,
        relation: &Arc<Relation>,
        column: &Assigned<'p>,
        base: Option<Expr>,
        insert: bool,
    ) -> Result<Expr> {
        let c = &relation.columns[column.index];
        let number = column.index as i16 + 1;
        if let Some(entry) = self.target_entry() {
            let required = &mut self.level_mut().range_table[entry].required;
            let list = if insert { &mut required.inserted } else { &mut required.updated };
            if !list.contains(&number) {
                list.push(number);
            }
        }
        if matches!(e, Expr::Default { .. }) {
            if let Some(step) = column.indirection.first() {
                let what = if matches!(step.node, Some(NodeEnum::AIndices(_))) { "an array element" } else { "a subfield" };
                return Err(err!(FEATURE_NOT_SUPPORTED, "cannot set {what} to DEFAULT").at(column.location));
            }
            return Ok(Expr::Default { ty: c.ty, typmod: c.typmod });
        }
        if !column.indirection.is_empty() {
            let container = match base {
                Some(e) => e,
                None if insert => Expr::null(c.ty, c.typmod, c.collation),
                None => self.target_column(column.index)?,
            };
            return self.assign_into(container, c.ty, c.typmod, column.indirection, e, &c.name, column.location);
        }
        let (from, location) = (e.ty(), e.location());
        match self.coerce_to_target(e, c.ty, c.typmod, How::assignment())? {
            Some(e) => Ok(e),
            None => {
                let (to, from) = (self.cx.type_name(c.ty), self.cx.type_name(from));
                Err(err!(DATATYPE_MISMATCH, "column \"{}\" is of type {to} but expression is of type {from}", c.name)
                    .routine("transformAssignedExpr")
                    .hint("You will need to rewrite or cast the expression.")
                    .at(location))
            }
        }
    }

    fn target_column(&mut self, index: usize) -> Result<Expr> {
        let entry = self.target_entry().ok_or_else(|| DbError::internal("assignment without a target"))?;
        let range = &mut self.level_mut().range_table[entry];
        super::columns::note_selected(range, index as i16 + 1);
        Ok(column_var(entry, index, &range.columns[index]))
    }

    /// The name that messages use for an assigned field: PL/pgSQL's name the variable, because it treats a field as a variable.
    fn name_of_part<'n>(&self, name: &'n str, field: &'n str, rest: &[pb::Node]) -> &'n str {
        let is_field = matches!(rest.first(), Some(pb::Node { node: Some(NodeEnum::String(_)) }));
        if self.assigns_through_text && is_field { name } else { field }
    }

    /// `container.path := value`: the container with the part replaced.
    #[allow(clippy::too_many_arguments)]
    pub fn assign_into(
        &mut self,
        container: Expr,
        ty: Oid,
        typmod: i32,
        path: &'p [pb::Node],
        value: Expr,
        name: &str,
        location: i32,
    ) -> Result<Expr> {
        let Some(first) = path.first() else {
            let from = value.ty();
            return self.coerce_assigned(value, ty, typmod)?.ok_or_else(|| {
                let (to, from) = (self.cx.type_name(ty), self.cx.type_name(from));
                err!(DATATYPE_MISMATCH, "subfield \"{name}\" is of type {to} but expression is of type {from}")
                    .hint("You will need to rewrite or cast the expression.")
                    .at(location)
            });
        };
        match &first.node {
            Some(NodeEnum::AIndices(_)) => {
                let count = path.iter().take_while(|s| matches!(s.node, Some(NodeEnum::AIndices(_)))).count();
                let steps: Vec<&'p pb::AIndices> = path[..count]
                    .iter()
                    .filter_map(|s| match &s.node {
                        Some(NodeEnum::AIndices(i)) => Some(&**i),
                        _ => None,
                    })
                    .collect();
                self.assign_subscript(container, ty, typmod, &steps, &path[count..], value, name, location)
            }
            Some(NodeEnum::String(field)) => {
                self.assign_field(container, ty, typmod, &field.sval, &path[1..], value, name, location)
            }
            _ => Err(DbError::internal("unrecognized assignment target")),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn assign_field(
        &mut self,
        container: Expr,
        ty: Oid,
        typmod: i32,
        field: &str,
        rest: &'p [pb::Node],
        value: Expr,
        name: &str,
        location: i32,
    ) -> Result<Expr> {
        let shown = || self.cx.type_name(ty);
        let relation = self.cx.row_relation(ty).ok_or_else(|| {
            let (to, ty) = (format!("cannot assign to field \"{field}\" of column \"{name}\""), shown());
            err!(DATATYPE_MISMATCH, "{to} because its type {ty} is not a composite type").at(location)
        })?;
        let index = relation.columns.iter().position(|c| !c.dropped && *c.name == *field).ok_or_else(|| {
            let (to, ty) = (format!("cannot assign to field \"{field}\" of column \"{name}\""), shown());
            err!(UNDEFINED_COLUMN, "{to} because there is no such column in data type {ty}").at(location)
        })?;
        let c = relation.columns[index].clone();
        // A domain over a row is checked once all fields have their values.
        let (base, base_typmod) = self.cx.catalog.base_type_and_typmod(ty, typmod);
        let container = undecided(container, ty, base, base_typmod);
        let number = index as i16 + 1;
        let inner = match rest {
            [] => Expr::null(c.ty, c.typmod, c.collation),
            _ => stored_field(&container, number).unwrap_or_else(|| Expr::FieldSelect {
                arg: Box::new(container.clone()),
                field: number,
                ty: c.ty,
                typmod: c.typmod,
                collation: c.collation,
            }),
        };
        let name = self.name_of_part(name, field, rest);
        let new = self.assign_into(inner, c.ty, c.typmod, rest, value, name, location)?;
        let store = match container {
            // Several fields of one value become one store.
            Expr::FieldStore { arg, mut values, ty } => {
                values.retain(|(stored, _)| *stored != number);
                values.push((number, new));
                Expr::FieldStore { arg, values, ty }
            }
            container => Expr::FieldStore { arg: Box::new(container), values: vec![(number, new)], ty: base },
        };
        self.as_domain(store, ty, typmod, location)
    }

    /// A value built as the base type of a domain becomes a value of the domain.
    fn as_domain(&mut self, value: Expr, ty: Oid, typmod: i32, location: i32) -> Result<Expr> {
        if value.ty() == ty {
            return Ok(value);
        }
        let how = How { context: CoercionContext::Assignment, form: CoercionForm::ImplicitCast, location };
        let coerced = self.coerce_to_target(value, ty, typmod, how)?;
        coerced.ok_or_else(|| DbError::internal("cannot convert a value to its domain"))
    }

    #[allow(clippy::too_many_arguments)]
    fn assign_subscript(
        &mut self,
        container: Expr,
        ty: Oid,
        typmod: i32,
        steps: &[&'p pb::AIndices],
        rest: &'p [pb::Node],
        value: Expr,
        name: &str,
        location: i32,
    ) -> Result<Expr> {
        let (base, base_typmod) = self.cx.catalog.base_type_and_typmod(ty, typmod);
        let container = undecided(container, ty, base, base_typmod);
        let template = self.subscripts(container.clone(), steps, None)?;
        let Expr::Subscript(mut subscript) = template else { return Err(DbError::internal("subscript expected")) };
        let part = if subscript.slice { base } else { subscript.ty };
        let assigned = if rest.is_empty() {
            let from = value.ty();
            let coerced = self.coerce_assigned(value, part, subscript.typmod)?;
            coerced.ok_or_else(|| {
                let (to, from) = (self.cx.type_name(part), self.cx.type_name(from));
                err!(
                    DATATYPE_MISMATCH,
                    "subscripted assignment to \"{name}\" requires type {to} but expression is of type {from}"
                )
                .hint("You will need to rewrite or cast the expression.")
                .at(location)
            })?
        } else {
            let element = Expr::Subscript(subscript.clone());
            self.assign_into(element, part, -1, rest, value, name, location)?
        };
        subscript.assign = Some(assigned);
        subscript.ty = subscript.container_type;
        self.as_domain(Expr::Subscript(subscript), ty, typmod, location)
    }

    /// 428C9 for a column to which only DEFAULT may be assigned.
    pub fn check_assignable(&self, relation: &Relation, index: usize, is_default: bool, overriding: Overriding) -> Result<()> {
        let c = &relation.columns[index];
        let name = &c.name;
        if is_default {
            return Ok(());
        }
        let refused = err!(GENERATED_ALWAYS, "cannot insert a non-DEFAULT value into column \"{name}\"");
        if c.generated != 0 {
            return Err(refused.detail(format!("Column \"{name}\" is a generated column.")));
        }
        if c.identity == b'a' && overriding == Overriding::None {
            return Err(refused
                .detail(format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS."))
                .hint("Use OVERRIDING SYSTEM VALUE to override."));
        }
        Ok(())
    }

    /// Adds defaults, checks generated and identity columns, orders targets by column.
    pub fn complete_insert(
        &mut self,
        targets: Vec<Target>,
        relation: &Arc<Relation>,
        overriding: Overriding,
    ) -> Result<Vec<Target>> {
        self.refuse_blocked_defaults()?;
        let mut given: Vec<Option<Target>> = vec![None; relation.columns.len()];
        for target in targets {
            let index = target.column as usize - 1;
            given[index] = Some(target);
        }
        let mut out = Vec::with_capacity(given.len());
        for (index, target) in given.into_iter().enumerate() {
            let c = &relation.columns[index];
            if c.dropped {
                continue;
            }
            let from_values = target.as_ref().is_some_and(|t| matches!(&t.expr, Expr::Var(_)))
                && self.level().range_table.iter().any(|e| matches!(e.kind, RangeKind::Values { .. }));
            let mut target = match target {
                Some(t) if matches!(t.expr, Expr::Default { .. }) => None,
                Some(t) => {
                    if !from_values {
                        self.check_assignable(relation, index, false, overriding)?;
                    }
                    Some(t)
                }
                None => None,
            };
            if overriding == Overriding::User && c.identity != 0 {
                target = None;
            }
            let target = match target {
                Some(t) => Some(t),
                None => self.inserted_default(relation, index)?.map(|e| assigned_target(relation, index, e)),
            };
            out.extend(target);
        }
        Ok(out)
    }

    /// The default of a column as an expression of its type; none when there is none.
    pub fn column_default_expression(&mut self, relation: &Arc<Relation>, index: usize) -> Result<Option<Expr>> {
        super::expression::column_default(self.cx, relation, index)
    }

    pub fn default_or_null(&mut self, relation: &Arc<Relation>, index: usize) -> Result<Expr> {
        let c = &relation.columns[index];
        let null = Expr::null(c.ty, c.typmod, c.collation);
        Ok(self.inserted_default(relation, index)?.unwrap_or(null))
    }
}

/// A value that is assigned into, of a domain: as the base type, before the domain was checked, for there is more to come.
fn undecided(container: Expr, ty: Oid, base: Oid, typmod: i32) -> Expr {
    match container {
        container if ty == base => container,
        Expr::CoerceToDomain { arg, ty: to, .. } if to == ty && is_partial(&arg) => *arg,
        container => super::coerce::relabel(container, base, typmod, CoercionForm::ImplicitCast),
    }
}

/// The value that a field was given before.
fn stored_field(container: &Expr, number: i16) -> Option<Expr> {
    let Expr::FieldStore { values, .. } = container else { return None };
    values.iter().find(|(stored, _)| *stored == number).map(|(_, value)| value.clone())
}

/// The value that an assignment into a part assigns.
fn assigned_part(e: Expr) -> Expr {
    match e {
        Expr::CoerceToDomain { arg, .. } if is_partial(&arg) => assigned_part(*arg),
        Expr::FieldStore { mut values, .. } if values.len() == 1 => assigned_part(values.remove(0).1),
        Expr::Subscript(subscript) if subscript.assign.is_some() => {
            subscript.assign.map_or_else(|| Expr::null(oids::UNKNOWN, -1, Oid::INVALID), assigned_part)
        }
        e => e,
    }
}

/// A source that is more than VALUES of one or several rows.
fn is_general(s: &pb::SelectStmt) -> bool {
    s.values_lists.is_empty()
        || !s.sort_clause.is_empty()
        || s.limit_offset.is_some()
        || s.limit_count.is_some()
        || !s.locking_clause.is_empty()
        || s.with_clause.is_some()
}

pub fn assigned_target(relation: &Relation, index: usize, expr: Expr) -> Target {
    Target {
        expr,
        name: relation.columns[index].name.clone(),
        junk: false,
        reference: 0,
        column: index as i16 + 1,
        origin: (Oid::INVALID, 0),
    }
}
