-- One session of a real editor: opens a migration, reads its diagnostics, applies a fix, and reads them again.
local function fail(why)
  io.stderr:write(why .. '\n')
  vim.cmd('cquit')
end

local function wait(what, condition)
  if not vim.wait(20000, condition, 20) then fail('waited in vain for ' .. what) end
end

local function codes()
  local found = vim.tbl_map(function(one) return one.code end, vim.diagnostic.get(0))
  table.sort(found)
  return table.concat(found, ' ')
end

vim.cmd('edit ' .. os.getenv('MIGRATION'))
local client = vim.lsp.start_client({
  name = 'pgvet',
  cmd = { os.getenv('PGVET'), 'lsp' },
  root_dir = vim.fn.getcwd(),
})
vim.lsp.buf_attach_client(0, client)
wait('the findings', function() return codes() == 'index-without-concurrently' end)

local hover = vim.lsp.buf_request_sync(0, 'textDocument/hover', {
  textDocument = vim.lsp.util.make_text_document_params(),
  position = { line = 1, character = 3 },
}, 5000)
if not hover[client].result.contents.value:find('SHARE') then fail('no effects in ' .. vim.inspect(hover)) end

local actions = vim.lsp.buf_request_sync(0, 'textDocument/codeAction', {
  textDocument = vim.lsp.util.make_text_document_params(),
  range = { start = { line = 1, character = 0 }, ['end'] = { line = 1, character = 0 } },
  context = { diagnostics = {} },
}, 5000)
local fix = actions[client].result[1]
vim.lsp.util.apply_workspace_edit(fix.edit, 'utf-16')
-- The index is built without blocking now, but may end early.
wait('the findings after the fix', function() return codes() == 'timeout-during-concurrent-build' end)
local line = vim.api.nvim_buf_get_lines(0, 1, 2, false)[1]
if line ~= 'CREATE INDEX CONCURRENTLY i ON orders (note);' then fail('fixed to ' .. line) end
vim.cmd('qall!')
