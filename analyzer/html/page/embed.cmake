# cmake -DOUT=html_page.c -DPROLOGUE=html_prologue.h -P embed.cmake: report.html with its style and its scripts, as C.
# They are allowed by their SHA-256, so that nothing else can run, whatever the data hold. The hash is of what stands
# between the tags. The header has what a page begins with, up to the line that allows them.
cmake_minimum_required(VERSION 3.20)
set(SCRIPTS figures model flame paint table timeline leaks page)
set(MACHINE_SCRIPTS machine) # only in the report of a folder
set(SCRIPT_BYTES_MAX 34816)
set(MACHINE_SCRIPT_BYTES_MAX 6144)

# base64(VALUE OUT): of a SHA-256 in hexadecimal, which has 64 digits: 21 groups of three, and one.
function(base64 hex out)
  set(letters ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  set(text)
  string(APPEND hex 00)
  foreach(i RANGE 0 63 3)
    string(SUBSTRING ${hex} ${i} 3 three)
    math(EXPR high "0x${three} >> 6")
    math(EXPR low "0x${three} & 63")
    string(SUBSTRING ${letters} ${high} 1 first)
    string(SUBSTRING ${letters} ${low} 1 second)
    string(APPEND text ${first}${second})
  endforeach()
  string(SUBSTRING ${text} 0 43 text)
  set(${out} "${text}=" PARENT_SCOPE)
endfunction()

# Names that are ours alone, of no element, no built-in object and no data, and stand in no string: they become short.
set(NAMES
  spanStep brush cells titleOf stepAt sought asked frame state event context node setState regex amount points inverted direction gammaQuantile entries path
  groups group targetOf groupsOf sideOf cutNote growthInterval isBytes secondsOf siblings actions percent showTip unknown minus plus zoom
  density variance logGamma canvas stepCount readState drawFlame drawFlameTab drawTimeline drawTotals setSpan
  readSpan isDark fastest describe oldValue tellMoment groupOf fitText isAbove zoomStep hatching restOf rootOf
  nodeAt colour missing unsure tailOf tails merge interval noSum sumOf widthOf isLive reader columns groupsBy
  drawTable drawHead choose chosen standard kinds element layout strong share
  drawUsage mostUsed kindHue usedAt upTo scaled
  makeLeaks leadTo ratio oldest unseen exactly shortName labelOf sandwich clock quiet)

# shorten(CODE OUT)
function(shorten code out)
  set(number 10)
  foreach(name IN LISTS NAMES)
    math(EXPR number "${number} + 1")
    math(EXPR letter "97 + ${number} % 26")
    math(EXPR digit "${number} / 26")
    string(ASCII ${letter} letter)
    foreach(turn RANGE 1) # each finds every other one of those that follow each other
      string(REGEX REPLACE "(^|[^A-Za-z0-9_$'])${name}([^A-Za-z0-9_'])" "\\1${letter}${digit}\\2" code "${code}")
    endforeach()
  endforeach()
  set(${out} "${code}" PARENT_SCOPE)
endfunction()

# squeeze(CODE OUT): without the spaces that only people need; those of strings stay.
function(squeeze code out)
  set(result)
  set(rest "${code}")
  while(NOT "${rest}" STREQUAL "")
    set(text)
    set(bare "${rest}")
    if(rest MATCHES "'[^'\n]*'|`[^`]*`")
      set(text "${CMAKE_MATCH_0}")
      string(FIND "${rest}" "${text}" at)
      string(SUBSTRING "${rest}" 0 ${at} bare)
      string(LENGTH "${text}" bytes)
      math(EXPR at "${at} + ${bytes}")
      string(SUBSTRING "${rest}" ${at} -1 rest)
    else()
      set(rest "")
    endif()
    string(REGEX REPLACE " (=|=>|===|!==|[*+-]=|[?]|&&|&|[|][|]|[|]|[*]+|[+-]|/|%|:|<|>|>=|<=|<<|>>+) " "\\1" bare "${bare}")
    string(REGEX REPLACE "([;,)}]) ([({a-zA-Z0-9$.!-]|$)" "\\1\\2" bare "${bare}")
    string(REGEX REPLACE "(if|for|while|catch|else) ([({])" "\\1\\2" bare "${bare}")
    string(REGEX REPLACE "([a-zA-Z0-9_]:) ([({[a-zA-Z0-9.!-]|$)" "\\1\\2" bare "${bare}")
    string(REGEX REPLACE ";}" "}" bare "${bare}")
    string(REGEX REPLACE "(^|[^A-Za-z])const " "\\1let " bare "${bare}")
    string(REGEX REPLACE "Math[.]" "M." bare "${bare}")
    string(REGEX REPLACE "([{]) " "\\1" bare "${bare}")
    string(REGEX REPLACE " ([{}])" "\\1" bare "${bare}")
    string(APPEND result "${bare}${text}")
  endwhile()
  set(${out} "${result}" PARENT_SCOPE)
endfunction()

# join(FIRST OUT NAME...): scripts as one.
function(join first out)
  set(script "${first}")
  foreach(name IN LISTS ARGN)
    file(READ ${CMAKE_CURRENT_LIST_DIR}/${name}.js part)
    # Without comments and the lines that only people need; in an expression, [ ] stands for a space that has to stay.
    string(REGEX REPLACE "(^|\n|; |, )[\t ]*//[^\n]*" "\\1" part "${part}")
    string(REGEX REPLACE "([;,{(])[\t\n ]*\n[\t ]*" "\\1" part "${part}")
    string(REGEX REPLACE "([)}\n])\n[\t\n ]*" "\\1" part "${part}")
    string(REGEX REPLACE "\n[\t ]+" "\n" part "${part}")
    squeeze("${part}" part)
    string(APPEND script "${part}")
  endforeach()
  shorten("${script}" script)
  set(${out} "${script}" PARENT_SCOPE)
endfunction()

file(READ ${CMAKE_CURRENT_LIST_DIR}/report.css style)
join("'use strict';const M=Math;" script ${SCRIPTS})
join("'use strict';" machine_script ${MACHINE_SCRIPTS})
foreach(name script machine_script)
  string(LENGTH "${${name}}" bytes)
  string(TOUPPER ${name}_BYTES_MAX most)
  if(bytes GREATER ${most})
    message(FATAL_ERROR "the ${name} of the HTML report has ${bytes} bytes, more than ${${most}}")
  endif()
endforeach()

foreach(part style script machine_script)
  string(SHA256 hash "${${part}}")
  base64(${hash} ${part}_hash)
endforeach()
file(READ ${CMAKE_CURRENT_LIST_DIR}/report.html page)
foreach(part style_hash script_hash machine_script_hash style script machine_script)
  string(REPLACE "@${part}@" "${${part}}" page "${page}")
endforeach()

string(REGEX MATCH "^.*<meta http-equiv=[^\n]*\n" prologue "${page}")
string(REGEX REPLACE "([\\\\\"])" "\\\\\\1" prologue "${prologue}")
string(REPLACE "\n" "\\n" prologue "${prologue}")
file(WRITE ${PROLOGUE} "/* Made by html/embed.cmake: what each HTML report begins with. */\n#define HTML_PROLOGUE \"${prologue}\"\n")

# The parts between the places where the writer puts text and data.
set(content "/* Made by html/page/embed.cmake. */\n#include \"html/html_page.h\"\n")
foreach(name begin head frames nodes step spans parts scripts machine end)
  string(FIND "${page}" "@data@" at)
  string(SUBSTRING "${page}" 0 ${at} part)
  if(at GREATER -1)
    math(EXPR at "${at} + 6")
    string(SUBSTRING "${page}" ${at} -1 page)
  endif()
  string(HEX "${part}" bytes)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  string(APPEND content "const char html_page_${name}[] = {\n${bytes}0 };\n")
endforeach()
file(WRITE ${OUT} "${content}")
