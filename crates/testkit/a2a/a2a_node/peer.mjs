// A peer in the tests of our A2A server: the official JavaScript SDK 1.3.
//
// usage: peer.mjs URL GUARDED
//
// URL is a server with the test agent. It is talked to by every interface of its card that this peer
// speaks: JSON-RPC and HTTP with JSON, of 1.0 and, where the card has it, of 0.3. GUARDED is a server
// that takes every kind of credential; the signature of its card is checked. Prints one line per check
// and ends with 1 when one failed.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ListTasksRequest,
  SendMessageRequest,
  Task,
  TaskState,
  verifyAgentCardSignature,
} from '@a2a-js/sdk';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import {
  PushNotificationNotSupportedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';

const DEADLINE_MS = 1_500_000;
const CHECK_DEADLINE_MS = 240_000;
const BINDINGS = ['JSONRPC', 'HTTP+JSON'];
const NO_TASK = 'run_00000000000000000000000000000001';

function request(text, task, configuration) {
  const ids = task === undefined ? {} : { taskId: task.id, contextId: task.contextId };
  const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...ids };
  return SendMessageRequest.fromJSON({ message, configuration });
}

function stateOf(status) {
  return TaskState[status.state].replace('TASK_STATE_', '');
}

function textOf(parts) {
  const texts = parts.filter((part) => part.content?.$case === 'text');
  return texts.map((part) => part.content.value).join('');
}

/** Each event of a stream in a word. */
function words(events) {
  return events.map(({ payload }) => {
    switch (payload?.$case) {
      case 'task':
        return `task ${stateOf(payload.value.status)}`;
      case 'statusUpdate':
        return stateOf(payload.value.status);
      case 'artifactUpdate':
        return `artifact ${textOf(payload.value.artifact.parts)}`;
      default:
        return payload?.$case;
    }
  });
}

async function all(events) {
  const seen = [];
  for await (const event of events) seen.push(event);
  return seen;
}

async function task(talk, text, of, configuration) {
  const result = await talk.client.sendMessage(request(text, of, configuration));
  assert.ok('status' in result, `no task: ${JSON.stringify(result)}`);
  return result;
}

/** Does something that must fail with an error of this kind. */
async function fails(talk, kind, work) {
  let result;
  try {
    result = await work();
  } catch (error) {
    // The client of 0.3 over HTTP tells some of them by their status alone.
    const isKnown = error instanceof kind || talk.isOld;
    assert.ok(isKnown, `another error than ${kind.name}: ${error?.stack ?? error}`);
    return;
  }
  assert.fail(`no ${kind.name}: ${JSON.stringify(result)}`);
}

/** A receiver of webhooks: headers and bodies of what it got. */
async function receiver() {
  const got = [];
  const server = http.createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    got.push({ headers: request.headers, body: JSON.parse(Buffer.concat(pieces).toString()) });
    response.writeHead(204).end();
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  server.unref();
  return { got, url: `http://127.0.0.1:${server.address().port}/hook` };
}

/** The state that a notification tells: an update in 1.0, a whole task in 0.3. */
function toldState(body) {
  const { status } = body.statusUpdate ?? body;
  return String(status?.state).toUpperCase().replace('TASK_STATE_', '');
}

/** A webhook is made, read, listed, notified and deleted. */
async function pushed(talk, asks) {
  const { got, url } = await receiver();
  const ids = { taskId: asks.id, id: 'mine', tenant: '' };
  const authentication = { scheme: 'Bearer', credentials: 'a-credential' };
  const config = { ...ids, url, token: 'a-token', authentication };
  const made = await talk.client.createTaskPushNotificationConfig(config);
  assert.deepEqual([made.id, made.url, made.taskId], ['mine', url, asks.id]);
  const read = await talk.client.getTaskPushNotificationConfig(ids);
  assert.deepEqual([read.url, read.authentication?.credentials || ''], [url, '']);
  const every = { taskId: asks.id, tenant: '', pageSize: 0, pageToken: '' };
  const { configs } = await talk.client.listTaskPushNotificationConfig(every);
  assert.deepEqual(configs.map((one) => one.id), ['mine']);
  await task(talk, 'this', asks);
  while (!got.some(({ body }) => toldState(body) === 'COMPLETED')) await sleep(50);
  const { headers } = got.at(-1);
  assert.equal(headers.authorization, 'Bearer a-credential');
  assert.equal(headers['x-a2a-notification-token'], 'a-token');
  await talk.client.deleteTaskPushNotificationConfig(ids);
  const again = () => talk.client.getTaskPushNotificationConfig(ids);
  await fails(talk, TaskNotFoundError, again);
}

const CHECKS = {
  async send(talk) {
    const made = await task(talk, 'tck-artifact-data');
    assert.equal(stateOf(made.status), 'COMPLETED');
    const [part] = made.artifacts[0].parts;
    assert.deepEqual(part.content, { $case: 'data', value: { key: 'value', count: 42 } });
    const got = await talk.client.getTask({ id: made.id, tenant: '' });
    assert.deepEqual(Task.toJSON(got).artifacts, Task.toJSON(made).artifacts);
    const message = await talk.client.sendMessage(request('tck-message-response'));
    assert.ok('messageId' in message && textOf(message.parts) !== '', JSON.stringify(message));
  },

  async stream(talk) {
    const events = await all(talk.client.sendMessageStream(request('tck-stream-chunked')));
    const told = words(events);
    assert.match(told[0], /^task /);
    assert.deepEqual(told.slice(-3), ['artifact chunk-1', 'artifact chunk-2', 'COMPLETED']);
    const id = events[0].payload.value.id;
    const got = await talk.client.getTask({ id, tenant: '' });
    assert.equal(textOf(got.artifacts[0].parts), 'chunk-1chunk-2');
    const lone = await all(talk.client.sendMessageStream(request('tck-message-response')));
    assert.deepEqual(words(lone), ['message']);
  },

  async inputAndResume(talk) {
    const asks = await task(talk, 'tck-input-required');
    assert.equal(stateOf(asks.status), 'INPUT_REQUIRED');
    assert.notEqual(textOf(asks.status.message.parts), '');
    const done = await task(talk, 'this', asks);
    assert.deepEqual([done.id, stateOf(done.status)], [asks.id, 'COMPLETED']);
    const events = await all(talk.client.sendMessageStream(request('tck-input-required')));
    assert.equal(words(events).at(-1), 'INPUT_REQUIRED');
    const again = request('that', events[0].payload.value);
    assert.equal(words(await all(talk.client.sendMessageStream(again))).at(-1), 'COMPLETED');
  },

  async reconnect(talk) {
    const events = talk.client.sendMessageStream(request('tck-long-running'));
    const { value: first } = await events.next();
    await events.return();
    assert.equal(first.payload.$case, 'task');
    const id = first.payload.value.id;
    const told = words(await all(talk.client.resubscribeTask({ id, tenant: '' })));
    assert.match(told[0], /^task /);
    assert.equal(told.at(-1), 'COMPLETED');
  },

  async cancel(talk) {
    const begun = await task(talk, 'tck-cancel', undefined, { returnImmediately: true });
    const over = await talk.client.cancelTask({ id: begun.id, tenant: '' });
    assert.equal(stateOf(over.status), 'CANCELED');
    const { id } = await task(talk, 'tck-complete-task');
    await fails(talk, TaskNotCancelableError, () => talk.client.cancelTask({ id, tenant: '' }));
  },

  async errors(talk) {
    const missing = { id: NO_TASK, tenant: '' };
    await fails(talk, TaskNotFoundError, () => talk.client.getTask(missing));
    const done = await task(talk, 'tck-complete-task');
    await fails(talk, UnsupportedOperationError, () => task(talk, 'more', done));
    assert.equal(stateOf((await task(talk, 'tck-reject-task')).status), 'REJECTED');
    assert.equal(stateOf((await task(talk, 'tck-task-failure')).status), 'FAILED');
  },

  async lists(talk) {
    if (talk.isOld) return; // The client has no such method there.
    const made = await task(talk, 'tck-artifact-data');
    await task(talk, 'tck-complete-task');
    const { contextId } = made;
    const list = (wanted) => talk.client.listTasks(ListTasksRequest.fromJSON(wanted));
    const page = await list({ contextId, includeArtifacts: true });
    assert.deepEqual([page.tasks.map((one) => one.id), page.totalSize], [[made.id], 1]);
    const first = await list({ pageSize: 1 });
    assert.ok(first.nextPageToken !== '' && first.totalSize > 1, JSON.stringify(first));
    const pageToken = first.nextPageToken;
    const second = await list({ pageSize: 1, pageToken });
    assert.notEqual(second.tasks[0].id, first.tasks[0].id);
  },

  async extendedCard(talk) {
    const card = await talk.client.getAgentCard();
    assert.ok(card.skills.length > 0);
  },

  async push(talk) {
    const asks = await task(talk, 'tck-input-required');
    if (talk.card.capabilities?.pushNotifications) {
      await pushed(talk, asks);
      return;
    }
    const config = { taskId: asks.id, url: 'https://example.com/hook', id: '', token: '' };
    const make = () => talk.client.createTaskPushNotificationConfig({ ...config, tenant: '' });
    await fails(talk, PushNotificationNotSupportedError, make);
  },
};

/** A card with schemes is signed. It is checked as it was sent: of one that was read already, the
 * verifier drops the schemes. */
async function guardedSignature(url) {
  const card = await (await fetch(`${url}/.well-known/agent-card.json`)).json();
  const kinds = Object.values(card.securitySchemes).map((scheme) => scheme.type);
  assert.deepEqual(kinds.sort(), ['apiKey', 'http', 'oauth2', 'openIdConnect']);
  await signature(url, card);
}

/** The card is signed by a key of the key set, and another card is not. */
async function signature(url, card) {
  const keySet = `${url}/.well-known/jwks.json`;
  const { keys } = await (await fetch(keySet)).json();
  const verify = verifyAgentCardSignature(async (kid, jku) => {
    assert.equal(jku, keySet);
    return keys.find((key) => key.kid === kid);
  });
  await verify(card);
  await assert.rejects(verify({ ...card, name: 'Another' }));
}

/** 0 for a check that passed, 1 for one that failed; one does not end the others. */
async function passed(name, check) {
  const late = sleep(CHECK_DEADLINE_MS, undefined, { ref: false }).then(() => {
    throw new Error(`not over within ${CHECK_DEADLINE_MS} ms`);
  });
  try {
    await Promise.race([check(), late]);
  } catch (error) {
    console.log(`FAILED ${name}: ${error?.stack ?? error}`);
    return 1;
  }
  console.log(`ok ${name}`);
  return 0;
}

/** All checks by all interfaces; how many failed. */
async function allChecks(url, guarded) {
  const options = { legacyCompat: { enabled: true } };
  const card = await new DefaultAgentCardResolver(options).resolve(url);
  const transports = [new JsonRpcTransportFactory(options), new RestTransportFactory(options)];
  const cardResolver = new DefaultAgentCardResolver(options);
  const factory = new ClientFactory({ transports, cardResolver });
  const spoken = card.supportedInterfaces.filter((one) => BINDINGS.includes(one.protocolBinding));
  const names = spoken.map((one) => `${one.protocolBinding} ${one.protocolVersion}`);
  assert.ok(names.includes('JSONRPC 1.0') && names.includes('HTTP+JSON 1.0'), names.join());
  let failed = await passed('signature of a card with schemes', () => guardedSignature(guarded));
  if (card.signatures.length > 0) failed += await passed('signature', () => signature(url, card));
  for (const one of spoken) {
    const own = { ...card, supportedInterfaces: [one] };
    const client = await factory.createFromAgentCard(own);
    const talk = { card: own, client, isOld: one.protocolVersion.startsWith('0.') };
    for (const [check, run] of Object.entries(CHECKS)) {
      const name = `${one.protocolBinding} ${one.protocolVersion}: ${check}`;
      failed += await passed(name, () => run(talk));
    }
  }
  return failed;
}

setTimeout(() => {
  console.log(`FAILED: not over within ${DEADLINE_MS} ms`);
  process.exit(1);
}, DEADLINE_MS).unref();
const failed = await allChecks(process.argv[2], process.argv[3]);
process.exit(failed === 0 ? 0 : 1);
