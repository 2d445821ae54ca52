// Values as JSON. What JSON does not have becomes an object with the key `$`: byte arrays, dates, NaN and infinities.
const MARK = '$';

/** Returns a value of the runtime as JSON. Undefined properties and functions are left out. */
export function pack(value: unknown): unknown {
  if (value instanceof Uint8Array) {
    const text = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
    return { [MARK]: 'bytes', value: text };
  }
  if (value instanceof Date) return { [MARK]: 'date', value: value.toISOString() };
  if (Array.isArray(value)) return value.map(pack);
  if (typeof value === 'number' && !Number.isFinite(value)) return { [MARK]: 'number', value: String(value) };
  if (typeof value !== 'object' || value === null) return typeof value === 'function' ? null : (value ?? null);
  const entries = Object.entries(value).filter(([, one]) => one !== undefined && typeof one !== 'function');
  const made = Object.fromEntries(entries.map(([key, one]) => [key, pack(one)]));
  return Object.hasOwn(made, MARK) ? { [MARK]: 'object', value: made } : made;
}

/** Returns the value that pack was given. */
export function unpack(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unpack);
  if (typeof value !== 'object' || value === null) return value;
  if (!Object.hasOwn(value, MARK)) return inner(value);
  const { [MARK]: kind, value: packed } = value as { [MARK]: unknown; value: unknown };
  if (kind === 'object' && typeof packed === 'object' && packed !== null) return inner(packed);
  if (kind === 'bytes') return Uint8Array.from(Buffer.from(String(packed), 'base64'));
  if (kind === 'date') return new Date(String(packed));
  if (kind === 'number') return Number(packed);
  throw new TypeError(`a stored value is marked as ${JSON.stringify(kind)}, which this version does not know`);
}

function inner(value: object): unknown {
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, unpack(one)]));
}

const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Returns a ULID of a time and a sequence instead of random bits, so that ids sort as their events do. */
export function ulid(time: number, sequence: number): string {
  return digits(Math.floor(time), 10) + digits(sequence, 16);
}

function digits(value: number, count: number): string {
  let text = '';
  for (let left = value; text.length < count; left = Math.floor(left / 32)) text = (DIGITS[left % 32] ?? '0') + text;
  return text;
}
