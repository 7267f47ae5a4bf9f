//! Who may speak to the console: the rules that hold for every request before a session is looked at.
//!
//! 1. The `Host` is the address that the console listens on, or a name given to it: a page of another name whose address was
//!    changed to this one (DNS rebinding) is refused.
//! 2. A request that changes anything is a POST with the `Origin` of the console, which a page of another origin cannot send, and
//!    with the token of its session in a header of its own, which a form cannot send.

use std::net::SocketAddr;

use melba_http::Request;

/// The header with the token of a session.
pub const TOKEN_HEADER: &str = "X-Melba-Token";

/// Names under which browsers reach the console.
#[derive(Clone, Debug)]
pub struct Names {
    /// `HOST:PORT` as they stand in a URL.
    hosts: Vec<String>,
    /// As browsers send them: `http://HOST:PORT`.
    origins: Vec<String>,
}

impl Names {
    /// `others`: origins of proxies in front of the console, `https://db.example.com`.
    ///
    /// # Errors
    /// A text that is no origin.
    pub fn new(address: SocketAddr, others: &[String]) -> Result<Names, String> {
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() {
            hosts.push(format!("localhost:{}", address.port()));
        }
        let mut origins: Vec<String> = hosts.iter().map(|host| format!("http://{host}")).collect();
        for origin in others {
            let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
            let host = host.filter(|host| !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']));
            let host = host.ok_or_else(|| format!("\"{origin}\" is no origin: write https://HOST or https://HOST:PORT"))?;
            hosts.push(host.to_ascii_lowercase());
            origins.push(origin.to_ascii_lowercase());
        }
        Ok(Names { hosts, origins })
    }

    pub fn is_addressed(&self, request: &Request) -> bool {
        request.header("host").is_some_and(|host| self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host)))
    }

    /// Whether a page of the console itself sent it.
    pub fn is_of_own_page(&self, request: &Request) -> bool {
        request.header("origin").is_some_and(|origin| self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin)))
    }
}

/// The value of a cookie.
pub fn cookie<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let pairs = request.header("cookie")?.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.into_iter().find(|(n, _)| *n == name).map(|(_, value)| value)
}
