// What stands beside the graph: the lists, and what is known of one thing.

import { ago, byId, count, element, fill, inWords, moment, number, size } from './dom.js';

/** How many entries a list shows before it asks. */
const SHOWN = 200;

/** A list of entries, the first of them at once and the rest when they are wanted. */
function list(parent, entries, entry, none) {
  if (entries.length === 0) {
    fill(parent, none);
    return;
  }
  const all = element('ul', { class: 'entries' });
  const more = element('button', { type: 'button', class: 'more' });
  let shown = 0;
  const show = () => {
    all.append(...entries.slice(shown, shown + SHOWN).map(entry));
    shown = Math.min(entries.length, shown + SHOWN);
    more.hidden = shown === entries.length;
    more.textContent = `Show more (${number(entries.length - shown)} left)`;
  };
  more.addEventListener('click', show);
  show();
  fill(parent, all, more);
}

/** A calm sentence where a list would be. */
export const note = (...children) => element('p', { class: 'note' }, ...children);

const dot = (colour) => element('span', { class: `dot type-${colour}`, 'aria-hidden': 'true' });

/** The entities, in the order in which they are given. */
export function entities(parent, found, { colours, selected, open, none }) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.name : undefined;
  list(parent, found, (entity) => {
    const button = element('button', {
      type: 'button', class: 'entry', 'aria-pressed': String(entity.name === selected), onclick: () => open(entity.name),
    }, dot(colours.get(entity.entityType)), element('span', { class: 'name' }, entity.name),
    element('span', { class: 'kind' }, entity.entityType));
    button.dataset.name = entity.name;
    return element('li', {}, button);
  }, note(none));
  // The keyboard stays where it was.
  if (focused !== undefined) entryOf(focused)?.focus({ preventScroll: true });
}

/** The entry of an entity in the list, if it is there. */
export function entryOf(name) {
  return [...document.querySelectorAll('#list .entry')].find((button) => button.dataset.name === name);
}

/** Marks an entity in the list without building it anew. */
export function mark(name) {
  for (const button of document.querySelectorAll('#list .entry[data-name]')) {
    button.setAttribute('aria-pressed', String(button.dataset.name === name));
  }
}

export function documents(parent, found, open, none) {
  list(parent, found, (kept) => element('li', {}, element('button', {
    type: 'button', class: 'entry tall', onclick: () => open(kept),
  }, element('span', { class: 'name' }, kept.title || kept.uri || `Document ${kept.id}`),
  element('span', { class: 'kind' }, about(kept)))),
  note(none ?? 'No documents yet. Ask the assistant to store a file or a web page, and it appears here.'));
}

function about({ knowledgeBase, bytes, createdAt }) {
  const parts = [knowledgeBase, typeof bytes === 'number' ? size(bytes) : undefined,
    createdAt ? ago(new Date(createdAt).getTime()) : undefined];
  return parts.filter(Boolean).join(' · ');
}

export function agents(parent, found, open, none) {
  list(parent, found, (agent) => element('li', {}, element('button', {
    type: 'button', class: 'entry tall', onclick: () => open(agent),
  }, element('span', { class: 'name' }, agent.title || agent.name || agent.uri),
  element('span', { class: 'kind' }, agent.description || (agent.version ? `version ${agent.version}` : '')))),
  note(none ?? 'No agents yet.'));
}

// ---- details

/** Shows something in the pane of details. `close` is called when it is closed. */
function detail(title, close, ...children) {
  const pane = byId('detail');
  const button = element('button', {
    type: 'button', class: 'close', 'aria-label': 'Close the details', onclick: close,
  }, '×');
  fill(pane, element('div', { class: 'head' }, element('h2', {}, title), button), ...children);
  pane.hidden = false;
  pane.scrollTop = 0;
}

const section = (title, ...children) => element('section', {}, element('h3', {}, title), ...children);

/** An entity: its type, what is known of it, its relations, and what it was. */
export function entityDetail(found, relations, { colours, known, open, close, history, id, edit, forget }) {
  const type = element('p', { class: 'type' }, dot(colours.get(found.entityType)), found.entityType);
  const observations = found.observations.length > 0
    ? element('ul', { class: 'observations' }, ...found.observations.map((text) => observation(text, edit, forget)))
    : note('No observations.');
  const properties = Object.entries(found.properties ?? {});
  const identity = element('dl', { class: 'identity' });
  const versions = element('div', { class: 'versions' });
  const past = element('details', { class: 'history' }, element('summary', {}, 'History'), versions);
  past.addEventListener('toggle', async () => {
    if (!past.open || versions.childElementCount > 0) return;
    fill(versions, note('Loading…'));
    try {
      fill(versions, story(await history()));
    } catch (failure) {
      fill(versions, note(failure.message));
    }
  });
  detail(found.name, close, type,
    properties.length > 0 ? section(`Properties (${number(properties.length)})`, definitions(properties)) : undefined,
    section(`Observations (${number(found.observations.length)})`, observations),
    section(`Relations (${number(relations.length)})`, relations.length > 0
      ? element('ul', { class: 'relations' }, ...relations.slice(0, 500).map((one) => relation(one, found.name, known, open)))
      : note('No relations.'),
    relations.length > 500 ? note(`${number(relations.length - 500)} more are not listed here.`) : undefined),
    past, identity);
  // An older server has none.
  id().then((known) => known && fill(identity, element('dt', {}, 'ID'), element('dd', {}, known))).catch(() => {});
}

/** An observation, with what can be done to it if it holds now. */
function observation(text, edit, forget) {
  const action = (label, act) => element('button', {
    type: 'button', class: 'link', 'aria-label': `${label}: ${text.slice(0, 80)}`, onclick: () => act(text),
  }, label);
  return element('li', {}, element('span', { class: 'said' }, text),
    edit ? element('span', { class: 'actions' }, action('Edit', edit), action('Forget', forget)) : undefined);
}

function relation({ from, to, relationType, strength, confidence }, self, known, open) {
  const other = from === self ? to : from;
  const name = known(other)
    ? element('button', { type: 'button', class: 'link', onclick: () => open(other) }, other)
    : element('span', {}, other);
  const kind = element('span', { class: 'relation' }, relationType);
  const shares = [['strength', strength], ['confidence', confidence]]
    .filter(([, share]) => typeof share === 'number')
    .map(([what, share]) => `${what} ${Math.round(share * 100)} %`).join(', ');
  const about = shares ? element('span', { class: 'shares' }, shares) : undefined;
  const arrow = element('span', { class: 'arrow', 'aria-hidden': 'true' }, from === self ? '→' : '←');
  // Read aloud, an arrow is a word.
  const spoken = element('span', { class: 'hidden' }, from === self ? ' to ' : ' from ');
  return element('li', {}, kind, arrow, spoken, name, about);
}

/** The versions of an entity, newest first, each with what was different from the one before. */
function story(history) {
  const entries = history.map((version, at) => {
    const before = history[at - 1];
    const gap = before?.validTo !== undefined && before.validTo < version.validFrom;
    const changes = before && !gap ? different(before, version) : [['=', before ? 'Created again' : 'Created'],
      ...lines(version).map((text) => ['+', text])];
    return { at: version.validFrom, who: version.changedBy, changes };
  });
  const last = history.at(-1);
  if (last?.validTo !== undefined) entries.push({ at: last.validTo, changes: [['=', 'Deleted']] });
  return element('ol', {}, ...entries.reverse().map(({ at, who, changes }) => element('li', {},
    element('p', { class: 'date', title: inWords(at, true) }, moment(at), who ? ` by ${who}` : ''),
    ...changes.slice(0, 50).map(([sign, text]) => element('p', { class: `change ${KINDS[sign]}` },
      sign === '=' ? undefined : element('span', { class: 'sign' }, sign === '+' ? '+ ' : '− '), text)))));
}

const KINDS = { '+': 'added', '-': 'removed', '=': 'other' };

function different(before, after) {
  const [old, now] = [new Set(lines(before)), new Set(lines(after))];
  return [
    ...(before.name === after.name ? [] : [['=', `Renamed from ${before.name} to ${after.name}`]]),
    ...(before.entityType === after.entityType ? [] : [['=', `Type changed from ${before.entityType} to ${after.entityType}`]]),
    ...lines(before).filter((text) => !now.has(text)).map((text) => ['-', text]),
    ...lines(after).filter((text) => !old.has(text)).map((text) => ['+', text]),
  ];
}

/** What is known in a version: its properties, then its observations. */
function lines({ properties = {}, observations }) {
  return [...Object.entries(properties).map(([key, value]) => `${key}: ${value}`), ...observations];
}

/** A document. `read(offset)` gives its text from there on, as much as comes at once. */
export function documentDetail(found, close, read) {
  const text = element('pre');
  const more = element('button', { type: 'button', class: 'more', hidden: true }, 'Read more');
  const said = element('div', { 'aria-live': 'polite' });
  const facts = [['Address', found.uri], ['Source', found.source], ['Collection', found.knowledgeBase],
    ['Size', typeof found.bytes === 'number' ? size(found.bytes) : undefined],
    ['Pieces', found.chunks], ['Stored', found.createdAt ? moment(new Date(found.createdAt).getTime()) : undefined],
    ['Version', found.version], ['Tags', (found.tags ?? []).join(', ')]];
  let offset = 0;
  const go = async () => {
    more.hidden = true;
    fill(said, note('Loading…'));
    try {
      const part = await read(offset);
      text.append(part.text ?? '');
      offset = part.nextOffset;
      more.hidden = offset === undefined;
      fill(said);
    } catch (failure) {
      fill(said, note(failure.message));
    }
  };
  more.addEventListener('click', go);
  detail(found.title || found.uri || `Document ${found.id}`, close, definitions(facts), text, said, more);
  go();
}

/** An agent. `read()` gives all of it: the list has only the beginning of its prompt. */
export async function agentDetail(found, close, read, describe) {
  const facts = [['Address', found.uri], ['Version', found.version]];
  const rest = element('div', { 'aria-live': 'polite' },
    found.description ? element('p', {}, found.description) : undefined, note('Loading…'));
  detail(found.title || found.name || found.uri, close, definitions(facts), rest);
  try {
    const { description, json_schema_extra: extra, properties, required, type } = await read();
    const tools = extra?.tools ?? [];
    const schema = properties === undefined ? undefined : JSON.stringify({ type, properties, required }, undefined, 2);
    fill(rest,
      section('Prompt', element('pre', {}, description ?? '')),
      section(`Tools (${number(tools.length)})`, tools.length > 0
        ? element('ul', { class: 'tools' }, ...tools.map((tool) => agentTool(tool, describe)))
        : note('No tools.')),
      extra?.model || extra?.tags ? definitions([['Model', extra.model], ['Tags', (extra.tags ?? []).join(', ')]]) : undefined,
      schema ? section('Answer format', element('pre', {}, schema)) : undefined);
  } catch (failure) {
    fill(rest, found.description ? element('p', {}, found.description) : undefined, note(failure.message));
  }
}

/** A tool of an agent: which server has it, what it is called, and what it is for. */
function agentTool(tool, describe) {
  const { mcp_server: server, tool_name: name, usage } = typeof tool === 'string' ? { tool_name: tool } : tool;
  const about = [describe(name), usage ? `Used ${usage}` : undefined].filter(Boolean);
  return element('li', {}, element('p', {}, server ? element('span', { class: 'kind' }, `${server} / `) : undefined,
    element('code', {}, name ?? '')), ...about.map((text) => element('p', { class: 'kind' }, text)));
}

function definitions(facts) {
  const told = facts.filter(([, value]) => value !== undefined && value !== null && value !== '');
  return element('dl', {}, ...told.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, String(value))]));
}

// ---- the rest

/** What the colours mean. A click on a type leaves only that. */
export function legend(types, chosen, choose) {
  const shown = types.slice(0, 9);
  fill(byId('legend'), ...shown.map(([type, colour, many]) => element('button', {
    type: 'button', 'aria-pressed': String(type === chosen), title: count(many, 'entity', 'entities'),
    onclick: () => choose(type === chosen ? undefined : type),
  }, dot(colour), element('span', {}, type))),
  types.length > shown.length ? element('span', { class: 'rest' }, `and ${count(types.length - shown.length, 'other type', 'other types')}`) : undefined);
}

/** What to do when nothing is remembered. */
export function nothingYet(endpoint) {
  const command = `claude mcp add --transport http memory ${endpoint}`;
  fill(byId('empty'),
    element('h2', {}, 'The memory is empty'),
    element('p', {}, 'Connect an assistant to ', element('code', {}, endpoint), ', for example with'),
    element('pre', {}, command),
    element('p', {}, 'and then tell it something to remember:'),
    element('blockquote', {}, '“Remember that our team meets on Tuesdays and that Ann leads it.”'),
    element('p', {}, 'What it stores appears here immediately.'));
}

/** Something is known, but no entity that could be drawn. */
export function noEntities(relations, documents, open) {
  fill(byId('empty'), element('h2', {}, 'There are no entities'),
    relations > 0 ? element('p', {}, `${count(relations, 'relation connects', 'relations connect')} names without an entity.`) : undefined,
    documents ? element('p', {}, 'There are documents: ',
      element('button', { type: 'button', class: 'link', onclick: open }, 'show them'), '.') : undefined);
}

/** The graph was empty at that moment. */
export function nothingThen() {
  fill(byId('empty'), element('h2', {}, 'The memory was empty at that time'), element('p', {}, 'Move the slider forward to see what was added.'));
}
