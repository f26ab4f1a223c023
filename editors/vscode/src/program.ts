// What the program prints, and how it is called; nothing here needs the editor.

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

/** The line for a shell that traces a migration. */
export function traceCommand(program: string, path: string, options: string[], isWindows: boolean): string {
  const words = [program, "trace", path, ...options].map((word) => quoted(word, isWindows));
  // PowerShell runs a quoted program only after an ampersand.
  return isWindows ? `& ${words.join(" ")}` : words.join(" ");
}

function quoted(word: string, isWindows: boolean): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) {
    return word;
  }
  return isWindows ? `'${word.replaceAll("'", "''")}'` : `'${word.replaceAll("'", `'\\''`)}'`;
}
