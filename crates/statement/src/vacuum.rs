//! VACUUM and ANALYZE: space is freed in the background and statistics of columns are always current, so only the effects that
//! others notice remain (privileges, targets, and locks), and the data of statistics objects.

use std::sync::Arc;

use melba_catalog::foreign::require_handler;
use melba_catalog::{Relation, RelationKind, Storage, acl};
use melba_definition::context::Ddl;
use melba_definition::lookup::Lookup;
use melba_definition::progress::LongCommand;
use melba_engine::{LockTag, RelationLockMode, RowCounts, Wait};
use melba_parse::nodes::{inner, option_bool, option_int, options, strings};
use melba_relation::statistics::analyze_statistics;
use melba_relation::table::relation::forget_stated_sizes;
use melba_toast::Method;
use melba_types::{Oid, Result, SqlState, bail, err};
use pg_query::protobuf::{DefElem, RangeVar, VacuumRelation, VacuumStmt, node::Node as N};

use super::ddl_context::Utility;
use super::maintained::{MaintainedTable, MaintenanceCommand};

const PARALLEL_MAX: i64 = 1024;
/// The figure of pg_stat_progress_vacuum with the phase, and the only phase that takes time here.
const VACUUM_PHASE: usize = 1;
const VACUUMING_HEAP: i64 = 3;

/// The options that matter here.
struct VacuumOptions {
    /// VACUUM rather than ANALYZE.
    vacuum: bool,
    analyze: bool,
    full: bool,
    skip_locked: bool,
    /// Touches no table.
    only_database: bool,
    /// The lock of the only relation is held until the transaction ends.
    keeps_lock: bool,
}

pub(super) fn run(utility: &Utility<'_>, s: &VacuumStmt) -> Result<()> {
    let ddl = &utility.ddl();
    let mut chosen = VacuumOptions::of(s)?;
    let named: Vec<&VacuumRelation> =
        s.rels.iter().filter_map(|n| if let Ok(N::VacuumRelation(r)) = inner(n) { Some(r) } else { None }).collect();
    if chosen.only_database && !named.is_empty() {
        bail!(FEATURE_NOT_SUPPORTED, "ONLY_DATABASE_STATS cannot be specified with a list of tables");
    }
    if !chosen.analyze && named.iter().any(|r| !r.va_cols.is_empty()) {
        bail!(FEATURE_NOT_SUPPORTED, "ANALYZE option must be specified when a column list is provided");
    }
    if named.is_empty() && !chosen.only_database {
        for relation in everything(ddl) {
            chosen.process(utility, &relation, &[], false)?;
        }
    }
    // All names are resolved before the first wait for a lock.
    let mut found = Vec::with_capacity(named.len());
    for each in named {
        let name = each.relation.as_ref().ok_or_else(|| err!(INTERNAL_ERROR, "VACUUM of a table without a name"))?;
        let relation = ddl.find_relation(name)?.ok_or_else(|| ddl.undefined_relation(name))?;
        found.push((name, relation, strings(&each.va_cols)));
    }
    // ANALYZE of several relations is a transaction for each in PostgreSQL, so that it never waits for one while it keeps another.
    let is_whole = |name: &RangeVar, relation: &Relation| !name.inh || ddl.catalog().child_count(relation.oid) == 0;
    chosen.keeps_lock = !chosen.vacuum && matches!(&found[..], [(name, relation, _)] if is_whole(name, relation));
    found.iter().try_for_each(|(name, relation, columns)| chosen.process_named(utility, name, relation, columns))
}

/// All tables, in the order of their OIDs.
pub(super) fn everything(lookup: &Lookup<'_>) -> Vec<Arc<Relation>> {
    let catalog = lookup.catalog();
    let is_table = |r: &&Arc<Relation>| matches!(r.kind, RelationKind::Table | RelationKind::MaterializedView);
    let mut all: Vec<Arc<Relation>> = catalog.user_relations().filter(is_table).cloned().collect();
    all.sort_by_key(|r| r.oid);
    all
}

/// The columns that ANALYZE names.
fn check_columns(relation: &Relation, columns: &[&str]) -> Result<()> {
    let name = &relation.name;
    for (at, column) in columns.iter().enumerate() {
        if !relation.columns.iter().any(|c| !c.dropped && *c.name == **column) {
            bail!(UNDEFINED_COLUMN, "column \"{column}\" of relation \"{name}\" does not exist");
        }
        if columns[..at].contains(column) {
            bail!(DUPLICATE_COLUMN, "column \"{column}\" of relation \"{name}\" appears more than once");
        }
    }
    Ok(())
}

impl VacuumOptions {
    fn of(s: &VacuumStmt) -> Result<VacuumOptions> {
        let vacuum = s.is_vacuumcmd;
        let mut of =
            VacuumOptions { vacuum, analyze: !vacuum, full: false, skip_locked: false, only_database: false, keeps_lock: false };
        let (mut parallel, mut skips_pages, mut toast, mut others) = (0, false, true, false);
        for def in options(&s.options) {
            let name = def.defname.as_str();
            others |= !matches!(name, "only_database_stats" | "verbose");
            match name {
                "verbose" => drop(option_bool(def)?),
                "skip_locked" => of.skip_locked = option_bool(def)?,
                "buffer_usage_limit" => {}
                "analyze" if vacuum => of.analyze = option_bool(def)?,
                "full" if vacuum => of.full = option_bool(def)?,
                "disable_page_skipping" if vacuum => skips_pages = option_bool(def)?,
                "process_toast" if vacuum => toast = option_bool(def)?,
                "only_database_stats" if vacuum => of.only_database = option_bool(def)?,
                "freeze" | "process_main" | "truncate" | "skip_database_stats" if vacuum => drop(option_bool(def)?),
                "index_cleanup" if vacuum => check_index_cleanup(def)?,
                "parallel" if vacuum => parallel = workers(def)?,
                _ => {
                    let command = if vacuum { "VACUUM" } else { "ANALYZE" };
                    return Err(err!(SYNTAX_ERROR, "unrecognized {command} option \"{name}\"").at(def.location));
                }
            }
        }
        let refused = match () {
            () if of.full && parallel > 0 => "VACUUM FULL cannot be performed in parallel",
            () if of.full && skips_pages => "VACUUM option DISABLE_PAGE_SKIPPING cannot be used with FULL",
            () if of.full && !toast => "PROCESS_TOAST required with VACUUM FULL",
            () if of.only_database && others => "ONLY_DATABASE_STATS cannot be specified with other VACUUM options",
            () => return Ok(of),
        };
        bail!(FEATURE_NOT_SUPPORTED, "{refused}")
    }

    /// The verb that messages use for the first action.
    fn verb(&self) -> &'static str {
        if self.vacuum { "vacuum" } else { "analyze" }
    }

    fn mode(&self) -> RelationLockMode {
        if self.full { RelationLockMode::AccessExclusive } else { RelationLockMode::ShareUpdateExclusive }
    }

    /// A table with its partitions and children, unless ONLY was given.
    fn process_named(&self, utility: &Utility<'_>, name: &RangeVar, relation: &Relation, columns: &[&str]) -> Result<()> {
        let lookup: &Lookup<'_> = &utility.lookup;
        if !name.inh && self.vacuum && relation.kind == RelationKind::PartitionedTable {
            lookup.warning(SqlState::WARNING, format!("VACUUM ONLY of partitioned table \"{}\" has no effect", relation.name));
        }
        self.process(utility, relation, columns, true)?;
        let catalog = lookup.catalog();
        let below = if name.inh { catalog.descendants(relation.oid) } else { Vec::new() };
        for child in below.into_iter().filter(|oid| *oid != relation.oid).filter_map(|oid| catalog.relation(oid)) {
            self.process(utility, child, columns, false)?;
        }
        Ok(())
    }

    /// `named`: the statement names the relation.
    fn process(&self, utility: &Utility<'_>, relation: &Relation, columns: &[&str], named: bool) -> Result<()> {
        let ddl = &utility.ddl();
        let lookup: &Lookup<'_> = ddl;
        let (verb, name) = (self.verb(), &relation.name);
        let catalog = lookup.catalog();
        let owns_database = catalog.database(lookup.tx().database).is_some_and(|d| lookup.is_owner(d.owner));
        if !owns_database && !catalog.has_relation_privileges(lookup.user(), relation, acl::MAINTAIN) {
            lookup.warning(SqlState::WARNING, format!("permission denied to {verb} \"{name}\", skipping it"));
            return Ok(());
        }
        if let Some(foreign) = relation.foreign.as_ref().filter(|_| !self.vacuum) {
            require_handler(&catalog, foreign.server)?;
            // Nothing is known of rows elsewhere.
            return check_columns(relation, columns);
        }
        let fits = match relation.kind {
            RelationKind::Table | RelationKind::MaterializedView | RelationKind::PartitionedTable => true,
            RelationKind::Toast => self.vacuum,
            _ => false,
        };
        if !fits {
            let message = format!("skipping \"{name}\" --- cannot {verb} non-tables or special system tables");
            lookup.warning(SqlState::WARNING, message);
            return Ok(());
        }
        // System relations are views of the catalog, which has separate locks.
        if !matches!(relation.storage, Storage::System(_)) {
            let missing = match self.lock(lookup, relation)? {
                false => Some((SqlState::LOCK_NOT_AVAILABLE, "lock not available")),
                true if lookup.catalog().relation(relation.oid).is_none() => {
                    Some((SqlState::UNDEFINED_TABLE, "relation no longer exists"))
                }
                true => None,
            };
            if let Some((state, reason)) = missing {
                // Nobody has asked for the others by name.
                if named {
                    lookup.warning(state, format!("skipping {verb} of \"{name}\" --- {reason}"));
                }
                return Ok(());
            }
        }
        check_columns(relation, columns)?;
        self.work(utility, relation, columns)
    }

    fn work(&self, utility: &Utility<'_>, relation: &Relation, columns: &[&str]) -> Result<()> {
        let ddl = &utility.ddl();
        let instance = &utility.context.session.instance;
        let now = || instance.cluster.clock.now_micros();
        let note = |command, started| {
            if let Some(table) = MaintainedTable::of(ddl.tx().database, relation) {
                let rows = match relation.storage {
                    Storage::Tree(tree) => instance.cluster.engine.tree_row_counts(tree),
                    _ => RowCounts::default(),
                };
                instance.maintained.note(table, command, started, now(), rows);
            }
        };
        forget_stated_sizes(ddl, relation)?;
        let started = now();
        if self.analyze {
            self.analyze(ddl, relation, columns)?;
            note(MaintenanceCommand::Analyze, started);
        }
        let started = now();
        self.condense(ddl, relation)?;
        // FULL writes a new table, which is not counted; a partitioned table has nothing to free.
        if self.vacuum && !self.full && !relation.is_partitioned() {
            note(MaintenanceCommand::Vacuum, started);
        }
        Ok(())
    }

    /// The rows of children count for their parent, so that this waits for their locks even under SKIP_LOCKED.
    fn analyze(&self, ddl: &Ddl<'_>, relation: &Relation, columns: &[&str]) -> Result<()> {
        let tx = ddl.tx();
        let tag = |child: &Oid| LockTag::Relation { database: tx.database.0, relation: child.0 };
        let session = tx.engine.session();
        let unlock = |locked: &[Oid]| {
            for child in locked {
                session.unlock(tag(child), RelationLockMode::AccessShare);
            }
        };
        let mut children = ddl.catalog().descendants(relation.oid);
        children.retain(|child| *child != relation.oid);
        for (at, child) in children.iter().enumerate() {
            if let Err(error) = session.lock(tag(child), RelationLockMode::AccessShare, Wait::Block) {
                unlock(&children[..at]);
                return Err(error.into());
            }
        }
        let result = analyze_statistics(ddl, relation, columns);
        unlock(&children);
        result
    }

    /// Makes the values of dense columns dense at once, which merges do when there is time.
    fn condense(&self, ddl: &Ddl<'_>, relation: &Relation) -> Result<()> {
        let is_dense = relation.columns.iter().any(|c| !c.dropped && c.compression == Method::Dense.letter());
        let by_default = || ddl.session().setting("default_toast_compression").as_deref() == Some(Method::Dense.name());
        match relation.storage {
            Storage::Tree(tree) if self.vacuum && (is_dense || by_default()) => {
                let progress = ddl.begin_progress(LongCommand::Vacuum, relation.oid);
                progress.set(VACUUM_PHASE, VACUUMING_HEAP);
                Ok(ddl.tx().cluster().engine.condense(tree)?)
            }
            _ => Ok(()),
        }
    }

    /// Waits for the relation's lock; false: others hold it, and SKIP LOCKED was given.
    fn lock(&self, lookup: &Lookup<'_>, relation: &Relation) -> Result<bool> {
        let tag = LockTag::Relation { database: lookup.tx().database.0, relation: relation.oid.0 };
        let wait = if self.skip_locked { Wait::NoWait } else { Wait::Block };
        if self.keeps_lock {
            return Ok(lookup.tx().engine.lock_relation(tag, self.mode(), wait)?);
        }
        // One table at a time, so that no session waits for tables that are finished.
        let session = lookup.tx().engine.session();
        let granted = session.lock(tag, self.mode(), wait)?;
        if granted {
            session.unlock(tag, self.mode());
        }
        Ok(granted)
    }
}

/// INDEX_CLEANUP is a Boolean or AUTO.
fn check_index_cleanup(def: &DefElem) -> Result<()> {
    match melba_parse::nodes::option_text(def) {
        Some(text) if text.eq_ignore_ascii_case("auto") => Ok(()),
        _ => option_bool(def).map(drop),
    }
}

fn workers(def: &DefElem) -> Result<i64> {
    if def.arg.is_none() {
        let message = format!("parallel option requires a value between 0 and {PARALLEL_MAX}");
        return Err(err!(SYNTAX_ERROR, "{message}").at(def.location));
    }
    let workers = option_int(def)?;
    if !(0..=PARALLEL_MAX).contains(&workers) {
        let message = format!("parallel workers for vacuum must be between 0 and {PARALLEL_MAX}");
        return Err(err!(SYNTAX_ERROR, "{message}").at(def.location));
    }
    Ok(workers)
}
