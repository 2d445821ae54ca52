// The queue: a message is a Kagzi run whose steps post it to the app until the handler has taken it.
import type { Client, StepContext } from '@kagzi/sdk';
import {
  MessageId,
  type Queue,
  type QueuePayload,
  QueuePayloadSchema,
  type QueuePrefix,
  ValidQueueName,
  parseQueueName,
} from '@workflow/world';
import { createWorkflowUrl } from '@workflow/utils';
import http from 'node:http';
import https from 'node:https';
import { TYPES, idFor } from './types.js';
import { pack, unpack } from './values.js';

const QUEUE = 'x-vqs-queue-name';
const MESSAGE = 'x-vqs-message-id';
const ATTEMPT = 'x-vqs-message-attempt';
const ANSWER = 64 << 10;

/** Input of the run of a message. */
export interface Message {
  queueName: string;
  body: unknown;
  headers: Record<string, string>;
}

/** Delivers a message once. Returns the seconds after which it has to be delivered again, or null. */
export type Deliver = (m: Message, messageId: string, step: StepContext) => Promise<number | null>;

/** Returns the queue of a world. */
export function createQueue(client: Client, taskQueue: string, deploymentId: string): Queue {
  return {
    getDeploymentId: () => Promise.resolve(deploymentId),
    async queue(queueName, message: QueuePayload, options = {}) {
      const { idempotencyKey, headers = {}, delaySeconds = 0 } = options;
      const { id } = parseQueueName(queueName);
      // Two replays of one run at a time would only refuse each other's events.
      const runId = 'runId' in message ? message.runId : undefined;
      const handle = await client.start(
        TYPES.message,
        { queueName, body: pack(message), headers },
        {
          queue: taskQueue,
          tags: { handler: id.slice(0, 255), ...(runId ? { run: runId } : {}) },
          ...(idempotencyKey === undefined ? {} : { id: idFor('message', idempotencyKey) }),
          ...(runId ? { concurrencyKey: idFor('run', runId) } : {}),
          ...(delaySeconds > 0 ? { delay: delaySeconds * 1000 } : {}),
        },
      );
      return { messageId: MessageId.parse(`msg_${handle.id}`) };
    },
    createQueueHandler: (prefix, handler) => (request) => answer(prefix, handler, request),
  };
}

async function answer(
  prefix: QueuePrefix,
  handler: Parameters<Queue['createQueueHandler']>[1],
  request: Request,
): Promise<Response> {
  const queueName = ValidQueueName.safeParse(request.headers.get(QUEUE));
  const messageId = MessageId.safeParse(request.headers.get(MESSAGE));
  const attempt = Number(request.headers.get(ATTEMPT));
  if (!queueName.success || !messageId.success || !Number.isInteger(attempt) || attempt < 1) {
    return Response.json({ error: `the headers ${QUEUE}, ${MESSAGE} and ${ATTEMPT} are required` }, { status: 400 });
  }
  if (!queueName.data.startsWith(prefix)) {
    return Response.json({ error: `this handler takes messages of ${prefix}* only` }, { status: 400 });
  }
  let message: unknown;
  try {
    message = unpack(await request.json());
    QueuePayloadSchema.parse(message);
  } catch (e) {
    return Response.json({ error: `the body is no message: ${String(e)}` }, { status: 400 });
  }
  try {
    const result = await handler(message, { attempt, queueName: queueName.data, messageId: messageId.data });
    return Response.json(result ? { timeoutSeconds: result.timeoutSeconds } : { ok: true });
  } catch (e) {
    return Response.json({ error: String(e) }, { status: 500 });
  }
}

/** Returns the function that posts messages to an app. */
export function poster(baseUrl: () => string): Deliver {
  return async (m, messageId, step) => {
    const { kind } = parseQueueName(ValidQueueName.parse(m.queueName));
    const url = createWorkflowUrl(baseUrl(), { type: kind === 'workflow' ? 'flow' : 'step' });
    const own = { [QUEUE]: m.queueName, [MESSAGE]: messageId, [ATTEMPT]: String(step.attempt) };
    const headers = { ...m.headers, 'content-type': 'application/json', ...own };
    const { status, text } = await post(url, headers, JSON.stringify(m.body), step.signal);
    if (status < 200 || status > 299) throw new Error(`${url} answered ${status}: ${text.slice(0, 1000)}`);
    return secondsOf(text);
  };
}

function secondsOf(text: string): number | null {
  try {
    const { timeoutSeconds } = JSON.parse(text) as { timeoutSeconds?: unknown };
    return typeof timeoutSeconds === 'number' && timeoutSeconds >= 0 ? timeoutSeconds : null;
  } catch {
    return null; // an app's own answer to a message that it took
  }
}

/** Posts without the limits of fetch, which ends a request whose answer takes longer than five minutes. */
function post(
  url: string,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
): Promise<{ status: number; text: string }> {
  const { request } = url.startsWith('https:') ? https : http;
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers, signal }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => (text = (text + part).slice(0, ANSWER)));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
