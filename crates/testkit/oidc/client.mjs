// A client of our MCP server that logs in at an issuer: the official TypeScript SDK, 1.x (`legacy`)
// or 2.x (`modern`).
//
// usage: client.mjs legacy|modern URL ISSUER
//
// Prints one line per check and ends with 1 when one failed.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const DEADLINE_MS = 900_000;
const CHECK_DEADLINE_MS = 240_000;
const REDIRECT = 'http://127.0.0.1:9/callback';
const TOOL = 'desk__greet';
const GREETING = 'Hello from the desk.';

const [era, url, issuer] = process.argv.slice(2);
if (!['legacy', 'modern'].includes(era) || issuer === undefined) {
  console.error('usage: client.mjs legacy|modern URL ISSUER');
  process.exit(2);
}

const SDKS = {
  legacy: ['client/index.js', 'client/streamableHttp.js', 'client/auth.js'].map(
    (path) => `@modelcontextprotocol/sdk/${path}`,
  ),
  modern: ['@modelcontextprotocol/client'],
};
const parts = await Promise.all(SDKS[era].map((path) => import(path)));
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = Object.assign({}, ...parts);

// What the SDK keeps of one login, in memory.
function login() {
  const kept = {};
  return {
    kept,
    redirectUrl: REDIRECT,
    // Without refresh tokens: a client that has one tries it first when it needs another scope.
    clientMetadata: {
      client_name: `a test of ${era}`,
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    state: () => (kept.state = randomUUID()),
    clientInformation: () => kept.client,
    saveClientInformation: (client) => void (kept.client = client),
    tokens: () => kept.tokens,
    saveTokens: (tokens) => void (kept.tokens = tokens),
    redirectToAuthorization: (page) => void (kept.page = page),
    saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
    codeVerifier: () => kept.verifier,
    discoveryState: () => kept.discovery,
    saveDiscoveryState: (state) => void (kept.discovery = state),
  };
}

// A person opens the page that the client was led to, and permits this much.
async function permits(provider, transport, scopes) {
  const page = provider.kept.page;
  assert.equal(page.origin, issuer, 'the page is of the issuer');
  assert.equal(page.searchParams.get('code_challenge_method'), 'S256');
  assert.equal(page.searchParams.get('resource'), url);
  const query = new URLSearchParams({ page: page.href, login: 'ann', permits: scopes });
  const answer = await fetch(`${issuer}/person?${query}`);
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const back = new URL(JSON.parse(text).to).searchParams;
  assert.equal(back.get('state'), provider.kept.state);
  await transport.finishAuth(era === 'modern' ? back : back.get('code'));
}

function opened(provider) {
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  const options = era === 'modern' ? { versionNegotiation: { mode: 'auto' } } : {};
  return { transport, client: new Client({ name: `oidc-${era}`, version: '1.0.0' }, options) };
}

const unauthorized = (error) => error instanceof UnauthorizedError;

// A client that was led to the issuer, where a person permitted this much.
async function connected(provider, scopes) {
  const first = opened(provider);
  await assert.rejects(first.client.connect(first.transport), unauthorized);
  await permits(provider, first.transport, scopes);
  await first.client.close();
  const second = opened(provider);
  await second.client.connect(second.transport);
  return second;
}

const call = (client) => client.callTool({ name: TOOL, arguments: {} });
const names = async (client) => (await client.listTools()).tools.map((tool) => tool.name);

const checks = {
  async logsInListsAndCalls() {
    const { client } = await connected(login(), 'read use');
    assert.ok((await names(client)).includes(TOOL));
    assert.equal((await call(client)).content[0].text, GREETING);
    await client.close();
  },

  async stepsUp() {
    const provider = login();
    const { client, transport } = await connected(provider, 'read');
    const before = provider.kept.tokens.access_token;
    assert.deepEqual(await names(client), [], 'who may only read can call nothing');
    await assert.rejects(call(client), unauthorized);
    assert.ok(provider.kept.page.searchParams.get('scope').split(' ').includes('use'));
    await permits(provider, transport, 'read use');
    assert.notEqual(provider.kept.tokens.access_token, before);
    assert.equal((await call(client)).content[0].text, GREETING);
    await client.close();
  },
};

async function within(ms, what, work) {
  const timer = new AbortController();
  const late = sleep(ms, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`${what} took longer than ${ms} ms`);
  });
  // The one that loses is not waited for.
  late.catch(() => {});
  try {
    return await Promise.race([work, late]);
  } finally {
    timer.abort();
  }
}

async function run() {
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await within(CHECK_DEADLINE_MS, name, check());
      console.log(`ok ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name}: ${error.stack ?? error}`);
    }
  }
  return failed;
}

process.exit((await within(DEADLINE_MS, 'everything', run())) === 0 ? 0 : 1);
