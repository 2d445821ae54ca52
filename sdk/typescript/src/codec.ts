// Codecs transform payloads between their JSON and what the server stores, for encryption or compression.
import { type CipherGCMTypes, createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import * as json from './json.js';
import { ConfigError, DecodeError, KagziError } from './errors.js';
import { checkName } from './convert.js';

/** Most bytes of an input, an output or a step result, with the codec's overhead and metadata: 2 MiB. */
export const MAX_PAYLOAD = 2 << 20;

/** Encoded user data. */
export interface Payload {
  data: Uint8Array;
  metadata: Record<string, string>;
}

/** Describes a payload and its owner, with the same values when it is encoded and decoded. */
export interface PayloadInfo {
  kind: 'input' | 'output' | 'step' | 'signal';
  /** Of inputs. */
  workflowType?: string;
  /** Of inputs; empty for runs of schedules. */
  externalId?: string;
  /** Of outputs. */
  runId?: string;
  /** Of step results and signals: a digest of the run's type, external id and stored input. */
  start?: string;
  /** Name of the step or signal. */
  step?: string;
}

/** Transforms payloads. An error in decode fails the run like one of its code; a NonRetryable fails it for good. */
export interface Codec {
  /** Returns what the server stores. */
  encode(p: Payload, info: PayloadInfo): Payload;
  /** Returns what encode got. It gets payloads that were stored without a codec, too. */
  decode(p: Payload, info: PayloadInfo): Payload;
}

const SIGNALS_START = 'signals-start';

export function inputInfo(workflowType: string, externalId: string): PayloadInfo {
  return { kind: 'input', workflowType, externalId: externalId.startsWith('schedule:') ? '' : externalId };
}

export function startDigest(workflowType: string, externalId: string, data: Uint8Array): string {
  const hash = createHash('sha256');
  for (const part of [workflowType, externalId]) hash.update(sized(Buffer.from(part)));
  return hash.update(data).digest('hex');
}

function sized(part: Buffer): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(part.length);
  return Buffer.concat([size, part]);
}

/** Returns the start of the signals to a run, which may be that of the first run of a chain. */
export function startOfSignals(own: string, input: Payload | undefined): string {
  return input?.metadata[SIGNALS_START] ?? own;
}

/** Makes a payload from JSON. signals is, for the input of a run that continues another, the start of its signals. */
export function pack(codec: Codec | undefined, text: string, info: PayloadInfo, signals = ''): PayloadMessage {
  let p: PayloadMessage = { data: Buffer.from(text), metadata: { 'content-type': 'application/json' } };
  if (codec) {
    if (signals) p.metadata[SIGNALS_START] = signals;
    const { data, metadata } = codec.encode(p, info);
    p = { data: Buffer.from(data.buffer, data.byteOffset, data.byteLength), metadata };
  }
  let size = p.data.length;
  for (const [k, v] of Object.entries(p.metadata)) size += Buffer.byteLength(k) + Buffer.byteLength(v);
  if (size > MAX_PAYLOAD) throw new DecodeError(`${size} bytes are more than the limit of ${MAX_PAYLOAD} (2 MiB)`);
  return p;
}

type PayloadMessage = import('./v1/kagzi/v1/common.js').Payload;

/** Makes a payload from a value. Throws a DecodeError that begins with `what`. */
export function encode(
  codec: Codec | undefined,
  value: unknown,
  info: PayloadInfo,
  what: string,
  signals = '',
): PayloadMessage {
  return told(what, () => pack(codec, json.encode(value), info, signals));
}

/** Makes the payload of the input of a run. */
export function encodeInput(codec: Codec | undefined, type: string, id: string, value: unknown, signals = '') {
  return encode(codec, value, inputInfo(type, id), `input of workflow type ${type}`, signals);
}

/** Returns the value of a payload, as its schema makes it. Throws a DecodeError that begins with `what`. */
export function decode<T>(
  codec: Codec | undefined,
  p: Payload | undefined,
  info: PayloadInfo,
  what: string,
  schema?: Schema<T>,
): T {
  const encoding = p?.metadata['encoding'];
  if (!codec && encoding) {
    throw new DecodeError(`${what}: it is encoded as ${JSON.stringify(encoding)}, and no codec is set here`);
  }
  return told(what, () => {
    const value = json.decode(
      codec ? codec.decode(p ?? { data: new Uint8Array(), metadata: {} }, info).data : (p?.data ?? new Uint8Array()),
    );
    return validated(schema, value);
  });
}

/** Calls a function; its DecodeErrors begin with what they are about. */
export function told<T>(what: string, fn: () => T): T {
  try {
    return fn();
  } catch (e) {
    throw e instanceof DecodeError ? new DecodeError(`${what}: ${e.message}`) : e;
  }
}

/** A schema of any library that implements Standard Schema, such as zod, valibot and arktype. */
export interface Schema<T = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
  };
}

type SchemaResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };

/** Returns a value as its schema makes it. Throws a DecodeError with the path of what does not fit. */
export function validated<T>(schema: Schema<T> | undefined, value: unknown): T {
  if (!schema) return value as T;
  const result = schema['~standard'].validate(value);
  if (result instanceof Promise)
    throw new ConfigError(`the schema of ${schema['~standard'].vendor} is asynchronous, want a synchronous one`);
  if (result.issues === undefined) return result.value;
  const issues = result.issues.slice(0, 5).map(({ message, path }) => {
    const at = (path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
    return at ? `${at}: ${message}` : message;
  });
  throw new DecodeError(`it does not fit its schema: ${issues.join('; ')}`);
}

const ENCRYPTED = 'binary/encrypted';
const CIPHER: CipherGCMTypes = 'aes-256-gcm';
const OWN_METADATA = new Set(['encoding', 'encryption', 'encryption-key', 'encrypted-encoding']);

/** Options of AESCodec. */
export interface AESCodecOptions {
  /** Authenticated with each payload, such as the name of the environment. */
  context?: string;
  /** Accept payloads that are not encrypted (false). */
  allowPlain?: boolean;
}

/**
 * Encrypts payloads with XAES-256-GCM. Each payload is bound to its PayloadInfo: it cannot be decrypted as the result of
 * another step or run. Names, ids, tags, notes, reasons, times, sizes and the texts of errors are not encrypted.
 */
export class AESCodec implements Codec {
  readonly #keys = new Map<string, Uint8Array>();
  readonly #current: string;
  readonly #context: string;
  readonly #plain: boolean;

  /** Takes keys of 32 random bytes by their ids, which are not secret, and the id of the key that encrypts. */
  constructor(keys: Readonly<Record<string, Uint8Array>>, current: string, options: AESCodecOptions = {}) {
    for (const [id, key] of Object.entries(keys)) {
      checkName('key', id);
      if (key.length !== 32) throw new ConfigError(`AESCodec: key ${id} has ${key.length} bytes, want 32`);
      this.#keys.set(id, key);
    }
    if (!this.#keys.has(current))
      throw new ConfigError(`AESCodec: current is ${JSON.stringify(current)}, want the id of a key`);
    this.#current = current;
    this.#context = options.context ?? '';
    this.#plain = options.allowPlain ?? false;
  }

  encode(p: Payload, info: PayloadInfo): Payload {
    const key = this.#keys.get(this.#current) as Uint8Array;
    const own = { encoding: ENCRYPTED, encryption: 'XAES-256-GCM', 'encryption-key': this.#current };
    const metadata: Record<string, string> = { ...p.metadata, ...own };
    if (p.metadata['encoding'] !== undefined) metadata['encrypted-encoding'] = p.metadata['encoding'];
    const nonce = randomBytes(24);
    const cipher = createCipheriv(CIPHER, derived(key, nonce), nonce.subarray(12)).setAAD(
      this.#binding(metadata, info),
    );
    return { data: Buffer.concat([nonce, cipher.update(p.data), cipher.final(), cipher.getAuthTag()]), metadata };
  }

  decode(p: Payload, info: PayloadInfo): Payload {
    if (p.metadata['encoding'] !== ENCRYPTED) {
      if (this.#plain) return p;
      throw new DecodeError(
        'the payload is not encrypted: it was stored without the codec (allowPlain accepts such payloads)',
      );
    }
    const id = p.metadata['encryption-key'] ?? '';
    const key = this.#keys.get(id);
    if (!key)
      throw new KagziError(`the payload is encrypted by key ${JSON.stringify(id)}, which the codec does not have`);
    const metadata = Object.fromEntries(Object.entries(p.metadata).filter(([name]) => !OWN_METADATA.has(name)));
    const former = p.metadata['encrypted-encoding'];
    if (former !== undefined) metadata['encoding'] = former;
    return { data: this.#opened(key, p, info), metadata };
  }

  #opened(key: Uint8Array, p: Payload, info: PayloadInfo): Uint8Array {
    try {
      const end = p.data.length - 16;
      const decipher = createDecipheriv(CIPHER, derived(key, p.data), p.data.subarray(12, 24))
        .setAAD(this.#binding(p.metadata, info))
        .setAuthTag(p.data.subarray(end));
      return Buffer.concat([decipher.update(p.data.subarray(24, end)), decipher.final()]);
    } catch {
      throw new DecodeError(
        'the payload cannot be decrypted: it was encrypted for another run, step or context, with a different key of this id, or was changed',
      );
    }
  }

  #binding(metadata: Record<string, string>, info: PayloadInfo): Buffer {
    const { kind, workflowType, externalId, runId, start, step } = info;
    const parts = ['kagzi codec 1', this.#context, kind, workflowType, externalId, runId, start, step];
    const names = Object.keys(metadata).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    for (const name of names) parts.push(name, metadata[name]);
    return Buffer.concat(parts.map((part) => sized(Buffer.from(part ?? ''))));
  }
}

/** Derives the key of one payload, as c2sp.org/XAES-256-GCM says: CMAC of a counter block with half of the nonce. */
function derived(key: Uint8Array, nonce: Uint8Array): Buffer {
  const block = (data: Uint8Array): Buffer =>
    createCipheriv('aes-256-ecb', key, null).setAutoPadding(false).update(data);
  const mask = block(Buffer.alloc(16));
  const high = (mask[0] as number) >> 7;
  for (let i = 0; i < 16; i++) mask[i] = ((mask[i] as number) << 1) | ((mask[i + 1] ?? 0) >> 7);
  mask[15] = (mask[15] as number) ^ (high * 0x87);
  const half = (n: number): Buffer => {
    const m = Buffer.concat([Buffer.from([0, n, 0x58, 0]), nonce.subarray(0, 12)]);
    return block(m.map((byte, i) => byte ^ (mask[i] as number)));
  };
  return Buffer.concat([half(1), half(2)]);
}
