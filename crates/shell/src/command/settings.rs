//! Commands that change how the shell works and how results are shown.

use crate::Result;
use crate::format::{Expanded, Format};
use crate::shell::Shell;
use crate::variables::switch;
use melba_client::escape;

pub fn is_one(name: &str) -> bool {
    matches!(name, "set" | "unset" | "format" | "x" | "t" | "a" | "f" | "pset" | "timing" | "encoding")
}

fn on(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// The requested state, or the opposite of the present one.
fn switched(command: &str, argument: Option<&str>, now: bool) -> Result<bool> {
    match argument {
        None => Ok(!now),
        Some(text) => switch(text).ok_or_else(|| format!("unrecognized value \"{text}\" for \"\\{command}\": Boolean expected")),
    }
}

pub(super) fn change_setting(shell: &mut Shell, name: &str, arguments: &[&str]) -> Result<()> {
    let first = arguments.first().copied();
    match name {
        "set" => set_variable(shell, arguments),
        "unset" => {
            shell.variables.remove(first.ok_or("\\unset: missing required argument")?);
            Ok(())
        }
        "timing" => {
            shell.is_timing = switched(name, first, shell.is_timing)?;
            say(shell, &format!("Timing is {}.", on(shell.is_timing)))
        }
        "encoding" => match first {
            None => say(shell, "UTF8"),
            Some(encoding) if ["utf8", "utf-8", "unicode"].contains(&encoding.to_lowercase().as_str()) => Ok(()),
            Some(_) => Err("\\encoding: this shell reads and writes UTF8 alone".to_owned()),
        },
        "pset" => match arguments {
            [] => show_style(shell),
            [name, rest @ ..] => change_style(shell, name, rest.first().copied()),
        },
        "x" => change_style(shell, "expanded", first),
        "t" => change_style(shell, "tuples_only", first),
        "f" => change_style(shell, "fieldsep", first),
        "a" => change_style(shell, "format", Some(if shell.style.format == Format::Table { "unaligned" } else { "table" })),
        _ => change_style(shell, "format", first),
    }
}

fn say(shell: &Shell, text: &str) -> Result<()> {
    if !shell.is_quiet {
        println!("{}", escape::text(text));
    }
    Ok(())
}

fn set_variable(shell: &mut Shell, arguments: &[&str]) -> Result<()> {
    let Some((name, values)) = arguments.split_first() else {
        let mut all: Vec<_> = shell.variables.iter().collect();
        all.sort();
        all.iter().for_each(|(name, value)| println!("{} = '{}'", escape::text(name), escape::text(value)));
        return Ok(());
    };
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Err(format!("invalid variable name: \"{name}\""));
    }
    if *name == "ON_ERROR_STOP" && values.first().is_some_and(|value| switch(value).is_none()) {
        return Err(format!("unrecognized value \"{}\" for \"{name}\": Boolean expected", values[0]));
    }
    let value = if values.is_empty() && *name == "ON_ERROR_STOP" { "on".to_owned() } else { values.concat() };
    shell.variables.insert((*name).to_owned(), value);
    Ok(())
}

fn change_style(shell: &mut Shell, name: &str, value: Option<&str>) -> Result<()> {
    let style = &mut shell.style;
    match (name, value) {
        ("format", None) => {}
        ("format", Some(value)) => {
            style.format = Format::parse(value).ok_or_else(|| format!("\\pset: allowed formats are {}", Format::NAMES))?;
        }
        ("expanded" | "x", Some("auto")) => style.expanded = Expanded::Auto,
        ("expanded" | "x", value) => {
            let is_on = switched(name, value, style.expanded != Expanded::Off)?;
            style.expanded = if is_on { Expanded::On } else { Expanded::Off };
        }
        ("tuples_only" | "t", value) => style.tuples_only = switched(name, value, style.tuples_only)?,
        ("null", value) => style.null = value.unwrap_or_default().to_owned(),
        ("fieldsep", None) => {}
        ("fieldsep", Some(value)) => value.clone_into(&mut style.separator),
        ("pager", value) => shell.uses_pager = switched(name, value, shell.uses_pager)?,
        _ => return Err(format!("\\pset: unknown option: {name}")),
    }
    let words = setting_words(shell, name);
    say(shell, &words)
}

fn setting_words(shell: &Shell, name: &str) -> String {
    let style = &shell.style;
    match name {
        "format" => format!("Output format is {}.", style.format.name()),
        "expanded" | "x" => match style.expanded {
            Expanded::Auto => "Expanded display is used automatically.".to_owned(),
            expanded => format!("Expanded display is {}.", on(expanded == Expanded::On)),
        },
        "tuples_only" | "t" => format!("Tuples only is {}.", on(style.tuples_only)),
        "null" => format!("Null display is \"{}\".", style.null),
        "pager" => format!("Pager is {}.", on(shell.uses_pager)),
        _ => format!("Field separator is \"{}\".", style.separator),
    }
}

fn show_style(shell: &Shell) -> Result<()> {
    for name in ["expanded", "fieldsep", "format", "null", "pager", "tuples_only"] {
        println!("{}", escape::text(&setting_words(shell, name)));
    }
    Ok(())
}
