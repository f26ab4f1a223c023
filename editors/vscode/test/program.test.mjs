import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { buildSync } from "esbuild";

const built = buildSync({ entryPoints: ["src/program.ts"], bundle: true, platform: "node", format: "esm", write: false });
const { describeMigrations, findProgram, traceArguments, traceRefusal } = await import(
  `data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`
);

test("no shell reads the name of a file", () => {
  // PowerShell takes the first for quotes, fish the second.
  for (const file of ["/a/1\u2019; calc; \u2019.sql", "/a/x\\'; touch pwned; '.sql", "/a/$(x) `y` \"z\" %PATH%.sql"]) {
    assert.deepEqual(traceArguments(file, ["--rows", "o=1k"]), ["trace", file, "--rows", "o=1k"]);
    assert.equal(execFileSync("printf", ["%s\n", ...traceArguments(file, [])], { encoding: "utf8" }), `trace\n${file}\n`);
    assert.equal(traceRefusal("/usr/bin/pgvet", file, false), undefined);
  }
  const extension = readFileSync("src/extension.ts", "utf8");
  assert.match(extension, /new vscode\.ProcessExecution\(/);
  assert.doesNotMatch(extension, /sendText|ShellExecution|createTerminal|shell: true/);
});

test("a file or a program that something else would read is refused", () => {
  assert.match(traceRefusal("pgvet", "/a/${command:workbench.action.quit}.sql", false), /does not trace/);
  assert.match(traceRefusal("pgvet", "/a/1\n.sql", false), /does not trace/);
  for (const program of ["C:\\a\\pgvet.cmd", "C:\\a\\pgvet.BAT", "C:\\a\\pgvet.cmd. "]) {
    assert.match(traceRefusal(program, "C:\\a\\1.sql", true), /batch file/);
  }
  assert.equal(traceRefusal("C:\\a\\pgvet.exe", "C:\\a\\1.sql", true), undefined);
});

test("a program in a folder that is open is not found", () => {
  const files = ["/work/app/pgvet", "/home/me/bin/pgvet", "/link/pgvet"];
  const disk = { isFile: (file) => files.includes(file), real: (file) => file.replace("/link", "/work/app/bin") };
  const find = (name, searched) => findProgram(name, searched, ["/work/app", "/work/other"], false, disk);
  assert.equal(find("pgvet", "/work/app:.::bin:/link:/home/me/bin"), "/home/me/bin/pgvet");
  assert.equal(find("pgvet", "/work/app:/link:."), undefined);
  assert.equal(find("/work/app/pgvet", ""), "/work/app/pgvet", "a path is the choice of the user");
  const windows = { isFile: (file) => /^(C:\\work|D:\\bin)\\pgvet\.exe$/.test(file), real: (file) => file };
  const onWindows = (searched) => findProgram("pgvet", searched, ["C:\\work"], true, windows);
  assert.equal(onWindows("C:\\work;D:\\bin"), "D:\\bin\\pgvet.exe");
  assert.equal(onWindows("C:\\work;."), undefined);
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
