# SPDX-License-Identifier: MIT
"""The order of accesses to shared words (docs/porting.md), tried in all ways that aarch64 allows. Used by check.py.

A litmus test is a few threads of accesses, as the source has them, and an outcome that must not be. All orders are
tried in which a machine may make the accesses visible whose stores reach all other threads at one moment (as those of aarch64
do, and of x86-64): each thread's own, but for accesses to one word, what depends on what was read, and what an order of the
source forbids. A read-modify-write is a load and a store; an acquire holds only for the load.

What the model does not have: a load that takes its value from the thread's own store before others see that; accesses of
different widths; caches of instructions.
"""
import dataclasses
import itertools
import re


@dataclasses.dataclass(frozen=True)
class Access:
    kind: str  # R, W or F (a fence)
    word: str = ""
    value: object = None  # W: a number; R: name of the register
    order: str = ""  # acquire, release, or of a fence acquire, release, full
    guard: tuple = ()  # ((register, value), ...): made only if the registers have these values
    atomic: str = ""  # W: the register of the load with which it is one piece


def read(word, register, order="", guard=()):
    return [Access("R", word, register, order, tuple(guard))]


def write(word, value, order="", guard=()):
    return [Access("W", word, value, order, tuple(guard))]


def change(word, old, new, register, order="", guard=()):
    """A compare-and-swap; whether it took place is to be asked of the register."""
    guard = tuple(guard)
    return [Access("R", word, register, order if order == "acquire" else "", guard),
            Access("W", word, new, order if order == "release" else "", guard + ((register, old),), register)]


def fence(order):
    return [Access("F", order=order)]


def ordered(thread, i, j):
    """Does access i come before access j, of the same thread, for all to see? i < j."""
    a, b = thread[i], thread[j]
    if a.word == b.word or a.order == "acquire" or b.order == "release":
        return True
    if a.kind == "R" and b.kind == "W" and any(register == a.value for register, _ in b.guard):
        return True
    for between in thread[i + 1:j]:
        if between.kind == "F" and (between.order == "full" or (between.order == "acquire" and a.kind == "R")
                                    or (between.order == "release" and b.kind == "W")):
            return True
    return False


def outcomes(threads, start):
    """The values of registers and words after each order that is possible."""
    threads = [list(itertools.chain.from_iterable(thread)) for thread in threads]
    before = [[[i for i in range(j) if thread[i].kind != "F" and ordered(thread, i, j)] for j in range(len(thread))]
              for thread in threads]
    found, seen = set(), set()
    stack = [(tuple(frozenset(i for i, access in enumerate(thread) if access.kind == "F") for thread in threads),
              frozenset(start.items()), frozenset(), frozenset())]
    while stack:
        state = stack.pop()
        if state in seen:
            continue
        seen.add(state)
        done, memory, registers, held = state
        words, values = dict(memory), dict(registers)
        if all(len(done[t]) == len(thread) for t, thread in enumerate(threads)):
            found.add((registers, memory))
        for t, thread in enumerate(threads):
            for j, access in enumerate(thread):
                if j in done[t] or not all(i in done[t] for i in before[t][j]):
                    continue
                after = done[:t] + (done[t] | {j},) + done[t + 1:]
                skipped = any(values.get(register) != value for register, value in access.guard)
                if access.kind == "R":
                    # A load behind a condition may have been made before that was known: its guard is asked at the end.
                    now = held
                    if any(other.atomic == access.value for other in thread):
                        now = held | {(access.word, t)}
                    stack.append((after, memory, frozenset({**values, access.value: words[access.word]}.items()), now))
                    continue
                if any(word == access.word and owner != t for word, owner in held) and not skipped:
                    continue  # between the load and the store of another thread's read-modify-write
                now = held - {(access.word, t)} if access.atomic else held
                if skipped:
                    stack.append((after, memory, registers, now))
                else:
                    stack.append((after, frozenset({**words, access.word: access.value}.items()), registers, now))
    return [(dict(registers), dict(memory)) for registers, memory in found]


FREE, BUSY, A, B, GIVEN_UP = 0, 1, 16, 32, 17


@dataclasses.dataclass
class Litmus:
    """threads: functions of o, which gives an order by its number, or none if that one is left out. sources: (file, text) of
    each order, in that order. start: words. wrong: of registers and words."""
    name: str
    start: dict
    threads: object
    wrong: object
    sources: tuple


def free_record(o, key=0):
    """A hook takes the record of a block that is freed, and gives it back."""
    return [change("key", A, BUSY, "taken"), read("first", "own", guard=[("taken", A)]),
            write("key", FREE, o(key, "release"), guard=[("taken", A)])]


def fill_record(o, address, key, shown):
    """A hook takes a free record and fills it."""
    got = [("got", FREE)]
    return [change("key", FREE, BUSY, "got", o(key, "acquire")), write("first", 1, guard=got), write("second", 1, guard=got),
            write("key", address, o(shown, "release"), guard=got)]


LIVE, COPY, THINNER, STACKS = "payload/tables/live_table.c", "injector/recording/dump_copy.c", "injector/recording/live/thinner.c", "payload/tables/stack_table.c"
RECORDS, HISTORY = "injector/recording/live/live_records.c", "payload/tables/history.c"
WORDS = (COPY, "to[i] = atomic_load_explicit(&from[i], memory_order_acquire)")
BUSY_TAKE = ("payload/thread_state.c", "__atomic_compare_exchange_n(&thread->busy, &busy, sp, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)")
BUSY_GIVE = ("payload/thread_state.c", "__atomic_store_n(&thread->busy, 0, __ATOMIC_RELEASE)")
TAKING = ("payload/tables/regions.c", "__atomic_exchange_n(&regions_busy, 1, __ATOMIC_ACQUIRE)")
TAKEN = ("payload/tables/regions.c", "__atomic_store_n(&regions_busy, 0, __ATOMIC_RELEASE)")
PROGRAM = None  # the program makes that order
TAKE = (LIVE, "__atomic_compare_exchange_n(key, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)")
SHOW = (LIVE, "__atomic_store_n(&entry->record->address, entry->address, __ATOMIC_RELEASE)")
DROP = (LIVE, "__atomic_store_n(&entry->record->address, DUMP_KEY_FREE, __ATOMIC_RELEASE)")

TESTS = (
    Litmus("a live record is complete when its key is seen", {"key": FREE, "first": 0, "second": 0},
           lambda o: [fill_record(lambda i, order: o(0, order) if order == "release" else "acquire", B, 0, 0),
                      [read("key", "k", o(1, "acquire")), read("first", "f"), read("second", "s")]],
           lambda r, m: r["k"] == B and (r["f"], r["s"]) != (1, 1),
           (SHOW, (RECORDS, "atomic_load_explicit(live_table_key(t, k), memory_order_acquire)"))),
    Litmus("who takes a record reads it as it was shown", {"key": FREE, "first": 0, "second": 0},
           lambda o: [fill_record(lambda i, order: order, B, 0, 0),
                      [change("key", B, BUSY, "taken", o(0, "acquire")), read("first", "f")]],
           lambda r, m: r["taken"] == B and r["f"] != 1,
           (TAKE,)),
    Litmus("who frees a block reads its own record", {"key": A, "first": 0, "second": 0},
           lambda o: [free_record(o), fill_record(lambda i, order: order, B, 1, 1)],
           lambda r, m: r["taken"] == A and r["own"] == 1,
           (DROP,)),
    Litmus("a record that changes while it is read has another key after", {"key": A, "first": 0, "second": 0},
           lambda o: [free_record(lambda i, order: order), fill_record(lambda i, order: order, B, 1, 1),
                      [read("key", "k", "acquire"), read("first", "f"), read("second", "s"), fence(o(0, "acquire")),
                       read("key", "again")]],
           lambda r, m: r["k"] == A and r["again"] == A and 1 in (r["f"], r["s"]),
           ((RECORDS, "atomic_thread_fence(memory_order_acquire)"),)),
    Litmus("a record that two reads agree on is of one block, also at the address of the one before",
           {"key": A, "first": 0, "second": 0},
           lambda o: [free_record(lambda i, order: order), fill_record(lambda i, order: order, A, 0, 0),
                      [read("key", "k"), read("first", "f"), read("second", "s"), fence(o(0, "acquire")),
                       read("key", "k2", o(1, "acquire")), read("first", "f2"), read("second", "s2")]],
           lambda r, m: r["k"] == r["k2"] == A and r["f"] == r["f2"] and r["s"] == r["s2"] and r["f"] != r["s"],
           ((COPY, "atomic_thread_fence(memory_order_acquire)"), WORDS)),
    Litmus("who does not find a record that was given up knows of thinnings", {"key": A, "thinnings": 0},
           lambda o: [[write("thinnings", 1), change("key", A, BUSY, "taken"),
                       write("key", GIVEN_UP, o(0, "release"), guard=[("taken", A)])],
                      [read("key", "k"), fence(o(1, "acquire")), read("thinnings", "t")]],
           lambda r, m: r["k"] == GIVEN_UP and r["t"] == 0,
           ((THINNER, "memory_order_release)"), (LIVE, "__atomic_thread_fence(__ATOMIC_ACQUIRE)"))),
    Litmus("a stack is complete when its word of the index is seen", {"index": 0, "frames": 0},
           lambda o: [[write("frames", 1), change("index", 0, 5, "none", o(0, "release"))],
                      [read("index", "i", o(1, "acquire")), read("frames", "f")]],
           lambda r, m: r["i"] == 5 and r["f"] == 0,
           ((STACKS, "DUMP_INDEX_WORD(draft->hash, mine), false,\n\t\t                                __ATOMIC_RELEASE"),
            (STACKS, "__atomic_load_n(&words[i], __ATOMIC_ACQUIRE)"))),
    Litmus("room for a stack that was given back is written by the next alone", {"used": 8, "frames": 0},
           lambda o: [[write("frames", 1), change("used", 8, 0, "back", o(0, "release"))],
                      [change("used", 0, 8, "room", "acquire"), write("frames", 2, guard=[("room", 0)])]],
           lambda r, m: r["room"] == 0 and m["frames"] != 2,
           ((STACKS, "__atomic_compare_exchange_n(&arena->used, &end, start, false, __ATOMIC_RELEASE"),)),
    Litmus("a record of the history is complete when it is counted", {"used": 0, "record": 0},
           lambda o: [[write("record", 1), write("used", 1, o(0, "release"))],
                      [read("used", "u", o(1, "acquire")), read("record", "r")]],
           lambda r, m: r["u"] == 1 and r["r"] == 0,
           ((HISTORY, "__atomic_store_n(&block->used, used + 1, __ATOMIC_RELEASE)"), WORDS)),
    Litmus("a block of the history that is taken again is not read as it was", {"used": 1, "sequence": 7, "record": 0},
           lambda o: [[change("used", 1, 0, "dropped", "acquire"), write("sequence", 8, "release"), fence(o(0, "release")),
                       write("record", 1)],
                      [read("sequence", "s", "acquire"), read("record", "r"), fence(o(1, "acquire")), read("sequence", "s2")]],
           lambda r, m: r["s"] == r["s2"] == 7 and r["r"] == 1,
           ((HISTORY, "__atomic_thread_fence(__ATOMIC_RELEASE)"),
            (COPY, "atomic_thread_fence(memory_order_acquire);\n\t\tint rc = c->source->read(c->source, offset, &sequence"))),
    Litmus("a block of the history that was taken again counts no record of before", {"used": 1, "sequence": 7},
           lambda o: [[change("used", 1, 0, "dropped", "acquire"), write("sequence", 8, o(0, "release"))],
                      [read("sequence", "s", o(1, "acquire")), read("used", "u")]],
           lambda r, m: r["s"] == 8 and r["u"] == 1,
           ((HISTORY, "__atomic_store_n(&block->sequence, k + 1, __ATOMIC_RELEASE)"), WORDS)),
    Litmus("a region is described when it is counted", {"count": 0, "descriptor": 0},
           lambda o: [[write("descriptor", 1), write("count", 1, o(0, "release"))],
                      [read("count", "c", o(1, "acquire")), read("descriptor", "d")]],
           lambda r, m: r["c"] == 1 and r["d"] == 0,
           (("injector/recording/dump_writer.c", "atomic_store_explicit(dump_writer_u32(&w->shared->region_count), count + 1, memory_order_release)"),
            ("payload/tables/regions.c", "__atomic_load_n(&payload.dump->region_count, __ATOMIC_ACQUIRE)"))),
    Litmus("unwind rules are there when their index is", {"index": 0, "rows": 0},
           lambda o: [[write("rows", 1), write("index", 1, o(0, "release"))],
                      [read("index", "i", o(1, "acquire")), read("rows", "r")]],
           lambda r, m: r["i"] == 1 and r["r"] == 0,
           (("injector/unwind/table_writer.c", "__atomic_store_n(&t->header->index_offset, at, __ATOMIC_RELEASE)"),
            ("payload/walk/rule_cache.h", "__atomic_load_n(&header->index_offset, __ATOMIC_ACQUIRE)"))),
    Litmus("the clock of the lease is read whole", {"sequence": 0, "stamp": 0, "time": 0},
           lambda o: [[write("sequence", 1), fence(o(0, "release")), write("stamp", 1), write("time", 1),
                       write("sequence", 2, o(1, "release"))],
                      [read("sequence", "s", "acquire"), read("stamp", "a"), read("time", "b"), fence("acquire"), read("sequence", "s2")]],
           lambda r, m: r["s"] == r["s2"] and r["s"] % 2 == 0 and r["a"] != r["b"],
           (("injector/recording/dump_writer.c", "atomic_thread_fence(memory_order_release)"),
            ("injector/recording/dump_writer.c", "own->lease_sequence, memory_order_release)"))),
    Litmus("what one hook has left in a thread state is there for the next", {"busy": 1, "random": 0},
           lambda o: [[write("random", 1), write("busy", 0, o(0, "release"))],
                      [change("busy", 0, 2, "was", o(1, "acquire")), read("random", "r")]],
           lambda r, m: r["was"] == 0 and r["r"] == 0,
           (BUSY_GIVE, BUSY_TAKE)),
    Litmus("who takes descriptors goes on behind the last", {"busy": 1, "taken": 0},
           lambda o: [[write("taken", 1), write("busy", 0, o(0, "release"))],
                      [change("busy", 0, 1, "was", o(1, "acquire")), read("taken", "t")]],
           lambda r, m: r["was"] == 0 and r["t"] == 0,
           (TAKEN, TAKING)),
    Litmus("a region of the payload is described when it is counted", {"count": 0, "descriptor": 0},
           lambda o: [[write("descriptor", 1), write("count", 1, o(0, "release"))],
                      [read("count", "c", o(1, "acquire")), read("descriptor", "d")]],
           lambda r, m: r["c"] == 1 and r["d"] == 0,
           (("payload/tables/regions.c", "__atomic_store_n(count, *count + 1, __ATOMIC_RELEASE)"),
            ("payload/tables/regions.h", "__atomic_load_n(&regions.count[kind], __ATOMIC_ACQUIRE)"))),
    Litmus("a record of memattach's is complete when its size is there", {"bytes": 0, "rest": 0},
           lambda o: [[write("rest", 1), write("bytes", 1, o(0, "release"))],
                      [read("bytes", "b", o(1, "acquire")), read("rest", "r")]],
           lambda r, m: r["b"] == 1 and r["r"] == 0,
           (("injector/recording/dump_writer_records.c",
             "atomic_store_explicit(dump_writer_u32(record), (uint32_t)bytes, memory_order_release)"), WORDS)),
    Litmus("the layout of Python is there when it is said to be", {"yes": 0, "layout": 0},
           lambda o: [[write("layout", 1), fence(o(0, "release")), write("yes", 1)],
                      [read("yes", "y", o(1, "acquire")), read("layout", "l")]],
           lambda r, m: r["y"] == 1 and r["l"] == 0,
           (("injector/touch/python/python_session.c", "atomic_thread_fence(memory_order_release)"),
            ("payload/hook.c", "__atomic_load_n(&payload.has_python, __ATOMIC_ACQUIRE)"))),
    Litmus("the layout of Java is there when its bytes are", {"bytes": 0, "layout": 0},
           lambda o: [[write("layout", 1), fence(o(0, "release")), write("bytes", 1)],
                      [read("bytes", "b", o(1, "acquire")), read("layout", "l")]],
           lambda r, m: r["b"] == 1 and r["l"] == 0,
           (("injector/touch/patches/late_layout.c", "atomic_thread_fence(memory_order_release)"),
            ("payload/walk/java_walk.h", "__atomic_load_n(&payload.java.bytes, __ATOMIC_ACQUIRE)"))),
    Litmus("who is handed a block finds its share in the filter", {"counter": 0, "handed": 0},
           lambda o: [[write("counter", 1), write("handed", 1, o(0, "release"))],
                      [read("handed", "h", o(1, "acquire")), read("counter", "c")]],
           lambda r, m: r["h"] == 1 and r["c"] == 0,
           (PROGRAM, PROGRAM)),
    Litmus("who is handed a code object sees the count of what was freed there", {"count": 1, "lock": 1, "code": 0},
           lambda o: [[write("count", 2), write("lock", 0, o(0, "release"))],
                      [change("lock", 0, 2, "freed"), write("code", 1, guard=[("freed", 0)]),
                       write("lock", 3, o(1, "release"), guard=[("freed", 0)])],
                      [read("lock", "l", o(2, "acquire")), read("count", "n"), read("code", "c")]],
           lambda r, m: r["l"] == 3 and (r["n"], r["c"]) != (2, 1),
           (PROGRAM, PROGRAM, PROGRAM)),
)


def run(test, without=None):
    """Is what must not be possible? without: number of an order that is left out."""
    threads = test.threads(lambda number, order: "" if number == without else order)
    return any(test.wrong(registers, memory) for registers, memory in outcomes(threads, test.start))


ACCESS = re.compile(r"\b(?:__atomic|atomic)_(?:load|store|exchange|compare_exchange|fetch_add|add_fetch)\w*\(")
ORDER = re.compile(r"__ATOMIC_(\w+)|memory_order_(\w+)")
SHARERS = ("payload/**/*.[ch]", "include/**/*.h", "injector/recording/**/*.[ch]", "injector/unwind/table_writer.c")


def arguments(text, at):
    """Of the call whose parenthesis opens before at."""
    found, depth = [""], 0
    for c in text[at:]:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(c, 0)
        if depth < 0:
            return found
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return found


def orders_of_source(source):
    """{name of a shared word: orders of its accesses}; of an element, that of the array."""
    orders = {}
    for path in sorted(itertools.chain.from_iterable(source.glob(pattern) for pattern in SHARERS)):
        text = path.read_text(encoding="utf-8")
        for access in ACCESS.finditer(text):
            word, *rest = arguments(text, access.end())
            while "[" in word:
                word = re.sub(r"\[[^][]*\]", "", word)
            order = ORDER.search(",".join(rest))
            orders.setdefault(re.findall(r"\w+", word)[-1], set()).add((order[1] or order[2]).lower())
    return orders


def rows_of_page(page):
    """(names, orders) of each row of the table in docs/porting.md."""
    for row in page.split("| shared word |", 1)[1].splitlines()[2:]:
        words, orders = row.split(" | ", 2)[:2]
        yield [name.rpartition(".")[2] for name in re.findall(r"`([^`]*)`", words)], set(re.findall(r"\w+", orders))


def check_table(tree):
    """Each shared word is in a row, and the orders of a row are those of its words."""
    said = orders_of_source(tree.source)
    rows = list(rows_of_page((tree.source / "docs/porting.md").read_text(encoding="utf-8")))
    for name, orders in said.items():
        if not orders <= set().union(*(row for names, row in rows if name in names)):
            yield f"docs/porting.md: the orders of {name} in the source are {', '.join(sorted(orders))}"
    for names, row in rows:
        if not row <= set().union(*(said.get(name, ()) for name in names)):
            yield f"docs/porting.md: the source has not all of these orders: {', '.join(names)}: {', '.join(sorted(row))}"


def check_ordering(tree):
    """Shared words have the orders that they need on a machine that reorders accesses: with them what must not be is impossible, and
    without any one of them it is possible. The source has these orders, and those that docs/porting.md says."""
    for test in TESTS:
        if run(test):
            yield f"{test.name}: this can be otherwise"
        for number, source in enumerate(test.sources):
            if not run(test, number):
                yield f"{test.name}: holds without order {number}, so that was not tried"
            if source and source[1] not in (tree.source / source[0]).read_text(encoding="utf-8"):
                yield f"{test.name}: {source[0]} has not {source[1]!r}"
    yield from check_table(tree)
