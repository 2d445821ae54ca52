// gRPC connections, and unary calls that are repeated while the server cannot be reached.
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import {
  Client,
  type ChannelCredentials,
  type ChannelOptions,
  Metadata,
  type ServiceError,
  credentials,
} from '@grpc/grpc-js';
import { type BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';
import { ConfigError, ServerError, callError } from './errors.js';
import { type Endpoint, readPEM } from './profile.js';
import { between, monotonic } from './convert.js';

export const MAX_REQUEST = 8 << 20;
const MAX_MESSAGE = MAX_REQUEST + (64 << 10);

export interface Message<T> {
  encode(message: T, writer?: BinaryWriter): BinaryWriter;
  decode(input: BinaryReader | Uint8Array, length?: number): T;
  create(given?: Partial<T>): T;
}

export interface Method<In, Out> {
  name: string;
  requestType: Message<In>;
  responseType: Message<Out>;
}

/** Its memory is used again for the next message. */
let writer = new BinaryWriter();
const KEPT = 1 << 20;

/** Returns a message with defaults for what is not given. It copies no parts, unlike what the generated code makes. */
export function filled<T extends object>(type: Message<T>, given: Partial<T>): T {
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.assign(type.create(), Object.fromEntries(set));
}

export function serialize<T>(type: Message<T>, message: T): Buffer {
  const used = writer;
  writer = new BinaryWriter(); // also if the message cannot be encoded
  const bytes = type.encode(message, used).finish();
  if (bytes.length < KEPT) writer = used;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export async function dial(e: Endpoint): Promise<Client> {
  const options: ChannelOptions = {
    'grpc.max_receive_message_length': MAX_MESSAGE,
    'grpc.max_send_message_length': MAX_REQUEST,
    'grpc.keepalive_time_ms': 30_000,
    'grpc.keepalive_timeout_ms': 10_000,
    'grpc.keepalive_permit_without_calls': 1,
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 750,
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_retries': 0,
    'grpc.service_config_disable_resolution': 1,
  };
  if (e.tls?.serverName) {
    options['grpc.ssl_target_name_override'] = e.tls.serverName;
    options['grpc.default_authority'] = e.tls.serverName;
  }
  return new Client(await target(e), channelCredentials(e), options);
}

function channelCredentials(e: Endpoint): ChannelCredentials {
  if (!e.tls) return credentials.createInsecure();
  const read = (setting: string, path: string | undefined): Buffer | null => (path ? readPEM(setting, path) : null);
  return credentials.createSsl(
    read('tls-ca', e.tls.ca),
    read('tls-client-key', e.tls.clientKey),
    read('tls-client-cert', e.tls.clientCert),
  );
}

/** Returns what gRPC dials. Of several addresses it uses the first that answers. */
async function target(e: Endpoint): Promise<string> {
  const [first, ...more] = e.addresses;
  if (more.length === 0) return first as string;
  if (e.tls && !e.tls.serverName) {
    throw new ConfigError('several addresses with TLS need tls-server-name, the name in all their certificates');
  }
  const found = e.addresses.map(async (address) => {
    const at = address.lastIndexOf(':');
    const host = address.slice(0, at).replace(/^\[|\]$/g, '');
    const ip = isIP(host) ? host : (await lookup(host, 4)).address;
    return `${ip}:${address.slice(at + 1)}`;
  });
  return 'ipv4:' + (await Promise.all(found)).join(',');
}

/** Returns what is sent with each call: the API key. */
export function metadata(e: Endpoint, more: Readonly<Record<string, string>> = {}): Metadata {
  const made = new Metadata();
  if (e.apiKey) made.set('authorization', `Bearer ${e.apiKey}`);
  for (const [name, value] of Object.entries(more)) made.set(name, value);
  return made;
}

/** Returns what takes the answer to a call. */
export function answered<T>(resolve: (answer: T) => void, reject: (e: Error) => void) {
  return (e: ServiceError | null, answer?: T): void => (e ? reject(callError(e)) : resolve(answer as T));
}

/** Makes one unary call. Throws a ServerError. */
export function unary<In, Out>(
  client: Client,
  service: { fullName: string },
  method: Method<In, Out>,
  request: In,
  sent: Metadata,
  timeoutMs?: number,
): Promise<Out> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      `/${service.fullName}/${method.name}`,
      (message: In) => serialize(method.requestType, message),
      (data: Buffer) => method.responseType.decode(data),
      request,
      sent,
      timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs },
      answered(resolve, reject),
    );
  });
}

const REPEATS = 6;
const REPEAT_FOR = 4000;

/** Calls the unary methods of a server. A call that finds no server is repeated for about four seconds. */
export class Rpc {
  #client: Promise<Client> | undefined;
  #closed = false;

  constructor(readonly endpoint: Endpoint) {}

  client(): Promise<Client> {
    if (this.#closed) throw new ServerError('the client is closed', 'UNAVAILABLE');
    return (this.#client ??= dial(this.endpoint));
  }

  /** Closes the connection; calls in flight fail. */
  close(): void {
    this.#closed = true;
    void this.#client?.then((c) => c.close());
  }

  /** Makes a call. Each only reads, or names an id, so a repeat has no second effect. */
  async call<In, Out>(
    service: { fullName: string },
    method: Method<In, Out>,
    request: In,
    more: Readonly<Record<string, string>> = {},
    timeoutMs?: number,
  ): Promise<Out> {
    const since = monotonic();
    for (let tries = 0; ; tries++) {
      try {
        return await unary(await this.client(), service, method, request, metadata(this.endpoint, more), timeoutMs);
      } catch (e) {
        const passes = e instanceof ServerError && e.code === 'UNAVAILABLE' && !this.#closed;
        if (!passes || monotonic() - since > REPEAT_FOR) throw e;
      }
      await new Promise((done) => setTimeout(done, between(1, Math.min(50 * 2 ** Math.min(tries, REPEATS), 500))));
    }
  }
}
