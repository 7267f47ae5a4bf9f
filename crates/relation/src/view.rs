//! CREATE VIEW.

use std::sync::Arc;

use melba_catalog::{Column, ObjectAddress, Persistence, Relation, RelationKind, classes};
use melba_definition::context::Ddl;
use melba_engine::RelationLockMode;
use melba_parse::nodes::{inner, strings};
use melba_tree::{Query, RangeKind, SetInput};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::NodeEnum;
use pg_query::protobuf::{Node, SelectStmt, ViewCheckOption, ViewStmt};

use crate::stored_text::{print_texts, read_naming_texts};
use crate::table::relation::{bare_relation, new_column, put_relation, put_relation_with_row_type};
use crate::table::storage_parameters::ParametersOf;

pub fn create_view(ddl: &Ddl<'_>, s: &ViewStmt) -> Result<()> {
    let name = s.view.as_ref().ok_or_else(|| DbError::internal("CREATE VIEW without a name"))?;
    let node = s.query.as_deref().ok_or_else(|| DbError::internal("CREATE VIEW without a query"))?;
    if let Some(NodeEnum::SelectStmt(select)) = &node.node
        && has_into(select)
    {
        bail!(SYNTAX_ERROR, "views must not contain SELECT INTO");
    }
    let (query, text, depends_on) = stored_query(ddl, node, &[])?;
    if name.relpersistence == "u" {
        bail!(SYNTAX_ERROR, "views cannot be unlogged because they do not have storage");
    }
    let (namespace, mut temporary) = ddl.relation_namespace(name)?;
    let mentions_temporary = depends_on.iter().any(|d| {
        d.class == classes::PG_CLASS && ddl.catalog().relation(d.object).is_some_and(|r| r.persistence == Persistence::Temporary)
    });
    let namespace = if mentions_temporary && !temporary {
        ddl.notice(format!("view \"{}\" will be a temporary view", name.relname));
        if !name.schemaname.is_empty() {
            bail!(INVALID_TABLE_DEFINITION, "cannot create temporary relation in non-temporary schema");
        }
        temporary = true;
        ddl.temporary_namespace()?
    } else {
        namespace
    };
    let columns = query_columns(ddl, &query, &strings(&s.aliases))?;
    let text = deparse_with_names(&text, &columns, &query, ddl)?;
    let mut options = ParametersOf::View.new_list(&s.options)?;
    match s.with_check_option() {
        ViewCheckOption::LocalCheckOption => options.push("check_option=local".into()),
        ViewCheckOption::CascadedCheckOption => options.push("check_option=cascaded".into()),
        _ => {}
    }
    check_checkable(ddl, &name.relname, &options, &query)?;
    if let Some(old) = ddl.catalog().relation_by_name(namespace, &name.relname).cloned() {
        if !s.replace {
            bail!(DUPLICATE_TABLE, "relation \"{}\" already exists", name.relname);
        }
        return replace_view(ddl, &old, columns, text, depends_on, options);
    }
    let persistence = if temporary { Persistence::Temporary } else { Persistence::Permanent };
    let relation = Relation {
        view_query: Some(text.into()),
        rule: ddl.tx().new_oid(),
        depends_on,
        options,
        ..bare_relation(ddl, namespace, &name.relname, RelationKind::View, persistence, columns)
    };
    put_relation_with_row_type(ddl, relation)
}

/// INTO stands in the first of several selects.
fn has_into(select: &SelectStmt) -> bool {
    select.into_clause.is_some() || select.larg.as_deref().is_some_and(has_into)
}

/// # Errors
/// 0A000 for WITH CHECK OPTION of a view that cannot be changed.
pub fn check_checkable(ddl: &Ddl<'_>, name: &str, options: &[Arc<str>], query: &Query) -> Result<()> {
    if !options.iter().any(|o| o.starts_with("check_option=")) {
        return Ok(());
    }
    let view = Arc::new(Relation::new(Oid::INVALID, name, Oid::INVALID, ddl.user()));
    match ddl.with_context(|c| melba_analyze::refused_check_option(c, &view, query))? {
        None => Ok(()),
        Some(reason) => {
            let message = "WITH CHECK OPTION is supported only on automatically updatable views";
            Err(err!(FEATURE_NOT_SUPPORTED, "{message}").hint(reason))
        }
    }
}

fn replace_view(
    ddl: &Ddl<'_>,
    old: &Relation,
    columns: Vec<Column>,
    text: String,
    depends_on: Vec<ObjectAddress>,
    options: Vec<Arc<str>>,
) -> Result<()> {
    if old.kind != RelationKind::View {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a view", old.name);
    }
    ddl.require_owner(old.owner, "view", &old.name)?;
    ddl.lock_relation(old.oid, RelationLockMode::AccessExclusive)?;
    if columns.len() < old.columns.len() {
        bail!(INVALID_TABLE_DEFINITION, "cannot drop columns from view");
    }
    let catalog = ddl.catalog();
    for (was, now) in old.columns.iter().zip(&columns) {
        if was.name != now.name {
            return Err(err!(INVALID_TABLE_DEFINITION, "cannot change name of view column \"{}\" to \"{}\"", was.name, now.name)
                .hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."));
        }
        if was.ty != now.ty || was.typmod != now.typmod {
            bail!(
                INVALID_TABLE_DEFINITION,
                "cannot change data type of view column \"{}\" from {} to {}",
                was.name,
                catalog.format_type(was.ty, Some(was.typmod), ddl.path()),
                catalog.format_type(now.ty, Some(now.typmod), ddl.path())
            );
        }
        if was.collation != now.collation {
            let name = |oid| catalog.collation(oid).map_or_else(String::new, |c| c.name.to_string());
            bail!(
                INVALID_TABLE_DEFINITION,
                "cannot change collation of view column \"{}\" from \"{}\" to \"{}\"",
                was.name,
                name(was.collation),
                name(now.collation)
            );
        }
    }
    let new: Vec<&str> = columns.iter().skip(old.columns.len()).map(|c| &*c.name).collect();
    let texts = read_naming_texts(ddl, old.oid, &new)?;
    put_relation(ddl, Relation { columns: columns.into(), view_query: Some(text.into()), depends_on, options, ..old.clone() });
    print_texts(ddl, texts)
}

/// Analyzes a query for storing: returns the tree, its text, and its dependencies. `parameters`: the types of `$1`, ...
pub fn stored_query(ddl: &Ddl<'_>, node: &Node, parameters: &[Oid]) -> Result<(Query, String, Vec<ObjectAddress>)> {
    let inner = inner(node)?;
    let types = (!parameters.is_empty()).then_some(parameters);
    let query = ddl.analyze_locked(|c| Ok(melba_analyze::analyze(c, inner, types)?.query), Query::dependencies)?;
    let text = ddl.with_context(|c| Ok(melba_deparse::stored_query(c, &query)))?;
    let depends_on = ddl.usable_of_query(&query)?;
    Ok((query, text, depends_on))
}

/// Columns for the output of a query, renamed by `aliases`.
pub fn query_columns(ddl: &Ddl<'_>, query: &Query, aliases: &[&str]) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = Vec::new();
    for (at, target) in query.targets.iter().filter(|t| !t.junk).enumerate() {
        let name = aliases.get(at).copied().unwrap_or(&target.name);
        if columns.iter().any(|c| *c.name == *name) {
            bail!(DUPLICATE_COLUMN, "column \"{name}\" specified more than once");
        }
        let ty = match target.expr.ty() {
            melba_types::oids::UNKNOWN => melba_types::oids::TEXT,
            ty => ty,
        };
        let mut column = new_column(ddl, name, ty, target.expr.typmod())?;
        column.collation = target.expr.collation();
        columns.push(column);
    }
    if aliases.len() > columns.len() {
        bail!(SYNTAX_ERROR, "CREATE VIEW specifies more column names than columns");
    }
    Ok(columns)
}

/// The view's text with its column names as output names.
pub fn deparse_with_names(text: &str, columns: &[Column], query: &Query, ddl: &Ddl<'_>) -> Result<String> {
    if query.targets.iter().filter(|t| !t.junk).zip(columns).all(|(t, c)| t.name == c.name) {
        return Ok(text.to_owned());
    }
    let mut renamed = query.clone();
    name_outputs(&mut renamed, columns);
    ddl.with_context(|c| Ok(melba_deparse::stored_query(c, &renamed)))
}

/// Gives output columns other names, in all arms of a set operation.
fn name_outputs(query: &mut Query, columns: &[Column]) {
    for (target, column) in query.targets.iter_mut().filter(|t| !t.junk).zip(columns) {
        target.name = column.name.clone();
    }
    let Some(tree) = &query.set_operation else { return };
    let (mut leaves, mut inputs) = (Vec::new(), vec![&tree.left, &tree.right]);
    while let Some(input) = inputs.pop() {
        match input {
            SetInput::Leaf(entry) => leaves.push(*entry),
            SetInput::Tree(tree) => inputs.extend([&tree.left, &tree.right]),
        }
    }
    for leaf in leaves {
        if let RangeKind::Subquery { query, .. } = &mut query.range_table[leaf].kind {
            name_outputs(query, columns);
        }
    }
}
