//! Prints the built-in views as CREATE VIEW statements in schema `ours`, for `seed/check_views.sh`.

use melba_catalog::Catalog;

fn main() {
    let catalog = Catalog::default();
    for relation in catalog.relations() {
        if let (Some(query), Some(namespace)) = (&relation.view_query, catalog.namespace(relation.namespace)) {
            println!("CREATE VIEW ours.\"{}.{}\" AS {query};", namespace.name, relation.name);
        }
    }
}
