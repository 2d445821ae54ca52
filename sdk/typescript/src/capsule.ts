// Reading the zip file of an exported run. Its messages are in the JSON form of protobuf.
import { readFileSync } from 'node:fs';
import { inflateRawSync } from 'node:zlib';
import * as pb from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { DESCRIPTORS } from './v1/descriptors.js';
import * as v1 from './v1/index.js';
import { show } from './convert.js';
import { ConfigError } from './errors.js';
import type { Message } from './wire.js';

const FORMAT = 'kagzi-capsule';
const VERSION = 1;
/** Bytes of one entry, unpacked. */
const MAX_BYTES = 1 << 30;

interface Manifest {
  format: string;
  version: number;
  root_run_id: string;
  redacted: boolean;
  runs: { run_id: string; directory: string }[];
}

/** Reads a run and all attempts of its steps from a capsule, the exported one unless runId names another. Throws a ConfigError. */
export function readCapsule(file: string | URL, runId = '') {
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
    const registry = pb.createFileRegistry(pb.fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTORS, 'base64')));
    const run = reader(registry, v1.Workflow, 'Workflow')(parse(entries, `${at}/run.json`));
    const steps = parse(entries, `${at}/steps.json`) as unknown[];
    return { run, steps: steps.map(reader(registry, v1.Step, 'Step')) };
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

/** Returns what reads messages of a type in JSON. What this version does not know of them is left out. */
function reader<T>(registry: pb.FileRegistry, type: Message<T>, name: string): (json: unknown) => T {
  const schema = registry.getMessage(`kagzi.v1.${name}`) as pb.DescMessage;
  const options = { ignoreUnknownFields: true };
  return (json) => type.decode(pb.toBinary(schema, pb.fromJson(schema, json as pb.JsonValue, options)));
}
