// A client of MCP, revision 2026-07-28: every request stands for itself, and says who asks.

const VERSION = '2026-07-28';
const PATIENCE = 60_000;
/** Most pages of a list that are asked for. */
const MOST_PAGES = 50;

/** A failure with a sentence for the reader. */
export class Failure extends Error {}

export class Mcp {
  #url;
  #token;
  #askForToken;
  #asking;
  #next = 1;

  /** A client of the endpoint at `url`. `askForToken(why)` gives a token when the endpoint wants one. */
  constructor(url, askForToken) {
    this.#url = url;
    this.#askForToken = askForToken;
  }

  /** The result of a request. */
  async request(method, params = {}, name) {
    const { id, response } = await this.#send(method, params, name, AbortSignal.timeout(PATIENCE));
    const message = await answer(response, id);
    if (message.error) throw new Failure(sentence(message.error.message ?? 'The server refused without a reason'));
    return message.result;
  }

  /** What a tool answers: its structured content, or its text where it has none. */
  async tool(name, args = {}) {
    const result = await this.request('tools/call', { name, arguments: args }, name);
    const text = (result.content ?? []).filter((block) => block.type === 'text').map((block) => block.text).join('\n');
    if (result.isError) throw new Failure(sentence(text || `${name} failed`));
    return result.structuredContent ?? { text };
  }

  /** All entries of a list: `list('tools')`. `meta` says more about which. */
  async list(kind, meta = {}) {
    const all = [];
    let cursor;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const result = await this.request(`${kind}/list`, { ...(cursor === undefined ? {} : { cursor }), _meta: meta });
      all.push(...(result[kind] ?? []));
      cursor = result.nextCursor;
      if (cursor === undefined) break;
    }
    return all;
  }

  /** A resource that is JSON. */
  async resource(uri) {
    const result = await this.request('resources/read', { uri }, uri);
    const text = result.contents?.[0]?.text ?? '';
    try {
      return JSON.parse(text);
    } catch {
      throw new Failure(`What is at ${uri} cannot be read.`);
    }
  }

  /** Calls `told` whenever one of these resources has changed, until `signal` fires or the server ends it. */
  async listen(uris, told, signal) {
    const params = { notifications: { resourceSubscriptions: uris } };
    const { response } = await this.#send('subscriptions/listen', params, undefined, signal);
    for await (const message of events(response)) {
      if (message.error) throw new Failure(sentence(message.error.message));
      if (message.method === 'notifications/resources/updated') told();
    }
  }

  async #send(method, params, name, signal) {
    const id = this.#next;
    this.#next += 1;
    const meta = {
      'io.modelcontextprotocol/protocolVersion': VERSION,
      'io.modelcontextprotocol/clientInfo': { name: 'memory-page', title: 'Memory page', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...params._meta, ...meta } } });
    const headers = {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': VERSION,
      'Mcp-Method': method,
    };
    if (name !== undefined) headers['Mcp-Name'] = headerValue(name);
    for (;;) {
      const token = this.#token;
      if (token !== undefined) headers.Authorization = `Bearer ${token}`;
      const response = await this.#fetch({ method: 'POST', headers, body, signal, cache: 'no-store' });
      if (response.status !== 401) return { id, response };
      await this.#login(token);
    }
  }

  async #fetch(options) {
    try {
      return await fetch(this.#url, options);
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      if (error.name === 'TimeoutError') throw new Failure('The server took too long to answer.');
      throw new Failure('The server does not answer. Is it still running?');
    }
  }

  /** Asks for a token once, however many requests want one. */
  async #login(refused) {
    // Another request may have got one meanwhile.
    if (this.#token !== refused) return;
    this.#asking ??= this.#askForToken(refused === undefined ? undefined : 'That token was not accepted.');
    try {
      this.#token = await this.#asking;
    } finally {
      this.#asking = undefined;
    }
  }
}

/** The response with this id, which may come alone or behind notifications. */
async function answer(response, id) {
  const type = response.headers.get('Content-Type') ?? '';
  if (type.startsWith('text/event-stream')) {
    for await (const message of events(response)) {
      if (message.id === id && (message.result || message.error)) return message;
    }
    throw new Failure('The server broke off before it had answered.');
  }
  if (type.startsWith('application/json')) {
    try {
      return await response.json();
    } catch {
      throw new Failure('The server broke off before it had answered.');
    }
  }
  throw new Failure(`The server answered with status ${response.status}.`);
}

/** The messages of an event stream. */
async function* events(response) {
  if (!(response.headers.get('Content-Type') ?? '').startsWith('text/event-stream')) {
    yield await response.json();
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let kept = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    kept += value;
    const parts = kept.split(/\r?\n\r?\n/);
    kept = parts.pop();
    for (const part of parts) {
      const lines = part.split(/\r?\n/).filter((line) => line.startsWith('data:'));
      const data = lines.map((line) => line.slice(5).replace(/^ /, '')).join('\n');
      if (data !== '') yield JSON.parse(data);
    }
  }
}

/** A text as the value of a header: as it is where that is safe, else in base64. */
function headerValue(text) {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?')) return text;
  return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;
}

/** With a full stop, unless it ends some other way. */
function sentence(text) {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
