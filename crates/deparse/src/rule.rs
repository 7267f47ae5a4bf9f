//! CREATE RULE, as pg_get_ruledef shows it.

use melba_catalog::{Relation, RewriteRule, quote_ident, quote_literal, rule_events};

use super::{INDENT_STANDARD, Printer, condition_over};
use melba_analyze::{AnalyzedRule, Context, RuleAction, trigger_entries};
use melba_tree::{Command, Query};

/// The statement that makes a rule. The relation is named with its schema, except if `pretty` and the search path finds it.
pub fn shown_rule(cx: &Context<'_>, rule: &RewriteRule, table: &Relation, analyzed: &AnalyzedRule, pretty: bool) -> String {
    let event = match rule.event {
        rule_events::UPDATE => "UPDATE",
        rule_events::INSERT => "INSERT",
        _ => "DELETE",
    };
    let visible = pretty && cx.catalog.relation_is_visible(table, cx.search_path);
    let relation = cx.catalog.qualified(visible, table.namespace, &table.name);
    let mut out = format!("CREATE RULE {} AS\n    ON {event} TO {relation}", quote_ident(&rule.name));
    if let Some(condition) = &analyzed.condition {
        let over = Query { range_table: trigger_entries(table), ..Query::new(Command::Select) };
        out += "\n   WHERE ";
        out += &condition_over(Printer::shown(cx, pretty), condition, &over);
    }
    out += " DO ";
    if rule.instead {
        out += "INSTEAD ";
    }
    match &analyzed.actions[..] {
        [] => out += "NOTHING;",
        [one] => {
            out = shown_action(cx, one, out, pretty);
            out += ";";
        }
        several => {
            out += "(";
            for action in several {
                out = shown_action(cx, action, out, pretty);
                out += ";\n";
            }
            out += ");";
        }
    }
    out
}

/// Appends a command.
fn shown_action(cx: &Context<'_>, action: &RuleAction, out: String, pretty: bool) -> String {
    let mut printer = Printer { out, ..Printer::shown(cx, pretty) };
    match action {
        RuleAction::Query(query) => printer.query(query),
        RuleAction::Notify { channel, payload } => {
            printer.keyword("NOTIFY ", 0, INDENT_STANDARD, 1);
            printer.ident(channel);
            if let Some(payload) = payload {
                printer.put(", ");
                printer.put(&quote_literal(payload));
            }
        }
    }
    printer.out
}
