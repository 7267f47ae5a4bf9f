//! Finds the rule for a client. Pure code: the system's knowledge of hosts and networks comes from a `Network`.

use std::cell::OnceCell;
use std::net::IpAddr;

use super::pattern;
use super::rule::{Address, Connections, Rule};
use super::tokenizer::Token;

/// The system's knowledge of hosts.
pub(crate) trait Network {
    /// The name of an address.
    fn name_of(&self, address: IpAddr) -> Option<String>;
    /// The addresses of a name.
    fn addresses_of(&self, name: &str) -> Vec<IpAddr>;
    /// This machine's own addresses, each with the mask of its network.
    fn interfaces(&self) -> Vec<(IpAddr, IpAddr)>;
}

/// A client that wants to be let in.
pub(crate) struct Applicant<'a> {
    /// `None`: it has come by a Unix-domain socket.
    pub address: Option<IpAddr>,
    pub is_encrypted: bool,
    pub database: &'a str,
    pub user: &'a str,
    /// Whether the user's role is one or a member of one, superusers by membership alone. False when there is no such role.
    pub is_member_of: &'a dyn Fn(&str) -> bool,
    pub network: &'a dyn Network,
}

/// The first rule for this client.
pub(crate) fn find<'r>(rules: &'r [Rule], applicant: &Applicant<'_>) -> Option<&'r Rule> {
    // Resolved once, for any number of rules.
    let name = OnceCell::new();
    rules.iter().find(|rule| {
        is_kind(rule, applicant)
            && applicant.address.is_none_or(|address| is_address(&rule.address, address, applicant.network, &name))
            && rule.databases.iter().any(|token| is_database(token, applicant))
            && rule.users.iter().any(|token| is_role(token, applicant.user, applicant.is_member_of))
    })
}

fn is_kind(rule: &Rule, applicant: &Applicant<'_>) -> bool {
    match rule.connections {
        Connections::Local => applicant.address.is_none(),
        Connections::Host | Connections::HostNoGss => applicant.address.is_some(),
        Connections::HostSsl => applicant.address.is_some() && applicant.is_encrypted,
        Connections::HostNoSsl => applicant.address.is_some() && !applicant.is_encrypted,
        Connections::HostGss => false,
    }
}

fn is_address(wanted: &Address, address: IpAddr, network: &dyn Network, name: &OnceCell<Option<String>>) -> bool {
    let interfaces = || network.interfaces();
    match wanted {
        Address::All => true,
        Address::Network { address: of, mask } => is_within(address, *of, *mask),
        Address::SameHost => interfaces().iter().any(|(own, _)| *own == address),
        Address::SameNet => interfaces().iter().any(|(own, mask)| is_within(address, *own, *mask)),
        Address::Name(wanted) => {
            // A name counts if the address has it, and it has the address: the owner of an address may give it any name.
            let name = name.get_or_init(|| {
                let name = network.name_of(address)?;
                network.addresses_of(&name).contains(&address).then_some(name)
            });
            name.as_ref().is_some_and(|name| is_name(wanted, name))
        }
    }
}

/// Whether they agree in all bits of the mask.
fn is_within(address: IpAddr, network: IpAddr, mask: IpAddr) -> bool {
    match (address, network, mask) {
        (IpAddr::V4(a), IpAddr::V4(b), IpAddr::V4(mask)) => (a.to_bits() ^ b.to_bits()) & mask.to_bits() == 0,
        (IpAddr::V6(a), IpAddr::V6(b), IpAddr::V6(mask)) => (a.to_bits() ^ b.to_bits()) & mask.to_bits() == 0,
        _ => false,
    }
}

fn is_name(wanted: &str, name: &str) -> bool {
    let start = match wanted.starts_with('.') {
        true => name.len().checked_sub(wanted.len()),
        false => Some(0),
    };
    start.and_then(|start| name.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(wanted))
}

fn is_database(token: &Token, applicant: &Applicant<'_>) -> bool {
    let Applicant { database, user, is_member_of, .. } = applicant;
    if token.is_keyword("all") {
        return true;
    }
    if token.is_keyword("sameuser") {
        return database == user;
    }
    if token.is_keyword("samerole") || token.is_keyword("samegroup") {
        return is_member_of(database);
    }
    // Connections for replication are refused before this.
    if token.is_keyword("replication") {
        return false;
    }
    match token.pattern() {
        Some(pattern) => pattern::matches(pattern, database),
        None => token.text == *database,
    }
}

/// Whether a token of users matches this role.
pub(super) fn is_role(token: &Token, role: &str, is_member_of: &dyn Fn(&str) -> bool) -> bool {
    if let Some(group) = token.group() {
        return is_member_of(group);
    }
    if token.is_keyword("all") {
        return true;
    }
    match token.pattern() {
        Some(pattern) => pattern::matches(pattern, role),
        None => token.text == role,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::rule;
    use super::*;

    struct Known;

    impl Network for Known {
        fn name_of(&self, address: IpAddr) -> Option<String> {
            match address.to_string().as_str() {
                "10.0.0.1" => Some("One.Example.org".to_owned()),
                // Says that it is another.
                "10.0.0.9" => Some("one.example.org".to_owned()),
                _ => None,
            }
        }

        fn addresses_of(&self, name: &str) -> Vec<IpAddr> {
            let known = name.eq_ignore_ascii_case("one.example.org");
            known.then(|| "10.0.0.1".parse().expect("an address")).into_iter().collect()
        }

        fn interfaces(&self) -> Vec<(IpAddr, IpAddr)> {
            let ip = |text: &str| text.parse().expect("an address");
            vec![(ip("127.0.0.1"), ip("255.0.0.0")), (ip("192.168.7.4"), ip("255.255.255.0")), (ip("::1"), ip("::ffff"))]
        }
    }

    /// Whether the rule is for ann (a member of staff) from an address, `local` being a socket and `tls:` TLS.
    fn is_for(text: &str, from: &str, database: &str) -> bool {
        let (address, is_encrypted) = match from.strip_prefix("tls:") {
            Some(address) => (address, true),
            None => (from, false),
        };
        let applicant = Applicant {
            address: (address != "local").then(|| address.parse().expect("an address")),
            is_encrypted,
            database,
            user: "ann",
            is_member_of: &|group| matches!(group, "ann" | "staff"),
            network: &Known,
        };
        find(&[rule(text)], &applicant).is_some()
    }

    #[test]
    fn kinds_of_connections_are_told_apart() {
        for (kind, local, plain, tls) in [
            ("local all all trust", true, false, false),
            ("host all all all trust", false, true, true),
            ("hostssl all all all trust", false, false, true),
            ("hostnossl all all all trust", false, true, false),
            ("hostgssenc all all all trust", false, false, false),
            ("hostnogssenc all all all trust", false, true, true),
        ] {
            let got = ["local", "10.0.0.1", "tls:10.0.0.1"].map(|from| is_for(kind, from, "db"));
            assert_eq!(got, [local, plain, tls], "{kind}");
        }
    }

    #[test]
    fn addresses_are_compared_under_their_mask() {
        for (address, from, expected) in [
            ("10.0.0.0/8", "10.200.1.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.1 255.255.255.255", "10.0.0.1", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "::1", true),
            ("samehost", "192.168.7.4", true),
            ("samehost", "192.168.7.5", false),
            ("samenet", "192.168.7.5", true),
            ("samenet", "192.168.8.5", false),
            ("one.example.org", "10.0.0.1", true),
            ("one.example.org", "10.0.0.9", false),
            (".EXAMPLE.org", "10.0.0.1", true),
            (".ample.org", "10.0.0.1", false),
            ("example.org", "10.0.0.1", false),
            ("one.example.org", "10.0.0.2", false),
        ] {
            assert_eq!(is_for(&format!("host all all {address} trust"), from, "db"), expected, "{address} {from}");
        }
    }

    #[test]
    fn databases_and_users_are_names_keywords_groups_and_expressions() {
        for (names, database, expected) in [
            ("all all", "db", true),
            ("\"all\" all", "db", false),
            ("a,db ann", "db", true),
            ("sameuser all", "ann", true),
            ("sameuser all", "db", false),
            ("samerole all", "staff", true),
            ("samegroup all", "db", false),
            ("replication all", "db", false),
            ("replication all", "replication", false),
            ("\"replication\" all", "replication", true),
            ("/^d all", "db", true),
            ("/^b all", "db", false),
            ("all +staff", "db", true),
            ("all +root", "db", false),
            ("all \"+staff\"", "db", false),
            ("all /^a.n$", "db", true),
            ("all bob", "db", false),
            ("all ANN", "db", false),
        ] {
            assert_eq!(is_for(&format!("local {names} trust"), "local", database), expected, "{names} {database}");
        }
    }

    #[test]
    fn the_first_rule_counts() {
        let rules = ["local all bob reject", "local all ann md5", "local all all trust"].map(rule);
        let applicant = Applicant {
            address: None,
            is_encrypted: false,
            database: "db",
            user: "ann",
            is_member_of: &|_| false,
            network: &Known,
        };
        assert_eq!(find(&rules, &applicant).map(|rule| rule.method.name()), Some("md5"));
        assert!(find(&rules[..1], &applicant).is_none());
    }
}
