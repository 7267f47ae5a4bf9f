//! Windows and their frames.

use std::sync::Arc;

use melba_types::Oid;

use crate::{Expr, SortGroup};

#[derive(Clone, Debug)]
pub struct Window {
    pub name: Option<Arc<str>>,
    pub references: Option<Arc<str>>,
    pub partition_by: Vec<SortGroup>,
    pub order_by: Vec<SortGroup>,
    pub frame: WindowFrame,
}

#[derive(Clone, Debug)]
pub struct WindowFrame {
    pub mode: FrameMode,
    pub start: FrameBound,
    pub end: FrameBound,
    pub exclude: FrameExclusion,
    /// The frame was written, not defaulted.
    pub explicit: bool,
    /// RANGE with offsets: the in_range functions (start, end).
    pub in_range: (Oid, Oid),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameMode {
    Range,
    Rows,
    Groups,
}

#[derive(Clone, Debug)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Box<Expr>),
    CurrentRow,
    Following(Box<Expr>),
    UnboundedFollowing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameExclusion {
    None,
    CurrentRow,
    Group,
    Ties,
}
