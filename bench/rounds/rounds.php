<?php
// SPDX-License-Identifier: MIT
// See rounds.c.
ini_set("memory_limit", "-1");
$kept = [];
for ($round = 1;; $round++) {
    for ($n = 0; $n < 8; $n++) $kept[] = str_repeat(chr(count($kept) % 251), 10000);
    for ($n = 0; $n < 200; $n++) $garbage = str_repeat("x", 500 + $n * 37 % 2000);
    $i = $round * 7 % count($kept);
    printf("ROUND %d LIVE %d %s\n", $round, count($kept) * 10000, $kept[$i] === str_repeat(chr($i % 251), 10000) ? "OK" : "WRONG");
    usleep(20000);
}
