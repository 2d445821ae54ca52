// JSON of user data. Whole numbers beyond 2^53 are bigints; what has no JSON form is refused with its path.
import { DecodeError } from './errors.js';

const SIMPLE = new Set(['string', 'boolean']);

/** Returns the JSON of a value; undefined is null. Throws a DecodeError that names what has no JSON form. */
export function encode(value: unknown): string {
  if (value === undefined || value === null) return 'null';
  if (SIMPLE.has(typeof value) || Number.isFinite(value)) return JSON.stringify(value);
  const found = { big: false };
  try {
    const plain = checked(value, '', found, 0);
    return found.big ? withBig(plain) : JSON.stringify(plain);
  } catch (e) {
    throw e instanceof DecodeError ? e : new DecodeError(`it has no JSON form: ${String(e)}`);
  }
}

const MAX_DEPTH = 500;

/** Returns a value of plain objects, with toJSON applied; found.big tells of a bigint in it. */
function checked(value: unknown, path: string, found: { big: boolean }, depth: number): unknown {
  const refuse = (what: string): never => {
    throw new DecodeError(`${path ? `${path} is` : 'it is'} ${what}, which has no JSON form`);
  };
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : refuse(String(value));
    case 'bigint':
      found.big ||= !Number.isSafeInteger(Number(value));
      return found.big ? value : Number(value);
    case 'object':
      break;
    default:
      return refuse(value === undefined ? 'undefined (leave the field out, or use null)' : `a ${typeof value}`);
  }
  if (value === null) return null;
  if (depth > MAX_DEPTH) throw new DecodeError(`${path || 'it'} is nested too deeply, or contains itself`);
  if (Array.isArray(value)) {
    return Array.from(value, (one, n) => checked(one, `${path}[${n}]`, found, depth + 1));
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return checked((value.toJSON as () => unknown)(), path, found, depth + 1);
  }
  if (value instanceof Map || value instanceof Set || value instanceof Promise || ArrayBuffer.isView(value)) {
    return refuse(`a ${value.constructor.name}`);
  }
  const plain: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const [name, one] of Object.entries(value)) {
    plain[name] = checked(one, path ? `${path}.${name}` : name, found, depth + 1);
  }
  return plain;
}

/** Returns the JSON of a checked value that may have bigints. */
function withBig(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map(withBig).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([name, one]) => `${JSON.stringify(name)}:${withBig(one)}`)
      .join(',')}}`;
  }
  return JSON.stringify(value);
}

/** Returns the value of a JSON text; no text is null. Throws a DecodeError. */
export function decode(data: Uint8Array): unknown {
  return parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString());
}

/** Returns the value of a JSON text; no text is null. Throws a DecodeError. */
export function parse(text: string): unknown {
  if (text.trim() === '') return null;
  try {
    return /\d{16}/.test(text) ? parseBig(text) : JSON.parse(text);
  } catch (e) {
    throw new DecodeError(`it is no JSON: ${e instanceof Error ? e.message : String(e)}`);
  }
}

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Parses JSON that may have whole numbers beyond 2^53: they travel through the parser as marked strings. */
function parseBig(text: string): unknown {
  const plain = JSON.stringify(JSON.parse(text)); // without escapes that could hide the mark
  let mark = '#';
  while (plain.includes(mark)) mark += '#';
  const marked = text.replace(TOKENS, (token) =>
    /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${mark}${token}"` : token,
  );
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === 'string' && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  );
}

/** Returns a value as a replay will read it from its JSON. */
export function readBack(value: unknown, text: string): unknown {
  if (value === undefined) return null;
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  return typeof value === 'number' && Number.isFinite(value) && !Object.is(value, -0) ? value : parse(text);
}
