// JSON, codec bytes, names, errors and durations, by the vectors of the protocol where it has some.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { AESCodec, DecodeError, type PayloadInfo } from '@kagzi/sdk';
import * as json from '#sdk/json.js';
import { startDigest } from '#sdk/codec.js';
import { checkName, cleanText, millis } from '#sdk/convert.js';

interface CodecVectors {
  payloads: {
    name: string;
    key: string;
    key_id: string;
    kind: PayloadInfo['kind'];
    workflow_type?: string;
    external_id?: string;
    run_id?: string;
    start?: string;
    step?: string;
    context?: string;
    plain: string;
    metadata: Record<string, string>;
    data: string;
    stored_metadata: Record<string, string>;
  }[];
  starts: { workflow_type: string; external_id: string; input: string; start: string }[];
}

interface PayloadVectors {
  groups: string[][];
  empty: string[];
  invalid: string[];
}

function vectors<T>(name: string): T {
  const file = new URL(`../../../../proto/vectors/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as T;
}

test('codec vectors are decoded, and encoded again', () => {
  const { payloads } = vectors<CodecVectors>('codec');
  assert.ok(payloads.length > 3);
  for (const v of payloads) {
    const codec = new AESCodec({ [v.key_id]: Buffer.from(v.key, 'hex') }, v.key_id, { context: v.context ?? '' });
    const info: PayloadInfo = {
      kind: v.kind,
      workflowType: v.workflow_type ?? '',
      externalId: v.external_id ?? '',
      runId: v.run_id ?? '',
      start: v.start ?? '',
      step: v.step ?? '',
    };
    const stored = { data: Buffer.from(v.data, 'base64'), metadata: v.stored_metadata };
    const plain = codec.decode(stored, info);
    assert.equal(Buffer.from(plain.data).toString(), v.plain, v.name);
    assert.deepEqual(plain.metadata, v.metadata, v.name);
    const again = codec.encode(plain, info);
    assert.deepEqual(again.metadata, v.stored_metadata, v.name);
    assert.equal(Buffer.from(codec.decode(again, info).data).toString(), v.plain, v.name);
    assert.throws(() => codec.decode(again, { ...info, step: 'other' }), DecodeError, v.name);
  }
});

test('digests of starts', () => {
  for (const v of vectors<CodecVectors>('codec').starts) {
    assert.equal(startDigest(v.workflow_type, v.external_id, Buffer.from(v.input)), v.start);
  }
});

test('payload vectors are equal within their groups and differ between them', () => {
  const { groups, empty, invalid } = vectors<PayloadVectors>('payloads');
  const seen = new Map<string, number>();
  groups.forEach((group, n) => {
    for (const text of group) {
      const value = json.parse(text);
      const key = json.encode(sorted(value));
      assert.equal(seen.get(key) ?? n, n, text);
      seen.set(key, n);
    }
  });
  for (const text of empty) assert.equal(json.parse(text), null);
  for (const text of invalid) assert.throws(() => json.parse(text), DecodeError, text);
});

/** Returns a value with the keys of its objects in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort()
      .map(([k, v]) => [k, sorted(v)]),
  );
}

test('whole numbers of 64 bits survive', () => {
  const big = {
    id: 9223372036854775807n,
    ids: [-9223372036854775808n, 1n],
    text: '#9007199254740993',
    part: 0.12345678901234567,
  };
  const text = json.encode(big);
  assert.match(text, /"id":9223372036854775807,/);
  assert.deepEqual(json.parse(text), { ...big, ids: [-9223372036854775808n, 1] });
  assert.deepEqual(json.parse('["\\u0023\\u0023", 12345678901234567890]'), ['##', 12345678901234567890n]);
});

test('values without a JSON form are refused by name', () => {
  const cases: [unknown, RegExp][] = [
    [{ items: [{ price: NaN }] }, /: items\[0\]\.price is NaN/],
    [{ a: { b: undefined } }, /: a\.b is undefined/],
    [[Infinity], /: \[0\] is Infinity/],
    [{ f: () => 1 }, /: f is a function/],
    [{ m: new Map() }, /: m is a Map/],
    [{ b: new Uint8Array(2) }, /: b is a Uint8Array/],
  ];
  for (const [value, want] of cases) assert.throws(() => json.encode(value), want);
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  assert.throws(() => json.encode(circle), /contains itself/);
  assert.equal(json.encode(undefined), 'null');
});

test('names', () => {
  const { valid, invalid } = vectors<{ valid: string[]; invalid: string[] }>('names');
  for (const name of valid) assert.equal(checkName('step', name), name);
  for (const name of invalid.filter((one) => !one.startsWith('kagzi:'))) assert.throws(() => checkName('step', name));
});

test('texts are cut with a mark, at a character', () => {
  const cut = cleanText('é'.repeat(200), 255);
  assert.ok(Buffer.byteLength(cut) <= 255 && cut.endsWith('é … [cut]'));
  assert.equal(cleanText('a\0\ud800', 255), 'a\ufffd\ufffd');
});

test('durations', () => {
  assert.deepEqual(
    [1.5, '250ms', '10s', '5m', '1.5h', '3d'].map((d) => millis(d as '1s', 'd')),
    [1.5, 250, 10_000, 300_000, 5_400_000, 259_200_000],
  );
  assert.throws(() => millis('3 days' as '3d', 'duration of sleep x'), /duration of sleep x is "3 days"/);
});
