//! Pages by their words, and by nearly those words, as PostgreSQL finds them.
//!
//! The index of words is a table with a column `tsv` for whole words. Both what is indexed and what is searched goes
//! through [`words`], so that the same words are found as in a file, and without the accents that only the server knows.

use super::{IndexText, characters, names, words};
use crate::error::Result;
use crate::pages::Hit;
use crate::store::{Change, Row, Value, View, unaccented};

/// How many words of a query count.
const WORDS: usize = 32;
/// How many words of a query are compared by their letters, and from how many letters on.
const NEARLY: usize = 8;
const LETTERS: usize = 3;

/// The index of words of one tenant.
pub(super) fn own_table(tenant: i64) -> String {
    format!("CREATE VIRTUAL TABLE IF NOT EXISTS words_{tenant} USING fts5(title, body)")
}

/// Puts a page into the index, in place of what it said before.
pub(super) fn put(change: &mut Change<'_>, page: i64, said: &IndexText<'_>) -> Result<()> {
    forget(change, page)?;
    let sql = format!("INSERT INTO {} (rowid, title, body) VALUES (?1, ?2, ?3)", change.own_table("words"));
    let title = format!("{} {}", indexed(said.name), indexed(said.about));
    let values = [Value::Int(page), Value::Text(title.into()), Value::Text(indexed(said.body).into())];
    change.run_on_own(&sql, &values)?;
    // Names are looked up as in a file.
    change.run(
        "INSERT INTO page_words (tenant, page, kind, owner, name, size, words)
         SELECT tenant, id, kind, owner, ?3, 0, '' FROM pages WHERE tenant = ?1 AND id = ?2",
        &[Value::Int(page), Value::Text(names::key(said.name).into())],
    )?;
    Ok(())
}

/// Takes a page out of the index, if it is there.
pub(super) fn forget(change: &mut Change<'_>, page: i64) -> Result<()> {
    let sql = format!("DELETE FROM {} WHERE rowid = ?1", change.own_table("words"));
    change.run_on_own(&sql, &[Value::Int(page)])?;
    change.run("DELETE FROM page_words WHERE tenant = ?1 AND page = ?2", &[Value::Int(page)])?;
    Ok(())
}

/// A text as it is indexed: its words, which are cut and written in the same way as in a file.
fn indexed(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    words::each_word(text, |word| {
        if !all.is_empty() {
            all.push(' ');
        }
        characters::spelt_out(word, &mut all);
    });
    all
}

/// The words of a query.
fn asked(text: &str) -> impl Iterator<Item = String> {
    words::distinct(text).into_iter().map(|word| {
        let mut spelt = String::new();
        characters::spelt_out(&word, &mut spelt);
        spelt
    })
}

/// The pages of these kinds that fit the words best, at most `limit`: those with all words, else those with any.
pub(crate) fn lexical(view: &mut View<'_>, text: &str, kinds: &[i64], limit: usize) -> Result<Vec<Hit>> {
    let found = all_words(view, text, kinds, limit)?;
    match found.is_empty() {
        true => matching(view, text, " | ", kinds, limit),
        false => Ok(found),
    }
}

/// The pages of these kinds that have all words, at most `limit`, best first.
pub(crate) fn all_words(view: &mut View<'_>, text: &str, kinds: &[i64], limit: usize) -> Result<Vec<Hit>> {
    matching(view, text, " & ", kinds, limit)
}

fn matching(view: &mut View<'_>, text: &str, between: &str, kinds: &[i64], limit: usize) -> Result<Vec<Hit>> {
    // Each word in quotes is a word, whatever the index would take it for.
    let wanted: Vec<String> = asked(text).take(WORDS).map(|word| format!("'{word}'")).collect();
    if wanted.is_empty() || kinds.is_empty() {
        return Ok(Vec::new());
    }
    let (table, kinds, query) = (view.own_table("words"), listed(kinds), unaccented("?1"));
    let sql = format!(
        "SELECT p.kind, p.owner, p.id, ts_rank_cd(w.tsv, q.wanted) AS score
         FROM {table} w JOIN pages p ON p.id = w.rowid, to_tsquery('simple', {query}) AS q (wanted)
         WHERE w.tsv @@ q.wanted AND p.kind IN ({kinds}) ORDER BY score DESC, p.id LIMIT ?2"
    );
    let values = [Value::Text(wanted.join(between).into()), Value::Int(limit as i64)];
    let mut hits = Vec::new();
    view.each_of_own(&sql, &values, |row| {
        hits.push(read(row)?);
        Ok(())
    })?;
    Ok(hits)
}

/// The pages of these kinds whose words have nearly the letters of the query, at most `limit`. None if the server cannot
/// compare letters (its extension `pg_trgm`).
pub(crate) fn fuzzy(view: &mut View<'_>, text: &str, kinds: &[i64], limit: usize) -> Result<Vec<Hit>> {
    // Numbers are what they are.
    let long = |word: &String| word.chars().count() >= LETTERS && word.chars().all(char::is_alphabetic);
    let wanted: Vec<Value<'_>> =
        asked(text).filter(long).take(NEARLY).map(|word| Value::Text(word.into())).collect();
    if wanted.is_empty() || kinds.is_empty() || !compares_letters(view)? {
        return Ok(Vec::new());
    }
    let (table, kinds, said) = (view.own_table("words"), listed(kinds), "(w.title || ' ' || w.body)");
    let each = |write: &dyn Fn(usize) -> String, between: &str| {
        (1..=wanted.len()).map(write).collect::<Vec<_>>().join(between)
    };
    let score = each(&|n| format!("word_similarity(?{n}, {said})"), " + ");
    let near = each(&|n| format!("?{n} <% {said}"), " OR ");
    let sql = format!(
        "SELECT p.kind, p.owner, p.id, {score} AS score FROM {table} w JOIN pages p ON p.id = w.rowid
         WHERE ({near}) AND p.kind IN ({kinds}) ORDER BY score DESC, p.id LIMIT {limit}"
    );
    let mut hits = Vec::new();
    view.each_of_own(&sql, &wanted, |row| {
        hits.push(read(row)?);
        Ok(())
    })?;
    Ok(hits)
}

/// Whether the server can compare words by their letters.
fn compares_letters(view: &mut View<'_>) -> Result<bool> {
    let sql =
        "SELECT 1 FROM tenants WHERE id = ?1 AND to_regprocedure('word_similarity(text,text)') IS NOT NULL";
    Ok(view.one(sql, &[], |row| row.int(0))?.is_some())
}

fn listed(kinds: &[i64]) -> String {
    kinds.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

fn read(row: &dyn Row) -> Result<Hit> {
    let score = row.maybe_real(3)?.unwrap_or_default();
    Ok(Hit { kind: row.int(0)?, owner: row.int(1)?, page: row.int(2)?, score })
}
