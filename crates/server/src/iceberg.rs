//! The read side of Iceberg's REST catalog, below `/iceberg` of the port for metrics: a warehouse for each publication, a namespace for each
//! schema. Its tables are those of the publication's last snapshot, all of one commit.
//!
//! `GET /v1/config`, and below `/v1/PREFIX`, where PREFIX are the OIDs of the database and the publication: `namespaces`, `namespaces/N`,
//! `namespaces/N/tables` and `namespaces/N/tables/T`. Nothing can be changed.

use std::sync::Arc;

use melba_catalog::publications::publications;
use melba_catalog::{Catalog, Publication};
use melba_http::{Request, Response};
use melba_iceberg::{Published, PublishedTable};
use melba_statement::context::Instance;
use melba_types::{DbError, SqlState};

/// What the clients may ask for.
const ENDPOINTS: [&str; 6] = [
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
];

/// An error of the specification: status, type, message.
struct RestError(u16, &'static str, String);

impl From<DbError> for RestError {
    fn from(error: DbError) -> RestError {
        match error.sqlstate() {
            SqlState::INSUFFICIENT_PRIVILEGE => RestError(403, "ForbiddenException", error.message().to_owned()),
            _ => RestError(503, "ServiceUnavailableException", error.message().to_owned()),
        }
    }
}

type Answer = Result<serde_json::Value, RestError>;

/// The answer to a request whose path begins with `/iceberg`.
pub fn answer(instance: &Arc<Instance>, request: &Request) -> Response {
    let path = request.path.strip_prefix("/iceberg").unwrap_or_default();
    match find(instance, path, &request.query) {
        // A question that only asks whether something is there.
        Ok(_) if request.method == "HEAD" => json(204, &serde_json::Value::Null),
        Ok(found) => json(200, &found),
        Err(RestError(status, kind, message)) => {
            json(status, &serde_json::json!({"error": {"message": message, "type": kind, "code": status}}))
        }
    }
}

fn json(status: u16, value: &serde_json::Value) -> Response {
    let body = if status == 204 { Vec::new() } else { value.to_string().into_bytes() };
    Response::new(status, "application/json", body)
}

fn find(instance: &Arc<Instance>, path: &str, query: &str) -> Answer {
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts[..] {
        ["v1", "config"] => config(instance, query),
        ["v1", prefix, "namespaces"] => {
            let published = published(instance, prefix)?;
            let mut schemas: Vec<&str> = tables(&published).map(|t| t.schema.as_str()).collect();
            schemas.sort_unstable();
            schemas.dedup();
            // Namespaces have none below them.
            let below = parameter(query, "parent").is_some_and(|parent| !parent.is_empty());
            let names: Vec<[&str; 1]> = schemas.into_iter().filter(|_| !below).map(|schema| [schema]).collect();
            Ok(serde_json::json!({"namespaces": names}))
        }
        ["v1", prefix, "namespaces", schema] => {
            namespace(&published(instance, prefix)?, schema)?;
            Ok(serde_json::json!({"namespace": [schema], "properties": {}}))
        }
        ["v1", prefix, "namespaces", schema, "tables"] => {
            let published = published(instance, prefix)?;
            namespace(&published, schema)?;
            let of = tables(&published).filter(|t| t.schema == schema);
            let names: Vec<_> = of.map(|t| serde_json::json!({"namespace": [schema], "name": t.name})).collect();
            Ok(serde_json::json!({"identifiers": names}))
        }
        ["v1", prefix, "namespaces", schema, "tables", name] => {
            let published = published(instance, prefix)?;
            let found = tables(&published).find(|t| t.schema == schema && t.name == name);
            let missing = || RestError(404, "NoSuchTableException", format!("Table does not exist: {schema}.{name}"));
            let found = found.ok_or_else(missing)?;
            let metadata = published.metadata(found)?.ok_or_else(missing)?;
            Ok(serde_json::json!({"metadata-location": found.metadata, "metadata": metadata, "config": {}}))
        }
        ["v1", _, "namespaces", schema, "views", ..] => {
            Err(RestError(404, "NoSuchViewException", format!("There are no views in {schema}")))
        }
        _ => Err(RestError(404, "NoSuchEndpointException", format!("There is nothing at {path}"))),
    }
}

fn config(instance: &Instance, query: &str) -> Answer {
    let warehouse = parameter(query, "warehouse").filter(|name| !name.is_empty());
    let catalogs = instance.cluster.catalogs();
    let all = catalogs.databases().flat_map(|c| publications(c).map(move |p| (c, p)));
    let all: Vec<(&Arc<Catalog>, &Arc<Publication>)> = all.filter(|(_, p)| p.option("format") == Some("iceberg")).collect();
    let is_named = |catalog: &Catalog, publication: &Publication, name: &str| {
        let database = catalog.database(catalog.database_oid()).map_or("", |d| &d.name);
        *publication.name == *name || format!("{database}/{}", publication.name) == name
    };
    let found: Vec<_> = all.into_iter().filter(|(c, p)| warehouse.as_deref().is_none_or(|name| is_named(c, p, name))).collect();
    match found[..] {
        [(catalog, publication)] => Ok(serde_json::json!({
            "defaults": {}, "endpoints": ENDPOINTS,
            "overrides": {"prefix": format!("{}.{}", catalog.database_oid(), publication.oid)}
        })),
        [] => Err(RestError(404, "NoSuchWarehouseException", "There is no such publication with the format iceberg".to_owned())),
        _ => Err(RestError(
            400,
            "BadRequestException",
            "There are several publications: set warehouse to PUBLICATION or DATABASE/PUBLICATION".to_owned(),
        )),
    }
}

/// The folder of the publication that a prefix names.
fn published(instance: &Instance, prefix: &str) -> Result<Published, RestError> {
    let missing = || RestError(404, "NoSuchWarehouseException", format!("There is no publication {prefix}"));
    let (database, oid) = prefix.split_once('.').ok_or_else(missing)?;
    let catalogs = instance.cluster.catalogs();
    let catalog = catalogs.databases().find(|c| c.database_oid().to_string() == database).ok_or_else(missing)?;
    let publication = publications(catalog).find(|p| p.oid.to_string() == oid).ok_or_else(missing)?;
    let location = publication.option("location").ok_or_else(missing)?;
    let published = Published::find(location)?;
    published.ok_or_else(|| RestError(503, "ServiceUnavailableException", "Nothing has been published yet".to_owned()))
}

/// Those that have a snapshot.
fn tables(published: &Published) -> impl Iterator<Item = &PublishedTable> {
    published.tables.iter().filter(|t| t.is_published && t.metadata.is_some())
}

fn namespace(published: &Published, schema: &str) -> Result<(), RestError> {
    match tables(published).any(|t| t.schema == schema) {
        true => Ok(()),
        false => Err(RestError(404, "NoSuchNamespaceException", format!("Namespace does not exist: {schema}"))),
    }
}

/// A parameter of a query, decoded.
fn parameter(query: &str, name: &str) -> Option<String> {
    query
        .split('&')
        .find_map(|pair| pair.split_once('=').filter(|(n, _)| *n == name))
        .map(|(_, value)| decoded(&value.replace('+', " ")))
}

/// Text whose `%XX` are bytes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (first, code) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_urls_are_decoded() {
        assert_eq!(
            (decoded("a%20b%C3%A4"), decoded("100%"), decoded("%zz")),
            ("a bä".to_owned(), "100%".to_owned(), "%zz".to_owned())
        );
        assert_eq!(parameter("a=1&warehouse=x%2Fy+z", "warehouse").as_deref(), Some("x/y z"));
    }
}
