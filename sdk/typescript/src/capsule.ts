// Reading the zip file of an exported run. Its messages are in the JSON form of protobuf, with the names of the .proto
// files. The conversion knows what runs and steps have; fields that it does not know are ignored.
import { readFileSync } from 'node:fs';
import { inflateRawSync } from 'node:zlib';
import * as v1 from './v1/index.js';
import { show, wireTime } from './convert.js';
import { ConfigError } from './errors.js';

const FORMAT = 'kagzi-capsule';
const VERSION = 1;
/** Bytes of one entry, unpacked. */
const MAX_BYTES = 1 << 30;

/** An exported run and all attempts of its steps. */
export interface Exported {
  run: v1.Workflow;
  steps: v1.Step[];
}

interface Manifest {
  format: string;
  version: number;
  root_run_id: string;
  redacted: boolean;
  runs: { run_id: string; directory: string }[];
}

/** Reads a run of a capsule, the exported one unless runId names another. Throws a ConfigError. */
export function readCapsule(file: string | URL, runId = ''): Exported {
  const what = `capsule ${show(String(file))}`;
  let entries: Map<string, () => Buffer>;
  let manifest: Manifest;
  try {
    entries = unzip(readFileSync(file));
    manifest = parse(entries, 'manifest.json') as Manifest;
  } catch (e) {
    throw new ConfigError(`${show(String(file))} is not a capsule: ${e instanceof Error ? e.message : String(e)}`);
  }
  if (manifest.format !== FORMAT || manifest.version !== VERSION) {
    const found = `format ${show(manifest.format)} of version ${show(manifest.version)}`;
    throw new ConfigError(`${what}: ${found}; this one reads ${FORMAT} of version ${VERSION}`);
  }
  const wanted = runId || manifest.root_run_id;
  const at = manifest.runs.find((r) => r.run_id === wanted)?.directory;
  if (at === undefined) throw new ConfigError(`${what} has no run ${show(runId)}`);
  if (manifest.redacted) throw new ConfigError(`${what} was exported without payloads, and cannot be replayed`);
  try {
    const run = v1.Workflow.create(message(parse(entries, `${at}/run.json`), v1.WorkflowStatus));
    const steps = parse(entries, `${at}/steps.json`) as unknown[];
    return { run, steps: steps.map((s) => v1.Step.create(message(s, v1.StepStatus) as Partial<v1.Step>)) };
  } catch (e) {
    throw new ConfigError(`${what} cannot be read: ${e instanceof Error ? e.message : String(e)}`);
  }
}

function parse(entries: Map<string, () => Buffer>, name: string): unknown {
  const entry = entries.get(name);
  if (!entry) throw new Error(`${name} is missing`);
  return JSON.parse(entry().toString());
}

/** Returns the entries of a zip file, which are unpacked when they are called. */
function unzip(zip: Buffer): Map<string, () => Buffer> {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  if (end < 0 || zip.length < end + 22) throw new Error('it is no zip file');
  const entries = new Map<string, () => Buffer>();
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    if (zip.readUInt32LE(at) !== 0x02014b50) throw new Error('its list of entries is damaged');
    const method = zip.readUInt16LE(at + 10);
    const size = zip.readUInt32LE(at + 20);
    const name = zip.toString('utf8', at + 46, at + 46 + zip.readUInt16LE(at + 28));
    const local = zip.readUInt32LE(at + 42);
    entries.set(name, () => {
      const from = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
      const packed = zip.subarray(from, from + size);
      if (method !== 0 && method !== 8) throw new Error(`${name} is packed by the unknown method ${method}`);
      return method === 0 ? packed : inflateRawSync(packed, { maxOutputLength: MAX_BYTES });
    });
    at += 46 + zip.readUInt16LE(at + 28) + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  return entries;
}

type Names = Readonly<Record<string, string | number>>;

/** Fields with whole numbers of 64 bits, which are texts in JSON. */
const LONGS = new Set(['settled', 'begun_in', 'owed_from', 'retry_after_ms', 'sequence', 'step_count', 'timeout_ms']);
/** Fields whose keys and values are the user's. */
const MAPS = new Set(['tags', 'metadata']);
const PAYLOADS = new Set(['input', 'output']);
/** Enums that no replay reads. */
const UNREAD = new Set(['concurrency_scope', 'parent_close_policy']);

/** Converts a message of JSON to the generated form; status is the enum of its field `status`. */
function message(json: unknown, status: Names): Record<string, unknown> {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw new Error('a message is no object');
  const made: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(json)) {
    const converted = field(name, value, status);
    if (converted !== undefined) made[name.replace(/_([a-z0-9])/g, (_, c: string) => c.toUpperCase())] = converted;
  }
  return made;
}

function field(name: string, value: unknown, status: Names): unknown {
  if (UNREAD.has(name)) return undefined;
  if (name === 'status') return ordinal(status, value, /^(WORKFLOW|STEP)_STATUS_/);
  if (name === 'kind') return ordinal(v1.StepKind, value, /^STEP_KIND_/);
  if (name === 'code') return ordinal(v1.ErrorCode, value, /^ERROR_CODE_/);
  if (name === 'error') return v1.ErrorDetail.create(message(value, status));
  if (PAYLOADS.has(name)) {
    const { data = '', metadata = {} } = value as { data?: string; metadata?: Record<string, string> };
    return v1.Payload.create({ data: Buffer.from(data, 'base64'), metadata });
  }
  if (LONGS.has(name)) return Number(value);
  if (MAPS.has(name)) return value;
  if (/_(at|until)$/.test(name)) return wireTime(Date.parse(value as string));
  return typeof value === 'object' ? undefined : value; // other messages are not read
}

/** Returns the number of an enum's name; of a name of a newer server 0. */
function ordinal(names: Names, value: unknown, prefix: RegExp): number {
  if (typeof value === 'number') return value;
  return Number(names[String(value).replace(prefix, '')] ?? 0);
}
