// A remote agent in the tests of our A2A client: the official JavaScript SDK 1.3.
//
// usage: agent.mjs
//
// Prints where it listens, and ends when its standard input does. Its cards are at
// `/cards/NAME.json`, each with one interface: `rpc` and `rest` of 1.0, `old-rpc` and `old-rest` of
// 0.3. It does what the first words of a message say.

import { randomUUID } from 'node:crypto';
import http from 'node:http';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  AgentCard,
  Message,
  Task,
  TaskArtifactUpdateEvent,
  TaskStatusUpdateEvent,
} from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { UserBuilder, jsonRpcHandler, restHandler } from '@a2a-js/sdk/server/express';
import express from 'express';

const LONG_MS = 3_000;
const ENDLESS_MS = 3_600_000;
// The interfaces by the names of their cards: path, binding, version.
const INTERFACES = {
  rpc: ['/rpc', 'JSONRPC', '1.0'],
  rest: ['/rest', 'HTTP+JSON', '1.0'],
  'old-rpc': ['/rpc', 'JSONRPC', '0.3'],
  'old-rest': ['/rest', 'HTTP+JSON', '0.3'],
};

function textOf(message) {
  const texts = message.parts.filter((part) => part.content?.$case === 'text');
  return texts.map((part) => part.content.value).join('\n');
}

/** One task, as the executor tells of it. */
class Telling {
  constructor(bus, taskId, contextId) {
    this.bus = bus;
    this.ids = { taskId, contextId };
  }

  said(text) {
    const parts = [{ text }];
    return { messageId: randomUUID(), role: 'ROLE_AGENT', parts, ...this.ids };
  }

  status(state, text) {
    const message = text === undefined ? undefined : this.said(text);
    const status = { state: `TASK_STATE_${state}`, message, timestamp: new Date().toISOString() };
    const event = TaskStatusUpdateEvent.fromJSON({ ...this.ids, status });
    this.bus.publish(AgentEvent.statusUpdate(event));
  }

  artifact(artifactId, part, append = false, lastChunk = true) {
    const artifact = { artifactId, name: artifactId, parts: [part] };
    const event = { ...this.ids, artifact, append, lastChunk };
    this.bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON(event)));
  }
}

class Agent {
  constructor() {
    this.cancelled = 0;
    this.underWay = new Map();
  }

  async execute({ userMessage, taskId, contextId, task }, bus) {
    const text = textOf(userMessage);
    const telling = new Telling(bus, taskId, contextId);
    if (text.startsWith('tck-message-response')) {
      bus.publish(AgentEvent.message(Message.fromJSON(telling.said(`You said: ${text}`))));
      return;
    }
    const begun = task === undefined ? text : textOf(task.history[0]);
    const status = { state: 'TASK_STATE_SUBMITTED', timestamp: new Date().toISOString() };
    const fresh = Task.fromJSON({ id: taskId, contextId, status });
    fresh.history = [userMessage];
    bus.publish(AgentEvent.task(task ?? fresh));
    telling.status('WORKING');
    await this.work(telling, begun, text, task !== undefined);
  }

  async work(telling, begun, text, isReply) {
    const is = (words) => begun.startsWith(words);
    if (is('tck-input-required') && !isReply) {
      telling.status('INPUT_REQUIRED', 'Which colour?');
    } else if (is('tck-multi-turn') && text !== 'done') {
      telling.status('INPUT_REQUIRED', `And after ${text}?`);
    } else if (is('tck-artifact-data')) {
      telling.artifact('data', { data: { key: 'value', count: 42 } });
      telling.status('COMPLETED');
    } else if (is('tck-stream-chunked')) {
      telling.artifact('chunked', { text: 'chunk-1' }, false, false);
      telling.artifact('chunked', { text: 'chunk-2' }, true, true);
      telling.status('COMPLETED');
    } else if (is('tck-task-failure')) {
      telling.status('FAILED', 'it failed');
    } else if (is('tck-reject-task')) {
      telling.status('REJECTED', 'rejected');
    } else if (is('tck-long-running')) {
      await sleep(LONG_MS);
      telling.status('COMPLETED', 'done after a while');
    } else if (is('tck-cancel')) {
      await this.endless(telling);
    } else if (is('how many were cancelled')) {
      telling.status('COMPLETED', String(this.cancelled));
    } else {
      telling.status('COMPLETED', `You said: ${text}`);
    }
  }

  async endless(telling) {
    const ends = new AbortController();
    this.underWay.set(telling.ids.taskId, { ends, telling });
    try {
      await sleep(ENDLESS_MS, undefined, { signal: ends.signal });
    } catch {
      // It is cancelled, which is reported below.
    }
  }

  async cancelTask(taskId, bus) {
    this.cancelled += 1;
    const { ends, telling } = this.underWay.get(taskId) ?? {};
    const contextId = telling?.ids.contextId ?? '';
    new Telling(bus, taskId, contextId).status('CANCELED');
    ends?.abort();
  }
}

function card(base, names) {
  const interfaces = names.map((name) => {
    const [path, protocolBinding, protocolVersion] = INTERFACES[name];
    return { url: base + path, protocolBinding, protocolVersion };
  });
  return AgentCard.fromJSON({
    name: `JavaScript ${names[0]}`,
    description: 'The official JavaScript SDK',
    version: '1.3',
    supportedInterfaces: interfaces,
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'echo', name: 'Echo', description: 'Repeats what you say', tags: ['test'] }],
  });
}

/** All of it, to be served at the address that `base` gives. */
function application(base) {
  const whole = card(base, Object.keys(INTERFACES));
  const requestHandler = new DefaultRequestHandler(whole, new InMemoryTaskStore(), new Agent());
  const userBuilder = UserBuilder.noAuthentication;
  const options = { requestHandler, userBuilder, legacyCompat: { enabled: true } };
  const app = express();
  const shown = (names) => (_, response) => response.json(AgentCard.toJSON(card(base, names)));
  app.get('/.well-known/agent-card.json', shown(Object.keys(INTERFACES)));
  for (const name of Object.keys(INTERFACES)) {
    app.get(`/cards/${name}.json`, shown([name]));
  }
  app.use('/rpc', jsonRpcHandler(options));
  app.use('/rest', restHandler(options));
  return app;
}

function serve() {
  const server = http.createServer();
  server.listen(0, '127.0.0.1', () => {
    const base = `http://127.0.0.1:${server.address().port}`;
    server.on('request', application(base));
    console.log(`agent listening on ${base}`);
  });
  process.stdin.on('end', () => process.exit(0));
  process.stdin.resume();
}

serve();
