// How to reach a server: options, the environment, kagzi.toml, defaults, in this order.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve as absolute } from 'node:path';
import { isIP } from 'node:net';
import { parse } from 'smol-toml';
import { ConfigError } from './errors.js';
import { printable, show } from './convert.js';

/** TLS settings of a client or worker. */
export interface TLS {
  /** PEM file of the certificates to trust (those of Node). */
  ca?: string;
  /** PEM file of the client's certificate; needs clientKey. */
  clientCert?: string;
  /** PEM file of its key. */
  clientKey?: string;
  /** Name that the server's certificate must have (the address's host). */
  serverName?: string;
}

/** Where the server is, and the credentials for it. */
export interface ConnectOptions {
  /** Profile of kagzi.toml (KAGZI_PROFILE, else the file's default); `off` for neither file nor environment. */
  profile?: string;
  /** Of the server, host:port, or of several, separated by commas (KAGZI_ADDRESS, the profile's, 127.0.0.1:50051). */
  address?: string;
  /** (KAGZI_NAMESPACE, else the profile's, else `default`.) */
  namespace?: string;
  /** (KAGZI_API_KEY, the file of KAGZI_API_KEY_FILE, else the profile's.) */
  apiKey?: string;
  /** TLS settings, or true for the defaults (KAGZI_TLS…, else the profile's, else none). */
  tls?: TLS | boolean;
}

/** A server, the credentials for it, and what an operator should know about them. */
export interface Endpoint {
  addresses: string[];
  namespace: string;
  apiKey: string;
  tls: TLS | undefined;
  warnings: string[];
}

const DEFAULT_ADDRESS = '127.0.0.1:50051';
const TLS_KEYS = ['tls-ca', 'tls-client-cert', 'tls-client-key', 'tls-server-name'];
const KEYS = ['address', 'namespace', 'api-key', 'api-key-file', 'tls', ...TLS_KEYS];
const FILES = new Set(['api-key-file', 'tls-ca', 'tls-client-cert', 'tls-client-key']);
const PAIRS: Record<string, string> = {
  'api-key': 'api-key-file',
  'api-key-file': 'api-key',
  'tls-client-cert': 'tls-client-key',
  'tls-client-key': 'tls-client-cert',
};
const TRUE = ['1', 't', 'true'];
const FALSE = ['0', 'f', 'false'];
type Settings = Record<string, string>;

/** Returns the effective settings. Throws a ConfigError that names the setting that is invalid, and where it is. */
export function resolve(o: ConnectOptions): Endpoint {
  const own = typeof o.tls === 'object' ? o.tls : undefined;
  const wanted = typeof o.tls === 'boolean' ? String(o.tls) : own && 'true';
  const options: Record<string, string | undefined> = {
    ...{ address: o.address, namespace: o.namespace, 'api-key': o.apiKey, tls: wanted },
    ...{ 'tls-ca': own?.ca, 'tls-client-cert': own?.clientCert, 'tls-client-key': own?.clientKey },
    'tls-server-name': own?.serverName,
  };
  const given: Settings = {};
  for (const [key, value] of Object.entries(options)) if (value) given[key] = value;
  const s = o.profile === 'off' ? given : over(given, over(environment(), file(o.profile ?? '')));
  const { key, warnings } = apiKey(s);
  const on = TRUE.includes((s['tls'] ?? String(Object.keys(s).some((k) => k.startsWith('tls-')))).toLowerCase());
  const [ca, clientCert, clientKey, serverName] = TLS_KEYS.map((key) => s[key]);
  const tls: TLS = { ca, clientCert, clientKey, serverName };
  const addresses = (s['address'] ?? DEFAULT_ADDRESS).split(',').map((a) => a.trim());
  for (const a of addresses) {
    if (!/^(unix:.+|.+:\d+)$/.test(a))
      throw new ConfigError(`address ${show(a)}: want host:port, such as ${DEFAULT_ADDRESS}`);
  }
  if (on && !tls.clientCert !== !tls.clientKey) {
    throw new ConfigError('tls-client-cert and tls-client-key go together: set both or neither');
  }
  if (!on && key && !addresses.every(loopback)) {
    throw new ConfigError(
      `an API key is not sent to ${show(addresses.join(','))} without encryption: turn on TLS (tls = true in the profile, KAGZI_TLS=true, or tls in the options), or connect to a loopback address`,
    );
  }
  return { addresses, namespace: s['namespace'] ?? 'default', apiKey: key, tls: on ? tls : undefined, warnings };
}

function loopback(address: string): boolean {
  const host = address.slice(0, address.lastIndexOf(':')).replace(/^\[|\]$/g, '');
  return (
    address.startsWith('unix:') || ['localhost', '::1'].includes(host) || (isIP(host) === 4 && host.startsWith('127.'))
  );
}

function environment(): Settings {
  const found: Settings = {};
  for (const key of KEYS) {
    const name = 'KAGZI_' + key.toUpperCase().replaceAll('-', '_');
    const value = process.env[name];
    if (key === 'tls' && value && ![...TRUE, ...FALSE].includes(value.toLowerCase())) {
      throw new ConfigError(`${name}=${show(value)}: want true or false`);
    }
    if (value) found[key] = value;
  }
  return found;
}

/** Merges settings; a source that sets one of a pair, or something only TLS needs, settles both. */
function over(upper: Settings, lower: Settings): Settings {
  const merged = { ...upper };
  for (const [key, value] of Object.entries(lower)) {
    const settled =
      (PAIRS[key] ?? '') in upper || (key === 'tls' && Object.keys(upper).some((k) => k.startsWith('tls-')));
    if (!(key in upper) && !settled) merged[key] = value;
  }
  return merged;
}

function defaultFile(): string {
  const home = homedir();
  const base = { win32: process.env['AppData'] ?? '', darwin: join(home, 'Library', 'Application Support') }[
    process.platform as string
  ];
  return join(base ?? (process.env['XDG_CONFIG_HOME'] || join(home, '.config')), 'kagzi', 'kagzi.toml');
}

function file(profile: string): Settings {
  const config = process.env['KAGZI_CONFIG'] ?? '';
  let name = profile || (process.env['KAGZI_PROFILE'] ?? '');
  if (name === 'off') return {};
  const path = config || defaultFile();
  if (config === 'off' || (!config && !existsSync(path))) {
    if (name)
      throw new ConfigError(
        `no profile ${show(name)}: no settings file${config === 'off' ? '' : ` at ${printable(path)}`}`,
      );
    return {};
  }
  const where = printable(path);
  let content: Record<string, unknown>;
  try {
    content = parse(readFileSync(path, 'utf8').replace(/^\ufeff/, ''));
  } catch (e) {
    throw new ConfigError(`${where}: ${printable(e instanceof Error ? e.message : String(e))}`);
  }
  for (const table of Object.keys(content)) {
    if (!['server', 'client', 'profile'].includes(table))
      throw new ConfigError(`${where}: unknown table ${show(table)}; there are server, client and profile.NAME`);
  }
  const isTable = (t: unknown): t is Record<string, unknown> =>
    typeof t === 'object' && t !== null && !Array.isArray(t);
  const client = content['client'] ?? {};
  const profiles = content['profile'] ?? {};
  if (!isTable(client) || !isTable(profiles))
    throw new ConfigError(`${where}: settings of clients belong in tables [client] and [profile.NAME]`);
  const { profile: chosen, ...rest } = client;
  name ||= typeof chosen === 'string' ? chosen : '';
  const base = settings(path, 'client', rest);
  if (!name) return base;
  const own = profiles[name];
  if (!isTable(own)) {
    const known = Object.keys(profiles).sort().map(show).join(', ') || 'no table [profile.NAME]';
    throw new ConfigError(`no profile ${show(name)} in ${where}, which has ${known}`);
  }
  return over(settings(path, `profile.${name}`, own), base);
}

function settings(path: string, table: string, values: Record<string, unknown>): Settings {
  const found: Settings = {};
  for (const [key, value] of Object.entries(values)) {
    const at = `${printable(path)}: `;
    if (!KEYS.includes(key))
      throw new ConfigError(`${at}unknown setting ${show(key)} in [${table}]; there are ${KEYS.join(', ')}`);
    if (typeof value !== (key === 'tls' ? 'boolean' : 'string')) {
      throw new ConfigError(`${at}${key} in [${table}]: want ${key === 'tls' ? 'true or false' : 'a text in quotes'}`);
    }
    const text = String(value);
    found[key] = FILES.has(key) && text ? absolute(dirname(absolute(path)), text) : text;
  }
  return found;
}

function apiKey(s: Settings): { key: string; warnings: string[] } {
  const path = s['api-key-file'] ?? '';
  let key = s['api-key'] ?? '';
  if (key && path) throw new ConfigError('api-key and api-key-file are both set: set one of them');
  if (path)
    key = readPEM('api-key-file', path)
      .toString()
      .replace(/^\ufeff/, '')
      .trim();
  if ((key || path) && !/^[!-~]{1,1024}$/.test(key)) {
    throw new ConfigError('API key: want one word that begins with kz_, as `kagzi key create` prints it');
  }
  const secrets = [path, s['tls-client-key'] ?? ''].filter((p) => p && process.platform !== 'win32' && existsSync(p));
  const open = secrets.filter((p) => (statSync(p).mode & 0o004) !== 0);
  const advice = 'is a secret, and every user of this machine can read it: run chmod 600';
  return { key, warnings: open.map((p) => `${printable(p)} ${advice}`) };
}

/** Reads a file of keys or certificates. Throws a ConfigError that names the setting. */
export function readPEM(setting: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (e) {
    throw new ConfigError(`${setting}: ${e instanceof Error ? e.message : String(e)}`);
  }
}
