// Conversion of durations, times and texts to and from their wire form. All times are milliseconds since 1970.
import { randomBytes } from 'node:crypto';
import type { Duration as WireDuration } from './v1/google/protobuf/duration.js';
import type { Timestamp } from './v1/google/protobuf/timestamp.js';
import { ConfigError } from './errors.js';

/** A length of time: milliseconds, or a number with a unit, such as `'250ms'`, `'10s'`, `'5m'`, `'1.5h'`, `'3d'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

export const MAX_ERROR_TEXT = 16 << 10;
export const MAX_ERROR_TYPE = 255;
export const MAX_NAME = 255;
export const MAX_DELAY = 10 * 365 * 24 * 3600 * 1000;
const CUT = ' … [cut]';
const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns a duration in milliseconds. Throws a ConfigError that begins with `what`. */
export function millis(d: Duration, what: string): number {
  if (typeof d === 'number' && !Number.isNaN(d)) return d;
  const parts = typeof d === 'string' ? /^(-?\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(d) : null;
  if (!parts) throw new ConfigError(`${what} is ${show(d)}: want milliseconds, or text such as '10s' or '3d'`);
  return Number(parts[1]) * (UNITS[parts[2] ?? ''] ?? 1);
}

/** Returns a duration in whole milliseconds, rounded up; 0, which means the default on the wire, if it is not given. */
export function wholeMs(d: Duration | undefined, what: string): number {
  if (d === undefined) return 0;
  const ms = millis(d, what);
  if (!(ms >= 0 && ms <= MAX_DELAY)) throw new ConfigError(`${what} is ${show(d)}: want 0 to 10 years`);
  return Math.ceil(ms);
}

/** Returns milliseconds for the wire, to the microsecond. */
export function wireDuration(ms: number): WireDuration {
  const micros = Math.round(ms * 1000);
  return { seconds: Math.trunc(micros / 1e6), nanos: (micros % 1e6) * 1000 };
}

/** Returns a time for the wire, to the microsecond. */
export function wireTime(t: number): Timestamp {
  let seconds = Math.floor(t / 1000);
  let micros = Math.round((t - seconds * 1000) * 1000);
  if (micros >= 1e6) {
    seconds += 1;
    micros -= 1e6;
  }
  return { seconds, nanos: micros * 1000 };
}

/** Returns a time of the wire. */
export function unix(t: Timestamp | WireDuration): number {
  return t.seconds * 1000 + t.nanos / 1e6;
}

export function when(t: Timestamp | undefined): Date | undefined {
  return t && new Date(unix(t));
}

export function stamp(t: Date | undefined, what: string): Timestamp | undefined {
  if (t !== undefined && Number.isNaN(t.getTime())) throw new ConfigError(`${what} is an invalid Date`);
  return t && wireTime(t.getTime());
}

/** Makes text storable: no lone surrogates, no NUL, at most so many bytes, with a mark where it was cut. */
export function cleanText(text: string, limit: number): string {
  const clean = Buffer.from(text.replaceAll('\0', '\ufffd')).toString();
  if (Buffer.byteLength(clean) <= limit) return clean;
  const room = Buffer.from(clean).subarray(0, limit - Buffer.byteLength(CUT));
  return new TextDecoder().decode(room, { stream: true }) + CUT;
}

/** Escapes text so that a terminal prints it as it is, on one line. */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Z}]/gu, (c) => (c === ' ' ? c : `\\u{${c.codePointAt(0)?.toString(16) ?? ''}}`));
}

/** Returns bytes as a UUID of a version. */
export function uuidOf(bytes: Uint8Array, version: number): string {
  const id = Buffer.from(bytes);
  id.writeUInt8((id.readUInt8(6) & 0x0f) | (version << 4), 6);
  id.writeUInt8((id.readUInt8(8) & 0x3f) | 0x80, 8);
  return id.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Returns a new UUID of version 7, for request ids. */
export function uuid7(): string {
  const id = randomBytes(16);
  id.writeUIntBE(Date.now(), 0, 6);
  return uuidOf(id, 7);
}

/** Returns a value as a short text for messages. */
export function show(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return printable(text.slice(0, 100));
}

const NAME = /^[A-Za-z0-9._:/-]{1,255}$/;

/** Returns a name of a step or type, which has 1 to 255 bytes of A-Z a-z 0-9 . _ : / -. Throws a ConfigError. */
export function checkName(what: string, name: unknown): string {
  if (typeof name !== 'string') throw new ConfigError(`${what} name is ${show(name)}: want a string`);
  if (NAME.test(name) && !name.endsWith('\n')) return name;
  const size = Buffer.byteLength(name);
  if (size < 1 || size > MAX_NAME) {
    throw new ConfigError(`${what} name ${show(name.slice(0, 40))} is ${size} bytes long, want 1 to ${MAX_NAME}`);
  }
  throw new ConfigError(`${what} name ${show(name)}: only letters, digits and . _ : / - are allowed`);
}

/** Returns what a table has for the value of an option, and for one that is not given the first. Throws a ConfigError. */
export function choice<T>(what: string, value: string | undefined, table: Readonly<Record<string, T>>): T {
  const words = Object.keys(table);
  const word = value ?? words[0] ?? '';
  if (Object.hasOwn(table, word)) return table[word] as T;
  throw new ConfigError(`${what} is ${show(value)}, want ${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`);
}

/** Returns the time of the monotonic clock in milliseconds: the same clock in all threads. */
export function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export function between(least: number, most: number): number {
  return least + Math.random() * (most - least);
}

// Names of options: code without types may mistype one, which would be left out silently.

type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text;
type Same<A, B> = [A, B] extends [B, A] ? unknown : never;

/** Returns the names of the options of an interface, of texts that have all: `names<Options>()('retry timeout', …)`. */
export function names<Options>() {
  return <Text extends string>(...texts: (Text & Same<keyof Options, Words<Text>>)[]): readonly string[] =>
    texts.flatMap((text) => text.split(' '));
}

/** Throws a ConfigError for an option that does not exist; others may be there, because their options are shared. */
export function checkOptions(
  of: () => string,
  options: object,
  known: readonly string[],
  others: readonly string[] = [],
): void {
  for (const name in options) {
    if (known.includes(name) || others.includes(name)) continue;
    throw new ConfigError(`${of()} has no option ${show(name)}; there are ${known.join(', ')}`);
  }
}
