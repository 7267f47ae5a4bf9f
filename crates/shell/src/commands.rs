//! The list of backslash commands.

/// Name, arguments, and what it does, for `\?` and for Tab; those without words are other names of the ones before them.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("c", "[DATABASE|URL [USER]]", "connect to another database"),
    ("connect", "", ""),
    ("conninfo", "", "where this connection goes"),
    ("copy", "TABLE FROM|TO FILE ...", "COPY with a file of this machine, or program 'COMMAND', or stdin, stdout"),
    ("d[S+]", "[PATTERN]", "tables, views and sequences, or one of them with columns, indexes, constraints"),
    ("dt[S+]", "[PATTERN]", "tables"),
    ("di[S+]", "[PATTERN]", "indexes"),
    ("dv[S+]", "[PATTERN]", "views"),
    ("dm[S+]", "[PATTERN]", "materialized views"),
    ("ds[S+]", "[PATTERN]", "sequences"),
    ("df[S+]", "[PATTERN]", "functions"),
    ("dT[S+]", "[PATTERN]", "data types"),
    ("dn[S+]", "[PATTERN]", "schemas"),
    ("du[S+]", "[PATTERN]", "roles"),
    ("dp[S]", "[PATTERN]", "privileges on tables"),
    ("dx", "[PATTERN]", "extensions"),
    ("l[+]", "[PATTERN]", "databases"),
    ("sf", "FUNCTION", "the definition of a function"),
    ("sv", "VIEW", "the definition of a view"),
    ("e", "[FILE]", "edit what is typed, or the last statement, in $EDITOR"),
    ("p", "", "show what is typed so far"),
    ("r", "", "forget it"),
    ("g", "[FILE | '|'COMMAND]", "run it, and send the result to a file or a program"),
    ("gx", "", "run it, and show a line for each value"),
    ("gexec", "", "run it, and each value of its result as a statement"),
    ("errverbose", "", "the last error with all that is known of it"),
    ("i", "FILE", "run the statements of a file"),
    ("ir", "FILE", "the same, from the folder of the file that says so"),
    ("o", "[FILE | '|'COMMAND]", "send results to a file or a program; back without one"),
    ("echo", "TEXT ...", "write text"),
    ("qecho", "TEXT ...", "write text where results go"),
    ("warn", "TEXT ...", "write text to standard error"),
    ("set", "[NAME [VALUE ...]]", "set a variable, which :NAME stands for, or show all"),
    ("unset", "NAME", "remove a variable"),
    ("format", "[FORMAT]", "how results are written: table, unaligned, csv, json, jsonlines, markdown"),
    ("x", "[on|off|auto]", "a line for each value"),
    ("t", "[on|off]", "rows only, neither head nor foot"),
    ("a", "", "aligned or not"),
    ("f", "[TEXT]", "what separates values that are not aligned"),
    ("pset", "[NAME [VALUE]]", "format, expanded, tuples_only, null, fieldsep, pager"),
    ("timing", "[on|off]", "how long statements take"),
    ("encoding", "", "the client's encoding, which is UTF8"),
    ("password", "[ROLE]", "change a password"),
    ("cd", "[FOLDER]", "change the folder"),
    ("!", "[COMMAND]", "a command of the system's shell"),
    ("q", "", "quit"),
    ("?", "", "these words"),
];

/// Without the letters that may be added.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(name, ..)| name.split('[').next().unwrap_or(name))
}

/// The output of `\?`.
pub fn help() {
    for (name, arguments, words) in COMMANDS.iter().filter(|(_, _, words)| !words.is_empty()) {
        println!("  {:<30} {words}", format!("\\{name} {arguments}"));
    }
    println!(
        "\nPatterns know * and ?, and schema.name. S: those of the system, too. +: more about them.\n\
         Statements end with a semicolon and may take several lines. Ctrl-C cancels, Ctrl-D quits, Tab completes."
    );
}
