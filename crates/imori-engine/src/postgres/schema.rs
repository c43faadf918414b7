//! The tables, and the row that has the version of their format.

use tokio_postgres::{Client, Error};

use super::fault::{is_lost, reason};
use crate::sql::{COLLECTIONS, StoreError, VERSION, VERSION_WITHOUT_SUMS};

/// The table of one row: the format, the bytes that the documents take, and the mark of the last commit.
const STORE_TABLE: &str = "
CREATE TABLE IF NOT EXISTS store (version bigint NOT NULL, used_bytes bigint NOT NULL, last_commit text NOT NULL);
";

/// The tables of large values, and which document uses which of them.
const LARGE_TABLES: &str = r#"
CREATE TABLE IF NOT EXISTS large_values (
    hash text COLLATE "C" PRIMARY KEY, length bigint NOT NULL, bytes bytea NOT NULL);
CREATE TABLE IF NOT EXISTS large_uses (
    collection text COLLATE "C" NOT NULL, document text COLLATE "C" NOT NULL, part text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL, PRIMARY KEY (collection, document, part));
CREATE INDEX IF NOT EXISTS large_uses_0 ON large_uses (hash);
"#;

/// Large values are compressed already. This is said once, because it waits for all readers.
const NOT_COMPRESSED: &str = "ALTER TABLE large_values ALTER COLUMN bytes SET STORAGE EXTERNAL;";

/// What the row of the store says.
#[derive(Debug)]
pub(super) struct Stored {
    /// Bytes that the documents take.
    pub(super) used_bytes: i64,
    /// The mark of the last commit.
    pub(super) last_commit: String,
}

/// Creates the tables of a new store, adds those that an older one lacks, and refuses a store of another version.
pub(super) async fn prepare(client: &Client) -> Result<Stored, StoreError> {
    match stored(client).await? {
        Some(found) => {
            // A collection that an older engine of this format did not have.
            // Documents get their checksums when they are stored again.
            let sql = format!("BEGIN;{}UPDATE store SET version = {VERSION};COMMIT;", tables());
            client.batch_execute(&sql).await.map_err(error)?;
            Ok(found)
        }
        None => {
            refuse_other_tables(client).await?;
            let row = format!("INSERT INTO store VALUES ({VERSION}, 0, '');");
            let sql = format!("BEGIN;{STORE_TABLE}{row}{}{NOT_COMPRESSED}COMMIT;", tables());
            client.batch_execute(&sql).await.map_err(error)?;
            Ok(Stored { used_bytes: 0, last_commit: String::new() })
        }
    }
}

/// Reads the row of a store; `None` if the database has no store yet.
pub(super) async fn stored(client: &Client) -> Result<Option<Stored>, StoreError> {
    let sql = "SELECT current_setting('server_encoding'), current_schema()::text, \
               to_regclass(quote_ident(current_schema()) || '.store') IS NOT NULL";
    let row = client.query_one(sql, &[]).await.map_err(error)?;
    let encoding: String = row.try_get(0).map_err(error)?;
    if encoding != "UTF8" {
        return Err(StoreError::Sql(format!(
            "the database has the encoding `{encoding}`; create one with `ENCODING 'UTF8'`"
        )));
    }
    if row.try_get::<_, Option<String>>(1).map_err(error)?.is_none() {
        return Err(StoreError::Sql(String::from(
            "the schema of the connection's `search_path` does not exist; create it",
        )));
    }
    if !row.try_get::<_, Option<bool>>(2).map_err(error)?.unwrap_or_default() {
        return Ok(None);
    }
    let sql = "SELECT version, used_bytes, last_commit FROM store";
    let row = client.query_one(sql, &[]).await.map_err(error)?;
    let version: i64 = row.try_get(0).map_err(error)?;
    if !(VERSION_WITHOUT_SUMS..=VERSION).contains(&version) {
        return Err(StoreError::Version(version));
    }
    let (used_bytes, last_commit) = (row.try_get(1).map_err(error)?, row.try_get(2).map_err(error)?);
    Ok(Some(Stored { used_bytes, last_commit }))
}

/// Refuses a schema in which another program has tables of our names.
async fn refuse_other_tables(client: &Client) -> Result<(), StoreError> {
    let names: Vec<&str> = COLLECTIONS.iter().map(|collection| collection.name).collect();
    let sql = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() AND tablename = ANY($1) \
               ORDER BY tablename LIMIT 1";
    match client.query_opt(sql, &[&names]).await.map_err(error)? {
        None => Ok(()),
        Some(row) => {
            let name: String = row.try_get(0).map_err(error)?;
            Err(StoreError::Sql(format!(
                "the database has a table `{name}` that is not the automation's; give the automation a database or a \
                 schema of its own"
            )))
        }
    }
}

fn tables() -> String {
    let mut sql = String::from(LARGE_TABLES);
    for collection in COLLECTIONS {
        let name = collection.name;
        let columns: String = collection
            .columns
            .iter()
            .map(|column| format!("\"{}\" text COLLATE \"C\", ", column.name))
            .collect();
        sql += &format!(
            "CREATE TABLE IF NOT EXISTS {name} (id text COLLATE \"C\" PRIMARY KEY, {columns}body text NOT NULL);\n"
        );
        for (number, index) in collection.indexes.iter().enumerate() {
            // Queries ask for rows without a value first, or last in the other direction.
            let columns: Vec<String> =
                index.iter().map(|column| format!("\"{column}\" NULLS FIRST")).collect();
            sql +=
                &format!("CREATE INDEX IF NOT EXISTS {name}_{number} ON {name} ({});\n", columns.join(", "));
        }
    }
    sql
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` calls")]
fn error(error: Error) -> StoreError {
    match is_lost(&error) {
        true => StoreError::Unreachable(reason(&error)),
        false => StoreError::Sql(reason(&error)),
    }
}
