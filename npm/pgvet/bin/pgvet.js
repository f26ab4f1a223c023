#!/usr/bin/env node
// Runs the program of the package that fits this machine.
"use strict";

const { spawnSync } = require("node:child_process");

function libc() {
  if (process.platform !== "linux") return "";
  const { glibcVersionRuntime } = process.report.getReport().header;
  return glibcVersionRuntime ? "" : "-musl";
}

const name = `@pgvet/cli-${process.platform}-${process.arch}${libc()}`;
const file = process.platform === "win32" ? "pgvet.exe" : "pgvet";

let program;
try {
  program = require.resolve(`${name}/${file}`);
} catch {
  console.error(`error: the package ${name} is not installed, which has pgvet for this machine.`);
  console.error("  help: install again without --omit=optional, and without a package-lock.json that knows other systems only;");
  console.error("        where npm has no such package, build pgvet with Rust and a C compiler: https://github.com/pgvet/pgvet");
  process.exit(2);
}

const run = spawnSync(program, process.argv.slice(2), { stdio: "inherit" });
if (run.error) {
  console.error(`error: ${program} does not run: ${run.error.message}`);
  process.exit(2);
}
if (run.signal) process.kill(process.pid, run.signal);
process.exit(run.status ?? 2);
