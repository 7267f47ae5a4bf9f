//! The page: files of the binary, served to everybody who may reach the port. They hold no data.

use melba_http::Response;

/// Path, media type, content.
type Asset = (&'static str, &'static str, &'static str);

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! script {
    ($name:literal) => {
        (concat!("/", $name), SCRIPT, include_str!(concat!("../assets/", $name)))
    };
}

const ASSETS: &[Asset] = &[
    ("/", "text/html; charset=utf-8", include_str!("../assets/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("../assets/style.css")),
    ("/icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
    script!("main.js"),
    script!("interface.js"),
    script!("dom.js"),
    script!("sql.js"),
    script!("grid.js"),
    script!("editor.js"),
    script!("chart.js"),
    script!("overview.js"),
    script!("tables.js"),
    script!("plan.js"),
    script!("statements.js"),
    script!("activity.js"),
    script!("schema.js"),
    script!("plot.js"),
    script!("complete.js"),
    script!("import.js"),
    script!("reports.js"),
];

/// Scripts, styles and data come from here and nowhere else, and nothing is inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

pub fn find(path: &str) -> Option<Response> {
    let (_, kind, content) = ASSETS.iter().find(|(known, ..)| *known == path)?;
    Some(Response::new(200, kind, content.as_bytes()))
}

/// With the headers that bind the browser; they stand in every answer.
pub fn guarded(response: Response) -> Response {
    response
        .with_header("Content-Security-Policy", POLICY)
        .with_header("Referrer-Policy", "no-referrer")
        .with_header("Cross-Origin-Opener-Policy", "same-origin")
        .with_header("Cross-Origin-Resource-Policy", "same-origin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_nothing_inline() {
        for (path, _, content) in ASSETS {
            assert!(!content.contains("innerHTML") && !content.contains("outerHTML"), "{path} writes markup");
            assert!(!content.contains("insertAdjacentHTML") && !content.contains("document.write"), "{path} writes markup");
            assert!(!content.contains("eval(") && !content.contains("new Function"), "{path} makes scripts of text");
            let elsewhere = content.replace("http://www.w3.org/", "");
            assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"), "{path} names another server");
        }
        let (_, _, page) = ASSETS[0];
        assert!(!page.contains("style=") && !page.contains("onclick") && !page.contains("<style"), "the policy forbids it");
        assert_eq!(page.matches("<script").count(), page.matches("<script type=\"module\" src=").count());
    }

    #[test]
    fn every_imported_module_is_served() {
        for (path, _, content) in ASSETS.iter().filter(|(_, kind, _)| *kind == SCRIPT) {
            for line in content.lines().filter(|line| line.starts_with("import ")) {
                let name = line.split('"').nth(1).expect("a module in quotes").trim_start_matches('.');
                assert!(ASSETS.iter().any(|(known, ..)| *known == name), "{path} imports {name}");
            }
        }
    }
}
