// The page: what it shows, and what happens when somebody does something.

import { changeList, editObservation, exportMemory, FIRST, forgetObservation, undoChange } from './changes.js';
import { colourOf } from './colour.js';
import { byId, count, fill, number } from './dom.js';
import { Drawing, MOST } from './drawing.js';
import { Mcp } from './mcp.js';
import { Memory, Missing } from './memory.js';
import * as panes from './panes.js';
import { Time } from './time.js';

/** How often to ask whether another program has changed the memory, in milliseconds. */
const LOOK = 5000;
/** How long to wait before trying again what failed at the beginning. */
const AGAIN = 3000;
/** How long to wait for more letters before searching. */
const TYPING = 180;
/** What the search box finds, by the list that is open. */
const PLACEHOLDERS = {
  entities: 'Search entities',
  documents: 'Search documents',
  agents: 'Search agents',
  changes: 'Search entities',
};
const ORDER = new Intl.Collator('en', { numeric: true });

const endpoint = new URL(
  // Beside this page, also where a proxy serves both under another path.
  document.querySelector('meta[name="mcp-endpoint"]').content.replace(/^\//, ''), document.baseURI);
const memory = new Memory(new Mcp(endpoint, askForToken));

const state = {
  graph: { entities: [], relations: [] },
  /** The entities of the graph by name. */
  byName: new Map(),
  /** Which colour a type has. */
  colours: new Map(),
  tab: 'entities',
  selected: undefined,
  type: undefined,
  /** The names that were found, best first, if somebody searches. */
  found: undefined,
  changes: undefined,
  /** What the pane of details shows of an entity, as text to compare with. */
  told: undefined,
  /** How many changes are listed. */
  listed: FIRST,
};

const drawing = new Drawing(byId('graph'), (name) => (name === undefined ? close() : open(name)));
const time = new Time(showMoment);

start();

async function start() {
  wire();
  for (;;) {
    try {
      await memory.open();
      await refresh();
      break;
    } catch (failure) {
      // The server may be starting, or being started again.
      trouble(failure);
      document.body.dataset.state = 'failed';
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
    }
  }
  trouble();
  document.body.dataset.state = 'ready';
  follow();
}

// ---- the graph, now and then

/** Looks whether the memory has changed, and shows what it is now if the reader looks at now. */
async function refresh() {
  const timeline = await memory.timeline().catch(() => undefined);
  const unchanged = timeline && timeline.changes === state.changes;
  state.changes = timeline?.changes;
  if (unchanged) return;
  time.know(timeline);
  if (time.shown !== undefined || time.playing) return;
  const graph = await memory.now();
  // The slider may have been moved meanwhile.
  if (time.shown !== undefined) return;
  await show(graph);
  if (state.found || state.tab !== 'entities') await search();
}

async function showMoment(ms) {
  try {
    const graph = ms === undefined ? await memory.now() : await memory.at(ms);
    await show(graph);
    trouble();
    if (state.found || state.tab !== 'entities') await search();
  } catch (failure) {
    time.stop();
    trouble(failure);
  }
}

async function show(graph) {
  const before = state.byName;
  state.graph = graph;
  state.byName = new Map(graph.entities.map((entity) => [entity.name, entity]));
  const types = typesOf(graph);
  for (const [type] of types) {
    state.colours.set(type, colourOf(type));
  }
  if (state.type !== undefined && !types.some(([type]) => type === state.type)) state.type = undefined;
  const fresh = before.size === 0 ? [] : graph.entities.map(({ name }) => name).filter((name) => !before.has(name));
  const drawn = drawing.show(graph, state.colours, fresh);
  byId('drawn').hidden = drawn === graph.entities.length;
  byId('drawn').textContent = `Showing the ${number(MOST)} most connected entities.`;
  const words = `${count(graph.entities.length, 'entity', 'entities')}, ${
    count(graph.relations.length, 'relation', 'relations')}`;
  byId('counts').textContent = words;
  byId('graph').setAttribute('aria-label', `The graph: ${words}`);
  byId('empty').hidden = graph.entities.length > 0;
  showLegend();
  showList();
  if (state.selected !== undefined) showEntity();
  if (graph.entities.length === 0) await showNothing(graph.relations.length);
}

/** There is no entity. Something else may be known all the same. */
async function showNothing(relations) {
  if (time.shown !== undefined) {
    panes.nothingThen();
    return;
  }
  const documents = await memory.documents(1).catch(() => []);
  if (state.graph.entities.length > 0 || time.shown !== undefined) return;
  if (relations > 0 || documents.length > 0) panes.noEntities(relations, documents.length > 0, () => showTab('documents'));
  else panes.nothingYet(endpoint.href);
}

/** The types with how many entities each has, most first. */
function typesOf(graph) {
  const counts = new Map();
  for (const { entityType } of graph.entities) counts.set(entityType, (counts.get(entityType) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

function showLegend() {
  const types = typesOf(state.graph).map(([type, many]) => [type, state.colours.get(type), many]);
  panes.legend(types.length > 1 ? types : [], state.type, (type) => {
    state.type = type;
    showLegend();
    showList();
  });
}

/** Shows changes as they come: told by the server, or noticed because another program wrote the file. */
function follow() {
  let listening;
  const look = async () => {
    try {
      await refresh();
      trouble();
    } catch (failure) {
      trouble(failure);
    }
  };
  let soon;
  const told = () => {
    clearTimeout(soon);
    soon = setTimeout(look, 150);
  };
  const listen = () => {
    if (listening || document.hidden) return;
    listening = new AbortController();
    // Whatever ends it, looking every few seconds goes on, and begins it again.
    memory.listen(told, listening.signal).catch(() => {}).finally(() => {
      listening = undefined;
    });
  };
  // A page that nobody sees lets go of its connection.
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) listening?.abort();
    else look().then(listen);
  });
  setInterval(() => {
    if (!document.hidden) look().then(listen);
  }, LOOK);
  listen();
}

// ---- lists

function showList() {
  if (state.tab !== 'entities') return;
  const { graph, found, type } = state;
  let shown = found === undefined
    ? graph.entities.toSorted((a, b) => ORDER.compare(a.name, b.name))
    : found.map((name) => state.byName.get(name)).filter(Boolean);
  if (type !== undefined) shown = shown.filter((entity) => entity.entityType === type);
  const narrowed = found !== undefined || type !== undefined;
  drawing.light(narrowed ? new Set(shown.map((entity) => entity.name)) : undefined);
  panes.entities(byId('list'), shown, {
    colours: state.colours, selected: state.selected, open,
    none: narrowed ? 'No results.' : 'There are no entities.',
  });
}

async function showTab(tab) {
  state.tab = tab;
  for (const button of document.querySelectorAll('[role=tab]')) {
    const selected = button.id === `tab-${tab}`;
    button.setAttribute('aria-selected', String(selected));
    button.tabIndex = selected ? 0 : -1;
  }
  const list = byId('list');
  list.setAttribute('aria-labelledby', `tab-${tab}`);
  byId('query').placeholder = PLACEHOLDERS[tab];
  if (tab === 'entities') showList();
  else fill(list, panes.note('Loading…'));
  await search();
}

/** Shows the documents or the agents, or those of them that are found. */
async function showOthers(tab, query, mine) {
  const list = byId('list');
  try {
    if (tab === 'changes') {
      const found = await memory.changes(state.listed);
      if (mine !== searches || state.tab !== tab) return;
      showChanges(found);
      return;
    }
    const then = time.shown;
    const found = tab === 'documents' ? await memory.findDocuments(query) : await memory.findAgents(query);
    if (mine !== searches || state.tab !== tab) return;
    const none = query === '' ? undefined : 'No results.';
    if (tab === 'agents') {
      panes.agents(list, found, openAgent, none);
    } else {
      // Of documents only what they are now is known here, and since when they are there.
      const there = then === undefined ? found : found.filter((kept) => new Date(kept.createdAt).getTime() <= then);
      panes.documents(list, there, openDocument, then === undefined ? none : none ?? 'There were no documents at that time.');
    }
    if (then !== undefined) list.prepend(panes.note(`${tab === 'agents' ? 'Agents' : 'Documents'} are shown as they are now.`));
    trouble();
  } catch (failure) {
    if (state.tab === tab && mine === searches) fill(list, panes.note(failure.message));
    if (!(failure instanceof Missing)) console.info(failure);
  }
}

function showChanges(found) {
  const list = byId('list');
  const focused = list.contains(document.activeElement) ? document.activeElement.ariaLabel ?? document.activeElement.id : undefined;
  changeList(list, found, (change) => then(undoChange(memory, change)), (most) => {
    state.listed = most;
    search();
  });
  // The keyboard stays where it was.
  if (focused) [...list.querySelectorAll('button')].find((button) => (button.ariaLabel ?? button.id) === focused)?.focus();
}

/** Shows what has become of the memory, once something was changed here. */
async function then(asked) {
  if (!await asked) return;
  try {
    await refresh();
    trouble();
  } catch (failure) {
    trouble(failure);
  }
}

// ---- searching

let typing;
let searches = 0;

async function search() {
  const query = byId('query').value.trim();
  searches += 1;
  const mine = searches;
  if (state.tab !== 'entities') {
    // What was found among the entities is not what is searched for any more.
    state.found = undefined;
    drawing.light(undefined);
    await showOthers(state.tab, query, mine);
    return;
  }
  if (query === '') {
    state.found = undefined;
    showList();
    return;
  }
  try {
    // The server searches what is known now; what was known then is here already.
    const found = time.shown === undefined ? await memory.search(query) : searchHere(query);
    if (mine !== searches) return;
    state.found = found;
    trouble();
    showList();
  } catch (failure) {
    trouble(failure);
  }
}

function searchHere(query) {
  const wanted = query.toLowerCase();
  const holds = (text) => text.toLowerCase().includes(wanted);
  return state.graph.entities
    .filter((entity) => holds(entity.name) || holds(entity.entityType) || entity.observations.some(holds)
      || Object.entries(entity.properties ?? {}).some(([key, value]) => holds(`${key}: ${value}`)))
    .map((entity) => entity.name);
}

// ---- details

function open(name) {
  state.selected = name;
  showEntity();
  panes.mark(name);
  drawing.select(name);
}

function showEntity() {
  const name = state.selected;
  const found = state.byName.get(name);
  if (!found) {
    // It was deleted, or is not there yet.
    byId('detail').hidden = true;
    return;
  }
  const relations = state.graph.relations.filter((relation) => relation.from === name || relation.to === name);
  const pane = byId('detail');
  // Whoever reads is not disturbed by changes of something else.
  const told = JSON.stringify([found, relations, time.shown]);
  const same = !pane.hidden && pane.dataset.name === name;
  if (same && told === state.told) return;
  state.told = told;
  const history = same && pane.querySelector('.history')?.open;
  const focused = same && pane.contains(document.activeElement);
  panes.entityDetail(found, relations, {
    colours: state.colours, known: (other) => state.byName.has(other), open, close, history: () => memory.history(name),
    id: () => memory.id(name),
    // What was cannot be changed.
    edit: time.shown === undefined ? (text) => then(editObservation(memory, name, text)) : undefined,
    forget: time.shown === undefined ? (text) => then(forgetObservation(memory, name, text)) : undefined,
  });
  pane.dataset.name = name;
  if (history) pane.querySelector('.history').open = true;
  // What had the keyboard was drawn anew.
  if (focused) pane.focus();
}

function openDocument(found) {
  state.selected = undefined;
  drawing.select(undefined);
  delete byId('detail').dataset.name;
  panes.documentDetail(found, close, (offset) => memory.document(found.id, offset));
}

function openAgent(agent) {
  state.selected = undefined;
  drawing.select(undefined);
  delete byId('detail').dataset.name;
  panes.agentDetail(agent, close, () => memory.agent(agent.uri), (tool) => memory.describe(tool));
}

function close() {
  const focused = byId('detail').contains(document.activeElement);
  const name = state.selected;
  state.selected = undefined;
  byId('detail').hidden = true;
  delete byId('detail').dataset.name;
  panes.mark(undefined);
  drawing.select(undefined);
  // The keyboard goes back to where it came from.
  if (focused) ((name === undefined ? undefined : panes.entryOf(name)) ?? byId('graph')).focus();
}

// ---- the rest

function wire() {
  byId('search').addEventListener('submit', (event) => {
    event.preventDefault();
    clearTimeout(typing);
    search();
  });
  byId('query').addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(search, TYPING);
  });
  byId('export').addEventListener('click', () => exportMemory(memory));
  byId('zoom-in').addEventListener('click', () => drawing.zoom(1.4));
  byId('zoom-out').addEventListener('click', () => drawing.zoom(1 / 1.4));
  byId('zoom-all').addEventListener('click', () => drawing.fit());
  const tabs = [...document.querySelectorAll('[role=tab]')];
  for (const [at, tab] of tabs.entries()) {
    tab.addEventListener('click', () => showTab(tab.id.slice('tab-'.length)));
    tab.addEventListener('keydown', (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step === undefined) return;
      const next = tabs[(at + step + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
  }
  document.addEventListener('keydown', (event) => {
    // A dialog that is open takes the key for itself.
    if (document.querySelector('dialog[open]')) return;
    if (event.key === 'Escape' && !byId('detail').hidden) close();
    const writing = event.target.matches?.('input, textarea');
    if (event.key === '/' && !writing) {
      event.preventDefault();
      byId('query').focus();
    }
  });
}

/** Says what went wrong; nothing, if nothing is wrong any more. */
function trouble(failure) {
  const place = byId('trouble');
  place.hidden = failure === undefined;
  if (failure) {
    place.textContent = failure.message;
  }
}

/** Asks the reader for an access token. It is kept in this page only, and not written anywhere. */
function askForToken(why) {
  const dialog = byId('token');
  if (why) byId('token-why').textContent = `${why} Enter another one.`;
  byId('token-value').value = '';
  dialog.showModal();
  return new Promise((resolve) => {
    // Without a token there is nothing to see, so the question stays.
    dialog.oncancel = (event) => event.preventDefault();
    dialog.querySelector('form').onsubmit = (event) => {
      event.preventDefault();
      dialog.close();
      resolve(byId('token-value').value.trim());
    };
  });
}
