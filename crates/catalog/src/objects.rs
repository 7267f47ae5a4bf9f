//! The descriptors of catalog objects.
//!
//! Expressions (defaults, checks, index expressions, view queries, function bodies) are kept as SQL text in the form that
//! PostgreSQL's pg_get_expr and pg_get_viewdef print with every name qualified; the SQL layer analyzes them on use and rewrites
//! the text when an object they mention is renamed; literals of type regclass and similar ones hold OIDs. The objects they depend
//! on are in `depends_on`.

use std::sync::{Arc, OnceLock};

use melba_collation::Collator;
use melba_types::{Datum, Kind, Oid, TreeId, boolean};

use crate::classes;

pub use crate::aggregates::{AggregateInfo, MovingAggregate};
pub use crate::event_triggers::EventTrigger;
pub use crate::extended_statistics::{ExtendedStatistics, McvItem, StatisticsData};
pub use crate::foreign::{ColumnOptions, ForeignDataWrapper, ForeignServer, ForeignTable, UserMapping};
pub use crate::granted::{DefaultAcl, Granted};
pub use crate::operator_families::{FamilyFunction, FamilyOperator, OperatorClass, OperatorFamily};
pub use crate::partitioning::*;
pub use crate::plain::PlainObject;
pub use crate::publications::{Publication, PublicationMember};
pub use crate::relation_kind::RelationKind;
pub use crate::row_security::Policy;
pub use crate::rules::RewriteRule;
pub use crate::text_search::{TextSearchConfig, TextSearchDictionary, TextSearchMapping};

/// A privilege list in PostgreSQL's aclitem text form; `None`: the owner's defaults.
pub type Acl = Option<Arc<[AclItem]>>;

/// `grantee=privileges/grantor`. `grantee` 0 is PUBLIC. Bits as PostgreSQL's ACL_* (INSERT 1, SELECT 2, ...), grant
/// options in the upper half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclItem {
    pub grantee: Oid,
    pub grantor: Oid,
    pub privileges: u64,
}

/// Any object: the engine's catalog tree stores a row of it.
#[derive(Clone, Debug)]
pub enum Object {
    Namespace(Arc<Namespace>),
    Relation(Arc<Relation>),
    Type(Arc<Type>),
    Function(Arc<Function>),
    Operator(Arc<Operator>),
    OperatorFamily(Arc<OperatorFamily>),
    OperatorClass(Arc<OperatorClass>),
    Cast(Arc<Cast>),
    Constraint(Arc<Constraint>),
    Trigger(Arc<Trigger>),
    Policy(Arc<Policy>),
    Rule(Arc<RewriteRule>),
    /// CREATE STATISTICS.
    ExtendedStatistics(Arc<ExtendedStatistics>),
    EventTrigger(Arc<EventTrigger>),
    Publication(Arc<Publication>),
    PublicationMember(Arc<PublicationMember>),
    ForeignDataWrapper(Arc<ForeignDataWrapper>),
    ForeignServer(Arc<ForeignServer>),
    UserMapping(Arc<UserMapping>),
    Collation(Arc<Collation>),
    TextSearchDictionary(Arc<TextSearchDictionary>),
    TextSearchConfig(Arc<TextSearchConfig>),
    Extension(Arc<Extension>),
    /// Access methods, conversions, languages, tablespaces, transforms.
    Plain(Arc<PlainObject>),
    /// ALTER DEFAULT PRIVILEGES.
    DefaultAcl(Arc<DefaultAcl>),
    /// GRANT ON PARAMETER, which all databases share.
    Granted(Arc<Granted>),
    /// COMMENT ON.
    Description(Arc<Description>),
    /// Shared across databases.
    Role(Arc<Role>),
    /// Shared across databases.
    Database(Arc<Database>),
}

/// The address of an object as pg_depend and pg_description write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectAddress {
    /// OID of the system relation the object has its row in (1259 pg_class, 1247 pg_type, ...).
    pub class: Oid,
    pub object: Oid,
    /// Column number, or 0.
    pub sub: i32,
}

#[derive(Clone, Debug)]
pub struct Namespace {
    pub oid: Oid,
    pub name: Arc<str>,
    pub owner: Oid,
    pub acl: Acl,
}

impl Relation {
    /// A table with nothing but a name and an owner.
    pub fn new(oid: Oid, name: impl Into<Arc<str>>, namespace: Oid, owner: Oid) -> Relation {
        Relation {
            oid,
            name: name.into(),
            namespace,
            owner,
            kind: RelationKind::Table,
            persistence: Persistence::Permanent,
            row_type: Oid::INVALID,
            of_type: Oid::INVALID,
            columns: Arc::default(),
            storage: Storage::None,
            file_node: oid,
            indexes: Vec::new(),
            constraints: Vec::new(),
            triggers: Vec::new(),
            options: Vec::new(),
            index: None,
            sequence: None,
            view_query: None,
            rule: Oid::INVALID,
            populated: true,
            access_method: Oid::INVALID,
            acl: None,
            row_security: false,
            force_row_security: false,
            replica_identity: b'd',
            parents: Vec::new(),
            partition_key: None,
            partition_bound: None,
            depends_on: Vec::new(),
            stated: None,
            detach_pending: false,
            foreign: None,
        }
    }

    /// A temporary table of another session than the one with the temporary schema `own`: that one does not see its rows.
    pub fn is_temporary_elsewhere(&self, own: Oid) -> bool {
        self.persistence == Persistence::Temporary && self.namespace != own
    }

    /// Whether a storage parameter that is a boolean is on.
    pub fn has_option(&self, name: &str) -> bool {
        let value = self.options.iter().find_map(|o| o.strip_prefix(name)?.strip_prefix('='));
        value.and_then(boolean::parse).unwrap_or(false)
    }
}

/// pg_class.relpersistence, and Melba's memory tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Persistence {
    Permanent,
    Unlogged,
    Temporary,
    /// `USING memory`.
    Memory,
}

/// Where a relation's rows come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Storage {
    /// Nothing stored (views, composite types, partitioned tables).
    None,
    Tree(TreeId),
    /// A system relation computed from the catalog: the name of its generator.
    System(&'static str),
    /// A sequence's counter.
    Sequence(TreeId),
    /// The long values of the table that has this tree, in chunks (`toast`).
    Toast(TreeId),
}

/// A row of pg_class with its parts.
#[derive(Clone, Debug)]
pub struct Relation {
    pub oid: Oid,
    pub name: Arc<str>,
    pub namespace: Oid,
    pub owner: Oid,
    pub kind: RelationKind,
    pub persistence: Persistence,
    /// The relation's row type (pg_type.oid); 0 for indexes and sequences.
    pub row_type: Oid,
    /// The composite type a typed table (OF) was made from.
    pub of_type: Oid,
    /// Dropped columns keep their place (`Column::dropped`).
    pub columns: Arc<[Column]>,
    pub storage: Storage,
    /// Changes when the storage is replaced (TRUNCATE, rewrites); starts as the OID.
    pub file_node: Oid,
    /// OIDs of a table's indexes, in OID order.
    pub indexes: Vec<Oid>,
    /// OIDs of a table's constraints, in OID order.
    pub constraints: Vec<Oid>,
    pub triggers: Vec<Oid>,
    /// WITH (...) options as `name=value`.
    pub options: Vec<Arc<str>>,
    pub index: Option<Arc<IndexInfo>>,
    pub sequence: Option<Arc<SequenceInfo>>,
    /// SELECT text of a view or materialized view.
    pub view_query: Option<Arc<str>>,
    /// OID of a view's `_RETURN` rule in pg_rewrite; 0 for everything else.
    pub rule: Oid,
    /// Materialized views: has been populated.
    pub populated: bool,
    pub access_method: Oid,
    pub acl: Acl,
    pub row_security: bool,
    pub force_row_security: bool,
    pub replica_identity: u8,
    /// Inheritance and partitioning.
    pub parents: Vec<Oid>,
    pub partition_key: Option<Arc<PartitionKey>>,
    pub partition_bound: Option<Arc<PartitionBound>>,
    /// Objects without which this one cannot exist (views: those of their query).
    pub depends_on: Vec<ObjectAddress>,
    /// The size that an UPDATE of pg_class has stated; `None`: the one that was counted.
    pub stated: Option<StatedSize>,
    /// pg_inherits.inhdetachpending: DETACH PARTITION CONCURRENTLY has begun, and has not ended.
    pub detach_pending: bool,
    /// Where a foreign table's rows are.
    pub foreign: Option<Arc<ForeignTable>>,
}

/// pg_class.relpages and reltuples.
#[derive(Clone, Copy, Debug)]
pub struct StatedSize {
    pub pages: i32,
    pub rows: f32,
}

/// A column (pg_attribute, pg_attrdef). Its number is its place in `Relation::columns` plus one.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: Arc<str>,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
    pub not_null: bool,
    /// Text of DEFAULT, or of the generation expression.
    pub default: Option<Arc<str>>,
    /// OID of the default in pg_attrdef; 0 without one.
    pub default_oid: Oid,
    /// The dependencies of the default (sequences above all).
    pub default_depends_on: Vec<ObjectAddress>,
    /// 0 none, 's' stored, 'v' virtual.
    pub generated: u8,
    /// 0 none, 'a' always, 'd' by default.
    pub identity: u8,
    pub dropped: bool,
    /// Value of the column in rows written before it was added.
    pub missing: Datum,
    /// TOAST strategy: 'p' plain, 'e' external, 'x' extended, 'm' main.
    pub storage: u8,
    /// 0 default, 'p' pglz, 'l' lz4, 'z' zstd, 'd' dense.
    pub compression: u8,
    pub statistics_target: Option<i16>,
    /// ALTER COLUMN ... SET (...) options as `name=value`.
    pub options: Vec<Arc<str>>,
    pub acl: Acl,
    /// Inheritance: number of parents it comes from, and whether it is (also) declared here.
    pub inherited: i16,
    pub local: bool,
    /// How values are held.
    pub kind: Kind,
}

impl Column {
    /// A column with nothing but a name and a type.
    pub fn new(name: impl Into<Arc<str>>, ty: Oid, kind: Kind) -> Column {
        Column {
            name: name.into(),
            ty,
            typmod: -1,
            collation: Oid::INVALID,
            not_null: false,
            default: None,
            default_oid: Oid::INVALID,
            default_depends_on: Vec::new(),
            generated: 0,
            identity: 0,
            dropped: false,
            missing: Datum::Null,
            storage: b'p',
            compression: 0,
            statistics_target: None,
            options: Vec::new(),
            acl: None,
            inherited: 0,
            local: true,
            kind,
        }
    }

    /// A column with the defaults of its type.
    pub fn of_type(name: impl Into<Arc<str>>, ty: &Type) -> Column {
        Column { collation: ty.collation, storage: ty.storage, ..Column::new(name, ty.oid, ty.kind) }
    }
}

/// pg_index.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    pub table: Oid,
    pub keys: Vec<IndexKey>,
    /// Column numbers of INCLUDE.
    pub include: Vec<i16>,
    pub unique: bool,
    pub primary: bool,
    pub nulls_not_distinct: bool,
    pub valid: bool,
    pub clustered: bool,
    pub replica_identity: bool,
    /// Text of WHERE.
    pub predicate: Option<Arc<str>>,
    /// The constraint that owns the index, or 0.
    pub constraint: Oid,
    /// Uniqueness is checked at the end of the statement or transaction.
    pub deferrable: bool,
}

impl Relation {
    /// Whether it is an index with entries. Those by brin have none, nor those whose values functions of users order.
    pub fn has_entries(&self) -> bool {
        let has_no_tree = self.kind == RelationKind::Index && self.storage == Storage::None;
        self.index.is_some() && self.access_method != classes::BRIN && !has_no_tree
    }
}

impl IndexInfo {
    /// Whether an index of this access method has an entry for each key of a row's values (docs/design/gin.md). That of a
    /// constraint by gist has one a row.
    pub fn is_inverted(&self, method: Oid) -> bool {
        method == classes::GIN || method == classes::GIST && !self.constraint.is_valid()
    }
}

#[derive(Clone, Debug)]
pub struct IndexKey {
    /// 1-based column number; 0: `expression`.
    pub column: i16,
    pub expression: Option<Arc<str>>,
    pub ty: Oid,
    pub collation: Oid,
    /// The collation of its column or expression: `collation` is printed only where it differs.
    pub natural_collation: Oid,
    pub opclass: Oid,
    pub descending: bool,
    pub nulls_first: bool,
}

/// pg_sequence; the counter itself is the engine's.
#[derive(Clone, Debug)]
pub struct SequenceInfo {
    pub ty: Oid,
    pub start: i64,
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cache: i64,
    pub cycle: bool,
    /// OWNED BY: table and column number.
    pub owned_by: Option<(Oid, i16)>,
    /// Owned through GENERATED AS IDENTITY rather than serial.
    pub identity: bool,
}

/// pg_type.typtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeKind {
    Base,
    Composite,
    Domain,
    Enum,
    Pseudo,
    Range,
    Multirange,
}

/// A row of pg_type with its parts.
#[derive(Clone, Debug)]
pub struct Type {
    pub oid: Oid,
    pub name: Arc<str>,
    pub namespace: Oid,
    pub owner: Oid,
    pub type_kind: TypeKind,
    /// pg_type.typcategory and typispreferred, which operator resolution uses.
    pub category: u8,
    pub preferred: bool,
    pub length: i16,
    pub by_value: bool,
    pub align: u8,
    pub storage: u8,
    pub delimiter: u8,
    /// A shell type has only a name yet.
    pub defined: bool,
    /// Element type of arrays (and of the subscriptable fixed-length types), or 0.
    pub element: Oid,
    /// The array type over this type, or 0.
    pub array: Oid,
    pub collation: Oid,
    /// Names of the I/O functions (pg_type.typinput, ...).
    pub input: Arc<str>,
    pub output: Arc<str>,
    pub receive: Arc<str>,
    pub send: Arc<str>,
    pub typmod_in: Arc<str>,
    pub typmod_out: Arc<str>,
    pub subscript: Arc<str>,
    /// Composite types: the relation that holds the columns.
    pub relation: Oid,
    pub domain: Option<Arc<DomainInfo>>,
    /// Enum labels in sort order: (oid, sort order, label).
    pub labels: Vec<(Oid, f32, Arc<str>)>,
    pub range: Option<Arc<RangeInfo>>,
    pub acl: Acl,
    /// How values are held.
    pub kind: Kind,
    /// The dependencies of a domain's default; of a user's range type, its subtype_diff function.
    pub depends_on: Vec<ObjectAddress>,
    /// Base types of users.
    pub base: Option<Arc<BaseInfo>>,
}

/// The additions of a base type of users. The names of the type's functions are those of the built-in functions that these are.
#[derive(Clone, Debug)]
pub struct BaseInfo {
    /// The built-in type that values are held, read and written as.
    pub held_as: Oid,
    pub input: Oid,
    pub output: Oid,
    /// The functions that follow may be missing.
    pub receive: Oid,
    pub send: Oid,
    pub typmod_in: Oid,
    pub typmod_out: Oid,
    pub analyze: Oid,
    /// The text of the default of columns without one.
    pub default: Option<Arc<str>>,
}

impl BaseInfo {
    pub fn functions(&self) -> [Oid; 7] {
        [self.input, self.output, self.receive, self.send, self.typmod_in, self.typmod_out, self.analyze]
    }
}

/// The additions of a domain to its base type.
#[derive(Clone, Debug)]
pub struct DomainInfo {
    pub base: Oid,
    pub typmod: i32,
    pub dimensions: i32,
    pub not_null: bool,
    pub default: Option<Arc<str>>,
    /// OIDs of the domain's check constraints.
    pub constraints: Vec<Oid>,
}

/// pg_range.
#[derive(Clone, Debug)]
pub struct RangeInfo {
    /// The range type's own OID, by which its multirange type finds it.
    pub range: Oid,
    pub subtype: Oid,
    pub multirange: Oid,
    pub collation: Oid,
    pub opclass: Oid,
    pub canonical: Arc<str>,
    pub subtype_diff: Arc<str>,
}

/// pg_proc.prokind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    Function,
    Procedure,
    Aggregate,
    Window,
}

/// A row of pg_proc.
#[derive(Clone, Debug)]
pub struct Function {
    pub oid: Oid,
    pub name: Arc<str>,
    pub namespace: Oid,
    pub owner: Oid,
    pub kind: FunctionKind,
    /// 12 internal, 13 c, 14 sql, plpgsql's.
    pub language: Oid,
    pub cost: f32,
    pub rows: f32,
    pub strict: bool,
    pub returns_set: bool,
    /// 'i' immutable, 's' stable, 'v' volatile.
    pub volatility: u8,
    /// 's' safe, 'r' restricted, 'u' unsafe.
    pub parallel: u8,
    pub security_definer: bool,
    pub leakproof: bool,
    /// Input arguments (IN, INOUT, VARIADIC).
    pub arg_types: Vec<Oid>,
    /// All arguments with their modes ('i','o','b','v','t'), when any is not IN.
    pub all_arg_types: Vec<Oid>,
    pub arg_modes: Vec<u8>,
    pub arg_names: Vec<Arc<str>>,
    /// SQL text of the last input arguments' defaults.
    pub arg_defaults: Vec<Arc<str>>,
    /// Element type of a VARIADIC last argument, or 0.
    pub variadic: Oid,
    pub return_type: Oid,
    /// Internal functions: the implementation's name, the key of `melba-functions`' registry. Others: the body.
    pub source: Arc<str>,
    /// SQL-standard body (BEGIN ATOMIC / RETURN).
    pub sql_body: Option<Arc<str>>,
    /// SET clauses as `name=value`.
    pub config: Vec<Arc<str>>,
    pub acl: Acl,
    pub depends_on: Vec<ObjectAddress>,
    /// Built-in aggregates: the row of pg_aggregate.
    pub aggregate: Option<Arc<AggregateInfo>>,
}

/// A row of pg_operator.
#[derive(Clone, Debug)]
pub struct Operator {
    pub oid: Oid,
    pub name: Arc<str>,
    pub namespace: Oid,
    pub owner: Oid,
    /// 0: prefix operator.
    pub left: Oid,
    pub right: Oid,
    pub result: Oid,
    pub function: Oid,
    pub commutator: Oid,
    pub negator: Oid,
    pub can_merge: bool,
    pub can_hash: bool,
    pub restrict: Arc<str>,
    pub join: Arc<str>,
}

/// A row of pg_cast.
#[derive(Clone, Debug)]
pub struct Cast {
    pub oid: Oid,
    pub source: Oid,
    pub target: Oid,
    /// 0 when `method` is not 'f'.
    pub function: Oid,
    /// 'e' explicit, 'a' assignment, 'i' implicit.
    pub context: u8,
    /// 'f' function, 'i' through text I/O, 'b' binary-coercible.
    pub method: u8,
    /// CREATE TYPE ... AS RANGE has made it.
    pub part_of_type: bool,
}

/// pg_constraint.contype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstraintKind {
    Check,
    ForeignKey,
    NotNull,
    PrimaryKey,
    Unique,
    Exclusion,
    Trigger,
}

/// A row of pg_constraint.
#[derive(Clone, Debug)]
pub struct Constraint {
    pub oid: Oid,
    pub name: Arc<str>,
    pub namespace: Oid,
    pub kind: ConstraintKind,
    pub deferrable: bool,
    pub initially_deferred: bool,
    pub enforced: bool,
    pub validated: bool,
    /// The table, or 0 for a domain's.
    pub relation: Oid,
    /// The domain, or 0.
    pub domain: Oid,
    /// The supporting index: the constraint's own, or a foreign key's referenced one.
    pub index: Oid,
    pub columns: Vec<i16>,
    pub foreign_key: Option<Arc<ForeignKeyInfo>>,
    /// Text of a check.
    pub expression: Option<Arc<str>>,
    /// Operators of an exclusion constraint, or of a key WITHOUT OVERLAPS, one a column.
    pub operators: Vec<Oid>,
    pub local: bool,
    pub inherited: i16,
    pub no_inherit: bool,
    /// Constraint of the parent this one was inherited from, or 0.
    pub parent: Oid,
    pub depends_on: Vec<ObjectAddress>,
    /// Of a foreign key, as pg_trigger.tgenabled of PostgreSQL's triggers on its table, and on the one that it refers to.
    pub check_enabled: u8,
    pub action_enabled: u8,
}

impl Constraint {
    /// A PRIMARY KEY or UNIQUE of ranges that do not overlap: the last column is compared by `&&`.
    pub fn is_without_overlaps(&self) -> bool {
        matches!(self.kind, ConstraintKind::PrimaryKey | ConstraintKind::Unique) && !self.operators.is_empty()
    }
}

#[derive(Clone, Debug)]
pub struct ForeignKeyInfo {
    pub referenced_table: Oid,
    pub referenced_columns: Vec<i16>,
    /// 'a' no action, 'r' restrict, 'c' cascade, 'n' set null, 'd' set default.
    pub on_update: u8,
    pub on_delete: u8,
    /// 'f' full, 'p' partial, 's' simple.
    pub match_type: u8,
    /// ON DELETE SET NULL/DEFAULT (columns); empty: all.
    pub delete_set_columns: Vec<i16>,
    /// Equality operators, one a column: referenced = referencing. Of a PERIOD it is `&&`.
    pub operators: Vec<Oid>,
}

/// A row of pg_trigger made by CREATE TRIGGER.
#[derive(Clone, Debug)]
pub struct Trigger {
    pub oid: Oid,
    pub name: Arc<str>,
    pub table: Oid,
    pub function: Oid,
    /// pg_trigger.tgtype bits.
    pub events: i16,
    pub enabled: u8,
    pub columns: Vec<i16>,
    pub arguments: Vec<Arc<str>>,
    pub when: Option<Arc<str>>,
    pub old_table: Option<Arc<str>>,
    pub new_table: Option<Arc<str>>,
    pub deferrable: bool,
    pub initially_deferred: bool,
    /// The row of pg_constraint of a CONSTRAINT TRIGGER, which is a part of it.
    pub constraint: Oid,
    /// FROM of a constraint trigger, or 0.
    pub constraint_table: Oid,
    /// The trigger of the partitioned table that this one was made for, or 0.
    pub parent: Oid,
    /// The dependencies of the condition.
    pub depends_on: Vec<ObjectAddress>,
}

#[derive(Clone, Debug)]
pub struct Collation {
    pub oid: Oid,
    pub name: Arc<str>,
    pub namespace: Oid,
    pub owner: Oid,
    /// 'd' default, 'b' builtin, 'c' libc, 'i' icu.
    pub provider: u8,
    pub deterministic: bool,
    pub locale: Option<Arc<str>>,
    /// That of the order by which its indexes were built.
    pub version: Option<Arc<str>>,
    pub collator: CollatorCell,
}

/// The order of a collation, made when it is first asked for. It is no part of the stored row.
#[derive(Clone, Debug, Default)]
pub struct CollatorCell(OnceLock<Option<Arc<Collator>>>);

impl Collation {
    /// The built-in collation that functions know this one's upper and lower case by.
    pub fn casing(&self) -> Oid {
        match self.locale.as_deref() {
            Some("C" | "POSIX") => crate::classes::C_COLLATION,
            Some("PG_UNICODE_FAST") => crate::classes::UNICODE_FAST_COLLATION,
            _ => crate::classes::DEFAULT_COLLATION,
        }
    }

    /// Its order; `None` when that is of bytes.
    pub fn collator(&self) -> Option<&Arc<Collator>> {
        let make = || Collator::new(self.locale.as_deref()?, self.deterministic).ok().map(Arc::new);
        if self.provider == b'i' { self.collator.0.get_or_init(make).as_ref() } else { None }
    }

    /// The version of its order in this binary.
    pub fn actual_version(&self) -> Option<&'static str> {
        match self.provider {
            b'i' => Some(melba_collation::VERSION),
            b'b' => Some("1"),
            _ => None,
        }
    }
}

/// A row of pg_extension. Its members are separate objects.
#[derive(Clone, Debug)]
pub struct Extension {
    pub oid: Oid,
    pub name: Arc<str>,
    pub owner: Oid,
    pub namespace: Oid,
    pub version: Arc<str>,
    pub members: Vec<ObjectAddress>,
}

#[derive(Clone, Debug)]
pub struct Description {
    pub address: ObjectAddress,
    pub text: Arc<str>,
}

/// A row of pg_authid with its memberships and settings.
#[derive(Clone, Debug)]
pub struct Role {
    pub oid: Oid,
    pub name: Arc<str>,
    pub superuser: bool,
    pub inherit: bool,
    pub create_role: bool,
    pub create_db: bool,
    pub can_login: bool,
    pub replication: bool,
    pub bypass_rls: bool,
    /// -1: no limit.
    pub connection_limit: i32,
    /// SCRAM-SHA-256 verifier.
    pub password: Option<Arc<str>>,
    /// Microseconds since 2000-01-01.
    pub valid_until: Option<i64>,
    pub member_of: Vec<Membership>,
    /// ALTER ROLE ... SET, as (database or 0, `name=value`).
    pub settings: Vec<(Oid, Arc<str>)>,
}

#[derive(Clone, Copy, Debug)]
pub struct Membership {
    pub oid: Oid,
    pub role: Oid,
    pub grantor: Oid,
    pub admin: bool,
    pub inherit: bool,
    pub set: bool,
}

#[derive(Clone, Debug)]
pub struct Database {
    pub oid: Oid,
    pub name: Arc<str>,
    pub owner: Oid,
    pub is_template: bool,
    pub allow_connections: bool,
    pub connection_limit: i32,
    pub acl: Acl,
    /// ALTER DATABASE ... SET, as `name=value`.
    pub settings: Vec<Arc<str>>,
    /// Where the database's large objects are; 0 in a cluster that was not opened yet.
    pub large_object_metadata: TreeId,
    pub large_object_data: TreeId,
}
