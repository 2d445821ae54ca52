#!/usr/bin/env bash
# Checks style and generated code of the SDK, packs it, and runs the package in an empty project without a network:
# check.sh FOLDER, with a folder for the package. Run install.sh first; it checks the types.
set -euo pipefail
cd "$(dirname "$0")"

folder=$1
node generate.mjs --check
npx --no-install eslint .
bash world/install.sh
(cd world && ../node_modules/.bin/eslint .)
npx --no-install prettier --check --log-level warn .
if grep -q '"resolved": "http' package-lock.json world/package-lock.json; then
	echo 'package-lock.json names a registry: keep .npmrc' >&2
	exit 1
fi
mkdir -p "$folder/project"
npm pack --silent --ignore-scripts --pack-destination "$folder"
cd "$folder/project"
echo '{"type": "module", "private": true}' >package.json
# The package has its dependencies in it: it needs neither a registry nor what npm has in its cache.
npm install --offline --cache "$folder/npm-cache" --no-audit --no-fund --loglevel=error "$folder"/kagzi-sdk-*.tgz
cat >main.js <<'JS'
import { Client, Worker, workflow } from '@kagzi/sdk';
import { Server } from '@kagzi/sdk/testing';

const server = await Server.start();
const options = { profile: 'off', address: server.address, handleSignals: false };
const greet = workflow('greet', (run, name) => run.step('compose', () => `hello ${name}`));
const worker = new Worker([greet], options);
const served = worker.run();
const client = new Client(options);
const text = await (await client.start(greet, 'package')).result('20s');
client.close();
worker.stop();
await served;
await server.close();
if (text !== 'hello package') throw new Error(`the workflow returned ${text}`);
console.log(text);
JS
node main.js
