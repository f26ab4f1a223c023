import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { buildSync } from "esbuild";

const built = buildSync({ entryPoints: ["src/program.ts"], bundle: true, format: "esm", write: false });
const { describeMigrations, traceCommand } = await import(
  `data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`
);

test("paths and options reach the shell as they are", () => {
  assert.equal(traceCommand("pgvet", "/a/1.sql", ["--rows", "o=1k"], false), "pgvet trace /a/1.sql --rows o=1k");
  const line = traceCommand("printf", "it's $HOME.sql", ["%s\\n"], false).replace("trace", "'%s\\n'");
  assert.equal(execFileSync("sh", ["-c", line], { encoding: "utf8" }).split("\n")[0], "it's $HOME.sql");
  assert.equal(traceCommand("C:\\a b\\pgvet.exe", "x'y.sql", [], true), "& 'C:\\a b\\pgvet.exe' trace 'x''y.sql'");
});

test("the detected tool is shown", () => {
  const detected = { folder: "db/migrations", tools: [{ tool: "goose", files: 3 }], files: 3 };
  assert.deepEqual(describeMigrations(JSON.stringify({ migrations: [detected] })), {
    tool: "goose",
    details: "3 migrations in db/migrations",
  });
  for (const output of ["", "{}", '{"migrations": []}', "not JSON"]) {
    assert.equal(describeMigrations(output), undefined);
  }
});

test("the bundle needs nothing but the editor and Node", () => {
  const bundle = readFileSync("dist/extension.js", "utf8");
  const needed = new Set([...bundle.matchAll(/\brequire\("([^"]+)"\)/g)].map((match) => match[1]));
  const foreign = [...needed].filter((name) => !/^(vscode|node:.*|child_process|crypto|fs|net|os|path|util|url|events|assert|buffer|stream|string_decoder|tty|process|worker_threads)$/.test(name));
  assert.deepEqual(foreign, []);
});

test("the extension has the version of the program", () => {
  const [, version] = /^version = "(.+)"/m.exec(readFileSync("../../Cargo.toml", "utf8"));
  for (const file of ["package.json", "package-lock.json"]) {
    assert.equal(JSON.parse(readFileSync(file, "utf8")).version, version, file);
  }
});
