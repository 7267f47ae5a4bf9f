//! A function, parsed: its variables, and statements that refer to them by number.

use std::sync::Arc;

use melba_types::Oid;

/// The type of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableType {
    pub oid: Oid,
    pub typmod: i32,
    pub collation: Oid,
    /// A row: of a composite type, or of any assigned one (`record`).
    pub is_record: bool,
}

/// A declared variable, a parameter or a loop's own variable.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: Arc<str>,
    pub ty: VariableType,
    pub constant: bool,
    pub not_null: bool,
    pub default: Option<Expression>,
    pub cursor: Option<Box<BoundCursor>>,
    /// Of its declaration, counted from 1; 0 when it has none.
    pub line: u32,
}

/// `CURSOR FOR query`, with the names of its arguments.
#[derive(Clone, Debug)]
pub struct BoundCursor {
    pub query: Expression,
    /// Numbers of the variables that hold the arguments.
    pub arguments: Vec<usize>,
    pub scroll: Scroll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    Default,
    Yes,
    No,
}

/// How a piece of SQL is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The text after an implicit SELECT, mostly one expression.
    Expression,
    /// The same, behind an assignment's target.
    Assignment,
    Statement,
}

/// A piece of SQL in a function.
#[derive(Clone, Debug)]
pub struct Expression {
    /// Unique in the function: plans are cached by it.
    pub number: usize,
    pub text: Arc<str>,
    pub form: Form,
    /// The innermost name that it sees.
    pub scope: Option<usize>,
    /// Where the text stands in the function's, in bytes.
    pub start: usize,
    /// `target :=` as messages show it, of an assignment.
    pub shown: Arc<str>,
}

/// A name that is visible from some place on.
#[derive(Clone, Debug)]
pub struct Name {
    pub name: Arc<str>,
    pub kind: NameKind,
    pub previous: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// Begins a level: of a block, a loop or the function.
    Label(LabelKind),
    Variable(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelKind {
    Block,
    Loop,
    Other,
}

/// The target of a value.
#[derive(Clone, Debug)]
pub enum Target {
    Variable(usize),
    Field {
        record: usize,
        name: Arc<str>,
    },
    /// Several targets, one a column.
    Row(Vec<Target>),
    /// A part of a variable: `variable` with the subscripts and fields behind it as text.
    Part {
        variable: usize,
        path: Arc<str>,
    },
}

/// The meaning of a name that is also a column's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    Error,
    Variable,
    Column,
}

/// A function's text, parsed.
#[derive(Debug)]
pub struct Function {
    pub variables: Vec<Variable>,
    pub names: Vec<Name>,
    pub body: PlpgsqlStatement,
    /// Pieces of SQL in it.
    pub expressions: usize,
    pub conflict: Option<Conflict>,
    pub print_strict_params: Option<bool>,
    /// Declared names that are those of outer variables, with the places of the declarations, in bytes.
    pub shadowing: Vec<(Arc<str>, usize)>,
    /// The variable FOUND.
    pub found: usize,
}

#[derive(Clone, Debug)]
pub struct PlpgsqlStatement {
    /// Counted from 1.
    pub line: u32,
    /// That of its kind.
    pub name: &'static str,
    pub kind: StatementKind,
}

impl PlpgsqlStatement {
    pub fn new(line: u32, kind: StatementKind) -> PlpgsqlStatement {
        PlpgsqlStatement { line, name: kind.name(), kind }
    }
}

#[derive(Clone, Debug)]
pub struct StatementBlock {
    pub label: Option<Arc<str>>,
    /// Variables that it declares.
    pub declares: Vec<usize>,
    pub body: Vec<PlpgsqlStatement>,
    pub exceptions: Option<Exceptions>,
}

#[derive(Clone, Debug)]
pub struct Exceptions {
    /// SQLSTATE and SQLERRM.
    pub state: usize,
    pub message: usize,
    pub handlers: Vec<Handler>,
}

#[derive(Clone, Debug)]
pub struct Handler {
    pub conditions: Vec<Condition>,
    pub body: Vec<PlpgsqlStatement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Others,
    /// A SQLSTATE, or all of a class (`..000`).
    State([u8; 5]),
}

#[derive(Clone, Debug)]
pub struct Loop {
    pub label: Option<Arc<str>>,
    pub body: Vec<PlpgsqlStatement>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Debug,
    Log,
    Info,
    Notice,
    Warning,
    Exception,
}

#[derive(Clone, Debug)]
pub struct Raise {
    pub level: Level,
    /// A condition's name or SQLSTATE, as it was written.
    pub condition: Option<Arc<str>>,
    pub message: Option<Arc<str>>,
    pub parameters: Vec<Expression>,
    pub options: Vec<(RaiseOption, Expression)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaiseOption {
    ErrorCode,
    Message,
    Detail,
    Hint,
    Column,
    Constraint,
    Datatype,
    Table,
    Schema,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagnostic {
    RowCount,
    Context,
    RoutineOid,
    ErrorContext,
    ErrorDetail,
    ErrorHint,
    ReturnedSqlstate,
    ColumnName,
    ConstraintName,
    DatatypeName,
    MessageText,
    TableName,
    SchemaName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
    Absolute,
    Relative,
}

/// FETCH and MOVE.
#[derive(Clone, Debug)]
pub struct Fetch {
    pub cursor: usize,
    pub direction: Direction,
    pub count: Count,
    /// `None`: MOVE.
    pub target: Option<Target>,
}

#[derive(Clone, Debug)]
pub enum Count {
    Rows(i64),
    All,
    Expression(Expression),
}

/// The query that OPEN opens.
#[derive(Clone, Debug)]
pub enum Opened {
    /// The variable's own query, with its arguments.
    Bound(Option<Expression>),
    Query(Expression),
    Execute {
        query: Expression,
        using: Vec<Expression>,
    },
}

/// A query over whose rows a loop runs.
#[derive(Clone, Debug)]
pub enum LoopSource {
    Query(Expression),
    Execute { query: Expression, using: Vec<Expression> },
    Cursor { cursor: usize, arguments: Option<Expression> },
}

#[derive(Clone, Debug)]
pub enum ReturnExpression {
    Nothing,
    Value(Expression),
    /// The variable unchanged.
    Variable(usize),
}

#[derive(Clone, Debug)]
pub struct Into {
    pub target: Target,
    pub strict: bool,
}

#[derive(Clone, Debug)]
pub enum StatementKind {
    Block(Box<StatementBlock>),
    Assign {
        target: Target,
        value: Expression,
    },
    If {
        branches: Vec<(Expression, Vec<PlpgsqlStatement>)>,
        otherwise: Vec<PlpgsqlStatement>,
    },
    /// `variable` holds the value with which the branches' conditions compare.
    Case {
        operand: Option<(usize, Expression)>,
        branches: Vec<(u32, Expression, Vec<PlpgsqlStatement>)>,
        otherwise: Option<Vec<PlpgsqlStatement>>,
    },
    Loop(Loop),
    While {
        condition: Expression,
        body: Loop,
    },
    ForInteger {
        variable: usize,
        lower: Expression,
        upper: Expression,
        step: Option<Expression>,
        reverse: bool,
        body: Loop,
    },
    ForRows {
        target: Target,
        source: LoopSource,
        body: Loop,
    },
    ForEach {
        target: Target,
        slice: i32,
        array: Expression,
        body: Loop,
    },
    Exit {
        is_continue: bool,
        label: Option<Arc<str>>,
        condition: Option<Expression>,
    },
    Return(ReturnExpression),
    ReturnNext(ReturnExpression),
    ReturnQuery(LoopSource),
    Raise(Box<Raise>),
    Assert {
        condition: Expression,
        message: Option<Expression>,
    },
    Sql {
        query: Expression,
        into: Option<Into>,
    },
    Execute {
        query: Expression,
        into: Option<Into>,
        using: Vec<Expression>,
    },
    Perform(Expression),
    Call {
        call: Expression,
        is_call: bool,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    GetDiagnostics {
        stacked: bool,
        items: Vec<(Target, Diagnostic)>,
    },
    Open {
        cursor: usize,
        opened: Opened,
        scroll: Scroll,
    },
    Fetch(Box<Fetch>),
    Close(usize),
    Null,
}

impl StatementKind {
    /// The statement's name in an error's context.
    pub fn name(&self) -> &'static str {
        match self {
            StatementKind::Block(_) => "statement block",
            StatementKind::Assign { .. } => "assignment",
            StatementKind::If { .. } => "IF",
            StatementKind::Case { .. } => "CASE",
            StatementKind::Loop(_) => "LOOP",
            StatementKind::While { .. } => "WHILE",
            StatementKind::ForInteger { .. } => "FOR with integer loop variable",
            StatementKind::ForRows { source, .. } => match source {
                LoopSource::Query(_) => "FOR over SELECT rows",
                LoopSource::Execute { .. } => "FOR over EXECUTE statement",
                LoopSource::Cursor { .. } => "FOR over cursor",
            },
            StatementKind::ForEach { .. } => "FOREACH over array",
            StatementKind::Exit { is_continue: false, .. } => "EXIT",
            StatementKind::Exit { .. } => "CONTINUE",
            StatementKind::Return(_) => "RETURN",
            StatementKind::ReturnNext(_) => "RETURN NEXT",
            StatementKind::ReturnQuery(_) => "RETURN QUERY",
            StatementKind::Raise(_) => "RAISE",
            StatementKind::Assert { .. } => "ASSERT",
            StatementKind::Sql { .. } => "SQL statement",
            StatementKind::Execute { .. } => "EXECUTE",
            StatementKind::Perform(_) => "PERFORM",
            StatementKind::Call { is_call: true, .. } => "CALL",
            StatementKind::Call { .. } => "DO",
            StatementKind::Commit { .. } => "COMMIT",
            StatementKind::Rollback { .. } => "ROLLBACK",
            StatementKind::GetDiagnostics { stacked: true, .. } => "GET STACKED DIAGNOSTICS",
            StatementKind::GetDiagnostics { .. } => "GET DIAGNOSTICS",
            StatementKind::Open { .. } => "OPEN",
            StatementKind::Fetch(fetch) if fetch.target.is_none() => "MOVE",
            StatementKind::Fetch(_) => "FETCH",
            StatementKind::Close(_) => "CLOSE",
            StatementKind::Null => "NULL",
        }
    }
}

/// The meaning of names at a place of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub variable: usize,
    /// How many of the names the variable took: the one behind them is a field's.
    pub names_used: usize,
}

/// The meaning of the first of `parts`, looked up from `scope` outwards; `local`: in the innermost level only.
pub fn resolve(names: &[Name], variables: &[Variable], scope: Option<usize>, parts: &[&str], local: bool) -> Option<Resolved> {
    let mut at = scope;
    while at.is_some() {
        // The level's names, and the label where it begins.
        let level = at;
        let mut label = None;
        let fits = |variable: usize, used: usize| parts.len() == used || variables[variable].ty.is_record;
        while let Some(i) = at {
            let item = &names[i];
            at = item.previous;
            match item.kind {
                NameKind::Label(_) => {
                    label = Some(&item.name);
                    break;
                }
                NameKind::Variable(variable) if *item.name == *parts[0] && fits(variable, 1) => {
                    return Some(Resolved { variable, names_used: 1 });
                }
                NameKind::Variable(_) => {}
            }
        }
        if local {
            return None;
        }
        if let (Some(label), [first, second, ..]) = (label, parts)
            && **label == **first
        {
            let mut at = level;
            while let Some(i) = at {
                let item = &names[i];
                match item.kind {
                    NameKind::Label(_) => break,
                    NameKind::Variable(variable) if *item.name == **second && fits(variable, 2) => {
                        return Some(Resolved { variable, names_used: 2 });
                    }
                    NameKind::Variable(_) => {}
                }
                at = item.previous;
            }
        }
    }
    None
}
