//! What the database finds is what an exact comparison finds.

use super::search::written;
use super::tables::{HALVES, MOST};
use super::*;
use crate::embeddings::embedder::normalised;
use crate::embeddings::vector_index::nearest_in_store;
use crate::embeddings::vectors::{self, PageVector};
use crate::pages::Hit;
use crate::store::tests::on_server;
use crate::store::{Memory, Store};

/// Says that the extension must be there: then nothing is passed over.
const WANTED: &str = "TIDEGATE_MEMORY_TEST_PGVECTOR";
const MODEL: &str = "a model";
const BOTH: &[i64] = &[pages::DOCUMENT, pages::ENTITY];

/// A store with the extension, if there can be one.
async fn store(database: &str) -> Option<Store> {
    let store = on_server(&format!("tidegate_{database}_{}", std::process::id()));
    let has = match &store {
        Some(store) => store.of("anybody").view(version).await.unwrap().is_some(),
        None => false,
    };
    assert!(has || std::env::var_os(WANTED).is_none(), "there is no PostgreSQL with pgvector");
    store.filter(|_| has)
}

fn vector(dimensions: usize) -> Vec<f32> {
    normalised((0..dimensions).map(|_| fastrand::f32() - 0.5).collect())
}

/// Makes pages of these kinds in turn, with a vector each.
async fn make(memory: &Memory, kinds: &'static [i64], vectors: Vec<Vec<f32>>) -> Vec<i64> {
    let mut pages = Vec::new();
    for some in vectors.chunks(200).map(<[_]>::to_vec) {
        let made = memory.change("test", move |change| {
            let (mut pages, mut made) = (Vec::new(), Vec::new());
            for (n, vector) in some.into_iter().enumerate() {
                let sql =
                    "INSERT INTO pages (tenant, kind, owner, entries) VALUES (?1, ?2, ?3, 0) RETURNING id";
                let kind = Value::Int(kinds[n % kinds.len()]);
                let page = change.one(sql, &[kind, Value::Int(n as i64)], |row| row.int(0))?.unwrap();
                vectors::queue(change, page)?;
                let state = "SELECT made FROM page_states WHERE tenant = ?1 AND page = ?2";
                let number = change.one(state, &[Value::Int(page)], |row| row.int(0))?.unwrap();
                pages.push(page);
                made.push(PageVector { page, made: number, vector });
            }
            vectors::save(change, MODEL, &made)?;
            Ok(pages)
        });
        pages.extend(made.await.unwrap());
    }
    pages
}

/// What the database finds, and what an exact comparison of all vectors finds.
async fn both(
    memory: &Memory,
    query: &[f32],
    kinds: &'static [i64],
    limit: usize,
) -> (Vec<(i64, i64)>, Vec<(i64, i64)>) {
    let query = query.to_vec();
    memory
        .view(move |view| {
            let tables = ready(view, MODEL)?.expect("the tables are ready");
            let pages = |hits: Vec<Hit>| hits.into_iter().map(|hit| (hit.kind, hit.page)).collect();
            let found = tables.nearest(view, &query, kinds, limit)?;
            for pair in found.windows(2) {
                assert!(pair[0].score >= pair[1].score, "{pair:?}");
            }
            Ok((pages(found), pages(nearest_in_store(view, MODEL, &query, kinds, limit)?)))
        })
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nearest_are_those_of_an_exact_comparison() {
    let Some(store) = store("exact").await else { return };
    fastrand::seed(1);
    let (ours, theirs) = (store.of("ours"), store.of("theirs"));
    let mine = make(&ours, BOTH, (0..600).map(|_| vector(24)).collect()).await;
    let others = make(&theirs, BOTH, (0..50).map(|_| vector(24)).collect()).await;
    let nothing = make(&ours, BOTH, vec![vec![0.0; 24]; 2]).await;
    for _ in 0..5 {
        let query = vector(24);
        for kinds in [&[pages::ENTITY][..], &[pages::DOCUMENT], BOTH] {
            for limit in [1, 10, 200] {
                let (found, exact) = both(&ours, &query, kinds, limit).await;
                assert_eq!(found, exact, "{kinds:?} {limit}");
                assert_eq!(found.len(), limit);
            }
        }
        let (found, _) = both(&ours, &query, BOTH, 1_000).await;
        assert_eq!(found.len(), 600);
        let found: Vec<i64> = found.into_iter().map(|(_, page)| page).collect();
        assert!(mine.iter().all(|page| found.contains(page)), "none of ours is missing");
        assert!(nothing.iter().all(|page| !found.contains(page)), "what says nothing is near to nothing");
        let (found, exact) = both(&theirs, &query, BOTH, 1_000).await;
        assert_eq!(found, exact);
        assert!(found.iter().all(|(_, page)| others.contains(page)) && found.len() == 50);
    }
    let gone = mine[..300].to_vec();
    ours.change("test", move |change| gone.iter().try_for_each(|page| vectors::forget(change, *page)))
        .await
        .unwrap();
    let query = vector(24);
    let (found, exact) = both(&ours, &query, BOTH, 200).await;
    assert_eq!(found, exact, "what is forgotten takes nobody's place");
    let left = ours.view(|view| state(view, MODEL)).await.unwrap().unwrap();
    assert_eq!((left.vectors, left.indexed, left.complete), (300, false, true));
    assert_eq!(both(&ours, &vector(25), BOTH, 10).await.0, [], "of other dimensions");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_finds_what_an_exact_comparison_finds() {
    let Some(store) = store("indexed").await else { return };
    fastrand::seed(2);
    let memory = store.of("ours");
    make(&memory, &[pages::ENTITY], (0..1_000).map(|_| vector(16)).collect()).await;
    memory.maintain(|change| ready(change, MODEL)?.unwrap().make_index(change, pages::ENTITY)).await.unwrap();
    let queries: Vec<Vec<f32>> = (0..20).map(|_| vector(16)).collect();
    let right = memory.view(move |view| {
        // So few would all be compared.
        let all = "SELECT set_config('enable_seqscan', 'off', true) FROM tenants WHERE id = ?1";
        view.one(all, &[], |_| Ok(()))?;
        let tables = ready(view, MODEL)?.unwrap();
        let sql = format!("EXPLAIN {}", tables.search(view, pages::ENTITY, 10));
        let plan = view.all(&sql, &[Value::Text(written(&queries[0]).into())], |row| row.text(0))?;
        assert!(plan.join("\n").contains("_hnsw"), "{plan:?}");
        let mut right = 0;
        for query in &queries {
            let found = tables.nearest(view, query, BOTH, 10)?;
            let exact = nearest_in_store(view, MODEL, query, BOTH, 10)?;
            right += exact.iter().filter(|hit| found.iter().any(|found| found.page == hit.page)).count();
        }
        for limit in [300, 900] {
            assert_eq!(tables.nearest(view, &queries[0], BOTH, limit)?.len(), limit);
        }
        Ok(right)
    });
    let right = right.await.unwrap();
    assert!(right >= 195, "of 200 there are {right}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_were_kept_before_come_in_and_are_indexed() {
    let Some(store) = store("before").await else { return };
    let memory = store.of("ours");
    let pages =
        "INSERT INTO pages (tenant, kind, owner, entries) SELECT ?1, 0, n, 0 FROM generate_series(1, 5200) n";
    let states = "INSERT INTO page_states (tenant, page, made, said) SELECT ?1, id, id, 1 FROM pages WHERE tenant = ?1";
    // Eight numbers that are 1 or -1; many have the same stamp.
    let vectors = "INSERT INTO vectors (tenant, page, model, made, stamp, vector)
        SELECT ?1, id, ?2, id, id / 1000, (SELECT string_agg(CASE WHEN id >> n & 1 = 1 THEN '\\x0000803f'::bytea
            ELSE '\\x000080bf'::bytea END, '') FROM generate_series(0, 7) n) FROM pages WHERE tenant = ?1";
    memory
        .maintain(move |change| {
            change.run(pages, &[])?;
            change.run(states, &[])?;
            change.run(vectors, &[Value::Text(MODEL.into())])
        })
        .await
        .unwrap();
    let mut rounds = 0;
    while memory.view(|view| is_behind(view, MODEL)).await.unwrap() {
        assert!(memory.view(|view| ready(view, MODEL)).await.unwrap().is_none(), "not before all came in");
        memory.maintain(|change| follow(change, MODEL)).await.unwrap();
        rounds += 1;
    }
    assert_eq!(rounds, 21, "some at a time");
    let state = memory.view(|view| state(view, MODEL)).await.unwrap().unwrap();
    assert!(state.indexed && state.complete);
    assert_eq!(state.vectors, 5_200);
    let query = normalised(vec![1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0]);
    let (found, _) = both(&memory, &query, BOTH, 15).await;
    assert!(found.len() == 15 && found.iter().all(|(_, page)| page & 255 == 0b0100_1101), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn models_may_have_many_dimensions_and_others_than_before() {
    let Some(store) = store("dimensions").await else { return };
    fastrand::seed(3);
    let memory = store.of("ours");
    for (dimensions, wanted) in [(2_000, "vector(2000)"), (2_001, "halfvec(2001)"), (4_001, "vector(4001)")] {
        make(&memory, BOTH, (0..20).map(|_| vector(dimensions)).collect()).await;
        let (found, exact) = both(&memory, &vector(dimensions), BOTH, 10).await;
        assert_eq!(found, exact, "{dimensions}");
        let form = memory.view(|view| Ok(ready(view, MODEL)?.unwrap().form)).await.unwrap();
        assert_eq!(form, wanted);
        // The index is made in the same way, however many there are.
        let indexed = memory.maintain(move |change| {
            let tables = ready(change, MODEL)?.unwrap();
            tables.make_index(change, pages::ENTITY)?;
            tables.is_indexed(change, pages::ENTITY)
        });
        assert_eq!(indexed.await.unwrap(), dimensions <= HALVES);
        memory.maintain(|change| vectors::remove(change, MODEL)).await.unwrap();
        assert!(memory.view(|view| ready(view, MODEL)).await.unwrap().is_none());
    }
    let tables = "SELECT COUNT(*) FROM pg_class, tenants t WHERE t.id = ?1 AND relkind = 'r' AND relname LIKE 'near\\_' || t.id || '\\_%'";
    let left = memory.view(move |view| view.one(tables, &[], |row| row.int(0))).await.unwrap();
    assert_eq!(left, Some(0), "tables of vectors that are gone");
    // More than a table can hold: then it goes as without the extension.
    make(&memory, BOTH, vec![vector(MOST + 1)]).await;
    let left = memory.view(|view| Ok((ready(view, MODEL)?.is_none(), is_behind(view, MODEL)?))).await;
    assert_eq!(left.unwrap(), (true, false));
}

#[test]
fn versions_are_compared_as_numbers() {
    assert!(numbers("0.10.0") > numbers("0.8.5") && numbers("1.0") > numbers("0.10.1"));
    assert!(will_do("0.5.0") && !will_do("0.4.4") && !will_do("unknown"));
}
