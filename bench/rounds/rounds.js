// SPDX-License-Identifier: MIT
// See rounds.c. A buffer of this size has memory of its own outside of V8's heap.
const kept = [];
let round = 0;
setInterval(() => {
  for (let n = 0; n < 8; n++) kept.push(Buffer.alloc(10000, kept.length % 251));
  for (let n = 0; n < 200; n++) new Array(500 + n).fill(n);
  const i = ++round * 7 % kept.length;
  console.log(`ROUND ${round} LIVE ${kept.length * 10000} ${kept[i].every((byte) => byte === i % 251) ? "OK" : "WRONG"}`);
}, 20);
