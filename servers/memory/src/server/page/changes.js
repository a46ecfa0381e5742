// What the reader changes: an observation is edited or forgotten, a change is undone, everything is exported.

import { confirm } from './confirm.js';
import { ago, byId, count, element, fill, inWords } from './dom.js';
import { note } from './panes.js';

/** How many changes the list shows before it asks. */
const SHOWN = 50;

/** A short text for a sentence. */
const short = (text) => (text.length > 120 ? `${text.slice(0, 119)}…` : text);

/** Asks for another text, and puts it in the place of the old one. */
export function editObservation(memory, name, old) {
  const text = element('textarea', { name: 'text', rows: 4, maxLength: 5000, required: true, value: old });
  return confirm({
    title: 'Edit observation',
    text: `Replaces this observation of “${name}”. The earlier text stays in the history.`,
    action: 'Save',
    fields: [element('label', { class: 'hidden', htmlFor: 'observation-text' }, 'Observation'),
      Object.assign(text, { id: 'observation-text' })],
    run: ({ text: changed }) => {
      if (changed.trim() === '') throw new Error('The observation must not be empty.');
      // Browsers end the lines of a text field with two characters.
      const plain = changed.replaceAll('\r\n', '\n');
      return plain === old ? undefined : memory.updateObservation(name, old, plain);
    },
  });
}

export function forgetObservation(memory, name, text) {
  return confirm({
    title: 'Forget this observation?',
    text: [`“${short(text)}”`, `It is removed from “${name}”. It stays in the history, and undo brings it back.`],
    action: 'Forget',
    danger: true,
    run: () => memory.forget(name, text),
  });
}

/** One change in a few words. */
function words({ id, what, who, at, about }) {
  const names = about.length > 0 ? `: ${about.slice(0, 3).join(', ')}${about.length > 3 ? ', …' : ''}` : '';
  return `Change ${id}, ${what}${names}${who ? ` by ${who}` : ''}, ${ago(at)}`;
}

const KINDS = [['entities', 'entity', 'entities'], ['observations', 'observation', 'observations'],
  ['properties', 'property', 'properties'], ['relations', 'relation', 'relations'],
  ['documents', 'document', 'documents'], ['agents', 'agent', 'agents']];

/** `2 entities, 1 relation` */
function amounts(counts) {
  return KINDS.filter(([kind]) => counts[kind] > 0).map(([kind, one, many]) => count(counts[kind], one, many)).join(', ');
}

/** What a change did, or what undoing it will do. */
function effects({ added, removed }, verbs) {
  return [[verbs[0], amounts(added)], [verbs[1], amounts(removed)]]
    .filter(([, some]) => some !== '').map(([verb, some]) => `${verb} ${some}`).join('; ');
}

/** Asks, and undoes a change. If another change is in the way, says which. */
export function undoChange(memory, change) {
  const effect = effects(change, ['removes', 'restores']);
  return confirm({
    title: `Undo change ${change.id}?`,
    text: [words(change), `Undoing it ${effect || 'changes nothing'}. You can undo that, too.`],
    action: 'Undo',
    danger: true,
    run: async () => {
      try {
        await memory.undo(change.id);
      } catch (failure) {
        const other = Number(/undo change (\d+) first/.exec(failure.message)?.[1]);
        const blocking = other ? await memory.change(other).catch(() => undefined) : undefined;
        if (blocking) failure.details = [`In the way: ${words(blocking)}`];
        throw failure;
      }
    },
  });
}

/** The changes, newest first. `undo(change)` is called with the one to be undone. */
export function changeList(parent, { changes, more }, undo, showMore) {
  if (changes.length === 0) {
    fill(parent, note('Nothing has changed yet.'));
    return;
  }
  const last = changes.find((change) => change.undoneBy === undefined && change.undoes === undefined && touched(change));
  const entries = changes.map((change) => {
    const undone = change.undoneBy !== undefined;
    const button = undone || !touched(change) ? undefined : element('button', {
      type: 'button', class: 'link', 'aria-label': `Undo change ${change.id}`, onclick: () => undo(change),
    }, 'Undo');
    const item = element('li', { class: undone ? 'made undone' : 'made' },
      element('p', { class: 'name' }, change.about.length > 0 ? change.about.join(', ') : change.what),
      element('p', { class: 'kind' }, effects(change, ['added', 'removed']) || 'changed nothing'),
      element('p', { class: 'kind', title: inWords(change.at, true) },
        `${change.id} · ${change.what}${change.who ? ` · ${change.who}` : ''} · ${ago(change.at)}`),
      undone ? element('p', { class: 'kind' }, `Undone by change ${change.undoneBy}`) : undefined,
      change.undoes === undefined ? undefined : element('p', { class: 'kind' }, `Undoes change ${change.undoes}`),
      button);
    item.dataset.change = change.id;
    return item;
  });
  fill(parent,
    last ? element('button', { type: 'button', id: 'undo-last', class: 'action', onclick: () => undo(last) }, 'Undo last change') : undefined,
    element('ol', { class: 'changes' }, ...entries),
    more ? element('button', { type: 'button', class: 'more', onclick: () => showMore(changes.length + SHOWN) }, 'Show more') : undefined);
}

const touched = ({ added, removed }) => amounts(added) !== '' || amounts(removed) !== '';

export const FIRST = SHOWN;

/** Asks what to export, and downloads it. */
export function exportMemory(memory) {
  const choice = (value, label, explained, checked) => element('label', { class: 'choice' },
    element('input', { type: 'radio', name: 'what', value, checked }),
    element('span', {}, element('strong', {}, label), element('span', { class: 'kind' }, explained)));
  return confirm({
    title: 'Export the memory',
    text: 'Downloads a JSONL file to this computer. The memory is not changed.',
    action: 'Download',
    fields: [
      choice('now', 'Current graph', 'Entities and relations as they are now. server-memory can read it.', true),
      choice('history', 'Everything with history', 'All versions, documents and agents, to import into an empty memory.', false),
    ],
    run: async ({ what }) => {
      const text = await memory.export(what === 'history');
      const day = new Date().toISOString().slice(0, 10);
      download(text, `memory-${day}${what === 'history' ? '-history' : ''}.jsonl`);
    },
  });
}

function download(text, name) {
  const url = URL.createObjectURL(new Blob([text, text === '' ? '' : '\n'], { type: 'application/jsonl' }));
  const link = element('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  byId('confirm').dataset.downloaded = name;
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
