//! Variables of the shell, which replace `:name` in statements.

use std::collections::HashMap;

pub type Variables = HashMap<String, String>;

/// `on`, `off` and other words for them; `None` for anything else.
pub fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}
