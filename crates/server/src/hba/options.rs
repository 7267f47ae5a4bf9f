//! The options of a pg_hba.conf line, `name=value`.

use super::rule::{ClientCert, ClientName, Connections, Method, MethodOptions};

/// Options of methods that this server has not, with the methods that PostgreSQL names when another is given.
const OTHERS: [(&str, &str); 26] = [
    ("pamservice", "pam"),
    ("pam_use_hostname", "pam"),
    ("ldapurl", "ldap"),
    ("ldaptls", "ldap"),
    ("ldapscheme", "ldap"),
    ("ldapserver", "ldap"),
    ("ldapport", "ldap"),
    ("ldapbinddn", "ldap"),
    ("ldapbindpasswd", "ldap"),
    ("ldapsearchattribute", "ldap"),
    ("ldapsearchfilter", "ldap"),
    ("ldapbasedn", "ldap"),
    ("ldapprefix", "ldap"),
    ("ldapsuffix", "ldap"),
    ("krb_realm", "gssapi and sspi"),
    ("include_realm", "gssapi and sspi"),
    ("compat_realm", "sspi"),
    ("upn_username", "sspi"),
    ("radiusservers", "radius"),
    ("radiusports", "radius"),
    ("radiussecrets", "radius"),
    ("radiusidentifiers", "radius"),
    ("issuer", "oauth"),
    ("scope", "oauth"),
    ("validator", "oauth"),
    ("delegate_ident_mapping", "oauth"),
];

pub(super) fn parse(text: &str, method: Method, connections: Connections, options: &mut MethodOptions) -> Result<(), String> {
    let pair = text.split_once('=');
    let (name, value) = pair.ok_or_else(|| format!("authentication option not in name=value format: {text}"))?;
    let only_for = |methods| Err(format!("authentication option \"{name}\" is only valid for authentication methods {methods}"));
    let invalid = || format!("invalid value for {name}: \"{value}\"");
    let is_tls = connections == Connections::HostSsl;
    match name {
        "map" if !matches!(method, Method::Peer | Method::Cert) => return only_for("ident, peer, gssapi, sspi, cert, and oauth"),
        "map" => options.map = Some(value.to_owned()),
        "clientcert" | "clientname" if !is_tls => return Err(format!("{name} can only be configured for \"hostssl\" rows")),
        "clientcert" => {
            options.client_cert = Some(match value {
                "verify-full" => ClientCert::VerifyFull,
                "verify-ca" if method == Method::Cert => {
                    return Err("clientcert can only be set to \"verify-full\" when using \"cert\" authentication".to_owned());
                }
                "verify-ca" => ClientCert::VerifyCa,
                _ => return Err(invalid()),
            });
        }
        "clientname" => {
            options.client_name = match value {
                "CN" => ClientName::CommonName,
                "DN" => ClientName::DistinguishedName,
                _ => return Err(invalid()),
            };
        }
        _ => match OTHERS.iter().find(|(other, _)| *other == name) {
            Some((_, methods)) => return only_for(methods),
            None => return Err(format!("unrecognized authentication option name: \"{name}\"")),
        },
    }
    Ok(())
}
