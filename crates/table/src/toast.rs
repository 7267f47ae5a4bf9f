//! Which values of a row are compressed and which are moved out of line: PostgreSQL's algorithm (heaptoast.c), value for value.
//!
//! While a row is longer than about 2 KB, the longest EXTENDED or EXTERNAL value is compressed (EXTENDED only), and moved out of line at
//! once when it alone is too long still; then the longest ones are moved out; then MAIN ones are compressed; and when the row is
//! longer than a page, MAIN ones are moved out too.
//!
//! Invariants:
//! 1. A row's pointers are to its own table's toast tree. A pointer to another is followed and its value stored again, in its
//!    compressed form.
//! 2. Values that an update replaces are removed from the toast tree; values that it does not touch stay in place.

mod chunks;
mod former;
mod size;

use melba_catalog::{Catalog, Relation};
use melba_toast::{Method, ZSTD_LEVEL};
use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, Result, RowId, TreeId};

pub use chunks::ChunkScan;
pub use former::forget_value;
pub(super) use former::{RowFormer, forget};
use size::{ColumnShape, TUPLE_TARGET};

use melba_expression::Evaluation;

/// The table's definition of its rows' forms.
#[derive(Debug)]
pub struct ToastTarget {
    /// The toast tree.
    pub tree: TreeId,
    pub columns: Vec<ToastColumn>,
    shapes: Vec<ColumnShape>,
    /// The size to which rows are reduced.
    tuple_target: usize,
    /// Some column can hold long values.
    any: bool,
}

#[derive(Clone, Debug)]
pub struct ToastColumn {
    pub kind: Kind,
    dropped: bool,
    strategy: Strategy,
    /// `None`: default_toast_compression.
    method: Option<Method>,
    level: i32,
}

/// pg_attribute.attstorage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    Plain,
    External,
    Extended,
    Main,
}

impl ToastTarget {
    pub fn new(catalog: &Catalog, relation: &Relation, tree: TreeId) -> ToastTarget {
        let column = |c: &melba_catalog::Column| ToastColumn {
            kind: c.kind,
            dropped: c.dropped,
            strategy: match c.storage {
                _ if !c.kind.is_toastable() => Strategy::Plain,
                b'e' => Strategy::External,
                b'x' => Strategy::Extended,
                b'm' => Strategy::Main,
                _ => Strategy::Plain,
            },
            method: Method::from_letter(c.compression),
            level: option(&c.options, "compression_level").unwrap_or(ZSTD_LEVEL),
        };
        let columns: Vec<ToastColumn> = relation.columns.iter().map(column).collect();
        let shape = |c: &melba_catalog::Column| {
            let (length, align) = catalog.type_(c.ty).map_or((-1, b'i'), |t| (t.length, t.align));
            let align = match align {
                b'c' => 1,
                b's' => 2,
                b'd' => 8,
                _ => 4,
            };
            ColumnShape { length, align, packable: c.storage != b'p' }
        };
        ToastTarget {
            tree: tree.toast(),
            any: columns.iter().any(|c| c.kind.is_toastable()),
            columns,
            shapes: relation.columns.iter().map(shape).collect(),
            tuple_target: option(&relation.options, "toast_tuple_target").map_or(TUPLE_TARGET, |t: i32| t as usize),
        }
    }

    pub fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        self.columns.iter().map(|c| c.kind)
    }
}

/// Copies rows of one storage of a table into another.
pub struct RowCopier {
    tree: TreeId,
    target: ToastTarget,
    layout: RowLayout,
    former: RowFormer,
    row: Vec<u8>,
}

impl RowCopier {
    pub fn new(catalog: &Catalog, relation: &Relation, tree: TreeId) -> RowCopier {
        let target = ToastTarget::new(catalog, relation, tree);
        let layout = RowLayout::new(target.kinds().collect());
        RowCopier { tree, target, layout, former: RowFormer::default(), row: Vec::new() }
    }

    pub fn insert(&mut self, ctx: &Evaluation, row: &[Datum]) -> Result<RowId> {
        self.former.encode(ctx, &self.target, &self.layout, row, None, &mut self.row)?;
        Ok(ctx.transaction().insert(self.tree, &self.row)?)
    }
}

/// The value of a `name=value` option.
fn option(options: &[std::sync::Arc<str>], name: &str) -> Option<i32> {
    options.iter().find_map(|o| o.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}
