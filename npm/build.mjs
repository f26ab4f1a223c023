// Makes the npm packages from the archives of a release: node npm/build.mjs DIST OUT
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [dist, out] = process.argv.slice(2);
if (!dist || !out) {
  console.error("error: name the folder with the archives, and the one for the packages");
  process.exit(2);
}

const TARGETS = {
  "x86_64-unknown-linux-gnu": { os: "linux", cpu: "x64", libc: "glibc" },
  "aarch64-unknown-linux-gnu": { os: "linux", cpu: "arm64", libc: "glibc" },
  "x86_64-unknown-linux-musl": { os: "linux", cpu: "x64", libc: "musl" },
  "aarch64-unknown-linux-musl": { os: "linux", cpu: "arm64", libc: "musl" },
  "x86_64-apple-darwin": { os: "darwin", cpu: "x64" },
  "aarch64-apple-darwin": { os: "darwin", cpu: "arm64" },
  "x86_64-pc-windows-msvc": { os: "win32", cpu: "x64" },
};

const version = /^version = "([^"]+)"/m.exec(readFileSync(join(here, "../Cargo.toml"), "utf8"))[1];
const common = {
  version,
  license: "MIT OR Apache-2.0",
  repository: { type: "git", url: "git+https://github.com/pgvet/pgvet.git" },
};

const licences = ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"];

function write(folder, manifest) {
  // npm packs files of such names only where the manifest names them.
  const files = [...manifest.files, ...licences];
  writeFileSync(join(folder, "package.json"), `${JSON.stringify({ ...manifest, files }, null, 2)}\n`);
  for (const file of licences) cpSync(join(here, "..", file), join(folder, file));
}

const optionalDependencies = {};
for (const [target, { os, cpu, libc }] of Object.entries(TARGETS)) {
  const archive = join(dist, `pgvet-${target}.${os === "win32" ? "zip" : "tar.gz"}`);
  if (!existsSync(archive)) {
    console.error(`note: ${archive} is missing, so there is no package for it`);
    continue;
  }
  const name = `@pgvet/cli-${os}-${cpu}${libc === "musl" ? "-musl" : ""}`;
  const folder = join(out, name.replace("/", "-").replace("@", ""));
  const unpacked = mkdtempSync(join(tmpdir(), "pgvet-"));
  if (archive.endsWith(".zip")) execFileSync("unzip", ["-q", archive, "-d", unpacked]);
  else execFileSync("tar", ["-xzf", archive, "-C", unpacked]);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const program = os === "win32" ? "pgvet.exe" : "pgvet";
  cpSync(join(unpacked, `pgvet-${target}`, program), join(folder, program));
  rmSync(unpacked, { recursive: true });
  const fits = { os: [os], cpu: [cpu], ...(libc ? { libc: [libc] } : {}) };
  write(folder, { name, description: `pgvet for ${target}`, ...common, ...fits, files: [program] });
  optionalDependencies[name] = version;
}

const folder = join(out, "pgvet");
rmSync(folder, { recursive: true, force: true });
cpSync(join(here, "pgvet"), folder, { recursive: true });
cpSync(join(here, "../README.md"), join(folder, "README.md"));
write(folder, {
  name: "pgvet",
  description: "A linter for PostgreSQL migrations that knows your schema",
  ...common,
  keywords: ["postgresql", "migrations", "linter", "sql"],
  bin: { pgvet: "bin/pgvet.js" },
  files: ["bin"],
  engines: { node: ">=18" },
  optionalDependencies,
});
console.log(`${Object.keys(optionalDependencies).length + 1} packages of version ${version} in ${out}`);
