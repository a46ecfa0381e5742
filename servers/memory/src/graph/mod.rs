//! The knowledge graph: entities, what is known of them, and how they are connected. Nothing in it is ever overwritten.

pub(crate) mod address;
pub(crate) mod changes;
pub(crate) mod decay;
pub(crate) mod diff;
pub(crate) mod entities;
pub(crate) mod history;
pub(crate) mod ids;
pub(crate) mod list;
pub(crate) mod merge;
pub(crate) mod model;
pub(crate) mod pages;
pub(crate) mod path;
pub(crate) mod properties;
pub(crate) mod read;
pub(crate) mod relations;
pub(crate) mod rename;
pub(crate) mod restore;
pub(crate) mod revert;
pub(crate) mod search;
pub(crate) mod slice;
pub(crate) mod walk;

/// The tables of the graph.
pub(crate) const TABLES: &[&str] = &[
    // `key` stays the same when an entity changes its name or type.
    "CREATE TABLE entities (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, key INTEGER NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
        since INTEGER NOT NULL, until INTEGER, made INTEGER NOT NULL, gone INTEGER)",
    "CREATE UNIQUE INDEX entities_live ON entities (tenant, name) WHERE gone IS NULL",
    "CREATE INDEX entities_named ON entities (tenant, name, id)",
    "CREATE INDEX entities_keyed ON entities (tenant, key)",
    "CREATE TABLE observations (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, entity INTEGER NOT NULL, page INTEGER NOT NULL, content TEXT NOT NULL,
        digest INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER, made INTEGER NOT NULL, gone INTEGER)",
    "CREATE INDEX observations_of ON observations (tenant, entity, digest)",
    "CREATE TABLE relations (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL, type TEXT NOT NULL,
        strength REAL, confidence REAL, metadata TEXT, version INTEGER NOT NULL,
        since INTEGER NOT NULL, until INTEGER, made INTEGER NOT NULL, gone INTEGER)",
    "CREATE UNIQUE INDEX relations_live ON relations (tenant, source, target, type) WHERE gone IS NULL",
    "CREATE INDEX relations_to ON relations (tenant, target) WHERE gone IS NULL",
    "CREATE INDEX relations_all ON relations (tenant, source, target, type, id)",
];

/// What came with the search: an entity is indexed page by page, and what held at a time is found.
pub(crate) const SEARCH_INDEXES: &[&str] = &[
    // A page is indexed anew by what is on it, however much else is known of its entity.
    "CREATE INDEX observations_paged ON observations (tenant, page) WHERE gone IS NULL",
    // What held at a time is found without looking at all that came later.
    "CREATE INDEX observations_since ON observations (tenant, since)",
    "CREATE INDEX relations_since ON relations (tenant, since)",
];

/// What came with undo: what a change did can be found and undone, and entities by their type.
pub(crate) const UNDO_COLUMNS: &[&str] = &[
    // By which change this one is undone at present.
    "ALTER TABLE changes ADD COLUMN undone INTEGER",
    "CREATE INDEX changes_of ON changes (tenant, id)",
    // A row that brings back another one says which: the first of its kind.
    "ALTER TABLE entities ADD COLUMN origin INTEGER",
    "ALTER TABLE observations ADD COLUMN origin INTEGER",
    "ALTER TABLE relations ADD COLUMN origin INTEGER",
    // When its confidence was last stated, if that is not when the row began: a new name of an end states nothing.
    "ALTER TABLE relations ADD COLUMN said INTEGER",
    "CREATE INDEX entities_made ON entities (tenant, made)",
    "CREATE INDEX entities_gone ON entities (tenant, gone) WHERE gone IS NOT NULL",
    "CREATE INDEX entities_origin ON entities (tenant, origin) WHERE origin IS NOT NULL",
    "CREATE INDEX entities_typed ON entities (tenant, type, name) WHERE gone IS NULL",
    "CREATE INDEX observations_made ON observations (tenant, made)",
    "CREATE INDEX observations_gone ON observations (tenant, gone) WHERE gone IS NOT NULL",
    "CREATE INDEX observations_origin ON observations (tenant, origin) WHERE origin IS NOT NULL",
    "CREATE INDEX relations_made ON relations (tenant, made, id)",
    "CREATE INDEX relations_gone ON relations (tenant, gone) WHERE gone IS NOT NULL",
    "CREATE INDEX relations_origin ON relations (tenant, origin) WHERE origin IS NOT NULL",
    "CREATE INDEX relations_into ON relations (tenant, target, id)",
];

/// What came with lists in parts: entities are found by how their names begin.
pub(crate) const LIST_INDEXES: &[&str] = &[
    "CREATE INDEX entities_listed ON entities (tenant, key) WHERE gone IS NULL",
    "CREATE INDEX entities_begin ON entities (tenant, LOWER(name), name) WHERE gone IS NULL",
];

/// What came after that: entities have properties, and an id that stays.
pub(crate) const PROPERTY_TABLES: &[&str] = &[
    // On the first row of an entity. Those that were there before have none, and are known by the number of that row.
    "ALTER TABLE entities ADD COLUMN uid TEXT",
    "CREATE UNIQUE INDEX entities_uid ON entities (tenant, uid) WHERE uid IS NOT NULL",
    // `value` is JSON.
    "CREATE TABLE properties (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, entity INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
        since INTEGER NOT NULL, until INTEGER, made INTEGER NOT NULL, gone INTEGER, origin INTEGER)",
    "CREATE UNIQUE INDEX properties_live ON properties (tenant, entity, name) WHERE gone IS NULL",
    "CREATE INDEX properties_of ON properties (tenant, entity, name)",
    "CREATE INDEX properties_made ON properties (tenant, made)",
    "CREATE INDEX properties_gone ON properties (tenant, gone) WHERE gone IS NOT NULL",
    "CREATE INDEX properties_origin ON properties (tenant, origin) WHERE origin IS NOT NULL",
];
