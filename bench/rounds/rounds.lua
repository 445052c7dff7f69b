-- SPDX-License-Identifier: MIT
-- See rounds.c. Lua has no sleep: it computes until the time has come.
local kept, round = {}, 0
while true do
  round = round + 1
  for _ = 1, 8 do kept[#kept + 1] = string.char(#kept % 251):rep(10000) end
  for n = 0, 199 do local garbage = ("x"):rep(500 + n * 37 % 2000) end
  local i = round * 7 % #kept
  print(("ROUND %d LIVE %d %s"):format(round, #kept * 10000, kept[i + 1] == string.char(i % 251):rep(10000) and "OK" or "WRONG"))
  io.stdout:flush()
  if round % 10 == 0 then collectgarbage() end
  local later = os.clock() + 0.02
  while os.clock() < later do local garbage = {} end
end
