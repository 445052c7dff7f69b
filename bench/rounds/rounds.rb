# SPDX-License-Identifier: MIT
# See rounds.c.
kept = []
(1..).each do |round|
  8.times { kept << (kept.size % 251).chr * 10_000 }
  200.times { |n| "x" * (500 + n * 37 % 2000) }
  i = round * 7 % kept.size
  puts "ROUND #{round} LIVE #{kept.size * 10_000} #{kept[i] == (i % 251).chr * 10_000 ? 'OK' : 'WRONG'}"
  $stdout.flush
  GC.start if round % 10 == 0
  sleep 0.02
end
