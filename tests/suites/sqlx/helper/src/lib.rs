//! sqlx's tests use a crate that is in no registry: connections to the server under test, and tests that a value goes to the
//! server and comes back. DATABASE_URL names the server.

use std::future::Future;

use sqlx::pool::PoolOptions;
use sqlx::{Connection, Database, Pool};

#[doc(hidden)]
pub use paste;

/// Here nothing needs to be set up.
pub fn setup_if_needed() {}

fn server() -> anyhow::Result<String> {
    Ok(std::env::var("DATABASE_URL")?)
}

pub async fn new<DB: Database>() -> anyhow::Result<DB::Connection> {
    Ok(DB::Connection::connect(&server()?).await?)
}

pub async fn pool<DB: Database>() -> anyhow::Result<Pool<DB>> {
    Ok(PoolOptions::new().min_connections(0).max_connections(5).connect(&server()?).await?)
}

#[doc(hidden)]
pub fn block_on<T>(test: impl Future<Output = anyhow::Result<T>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(test).expect("a test that passes");
}

/// `test_type!(name<Type>(Database, "expression" == value, ...))`: the expression read as text and in binary gives the value,
/// and the value, sent as a parameter, is equal to the expression for the server and comes back. After `~=` (geometric types)
/// and `@=` (arrays of them) equal means the same text, for these types have no `=` of that meaning, and no form as text is read.
#[macro_export]
macro_rules! test_type {
    ($name:ident($db:ident, $($rest:tt)+)) => { $crate::test_type!($name<$name>($db, $($rest)+)); };
    ($name:ident<$ty:ty>($db:ident, $sql:literal, $($text:literal == $value:expr),+ $(,)?)) => {
        $crate::sent_type!($name<$ty>($sql, $($text == $value),+));
        $crate::read_type!(text, $name<$ty>($($text == $value),+));
    };
    ($name:ident<$ty:ty>($db:ident, $($text:literal == $value:expr),+ $(,)?)) => {
        $crate::sent_type!($name<$ty>("select ({0} is not distinct from $1)::int4, {0}, $2", $($text == $value),+));
        $crate::read_type!(text, $name<$ty>($($text == $value),+));
    };
    ($name:ident<$ty:ty>($db:ident, $($text:literal ~= $value:expr),+ $(,)?)) => {
        $crate::sent_type!($name<$ty>("select (({0})::text = ($1)::text)::int4, {0}, $2", $($text == $value),+));
    };
    ($name:ident<$ty:ty>($db:ident, $($text:literal @= $value:expr),+ $(,)?)) => {
        $crate::sent_type!($name<$ty>("select (({0})::text = ($1)::text)::int4, {0}, $2", $($text == $value),+));
    };
}

/// As [`test_type`], without reading text.
#[macro_export]
macro_rules! test_prepared_type {
    ($name:ident($db:ident, $($rest:tt)+)) => { $crate::test_prepared_type!($name<$name>($db, $($rest)+)); };
    ($name:ident<$ty:ty>($db:ident, $sql:literal, $($text:literal == $value:expr),+ $(,)?)) => {
        $crate::sent_type!($name<$ty>($sql, $($text == $value),+));
    };
    ($name:ident<$ty:ty>($db:ident, $($text:literal == $value:expr),+ $(,)?)) => {
        $crate::sent_type!($name<$ty>("select ({0} is not distinct from $1)::int4, {0}, $2", $($text == $value),+));
    };
}

/// As [`test_type`], without sending.
#[macro_export]
macro_rules! test_decode_type {
    ($name:ident($db:ident, $($rest:tt)+)) => { $crate::test_decode_type!($name<$name>($db, $($rest)+)); };
    ($name:ident<$ty:ty>($db:ident, $($text:literal == $value:expr),+ $(,)?)) => {
        $crate::read_type!(binary, $name<$ty>($($text == $value),+));
        $crate::read_type!(text, $name<$ty>($($text == $value),+));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! sent_type {
    ($name:ident<$ty:ty>($sql:expr, $($text:literal == $value:expr),+)) => { $crate::paste::paste! {
        #[test]
        fn [<sent_ $name>]() {
            $crate::block_on(async {
                let mut connection = $crate::new::<sqlx::Postgres>().await?;
                $({
                    let query = format!($sql, $text);
                    let row = sqlx::query(&query).bind($value).bind($value).fetch_one(&mut connection).await?;
                    let equal: i32 = sqlx::Row::try_get(&row, 0)?;
                    assert_eq!(equal, 1, "{query}");
                    let read: $ty = sqlx::Row::try_get(&row, 1)?;
                    assert_eq!($value, read, "{query}");
                    let returned: $ty = sqlx::Row::try_get(&row, 2)?;
                    assert_eq!($value, returned, "{query}");
                })+
                Ok(())
            });
        }
    } };
}

#[doc(hidden)]
#[macro_export]
macro_rules! read_type {
    (text, $name:ident<$ty:ty>($($text:literal == $value:expr),+)) => { $crate::paste::paste! {
        #[test]
        fn [<read_text_ $name>]() {
            $crate::block_on(async {
                let mut connection = $crate::new::<sqlx::Postgres>().await?;
                $({
                    let query = concat!("select ", $text);
                    let row = sqlx::Executor::fetch_one(&mut connection, query).await?;
                    let read: $ty = sqlx::Row::try_get(&row, 0)?;
                    assert_eq!($value, read, "{query}");
                })+
                Ok(())
            });
        }
    } };
    (binary, $name:ident<$ty:ty>($($text:literal == $value:expr),+)) => { $crate::paste::paste! {
        #[test]
        fn [<read_binary_ $name>]() {
            $crate::block_on(async {
                let mut connection = $crate::new::<sqlx::Postgres>().await?;
                $({
                    let query = concat!("select ", $text);
                    let row = sqlx::query(query).fetch_one(&mut connection).await?;
                    let read: $ty = sqlx::Row::try_get(&row, 0)?;
                    assert_eq!($value, read, "{query}");
                })+
                Ok(())
            });
        }
    } };
}
