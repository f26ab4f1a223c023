"""Every request and notification, as a real client library sends and reads them."""

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

HISTORY = "CREATE TABLE orders (id bigint PRIMARY KEY, note varchar(20));\n"
MIGRATION = """SET lock_timeout = '2s';
CREATE INDEX orders_note ON orders (note);
ALTER TABLE orders ALTER COLUMN note TYPE varchar(10);
-- pgvet: ignore[table-rewrite]
SELECT 1;
"""


def capabilities(pulls: bool) -> types.ClientCapabilities:
    found = client_capabilities("neovim@v0.11.0" if pulls else "neovim@v0.7.0")
    text = found.text_document
    assert text is not None
    text.diagnostic = types.DiagnosticClientCapabilities() if pulls else None
    encoding = types.PositionEncodingKind.Utf8 if pulls else types.PositionEncodingKind.Utf16
    found.general = types.GeneralClientCapabilities(position_encodings=[encoding])
    text.publish_diagnostics = types.PublishDiagnosticsClientCapabilities(
        related_information=True, code_description_support=True
    )
    return found


@pytest_lsp.fixture(
    params=["push", "pull"],
    config=ClientServerConfig(server_command=[os.environ["PGVET"], "lsp", "--stdio"]),
)
async def client(request, lsp_client: LanguageClient, tmp_path: Path):
    migrations = tmp_path / "migrations"
    migrations.mkdir()
    (migrations / "1.sql").write_text(HISTORY)
    (tmp_path / "pgvet.toml").write_text('[migrations]\ntransaction = "autocommit"\n')

    @lsp_client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
    def refresh(_):
        return None

    result = await lsp_client.initialize_session(
        types.InitializeParams(
            capabilities=capabilities(request.param == "pull"),
            initialization_options={"inlayHints": True},
            root_uri=tmp_path.as_uri(),
        )
    )
    assert result.server_info.name == "pgvet"
    assert (result.capabilities.diagnostic_provider is not None) == (request.param == "pull")
    lsp_client.uri = (migrations / "2.sql").as_uri()
    lsp_client.migrations = migrations
    lsp_client.agreed_encoding = result.capabilities.position_encoding or "utf-16"
    assert lsp_client.agreed_encoding == ("utf-8" if request.param == "pull" else "utf-16")
    lsp_client.pulls = request.param == "pull"
    yield
    await lsp_client.shutdown_session()


def open_document(client: LanguageClient, text: str) -> None:
    document = types.TextDocumentItem(uri=client.uri, language_id="sql", version=1, text=text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=document))


async def diagnostics(client: LanguageClient) -> list[types.Diagnostic]:
    if not client.pulls:
        await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        return list(client.diagnostics[client.uri])
    report = await client.text_document_diagnostic_async(
        types.DocumentDiagnosticParams(text_document=identifier(client))
    )
    return list(report.items)


def identifier(client: LanguageClient) -> types.TextDocumentIdentifier:
    return types.TextDocumentIdentifier(uri=client.uri)


def position(line: int, character: int) -> types.Position:
    return types.Position(line=line, character=character)


def span(line: int, start: int, end: int) -> types.Range:
    return types.Range(start=position(line, start), end=position(line, end))


def applied(text: str, edits: list[types.TextEdit]) -> str:
    lines = text.splitlines(keepends=True)

    def offset(at: types.Position) -> int:
        return sum(len(line) for line in lines[: at.line]) + at.character

    for edit in sorted(edits, key=lambda edit: offset(edit.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


@pytest.mark.asyncio
async def test_diagnostics(client: LanguageClient):
    open_document(client, MIGRATION)
    found = await diagnostics(client)
    assert [one.code for one in found] == [
        "index-without-concurrently",
        "type-change-rewrites-table",
        "type-narrowing",
        "unused-suppression",
    ]
    index, _, _, unused = found
    assert index.range == span(1, 0, 12)
    assert index.severity == types.DiagnosticSeverity.Error
    assert index.source == "pgvet"
    assert index.code_description.href.endswith("/rules/index-without-concurrently.md")
    assert "help: " in index.message
    assert list(unused.tags) == [types.DiagnosticTag.Unnecessary]


@pytest.mark.asyncio
async def test_incremental_and_full_changes(client: LanguageClient):
    open_document(client, MIGRATION)
    await diagnostics(client)
    change = types.TextDocumentContentChangePartial(range=span(1, 12, 12), text=" CONCURRENTLY")
    expected = ["timeout-during-concurrent-build", "type-change-rewrites-table", "type-narrowing", "unused-suppression"]
    await changed(client, 2, change, expected)
    whole = types.TextDocumentContentChangeWholeDocument(text="SELEC 1;\n")
    await changed(client, 3, whole, ["syntax-error"])


async def changed(client: LanguageClient, version: int, change, expected: list[str]) -> None:
    document = types.VersionedTextDocumentIdentifier(uri=client.uri, version=version)
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(text_document=document, content_changes=[change])
    )
    assert [one.code for one in await diagnostics(client)] == expected


@pytest.mark.asyncio
async def test_an_unchanged_report(client: LanguageClient):
    if not client.pulls:
        return
    open_document(client, MIGRATION)
    params = types.DocumentDiagnosticParams(text_document=identifier(client))
    first = await client.text_document_diagnostic_async(params)
    params.previous_result_id = first.result_id
    second = await client.text_document_diagnostic_async(params)
    assert second.kind == "unchanged" and second.result_id == first.result_id


@pytest.mark.asyncio
async def test_related_information_leads_to_other_files(client: LanguageClient):
    function = "CREATE FUNCTION notes() RETURNS SETOF text LANGUAGE sql AS 'SELECT note FROM orders';\n"
    history = client.migrations / "1b.sql"
    history.write_text(function)
    open_document(client, "SET lock_timeout = '2s';\nALTER TABLE orders DROP COLUMN note;\n")
    found = await diagnostics(client)
    (related,) = next(one for one in found if one.code == "drop-column").related_information
    assert related.location == types.Location(uri=history.as_uri(), range=span(0, 67, 71))
    assert related.message == "notes() still uses it"


@pytest.mark.asyncio
async def test_fixes_and_suppressions(client: LanguageClient):
    open_document(client, MIGRATION)
    found = await diagnostics(client)
    actions = await code_actions(client, span(1, 0, 3), found[:1])
    titles = [action.title for action in actions]
    assert titles[0].startswith("pgvet: Build the index concurrently")
    assert titles[1] == "pgvet: ignore index-without-concurrently here"
    assert actions[0].diagnostics[0].code == "index-without-concurrently"
    fixed = applied(MIGRATION, actions[0].edit.changes[client.uri])
    assert "CREATE INDEX CONCURRENTLY orders_note" in fixed
    ignored = applied(MIGRATION, actions[1].edit.changes[client.uri])
    assert ignored.splitlines()[1] == "-- pgvet: ignore[index-without-concurrently]"
    document = types.TextDocumentContentChangeWholeDocument(text=ignored)
    await changed(client, 2, document, ["type-change-rewrites-table", "type-narrowing", "unused-suppression"])


@pytest.mark.asyncio
async def test_the_safer_steps(client: LanguageClient):
    text = "SET lock_timeout = '2s';\nALTER TABLE orders ALTER COLUMN note SET NOT NULL;\nSELECT 1;\n"
    open_document(client, text)
    await diagnostics(client)
    actions = await code_actions(client, span(1, 40, 45), [], only=["refactor"])
    assert [action.title for action in actions] == ["pgvet: show the safer statements below, as a comment"]
    shown = applied(text, actions[0].edit.changes[client.uri]).splitlines()
    assert shown[:2] == text.splitlines()[:2] and shown[-1] == "SELECT 1;"
    assert all(line.startswith("--") for line in shown[2:-1])
    assert any("NOT VALID;" in line for line in shown) and any("VALIDATE CONSTRAINT" in line for line in shown)


@pytest.mark.asyncio
async def test_all_safe_fixes_at_once(client: LanguageClient):
    open_document(client, MIGRATION)
    await diagnostics(client)
    actions = await code_actions(client, span(0, 0, 0), [], only=["source.fixAll"])
    assert [action.kind for action in actions] == ["source.fixAll.pgvet"]
    fixed = applied(MIGRATION, actions[0].edit.changes[client.uri])
    assert "pgvet: ignore" not in fixed and fixed.count("\n") == MIGRATION.count("\n") - 1


async def code_actions(client, place, found, only=None):
    params = types.CodeActionParams(
        text_document=identifier(client),
        range=place,
        context=types.CodeActionContext(diagnostics=found, only=only),
    )
    return await client.text_document_code_action_async(params)


@pytest.mark.asyncio
async def test_hover_shows_effects(client: LanguageClient):
    open_document(client, MIGRATION)
    await diagnostics(client)
    hover = await hover_at(client, 2, 5)
    assert "| public.orders | ACCESS EXCLUSIVE | reads and writes |" in hover.contents.value
    assert "**rewrite** public.orders" in hover.contents.value
    assert hover.range.start == position(2, 0)


@pytest.mark.asyncio
async def test_hover_and_effects_name_the_same_version(client: LanguageClient):
    open_document(client, MIGRATION)
    await diagnostics(client)
    hover = await hover_at(client, 2, 5)
    command = [os.environ["PGVET"], "effects", "--format", "json", "-", "--stdin-filename", "migrations/2.sql"]
    effects = subprocess.run(
        command, cwd=client.migrations.parent, input=MIGRATION, capture_output=True, text=True, check=True
    )
    version = json.loads(effects.stdout)["pg_version"]
    assert hover.contents.value.endswith(f"\nPredicted for PostgreSQL {version}")


@pytest.mark.asyncio
async def test_hover_shows_the_page_of_a_suppressed_rule(client: LanguageClient):
    open_document(client, MIGRATION)
    hover = await hover_at(client, 3, 20)
    assert hover.contents.value.startswith("**table-rewrite**")
    assert hover.range == span(3, 17, 30)
    assert await hover_at(client, 3, 2) is None or "table-rewrite" not in (await hover_at(client, 3, 2)).contents.value


async def hover_at(client, line, character):
    params = types.HoverParams(text_document=identifier(client), position=position(line, character))
    return await client.text_document_hover_async(params)


@pytest.mark.asyncio
async def test_inlay_hints(client: LanguageClient):
    open_document(client, MIGRATION)
    await diagnostics(client)
    params = types.InlayHintParams(
        text_document=identifier(client), range=types.Range(start=position(0, 0), end=position(9, 0))
    )
    hints = await client.text_document_inlay_hint_async(params)
    assert [(hint.position.line, hint.label) for hint in hints] == [
        (1, "SHARE orders · scans · builds an index"),
        (2, "ACCESS EXCLUSIVE orders · rewrites"),
    ]
    assert hints[0].position.character == len(MIGRATION.splitlines()[1])


@pytest.mark.asyncio
async def test_document_symbols(client: LanguageClient):
    open_document(client, MIGRATION)
    params = types.DocumentSymbolParams(text_document=identifier(client))
    symbols = await client.text_document_document_symbol_async(params)
    assert [symbol.name for symbol in symbols][1:3] == [
        "CREATE INDEX orders_note ON orders",
        "ALTER TABLE orders ALTER COLUMN note TYPE varchar",
    ]
    assert symbols[1].range == span(1, 0, 41)


@pytest.mark.asyncio
async def test_completion_of_rule_names(client: LanguageClient):
    open_document(client, "-- pgvet: ignore[table-rewrite, tab\nSELECT 1;\n")
    params = types.CompletionParams(text_document=identifier(client), position=position(0, 35))
    items = await client.text_document_completion_async(params)
    labels = [item.label for item in items]
    assert "truncate-existing-table" in labels
    assert "table-rewrite" not in labels and "syntax-error" not in labels
    assert items[0].text_edit.range == span(0, 32, 35)
    params.position = position(1, 3)
    assert list(await client.text_document_completion_async(params)) == []


@pytest.mark.asyncio
async def test_wide_characters(client: LanguageClient):
    before = "/* \U0001f418\u00e9 */ "
    open_document(client, f"SET lock_timeout = '2s';\n{before}CREATE INDEX i ON orders (note);\n")
    found = await diagnostics(client)
    units = {"utf-8": len(before.encode()), "utf-16": len(before.encode("utf-16-le")) // 2}
    assert found[0].range.start.character == units[client.agreed_encoding]


@pytest.mark.asyncio
async def test_other_notifications_do_no_harm(client: LanguageClient):
    open_document(client, MIGRATION)
    first = await diagnostics(client)
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings={"pgvet": {"inlayHints": False}}))
    client.text_document_did_save(types.DidSaveTextDocumentParams(text_document=identifier(client)))
    client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(changes=[]))
    assert await diagnostics(client) == first
    client.text_document_did_close(types.DidCloseTextDocumentParams(text_document=identifier(client)))
    if not client.pulls:
        assert await diagnostics(client) == []
    await asyncio.sleep(0)
