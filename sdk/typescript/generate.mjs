// Generates the protobuf code in src/v1 from proto/kagzi/v1.
//
// node generate.mjs          writes the code
// node generate.mjs --check  fails if the code in the tree is not what would be written
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const here = import.meta.dirname;
const protos = join(here, '..', '..', 'proto', 'kagzi', 'v1');
const target = join(here, 'src', 'v1');

/** Returns a file without its HTTP routes, which would need the protos of googleapis. */
function withoutRoutes(text) {
  return text
    .replace('import "google/api/annotations.proto";\n', '')
    .replace(/ \{\n {4}option \(google\.api\.http\) = [^\n]*\n {2}\}/g, ';');
}

/** Lists the files below a folder, with their contents. */
function contents(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.ts'));
  return new Map(files.sort().map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}

const scratch = mkdtempSync(join(tmpdir(), 'kagzi-generate-'));
try {
  const source = join(scratch, 'proto', 'kagzi', 'v1');
  mkdirSync(source, { recursive: true });
  for (const name of readdirSync(protos).filter((one) => one.endsWith('.proto') && one !== 'namespace.proto')) {
    writeFileSync(join(source, name), withoutRoutes(readFileSync(join(protos, name), 'utf8')));
  }
  const plugin = {
    local: join(here, 'node_modules', '.bin', 'protoc-gen-ts_proto'),
    out: 'made',
    opt: [
      'esModuleInterop=true',
      'importSuffix=.js',
      'env=node',
      'outputPartialMethods=true',
      'forceLong=number',
      'useDate=false',
      'outputJsonMethods=false',
      'outputServices=generic-definitions',
      'exportCommonSymbols=false',
      'removeEnumPrefix=true',
      'unrecognizedEnum=false',
      'useExactTypes=false',
      'comments=false',
    ],
  };
  writeFileSync(join(scratch, 'buf.yaml'), JSON.stringify({ version: 'v2', modules: [{ path: 'proto' }] }));
  writeFileSync(join(scratch, 'buf.gen.yaml'), JSON.stringify({ version: 'v2', plugins: [plugin] }));
  execFileSync(join(here, 'node_modules', '.bin', 'buf'), ['generate', '--include-wkt', '--include-imports'], {
    cwd: scratch,
    stdio: 'inherit',
  });
  const made = join(scratch, 'made');
  const want = contents(made);
  if (process.argv.includes('--check')) {
    const have = contents(target);
    const stale = [...new Set([...want.keys(), ...have.keys()])].filter((name) => want.get(name) !== have.get(name));
    for (const name of stale) console.error(`src/v1/${name} is not what the .proto files say: run node generate.mjs`);
    process.exitCode = stale.length > 0 ? 1 : 0;
  } else {
    rmSync(target, { recursive: true, force: true });
    cpSync(made, target, { recursive: true });
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
