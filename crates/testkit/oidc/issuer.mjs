// An issuer of access tokens in the tests of our server: `oidc-provider` with client credentials,
// the authorization code, dynamic registration and resource indicators. Beside it there is a person
// who logs in with a browser and decides what a client may do.
//
// usage: issuer.mjs
//
// Prints where it listens, and ends with its standard input. `GET /person?page=..&login=..&permits=..`
// lets the person open the page of an authorization request, log in under this name and permit these
// scopes; the answer says where the browser was sent in the end.

import { generateKeyPairSync } from 'node:crypto';
import http from 'node:http';
import Provider, { errors } from 'oidc-provider';

// What a token is for that all doors take; one for `/mcp` has its address.
const API = 'https://waypost.test/api';
const MCP = /^http:\/\/127\.0\.0\.1:\d+\/mcp$/;
const SCOPES = ['read', 'use', 'answer', 'define', 'operate', 'admin'];
const LIFETIME_S = 600;
// A login is two forms with a few redirects around them.
const STEPS_MAX = 20;

let issuer;
let provider;
let issue;

function signing(kid, alg, type, options) {
  const jwk = generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' });
  return { ...jwk, kid, alg, use: 'sig' };
}

// Who a resource is, and how its tokens look: each algorithm is used by one of them.
function resourceServer(_ctx, indicator) {
  const isMcp = MCP.test(indicator);
  if (!isMcp && indicator !== API) throw new errors.InvalidTarget();
  return {
    scope: SCOPES.join(' '),
    audience: indicator,
    accessTokenFormat: 'jwt',
    accessTokenTTL: LIFETIME_S,
    jwt: { sign: { alg: isMcp ? 'ES256' : 'RS256' } },
  };
}

const configuration = {
  clients: [
    {
      client_id: 'robot',
      client_secret: 'a-secret-of-these-tests-alone-0123456789',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    },
    {
      client_id: 'known',
      grant_types: ['authorization_code'],
      redirect_uris: ['http://127.0.0.1:9/callback'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
  ],
  cookies: { keys: ['a-key-of-these-tests-alone'] },
  jwks: {
    keys: [
      signing('first', 'RS256', 'rsa', { modulusLength: 2048 }),
      signing('second', 'ES256', 'ec', { namedCurve: 'P-256' }),
    ],
  },
  scopes: ['openid', ...SCOPES],
  findAccount: async (_ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  // A token of a client's own has no account.
  extraTokenClaims: async (_ctx, token) => ({ roles: [token.accountId ? 'staff' : 'robots'] }),
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    registration: { enabled: true },
    resourceIndicators: { enabled: true, getResourceServerInfo: resourceServer },
  },
};

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function send(response, status, type, text) {
  response.writeHead(status, { 'content-type': type });
  response.end(text);
}

const words = (text) => (text ?? '').split(' ').filter(Boolean);

// The two forms of a login: who it is, and what the client may do.
async function interact(request, response) {
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  if (request.method === 'GET') {
    const scopes = words(params.scope).map((scope) => `<input name="scope" value="${scope}">`);
    const fields = prompt.name === 'login' ? '<input name="login">' : scopes.join('');
    const page = `<form method="post"><b>${prompt.name}</b>${fields}</form>`;
    return send(response, 200, 'text/html', page);
  }
  const form = new URLSearchParams(await bodyOf(request));
  if (prompt.name === 'login') {
    const login = { accountId: form.get('login') };
    const alone = { mergeWithLastSubmission: false };
    return provider.interactionFinished(request, response, { login }, alone);
  }
  const grantId = await granted(params, session.accountId, form.getAll('scope'));
  const both = { mergeWithLastSubmission: true };
  return provider.interactionFinished(request, response, { consent: { grantId } }, both);
}

// What was asked for is permitted or refused, so that it is not asked for again.
async function granted(params, accountId, permitted) {
  const grant = new provider.Grant({ accountId, clientId: params.client_id });
  const asked = words(params.scope);
  const isGiven = (scope) => scope === 'openid' || permitted.includes(scope);
  const given = asked.filter(isGiven).join(' ');
  const refused = asked.filter((scope) => !isGiven(scope)).join(' ');
  grant.addOIDCScope(given);
  if (refused) grant.rejectOIDCScope(refused);
  for (const resource of [params.resource ?? []].flat()) {
    grant.addResourceScope(resource, given);
    if (refused) grant.rejectResourceScope(resource, refused);
  }
  return grant.save();
}

// A browser that remembers nothing of earlier visits.
function browser() {
  const jar = new Map();
  const keep = (line) => {
    const [pair, ...attributes] = line.split(';').map((part) => part.trim());
    const name = pair.slice(0, pair.indexOf('='));
    const path = attributes.find((text) => /^path=/i.test(text))?.slice('path='.length) ?? '/';
    const place = `${name} ${path}`;
    if (pair.endsWith('=')) jar.delete(place);
    else jar.set(place, { pair, path });
  };
  return async (url, init = {}) => {
    const fitting = [...jar.values()].filter(({ path }) => url.pathname.startsWith(path));
    const headers = fitting.length > 0 ? { cookie: fitting.map(({ pair }) => pair).join('; ') } : {};
    const answer = await fetch(url, { ...init, headers, redirect: 'manual' });
    answer.headers.getSetCookie().forEach(keep);
    return answer;
  };
}

// Where a person is sent who opens this page, logs in and permits these scopes.
async function visited(page, login, permits) {
  const open = browser();
  let url = new URL(page);
  let answer = await open(url);
  for (let step = 0; step < STEPS_MAX; step += 1) {
    const to = answer.headers.get('location');
    const text = await answer.text();
    if (to !== null) {
      url = new URL(to, url);
      if (url.origin !== issuer) return url.href;
      answer = await open(url);
      continue;
    }
    if (!answer.ok) throw new Error(`${url.pathname} answers ${answer.status}: ${text}`);
    const form = new URLSearchParams();
    if (text.includes('name="login"')) form.set('login', login);
    for (const [, scope] of text.matchAll(/name="scope" value="([^"]+)"/g)) {
      if (permits.includes(scope)) form.append('scope', scope);
    }
    answer = await open(url, { method: 'POST', body: form });
  }
  throw new Error(`the login does not end: it is at ${url}`);
}

async function person({ searchParams }, response) {
  const permits = words(searchParams.get('permits'));
  const to = await visited(searchParams.get('page'), searchParams.get('login'), permits);
  send(response, 200, 'application/json', JSON.stringify({ to }));
}

async function answer(request, response) {
  const url = new URL(request.url, issuer);
  if (url.pathname === '/person') return person(url, response);
  if (url.pathname.startsWith('/interaction/')) return interact(request, response);
  return issue(request, response);
}

const web = http.createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(error);
    if (!response.headersSent) send(response, 500, 'text/plain', String(error));
  });
});
web.listen(0, '127.0.0.1', () => {
  issuer = `http://127.0.0.1:${web.address().port}`;
  provider = new Provider(issuer, configuration);
  issue = provider.callback();
  provider.on('server_error', (_ctx, error) => console.error(error));
  console.log(`issuer listening on ${issuer}`);
});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
