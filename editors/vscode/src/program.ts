// What the program prints, and how it is found and called; nothing here needs the editor.

import * as path from "node:path";

/** What is known of files and folders. */
export interface Disk {
  isFile(file: string): boolean;
  /** The path without links. */
  real(file: string): string;
}

/**
 * The path of a program: of a bare name, the first one on PATH outside of the folders that are open. Windows looks in
 * the current folder first, which is one of them. `undefined` if there is none.
 */
export function findProgram(
  name: string,
  searched: string,
  open: string[],
  isWindows: boolean,
  disk: Disk,
): string | undefined {
  const system = isWindows ? path.win32 : path.posix;
  if (name.includes("/") || (isWindows && /[\\:]/.test(name))) {
    return name;
  }
  const file = isWindows && !/\.exe$/i.test(name) ? `${name}.exe` : name;
  const isOpen = (found: string): boolean =>
    open.some((folder) => {
      const below = system.relative(disk.real(folder), disk.real(found));
      return below === "" || !(below === ".." || below.startsWith(`..${system.sep}`) || system.isAbsolute(below));
    });
  const folders = searched.split(system.delimiter).filter((folder) => system.isAbsolute(folder));
  return folders.map((folder) => system.join(folder, file)).find((found) => disk.isFile(found) && !isOpen(found));
}

/** The migrations that a file belongs to, for people. */
export interface Migrations {
  tool: string;
  details: string;
}

interface Detected {
  folder: string;
  tools: { tool: string; files: number }[];
  files: number;
}

/** Reads what `pgvet config --format json` prints; `undefined` where it says nothing about migrations. */
export function describeMigrations(output: string): Migrations | undefined {
  let detected: Detected | undefined;
  try {
    detected = (JSON.parse(output) as { migrations?: Detected[] }).migrations?.[0];
  } catch {
    return undefined;
  }
  const tool = detected?.tools[0]?.tool;
  if (detected === undefined || tool === undefined) {
    return undefined;
  }
  return { tool: tool === "plain" ? "psql" : tool, details: `${detected.files} migrations in ${detected.folder}` };
}

/** The arguments of the program that traces a migration: no shell reads them. */
export function traceArguments(file: string, options: string[]): string[] {
  return ["trace", file, ...options];
}

/** Why a file is not traced; `undefined` if it is. */
export function traceRefusal(program: string, file: string, isWindows: boolean): string | undefined {
  // The editor replaces variables in the arguments of a task, and `${command:...}` runs a command.
  if (/\p{Cc}|\$\{/u.test(file)) {
    return "pgvet does not trace a file whose path has control characters or `${`.";
  }
  // Windows has a command processor read the arguments of a batch file.
  if (isWindows && /\.(?:bat|cmd)[ .]*$/i.test(program)) {
    return "pgvet does not trace with a batch file: name pgvet.exe in `pgvet.path`.";
  }
  return undefined;
}
