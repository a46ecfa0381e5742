// The memory as this page needs it: the graph now and then, what is found, documents and agents.

import { Failure } from './mcp.js';

/** How many entities of past graphs are kept, all graphs together. */
const KEPT = 200_000;

/** Most documents that are listed. */
const MOST_DOCUMENTS = 2000;

/** Under which name a list of resources is asked for with or without those that are one's own. */
const OWN_RESOURCES = 'dev.tidegate/own-resources';

/** What an older server, or one with fewer parts, does not have. */
export class Missing extends Failure {}

export class Memory {
  #mcp;
  #prefix;
  #resources = [];
  #descriptions = new Map();
  #past = new Map();
  #weight = 0;

  constructor(mcp) {
    this.#mcp = mcp;
  }

  /** Finds the tools of the memory, whatever a gateway has put before their names. */
  async open() {
    const tools = await this.#mcp.list('tools');
    const found = tools.find((tool) => tool.name === 'read_graph')
      ?? tools.find((tool) => tool.name.endsWith('read_graph'));
    this.#prefix = found ? found.name.slice(0, -'read_graph'.length) : await this.#guess();
    this.#descriptions = new Map(tools.map((tool) => [tool.name, tool.description]));
    // Not one for each entity and document: there may be very many.
    this.#resources = await this.#mcp.list('resources', { [OWN_RESOURCES]: false }).catch(() => []);
  }

  /** A gateway need not list the tools that can be called. */
  async #guess() {
    for (const prefix of ['', 'memory_']) {
      const answer = await this.#mcp.tool(`${prefix}search_nodes`, { query: 'memory' }).catch(() => undefined);
      if (Array.isArray(answer?.entities)) return prefix;
    }
    throw new Failure('This endpoint has no memory: it has no tool read_graph.');
  }

  /** Everything that is known now. */
  now() {
    return this.#tool('read_graph');
  }

  /** What was known at a moment. Moments are looked at again and again, so they are kept for a while. */
  async at(ms) {
    const known = this.#past.get(ms);
    if (known) {
      // The one that was looked at last goes last.
      this.#past.delete(ms);
      this.#past.set(ms, known);
      return known;
    }
    const { graph } = await this.#tool('get_graph_at_time', { timestamp: ms });
    this.#past.set(ms, graph);
    this.#weight += graph.entities.length;
    for (const [oldest, dropped] of this.#past) {
      if (this.#weight <= KEPT || oldest === ms) break;
      this.#past.delete(oldest);
      this.#weight -= dropped.entities.length;
    }
    return graph;
  }

  /** The names of the entities that are found. */
  async search(query) {
    const { entities } = await this.#tool('search_nodes', { query });
    return entities.map((entity) => entity.name);
  }

  async history(name) {
    const { history } = await this.#tool('get_entity_history', { entityName: name });
    return history;
  }

  /** The id of an entity, which stays when its name changes. */
  async id(name) {
    const { history } = await this.#tool('get_entity_history', { entityName: name, limit: 1 });
    return history.at(-1)?.id;
  }

  /** What a tool does, if it is listed. */
  describe(tool) {
    return this.#descriptions.get(this.#prefix + tool) ?? this.#descriptions.get(tool);
  }

  updateObservation(entityName, observation, newObservation) {
    return this.#tool('update_observation', { entityName, observation, newObservation });
  }

  async forget(entityName, text) {
    const { deleted } = await this.#tool('delete_observations', { deletions: [{ entityName, observations: [text] }] });
    if (deleted === 0) throw new Failure('It is already gone: somebody else has changed it.');
  }

  /** The last changes, newest first, and whether there are more. */
  async changes(most) {
    const all = [];
    let cursor;
    do {
      const page = { limit: Math.min(most - all.length, 200), ...(cursor === undefined ? {} : { cursor }) };
      const told = await this.#tool('list_changes', page);
      all.push(...told.changes);
      cursor = told.nextCursor;
    } while (cursor !== undefined && all.length < most);
    return { changes: all, more: cursor !== undefined };
  }

  /** One change. */
  async change(id) {
    const { changes } = await this.#tool('list_changes', { limit: 1, cursor: String(id + 1) });
    return changes.find((change) => change.id === id);
  }

  undo(change) {
    return this.#tool('undo', { change });
  }

  /** The lines of a file: what is known now, or everything with its history. */
  async export(history) {
    if (history) return (await this.#tool('export_graph', { history: true })).jsonl;
    const parts = [];
    let cursor;
    do {
      const told = await this.#tool('export_graph', cursor === undefined ? {} : { cursor });
      if (told.jsonl !== '') parts.push(told.jsonl);
      cursor = told.nextCursor;
    } while (cursor !== undefined);
    return parts.join('\n');
  }

  /** When the memory changed. */
  timeline() {
    return this.#mcp.resource(this.#uri('memory://timeline'));
  }

  /** Calls `told` when the graph has changed. */
  listen(told, signal) {
    return this.#mcp.listen([this.#uri('memory://knowledge-graph')], told, signal);
  }

  /** The documents, newest first. */
  async documents(most = MOST_DOCUMENTS) {
    const all = [];
    let cursor;
    do {
      const page = { limit: Math.min(most, 100), ...(cursor === undefined ? {} : { cursor }) };
      const told = await this.#optional('list_documents', page, 'This memory has no documents.');
      all.push(...(told.documents ?? []));
      cursor = told.nextCursor;
    } while (cursor !== undefined && all.length < most);
    return all;
  }

  /** The documents that say something, those whose contents do after those whose title does; all without a query. */
  async findDocuments(query) {
    const all = await this.documents();
    if (query === '') return all;
    const named = all.filter(({ title, source, uri, tags }) => holds(query, title, source, uri, ...(tags ?? [])));
    const { results } = await this.#tool('search_knowledge_base', { query, schema: 'documents', limit: 20 });
    const said = results.map(({ metadata }) => all.find(({ id }) => id === metadata?.id));
    return [...new Set([...named, ...said.filter(Boolean)])];
  }

  /** The text of a document from a place on. A long one comes in parts: `nextOffset` says where it goes on. */
  document(id, offset) {
    return this.#tool('get_document', offset > 0 ? { id, offset } : { id });
  }

  /** Those that come with the server, and those that were added. */
  async agents() {
    if (!this.#find('my-agents://list')) throw new Missing('This memory keeps no agents.');
    return (await this.#tool('list_agents', {})).agents;
  }

  /** The agents that fit; all without a query. */
  async findAgents(query) {
    const all = await this.agents();
    return query === '' ? all : all.filter(({ name, title, description }) => holds(query, name, title, description));
  }

  /** All about an agent: its prompt, its tools, and what its answers look like. */
  async agent(uri) {
    const { agentlet } = await this.#tool('get_agent', { agent_uri: uri });
    return agentlet;
  }

  #tool(name, args) {
    return this.#mcp.tool(this.#prefix + name, args);
  }

  /** A tool that may not be there. */
  async #optional(name, args, absent) {
    try {
      return await this.#tool(name, args);
    } catch (failure) {
      // Unknown tools are refused by name.
      if (failure instanceof Failure && /unknown|not found|no tool/i.test(failure.message)) throw new Missing(absent);
      throw failure;
    }
  }

  /** A gateway with two servers of the same addresses puts a name in front. */
  #find(uri) {
    const listed = this.#resources.map((resource) => resource.uri);
    return listed.includes(uri) ? uri : listed.find((other) => other.endsWith(`+${uri}`));
  }

  #uri(uri) {
    return this.#find(uri) ?? uri;
  }
}

/** Whether one of the texts has the words. */
function holds(query, ...texts) {
  const wanted = query.toLowerCase();
  return texts.some((text) => text?.toLowerCase().includes(wanted));
}
