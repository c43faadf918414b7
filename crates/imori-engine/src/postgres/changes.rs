//! Changes of documents, sent to the server within a savepoint of the current SQL transaction.

use std::collections::HashSet;

use imori_automation::value::{Map, Value};
use tokio_postgres::{Client, Row};

use super::field::encode;
use super::pipeline::{Step, run};
use super::session::Session;
use crate::limits::SERVER_DOCUMENT_BYTES;
use crate::sql::{Change, Collection, Committed, Field, Split, StoreError, Transaction};

/// The changes of one transaction on their way.
struct Changes<'a> {
    session: &'a Session,
    client: &'a Client,
    steps: Vec<Step<'a>>,
    /// What each of the steps is for.
    roles: Vec<Role<'a>>,
    /// A condition does not hold; nothing more is sent.
    is_void: bool,
    /// Documents that were stored and were not there.
    stored: usize,
    /// Large values that a document does not use any more.
    freed: Vec<String>,
    /// Bytes by which the documents have grown.
    grown: i64,
}

/// What the result of a step says.
enum Role<'a> {
    /// Nothing but whether it failed.
    Plain,
    /// A document of so many bytes takes the place of an older one, if there is one.
    Put(i64),
    /// A document of so many bytes is stored unless there is one; whether that voids the transaction.
    New(i64, bool),
    /// A document is deleted.
    Delete,
    /// A value has to be one of these.
    Require(&'a [Value]),
    /// A large value of so many bytes is stored unless it is there.
    Large(i64),
    /// A large value is deleted unless it is used.
    Free,
}

/// Applies the changes, all or none.
pub(super) async fn apply(
    session: &Session,
    client: &Client,
    transaction: &Transaction,
) -> Result<Committed, StoreError> {
    let splits: Vec<Option<Split>> =
        transaction.changes().iter().map(|change| split(change).transpose()).collect::<Result<_, _>>()?;
    match try_apply(session, client, transaction.changes(), &splits).await {
        Ok(Some(grown)) => {
            session.grow(grown);
            Ok(Committed::Done)
        }
        Ok(None) => {
            session.undo_savepoint(client).await?;
            Ok(Committed::Void)
        }
        Err(error @ StoreError::Unreachable(_)) => Err(error),
        Err(error) => {
            session.undo_savepoint(client).await?;
            Err(error)
        }
    }
}

/// Returns the bytes by which the documents have grown; `None` if the transaction is void.
async fn try_apply(
    session: &Session,
    client: &Client,
    changes: &[Change],
    splits: &[Option<Split>],
) -> Result<Option<i64>, StoreError> {
    let mut new = Vec::new();
    let mut sent = Changes::of(session, client);
    sent.open_savepoint().await?;
    if splits.iter().flatten().any(|split| !split.parts.is_empty()) {
        // What fails from here on leaves what was done before the savepoint.
        sent.flush().await?;
        new = new_values(session, client, splits).await?;
    }
    sent.run(changes, splits, &new).await?;
    sent.flush().await?;
    if sent.is_void {
        return Ok(None);
    }
    sent.free().await?;
    Ok(Some(sent.grown))
}

/// Deletes a document, and the large values that only it used.
pub(super) async fn delete(
    session: &Session,
    client: &Client,
    collection: &Collection,
    id: &str,
) -> Result<(), StoreError> {
    let mut changes = Changes::of(session, client);
    changes.delete(collection, id).await?;
    changes.flush().await?;
    changes.free().await?;
    let grown = changes.grown;
    session.grow(grown);
    Ok(())
}

fn split(change: &Change) -> Option<Result<Split, StoreError>> {
    match change {
        Change::Put(_, document) | Change::Keep(_, document) | Change::Insert(_, document) => {
            Some(Split::of(document))
        }
        Change::Require(..) | Change::Delete(..) => None,
    }
}

/// The large values that the server has not, compressed, by hash.
async fn new_values<'a>(
    session: &Session,
    client: &Client,
    splits: &'a [Option<Split>],
) -> Result<Vec<(&'a str, Vec<u8>)>, StoreError> {
    let mut new = Vec::new();
    let mut asked = HashSet::new();
    for part in splits.iter().flatten().flat_map(|split| &split.parts) {
        if !asked.insert(part.hash.as_str()) {
            continue;
        }
        let statement = session.statement(client, "SELECT 1 FROM large_values WHERE hash = $1").await?;
        let found = client.query(&statement, &[&Field::Text(&part.hash)]).await;
        if found.map_err(|error| session.fault(&error))?.is_empty() {
            new.push((part.hash.as_str(), part.compressed()));
        }
    }
    Ok(new)
}

impl<'a> Changes<'a> {
    fn of(session: &'a Session, client: &'a Client) -> Changes<'a> {
        let (steps, roles, freed) = (Vec::new(), Vec::new(), Vec::new());
        Changes { session, client, steps, roles, is_void: false, stored: 0, freed, grown: 0 }
    }

    async fn open_savepoint(&mut self) -> Result<(), StoreError> {
        if self.session.open_savepoint() {
            self.step("RELEASE SAVEPOINT part", Vec::new(), Role::Plain).await?;
        }
        self.step("SAVEPOINT part", Vec::new(), Role::Plain).await
    }

    async fn run(
        &mut self,
        changes: &'a [Change],
        splits: &'a [Option<Split>],
        new: &'a [(&'a str, Vec<u8>)],
    ) -> Result<(), StoreError> {
        for (change, split) in changes.iter().zip(splits) {
            match (change, split) {
                (Change::Put(collection, document), Some(split)) => {
                    let sql = put_sql(collection);
                    self.step(&sql, fields(collection, document, split), Role::Put(length(split))).await?;
                    self.parts(collection, document, split, new).await?;
                }
                (Change::Insert(collection, document), Some(split)) => {
                    let sql = insert_sql(collection);
                    let role = Role::New(length(split), true);
                    self.step(&sql, fields(collection, document, split), role).await?;
                    self.parts(collection, document, split, new).await?;
                }
                (Change::Keep(collection, document), Some(split)) => {
                    let (sql, has_parts) = (insert_sql(collection), !split.parts.is_empty());
                    if has_parts {
                        self.flush().await?;
                    }
                    let before = self.stored;
                    let role = Role::New(length(split), false);
                    self.step(&sql, fields(collection, document, split), role).await?;
                    if has_parts {
                        self.flush().await?;
                    }
                    // Its parts are stored only if it is.
                    if self.stored > before {
                        self.parts(collection, document, split, new).await?;
                    }
                }
                (Change::Require(collection, id, column, values), _) => {
                    let sql = format!("SELECT \"{column}\" FROM {} WHERE id = $1", collection.name);
                    self.step(&sql, vec![Field::Text(id)], Role::Require(values)).await?;
                }
                (Change::Delete(collection, id), _) => self.delete(collection, id).await?,
                (Change::Put(..) | Change::Insert(..) | Change::Keep(..), None) => {}
            }
        }
        Ok(())
    }

    async fn step(&mut self, sql: &str, fields: Vec<Field<'a>>, role: Role<'a>) -> Result<(), StoreError> {
        if !self.session.is_prepared(sql) {
            // To prepare it may fail, which must not undo what was done before the savepoint.
            self.flush().await?;
        }
        let statement = self.session.statement(self.client, sql).await?;
        self.steps.push(Step { statement, fields });
        self.roles.push(role);
        Ok(())
    }

    /// Stores the large parts of a document.
    async fn parts(
        &mut self,
        collection: &'a Collection,
        document: &'a Map,
        split: &'a Split,
        new: &'a [(&str, Vec<u8>)],
    ) -> Result<(), StoreError> {
        let id = document.get("id").and_then(Value::as_str).unwrap_or_default();
        for part in &split.parts {
            if let Some((hash, bytes)) = new.iter().find(|(hash, _)| *hash == part.hash) {
                let sql = "INSERT INTO large_values (hash, length, bytes) VALUES ($1, $2, $3) \
                           ON CONFLICT (hash) DO NOTHING RETURNING 1";
                let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
                let fields = vec![Field::Text(hash), Field::Int(part.length()), Field::Bytes(bytes)];
                self.step(sql, fields, Role::Large(size)).await?;
            }
            let sql = "INSERT INTO large_uses (collection, document, part, hash) VALUES ($1, $2, $3, $4)";
            let texts = [collection.name, id, part.name.as_str(), part.hash.as_str()];
            self.step(sql, texts.map(Field::Text).to_vec(), Role::Plain).await?;
        }
        Ok(())
    }

    async fn delete(&mut self, collection: &Collection, id: &'a str) -> Result<(), StoreError> {
        let name = collection.name;
        let sql = format!(
            "WITH uses AS (DELETE FROM large_uses WHERE collection = '{name}' AND document = $1 RETURNING hash) \
             DELETE FROM {name} WHERE id = $1 RETURNING octet_length(body), (SELECT string_agg(hash, ',') FROM uses)"
        );
        self.step(&sql, vec![Field::Text(id)], Role::Delete).await
    }

    /// Deletes the large values that were freed and that no document uses.
    async fn free(&mut self) -> Result<(), StoreError> {
        let freed = std::mem::take(&mut self.freed);
        if freed.is_empty() {
            return Ok(());
        }
        let sql = "DELETE FROM large_values WHERE hash = $1 \
                   AND NOT EXISTS (SELECT 1 FROM large_uses WHERE large_uses.hash = $1) RETURNING octet_length(bytes)";
        let statement = self.session.statement(self.client, sql).await?;
        let steps: Vec<Step<'_>> = freed
            .iter()
            .map(|hash| Step { statement: statement.clone(), fields: vec![Field::Text(hash)] })
            .collect();
        for result in run(self.client, &steps).await {
            let rows = result.map_err(|error| self.session.fault(&error))?;
            self.note(&Role::Free, &rows)?;
        }
        Ok(())
    }

    /// Sends the steps so far, unless the transaction is void.
    async fn flush(&mut self) -> Result<(), StoreError> {
        let (steps, roles) = (std::mem::take(&mut self.steps), std::mem::take(&mut self.roles));
        if self.is_void || steps.is_empty() {
            return Ok(());
        }
        for (result, role) in run(self.client, &steps).await.into_iter().zip(roles) {
            let rows = result.map_err(|error| self.session.fault(&error))?;
            if !self.note(&role, &rows)? {
                // What follows may fail because of that.
                self.is_void = true;
                break;
            }
        }
        Ok(())
    }

    /// Takes note of the result of a step; returns false if it voids the transaction.
    fn note(&mut self, role: &Role<'_>, rows: &[Row]) -> Result<bool, StoreError> {
        let row = rows.first().map(|row| row as &dyn crate::sql::Row);
        match (role, row) {
            (Role::Put(bytes), row) => {
                let (mut before, mut is_new) = (0, true);
                if let Some(row) = row {
                    before = row.number(0)?;
                    is_new = before == 0;
                    self.note_freed(row)?;
                }
                self.grown += bytes - before + if is_new { SERVER_DOCUMENT_BYTES } else { 0 };
            }
            (Role::New(bytes, _), Some(_)) => {
                self.stored += 1;
                self.grown += bytes + SERVER_DOCUMENT_BYTES;
            }
            (Role::New(_, voids), None) => return Ok(!voids),
            (Role::Delete, Some(row)) => {
                self.grown -= row.number(0)? + SERVER_DOCUMENT_BYTES;
                self.note_freed(row)?;
            }
            (Role::Require(values), Some(row)) => {
                let found = row.text(0)?;
                let is_it = |value: &&Value| {
                    let wanted = encode(Field::of(Some(value)));
                    wanted.as_deref().map(super::field::decode) == found
                };
                return Ok(values.iter().any(|value| is_it(&value)));
            }
            (Role::Require(_), None) => return Ok(false),
            (Role::Large(bytes), Some(_)) => self.grown += bytes,
            (Role::Free, Some(row)) => self.grown -= row.number(0)?,
            (Role::Plain | Role::Delete | Role::Large(_) | Role::Free, _) => {}
        }
        Ok(true)
    }

    /// Takes note of the large values of a document's earlier form.
    fn note_freed(&mut self, row: &dyn crate::sql::Row) -> Result<(), StoreError> {
        if let Some(hashes) = row.text(1)? {
            self.freed.extend(hashes.split(',').map(str::to_owned));
        }
        Ok(())
    }
}

fn length(split: &Split) -> i64 {
    i64::try_from(split.body.len()).unwrap_or(i64::MAX)
}

fn fields<'a>(collection: &Collection, document: &'a Map, split: &'a Split) -> Vec<Field<'a>> {
    let mut fields = vec![Field::of(document.get("id"))];
    fields.extend(collection.columns.iter().map(|column| column.of(document)));
    fields.push(Field::Text(&split.body));
    fields
}

fn names(collection: &Collection) -> Vec<String> {
    let columns = collection.columns.iter().map(|column| format!("\"{}\"", column.name));
    columns.chain([String::from("body")]).collect()
}

fn insert_into(collection: &Collection) -> String {
    let names = names(collection);
    let places: Vec<String> = (1..=names.len() + 1).map(|place| format!("${place}")).collect();
    format!("INSERT INTO {} (id, {}) VALUES ({})", collection.name, names.join(", "), places.join(", "))
}

/// Stores a document unless there is one of its id; returns a row if it did.
fn insert_sql(collection: &Collection) -> String {
    format!("{} ON CONFLICT (id) DO NOTHING RETURNING 1", insert_into(collection))
}

/// Stores a document; returns the bytes of the older one and the large values that it used.
fn put_sql(collection: &Collection) -> String {
    let name = collection.name;
    let sets: Vec<String> =
        names(collection).iter().map(|column| format!("{column} = excluded.{column}")).collect();
    format!(
        "WITH older AS (SELECT octet_length(body) AS bytes FROM {name} WHERE id = $1), \
         uses AS (DELETE FROM large_uses WHERE collection = '{name}' AND document = $1 RETURNING hash) \
         {} ON CONFLICT (id) DO UPDATE SET {} \
         RETURNING (SELECT bytes FROM older), (SELECT string_agg(hash, ',') FROM uses)",
        insert_into(collection),
        sets.join(", ")
    )
}
