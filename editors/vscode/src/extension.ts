// Starts `pgvet lsp` and shows what it is doing.

import { execFile } from "node:child_process";
import { realpathSync, statSync } from "node:fs";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions, State } from "vscode-languageclient/node";
import { type Disk, describeMigrations, findProgram, traceArguments, traceRefusal } from "./program";

const LANGUAGES = ["sql", "postgres"];

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const status = vscode.window.createStatusBarItem("pgvet.status", vscode.StatusBarAlignment.Right, 100);
  status.name = "pgvet";
  status.command = "pgvet.showLog";
  context.subscriptions.push(
    status,
    vscode.commands.registerCommand("pgvet.trace", trace),
    vscode.commands.registerCommand("pgvet.restart", restart),
    vscode.commands.registerCommand("pgvet.showLog", () => client?.outputChannel.show()),
    vscode.window.onDidChangeActiveTextEditor((editor) => void showStatus(status, editor)),
    vscode.workspace.onDidSaveTextDocument(() => void showStatus(status, vscode.window.activeTextEditor)),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("pgvet.path")) {
        void restart();
      }
    }),
  );
  await start();
  await showStatus(status, vscode.window.activeTextEditor);
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}

function settings(): vscode.WorkspaceConfiguration {
  return vscode.workspace.getConfiguration("pgvet");
}

const DISK: Disk = {
  isFile: (file) => statSync(file, { throwIfNoEntry: false })?.isFile() ?? false,
  real: (file) => {
    try {
      return realpathSync(file);
    } catch {
      return file;
    }
  },
};

/** The program; a name that is on no path stands for itself in what is said about it. */
function program(): { name: string; path: string | undefined } {
  const name = settings().get("path", "pgvet");
  const open = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  return { name, path: findProgram(name, process.env.PATH ?? "", open, process.platform === "win32", DISK) };
}

async function start(): Promise<void> {
  const { name, path } = program();
  if (path === undefined) {
    await askToInstall(`pgvet: there is no \`${name}\` on PATH outside of the open folders`);
    return;
  }
  const server: ServerOptions = { command: path, args: ["lsp"] };
  const options: LanguageClientOptions = {
    documentSelector: LANGUAGES.flatMap((language) => [
      { language, scheme: "file" },
      { language, scheme: "untitled" },
    ]),
    initializationOptions: { inlayHints: settings().get("inlayHints", false) },
    synchronize: { configurationSection: "pgvet" },
  };
  client = new LanguageClient("pgvet", "pgvet", server, options);
  try {
    await client.start();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    await askToInstall(`pgvet: \`${path}\` does not start: ${why}`);
  }
}

async function askToInstall(why: string): Promise<void> {
  const install = "How to Install";
  if ((await vscode.window.showErrorMessage(why, install)) === install) {
    await vscode.env.openExternal(vscode.Uri.parse("https://github.com/pgvet/pgvet#first-run"));
  }
}

async function restart(): Promise<void> {
  if (client?.state === State.Running) {
    await client.stop();
  }
  await client?.dispose();
  await start();
}

/** Shows the version, and the tool that was detected for the migration in the editor. */
async function showStatus(status: vscode.StatusBarItem, editor: vscode.TextEditor | undefined): Promise<void> {
  if (editor === undefined || !LANGUAGES.includes(editor.document.languageId) || editor.document.uri.scheme !== "file") {
    status.hide();
    return;
  }
  const version = client?.initializeResult?.serverInfo?.version;
  status.text = version === undefined ? "$(warning) pgvet" : "$(database) pgvet";
  status.tooltip = version === undefined ? "pgvet does not run" : `pgvet ${version}`;
  status.show();
  try {
    const { path } = program();
    if (path === undefined) {
      return;
    }
    const { stdout } = await promisify(execFile)(path, ["config", "--format", "json", editor.document.uri.fsPath]);
    const migrations = describeMigrations(stdout);
    if (migrations !== undefined && vscode.window.activeTextEditor === editor) {
      status.text = `$(database) pgvet: ${migrations.tool}`;
      status.tooltip = `pgvet ${version ?? ""}\n${migrations.details}`;
    }
  } catch {
    // The server has told what is wrong.
  }
}

async function trace(): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  // To trace a migration is to run it.
  if (editor === undefined || editor.document.uri.scheme !== "file" || !vscode.workspace.isTrusted) {
    return;
  }
  const { path: found } = program();
  if (found === undefined) {
    return;
  }
  const file = editor.document.uri.fsPath;
  const refusal = traceRefusal(found, file, process.platform === "win32");
  if (refusal !== undefined) {
    void vscode.window.showErrorMessage(refusal);
    return;
  }
  await editor.document.save();
  const folder = vscode.workspace.getWorkspaceFolder(editor.document.uri);
  const given = settings().get<string[]>("traceArguments", []);
  // A process and no line for a shell: each shell has quotes of its own, and names of files belong to the checkout.
  const execution = new vscode.ProcessExecution(found, traceArguments(file, given), { cwd: folder?.uri.fsPath });
  const scope = folder ?? vscode.TaskScope.Workspace;
  const task = new vscode.Task({ type: "pgvet" }, scope, "trace", "pgvet", execution, []);
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, panel: vscode.TaskPanelKind.Dedicated, clear: true };
  await vscode.tasks.executeTask(task);
}
